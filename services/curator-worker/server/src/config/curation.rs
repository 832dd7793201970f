//! Settings of curations: the section `learning.curation`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use steward_base::PerTeam;
use steward_curator_core::curation::due::Rhythm;
use steward_curator_core::curation::transitions::Settings;
use steward_runtime::Problem;
use steward_runtime::config::Teams;

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
    /// What a team has of its own, in a table `[learning.curation.teams.red]`; what is not set there is as above.
    pub teams: Teams<TeamCurationConfig>,
}

steward_runtime::team_settings! {
    /// What a team may set of its own.
    pub struct TeamCurationConfig of CurationConfig {
        /// Whether the library is curated by itself. Asked for by a person it always is.
        enabled: bool => enabled,
        /// Hours between two runs that come due by themselves.
        interval_hours: u32 => interval_hours,
        /// Minutes that nobody of the team may have been active before a run.
        idle_minutes: u32 => idle_minutes,
        /// Days without use or change after which a skill is stale.
        stale_days: u32 => stale_days,
        /// Days without use or change after which a skill is set aside.
        archive_days: u32 => archive_days,
    }
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
            teams: Teams::default(),
        }
    }
}

impl CurationConfig {
    pub(super) fn validate(&self, problems: &mut Vec<Problem>) {
        let mut found = self.judge();
        found.extend(self.teams.validate(self, Self::judge));
        problems.extend(found.into_iter().map(|problem| problem.within("curation")));
    }

    /// What is wrong with the settings of one team, or of all.
    fn judge(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (path, value, least, most) in [
            ("interval_hours", self.interval_hours, 1, 8_760),
            ("idle_minutes", self.idle_minutes, 0, 10_080),
            ("stale_days", self.stale_days, 1, 3_650),
            ("archive_days", self.archive_days, 1, 3_650),
            ("check_seconds", self.check_seconds, 1, 86_400),
        ] {
            if !(least..=most).contains(&value) {
                problems.push(Problem::new(path, format!("must be {least} to {most}, is {value}")));
            }
        }
        if self.archive_days <= self.stale_days {
            problems.push(Problem::new("archive_days", "must be more than `stale_days`"));
        }
        problems
    }

    /// When libraries are due, team by team.
    pub(crate) fn rhythm(&self) -> PerTeam<Rhythm> {
        self.teams.of(self, |own| Rhythm {
            enabled: own.enabled,
            interval: Duration::from_hours(u64::from(own.interval_hours)),
            idle: Duration::from_mins(u64::from(own.idle_minutes)),
        })
    }

    /// At which age skills change, team by team.
    pub(crate) fn ages(&self) -> PerTeam<Settings> {
        self.teams.of(self, |own| Settings {
            stale_days: own.stale_days,
            archive_days: own.archive_days,
        })
    }
}

#[cfg(test)]
mod tests {
    use steward_base::names::TeamId;

    use super::*;

    /// `C-1`, `C-2`: each duration is a setting, per team.
    #[test]
    fn a_team_has_durations_of_its_own_that_fit_those_of_all() {
        let of = |stale_days| TeamCurationConfig {
            stale_days: Some(stale_days),
            interval_hours: Some(24),
            ..TeamCurationConfig::default()
        };
        let config = CurationConfig {
            teams: Teams::from_iter([("red".to_owned(), of(60)), ("blue".to_owned(), of(90))]),
            ..CurationConfig::default()
        };
        let mut problems = Vec::new();
        config.validate(&mut problems);
        let paths: Vec<String> = problems.into_iter().map(|problem| problem.path).collect();
        assert_eq!(
            paths,
            ["curation.teams.blue.archive_days"],
            "90 days stale, set aside after 90"
        );
        let (red, green) = (TeamId::parse("red").unwrap(), TeamId::parse("green").unwrap());
        assert_eq!(
            (config.ages().of(&red).stale_days, config.ages().of(&green).stale_days),
            (60, 30)
        );
        assert_eq!(config.rhythm().of(&red).interval, Duration::from_hours(24));
        assert_eq!(config.rhythm().of(&green).interval, Duration::from_hours(168));
    }
}
