//! How often each host is asked, and until when a host that asked for patience is left alone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use steward_base::{Clock, Timestamp};

/// Most hosts that are remembered.
const HOSTS: usize = 4_096;

#[derive(Debug, Clone, Copy)]
struct Host {
    /// When the next request is due if requests came evenly.
    next: Timestamp,
    /// Not before this time, by the host's own word.
    patience: Timestamp,
}

/// Spreads requests to a host evenly over time, with a burst.
#[derive(Debug)]
pub(crate) struct Rates {
    clock: Arc<dyn Clock>,
    hosts: Mutex<HashMap<String, Host>>,
    every: Duration,
    burst: Duration,
}

impl Rates {
    pub(crate) fn new(clock: Arc<dyn Clock>, per_minute: u32, burst: u32) -> Self {
        let every = Duration::from_mins(1) / per_minute.max(1);
        Self {
            clock,
            hosts: Mutex::default(),
            every,
            burst: every * burst.max(1),
        }
    }

    /// The time that waits are counted from.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Counts a request, or says how long to wait.
    pub(crate) fn admit(&self, host: &str) -> Result<(), Duration> {
        let now = self.clock.now();
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if hosts.len() >= HOSTS {
            hosts.retain(|_, host| host.next > now || host.patience > now);
        }
        let state = hosts.entry(host.to_owned()).or_insert(Host {
            next: now,
            patience: Timestamp::default(),
        });
        if state.patience > now {
            return Err(state.patience.since(now));
        }
        let due = state.next.max(now);
        let ahead = due.since(now);
        if ahead + self.every > self.burst {
            return Err((ahead + self.every).saturating_sub(self.burst));
        }
        state.next = due.plus(self.every);
        Ok(())
    }

    /// The host asked to be left alone for a while.
    pub(crate) fn wait(&self, host: &str, patience: Duration) {
        let until = self.clock.now().plus(patience);
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let state = hosts.entry(host.to_owned()).or_insert(Host {
            next: until,
            patience: until,
        });
        state.patience = state.patience.max(until);
    }
}

#[cfg(test)]
mod tests {
    use steward_testkit::MockClock;

    use super::*;

    #[test]
    fn h_8_each_host_has_its_own_rate_and_patience() {
        let clock = Arc::new(MockClock::default());
        let rates = Rates::new(clock.clone(), 60, 2);
        assert_eq!(rates.admit("a"), Ok(()));
        assert_eq!(rates.admit("a"), Ok(()));
        assert_eq!(rates.admit("a"), Err(Duration::from_secs(1)));
        assert_eq!(rates.admit("b"), Ok(()));
        clock.advance(Duration::from_secs(1));
        assert_eq!(rates.admit("a"), Ok(()));
        rates.wait("b", Duration::from_secs(30));
        assert_eq!(rates.admit("b"), Err(Duration::from_secs(30)));
        clock.advance(Duration::from_secs(30));
        assert_eq!(rates.admit("b"), Ok(()));
    }
}
