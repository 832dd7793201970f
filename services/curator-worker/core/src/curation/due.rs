//! When a team's library is due (`C-1`): a pure function of three times and the settings. All times are points in UTC, so
//! that no time zone and no change to summer time moves anything.

use std::time::Duration;

use steward_base::Timestamp;

use super::TeamClock;

/// How often libraries are curated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rhythm {
    /// Whether they are curated by themselves at all.
    pub enabled: bool,
    /// Least time between two runs.
    pub interval: Duration,
    /// How long nobody may have been active.
    pub idle: Duration,
}

/// What is to be done about a team now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Begin to count the interval; nothing runs.
    Seed,
    /// Nothing.
    Wait,
    /// Run.
    Run,
}

/// Decides.
pub fn decide(now: Timestamp, clock: Option<&TeamClock>, last_active: Option<Timestamp>, rhythm: Rhythm) -> Verdict {
    let Some(clock) = clock else {
        return Verdict::Seed;
    };
    if clock.since > now {
        // The clock was set back. Counting on from the future would keep the library untouched until then.
        return Verdict::Seed;
    }
    let is_over = |since: Timestamp, time: Duration| since.plus(time) <= now;
    let is_due = rhythm.enabled
        && !clock.paused
        && is_over(clock.since, rhythm.interval)
        && last_active.is_none_or(|at| is_over(at, rhythm.idle));
    if is_due { Verdict::Run } else { Verdict::Wait }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RHYTHM: Rhythm = Rhythm {
        enabled: true,
        interval: Duration::from_hours(168),
        idle: Duration::from_hours(2),
    };

    fn hours(hours: i64) -> Timestamp {
        Timestamp::from_secs(1_795_910_400 + hours * 3_600)
    }

    fn since(at: Timestamp) -> TeamClock {
        TeamClock {
            since: at,
            paused: false,
            last_run: None,
            runs: 0,
        }
    }

    #[test]
    fn a_team_is_due_after_the_interval_once_it_is_idle() {
        let clock = since(hours(0));
        for (now, active, verdict) in [
            (0, None, Verdict::Wait),
            (167, None, Verdict::Wait),
            (168, None, Verdict::Run),
            (168, Some(166), Verdict::Run),
            (168, Some(167), Verdict::Wait),
            (169, Some(167), Verdict::Run),
            (169, Some(200), Verdict::Wait),
            (20_000, Some(0), Verdict::Run),
        ] {
            let found = decide(hours(now), Some(&clock), active.map(hours), RHYTHM);
            assert_eq!(found, verdict, "{now} {active:?}");
        }
    }

    #[test]
    fn first_sight_seeds_and_runs_nothing() {
        // D-26.
        assert_eq!(decide(hours(0), None, Some(hours(-5_000)), RHYTHM), Verdict::Seed);
    }

    #[test]
    fn a_clock_that_was_set_back_runs_nothing_and_counts_from_now() {
        assert_eq!(decide(hours(0), Some(&since(hours(1))), None, RHYTHM), Verdict::Seed);
    }

    #[test]
    fn pause_and_switch_hold_it_back() {
        let paused = TeamClock {
            paused: true,
            ..since(hours(0))
        };
        assert_eq!(decide(hours(500), Some(&paused), None, RHYTHM), Verdict::Wait);
        let off = Rhythm {
            enabled: false,
            ..RHYTHM
        };
        assert_eq!(decide(hours(500), Some(&since(hours(0))), None, off), Verdict::Wait);
    }
}
