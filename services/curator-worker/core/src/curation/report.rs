//! What is told of a run (`C-10`): `run.json` for programs and `REPORT.md` for people, from the same facts.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use steward_base::Timestamp;

use super::execute::{Change, Plan};
use super::transitions::{Age, Settings, Why};
use super::{Result as RunResult, Run, RunId, run_name};
use crate::error::Error;

/// How many skills have which age.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// In use.
    pub active: u32,
    /// In use, not used for long.
    pub stale: u32,
    /// Set aside.
    pub archived: u32,
}

impl Counts {
    /// Counts.
    pub fn of(ages: impl Iterator<Item = Age>) -> Self {
        let mut counts = Self::default();
        for age in ages {
            *counts.of_age(age) += 1;
        }
        counts
    }

    const fn of_age(&mut self, age: Age) -> &mut u32 {
        match age {
            Age::Active => &mut self.active,
            Age::Stale => &mut self.stale,
            Age::Archived => &mut self.archived,
        }
    }

    fn after(mut self, changes: &[Change]) -> Self {
        for change in changes.iter().filter(|change| is_done(change)) {
            let from = self.of_age(change.from);
            *from = from.saturating_sub(1);
            *self.of_age(change.to) += 1;
        }
        self
    }
}

/// A run that ended well: what its row shows, and both forms of its report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// For the row.
    pub result: RunResult,
    /// `run.json`.
    pub run_json: String,
    /// `REPORT.md`.
    pub markdown: String,
}

/// `run.json`. Fields are added, never changed or removed.
#[derive(Debug, Serialize)]
struct RunJson<'a> {
    version: u32,
    run: String,
    kind: &'a str,
    team: &'a str,
    requester: Option<&'a str>,
    looked_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    undoes: Option<String>,
    snapshot: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    settings: Option<Settings>,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Counts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<Counts>,
    changes: Vec<Told<'a>>,
    /// Skills in use that stay as they are, by why.
    kept: BTreeMap<Why, Vec<&'a str>>,
    damaged: &'a [String],
}

/// A change with what it was decided on.
#[derive(Debug, Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    change: &'a Change,
    #[serde(skip_serializing_if = "Option::is_none")]
    unused_days: Option<u64>,
}

fn is_done(change: &Change) -> bool {
    matches!(change.outcome.as_str(), "applied" | "planned")
}

fn is_in_the_way(change: &Change) -> bool {
    matches!(change.outcome.as_str(), "conflict" | "refused")
}

/// The report of a curation, dry or not.
pub(super) fn curation(run: &Run, plan: &Plan, snapshot: &str, changes: &[Change]) -> Result<Finished, Error> {
    let mut days = plan.decisions.iter().filter(|decision| decision.is_change());
    let mut kept: BTreeMap<Why, Vec<&str>> = BTreeMap::new();
    for decision in plan.decisions.iter().filter(|decision| !decision.is_change()) {
        kept.entry(decision.why).or_default().push(&decision.name);
    }
    let after = plan.before.after(changes);
    let json = RunJson {
        settings: Some(plan.settings),
        before: Some(plan.before),
        after: Some(after),
        kept,
        damaged: &plan.damaged,
        changes: changes
            .iter()
            .map(|change| Told {
                change,
                unused_days: days.next().map(|decision| decision.days),
            })
            .collect(),
        ..head(run, plan.at, snapshot)
    };
    let mut page = title(run, plan.at, snapshot);
    let (before, settings) = (plan.before, plan.settings);
    let _ = write!(
        page,
        "\nStale after {} days without use or change, set aside after {}.\n\n\
         | skills that may age | before | after |\n|---|---:|---:|\n\
         | active | {} | {} |\n| stale | {} | {} |\n| archived | {} | {} |\n",
        settings.stale_days,
        settings.archive_days,
        before.active,
        after.active,
        before.stale,
        after.stale,
        before.archived,
        after.archived
    );
    page += &table(&json.changes);
    for (why, skills) in &json.kept {
        let _ = write!(page, "\n## Kept: {}\n\n", sentence(*why));
        for skill in skills {
            let _ = writeln!(page, "- `{skill}`");
        }
    }
    if !plan.damaged.is_empty() {
        page += "\n## Left alone, since their records cannot be read\n\n";
        for skill in &plan.damaged {
            let _ = writeln!(page, "- `{skill}`");
        }
    }
    finish(run, &json, page, snapshot, changes)
}

/// The report of a roll-back.
pub(super) fn rollback(
    run: &Run,
    now: Timestamp,
    undoes: &RunId,
    snapshot: &str,
    changes: &[Change],
) -> Result<Finished, Error> {
    let undoes = run_name(&run.team, undoes);
    let json = RunJson {
        undoes: Some(undoes.clone()),
        changes: changes
            .iter()
            .map(|change| Told {
                change,
                unused_days: None,
            })
            .collect(),
        ..head(run, now, snapshot)
    };
    let mut page = title(run, now, snapshot);
    let _ = write!(page, "\nUndoes `{undoes}`.\n");
    page += &table(&json.changes);
    finish(run, &json, page, snapshot, changes)
}

fn head<'a>(run: &'a Run, at: Timestamp, snapshot: &'a str) -> RunJson<'a> {
    RunJson {
        version: 1,
        run: run.name(),
        kind: run.kind.as_str(),
        team: run.team.as_str(),
        requester: run.requester.as_ref().map(steward_base::names::UserId::as_str),
        looked_at: at.to_string(),
        undoes: None,
        snapshot,
        settings: None,
        before: None,
        after: None,
        changes: Vec::new(),
        kept: BTreeMap::new(),
        damaged: &[],
    }
}

fn title(run: &Run, at: Timestamp, snapshot: &str) -> String {
    let what = match run.kind {
        super::Kind::Curate => "Curation",
        super::Kind::DryRun => "Dry run of a curation; nothing was changed",
        super::Kind::Rollback => "Roll-back of a curation",
    };
    let by = run
        .requester
        .as_ref()
        .map_or_else(|| "the schedule".to_owned(), ToString::to_string);
    let mut text = format!(
        "# {what}\n\n- run: `{}`\n- looked at: {at}\n- asked for by: {by}\n",
        run.name()
    );
    if !snapshot.is_empty() {
        let _ = writeln!(text, "- snapshot: `{snapshot}`");
    }
    text
}

fn table(changes: &[Told<'_>]) -> String {
    if changes.is_empty() {
        return "\nNothing to change.\n".to_owned();
    }
    let mut text = "\n## Changes\n\n| skill | from | to | days unused | outcome |\n|---|---|---|---:|---|\n".to_owned();
    for told in changes {
        let change = told.change;
        let days = told.unused_days.map(|days| days.to_string()).unwrap_or_default();
        let outcome = format!("{} {}", change.outcome, change.reason.replace('_', " "));
        let (from, to) = (change.from.as_str(), change.to.as_str());
        let _ = writeln!(
            text,
            "| `{}` | {from} | {to} | {days} | {} |",
            change.skill,
            outcome.trim()
        );
    }
    text
}

const fn sentence(why: Why) -> &'static str {
    match why {
        Why::FirstSight => "seen for the first time, their days count from now",
        Why::Pinned => "pinned by a person",
        Why::Scheduled => "named by a schedule",
        Why::Young => "never used, and not watched for long enough to say anything",
        Why::Fresh => "used or changed lately",
        Why::Unused => "unused, and marked so already",
    }
}

fn finish(
    run: &Run,
    json: &RunJson<'_>,
    markdown: String,
    snapshot: &str,
    changes: &[Change],
) -> Result<Finished, Error> {
    let count = |wanted: &dyn Fn(&Change) -> bool| {
        let found = changes.iter().filter(|change| wanted(change)).count();
        u32::try_from(found).unwrap_or(u32::MAX)
    };
    let to = |age: Age| count(&|change| is_done(change) && change.to == age);
    let (done, conflicts) = (count(&is_done), count(&is_in_the_way));
    let verb = if run.kind == super::Kind::DryRun {
        "would be "
    } else {
        ""
    };
    let mut parts = Vec::new();
    for (number, word) in [
        (to(Age::Stale), "marked stale"),
        (to(Age::Archived), "archived"),
        (to(Age::Active), "back in use"),
    ] {
        if number > 0 {
            parts.push(format!("{number} {verb}{word}"));
        }
    }
    if conflicts > 0 {
        parts.push(format!("{conflicts} left alone"));
    }
    if parts.is_empty() {
        parts.push("Nothing to change".to_owned());
    }
    Ok(Finished {
        result: RunResult {
            snapshot: snapshot.to_owned(),
            changes: done,
            conflicts,
            summary: parts.join(", "),
        },
        run_json: serde_json::to_string_pretty(json).map_err(|error| Error::unreadable("a report", error))?,
        markdown,
    })
}
