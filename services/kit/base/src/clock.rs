//! Time as a parameter. Rules take the time from a [`Clock`], stores store what they are given.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A point in time: microseconds since the Unix epoch, UTC. Fits an SQL `INTEGER` and a protobuf `Timestamp`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From microseconds since the Unix epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// From whole seconds since the Unix epoch.
    pub const fn from_secs(seconds: i64) -> Self {
        Self(seconds.saturating_mul(1_000_000))
    }

    /// Microseconds since the Unix epoch.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Whole seconds since the Unix epoch, rounded down.
    pub const fn as_secs(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// Seconds and nanoseconds, as `google.protobuf.Timestamp` holds them.
    pub fn to_parts(self) -> (i64, i32) {
        let nanos = self.0.rem_euclid(1_000_000) * 1_000;
        (self.as_secs(), i32::try_from(nanos).unwrap_or(0))
    }

    /// From the parts of a `google.protobuf.Timestamp`; finer than microseconds is cut.
    pub fn from_parts(seconds: i64, nanos: i32) -> Self {
        Self(
            seconds
                .saturating_mul(1_000_000)
                .saturating_add(i64::from(nanos) / 1_000),
        )
    }

    /// Later by `duration`, saturating at the end of time.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(
            self.0
                .saturating_add(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)),
        )
    }

    /// Earlier by `duration`, saturating.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        Self(
            self.0
                .saturating_sub(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)),
        )
    }

    /// Time since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// The UTC calendar day, `2026-11-29`.
    pub fn date(self) -> String {
        let date = time::OffsetDateTime::from_unix_timestamp(self.as_secs()).map(time::OffsetDateTime::date);
        date.map_or_else(|_| "unknown".to_owned(), |day| day.to_string())
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339, UTC, second precision.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = time::OffsetDateTime::from_unix_timestamp(self.as_secs())
            .ok()
            .and_then(|at| at.format(&time::format_description::well_known::Rfc3339).ok());
        f.write_str(text.as_deref().unwrap_or("unknown"))
    }
}

/// Where a rule takes the time from.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The present time.
    fn now(&self) -> Timestamp;
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the machine's clock"
    )]
    fn now(&self) -> Timestamp {
        let since_epoch = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp(i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_round_trip_before_and_after_the_epoch() {
        for micros in [0, 1, 999_999, 1_000_000, -1, -1_500_000, 1_796_000_000_123_456] {
            let at = Timestamp::from_micros(micros);
            let (seconds, nanos) = at.to_parts();
            assert!((0..1_000_000_000).contains(&nanos));
            assert_eq!(Timestamp::from_parts(seconds, nanos), at);
        }
    }

    #[test]
    fn shows_itself_as_rfc_3339() {
        assert_eq!(Timestamp::from_secs(1_795_910_400).to_string(), "2026-11-29T00:00:00Z");
        assert_eq!(Timestamp::from_secs(1_795_910_400).date(), "2026-11-29");
    }
}
