//! Skills and bundles as commands that a person types, and skills that a session opens at its start (`S-17`, `S-18`).
//!
//! What a command becomes is one message in the frame of [`steward_guard::invocation`], from which the person's own words
//! come back byte for byte. Templates are filled in once; nothing that a template brings in is looked at again, and nothing
//! is ever run.

mod template;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use steward_base::FieldViolations;
use steward_guard::invocation::{self, Invocation, Part};

use crate::actor::Actor;
use crate::error::Error;
use crate::header::{self, Variable};
use crate::index::{Entry, neutral, shown_description};
use crate::name;
use crate::path::SkillPath;
use crate::record::SkillRecord;
use crate::skills::Skills;
use crate::view_skill::{Surroundings, setup_needed};

/// What `/learn` tells the agent (`S-19`): how sources become one skill.
pub const LEARN: &str = include_str!("../prompts/learn.txt");

/// Most skills of one preload.
pub const MOST_PRELOADED: usize = 20;
/// Longest text of one skill in a message, in characters (D-70).
const MAX_PART_CHARS: usize = 100_000;
const MAX_TEXT_CHARS: usize = 100_000;

/// What kind of thing answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A skill.
    Skill,
    /// A bundle.
    Bundle,
    /// Steward itself.
    Own,
}

/// Something that can be typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Without the slash.
    pub slug: String,
    /// What answers.
    pub kind: Kind,
    /// Resource name of the skill or bundle; empty for Steward's own, and where several skills have the slug.
    pub target: String,
    /// One line; markup and orders are taken out of it.
    pub description: String,
    /// Full names that have to be typed, where several skills have the slug or a bundle or Steward has taken it.
    pub candidates: Vec<String>,
}

/// Where a command is typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Context {
    /// For `{{session_id}}`; empty leaves the text as it is.
    pub session: String,
    /// Folder in which the client keeps skills, for `{{skill_dir}}`; empty: the full name stands there.
    pub skill_folder: String,
    /// Values for what skills declare, by key.
    pub config: BTreeMap<String, String>,
    /// What is known of the place where commands run.
    pub surroundings: Surroundings,
}

/// What became of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expanded {
    /// The message for the agent, or the block for a prompt.
    pub text: String,
    /// The person's own words.
    pub instruction: String,
    /// Which revision of each skill is in it.
    pub opened: Vec<Entry>,
    /// What could not be opened, each with its reason.
    pub problems: Vec<String>,
    /// What is missing where commands run.
    pub missing: Vec<Variable>,
}

/// Whether the slug is one of Steward's own.
pub(crate) fn is_own(slug: &str) -> bool {
    slug == "learn"
}

/// Several skills, opened.
#[derive(Default)]
struct Opened {
    parts: Vec<Part>,
    entries: Vec<Entry>,
    problems: Vec<String>,
    missing: Vec<Variable>,
}

impl Skills {
    /// What the actor can type, by slug.
    pub async fn list_commands(&self, actor: &Actor) -> Result<Vec<Command>, Error> {
        self.seed(&actor.team).await?;
        let found = self.store.list(&actor.team, &actor.scopes(), false).await?;
        let mut by_slug = BTreeMap::<String, Vec<SkillRecord>>::new();
        for record in found.into_iter().flatten() {
            if record.header().is_some_and(|header| !header.no_command) {
                by_slug.entry(record.name.to_string()).or_default().push(record);
            }
        }
        let mut commands = BTreeMap::new();
        for (slug, records) in by_slug {
            commands.insert(slug.clone(), of_skills(slug, &records));
        }
        // A person's own bundle before the team's, so it is put in last; Steward's own after all.
        let bundles = self.list_bundles(actor).await?;
        for bundle in bundles.iter().rev() {
            let slug = bundle.key.slug.to_string();
            let command = Command {
                slug: slug.clone(),
                kind: Kind::Bundle,
                target: bundle.resource_name(),
                description: shown_description(&bundle.description),
                candidates: Vec::new(),
            };
            take_over(&mut commands, command);
        }
        let learn = Command {
            slug: "learn".to_owned(),
            kind: Kind::Own,
            target: String::new(),
            description: "Turn sources into one skill".to_owned(),
            candidates: Vec::new(),
        };
        take_over(&mut commands, learn);
        Ok(commands.into_values().collect())
    }

    /// Expands what was typed.
    pub async fn expand_command(&self, actor: &Actor, text: &str, context: &Context) -> Result<Expanded, Error> {
        let (command, instruction) = parse(text)?;
        let slug = name::slug(command);
        let mut invocation = Invocation {
            command: slug.clone(),
            note: String::new(),
            parts: Vec::new(),
            instruction: instruction.to_owned(),
        };
        let is_slug = !command.contains(['/', ':']);
        if is_slug && is_own(&slug) {
            LEARN.trim_end().clone_into(&mut invocation.note);
            return Ok(expanded(invocation, Opened::default()));
        }
        let bundle = if is_slug {
            self.bundle_of(actor, &slug).await?
        } else {
            None
        };
        let opened = if let Some(bundle) = bundle {
            invocation.note.clone_from(&bundle.instruction);
            self.open(actor, &bundle.skills, context).await?
        } else {
            let wanted = if is_slug { slug.as_str() } else { command };
            let record = self.answering(actor, wanted).await?;
            invocation.command = record.name.to_string();
            let mut opened = Opened::default();
            self.open_one(actor, &record, context, &mut opened).await?;
            opened
        };
        Ok(expanded(invocation, opened))
    }

    /// Opens skills, or what bundles name, for a session at its start.
    pub async fn preload_skills(&self, actor: &Actor, names: &[String], context: &Context) -> Result<Expanded, Error> {
        if names.len() > MOST_PRELOADED {
            return Err(FieldViolations::one("skills", format!("must be at most {MOST_PRELOADED}")).into());
        }
        let (mut wanted, mut notes) = (Vec::new(), String::new());
        for name in names {
            match self.bundle_of(actor, &name::slug(name)).await? {
                Some(bundle) => {
                    if !bundle.instruction.is_empty() {
                        _ = write!(notes, "\n\n{}", bundle.instruction);
                    }
                    wanted.extend(bundle.skills);
                }
                None => wanted.push(name.clone()),
            }
        }
        let mut opened = self.open(actor, &wanted, context).await?;
        if opened.parts.is_empty() {
            return Ok(Expanded {
                problems: opened.problems,
                ..Expanded::default()
            });
        }
        let mut text = "[Skills that are open from the start of this session]".to_owned();
        text.push_str(&notes);
        for part in opened.parts.drain(..) {
            _ = write!(text, "\n\n--- skill {} ---\n{}", part.name, part.text);
        }
        Ok(Expanded {
            text,
            instruction: String::new(),
            opened: opened.entries,
            problems: opened.problems,
            missing: opened.missing,
        })
    }

    /// The skill in use that answers to a command.
    async fn answering(&self, actor: &Actor, command: &str) -> Result<SkillRecord, Error> {
        let found = match self.resolve_active(actor, command).await {
            Ok(record) if record.header().is_some_and(|header| header.no_command) => None,
            Ok(record) => Some(record),
            Err(Error::SkillNotFound { .. } | Error::Invalid(_)) => None,
            Err(error) => return Err(error),
        };
        if let Some(found) = found {
            return Ok(found);
        }
        let commands = self.list_commands(actor).await?;
        Err(Error::CommandNotFound {
            command: neutral(command),
            near: near(command, commands.iter().map(|command| command.slug.as_str())),
        })
    }

    /// Opens each; what cannot be opened is named, and spoils nothing.
    async fn open(&self, actor: &Actor, names: &[String], context: &Context) -> Result<Opened, Error> {
        let (mut opened, mut seen) = (Opened::default(), BTreeSet::new());
        for name in names {
            match self.resolve_active(actor, name).await {
                Ok(record) if !seen.insert(record.uid.clone()) => {}
                Ok(record) => self.open_one(actor, &record, context, &mut opened).await?,
                Err(Error::Store(fault)) => return Err(fault.into()),
                Err(error) => opened.problems.push(format!("{}: {error}", neutral(name))),
            }
        }
        Ok(opened)
    }

    async fn open_one(
        &self,
        actor: &Actor,
        record: &SkillRecord,
        context: &Context,
        opened: &mut Opened,
    ) -> Result<(), Error> {
        let revision = self.newest(record).await?;
        let bytes = self.file(record, &revision, &SkillPath::skill_md()).await?;
        let body = std::str::from_utf8(&bytes)
            .ok()
            .and_then(|text| header::split(text).ok())
            .map(|split| split.body);
        let (Some(body), Some(header)) = (body, record.header()) else {
            opened
                .problems
                .push(format!("{}: it cannot be read", record.full_name()));
            return Ok(());
        };
        let mut text = template::fill(body.trim(), header, &place(record, context), context);
        if let Some((end, _)) = text.char_indices().nth(MAX_PART_CHARS) {
            text.truncate(end);
            _ = write!(text, "\n[cut here; skill_view opens the whole text]");
        }
        let others = revision.files.iter().filter(|entry| !entry.path.is_skill_md());
        let others = others.map(|entry| entry.path.as_str()).collect::<Vec<_>>();
        if !others.is_empty() {
            _ = write!(
                text,
                "\n\nother files, opened with skill_view and their path: {}",
                others.join(", ")
            );
        }
        let kept = self.team_variables(actor, record).await?;
        let missing = context.surroundings.missing(record, &kept);
        if !missing.is_empty() {
            text.push_str(&setup_needed(&missing));
        }
        for variable in missing {
            if opened.missing.iter().all(|known| known.name != variable.name) {
                opened.missing.push(variable);
            }
        }
        opened.parts.push(Part {
            name: record.full_name(),
            text,
        });
        opened.entries.push(Entry {
            resource: record.resource_name(),
            revision: record.revision.clone(),
        });
        self.count_view(actor, record).await
    }
}

fn of_skills(slug: String, records: &[SkillRecord]) -> Command {
    let only = match records {
        [only] => Some(only),
        _ => None,
    };
    Command {
        slug,
        kind: Kind::Skill,
        target: only.map(SkillRecord::resource_name).unwrap_or_default(),
        description: only
            .map(|record| shown_description(record.description()))
            .unwrap_or_default(),
        candidates: if only.is_some() {
            Vec::new()
        } else {
            records.iter().map(SkillRecord::full_name).collect()
        },
    }
}

/// Puts a command in the place of another with its slug; the skills that it hides are reached by their full names.
fn take_over(commands: &mut BTreeMap<String, Command>, command: Command) {
    let slug = command.slug.clone();
    let mut candidates = Vec::new();
    if let Some(hidden) = commands.remove(&slug) {
        candidates = hidden.candidates;
        if hidden.kind == Kind::Skill && candidates.is_empty() {
            candidates.push(hidden.target);
        }
    }
    commands.insert(slug, Command { candidates, ..command });
}

fn expanded(invocation: Invocation, opened: Opened) -> Expanded {
    let mut invocation = Invocation {
        parts: opened.parts,
        ..invocation
    };
    for problem in &opened.problems {
        // The agent hears of it too, so that it does not look for what is not there.
        _ = write!(
            invocation.note,
            "{}[not opened: {problem}]",
            if invocation.note.is_empty() { "" } else { "\n" }
        );
    }
    Expanded {
        text: invocation::message(&invocation),
        instruction: invocation.instruction,
        opened: opened.entries,
        problems: opened.problems,
        missing: opened.missing,
    }
}

/// The command without its slash, and the person's own words.
fn parse(text: &str) -> Result<(&str, &str), Error> {
    let wrong = |problem: &str| Error::from(FieldViolations::one("text", problem));
    if text.chars().count() > MAX_TEXT_CHARS {
        return Err(wrong(&format!("must have at most {MAX_TEXT_CHARS} characters")));
    }
    let rest = text
        .trim_start()
        .strip_prefix('/')
        .ok_or_else(|| wrong("must begin with a slash"))?;
    let (command, words) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if command.is_empty() {
        return Err(wrong("must name a command behind the slash"));
    }
    Ok((command, words.trim()))
}

/// What stands for `{{skill_dir}}`.
fn place(record: &SkillRecord, context: &Context) -> String {
    if context.skill_folder.is_empty() {
        return record.full_name();
    }
    let folder = name::folder(&record.category, &record.name);
    format!("{}/{folder}", context.skill_folder.trim_end_matches(['/', '\\']))
}

/// Up to three slugs that begin alike or contain what was typed.
fn near<'a>(typed: &str, slugs: impl Iterator<Item = &'a str>) -> Vec<String> {
    let typed = name::slug(typed);
    let start = typed.get(..3).unwrap_or(&typed).to_owned();
    let is_near = |slug: &&str| !start.is_empty() && (slug.starts_with(&start) || slug.contains(&typed));
    slugs.filter(is_near).take(3).map(str::to_owned).collect()
}
