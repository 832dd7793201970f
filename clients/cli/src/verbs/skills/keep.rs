//! What becomes of a skill as a whole: put away, brought back, destroyed, protected, hidden; and the library's snapshots.

use anyhow::ensure;
use clap::{Args, Subcommand};
use steward_proto::skill::v1 as pb;

use super::named::{Among, resolve};
use super::show;
use crate::Said;
use crate::connect::{Session, request_id};
use crate::output::{Cell, Output, short, time, word};
use crate::verbs::permitted;

/// A skill by any of its names.
#[derive(Debug, Args)]
pub struct Named {
    /// Name, category/name or full resource name.
    skill: String,
}

/// Verbs on whole skills.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Take a skill out of listings.
    Archive(Named),
    /// Put an archived skill back.
    Restore(Named),
    /// Destroy an archived skill and its history for good (maintainers).
    Purge {
        #[command(flatten)]
        named: Named,
        /// Do not ask first.
        #[arg(long, short)]
        yes: bool,
    },
    /// Protect a skill from deletion and from automatic changes.
    Pin(Named),
    /// Take that protection off.
    Unpin(Named),
    /// Keep a skill out of your index; it still opens by name.
    Hide {
        #[command(flatten)]
        named: Named,
        /// For everyone in the team (maintainers).
        #[arg(long)]
        team: bool,
    },
    /// Show a hidden skill in the index again.
    Unhide {
        #[command(flatten)]
        named: Named,
        /// For everyone in the team (maintainers).
        #[arg(long)]
        team: bool,
    },
    /// List the snapshots of the team's library that curations took (maintainers).
    Snapshots,
    /// Put the whole library back as a snapshot has it (maintainers); a snapshot of the present one is taken first.
    RestoreSnapshot {
        /// Id or full name, as `snapshots` shows it.
        snapshot: String,
        /// Do not ask first.
        #[arg(long, short)]
        yes: bool,
    },
}

/// Runs a verb.
pub(super) async fn run(verb: Verb, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let skills = &session.client.skills;
    match verb {
        Verb::Archive(named) => {
            let name = resolve(&named.skill, Among::Listed, session).await?;
            let answer = skills.archive_skill(pb::ArchiveSkillRequest { name }).await?;
            output.answer(&answer, |output, answer| {
                let name = answer
                    .skill
                    .as_ref()
                    .map(|skill| skill.name.as_str())
                    .unwrap_or_default();
                output.line(&format!("Archived; `steward skills restore {name}` puts it back."));
            })
        }
        Verb::Restore(named) => {
            let name = resolve(&named.skill, Among::Archived, session).await?;
            let answer = skills.restore_skill(pb::RestoreSkillRequest { name }).await?;
            output.answer(&answer, |output, answer| show::now(output, answer.skill.as_ref()))
        }
        Verb::Purge { named, yes } => {
            let name = resolve(&named.skill, Among::Archived, session).await?;
            let question = format!("destroy {name} with all its revisions? There is no way back");
            ensure!(permitted(yes, &question, output), "nothing was destroyed");
            let answer = skills.purge_skill(pb::PurgeSkillRequest { name }).await?;
            output.answer(&answer, |output, answer| {
                output.line(&format!("Destroyed, with {} revisions.", answer.revisions));
            })
        }
        Verb::Pin(named) => pin(&named, true, session, output).await,
        Verb::Unpin(named) => pin(&named, false, session, output).await,
        Verb::Hide { named, team } => hide(&named, true, team, session, output).await,
        Verb::Unhide { named, team } => hide(&named, false, team, session, output).await,
        Verb::Snapshots => {
            let request = pb::ListSnapshotsRequest {
                parent: session.team.clone(),
            };
            output.answer(&session.client.library.list_snapshots(request).await?, snapshots)
        }
        Verb::RestoreSnapshot { snapshot, yes } => restore(&snapshot, yes, session, output).await,
    }
}

async fn pin(named: &Named, pinned: bool, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let name = resolve(&named.skill, Among::Listed, session).await?;
    let request = pb::PinSkillRequest { name, pinned };
    output.answer(&session.client.skills.pin_skill(request).await?, |output, _| {
        output.line(if pinned { "Pinned." } else { "Unpinned." });
    })
}

async fn hide(
    named: &Named,
    hidden: bool,
    for_team: bool,
    session: &Session,
    output: &mut Output,
) -> anyhow::Result<()> {
    let name = resolve(&named.skill, Among::Listed, session).await?;
    let request = pb::HideSkillRequest { name, hidden, for_team };
    output.answer(&session.client.skills.hide_skill(request).await?, |output, _| {
        let whose = if for_team {
            "the team's new sessions"
        } else {
            "your new sessions"
        };
        let what = if hidden { "Hidden from" } else { "Shown again in" };
        output.line(&format!("{what} the index of {whose}."));
    })
}

fn snapshots(output: &mut Output, answer: &pb::ListSnapshotsResponse) {
    let rows = answer.snapshots.iter().map(|snapshot| {
        vec![
            Cell::name(short(&snapshot.name)),
            Cell::side(time(snapshot.create_time.as_ref())),
            snapshot.skills.to_string().into(),
        ]
    });
    output.table(
        &["snapshot", "taken", "skills"],
        rows.collect(),
        "No snapshots yet; a curation takes one before it changes anything.",
    );
}

async fn restore(snapshot: &str, yes: bool, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let name = session.child("librarySnapshots", snapshot);
    let question = format!("put the team's whole library back as {} has it?", short(&name));
    ensure!(permitted(yes, &question, output), "nothing was put back");
    let request = pb::RestoreSnapshotRequest {
        name,
        request_id: request_id(),
    };
    output.progress("putting the library back");
    let answer = session.client.library.restore_snapshot(request).await;
    output.progress("");
    let answer = answer?;
    output.answer(&answer, |output, answer| {
        let rows = answer.results.iter().map(result).collect();
        output.table(&["skill", "", "age", "why"], rows, "Everything was so already.");
        let safety = answer.snapshot.as_ref().map(|snapshot| short(&snapshot.name));
        output.aside(&format!(
            "the library as it was is kept as {}",
            safety.unwrap_or_default()
        ));
    })?;
    let done = |result: &pb::TransitionResult| {
        use pb::transition_result::Outcome;
        matches!(result.outcome(), Outcome::Applied | Outcome::Unchanged)
    };
    if answer.results.iter().all(done) {
        Ok(())
    } else {
        Err(Said.into())
    }
}

fn result(result: &pb::TransitionResult) -> Vec<Cell> {
    let age = |age: pb::SkillAge| word(age.as_str_name(), "SKILL_AGE_");
    let ages = if result.from() == result.to() {
        age(result.to())
    } else {
        format!("{} → {}", age(result.from()), age(result.to()))
    };
    vec![
        Cell::name(short(&result.name)),
        Cell::state(word(result.outcome().as_str_name(), "OUTCOME_")),
        ages.into(),
        Cell::side(result.reason.as_str()),
    ]
}
