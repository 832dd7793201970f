//! `steward skills import`: a plain folder of skills, each a folder with a SKILL.md; folders above it are its category.
//!
//! Each skill is brought in by itself, all its files byte for byte, and each has its line in the result: one that is refused
//! hides no other. What is there already is left alone unless `--update` is given; then what was changed here since is kept
//! and merged, and where that cannot be, both sides are shown and nothing is done. Nothing is followed out of the folder.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::{Value, json};
use steward_client::ClientError;
use steward_proto::skill::v1 as pb;

use super::folder::{self, Candidate};
use super::{change, report};
use crate::Said;
use crate::connect::{Session, request_id};
use crate::output::{Output, Tone, counted, json_of, printable, sentence};

/// Arguments of `steward skills import`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct Arguments {
    /// Folder with skills, or the folder of one skill.
    folder: PathBuf,
    /// Say what would happen; keep nothing.
    #[arg(long)]
    dry_run: bool,
    /// Bring skills that exist up to date instead of leaving them alone; what was changed here is merged.
    #[arg(long)]
    update: bool,
    /// With --update: take the folder's text where it cannot be merged; the history keeps what was here.
    #[arg(long, requires = "update")]
    overwrite: bool,
    /// Category under which all of them go.
    #[arg(long, default_value = "", hide_default_value = true)]
    category: String,
    /// For the whole team (maintainers).
    #[arg(long)]
    team: bool,
}

/// Arguments of `steward skills check`.
#[derive(Debug, Args)]
pub struct Check {
    /// Folder of one skill.
    folder: PathBuf,
}

/// What became of one skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Created,
    Updated,
    Unchanged,
    /// It could be created or updated; nothing was kept.
    Valid,
    /// Not every file of it is there, or would be.
    Incomplete,
    /// Both sides changed the same lines; nothing was done.
    Conflict,
    Failed,
}

impl Outcome {
    const fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Unchanged => "unchanged",
            Self::Valid => "valid",
            Self::Incomplete => "incomplete",
            Self::Conflict => "conflict",
            Self::Failed => "failed",
        }
    }

    const fn is_failure(self) -> bool {
        matches!(self, Self::Incomplete | Self::Conflict | Self::Failed)
    }
}

/// One line of the result.
struct Row {
    skill: String,
    outcome: Outcome,
    notes: Vec<String>,
    answer: Option<pb::ImportSkillResponse>,
}

impl Row {
    fn failed(skill: String, why: String) -> Self {
        Self {
            skill,
            outcome: Outcome::Failed,
            notes: vec![why],
            answer: None,
        }
    }
}

/// Runs the verb.
pub(super) async fn run(arguments: Arguments, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let found = folder::scan(&root(&arguments.folder)?, &arguments.category);
    let mut rows = Vec::new();
    for unread in found.unreadable {
        let row = Row::failed(unread.path, unread.problem);
        show(&row, output);
        rows.push(row);
    }
    let count = found.candidates.len();
    for (index, candidate) in found.candidates.into_iter().enumerate() {
        let name = candidate.full_name();
        output.progress(&format!("skill {} of {count}: {name}", index + 1));
        let row = bring(candidate, &arguments, session).await;
        output.progress("");
        show(&row, output);
        rows.push(row);
    }
    finish(&rows, arguments.dry_run, output)
}

/// Judges one skill without keeping anything. Exit code 1 when it could not be used, or not whole.
pub(super) async fn check(arguments: Check, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let mut found = folder::scan(&root(&arguments.folder)?, "");
    if let Some(unread) = found.unreadable.pop() {
        bail!("{}: {}", unread.path, unread.problem);
    }
    let (Some(candidate), None) = (found.candidates.pop(), found.candidates.pop()) else {
        bail!("the folder holds several skills; `steward skills import --dry-run` looks at all of them");
    };
    let is_whole = candidate.left_out.is_empty();
    for left_out in &candidate.left_out {
        output.warn(&format!("not looked at: {left_out}"));
    }
    let request = pb::CheckSkillRequest {
        folder: candidate.folder,
        files: contents(candidate.files),
    };
    let answer = session.client.exchange.check_skill(request).await?;
    output.answer(&answer, |output, answer| {
        if !answer.skill.is_empty() {
            output.head(&answer.skill);
            output.line(&printable(&answer.description));
        }
        if let Some(report) = &answer.report {
            report::show(output, report);
        }
        if !answer.broken_reason.is_empty() {
            output.warn(&format!("it could not be used: {}", answer.broken_reason));
        }
    })?;
    if is_whole && answer.broken_reason.is_empty() {
        Ok(())
    } else {
        Err(Said.into())
    }
}

fn root(folder: &std::path::Path) -> anyhow::Result<PathBuf> {
    folder
        .canonicalize()
        .with_context(|| format!("no such folder: {}", folder.display()))
}

fn contents(files: Vec<(String, Vec<u8>)>) -> Vec<pb::SkillContent> {
    let content = |(path, content): (String, Vec<u8>)| pb::SkillContent {
        path,
        content: content.into(),
    };
    files.into_iter().map(content).collect()
}

/// Asks for a creation, and where the skill is there, for an update. What is there is found out by trying, so that "created"
/// and "updated" are what happened and no guess.
async fn ask(
    mut request: pb::ImportSkillRequest,
    arguments: &Arguments,
    session: &Session,
) -> (Outcome, Result<pb::ImportSkillResponse, ClientError>) {
    let exchange = &session.client.exchange;
    let answer = exchange.import_skill(request.clone()).await;
    if !matches!(&answer, Err(error) if error.reason == "SKILL_EXISTS") {
        return (Outcome::Created, answer);
    }
    request.replace = true;
    // Without --update it is only asked whether it is the very same.
    request.validate_only |= !arguments.update;
    request.request_id = request_id();
    let mut replaced = exchange.import_skill(request.clone()).await;
    if matches!(&replaced, Err(error) if error.reason == "MERGE_CONFLICT") {
        // Asked again without keeping anything, it tells what stands against what.
        request.validate_only = true;
        request.request_id = request_id();
        replaced = exchange.import_skill(request).await;
    }
    if arguments.update || matches!(&replaced, Ok(answer) if answer.unchanged) {
        (Outcome::Updated, replaced)
    } else {
        (Outcome::Created, answer)
    }
}

/// Brings one skill in; says what became of it.
async fn bring(candidate: Candidate, arguments: &Arguments, session: &Session) -> Row {
    let skill = candidate.full_name();
    let request = pb::ImportSkillRequest {
        parent: session.user.clone(),
        files: contents(candidate.files),
        folder: candidate.folder,
        category: candidate.category,
        scope: change::scope(arguments.team).into(),
        replace: false,
        request_id: request_id(),
        validate_only: arguments.dry_run,
        overwrite: arguments.overwrite,
    };
    let (done, answer) = ask(request, arguments, session).await;
    let mut notes = candidate.left_out;
    let is_whole = notes.is_empty();
    match answer {
        Err(error) => {
            notes.insert(0, told(&error));
            if error.reason == "SKILL_EXISTS" {
                notes.insert(1, "--update brings it up to date".to_owned());
            }
            Row {
                skill,
                outcome: Outcome::Failed,
                notes,
                answer: None,
            }
        }
        Ok(answer) => {
            let outcome = match (answer.unchanged, arguments.dry_run) {
                _ if !answer.conflicts.is_empty() => Outcome::Conflict,
                // What is left out is missing, whether the rest was there already or would be kept.
                _ if !is_whole => Outcome::Incomplete,
                (true, _) => Outcome::Unchanged,
                (false, true) => Outcome::Valid,
                (false, false) => done,
            };
            notes.extend(merges(&answer));
            notes.extend(report::line(answer.report.as_ref()));
            Row {
                skill,
                outcome,
                notes,
                answer: Some(answer),
            }
        }
    }
}

/// What came of changes made here.
fn merges(answer: &pb::ImportSkillResponse) -> Vec<String> {
    let conflicts: Vec<&str> = answer.conflicts.iter().map(|conflict| conflict.path.as_str()).collect();
    let mut notes = Vec::new();
    if !conflicts.is_empty() {
        let files = conflicts.join(", ");
        notes.push(format!(
            "changed here and there at the same lines of {files}; --overwrite takes the folder's"
        ));
    }
    for (what, paths) in [
        ("merged", &answer.merged),
        ("given up what was changed here in", &answer.overwritten),
    ] {
        if !paths.is_empty() {
            notes.push(format!("{what} {}", paths.join(", ")));
        }
    }
    notes
}

fn show(row: &Row, output: &mut Output) {
    if output.is_json() {
        return;
    }
    let notes = if row.notes.is_empty() {
        String::new()
    } else {
        format!(": {}", row.notes.join("; "))
    };
    let (word, style) = (row.outcome.word(), Tone::of_state(row.outcome.word()).style());
    output.line(&format!(
        "{style}{word:10}{style:#} {}",
        printable(&format!("{}{notes}", row.skill))
    ));
    for conflict in row.answer.iter().flat_map(|answer| &answer.conflicts) {
        output.line(&printable(&conflict.diff));
    }
}

fn finish(rows: &[Row], dry_run: bool, output: &mut Output) -> anyhow::Result<()> {
    let failed = rows.iter().filter(|row| row.outcome.is_failure()).count();
    if output.is_json() {
        let document = |row: &Row| -> anyhow::Result<Value> {
            let answer = row.answer.as_ref().map(json_of).transpose()?;
            Ok(json!({"skill": row.skill, "outcome": row.outcome.word(), "notes": row.notes, "answer": answer}))
        };
        let skills: Vec<Value> = rows.iter().map(document).collect::<anyhow::Result<_>>()?;
        output.document(&json!({"dryRun": dry_run, "failed": failed, "skills": skills}))?;
    } else {
        let kept = if dry_run { ", nothing was kept" } else { "" };
        output.aside(&format!("{}, {failed} failed{kept}", counted(rows.len(), "skill")));
    }
    if failed > 0 { Err(Said.into()) } else { Ok(()) }
}

/// The refusal in one line, with every problem that it names.
fn told(error: &ClientError) -> String {
    let fields = error
        .violations
        .iter()
        .map(|field| format!("{}: {}", field.field, field.description));
    let fields: Vec<_> = fields.collect();
    if fields.is_empty() {
        format!("{} ({})", sentence(error), error.reason)
    } else {
        format!("{} ({}: {})", sentence(error), error.reason, fields.join(", "))
    }
}
