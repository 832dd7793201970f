//! When a provider that failed is asked again: not for a while, then once, then as before or not for longer.

use std::time::Duration;

use steward_base::Timestamp;

/// Failures in a row after which it is left alone.
const FAILURES: u32 = 3;
/// For how long at first, and at most.
const FIRST_REST: Duration = Duration::from_secs(10);
const LONGEST_REST: Duration = Duration::from_mins(10);

/// What is known of how a provider does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Breaker {
    failures: u32,
    rests: u32,
    until: Option<Timestamp>,
}

impl Breaker {
    /// Whether it may be asked at `now`. After a rest one call is let through, and the others wait for what becomes of it.
    pub fn allows(&mut self, now: Timestamp) -> bool {
        match self.until {
            None => true,
            Some(until) if now < until => false,
            Some(_) => {
                self.until = Some(now.plus(FIRST_REST));
                true
            }
        }
    }

    /// It answered.
    pub fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// It failed, or took too long.
    pub fn failed(&mut self, now: Timestamp) {
        self.failures = self.failures.saturating_add(1);
        if self.failures >= FAILURES {
            let rest = FIRST_REST
                .saturating_mul(2_u32.saturating_pow(self.rests))
                .min(LONGEST_REST);
            self.rests = self.rests.saturating_add(1);
            self.until = Some(now.plus(rest));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_provider_is_left_alone_for_longer_and_longer_and_tried_once_each_time() {
        let mut breaker = Breaker::default();
        let at = |seconds| Timestamp::from_secs(seconds);
        for _ in 0..FAILURES {
            assert!(breaker.allows(at(0)));
            breaker.failed(at(0));
        }
        assert!(!breaker.allows(at(9)));
        assert!(breaker.allows(at(10)));
        assert!(!breaker.allows(at(10)), "one at a time");
        breaker.failed(at(10));
        assert!(!breaker.allows(at(29)));
        assert!(breaker.allows(at(30)));
        breaker.succeeded();
        assert!(breaker.allows(at(30)) && breaker.allows(at(30)));
        for _ in 0..100 {
            breaker.failed(at(30));
        }
        assert!(breaker.allows(at(30 + 600)));
    }
}
