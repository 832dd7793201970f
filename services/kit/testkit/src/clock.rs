//! A clock that only moves when it is told to.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use steward_base::{Clock, Timestamp};

/// A settable clock. Clones share the same time, so a test keeps one and hands another to the code under test.
#[derive(Debug, Clone)]
pub struct MockClock {
    micros: Arc<AtomicI64>,
}

impl MockClock {
    /// Stands at `start`.
    pub fn at(start: Timestamp) -> Self {
        Self {
            micros: Arc::new(AtomicI64::new(start.as_micros())),
        }
    }

    /// Moves the clock to `now`, forwards or backwards.
    pub fn set(&self, now: Timestamp) {
        self.micros.store(now.as_micros(), Ordering::SeqCst);
    }

    /// Moves the clock forwards and returns the new time.
    pub fn advance(&self, by: Duration) -> Timestamp {
        let step = i64::try_from(by.as_micros()).expect("a step that fits 64 bits of microseconds");
        Timestamp::from_micros(self.micros.fetch_add(step, Ordering::SeqCst) + step)
    }
}

impl Default for MockClock {
    /// Stands at 2026-11-29, 12:00 UTC.
    fn default() -> Self {
        Self::at(Timestamp::from_secs(1_795_953_600))
    }
}

impl Clock for MockClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.micros.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_the_time() {
        let clock = MockClock::default();
        let other = clock.clone();
        assert_eq!(clock.now().to_string(), "2026-11-29T12:00:00Z");
        let later = other.advance(Duration::from_mins(1));
        assert_eq!(clock.now(), later);
        clock.set(Timestamp::from_secs(5));
        assert_eq!(other.now(), Timestamp::from_secs(5));
    }
}
