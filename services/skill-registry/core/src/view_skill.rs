//! Opening a skill: `SKILL.md` with the list of files, or one file, whole (`S-3` levels 2 and 3).

use std::fmt::Write as _;
use steward_base::FieldViolations;

use crate::actor::Actor;
use crate::error::{Error, StoreFault};
use crate::manage_skill::short;
use crate::path::SkillPath;
use crate::record::{FileEntry, Revision, SkillRecord};
use crate::skills::Skills;
use crate::store::View;

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
    /// For the model.
    pub tool_text: String,
}

/// Longest text of one answer to the model, in characters (D-70). Longer ones are cut, visibly.
pub const MAX_TOOL_CHARS: usize = 100_000;

impl Skills {
    /// Opens a skill, counts the look and remembers that the session or job has read this revision.
    pub async fn view_skill(&self, actor: &Actor, skill: &str, path: &str) -> Result<Viewed, Error> {
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
        let viewed = Viewed {
            tool_text: tool_text(&record, &wanted, text, bytes.len(), &listed),
            content: text.unwrap_or("").to_owned(),
            files: listed,
            binary: text.is_none(),
            skill: record,
        };
        let counted = self
            .store
            .record_view(View {
                team: actor.team.clone(),
                uid: viewed.skill.uid.clone(),
                revision: viewed.skill.revision.clone(),
                reader: actor.reader(),
                is_use: actor.is_use(),
                at: self.clock.now(),
            })
            .await;
        match counted {
            // What is there can be read when nothing more can be written.
            Ok(()) | Err(StoreFault::Full) => Ok(viewed),
            Err(fault) => Err(fault.into()),
        }
    }

    /// The bytes of one file; damage to another one does not matter to it.
    async fn file(&self, record: &SkillRecord, revision: &Revision, path: &SkillPath) -> Result<Vec<u8>, Error> {
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

fn tool_text(record: &SkillRecord, path: &SkillPath, text: Option<&str>, size: usize, files: &[FileEntry]) -> String {
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
