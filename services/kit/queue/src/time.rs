//! The store's clock. It follows the machine's, never goes back, and does not stand still while the machine's clock makes
//! up for having been set back: what waits would else wait for hours, and what a dead worker left behind would stay with it.
//!
//! Not here: measuring time by other means. A rule of the readings alone can be tested with a clock that a test moves.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use steward_base::{Clock, Timestamp};

/// A step forwards between two readings that is longer than this may be a clock that was put right again. Workers look at
/// the queue every second or so.
const LONGEST_STEP: Duration = Duration::from_mins(1);

/// The store's clock. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct StoreClock {
    machine: Arc<dyn Clock>,
    reckoning: Arc<Mutex<Reckoning>>,
}

/// A reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    /// The store's time.
    pub(crate) now: Timestamp,
    /// By how much it is ahead of the machine's.
    ahead: Duration,
}

#[derive(Debug, Default)]
struct Reckoning {
    last: Option<Timestamp>,
    ahead: Duration,
    /// Whether the times that the store holds were taken into account.
    knows_store: bool,
}

impl StoreClock {
    pub(crate) fn new(machine: Arc<dyn Clock>) -> Self {
        Self {
            machine,
            reckoning: Arc::default(),
        }
    }

    /// Whether [`StoreClock::begin_at`] was called.
    pub(crate) fn has_begun(&self) -> bool {
        self.locked(|reckoning, _| reckoning.knows_store)
    }

    /// Not earlier than `seen`, the latest time that the store holds, from now on: the machine's clock may have been set
    /// back while nothing ran.
    pub(crate) fn begin_at(&self, seen: Option<Timestamp>) {
        self.locked(|reckoning, reading| {
            let moment = reckoning.read(reading);
            reckoning.ahead += seen.map_or(Duration::ZERO, |seen| seen.since(moment.now));
            reckoning.knows_store = true;
        });
    }

    pub(crate) fn read(&self) -> Moment {
        self.locked(Reckoning::read)
    }

    /// The machine's clock is read under the lock: two readings in the wrong order would look like a step back.
    fn locked<T>(&self, step: impl FnOnce(&mut Reckoning, Timestamp) -> T) -> T {
        let mut reckoning = self.reckoning.lock().unwrap_or_else(PoisonError::into_inner);
        step(&mut reckoning, self.machine.now())
    }
}

impl Reckoning {
    fn read(&mut self, reading: Timestamp) -> Moment {
        if let Some(last) = self.last.replace(reading) {
            self.ahead += last.since(reading);
            let step = reading.since(last);
            if step > LONGEST_STEP {
                self.ahead = self.ahead.saturating_sub(step);
            }
        }
        Moment {
            now: reading.plus(self.ahead),
            ahead: self.ahead,
        }
    }
}

impl Moment {
    /// A time by the machine's clock, which callers know, as the store counts it.
    pub(crate) fn counted(self, at: Timestamp) -> Timestamp {
        at.plus(self.ahead)
    }

    /// A time of the store by the machine's clock.
    pub(crate) fn told(self, at: Timestamp) -> Timestamp {
        at.minus(self.ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: i64 = 1_795_953_600;

    fn readings(clock: &mut Reckoning, seconds: &[i64]) -> Vec<i64> {
        let read = |second: &i64| clock.read(Timestamp::from_secs(NOON + second)).now.as_secs() - NOON;
        seconds.iter().map(read).collect()
    }

    #[test]
    fn a_clock_that_runs_is_followed_and_so_is_one_that_slept() {
        let mut clock = Reckoning::default();
        assert_eq!(readings(&mut clock, &[0, 1, 1, 7_200, 7_201]), [0, 1, 1, 7_200, 7_201]);
    }

    #[test]
    fn a_clock_that_was_set_back_goes_on_from_where_it_was() {
        let mut clock = Reckoning::default();
        let read = readings(&mut clock, &[0, 10, -3 * 3_600, -3 * 3_600 + 5, -3 * 3_600 + 60]);
        assert_eq!(read, [0, 10, 10, 15, 70]);
    }

    #[test]
    fn a_clock_that_is_put_right_again_is_followed_again() {
        let mut clock = Reckoning::default();
        let read = readings(&mut clock, &[0, -3_600, -3_590, 20, 25, 26]);
        assert_eq!(read, [0, 0, 10, 20, 25, 26]);
        assert_eq!(clock.ahead, Duration::ZERO);
    }

    #[test]
    fn it_never_goes_back_whatever_the_machine_does() {
        let mut clock = Reckoning::default();
        let mut wild = vec![0];
        for step in [5_i64, -7_200, 90, 30, -1, 10_000, -20_000, 61, 59, 40_000] {
            wild.push(wild.last().unwrap() + step);
        }
        let read = readings(&mut clock, &wild);
        assert!(read.is_sorted(), "{read:?}");
        assert_eq!(read.last(), wild.last(), "what was set back is paid back");
    }

    #[test]
    fn it_begins_where_the_store_ended() {
        let machine = steward_testkit::MockClock::at(Timestamp::from_secs(NOON));
        let clock = StoreClock::new(Arc::new(machine.clone()));
        assert!(!clock.has_begun());
        clock.begin_at(Some(Timestamp::from_secs(NOON + 3_600)));
        let moment = clock.read();
        assert_eq!(moment.now, Timestamp::from_secs(NOON + 3_600));
        assert_eq!(moment.counted(Timestamp::from_secs(NOON)), moment.now);
        assert_eq!(moment.told(moment.now), Timestamp::from_secs(NOON));
        machine.advance(Duration::from_secs(30));
        assert_eq!(clock.read().now, Timestamp::from_secs(NOON + 3_630));
        clock.begin_at(Some(Timestamp::from_secs(NOON)));
        assert_eq!(
            clock.read().now,
            Timestamp::from_secs(NOON + 3_630),
            "an earlier time changes nothing"
        );
    }
}
