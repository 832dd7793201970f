//! The six actions of the `skill_manage` tool, for agents and people alike (`S-10` to `S-16`).
//!
//! Everything is decided on one state of the skill and handed to the store as one change that names that state. If
//! someone else was quicker the whole decision is made anew, so a gate or a limit of a skill is never passed on stale
//! grounds. Only how many skills a scope may hold is counted beforehand, and creations at the same instant may pass it.

pub(crate) mod answer;
mod check;
pub(crate) mod draft;
mod request;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use steward_base::names::SkillId;
use steward_base::{FieldViolations, Origin};

use crate::actor::Actor;
use crate::error::Error;
use crate::gate::{self, Absorption, Action, Footing, Provenance, Ruling};
use crate::name::{self, Category, Scope};
use crate::path::SkillPath;
use crate::record::{Archival, Evidence, Files, HeaderState, NewRevision, SkillRecord, State, Usage};
use crate::screen;
use crate::skills::{Skills, TRIES, commit_error, parse_new_name, read_answer, refused, too_busy};
use crate::store::{Change, CommitError, RequestKey};

pub(crate) use check::{Naming, check_result};
use draft::Draft;
pub(crate) use draft::missing;
pub(crate) use request::check_request_id;

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Manage {
    /// Make a new skill.
    Create {
        /// Whole `SKILL.md`.
        content: String,
        /// Shelf; empty for the one that the front matter names, or none.
        category: String,
        /// Whether it goes to the team's library, and not to the person's own skills.
        in_team: bool,
    },
    /// Replace `SKILL.md`.
    Edit {
        /// Whole `SKILL.md`.
        content: String,
    },
    /// Replace a text.
    Patch {
        /// The file; empty for `SKILL.md`.
        path: String,
        /// The text to find, literally.
        old: String,
        /// The text to put there, literally.
        new: String,
        /// Whether every occurrence is meant.
        all: bool,
    },
    /// Take the skill out of use.
    Delete {
        /// Where the content went: a skill, or empty for a plain removal. Absent: nothing was said.
        absorbed_into: Option<String>,
    },
    /// Write a supporting file.
    WriteFile {
        /// Where.
        path: String,
        /// Its whole content.
        content: String,
    },
    /// Remove a supporting file.
    RemoveFile {
        /// Which.
        path: String,
    },
}

/// A request to change a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManageRequest {
    /// Which skill; for a creation the new name.
    pub skill: String,
    /// What to do.
    pub action: Manage,
    /// The revision that the caller goes by; empty if it says none.
    pub base_revision: String,
    /// Makes a retry safe.
    pub request_id: String,
    /// Hash over everything else in the request.
    pub request_hash: String,
    /// What it rests on.
    pub evidence: Option<Evidence>,
    /// Why, in the caller's words.
    pub reason: String,
    /// Whether to check everything and keep nothing.
    pub validate_only: bool,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Managed {
    /// The skill as it is now.
    pub skill: SkillRecord,
    /// For the model: terse, and terminal.
    pub tool_text: String,
    /// Whether a patch was applied although white space differed.
    pub approximate: bool,
    /// Resource name of the proposal that it became; empty when it took effect.
    #[serde(default)]
    pub proposal: String,
}

impl Skills {
    /// Applies one action, wholly or not at all.
    pub async fn manage_skill(&self, actor: &Actor, request: &ManageRequest) -> Result<Managed, Error> {
        request::check_fields(request)?;
        let key = RequestKey {
            scope: actor.request_scope(),
            id: request.request_id.clone(),
            hash: request.request_hash.clone(),
        };
        if let Some(first) = self.replay::<Managed>(actor, &key).await? {
            return Ok(first);
        }
        if actor.origin.is_automatic()
            && let Some(first) = self.replay_staged(actor, &key).await?
        {
            return Ok(first);
        }
        match self.manage(actor, request, &key).await {
            // Sent twice at once, a request finds what it did itself in its way.
            Err(error) => self.first_answer_or(actor, &key, error).await,
            managed => managed,
        }
    }

    async fn manage(&self, actor: &Actor, request: &ManageRequest, key: &RequestKey) -> Result<Managed, Error> {
        let footing = request::footing(actor, request.evidence.as_ref())?;
        let _turn = self.turn(&actor.team, &request.skill).await;
        for _ in 0..TRIES {
            let (mut change, managed) = match &request.action {
                Manage::Create {
                    content,
                    category,
                    in_team,
                } => self.creation(actor, request, content, category, *in_team).await?,
                action => self.change(actor, request, action).await?,
            };
            self.check_not_rejected(actor, &managed.skill, &request.action).await?;
            if footing == Footing::Waits {
                if request.validate_only {
                    return Ok(managed);
                }
                return self.stage(actor, request, change, managed).await;
            }
            let committed = if request.validate_only {
                self.store.dry_run(change).await
            } else {
                change.answer = Some((key.clone(), answer::encode(&managed)?));
                self.store.commit(change).await
            };
            match committed {
                Ok(()) => return Ok(managed),
                Err(CommitError::Answered(first)) => return read_answer(&first, key),
                Err(error) => {
                    if let Some(error) = commit_error(error, actor, &managed.skill.full_name()) {
                        return Err(error);
                    }
                }
            }
        }
        Err(too_busy(&request.skill))
    }

    async fn creation(
        &self,
        actor: &Actor,
        request: &ManageRequest,
        content: &str,
        category: &str,
        in_team: bool,
    ) -> Result<(Change, Managed), Error> {
        self.seed(&actor.team).await?;
        let (name, mut category, scope) = place(actor, &request.skill, category, in_team)?;
        let files = Files::from([(SkillPath::skill_md(), content.as_bytes().to_vec())]);
        let wanted = name::full_name(&scope, &category, &name);
        Self::pass_scope(actor, &scope, &wanted, "create")?;
        let header = check_result(
            &self.settings,
            actor,
            &wanted,
            &name,
            &Files::new(),
            &files,
            Naming::Same,
        )?;
        if category == Category::default() {
            category = header.category.clone();
        }
        self.screen(actor, &wanted, &Files::new(), &files)?;
        self.check_room(actor, &scope, &category, &name).await?;
        let uid = self.ids.new_id();
        let revision = self.revision(actor, request, None, "create", &files).seal(&uid);
        let record = SkillRecord {
            team: actor.team.clone(),
            uid,
            scope,
            name,
            category,
            provenance: Provenance::of_creation(actor.origin),
            author: actor.user.clone(),
            pinned: false,
            protected: false,
            state: State::Active,
            version: 1,
            revision: revision.id.clone(),
            number: revision.number,
            tree: revision.tree.clone(),
            header: HeaderState::Read(Box::new(header)),
            usage: Usage::default(),
            created: revision.created,
            updated: revision.created,
        };
        let change = Change::of(record.clone(), None, Some((revision, files))).by(actor);
        let tool_text = answer::created(&record);
        Ok((
            change,
            Managed {
                skill: record,
                tool_text,
                approximate: false,
                proposal: String::new(),
            },
        ))
    }

    /// Whether the scope has room for one more skill at this place.
    pub(crate) async fn check_room(
        &self,
        actor: &Actor,
        scope: &Scope,
        category: &Category,
        name: &SkillId,
    ) -> Result<(), Error> {
        let found = self.store.list(&actor.team, std::slice::from_ref(scope), false).await?;
        let readable = found.iter().filter_map(|found| found.as_ref().ok()).collect::<Vec<_>>();
        let existing = readable.iter().map(|record| (&record.category, &record.name));
        let in_the_way = name::in_the_way(scope, category, name, existing);
        if !in_the_way.is_empty() {
            let skill = name::full_name(scope, category, name);
            return Err(Error::SkillExists {
                skill,
                in_the_way: crate::skills::shorten(in_the_way),
            });
        }
        let limit = self.settings.skills_per_scope;
        if found.len() >= limit {
            let what = format!("the number of skills in the scope {}", scope.label());
            return Err(Error::LimitExceeded {
                what,
                limit,
                actual: found.len() + 1,
            });
        }
        Ok(())
    }

    async fn change(
        &self,
        actor: &Actor,
        request: &ManageRequest,
        action: &Manage,
    ) -> Result<(Change, Managed), Error> {
        let record = self.resolve_active(actor, &request.skill).await?;
        let ruling = match draft::gate_action(action) {
            removing @ Action::Delete => self.pass_removal(actor, &record, removing).await?,
            other => Self::pass_gates(actor, &record, other)?,
        };
        self.check_read(actor, &record, &request.base_revision).await?;
        if let Manage::Delete { absorbed_into } = action {
            return self
                .removal(actor, request, &record, absorbed_into.as_deref(), ruling)
                .await;
        }
        let (_, before) = self.load(&record).await?;
        let Draft {
            files,
            approximate,
            note,
        } = draft::draw(&record, &before, action)?;
        let full_name = record.full_name();
        check_result(
            &self.settings,
            actor,
            &full_name,
            &record.name,
            &before,
            &files,
            Naming::Same,
        )?;
        self.screen(actor, &full_name, &before, &files)?;
        let name = draft::gate_action(action).as_str();
        let revision = self
            .revision(actor, request, Some(&record), name, &files)
            .seal(&record.uid);
        let mut next = record.after(&revision, &files);
        let tool_text = answer::changed(&next, &note);
        let mut change = Change::of(next.clone(), Some(record.version), Some((revision, files))).by(actor);
        change.is_patch = true;
        next.usage.patches += 1;
        next.usage.last_patched = Some(next.updated);
        Ok((
            change,
            Managed {
                skill: next,
                tool_text,
                approximate,
                proposal: String::new(),
            },
        ))
    }

    /// A deletion: always a revision, always restorable (`S-13`, `S-16`).
    async fn removal(
        &self,
        actor: &Actor,
        request: &ManageRequest,
        record: &SkillRecord,
        absorbed_into: Option<&str>,
        ruling: Ruling,
    ) -> Result<(Change, Managed), Error> {
        let said = self.absorption(actor, record, absorbed_into).await?;
        if let Err(gate) = gate::absorption(actor.origin, said) {
            return Err(refused(actor, record.full_name(), "delete", gate));
        }
        let deleted = ruling == Ruling::Allow;
        let action = if deleted { Action::Delete } else { Action::Archive };
        let into = absorbed_into.unwrap_or("").trim();
        let (change, next) = self.set_aside(actor, request, record, action, into).await?;
        let tool_text = answer::removed(&next, deleted);
        Ok((
            change,
            Managed {
                skill: next,
                tool_text,
                approximate: false,
                proposal: String::new(),
            },
        ))
    }

    pub(crate) async fn absorption(
        &self,
        actor: &Actor,
        record: &SkillRecord,
        said: Option<&str>,
    ) -> Result<Absorption, Error> {
        match said.map(str::trim) {
            None => Ok(Absorption::NotGiven),
            Some("") => Ok(Absorption::Pruned),
            Some(umbrella) => match self.resolve_active(actor, umbrella).await {
                Ok(umbrella) if umbrella.uid != record.uid => Ok(Absorption::Into),
                Err(Error::Store(fault)) => Err(fault.into()),
                Err(ambiguous @ Error::SkillAmbiguous { .. }) => Err(ambiguous),
                Ok(_) | Err(_) => Ok(Absorption::IntoNothing),
            },
        }
    }

    /// The change that archives a skill, as a revision with the same files.
    pub(crate) async fn set_aside(
        &self,
        actor: &Actor,
        request: &ManageRequest,
        record: &SkillRecord,
        action: Action,
        absorbed_into: &str,
    ) -> Result<(Change, SkillRecord), Error> {
        let (_, files) = self.load(record).await?;
        let revision = self
            .revision(actor, request, Some(record), action.as_str(), &files)
            .seal(&record.uid);
        let archival = Archival {
            at: revision.created,
            origin: actor.origin,
            deleted: action == Action::Delete,
            absorbed_into: absorbed_into.to_owned(),
        };
        let next = SkillRecord {
            state: State::Archived(archival),
            ..record.after(&revision, &files)
        };
        Ok((
            Change::of(next.clone(), Some(record.version), Some((revision, files))).by(actor),
            next,
        ))
    }

    /// Read before write (`S-12`): an agent goes by the revision that it has seen in this session or job; everyone
    /// goes by the one they name.
    pub(crate) async fn check_read(&self, actor: &Actor, record: &SkillRecord, base: &str) -> Result<(), Error> {
        let stale = |expected: &str| Error::StaleRevision {
            skill: record.full_name(),
            expected: short(expected),
            current: short(&record.revision),
        };
        if let Some(reader) = actor.reader() {
            match self.store.last_read(&actor.team, &reader, &record.uid).await? {
                None => {
                    return Err(Error::NotRead {
                        skill: record.full_name(),
                        reader: reader.kind(),
                    });
                }
                Some(read) if read != record.revision => return Err(stale(&read)),
                Some(_) => {}
            }
        }
        if base.is_empty() || base == record.revision {
            Ok(())
        } else {
            Err(stale(base))
        }
    }

    /// Credentials are kept of nobody (D-12); the guard and the scanner are for agents, where that is on (`S-14`).
    pub(crate) fn screen(&self, actor: &Actor, skill: &str, before: &Files, after: &Files) -> Result<(), Error> {
        screen::secrets(before, after)?;
        if actor.is_agent {
            self.screen_of(actor.origin, skill, before, after)
        } else {
            Ok(())
        }
    }

    /// The same for an agent's words, whoever puts them there.
    pub(crate) fn screen_of(&self, origin: Origin, skill: &str, before: &Files, after: &Files) -> Result<(), Error> {
        screen::secrets(before, after)?;
        if !self.settings.guard_agent_created {
            return Ok(());
        }
        screen::writing(origin, before, after)?;
        match &self.scanner {
            Some(scanner) => screen::judged(scanner, skill, before, after),
            None => Ok(()),
        }
    }

    fn revision<'a>(
        &self,
        actor: &Actor,
        request: &ManageRequest,
        parent: Option<&'a SkillRecord>,
        action: &'a str,
        files: &'a Files,
    ) -> NewRevision<'a> {
        let evidence = request.evidence.as_slice();
        NewRevision {
            parent,
            action,
            files,
            by: actor.authorship(&request.reason, evidence),
            restored_from: None,
            created: self.clock.now(),
        }
    }
}

/// Where a new skill shall stand.
fn place(actor: &Actor, name: &str, category: &str, in_team: bool) -> Result<(SkillId, Category, Scope), Error> {
    let mut violations = FieldViolations::new();
    let name = violations.take("skill", parse_new_name(name));
    let category = violations.take("create.category", Category::parse(category));
    let scope = match (&actor.user, in_team) {
        (_, true) => Ok(Scope::Team),
        (Some(user), false) => Ok(Scope::User(user.clone())),
        (None, false) => Err("must be the team, since the caller acts for no person"),
    };
    let scope = violations.take("create.scope", scope);
    match (name, category, scope) {
        (Some(name), Some(category), Some(scope)) => Ok((name, category, scope)),
        _ => Err(violations.into()),
    }
}

/// A revision as people and models read it.
pub(crate) fn short(revision: &str) -> String {
    revision.chars().take(12).collect()
}
