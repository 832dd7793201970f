//! The secrets of a team: values for environment variables that skills declare (`S-8`).
//!
//! A value comes in from a person, is kept encrypted by the store, and goes out in one case only: to a person's own
//! program that is about to run the commands of a skill which declares the variable, and which somebody of standing let
//! into the team. No agent, review or other job ever gets one; no listing, view, command, prompt or export holds one.

use std::collections::BTreeSet;
use std::fmt;

use steward_base::names::UserId;
use steward_base::{FieldViolations, Role, Timestamp};

use crate::actor::Actor;
use crate::error::Error;
use crate::gate::Gate;
use crate::header::Variable;
use crate::name::Scope;
use crate::record::SkillRecord;
use crate::skills::{Skills, refused};

/// Most secrets of a team.
pub const MOST_SECRETS: usize = 200;
const MAX_NAME_CHARS: usize = 128;
const MAX_VALUE_BYTES: usize = 16 * 1024;

/// A value that shows itself nowhere by accident.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(String);

impl SecretValue {
    /// Wraps a value.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The value itself, for whoever encrypts or delivers it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// What is told of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretInfo {
    /// Name of the variable.
    pub name: String,
    /// Who set it.
    pub author: Option<UserId>,
    /// When.
    pub set: Timestamp,
    /// Whether it can be opened; if not, the key that sealed it is gone, and it has to be set anew.
    pub readable: bool,
}

/// What a team's secrets are for one skill.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delivered {
    /// Variables with their values.
    pub values: Vec<(String, SecretValue)>,
    /// Declared ones for which the team keeps none, or none that can be opened.
    pub missing: Vec<Variable>,
}

/// Whether a text can be the name of an environment variable that may be set by someone else. What decides which
/// program runs, or what it loads first, may not.
fn check_name(name: &str) -> Result<(), String> {
    let mut characters = name.chars();
    let first = characters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
    if !first || !characters.all(|other| other.is_ascii_alphanumeric() || other == '_') {
        return Err("must be letters, digits and underscores, no digit first".to_owned());
    }
    if name.chars().count() > MAX_NAME_CHARS {
        return Err(format!("must have at most {MAX_NAME_CHARS} characters"));
    }
    if decides_what_runs(name) {
        return Err("decides which program runs or what it loads; it is no secret".to_owned());
    }
    Ok(())
}

/// Variables by which a value would become code.
fn decides_what_runs(name: &str) -> bool {
    const NAMES: [&str; 14] = [
        "PATH",
        "HOME",
        "SHELL",
        "IFS",
        "ENV",
        "BASH_ENV",
        "PROMPT_COMMAND",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "NODE_OPTIONS",
        "NODE_PATH",
        "PERL5OPT",
        "RUBYOPT",
        "JAVA_TOOL_OPTIONS",
    ];
    const FAMILIES: [&str; 4] = ["LD_", "DYLD_", "GIT_", "STEWARD"];
    let name = name.to_ascii_uppercase();
    NAMES.contains(&name.as_str()) || FAMILIES.iter().any(|family| name.starts_with(family))
}

/// Whether the team's secrets are for this skill: somebody of standing let it in. A person's own skill may have been
/// written by an agent a minute ago.
pub fn is_for(record: &SkillRecord) -> bool {
    match record.scope {
        Scope::Team | Scope::External | Scope::Hub | Scope::Builtin => true,
        Scope::User(_) => false,
    }
}

/// Only a person's own program: what an agent may ask for would stand in a transcript.
fn person(actor: &Actor, action: &'static str) -> Result<(), Error> {
    if actor.is_agent || actor.user.is_none() || actor.origin.is_automatic() {
        return Err(refused(
            actor,
            "the team's secrets".to_owned(),
            action,
            Gate::PersonOnly,
        ));
    }
    Ok(())
}

fn maintainer(actor: &Actor) -> Result<(), Error> {
    if actor.role >= Role::Maintainer {
        return Ok(());
    }
    Err(Error::RoleRequired {
        role: actor.role,
        required: Role::Maintainer,
    })
}

impl Skills {
    /// Keeps a value under the name of its variable, in the place of the one before.
    pub async fn set_secret(&self, actor: &Actor, name: &str, value: SecretValue) -> Result<SecretInfo, Error> {
        person(actor, "set_secret")?;
        maintainer(actor)?;
        let mut violations = FieldViolations::new();
        violations.take("secret", check_name(name));
        if value.expose().is_empty() || value.expose().len() > MAX_VALUE_BYTES {
            violations.add("value", format!("must have 1 to {MAX_VALUE_BYTES} bytes"));
        } else if value.expose().contains('\0') {
            violations.add("value", "must not hold a zero byte; no environment can");
        }
        violations.into_result()?;
        let present = self.store.secrets(&actor.team).await?;
        if present.len() >= MOST_SECRETS && present.iter().all(|secret| secret.name != name) {
            return Err(Error::LimitExceeded {
                what: "the number of the team's secrets".to_owned(),
                limit: MOST_SECRETS,
                actual: present.len() + 1,
            });
        }
        let info = SecretInfo {
            name: name.to_owned(),
            author: actor.user.clone(),
            set: self.clock.now(),
            readable: true,
        };
        self.store.put_secret(&actor.team, info.clone(), value).await?;
        Ok(info)
    }

    /// What the team has, by name. Never a value.
    pub async fn list_secrets(&self, actor: &Actor) -> Result<Vec<SecretInfo>, Error> {
        person(actor, "list_secrets")?;
        Ok(self.store.secrets(&actor.team).await?)
    }

    /// Deletes a value for good; whether there was one.
    pub async fn delete_secret(&self, actor: &Actor, name: &str) -> Result<bool, Error> {
        person(actor, "delete_secret")?;
        maintainer(actor)?;
        Ok(self.store.delete_secret(&actor.team, name).await?)
    }

    /// The values that a skill's commands need, for the program that is about to run them.
    pub async fn deliver_secrets(&self, actor: &Actor, skill: &str) -> Result<(SkillRecord, Delivered), Error> {
        person(actor, "deliver_secrets")?;
        let record = self.resolve_active(actor, skill).await?;
        if !is_for(&record) {
            return Err(refused(actor, record.full_name(), "deliver_secrets", Gate::OwnSkill));
        }
        let mut delivered = Delivered::default();
        let declared = record.header().map_or(&[][..], |header| &header.variables);
        let readable = self.readable_secrets(actor).await?;
        for variable in declared {
            // One that an earlier version let in is not let out.
            let value = if readable.contains(&variable.name) && check_name(&variable.name).is_ok() {
                self.store.secret(&actor.team, &variable.name).await?
            } else {
                None
            };
            match value {
                Some(value) => delivered.values.push((variable.name.clone(), value)),
                None => delivered.missing.push(variable.clone()),
            }
        }
        Ok((record, delivered))
    }

    async fn readable_secrets(&self, actor: &Actor) -> Result<BTreeSet<String>, Error> {
        let all = self.store.secrets(&actor.team).await?.into_iter();
        Ok(all.filter(|secret| secret.readable).map(|secret| secret.name).collect())
    }

    /// Which of the variables that the skill declares the team can deliver to it.
    pub(crate) async fn team_variables(&self, actor: &Actor, record: &SkillRecord) -> Result<BTreeSet<String>, Error> {
        let declared = record.header().map_or(&[][..], |header| &header.variables);
        if declared.is_empty() || !is_for(record) {
            return Ok(BTreeSet::new());
        }
        let mut readable = self.readable_secrets(actor).await?;
        readable.retain(|name| declared.iter().any(|variable| variable.name == *name));
        Ok(readable)
    }
}

#[cfg(test)]
mod tests;
