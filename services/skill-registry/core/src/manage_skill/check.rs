//! Whether some files would be a valid skill, before anyone can see them (`S-11`, D-50 to D-53). Pure.
//!
//! A limit is never a trap: what is over it already may shrink, and may stay as it is while something else changes.

use steward_base::FieldViolations;
use steward_base::names::SkillId;

use crate::actor::Actor;
use crate::error::Error;
use crate::header::{self, Header};
use crate::path::SkillPath;
use crate::record::Files;
use crate::settings::Settings;

/// What the name in the front matter must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Naming {
    /// The skill's name (D-50).
    Same,
    /// Whatever the files from outside say: they stay as they are, byte for byte (`S-1`).
    AsImported,
}

/// Checks the whole result of a change and gives back the header that it has.
pub(crate) fn check_result(
    settings: &Settings,
    actor: &Actor,
    skill: &str,
    name: &SkillId,
    before: &Files,
    after: &Files,
    naming: Naming,
) -> Result<Header, Error> {
    check_sizes(settings, before, after)?;
    let mut violations = FieldViolations::new();
    check_paths(&mut violations, before, after);
    let header = check_skill_md(&mut violations, settings, actor, before, after);
    if let Some(header) = header.as_ref().filter(|_| naming == Naming::Same) {
        check_name(&mut violations, name, before, &header.name);
    }
    match (header, violations.into_result()) {
        (Some(header), Ok(())) => Ok(header),
        (_, Err(violations)) => Err(Error::SkillInvalid {
            skill: skill.to_owned(),
            violations,
        }),
        (None, Ok(())) => Err(Error::SkillInvalid {
            skill: skill.to_owned(),
            violations: FieldViolations::one("SKILL.md", "cannot be read"),
        }),
    }
}

fn text_of(files: &Files) -> Option<&str> {
    files
        .get(&SkillPath::skill_md())
        .and_then(|bytes| std::str::from_utf8(bytes).ok())
}

fn check_skill_md(
    violations: &mut FieldViolations,
    settings: &Settings,
    actor: &Actor,
    before: &Files,
    after: &Files,
) -> Option<Header> {
    let skill_md = SkillPath::skill_md();
    let unchanged = before.get(&skill_md) == after.get(&skill_md);
    let Some(bytes) = after.get(&skill_md) else {
        violations.add("SKILL.md", "is missing");
        return None;
    };
    let header = match header::parse_bytes(bytes) {
        Ok(header) => header,
        Err(problem) => {
            violations.add("SKILL.md", problem.to_string());
            return None;
        }
    };
    let limit = if actor.is_agent {
        settings.agent_description_chars
    } else {
        settings.description_chars
    };
    let length = header.description.chars().count();
    let old = text_of(before).and_then(|text| header::parse(text).ok());
    let old_length = old.map_or(0, |old| old.description.chars().count());
    if length > limit && length > old_length && !unchanged {
        let problem = format!("has a description of {length} characters; at most {limit} are allowed");
        violations.add("SKILL.md", problem);
    }
    Some(header)
}

/// A name that came in with the files stays as it is until someone changes it.
fn check_name(violations: &mut FieldViolations, name: &SkillId, before: &Files, said: &str) {
    let old = text_of(before).and_then(|text| header::parse(text).ok());
    let is_old = old.is_some_and(|old| old.name == said);
    if said != name.as_str() && !is_old {
        let problem = format!(
            "says the name is {said:?}, but the skill is {:?}; they must be the same",
            name.as_str()
        );
        violations.add("SKILL.md", problem);
    }
}

fn check_paths(violations: &mut FieldViolations, before: &Files, after: &Files) {
    for path in after.keys().filter(|path| !before.contains_key(*path)) {
        if let Some(other) = after.keys().find(|other| path.collides_with(other)) {
            violations.add(path.as_str(), format!("cannot stand beside {other} in one folder"));
        }
    }
}

fn check_sizes(settings: &Settings, before: &Files, after: &Files) -> Result<(), Error> {
    let chars = |files: &Files| text_of(files).map_or(0, |text| text.chars().count());
    within(
        "SKILL.md, in characters",
        settings.skill_md_chars,
        chars(before),
        chars(after),
    )?;
    for (path, bytes) in after.iter().filter(|(path, _)| !path.is_skill_md()) {
        let old = before.get(path).map_or(0, Vec::len);
        within(&format!("{path}, in bytes"), settings.file_bytes, old, bytes.len())?;
    }
    within("the number of files", settings.files, before.len(), after.len())?;
    let total = |files: &Files| files.values().map(Vec::len).sum::<usize>();
    within("the skill, in bytes", settings.skill_bytes, total(before), total(after))
}

fn within(what: &str, limit: usize, before: usize, after: usize) -> Result<(), Error> {
    let grew = after > before;
    if after > limit && grew {
        return Err(Error::LimitExceeded {
            what: what.to_owned(),
            limit,
            actual: after,
        });
    }
    Ok(())
}
