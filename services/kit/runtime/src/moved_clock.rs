//! The machine's clock, moved by what stands in a file: how a scenario lets weeks pass in processes that run.
//!
//! Only builds with failpoints have it, and no shipped build is one. The file that `STEWARD_CLOCK_FILE` names holds by how
//! many seconds the clock is ahead; without the file, or without a number in it, it is not moved. It is read at each look at
//! the clock, so that all processes move together.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use steward_base::{Clock, SystemClock, Timestamp};

#[derive(Debug)]
struct MovedClock {
    file: PathBuf,
}

impl Clock for MovedClock {
    fn now(&self) -> Timestamp {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        let ahead = text.trim().parse().map_or(Duration::ZERO, Duration::from_secs);
        SystemClock.now().plus(ahead)
    }
}

/// The clock of this process.
pub(crate) fn of_process() -> Arc<dyn Clock> {
    match crate::config::environment_value("STEWARD_CLOCK_FILE") {
        Some(file) => Arc::new(MovedClock { file: file.into() }),
        None => Arc::new(SystemClock),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_as_far_ahead_as_the_file_says() {
        let folder = tempfile::tempdir().unwrap();
        let clock = MovedClock {
            file: folder.path().join("ahead"),
        };
        let day = Duration::from_hours(24);
        for (text, at_least, at_most) in [
            (None, Duration::ZERO, day),
            (Some("864000\n"), 10 * day, 11 * day),
            (Some("soon"), Duration::ZERO, day),
        ] {
            if let Some(text) = text {
                std::fs::write(&clock.file, text).unwrap();
            }
            let before = SystemClock.now();
            let ahead = clock.now().since(before);
            assert!((at_least..at_most).contains(&ahead), "{text:?}: {ahead:?}");
        }
    }
}
