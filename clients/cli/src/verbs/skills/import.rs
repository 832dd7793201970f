//! `steward skills import`: a plain folder of skills, each a folder with a SKILL.md; folders above it are its category.
//!
//! Each skill is brought in by itself with its support files, and each has its line in the result: one that is refused
//! hides no other. What is there already is left alone unless `--update` is given. Nothing is followed out of the folder.

mod folder;

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use serde_json::{Value, json};
use steward_base::hash::sha256_hex;
use steward_client::ClientError;
use steward_proto::skill::v1 as pb;
use steward_proto::skill::v1::manage_skill_request::Action;

use crate::Said;
use crate::connect::{Session, request_id};
use crate::output::{Output, printable};
use folder::Candidate;

/// Arguments of `steward skills import`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Folder with skills, or the folder of one skill.
    folder: PathBuf,
    /// Say what would happen; keep nothing.
    #[arg(long)]
    dry_run: bool,
    /// Bring skills that exist up to date instead of leaving them alone.
    #[arg(long)]
    update: bool,
    /// Category under which all of them go.
    #[arg(long, default_value = "")]
    category: String,
    /// For the whole team (maintainers).
    #[arg(long)]
    team: bool,
}

/// What became of one skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Created,
    Updated,
    Unchanged,
    /// It could be created or updated; nothing was kept.
    Valid,
    /// SKILL.md is there, but not every file of it.
    Incomplete,
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
            Self::Failed => "failed",
        }
    }

    const fn is_failure(self) -> bool {
        matches!(self, Self::Incomplete | Self::Failed)
    }
}

/// Runs the verb.
pub(super) async fn run(arguments: Arguments, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let root = arguments
        .folder
        .canonicalize()
        .with_context(|| format!("no such folder: {}", arguments.folder.display()))?;
    let found = folder::scan(&root, &arguments.category);
    let import = Import {
        arguments: &arguments,
        session,
    };
    let mut results = Vec::new();
    for unread in &found.unreadable {
        results.push((unread.path.clone(), Outcome::Failed, vec![unread.problem.clone()]));
        show_last(&results, output);
    }
    let count = found.candidates.len();
    for (index, candidate) in found.candidates.iter().enumerate() {
        output.progress(&format!("skill {} of {count}: {}", index + 1, candidate.full_name()));
        let (outcome, notes) = import.bring(candidate).await;
        output.progress("");
        results.push((candidate.full_name(), outcome, notes));
        show_last(&results, output);
    }
    finish(&results, arguments.dry_run, output)
}

type Results = [(String, Outcome, Vec<String>)];

fn show_last(results: &Results, output: &mut Output) {
    let Some((name, outcome, notes)) = results.last().filter(|_| !output.is_json()) else {
        return;
    };
    let notes = if notes.is_empty() {
        String::new()
    } else {
        format!(": {}", notes.join("; "))
    };
    output.line(&printable(&format!("{:10} {name}{notes}", outcome.word())));
}

fn finish(results: &Results, dry_run: bool, output: &mut Output) -> anyhow::Result<()> {
    let failed = results.iter().filter(|(_, outcome, _)| outcome.is_failure()).count();
    if output.is_json() {
        let skills: Vec<Value> = results
            .iter()
            .map(|(name, outcome, notes)| json!({"skill": name, "outcome": outcome.word(), "notes": notes}))
            .collect();
        output.document(&json!({"dryRun": dry_run, "failed": failed, "skills": skills}))?;
    } else {
        let kept = if dry_run { ", nothing was kept" } else { "" };
        output.aside(&format!("{} skills, {failed} failed{kept}", results.len()));
    }
    if failed > 0 { Err(Said.into()) } else { Ok(()) }
}

struct Import<'a> {
    arguments: &'a Arguments,
    session: &'a Session,
}

impl Import<'_> {
    /// Brings one skill in; gives what became of it, with what there is to say.
    async fn bring(&self, candidate: &Candidate) -> (Outcome, Vec<String>) {
        let scope = if self.arguments.team {
            pb::SkillScope::Team
        } else {
            pb::SkillScope::User
        };
        let create = Action::Create(pb::CreateSkill {
            content: candidate.content.clone(),
            category: candidate.category.clone(),
            scope: scope.into(),
        });
        match self.manage(&candidate.name, create).await {
            Ok(_) if self.arguments.dry_run => (Outcome::Valid, candidate.left_out.clone()),
            Ok(skill) => {
                let files: Vec<_> = candidate.files.iter().collect();
                self.write_files(&skill, &files, Outcome::Created, candidate).await
            }
            Err(error) if error.reason == "SKILL_EXISTS" => self.existing(candidate, &error).await,
            Err(error) => (Outcome::Failed, vec![told(&error)]),
        }
    }

    /// The skill is there, or something is in its way.
    async fn existing(&self, candidate: &Candidate, exists: &ClientError) -> (Outcome, Vec<String>) {
        let view = pb::ViewSkillRequest {
            parent: self.session.user.clone(),
            skill: candidate.full_name(),
            ..pb::ViewSkillRequest::default()
        };
        let Ok(present) = self.session.client.skills.view_skill(view).await else {
            return (Outcome::Failed, vec![told(exists)]);
        };
        let same_text = present.content == candidate.content;
        let differs = |path: &str, content: &str| {
            let digest = sha256_hex(content.as_bytes());
            !present
                .files
                .iter()
                .any(|file| file.path == path && file.sha256 == digest)
        };
        let files: Vec<_> = candidate
            .files
            .iter()
            .filter(|(path, content)| differs(path, content))
            .collect();
        if same_text && files.is_empty() {
            return (Outcome::Unchanged, candidate.left_out.clone());
        }
        if !self.arguments.update {
            let note = "a skill of this name exists with other content; --update replaces it";
            return (Outcome::Failed, vec![note.to_owned()]);
        }
        let mut skill = present.skill.map_or_else(|| candidate.full_name(), |skill| skill.name);
        if !same_text {
            let edit = Action::Edit(pb::EditSkill {
                content: candidate.content.clone(),
            });
            match self.manage(&skill, edit).await {
                Ok(name) => skill = name,
                Err(error) => return (Outcome::Failed, vec![told(&error)]),
            }
        }
        if self.arguments.dry_run {
            return (Outcome::Valid, candidate.left_out.clone());
        }
        self.write_files(&skill, &files, Outcome::Updated, candidate).await
    }

    async fn write_files(
        &self,
        skill: &str,
        files: &[&(String, String)],
        done: Outcome,
        candidate: &Candidate,
    ) -> (Outcome, Vec<String>) {
        let mut notes = candidate.left_out.clone();
        for (path, content) in files {
            let write = Action::WriteFile(pb::WriteSkillFile {
                path: path.clone(),
                content: content.clone(),
            });
            if let Err(error) = self.manage(skill, write).await {
                notes.push(format!("{path}: {}", told(&error)));
            }
        }
        (if notes.is_empty() { done } else { Outcome::Incomplete }, notes)
    }

    /// Does one action; gives the skill's full name.
    async fn manage(&self, skill: &str, action: Action) -> Result<String, ClientError> {
        let request = pb::ManageSkillRequest {
            parent: self.session.user.clone(),
            skill: skill.to_owned(),
            action: Some(action),
            request_id: request_id(),
            reason: "imported from a folder".to_owned(),
            validate_only: self.arguments.dry_run,
            ..pb::ManageSkillRequest::default()
        };
        let answer = self.session.client.skills.manage_skill(request).await?;
        Ok(answer.skill.map_or_else(|| skill.to_owned(), |skill| skill.name))
    }
}

/// The refusal in one line, with every problem that it names.
fn told(error: &ClientError) -> String {
    let fields = error
        .violations
        .iter()
        .map(|field| format!("{}: {}", field.field, field.description));
    let fields: Vec<_> = fields.collect();
    if fields.is_empty() {
        format!("{} ({})", error, error.reason)
    } else {
        format!("{} ({}: {})", error, error.reason, fields.join(", "))
    }
}
