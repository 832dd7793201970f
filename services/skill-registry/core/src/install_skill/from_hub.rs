//! What the hub puts into the library and takes out of it, in one transaction with what it keeps beside the library: lock,
//! quarantine item, log. The gates are those of every write (`S-14`); who decides and why is the hub's.

use std::pin::Pin;

use async_trait::async_trait;
use steward_base::names::{SkillId, TeamId};
use steward_base::{FieldViolations, Origin};

use super::Approved;
use crate::actor::Actor;
use crate::error::{Error, StoreFault};
use crate::gate::Action;
use crate::manage_skill::{Manage, ManageRequest};
use crate::name::Scope;
use crate::path::SkillPath;
use crate::record::{Files, SkillRecord, State};
use crate::skills::{Skills, TRIES, commit_error, parse_new_name, shorten, too_busy};
use crate::store::{Change, CommitError};

/// What is kept beside the library.
#[async_trait]
pub trait Beside: Send + Sync {
    /// Applies the changes in their order together with what stands beside them, in one transaction.
    async fn commit(&self, changes: Vec<Change>) -> Result<(), CommitError>;
}

/// What is kept beside the library of a withdrawal, and knows which skills have its tree.
#[async_trait]
pub trait BesideCopies: Beside {
    /// The skills of the team that have the tree as it is now, whose ever they are: those in use, where it is revoked; where
    /// it is reinstated, those that were taken out of sight for that and whose place is free.
    async fn copies(&self) -> Result<Vec<SkillRecord>, StoreFault>;
}

/// What becomes of changes that were made here since the last install (D-58).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalChanges {
    /// Nothing is installed where there are any.
    Keep,
    /// They are merged; where both sides meet nothing is installed.
    Merge,
    /// They are given up; the revision that has them stays.
    GiveUp,
}

/// A skill that the hub installs.
#[derive(Debug, Clone)]
pub struct HubSkill {
    /// Its name.
    pub name: String,
    /// The files that were approved.
    pub files: Files,
    /// Tree hash of the files that were approved last; none where the hub has installed none.
    pub base_tree: Option<String>,
    /// Where they come from, for the revision.
    pub source: String,
    /// Whether other skills of the name that the actor sees are set aside.
    pub replace: bool,
    /// What becomes of changes that were made here.
    pub local: LocalChanges,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// The skill as it is now.
    pub skill: SkillRecord,
    /// Files in which both sides' changes stand.
    pub merged: Vec<SkillPath>,
    /// Full names of the skills that were set aside.
    pub set_aside: Vec<String>,
}

type Decision<'d, T> = Pin<Box<dyn Future<Output = Result<Decided<T>, Error>> + Send + 'd>>;

/// Changes, what they are about for an error, and what comes of them.
struct Decided<T> {
    changes: Vec<Change>,
    subject: String,
    outcome: T,
}

impl Decided<()> {
    fn plain(changes: Vec<Change>, subject: &str) -> Self {
        Self {
            changes,
            subject: subject.to_owned(),
            outcome: (),
        }
    }
}

impl Skills {
    /// Installs a skill of the hub, or updates it.
    pub async fn install_from_hub(&self, actor: &Actor, skill: &HubSkill, beside: &dyn Beside) -> Result<Taken, Error> {
        let name = parse(&skill.name)?;
        self.seed(&actor.team).await?;
        let _turn = self.turn(&actor.team, name.as_str()).await;
        self.together(actor, beside, || {
            Box::pin(async {
                let (mut changes, set_aside) = self.make_way(actor, skill, &name).await?;
                let (change, merged) = self.take_from_hub(actor, skill, &name).await?;
                let taken = Taken {
                    skill: change.record.clone(),
                    merged,
                    set_aside,
                };
                if change.revision.is_some() {
                    changes.push(change);
                }
                Ok(Decided {
                    changes,
                    subject: taken.skill.full_name(),
                    outcome: taken,
                })
            })
        })
        .await
    }

    /// Takes a skill of the hub out of use; one that is gone already is no error.
    pub async fn remove_from_hub(&self, actor: &Actor, name: &str, beside: &dyn Beside) -> Result<(), Error> {
        let skill = parse(name)?;
        let hub = as_hub(actor);
        let _turn = self.turn(&actor.team, name).await;
        self.together(&hub, beside, || {
            Box::pin(async {
                let mut changes = Vec::new();
                if let Some(record) = self.in_use(&hub, &Scope::Hub, &skill).await? {
                    self.pass_removal(&hub, &record, Action::Delete).await?;
                    let request = removal("uninstalled");
                    changes.push(self.set_aside(&hub, &request, &record, Action::Delete, "").await?.0);
                }
                Ok(Decided::plain(changes, name))
            })
        })
        .await
    }

    /// Takes out of sight what has a revoked tree: the skill of the hub that was installed with it, whatever was changed
    /// there since, and every copy of the tree in the team's library, whose ever it is (`H-2`). Whatever is pinned and
    /// whatever schedules name; nothing in use is no error. Only [`Skills::show_reinstated`] brings all of it back.
    pub async fn hide_revoked(
        &self,
        actor: &Actor,
        installed: Option<&str>,
        reason: &str,
        beside: &dyn BesideCopies,
    ) -> Result<(), Error> {
        let skill = installed.map(parse).transpose()?;
        let hub = as_hub(actor);
        let subject = installed.unwrap_or("what is revoked");
        let _turn = self.turn(&actor.team, subject).await;
        self.together(&hub, beside, || {
            Box::pin(async {
                let mut hidden = beside.copies().await?;
                if let Some(skill) = &skill
                    && let Some(record) = self.in_use(&hub, &Scope::Hub, skill).await?
                {
                    add(&mut hidden, record);
                }
                let (request, mut changes) = (removal(reason), Vec::new());
                for record in hidden {
                    changes.push(self.set_aside(&hub, &request, &record, Action::Archive, "").await?.0);
                }
                Ok(Decided::plain(changes, subject))
            })
        })
        .await
    }

    /// Brings back what [`Skills::hide_revoked`] took out of sight last, except where another skill has the name by now;
    /// nothing to bring back is no error.
    pub async fn show_reinstated(
        &self,
        actor: &Actor,
        installed: Option<&str>,
        reason: &str,
        beside: &dyn BesideCopies,
    ) -> Result<(), Error> {
        let skill = installed.map(parse).transpose()?;
        let hub = as_hub(actor);
        let subject = installed.unwrap_or("what is reinstated");
        let _turn = self.turn(&actor.team, subject).await;
        self.together(&hub, beside, || {
            Box::pin(async {
                let mut shown = beside.copies().await?;
                if let Some(skill) = &skill
                    && let Some(record) = self.hidden(&hub, skill).await?
                {
                    shown.retain(|copy| copy.scope != Scope::Hub || copy.name != *skill);
                    shown.push(record);
                }
                let mut changes = Vec::new();
                for record in shown {
                    changes.push(self.brought_back(&hub, &record, reason).await?.0);
                }
                Ok(Decided::plain(changes, subject))
            })
        })
        .await
    }

    /// Decides on changes and commits them with what stands beside them, anew while others are quicker.
    async fn together<'d, T>(
        &self,
        actor: &Actor,
        beside: &dyn Beside,
        decide: impl Fn() -> Decision<'d, T>,
    ) -> Result<T, Error> {
        let mut last = String::new();
        for _ in 0..TRIES {
            let Decided {
                changes,
                subject,
                outcome,
            } = decide().await?;
            match beside.commit(changes).await {
                Ok(()) => return Ok(outcome),
                Err(error) => {
                    if let Some(error) = commit_error(error, actor, &subject) {
                        return Err(error);
                    }
                }
            }
            last = subject;
        }
        Err(too_busy(&last))
    }

    /// The skill of this name that was hidden last, unless one is in use.
    async fn hidden(&self, hub: &Actor, name: &SkillId) -> Result<Option<SkillRecord>, Error> {
        let mut last: Option<SkillRecord> = None;
        for found in self.store.named(&hub.team, &[Scope::Hub], name).await? {
            let record = found.map_err(|broken| Error::RecordDamaged {
                skill: broken.skill,
                problem: broken.problem,
            })?;
            match &record.state {
                State::Active => return Ok(None),
                State::Archived(archival) if archival.is_revocation() => {
                    if last.as_ref().is_none_or(|last| last.updated < record.updated) {
                        last = Some(record);
                    }
                }
                State::Archived(_) => {}
            }
        }
        Ok(last)
    }

    /// Full names of the skills in use that have this name, the actor sees, and the hub did not install.
    pub async fn namesakes(&self, actor: &Actor, name: &str) -> Result<Vec<String>, Error> {
        let Ok(name) = parse_new_name(name) else {
            return Ok(Vec::new());
        };
        self.seed(&actor.team).await?;
        let others = self.others(actor, &name).await?;
        Ok(others.iter().map(SkillRecord::full_name).collect())
    }

    /// The files of a skill of the hub as they are now; nothing if it is not in use.
    pub async fn hub_files(&self, team: &TeamId, name: &str) -> Result<Option<Files>, Error> {
        let Ok(name) = parse_new_name(name) else {
            return Ok(None);
        };
        for found in self.store.named(team, &[Scope::Hub], &name).await? {
            let record = found.map_err(|broken| Error::RecordDamaged {
                skill: broken.skill,
                problem: broken.problem,
            })?;
            if record.is_active() {
                return Ok(Some(self.load(&record).await?.1));
            }
        }
        Ok(None)
    }

    async fn others(&self, actor: &Actor, name: &SkillId) -> Result<Vec<SkillRecord>, Error> {
        let scopes: Vec<Scope> = actor
            .scopes()
            .into_iter()
            .filter(|scope| *scope != Scope::Hub)
            .collect();
        let mut others = Vec::new();
        for found in self.store.named(&actor.team, &scopes, name).await? {
            let record = found.map_err(|broken| Error::RecordDamaged {
                skill: broken.skill,
                problem: broken.problem,
            })?;
            if record.is_active() {
                others.push(record);
            }
        }
        Ok(others)
    }

    /// Sets other skills of the name aside where that is asked for; by the person's own rights, not the hub's.
    async fn make_way(
        &self,
        actor: &Actor,
        skill: &HubSkill,
        name: &SkillId,
    ) -> Result<(Vec<Change>, Vec<String>), Error> {
        let (mut changes, mut names) = (Vec::new(), Vec::new());
        // What is installed has its name already.
        if skill.base_tree.is_some() && !skill.replace {
            return Ok((changes, names));
        }
        let others = self.others(actor, name).await?;
        if !skill.replace && !others.is_empty() {
            return Err(Error::SkillExists {
                skill: format!("hub/{name}"),
                in_the_way: shorten(others.iter().map(SkillRecord::full_name).collect()),
            });
        }
        for record in others {
            self.pass_removal(actor, &record, Action::Archive).await?;
            let request = removal("a skill of the hub took its name");
            changes.push(self.set_aside(actor, &request, &record, Action::Archive, "").await?.0);
            names.push(record.full_name());
        }
        Ok((changes, names))
    }

    async fn take_from_hub(
        &self,
        actor: &Actor,
        skill: &HubSkill,
        name: &SkillId,
    ) -> Result<(Change, Vec<SkillPath>), Error> {
        let hub = as_hub(actor);
        let mut approved = Approved {
            files: &skill.files,
            base_tree: String::new(),
            source: &skill.source,
        };
        let Some(record) = self.in_use(&hub, &Scope::Hub, name).await? else {
            return Ok((self.first_install(&hub, &approved, name).await?, Vec::new()));
        };
        approved.base_tree = match (&skill.base_tree, skill.local) {
            // With the record's own tree as the base there is nothing to merge: the approved files alone are the next.
            (None, _) if skill.replace => record.tree.clone(),
            (Some(_), LocalChanges::GiveUp) => record.tree.clone(),
            (None, _) => String::new(),
            (Some(base), LocalChanges::Keep) if record.tree != *base => {
                return Err(Error::StaleRevision {
                    skill: record.full_name(),
                    expected: base.clone(),
                    current: record.tree,
                });
            }
            (Some(base), LocalChanges::Keep | LocalChanges::Merge) => base.clone(),
        };
        self.update(&hub, &approved, &record).await
    }
}

fn parse(name: &str) -> Result<SkillId, Error> {
    parse_new_name(name).map_err(|problem| FieldViolations::one("skill", problem).into())
}

fn add(records: &mut Vec<SkillRecord>, record: SkillRecord) {
    if records.iter().all(|other| other.uid != record.uid) {
        records.push(record);
    }
}

fn as_hub(actor: &Actor) -> Actor {
    Actor {
        origin: Origin::Hub,
        ..actor.clone()
    }
}

fn removal(reason: &str) -> ManageRequest {
    ManageRequest {
        skill: String::new(),
        action: Manage::Delete { absorbed_into: None },
        base_revision: String::new(),
        request_id: String::new(),
        request_hash: String::new(),
        evidence: None,
        reason: reason.to_owned(),
        validate_only: false,
    }
}
