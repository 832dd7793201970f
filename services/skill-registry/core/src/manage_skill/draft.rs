//! What the files of a skill would be after an action. Pure.

use std::fmt::Write as _;
use steward_base::FieldViolations;

use super::Manage;
use crate::error::Error;
use crate::gate::Action;
use crate::patch::{self, Patched, Refusal, Replacement};
use crate::path::SkillPath;
use crate::record::{Files, SkillRecord};

/// The files as they would be.
pub(crate) struct Draft {
    /// All of them.
    pub(crate) files: Files,
    /// Whether a patch fitted only with other white space.
    pub(crate) approximate: bool,
    /// What was done, for the answer.
    pub(crate) note: String,
}

/// The action as the gates know it. A creation passes no gate of an existing skill; it is listed as an edit.
pub(crate) const fn gate_action(action: &Manage) -> Action {
    match action {
        Manage::Create { .. } | Manage::Edit { .. } => Action::Edit,
        Manage::Patch { .. } => Action::Patch,
        Manage::Delete { .. } => Action::Delete,
        Manage::WriteFile { .. } => Action::WriteFile,
        Manage::RemoveFile { .. } => Action::RemoveFile,
    }
}

/// Checks the fields of an action by themselves, before anything is read.
pub(crate) fn check_fields(violations: &mut FieldViolations, action: &Manage) {
    match action {
        Manage::Create { content, .. } if content.trim().is_empty() => {
            violations.add("create.content", "must be a whole SKILL.md: front matter and text");
        }
        Manage::Edit { content } if content.trim().is_empty() => {
            violations.add("edit.content", "must be a whole SKILL.md: front matter and text");
        }
        Manage::Patch { path, old, new, .. } => {
            violations.take("patch.path", patch_path(path));
            if old.trim().is_empty() {
                violations.add("patch.old_text", "must be the text to replace, copied from the file");
            } else if old == new {
                violations.add("patch.new_text", "must differ from the text to replace");
            }
        }
        Manage::WriteFile { path, content } => {
            violations.take("write_file.path", SkillPath::parse_support(path));
            if content.is_empty() {
                violations.add("write_file.content", "must not be empty; remove_file removes a file");
            }
        }
        Manage::RemoveFile { path } => {
            violations.take("remove_file.path", SkillPath::parse_support(path));
        }
        Manage::Create { .. } | Manage::Edit { .. } | Manage::Delete { .. } => {}
    }
}

fn patch_path(path: &str) -> Result<SkillPath, crate::path::PathError> {
    if path.is_empty() {
        Ok(SkillPath::skill_md())
    } else {
        SkillPath::parse(path)
    }
}

/// Draws up the files after `action`.
pub(crate) fn draw(record: &SkillRecord, before: &Files, action: &Manage) -> Result<Draft, Error> {
    let mut draft = Draft {
        files: before.clone(),
        approximate: false,
        note: String::new(),
    };
    match action {
        Manage::Create { content, .. } | Manage::Edit { content } => {
            draft.files.insert(SkillPath::skill_md(), content.clone().into_bytes());
            draft.note.push_str("SKILL.md replaced");
        }
        Manage::Patch { path, old, new, all } => {
            let path = patch_path(path).map_err(|problem| FieldViolations::one("patch.path", problem.to_string()))?;
            let bytes = before.get(&path).ok_or_else(|| missing(record, before.keys(), &path))?;
            let Ok(text) = std::str::from_utf8(bytes) else {
                return Err(FieldViolations::one("patch.path", "is not a text file; write it anew instead").into());
            };
            let wanted = Replacement { old, new, all: *all };
            let patched =
                patch::apply(text, wanted).map_err(|refusal| refused(record, &path, text, wanted, refusal))?;
            draft.note = patch_note(&path, &patched);
            draft.approximate = patched.approximate;
            draft.files.insert(path, patched.text.into_bytes());
        }
        Manage::WriteFile { path, content } => {
            let path = support("write_file.path", path)?;
            let verb = if before.contains_key(&path) {
                "replaced"
            } else {
                "written"
            };
            draft.note = format!("{path} {verb}, {} bytes", content.len());
            draft.files.insert(path, content.clone().into_bytes());
        }
        Manage::RemoveFile { path } => {
            let path = support("remove_file.path", path)?;
            if draft.files.remove(&path).is_none() {
                return Err(missing(record, before.keys(), &path));
            }
            draft.note = format!("{path} removed");
        }
        Manage::Delete { .. } => {}
    }
    Ok(draft)
}

fn support(field: &str, path: &str) -> Result<SkillPath, Error> {
    SkillPath::parse_support(path).map_err(|problem| FieldViolations::one(field, problem.to_string()).into())
}

/// There is no such file; says which there are.
pub(crate) fn missing<'a>(record: &SkillRecord, files: impl Iterator<Item = &'a SkillPath>, path: &SkillPath) -> Error {
    let files = crate::skills::shorten(files.map(SkillPath::to_string).collect());
    Error::FileNotFound {
        skill: record.full_name(),
        path: path.clone(),
        files,
    }
}

fn refused(record: &SkillRecord, path: &SkillPath, text: &str, wanted: Replacement<'_>, refusal: Refusal) -> Error {
    let (skill, path) = (record.full_name(), path.clone());
    match refusal {
        Refusal::NotFound(nearest) => Error::NoMatch { skill, path, nearest },
        Refusal::Ambiguous(places) => {
            let matches = text.matches(wanted.old).count().max(places.len());
            Error::AmbiguousMatch {
                skill,
                path,
                matches,
                places,
            }
        }
        Refusal::EmptyOld => FieldViolations::one("patch.old_text", "must be the text to replace").into(),
        Refusal::NoChange => FieldViolations::one("patch.new_text", "must differ from the text to replace").into(),
    }
}

fn patch_note(path: &SkillPath, patched: &Patched) -> String {
    let places = if patched.replaced == 1 {
        "1 place".to_owned()
    } else {
        format!("{} places", patched.replaced)
    };
    let mut note = format!("{path} patched at {places}");
    if patched.approximate {
        note.push_str("; the text was found only with other white space, check the lines as they are now:");
        for place in &patched.changed {
            _ = write!(note, "\n{}: {}", place.line, place.text);
        }
    }
    note
}
