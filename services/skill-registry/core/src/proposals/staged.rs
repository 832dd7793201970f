//! Automatic writes that wait for a person (`L-6`): what a review drew from outsiders' words becomes a proposal to the person
//! on whose behalf it was written.
//!
//! What waits is the action itself, over the revision that the writer read. It has passed every gate, check and screen that a
//! write passes; they are all asked again when a person approves, with the skill as it is by then. Approved, the words stay
//! the writer's: the revision names its origin and evidence, and who let it in is told by the proposal.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use steward_base::hash::sha256_parts;
use steward_base::{FieldViolations, Origin};
use unicode_normalization::UnicodeNormalization as _;

use super::{Base, Proposal, ProposalState, Weighed, id_of};
use crate::actor::Actor;
use crate::error::Error;
use crate::gate::{self, Action, Provenance};
use crate::import_skill::NewSkill;
use crate::manage_skill::{Manage, ManageRequest, Managed, answer, draft, short};
use crate::merge::{self, Merged};
use crate::name::{self, Scope};
use crate::path::SkillPath;
use crate::record::{Archival, Authorship, Files, NewRevision, SkillRecord, State};
use crate::revisions::diff;
use crate::skills::{Skills, commit_error, refused};
use crate::store::{Change, FirstAnswer, RequestKey};

/// Why such a write waits, for people and the model.
pub const CAUSE: &str = "it rests on text from outside that no person stands behind";

/// A write that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Staged {
    /// What it would do.
    pub action: Manage,
    /// Who wrote it, as the credential said, and on what grounds.
    pub by: Authorship,
    /// By which the same candidate is known again, see [`fingerprint`].
    pub fingerprint: String,
    /// Hash of the request that made it.
    pub request_hash: String,
    /// What was answered to that request.
    pub answer: String,
    /// What took effect, where a person changed it before approving.
    #[serde(default)]
    pub edited: Option<Manage>,
}

/// A text as the set of its words: case, order, blanks and signs make no difference.
fn words(text: &str) -> BTreeSet<String> {
    let folded: String = text.nfkc().flat_map(char::to_lowercase).nfkc().collect();
    let words = folded.split(|character: char| !character.is_alphanumeric());
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// What a write is about, whatever the order of its words, and for a new skill whatever it is called: the same candidate in
/// another dress has the same.
pub fn fingerprint(scope: &Scope, skill: &str, action: &Manage) -> String {
    let bag = |text: &str| words(text).into_iter().collect::<Vec<_>>().join(" ");
    let parts = match action {
        Manage::Create { content, .. } => {
            let named = words(skill);
            let rest = words(content).difference(&named).cloned().collect::<Vec<_>>();
            ["create".to_owned(), String::new(), rest.join(" "), String::new()]
        }
        Manage::Edit { content } => ["edit".to_owned(), skill.to_owned(), bag(content), String::new()],
        Manage::Patch { path, old, new, .. } => ["patch".to_owned(), format!("{skill}/{path}"), bag(new), bag(old)],
        Manage::Delete { .. } => ["delete".to_owned(), skill.to_owned(), String::new(), String::new()],
        Manage::WriteFile { path, content } => [
            "write_file".to_owned(),
            format!("{skill}/{path}"),
            bag(content),
            String::new(),
        ],
        Manage::RemoveFile { path } => [
            "remove_file".to_owned(),
            format!("{skill}/{path}"),
            String::new(),
            String::new(),
        ],
    };
    let place = [scope.label().as_bytes(), scope.owner().as_bytes()];
    sha256_parts(place.into_iter().chain(parts.iter().map(String::as_bytes)))
}

impl Manage {
    /// What it does, as the tool calls it.
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::Create { .. } => "create",
            Self::Edit { .. } => "edit",
            Self::Patch { .. } => "patch",
            Self::Delete { .. } => "delete",
            Self::WriteFile { .. } => "write_file",
            Self::RemoveFile { .. } => "remove_file",
        }
    }

    /// The file that it is about; none for a deletion.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Create { .. } | Self::Edit { .. } => Some("SKILL.md"),
            Self::Patch { path, .. } if path.is_empty() => Some("SKILL.md"),
            Self::Patch { path, .. } | Self::WriteFile { path, .. } | Self::RemoveFile { path } => Some(path),
            Self::Delete { .. } => None,
        }
    }

    /// The text that it would put there.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Create { content, .. } | Self::Edit { content } | Self::WriteFile { content, .. } => Some(content),
            Self::Patch { new, .. } => Some(new),
            Self::Delete { .. } | Self::RemoveFile { .. } => None,
        }
    }

    /// The same with another text; `None` where it has none.
    fn with_text(&self, text: &str) -> Option<Self> {
        let mut changed = self.clone();
        match &mut changed {
            Self::Create { content, .. } | Self::Edit { content } | Self::WriteFile { content, .. } => {
                text.clone_into(content);
            }
            Self::Patch { new, .. } => text.clone_into(new),
            Self::Delete { .. } | Self::RemoveFile { .. } => return None,
        }
        Some(changed)
    }
}

impl Skills {
    /// Refuses what a person rejected not long ago, however it is worded now (`L-7`).
    pub(crate) async fn check_not_rejected(
        &self,
        actor: &Actor,
        record: &SkillRecord,
        action: &Manage,
    ) -> Result<(), Error> {
        if !actor.origin.is_automatic() {
            return Ok(());
        }
        let print = fingerprint(&record.scope, record.name.as_str(), action);
        let since = self.clock.now().minus(self.settings.rejection_memory());
        match self.store.rejected(&actor.team, &print, since).await? {
            None => Ok(()),
            Some(rejected) => Err(Error::RejectedBefore {
                reason: rejected.decision.map(|decision| decision.reason).unwrap_or_default(),
            }),
        }
    }

    /// What was answered to the request, if it made a proposal.
    pub(crate) async fn replay_staged(&self, actor: &Actor, key: &RequestKey) -> Result<Option<Managed>, Error> {
        let found = self.store.proposal(&actor.team, &id_of(DRAFT, actor, &key.id)).await?;
        let staged = found.and_then(|proposal| proposal.staged);
        staged.map(|staged| first(*staged, key)).transpose()
    }

    /// Keeps a write as a proposal. The change is what it would have been.
    pub(crate) async fn stage(
        &self,
        actor: &Actor,
        request: &ManageRequest,
        change: Change,
        mut managed: Managed,
    ) -> Result<Managed, Error> {
        let record = &change.record;
        self.check_inbox(actor).await?;
        let id = id_of(DRAFT, actor, &request.request_id);
        managed.proposal = super::proposal_name(&actor.team, &id);
        managed.tool_text = answer::proposed(record, change.expected.is_none(), &id);
        let staged = Staged {
            fingerprint: fingerprint(&record.scope, record.name.as_str(), &request.action),
            action: request.action.clone(),
            by: actor.authorship(&request.reason, request.evidence.as_slice()),
            request_hash: request.request_hash.clone(),
            answer: answer::encode(&managed)?,
            edited: None,
        };
        let proposal = self.draft(id, &change, staged);
        match self.store.add_proposal(proposal, actor.job.clone()).await {
            Ok(None) => Ok(managed),
            // It waits already; a second one would ask the same person twice.
            Ok(Some(same)) => match same.staged {
                Some(staged) => read(&staged.answer),
                None => Err(Error::ProposalExists {
                    proposal: same.resource_name(),
                }),
            },
            Err(error) => Err(commit_error(error, actor, &record.full_name())
                .unwrap_or_else(|| crate::skills::too_busy(&record.full_name()))),
        }
    }

    /// Whether whoever decides has room for one more.
    async fn check_inbox(&self, actor: &Actor) -> Result<(), Error> {
        // Of one person's inbox what is theirs; of a curation's what is for the team.
        let inbox = super::Seen {
            user: actor.user.clone(),
            team: actor.user.is_none(),
        };
        let limit = self.settings.pending_proposals;
        let (waiting, _) = self.store.waiting(&actor.team, &inbox, self.clock.now()).await?;
        if waiting < limit {
            return Ok(());
        }
        Err(Error::LimitExceeded {
            what: "the number of proposals that wait for a person".to_owned(),
            limit,
            actual: waiting + 1,
        })
    }

    /// The proposal to make the change that `staged` writes.
    fn draft(&self, id: String, change: &Change, staged: Staged) -> Proposal {
        let (record, now) = (&change.record, self.clock.now());
        let seen = change
            .revision
            .as_ref()
            .and_then(|(revision, _)| revision.parent.clone());
        Proposal {
            id,
            team: record.team.clone(),
            uid: record.uid.clone(),
            skill: record.resource_name(),
            revision: String::new(),
            scope: record.scope.clone(),
            category: record.category.clone(),
            name: record.name.clone(),
            base: seen.map(|revision| Base {
                uid: record.uid.clone(),
                revision,
            }),
            author: staged.by.user.clone(),
            reason: staged.by.reason.clone(),
            state: ProposalState::Pending,
            decision: None,
            created: now,
            expires: Some(now.plus(self.settings.proposal_life())),
            staged: Some(Box::new(staged)),
        }
    }

    /// The write with what it would change now. Where the skill is gone, over what the writer saw.
    pub(super) async fn weigh_staged(&self, proposal: Proposal, staged: &Staged) -> Result<Weighed, Error> {
        let (before, after, conflicts) = match (&proposal.base, &staged.action) {
            (Some(base), action) => {
                let seen = self
                    .files_at(&proposal.team, &base.uid, &base.revision, &proposal.skill)
                    .await?;
                self.compared(&proposal, seen, action).await?
            }
            (None, Manage::Create { content, .. }) => (Files::new(), whole(content), Vec::new()),
            (None, _) => (Files::new(), Files::new(), Vec::new()),
        };
        Ok(Weighed {
            diff: diff(&before, &after),
            conflicts,
            proposal,
        })
    }

    /// The skill's files now, what they would be, and where both sides changed the same lines.
    async fn compared(
        &self,
        proposal: &Proposal,
        seen: Files,
        action: &Manage,
    ) -> Result<(Files, Files, Vec<SkillPath>), Error> {
        if matches!(action, Manage::Delete { .. }) {
            return Ok((seen, Files::new(), Vec::new()));
        }
        let scopes = [proposal.scope.clone()];
        let found = self.store.named(&proposal.team, &scopes, &proposal.name).await?;
        let record = found
            .into_iter()
            .filter_map(Result::ok)
            .find(|record| record.uid == proposal.uid);
        let record = record.ok_or_else(|| Error::SkillNotFound {
            skill: proposal.skill.clone(),
        })?;
        let theirs = draft::draw(&record, &seen, action)?.files;
        if !record.is_active() {
            return Ok((seen, theirs, Vec::new()));
        }
        let (_, ours) = self.load(&record).await?;
        let merged = merge::merge(&seen, &ours, &theirs);
        Ok((ours, merged.files, merged.conflicts))
    }

    /// The change that carries a write out, on the skill as it is now.
    pub(super) async fn staged_change(
        &self,
        actor: &Actor,
        proposal: &Proposal,
        staged: &Staged,
        reason: &str,
    ) -> Result<Change, Error> {
        let action = staged.edited.as_ref().unwrap_or(&staged.action);
        let by = Authorship {
            reason: approval(actor, staged, reason),
            ..staged.by.clone()
        };
        if let Manage::Create { content, .. } = action {
            return self.approved_creation(actor, proposal, content, by).await;
        }
        let missing = || Error::SkillNotFound {
            skill: proposal.skill.clone(),
        };
        let base = proposal.base.as_ref().ok_or_else(missing)?;
        let found = self.in_use(actor, &proposal.scope, &proposal.name).await?;
        let record = found.filter(|record| record.uid == base.uid).ok_or_else(missing)?;
        if let Manage::Delete { absorbed_into } = action {
            let into = absorbed_into.as_deref();
            return self.approved_removal(actor, &record, base, into, by).await;
        }
        Self::pass_gates(actor, &record, draft::gate_action(action))?;
        let seen = self
            .files_at(&proposal.team, &base.uid, &base.revision, &proposal.skill)
            .await?;
        let (_, ours) = self.load(&record).await?;
        let theirs = draft::draw(&record, &seen, action)?.files;
        let Merged { files, conflicts, .. } = merge::merge(&seen, &ours, &theirs);
        if !conflicts.is_empty() {
            return Err(Error::MergeConflict {
                skill: record.full_name(),
                paths: conflicts.iter().map(SkillPath::to_string).collect(),
            });
        }
        self.check_staged(actor, &record.full_name(), &record, &ours, &files, by.origin)?;
        let revision = NewRevision {
            parent: Some(&record),
            action: draft::gate_action(action).as_str(),
            files: &files,
            by,
            restored_from: None,
            created: self.clock.now(),
        };
        let revision = revision.seal(&record.uid);
        let next = record.after(&revision, &files);
        let mut change = Change::of(next, Some(record.version), Some((revision, files))).by(actor);
        change.is_patch = true;
        Ok(change)
    }

    async fn approved_creation(
        &self,
        actor: &Actor,
        proposal: &Proposal,
        content: &str,
        by: Authorship,
    ) -> Result<Change, Error> {
        let files = whole(content);
        let wanted = name::full_name(&proposal.scope, &proposal.category, &proposal.name);
        self.screen_of(by.origin, &wanted, &Files::new(), &files)?;
        let header = crate::manage_skill::check_result(
            &self.settings,
            actor,
            &wanted,
            &proposal.name,
            &Files::new(),
            &files,
            crate::manage_skill::Naming::Same,
        )?;
        let new = NewSkill {
            scope: proposal.scope.clone(),
            name: proposal.name.clone(),
            category: proposal.category.clone(),
            // An automatic writer made it, and a person let it in: it is kept up like any other of its making (`S-15`).
            provenance: Provenance::of_creation(by.origin),
            header,
            action: "create",
            reason: &by.reason,
        };
        let mut change = self.new_record(actor, new, files).await?;
        change.record.author.clone_from(&proposal.author);
        if let Some((revision, files)) = change.revision.take() {
            let sealed = NewRevision {
                parent: None,
                action: "create",
                files: &files,
                by,
                restored_from: None,
                created: revision.created,
            };
            let sealed = sealed.seal(&change.record.uid);
            change.record.revision.clone_from(&sealed.id);
            change.revision = Some((sealed, files));
        }
        Ok(change)
    }

    /// What an automatic writer proposed to delete is set aside (`S-16`), if it is still what the writer saw.
    async fn approved_removal(
        &self,
        actor: &Actor,
        record: &SkillRecord,
        base: &Base,
        absorbed_into: Option<&str>,
        by: Authorship,
    ) -> Result<Change, Error> {
        self.pass_removal(actor, record, Action::Archive).await?;
        if record.revision != base.revision {
            return Err(Error::StaleRevision {
                skill: record.full_name(),
                expected: short(&base.revision),
                current: short(&record.revision),
            });
        }
        let said = self.absorption(actor, record, absorbed_into).await?;
        if let Err(gate) = gate::absorption(by.origin, said) {
            return Err(refused(actor, record.full_name(), "archive", gate));
        }
        let (_, files) = self.load(record).await?;
        let origin = by.origin;
        let revision = NewRevision {
            parent: Some(record),
            action: Action::Archive.as_str(),
            files: &files,
            by,
            restored_from: None,
            created: self.clock.now(),
        };
        let revision = revision.seal(&record.uid);
        let archival = Archival {
            at: revision.created,
            origin,
            deleted: false,
            absorbed_into: absorbed_into.unwrap_or("").trim().to_owned(),
        };
        let next = SkillRecord {
            state: State::Archived(archival),
            ..record.after(&revision, &files)
        };
        Ok(Change::of(next, Some(record.version), Some((revision, files))).by(actor))
    }

    /// Limits, form and the scanner, for words that are an automatic writer's whoever lets them in.
    fn check_staged(
        &self,
        actor: &Actor,
        full_name: &str,
        record: &SkillRecord,
        before: &Files,
        after: &Files,
        origin: Origin,
    ) -> Result<(), Error> {
        crate::manage_skill::check_result(
            &self.settings,
            actor,
            full_name,
            &record.name,
            before,
            after,
            crate::manage_skill::Naming::Same,
        )?;
        self.screen_of(origin, full_name, before, after)
    }

    /// The proposal's write with the text that a person gave instead.
    pub(super) fn edited(staged: &Staged, text: &str) -> Result<Manage, Error> {
        let changed = staged.action.with_text(text);
        let changed = changed.ok_or_else(|| FieldViolations::one("content", "the write puts no text anywhere"))?;
        let mut violations = FieldViolations::new();
        draft::check_fields(&mut violations, &changed);
        violations.into_result()?;
        Ok(changed)
    }
}

/// Kind of id of proposals made by [`Skills::stage`].
const DRAFT: &str = "draft";

fn whole(content: &str) -> Files {
    Files::from([(SkillPath::skill_md(), content.as_bytes().to_vec())])
}

/// Why the revision is there: the writer's reason, and who let it in.
fn approval(actor: &Actor, staged: &Staged, reason: &str) -> String {
    let how = if staged.edited.is_some() {
        "changed and approved"
    } else {
        "approved"
    };
    let who = actor.user.as_ref().map_or("a person", |user| user.as_str());
    let texts = [staged.by.reason.as_str(), reason]
        .into_iter()
        .filter(|text| !text.is_empty());
    std::iter::once(format!("{how} by {who}"))
        .chain(texts.map(str::to_owned))
        .collect::<Vec<_>>()
        .join(": ")
}

fn first(staged: Staged, key: &RequestKey) -> Result<Managed, Error> {
    let first = FirstAnswer {
        hash: staged.request_hash,
        answer: staged.answer,
    };
    crate::skills::read_answer(&first, key)
}

fn read(answer: &str) -> Result<Managed, Error> {
    let damaged = |error: serde_json::Error| crate::error::StoreFault::Damaged {
        what: format!("a proposal's answer: {error}"),
    };
    Ok(serde_json::from_str(answer).map_err(damaged)?)
}

#[cfg(test)]
mod tests;
