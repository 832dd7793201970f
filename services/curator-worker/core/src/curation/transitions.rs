//! Which skill ages (`C-2`, `C-3`): a pure function of the time, the records and the settings.
//!
//! A count of zero is no evidence (`C-6`): a skill that was never used ages by its days alone, from its creation or from
//! when curation first saw it, whichever is later. So nothing ages before it was watched for a whole period.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use steward_base::Timestamp;

/// How old a skill counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Age {
    /// In use.
    Active,
    /// In use, and not used for long.
    Stale,
    /// Set aside.
    Archived,
}

impl Age {
    /// The stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Stale => "stale",
            Self::Archived => "archived",
        }
    }
}

/// A skill that may age, as the registry lists it: one that a review or a curation made, or a builtin that nothing rests on
/// where the installation lets those age (`C-3`). Others are never listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Identity.
    pub uid: String,
    /// Resource name.
    pub name: String,
    /// Age.
    pub age: Age,
    /// Whether a person pinned it.
    pub pinned: bool,
    /// Whether a schedule names it, by the registry's record.
    pub referenced: bool,
    /// Uses, which are views as well.
    pub uses: u64,
    /// Changes after its creation.
    pub patches: u64,
    /// Latest use.
    pub last_used: Option<Timestamp>,
    /// Latest revision that no curation made; that of its creation if there is no other.
    pub last_changed: Option<Timestamp>,
    /// When it was made.
    pub created: Timestamp,
    /// What a change rests on.
    pub etag: String,
}

/// The ages in days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Older than this is stale.
    pub stale_days: u32,
    /// Older than this is set aside.
    pub archive_days: u32,
}

/// Why a skill gets the age it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Seen for the first time: its days count from now.
    FirstSight,
    /// A person pinned it.
    Pinned,
    /// A schedule names it.
    Scheduled,
    /// Never used, and not watched for as long as it takes to be stale.
    Young,
    /// Used or changed lately.
    Fresh,
    /// Not used and not changed for long.
    Unused,
}

/// What is to become of a skill in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Identity.
    pub uid: String,
    /// Resource name.
    pub name: String,
    /// What the change rests on.
    pub etag: String,
    /// Its age.
    pub from: Age,
    /// The age that it shall have.
    pub to: Age,
    /// Why.
    pub why: Why,
    /// Whole days since it was last used or changed, or first seen.
    pub days: u64,
}

impl Decision {
    /// Whether anything is to be changed.
    pub fn is_change(&self) -> bool {
        self.from != self.to
    }
}

/// Decides about every skill in use. `seen` says when curation first saw each; `scheduled` has the names of skills that
/// schedules refer to, paused and future ones too.
pub fn decide(
    now: Timestamp,
    records: &[Record],
    seen: &BTreeMap<String, Timestamp>,
    scheduled: &BTreeSet<String>,
    settings: Settings,
) -> Vec<Decision> {
    records
        .iter()
        .filter(|record| record.age != Age::Archived)
        .map(|record| {
            let seen = seen.get(&record.uid).copied();
            let anchor = anchor(record, seen.unwrap_or(now));
            let (to, why) = match seen {
                None => (record.age, Why::FirstSight),
                Some(_) if record.pinned => (record.age, Why::Pinned),
                Some(_) if record.referenced || scheduled.contains(&record.name) => (record.age, Why::Scheduled),
                Some(_) => aged(now, record, anchor, settings),
            };
            Decision {
                uid: record.uid.clone(),
                name: record.name.clone(),
                etag: record.etag.clone(),
                from: record.age,
                to,
                why,
                days: now.since(anchor).as_secs() / 86_400,
            }
        })
        .collect()
}

/// From when a skill's days count.
fn anchor(record: &Record, seen: Timestamp) -> Timestamp {
    let signs = [record.last_used, record.last_changed, Some(seen)];
    signs.into_iter().flatten().fold(record.created, Timestamp::max)
}

fn aged(now: Timestamp, record: &Record, anchor: Timestamp, settings: Settings) -> (Age, Why) {
    let is_older = |days: u32| anchor.plus(Duration::from_hours(u64::from(days) * 24)) < now;
    if is_older(settings.archive_days) {
        (Age::Archived, Why::Unused)
    } else if is_older(settings.stale_days) {
        (Age::Stale, Why::Unused)
    } else if record.uses == 0 && record.patches == 0 {
        (record.age, Why::Young)
    } else {
        (Age::Active, Why::Fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: Settings = Settings {
        stale_days: 30,
        archive_days: 90,
    };

    fn day(day: i64) -> Timestamp {
        Timestamp::from_secs(1_795_910_400 + day * 86_400)
    }

    /// Made 200 days before day 0, never used.
    fn record(age: Age) -> Record {
        Record {
            uid: "u".to_owned(),
            name: "teams/red/skills/s".to_owned(),
            age,
            pinned: false,
            referenced: false,
            uses: 0,
            patches: 0,
            last_used: None,
            last_changed: Some(day(-200)),
            created: day(-200),
            etag: "1".to_owned(),
        }
    }

    fn used(age: Age, at: i64) -> Record {
        Record {
            uses: 1,
            last_used: Some(day(at)),
            ..record(age)
        }
    }

    fn verdict(record: &Record, seen: Option<i64>, scheduled: bool) -> (Age, Why) {
        let seen = seen.map(|at| (record.uid.clone(), day(at))).into_iter().collect();
        let scheduled = scheduled.then(|| record.name.clone()).into_iter().collect();
        let decided = decide(day(0), std::slice::from_ref(record), &seen, &scheduled, SETTINGS);
        (decided[0].to, decided[0].why)
    }

    #[test]
    fn the_table_of_transitions() {
        use Age::{Active, Archived, Stale};
        let patched = |at| Record {
            patches: 1,
            last_changed: Some(day(at)),
            ..record(Active)
        };
        let pinned = |record| Record { pinned: true, ..record };
        let long = Some(-200);
        for (case, record, seen, scheduled, expected) in [
            ("unseen", record(Active), None, false, (Active, Why::FirstSight)),
            ("unseen and stale", record(Stale), None, false, (Stale, Why::FirstSight)),
            ("pinned", pinned(record(Active)), long, false, (Active, Why::Pinned)),
            (
                "stale and pinned",
                pinned(used(Stale, -1)),
                long,
                false,
                (Stale, Why::Pinned),
            ),
            (
                "named by a schedule",
                used(Active, -200),
                long,
                true,
                (Active, Why::Scheduled),
            ),
            (
                "never used, young",
                record(Active),
                Some(-29),
                false,
                (Active, Why::Young),
            ),
            (
                "never used, on the day",
                record(Active),
                Some(-30),
                false,
                (Active, Why::Young),
            ),
            (
                "never used, older",
                record(Active),
                Some(-31),
                false,
                (Stale, Why::Unused),
            ),
            (
                "never used, old",
                record(Active),
                Some(-91),
                false,
                (Archived, Why::Unused),
            ),
            ("used today", used(Active, 0), long, false, (Active, Why::Fresh)),
            ("used a while ago", used(Active, -30), long, false, (Active, Why::Fresh)),
            ("used long ago", used(Active, -31), long, false, (Stale, Why::Unused)),
            ("stale still", used(Stale, -31), long, false, (Stale, Why::Unused)),
            ("on the last day", used(Stale, -90), long, false, (Stale, Why::Unused)),
            ("past it", used(Stale, -91), long, false, (Archived, Why::Unused)),
            (
                "straight from use",
                used(Active, -91),
                long,
                false,
                (Archived, Why::Unused),
            ),
            ("used again", used(Stale, -3), long, false, (Active, Why::Fresh)),
            ("patched yesterday", patched(-1), long, false, (Active, Why::Fresh)),
            ("patched long ago", patched(-40), long, false, (Stale, Why::Unused)),
            ("used in the future", used(Stale, 5), long, false, (Active, Why::Fresh)),
            (
                "used long ago, seen lately",
                used(Active, -200),
                Some(-7),
                false,
                (Active, Why::Fresh),
            ),
        ] {
            assert_eq!(verdict(&record, seen, scheduled), expected, "{case}");
        }
    }

    #[test]
    fn what_is_set_aside_is_not_looked_at() {
        let decided = decide(
            day(0),
            &[record(Age::Archived)],
            &BTreeMap::new(),
            &BTreeSet::new(),
            SETTINGS,
        );
        assert_eq!(decided, []);
    }

    #[test]
    fn skills_named_by_schedules_and_skills_just_edited_are_in_use() {
        // D-23: by a list, by a paused schedule, by a path (all of them names by the time they come here), or by an edit.
        let mut records: Vec<Record> = ["active", "paused", "path", "edited"]
            .map(|name| Record {
                uid: name.to_owned(),
                name: format!("teams/red/skills/{name}"),
                ..used(Age::Active, -200)
            })
            .into();
        records[1].referenced = true;
        records[3].last_changed = Some(day(-1));
        let seen = records.iter().map(|record| (record.uid.clone(), day(-200))).collect();
        let scheduled = [&records[0], &records[2]]
            .into_iter()
            .map(|record| record.name.clone())
            .collect();
        let decided = decide(day(0), &records, &seen, &scheduled, SETTINGS);
        assert!(decided.iter().all(|decision| !decision.is_change()), "{decided:?}");
    }

    #[test]
    fn deciding_again_after_the_changes_changes_nothing() {
        let records: Vec<Record> = (0..120).map(|days| used(Age::Active, -days)).collect();
        let seen = BTreeMap::from([("u".to_owned(), day(-200))]);
        let once = decide(day(0), &records, &seen, &BTreeSet::new(), SETTINGS);
        let changed: Vec<Record> = records
            .into_iter()
            .zip(&once)
            .map(|(record, decision)| Record {
                age: decision.to,
                ..record
            })
            .collect();
        let twice = decide(day(0), &changed, &seen, &BTreeSet::new(), SETTINGS);
        assert!(twice.iter().all(|decision| !decision.is_change()));
    }
}
