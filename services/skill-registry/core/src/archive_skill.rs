//! Setting skills aside, bringing them back, protecting and destroying them: acts of people, by resource name.

use steward_base::FieldViolations;

use crate::actor::Actor;
use crate::error::Error;
use crate::gate::{Action, Gate, Ruling};
use crate::manage_skill::{Manage, ManageRequest};
use crate::name::Scope;
use crate::record::{NewRevision, SkillRecord, State};
use crate::skills::{Skills, TRIES, commit_error, parse_name, refused, too_busy};
use crate::store::{Change, Purge};

impl Skills {
    /// Takes a skill out of use. One that is archived stays so.
    pub async fn archive_skill(&self, actor: &Actor, name: &str) -> Result<SkillRecord, Error> {
        let wanted = parse_name("name", name)?;
        let _turn = self.turn(&actor.team, name).await;
        for _ in 0..TRIES {
            let record = self.resolve_resource(actor, &wanted).await?;
            if !record.is_active() {
                return Ok(record);
            }
            self.pass_removal(actor, &record, Action::Archive).await?;
            let request = no_words();
            let (change, next) = self.set_aside(actor, &request, &record, Action::Archive, "").await?;
            if self.apply(actor, change, &record).await? {
                return Ok(next);
            }
        }
        Err(too_busy(name))
    }

    /// Brings an archived skill back as it was. One in use stays so.
    pub async fn restore_skill(&self, actor: &Actor, name: &str) -> Result<SkillRecord, Error> {
        let wanted = parse_name("name", name)?;
        let _turn = self.turn(&actor.team, name).await;
        for _ in 0..TRIES {
            let record = self.resolve_resource(actor, &wanted).await?;
            if record.is_active() {
                return Ok(record);
            }
            if let State::Archived(archival) = &record.state
                && archival.is_revocation()
                && record.scope == Scope::Hub
            {
                // Changed here, its tree may not be the revoked one; of all others the store knows whether theirs is.
                return Err(refused(
                    actor,
                    record.full_name(),
                    Action::Restore.as_str(),
                    Gate::Revoked,
                ));
            }
            Self::pass_gates(actor, &record, Action::Restore)?;
            let (change, next) = self.brought_back(actor, &record, "").await?;
            if self.apply(actor, change, &record).await? {
                return Ok(next);
            }
        }
        Err(too_busy(name))
    }

    /// The change that puts an archived skill back into use as it was.
    pub(crate) async fn brought_back(
        &self,
        actor: &Actor,
        record: &SkillRecord,
        reason: &str,
    ) -> Result<(Change, SkillRecord), Error> {
        let (_, files) = self.load(record).await?;
        let new = NewRevision {
            parent: Some(record),
            action: Action::Restore.as_str(),
            files: &files,
            by: actor.authorship(reason, &[]),
            restored_from: Some(record.revision.clone()),
            created: self.clock.now(),
        };
        let revision = new.seal(&record.uid);
        let next = SkillRecord {
            state: State::Active,
            ..record.after(&revision, &files)
        };
        let change = Change::of(next.clone(), Some(record.version), Some((revision, files))).by(actor);
        Ok((change, next))
    }

    /// Pins or unpins a skill.
    pub async fn pin_skill(&self, actor: &Actor, name: &str, pinned: bool) -> Result<SkillRecord, Error> {
        let wanted = parse_name("name", name)?;
        let _turn = self.turn(&actor.team, name).await;
        for _ in 0..TRIES {
            let record = self.resolve_resource(actor, &wanted).await?;
            if record.pinned == pinned {
                return Ok(record);
            }
            Self::pass_gates(actor, &record, if pinned { Action::Pin } else { Action::Unpin })?;
            let next = SkillRecord {
                pinned,
                version: record.version + 1,
                updated: self.clock.now(),
                ..record.clone()
            };
            let change = Change {
                fence: actor.job.clone(),
                ..Change::of(next.clone(), Some(record.version), None)
            };
            if self.apply(actor, change, &record).await? {
                return Ok(next);
            }
        }
        Err(too_busy(name))
    }

    /// Destroys an archived skill with all its revisions (`S-16`). Returns how many there were.
    pub async fn purge_skill(&self, actor: &Actor, name: &str) -> Result<u64, Error> {
        let wanted = parse_name("name", name)?;
        let _turn = self.turn(&actor.team, name).await;
        for _ in 0..TRIES {
            let record = self.resolve_resource(actor, &wanted).await?;
            let ruling = Self::pass_gates(actor, &record, Action::Purge)?;
            if record.is_active() || ruling != Ruling::Allow {
                return Err(FieldViolations::one("name", "is in use; archive it first").into());
            }
            let purge = Purge {
                record: record.clone(),
                by: actor.audit_name(),
                at: self.clock.now(),
            };
            match self.store.purge(purge).await {
                Ok(revisions) => return Ok(revisions),
                Err(error) => {
                    if let Some(error) = commit_error(error, actor, &record.full_name()) {
                        return Err(error);
                    }
                }
            }
        }
        Err(too_busy(name))
    }

    /// Whether the change was applied; `false` to look again.
    async fn apply(&self, actor: &Actor, change: Change, record: &SkillRecord) -> Result<bool, Error> {
        match self.store.commit(change).await {
            Ok(()) => Ok(true),
            Err(error) => commit_error(error, actor, &record.full_name()).map_or(Ok(false), Err),
        }
    }
}

/// For a revision that people make without giving a reason.
fn no_words() -> ManageRequest {
    ManageRequest {
        skill: String::new(),
        action: Manage::Delete { absorbed_into: None },
        base_revision: String::new(),
        request_id: String::new(),
        request_hash: String::new(),
        evidence: None,
        reason: String::new(),
        validate_only: false,
    }
}
