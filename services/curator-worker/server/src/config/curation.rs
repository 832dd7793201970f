//! Settings of curations: the section `learning.curation`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use steward_curator_core::curation::due::Rhythm;
use steward_curator_core::curation::transitions::Settings;
use steward_runtime::Problem;

/// When libraries are curated, and at which age skills change (`C-1`, `C-2`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CurationConfig {
    /// Whether libraries are curated by themselves. Asked for by a person they always are.
    pub enabled: bool,
    /// Hours between two runs that come due by themselves.
    pub interval_hours: u32,
    /// Minutes that nobody of the team may have been active before a run.
    pub idle_minutes: u32,
    /// Days without use or change after which a skill is stale.
    pub stale_days: u32,
    /// Days without use or change after which a skill is set aside.
    pub archive_days: u32,
    /// Seconds between two looks at which teams are due.
    pub check_seconds: u32,
}

impl Default for CurationConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            interval_hours: 168,
            idle_minutes: 120,
            stale_days: 30,
            archive_days: 90,
            check_seconds: 300,
        }
    }
}

impl CurationConfig {
    pub(super) fn validate(&self, problems: &mut Vec<Problem>) {
        for (path, value, least, most) in [
            ("curation.interval_hours", self.interval_hours, 1, 8_760),
            ("curation.idle_minutes", self.idle_minutes, 0, 10_080),
            ("curation.stale_days", self.stale_days, 1, 3_650),
            ("curation.archive_days", self.archive_days, 1, 3_650),
            ("curation.check_seconds", self.check_seconds, 1, 86_400),
        ] {
            if !(least..=most).contains(&value) {
                problems.push(Problem::new(path, format!("must be {least} to {most}, is {value}")));
            }
        }
        if self.archive_days <= self.stale_days {
            problems.push(Problem::new("curation.archive_days", "must be more than `stale_days`"));
        }
    }

    pub(crate) fn rhythm(&self) -> Rhythm {
        Rhythm {
            enabled: self.enabled,
            interval: Duration::from_hours(u64::from(self.interval_hours)),
            idle: Duration::from_mins(u64::from(self.idle_minutes)),
        }
    }

    pub(crate) const fn ages(&self) -> Settings {
        Settings {
            stale_days: self.stale_days,
            archive_days: self.archive_days,
        }
    }
}
