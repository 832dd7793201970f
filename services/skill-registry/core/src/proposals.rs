//! What waits for a person's decision: from a person's own skills to the team's, decided by a maintainer (`S-20`), and writes of
//! automatic writers that rest on outsiders' words ([`staged`], `L-6`). Listing and counting is in [`inbox`].
//!
//! What a person proposes is one revision, and later changes of the skill are not. The decision and what it does to the
//! library are one change. Where the skill of that name moved on, both are merged over the state that the proposal rests on;
//! where that fails, nobody can approve it, and nothing is overwritten. Nothing is decided by silence: what nobody decides
//! on expires.

pub mod inbox;
pub mod staged;

use serde::{Deserialize, Serialize};
use steward_base::hash::sha256_parts;
use steward_base::names::{SkillId, TeamId, UserId};
use steward_base::{FieldViolations, Role, Timestamp};

use crate::actor::Actor;
use crate::error::Error;
use crate::gate::{Action, Gate, Provenance};
use crate::header;
use crate::import_skill::NewSkill;
use crate::manage_skill::check_request_id;
use crate::merge::{self, Merged};
use crate::name::{self, Category, Scope};
use crate::path::SkillPath;
use crate::record::{Files, SkillRecord};
use crate::revisions::diff;
use crate::screen;
use crate::skills::{Skills, TRIES, commit_error, refused, too_busy};
use crate::store::Change;

pub use inbox::{Inbox, Seen};
pub use staged::Staged;

const MAX_REASON_CHARS: usize = 500;

/// Where a proposal stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProposalState {
    /// Nobody has decided.
    Pending,
    /// It took effect.
    Approved,
    /// It never will.
    Rejected,
    /// Nobody decided in time. It is still there and takes no effect.
    Expired,
}

impl ProposalState {
    /// The name in stores.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
        }
    }

    /// From its name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Pending, Self::Approved, Self::Rejected, Self::Expired]
            .into_iter()
            .find(|state| state.as_str() == name)
    }
}

/// Who decided, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The person.
    pub by: Option<UserId>,
    /// When.
    pub at: Timestamp,
    /// May be empty.
    pub reason: String,
}

/// The state of the skill that a proposal was compared with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    /// Which skill.
    pub uid: String,
    /// Which revision.
    pub revision: String,
}

/// A skill on its way, or a write that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// 32 hexadecimal characters; the same request makes the same one.
    pub id: String,
    /// The tenant.
    pub team: TeamId,
    /// Identity of the proposed skill, or of the one that the write is for.
    pub uid: String,
    /// Its resource name then.
    pub skill: String,
    /// Which revision; empty for a write.
    pub revision: String,
    /// Where it would stand.
    #[serde(default = "team_library")]
    pub scope: Scope,
    /// The name that it has and would have.
    pub name: SkillId,
    /// The shelf that it would have, if it is new.
    pub category: Category,
    /// What it was compared with; none if there was no such skill.
    pub base: Option<Base>,
    /// Who made it, or on whose behalf it was written; none for a curation's.
    pub author: Option<UserId>,
    /// Why.
    pub reason: String,
    /// Where it stands.
    pub state: ProposalState,
    /// Once there is one.
    pub decision: Option<Decision>,
    /// When it was made.
    pub created: Timestamp,
    /// When it expires unless somebody decides before; none for one that an earlier version kept.
    #[serde(default)]
    pub expires: Option<Timestamp>,
    /// The write that waits; none where a person proposes a skill.
    #[serde(default)]
    pub staged: Option<Box<Staged>>,
}

const fn team_library() -> Scope {
    Scope::Team
}

impl Proposal {
    /// Where it stands at `at`: nobody is asked for ever.
    pub fn state_at(&self, at: Timestamp) -> ProposalState {
        match (self.state, self.expires) {
            (ProposalState::Pending, Some(expires)) if expires <= at => ProposalState::Expired,
            (state, _) => state,
        }
    }

    /// What only one pending proposal may be about: the proposed skill, or the same write.
    pub fn slot(&self) -> String {
        match &self.staged {
            None => self.uid.clone(),
            Some(staged) => format!("write/{}", staged.fingerprint),
        }
    }

    /// Whether it is about one person's own skills, and theirs alone to see.
    pub const fn is_private(&self) -> bool {
        matches!(self.scope, Scope::User(_))
    }

    /// `teams/{team}/skillProposals/{proposal}`.
    pub fn resource_name(&self) -> String {
        proposal_name(&self.team, &self.id)
    }

    /// The resource name that it would have, or of the skill that it would change.
    pub fn target(&self) -> String {
        name::resource_name(&self.team, &self.scope, self.name.as_str())
    }
}

/// A proposal with what it would do now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weighed {
    /// The proposal.
    pub proposal: Proposal,
    /// A unified diff of what it would change.
    pub diff: String,
    /// Where both sides changed the same lines.
    pub conflicts: Vec<SkillPath>,
}

/// A request to propose.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProposeRequest {
    /// As a view takes it.
    pub skill: String,
    /// Why.
    pub reason: String,
    /// Shelf in the team's library; empty: as it is.
    pub category: String,
    /// Makes a retry safe.
    pub request_id: String,
}

/// The team's skill with its files, if there is one, and what approving would make of them.
struct Weighing {
    target: Option<(SkillRecord, Files)>,
    merged: Merged,
}

impl Skills {
    /// Proposes a skill of the actor's own.
    pub async fn propose_skill(&self, actor: &Actor, request: &ProposeRequest) -> Result<Proposal, Error> {
        let mut violations = FieldViolations::new();
        check_request_id(&mut violations, &request.request_id);
        check_reason(&mut violations, &request.reason, false);
        let category = violations.take("category", Category::parse(&request.category));
        violations.into_result()?;
        let record = self.resolve_active(actor, &request.skill).await?;
        let (Scope::User(author), Some(_)) = (record.scope.clone(), record.header()) else {
            return Err(FieldViolations::one("skill", "must be one of your own that can be used").into());
        };
        let id = id_of("proposal", actor, &request.request_id);
        if let Some(first) = self.store.proposal(&actor.team, &id).await? {
            return if first.uid == record.uid && first.reason == request.reason {
                Ok(first)
            } else {
                Err(Error::RequestIdReused {
                    request_id: request.request_id.clone(),
                })
            };
        }
        let target = self.in_use(actor, &Scope::Team, &record.name).await?;
        let category = category.filter(|category| *category != Category::default());
        let now = self.clock.now();
        let proposal = Proposal {
            id,
            team: actor.team.clone(),
            uid: record.uid.clone(),
            skill: record.resource_name(),
            revision: record.revision.clone(),
            scope: Scope::Team,
            category: category.unwrap_or_else(|| record.category.clone()),
            name: record.name,
            base: target.map(|target| Base {
                uid: target.uid,
                revision: target.revision,
            }),
            author: Some(author),
            reason: request.reason.clone(),
            state: ProposalState::Pending,
            decision: None,
            created: now,
            expires: Some(now.plus(self.settings.proposal_life())),
            staged: None,
        };
        match self.store.add_proposal(proposal.clone(), None).await {
            Ok(None) => Ok(proposal),
            Ok(Some(pending)) => Err(Error::ProposalExists {
                proposal: pending.resource_name(),
            }),
            Err(error) => Err(commit_error(error, actor, &proposal.skill).unwrap_or_else(|| too_busy(&proposal.skill))),
        }
    }

    /// A proposal with what it would change as things are now.
    pub async fn get_proposal(&self, actor: &Actor, name: &str) -> Result<Weighed, Error> {
        let proposal = self.proposal(actor, name).await?;
        if let Some(staged) = proposal.staged.clone()
            && proposal.state == ProposalState::Pending
        {
            return self.weigh_staged(proposal, &staged).await;
        }
        if proposal.state != ProposalState::Pending {
            return Ok(Weighed {
                proposal,
                diff: String::new(),
                conflicts: Vec::new(),
            });
        }
        let weighing = self.weigh(actor, &proposal).await?;
        let before = weighing.target.map(|(_, files)| files).unwrap_or_default();
        Ok(Weighed {
            diff: diff(&before, &weighing.merged.files),
            conflicts: weighing.merged.conflicts,
            proposal,
        })
    }

    /// Carries a proposal out: makes the proposed files the team's, or does the write, with the text `content` where a
    /// person gives another one.
    pub async fn approve_proposal(
        &self,
        actor: &Actor,
        name: &str,
        reason: &str,
        content: Option<&str>,
    ) -> Result<Proposal, Error> {
        let mut violations = FieldViolations::new();
        check_reason(&mut violations, reason, false);
        violations.into_result()?;
        for _ in 0..TRIES {
            let mut proposal = self.pending(actor, name).await?;
            may_approve(actor, &proposal)?;
            edit(&mut proposal, content)?;
            let _turn = self.turn(&actor.team, proposal.name.as_str()).await;
            let decided = self.decided(actor, &proposal, ProposalState::Approved, reason);
            let mut change = match &proposal.staged {
                Some(staged) => self.staged_change(actor, &proposal, staged, reason).await?,
                None => self.promotion(actor, &proposal).await?,
            };
            let full_name = change.record.full_name();
            change.decides = Some(decided.clone());
            match self.store.commit(change).await {
                Ok(()) => return Ok(decided),
                Err(error) => {
                    if let Some(error) = commit_error(error, actor, &full_name) {
                        return Err(error);
                    }
                }
            }
        }
        Err(too_busy(name))
    }

    /// Turns a proposal down, or withdraws one's own.
    pub async fn reject_proposal(&self, actor: &Actor, name: &str, reason: &str) -> Result<Proposal, Error> {
        let mut violations = FieldViolations::new();
        check_reason(&mut violations, reason, true);
        violations.into_result()?;
        let proposal = self.pending(actor, name).await?;
        is_person(actor, "reject_proposal")?;
        let decided = self.decided(actor, &proposal, ProposalState::Rejected, reason);
        if self.store.decide(decided.clone()).await? {
            Ok(decided)
        } else {
            self.pending(actor, name).await
        }
    }

    /// The proposal as it stands now, if it exists for the actor.
    async fn proposal(&self, actor: &Actor, name: &str) -> Result<Proposal, Error> {
        let missing = || Error::ProposalNotFound {
            proposal: name.to_owned(),
        };
        let pattern = "teams/{team}/skillProposals/{proposal}";
        let [team, id] = steward_base::names::segments(name, ["teams", "skillProposals"], pattern)
            .map_err(|problem| FieldViolations::one("name", problem.to_string()))?;
        if team != actor.team.as_str() {
            return Err(missing());
        }
        let mut found = self.store.proposal(&actor.team, id).await?.ok_or_else(missing)?;
        found.state = found.state_at(self.clock.now());
        if Seen::of(actor).has(&found) {
            Ok(found)
        } else {
            Err(missing())
        }
    }

    async fn pending(&self, actor: &Actor, name: &str) -> Result<Proposal, Error> {
        let found = self.proposal(actor, name).await?;
        if found.state == ProposalState::Pending {
            return Ok(found);
        }
        Err(Error::ProposalDecided {
            proposal: name.to_owned(),
            state: found.state.as_str(),
        })
    }

    /// What approving would make of the team's library.
    async fn weigh(&self, actor: &Actor, proposal: &Proposal) -> Result<Weighing, Error> {
        let theirs = self
            .files_at(&proposal.team, &proposal.uid, &proposal.revision, &proposal.skill)
            .await?;
        let Some(target) = self.in_use(actor, &Scope::Team, &proposal.name).await? else {
            let merged = Merged {
                files: theirs,
                ..Merged::default()
            };
            return Ok(Weighing { target: None, merged });
        };
        let (_, ours) = self.load(&target).await?;
        let base = match &proposal.base {
            Some(base) if base.uid == target.uid => {
                self.files_at(&proposal.team, &base.uid, &base.revision, &target.full_name())
                    .await?
            }
            // The team made one of this name only since; there is no state that both rest on.
            _ => Files::new(),
        };
        let merged = merge::merge(&base, &ours, &theirs);
        Ok(Weighing {
            target: Some((target, ours)),
            merged,
        })
    }

    async fn files_at(&self, team: &TeamId, uid: &str, revision: &str, skill: &str) -> Result<Files, Error> {
        let found = self.store.revision(team, uid, revision).await?;
        let revision = found.ok_or_else(|| Error::RevisionNotFound {
            skill: skill.to_owned(),
            revision: crate::manage_skill::short(revision),
        })?;
        Ok(self.store.files(team, &revision).await?)
    }

    async fn promotion(&self, actor: &Actor, proposal: &Proposal) -> Result<Change, Error> {
        let weighing = self.weigh(actor, proposal).await?;
        if !weighing.merged.conflicts.is_empty() {
            return Err(Error::MergeConflict {
                skill: name::full_name(&Scope::Team, &proposal.category, &proposal.name),
                paths: weighing.merged.conflicts.iter().map(SkillPath::to_string).collect(),
            });
        }
        let author = proposal.author.as_ref().map_or("", |author| author.as_str());
        let reason = format!("proposed by {author}: {}", proposal.reason);
        let files = weighing.merged.files;
        if let Some((target, before)) = weighing.target {
            Self::pass_gates(actor, &target, Action::Edit)?;
            return self.next_record(actor, &target, "promote", &reason, &before, files);
        }
        let bytes = files.get(&SkillPath::skill_md()).map(Vec::as_slice).unwrap_or_default();
        let header = header::parse_bytes(bytes).map_err(|problem| Error::SkillInvalid {
            skill: proposal.skill.clone(),
            violations: FieldViolations::one("SKILL.md", problem.to_string()),
        })?;
        let new = NewSkill {
            scope: Scope::Team,
            name: proposal.name.clone(),
            category: proposal.category.clone(),
            // A person decided: whatever made the draft, no automatic process owns it (`S-15`).
            provenance: Provenance::UserMade,
            header,
            action: "promote",
            reason: &reason,
        };
        let mut change = self.new_record(actor, new, files).await?;
        change.record.author.clone_from(&proposal.author);
        Ok(change)
    }

    fn decided(&self, actor: &Actor, proposal: &Proposal, state: ProposalState, reason: &str) -> Proposal {
        Proposal {
            state,
            decision: Some(Decision {
                by: actor.user.clone(),
                at: self.clock.now(),
                reason: reason.to_owned(),
            }),
            ..proposal.clone()
        }
    }
}

/// Only a person decides, and only one of standing: what is for the team's library takes a maintainer.
fn may_approve(actor: &Actor, proposal: &Proposal) -> Result<(), Error> {
    is_person(actor, "approve_proposal")?;
    if proposal.is_private() || actor.role >= Role::Maintainer {
        return Ok(());
    }
    Err(Error::RoleRequired {
        role: actor.role,
        required: Role::Maintainer,
    })
}

fn is_person(actor: &Actor, action: &'static str) -> Result<(), Error> {
    if actor.is_agent || actor.user.is_none() || actor.origin.is_automatic() {
        return Err(refused(actor, "a proposal".to_owned(), action, Gate::PersonOnly));
    }
    Ok(())
}

/// Puts the text that a person gives in the place of the proposed one.
fn edit(proposal: &mut Proposal, content: Option<&str>) -> Result<(), Error> {
    let Some(content) = content else { return Ok(()) };
    let Some(staged) = proposal.staged.as_deref_mut() else {
        return Err(
            FieldViolations::one("content", "a skill is proposed as it is; change it and propose it anew").into(),
        );
    };
    staged.edited = Some(Skills::edited(staged, content)?);
    Ok(())
}

/// Where a page goes on: by time, then id.
pub fn place(proposal: &Proposal) -> String {
    format!("{:020}-{}", proposal.created.as_micros(), proposal.id)
}

fn proposal_name(team: &TeamId, id: &str) -> String {
    format!("teams/{team}/skillProposals/{id}")
}

fn id_of(kind: &str, actor: &Actor, request_id: &str) -> String {
    let mut id = sha256_parts([kind.as_bytes(), actor.request_scope().as_bytes(), request_id.as_bytes()]);
    id.truncate(32);
    id
}

fn check_reason(violations: &mut FieldViolations, reason: &str, required: bool) {
    let length = reason.chars().count();
    if length > MAX_REASON_CHARS || required && reason.trim().is_empty() {
        let least = if required { "1 to " } else { "at most " };
        violations.add("reason", format!("must have {least}{MAX_REASON_CHARS} characters"));
    } else if screen::has_secret(reason) {
        violations.add("reason", "must not hold a credential");
    }
}

#[cfg(test)]
mod tests;
