//! How a queue treats its jobs.

use std::time::Duration;

use crate::{Job, NewJob};

/// The rules of a queue.
#[derive(Debug, Clone, Copy)]
pub struct QueueOptions {
    /// Tries that a job has before it is dead; at least one (`R-1`).
    pub max_attempts: u32,
    /// How often a job may give way without losing a try (`R-2`).
    pub max_releases: u32,
    /// Jobs of one team that may run at the same time; at least one.
    pub team_cap: u32,
    /// Wait after the first failure; doubled for each further one.
    pub backoff: Duration,
    /// Longest wait after a failure.
    pub max_backoff: Duration,
    /// Share of the wait by which it varies at random, up and down; 0.0 to 1.0.
    pub jitter: f64,
    /// The payload of a newer job that takes over an older one.
    pub merge: fn(older: &Job, newer: &NewJob) -> String,
}

impl Default for QueueOptions {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            max_releases: 2,
            team_cap: 4,
            backoff: Duration::from_secs(30),
            max_backoff: Duration::from_mins(30),
            jitter: 0.2,
            merge: |_, newer| newer.payload.clone(),
        }
    }
}

impl QueueOptions {
    /// The wait before the next try after `attempts` failed ones. `chance` from 0.0 to 1.0 places it within the jitter.
    pub(crate) fn wait_after(&self, attempts: u32, chance: f64) -> Duration {
        let doublings = attempts.saturating_sub(1).min(30);
        let wait = self.backoff.saturating_mul(1_u32 << doublings).min(self.max_backoff);
        let factor = 1.0 + self.jitter.clamp(0.0, 1.0) * (2.0 * chance.clamp(0.0, 1.0) - 1.0);
        wait.mul_f64(factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_its_limit() {
        let options = QueueOptions {
            jitter: 0.0,
            ..QueueOptions::default()
        };
        let waits: Vec<u64> = [1, 2, 3, 7, 40]
            .map(|attempts| options.wait_after(attempts, 0.9).as_secs())
            .into();
        assert_eq!(waits, [30, 60, 120, 1_800, 1_800], "seconds");
    }

    #[test]
    fn the_jitter_stays_within_its_share() {
        let options = QueueOptions::default();
        for (chance, seconds) in [(0.0, 24.0), (0.5, 30.0), (1.0, 36.0)] {
            let wait = options.wait_after(1, chance).as_secs_f64();
            assert!((wait - seconds).abs() < 1e-6, "{chance}: {wait}");
        }
    }
}
