//! Opening a skill: `SKILL.md` with the list of files, or one file, whole (`S-3` levels 2 and 3).

use std::collections::BTreeSet;
use std::fmt::Write as _;

use steward_base::FieldViolations;

use crate::actor::Actor;
use crate::error::{Error, StoreFault};
use crate::header::Variable;
use crate::manage_skill::short;
use crate::path::SkillPath;
use crate::record::{FileEntry, Revision, SkillRecord};
use crate::skills::Skills;
use crate::store::View;

/// What is known of the place where the skill's commands run (`S-8`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// Environment variables that are set there.
    pub variables: BTreeSet<String>,
    /// Whether those are all; else what is not named is unknown and not missing.
    pub known: bool,
}

impl Surroundings {
    /// What a skill needs and does not find there, nor among what the team keeps for it.
    pub fn missing(&self, record: &SkillRecord, kept: &BTreeSet<String>) -> Vec<Variable> {
        let Some(header) = record.header().filter(|_| self.known) else {
            return Vec::new();
        };
        let needed = header.variables.iter().filter(|variable| !variable.optional);
        needed
            .filter(|variable| !self.variables.contains(&variable.name) && !kept.contains(&variable.name))
            .cloned()
            .collect()
    }
}

/// What was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Viewed {
    /// The skill.
    pub skill: SkillRecord,
    /// The text; empty when it is not UTF-8.
    pub content: String,
    /// All files of the skill; only with `SKILL.md`.
    pub files: Vec<FileEntry>,
    /// Whether the file is not UTF-8.
    pub binary: bool,
    /// What it needs and does not find where its commands run; no reason not to open it.
    pub missing: Vec<Variable>,
    /// Variables that it declares and for which the team keeps a value that it may have.
    pub kept: BTreeSet<String>,
    /// For the model.
    pub tool_text: String,
}

/// Longest text of one answer to the model, in characters (D-70). Longer ones are cut, visibly.
pub const MAX_TOOL_CHARS: usize = 100_000;

impl Skills {
    /// Opens a skill, counts the look and remembers that the session or job has read this revision.
    pub async fn view_skill(&self, actor: &Actor, skill: &str, path: &str) -> Result<Viewed, Error> {
        self.view_skill_in(actor, skill, path, &Surroundings::default()).await
    }

    /// The same, with what is known of the place where its commands run.
    pub async fn view_skill_in(
        &self,
        actor: &Actor,
        skill: &str,
        path: &str,
        surroundings: &Surroundings,
    ) -> Result<Viewed, Error> {
        let wanted = if path.is_empty() {
            Ok(SkillPath::skill_md())
        } else {
            SkillPath::parse(path)
        };
        let wanted = wanted.map_err(|problem| FieldViolations::one("path", problem.to_string()))?;
        let record = self.resolve_active(actor, skill).await?;
        let revision = self.newest(&record).await?;
        let bytes = self.file(&record, &revision, &wanted).await?;
        let text = std::str::from_utf8(&bytes).ok();
        let listed = if path.is_empty() { revision.files } else { Vec::new() };
        let kept = self.team_variables(actor, &record).await?;
        let missing = surroundings.missing(&record, &kept);
        let viewed = Viewed {
            tool_text: tool_text(&record, &wanted, text, bytes.len(), &listed, &missing),
            content: text.unwrap_or("").to_owned(),
            files: listed,
            binary: text.is_none(),
            missing,
            kept,
            skill: record,
        };
        self.count_view(actor, &viewed.skill).await?;
        Ok(viewed)
    }

    /// Counts the look and remembers that the session or job has read this revision.
    pub(crate) async fn count_view(&self, actor: &Actor, skill: &SkillRecord) -> Result<(), Error> {
        let view = View {
            team: actor.team.clone(),
            uid: skill.uid.clone(),
            revision: skill.revision.clone(),
            reader: actor.reader(),
            is_use: actor.is_use(),
            at: self.clock.now(),
        };
        match self.store.record_view(view).await {
            // What is there can be read when nothing more can be written.
            Ok(()) | Err(StoreFault::Full) => Ok(()),
            Err(fault) => Err(fault.into()),
        }
    }

    /// The bytes of one file; damage to another one does not matter to it.
    pub(crate) async fn file(
        &self,
        record: &SkillRecord,
        revision: &Revision,
        path: &SkillPath,
    ) -> Result<Vec<u8>, Error> {
        let entry = revision.files.iter().find(|entry| entry.path == *path);
        let Some(entry) = entry else {
            let files = revision.files.iter().map(|entry| &entry.path);
            return Err(crate::manage_skill::missing(record, files, path));
        };
        let only = Revision {
            files: vec![entry.clone()],
            ..revision.clone()
        };
        let files = self.store.files(&record.team, &only).await?;
        Ok(files.into_values().next().unwrap_or_default())
    }
}

fn tool_text(
    record: &SkillRecord,
    path: &SkillPath,
    text: Option<&str>,
    size: usize,
    files: &[FileEntry],
    missing: &[Variable],
) -> String {
    let mut out = format!("skill {}, revision {}", record.full_name(), short(&record.revision));
    if path.is_skill_md() {
        let mut others = files.iter().filter(|entry| !entry.path.is_skill_md()).peekable();
        if others.peek().is_some() {
            out.push_str("\nother files, opened with skill_view and their path:");
        }
        for entry in others {
            _ = write!(out, "\n  {} ({} bytes)", entry.path, entry.size);
        }
        let variables = record
            .header()
            .map(|header| header.required_environment_variables.join(", "));
        if let Some(variables) = variables.filter(|variables| !variables.is_empty()) {
            out.push_str("\nneeds these environment variables where its commands run: ");
            out.push_str(&variables);
        }
        if !missing.is_empty() {
            out.push_str(&setup_needed(missing));
        }
    }
    let Some(text) = text else {
        _ = write!(out, "\n{path} is no text, {size} bytes, not shown");
        return out;
    };
    let length = text.chars().count();
    if length > MAX_TOOL_CHARS {
        _ = write!(
            out,
            "\n{path}, the first {MAX_TOOL_CHARS} of {length} characters follow:\n\n"
        );
        out.extend(text.chars().take(MAX_TOOL_CHARS));
    } else {
        _ = write!(out, "\n{path}, {length} characters, follows to the end:\n\n");
        out.push_str(text);
    }
    out
}

/// The line for the model on what is missing: it never asks for a value, since that would stand in the transcript.
pub(crate) fn setup_needed(missing: &[Variable]) -> String {
    let names = missing
        .iter()
        .map(|variable| variable.name.as_str())
        .collect::<Vec<_>>();
    format!(
        "\nsetup needed: {} not set where commands run; say so, go on with what works without, and never ask for the \
         value in the conversation",
        match names.as_slice() {
            [one] => format!("{one} is"),
            many => format!("{} are", many.join(", ")),
        }
    )
}
