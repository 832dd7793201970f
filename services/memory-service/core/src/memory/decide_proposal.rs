//! A decision on a proposal: approve it, as it is or changed, and it takes effect like any other write; or reject it, with
//! a reason, and the same candidate is not proposed again for a while (`L-7`).
//!
//! A person decides. Two cases stand apart: what was drawn from one person's conversation for all to read is first that
//! person's to pass on or to drop (`M-13`), and a person's own correction is confirmed by the review of the conversation
//! in which they made it.

use steward_base::names::{EntryId, TeamId, UserId};
use steward_base::{Caller, FieldViolations, Identity, Origin, Role, Timestamp};

use super::list_proposals::visible_to;
use super::{Memory, check_rejection, decision, from_answer, to_answer};
use crate::access::{self, Act, Waiting};
use crate::answer::{Applied, Outcome};
use crate::book::Limits;
use crate::edit::{self, Operation, Stamp};
use crate::entry::Provenance;
use crate::error::Error;
use crate::owner::Owner;
use crate::proposal::{Decided, Proposal, ProposalId, Rejection, State, proposal_name};
use crate::store::{Decision, Frame, Loaded};

/// How a proposal is approved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Approval {
    /// What is to take effect instead of what was proposed; `None` for that.
    pub operations: Option<Vec<Operation>>,
}

/// What someone decides.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    Approve(Approval),
    Reject(String),
    /// Lets those see it who decide on what is shared.
    PassOn,
}

impl Verdict {
    const fn state(&self) -> State {
        match self {
            Self::Approve(_) => State::Approved,
            Self::Reject(_) => State::Rejected,
            Self::PassOn => State::Pending,
        }
    }
}

/// A decision, ready to be made on what is stored.
struct Sentence {
    name: String,
    verdict: Verdict,
    /// The person who decides; `None` for a review.
    by: Option<UserId>,
    at: Timestamp,
    ids: Vec<EntryId>,
    limits: Limits,
}

impl Memory {
    /// Carries a proposal out, on what is stored now and under the scan and budget of now. Approving what is approved
    /// changes nothing. The author of something drawn from their own conversation passes it on to those who decide.
    pub async fn approve_proposal(
        &self,
        caller: &Caller,
        team: &TeamId,
        id: &ProposalId,
        approval: Approval,
    ) -> Result<Proposal, Error> {
        let operations = approval.operations.as_ref().map_or(1, Vec::len);
        if !(1..=self.limits().batch).contains(&operations) {
            let problem = format!("must hold 1 to {} operations", self.limits().batch);
            return Err(Error::invalid("operations", problem));
        }
        self.decide(caller, team, id, Verdict::Approve(approval)).await
    }

    /// Rejects a proposal, with a reason of 1 to 500 characters. Rejecting what is rejected changes nothing.
    pub async fn reject_proposal(
        &self,
        caller: &Caller,
        team: &TeamId,
        id: &ProposalId,
        reason: String,
    ) -> Result<Proposal, Error> {
        let mut violations = FieldViolations::new();
        check_rejection(&reason, &mut violations);
        violations.into_result()?;
        self.decide(caller, team, id, Verdict::Reject(reason)).await
    }

    async fn decide(
        &self,
        caller: &Caller,
        team: &TeamId,
        id: &ProposalId,
        verdict: Verdict,
    ) -> Result<Proposal, Error> {
        let name = proposal_name(team, id);
        let hidden = || Error::ProposalNotFound { proposal: name.clone() };
        if caller.team.as_ref() != Some(team) {
            return Err(hidden());
        }
        let proposal = self.store.proposal(team, id).await?.ok_or_else(hidden)?;
        if !visible_to(caller).includes(&proposal) {
            return Err(hidden());
        }
        let verdict = permitted(caller, &proposal, verdict)?;
        let frame = Frame {
            proposal: Some(id.clone()),
            ..self.frame(caller, &proposal.store(team))
        };
        let most = match &verdict {
            Verdict::Approve(Approval {
                operations: Some(operations),
            }) => operations.len(),
            _ => proposal.operations.len(),
        };
        let by_person = !caller.origin.is_automatic();
        let sentence = Sentence {
            name,
            verdict,
            by: caller.user.clone().filter(|_| by_person),
            at: frame.at,
            ids: self.fresh_ids(most)?,
            limits: *self.limits.of(team),
        };
        let answer = self
            .store
            .write(frame, Box::new(move |loaded| sentence.decide(loaded)))
            .await?;
        from_answer(&answer)
    }
}

/// What the caller may do of what they want to.
fn permitted(caller: &Caller, proposal: &Proposal, verdict: Verdict) -> Result<Verdict, Error> {
    if confirms_correction(caller, proposal) {
        return Ok(verdict);
    }
    let is_author = proposal.provenance.author.is_some() && proposal.provenance.author == caller.user;
    let is_by_hand = !caller.origin.is_automatic() && matches!(caller.identity, Identity::User);
    if proposal.owner.is_shared() && !proposal.shown && is_author && is_by_hand && caller.role < Role::Maintainer {
        return Ok(match verdict {
            Verdict::Approve(_) => Verdict::PassOn,
            other => other,
        });
    }
    access::permit(caller, &proposal.owner, Act::Decide)?;
    Ok(verdict)
}

/// Whether the caller is the review of the conversation in which the person made this correction.
fn confirms_correction(caller: &Caller, proposal: &Proposal) -> bool {
    let Owner::Person(user) = &proposal.owner else {
        return false;
    };
    let said_in = proposal
        .provenance
        .evidence
        .as_ref()
        .map(|evidence| evidence.session.as_str());
    proposal.waiting == Waiting::Correction
        && caller.origin == Origin::Review
        && caller.user.as_ref() == Some(user)
        && caller.role >= Role::Member
        && caller.session().is_some()
        && caller.session() == said_in
}

impl Sentence {
    fn decide(self, loaded: &Loaded) -> Result<Decision, Error> {
        let Some(proposal) = &loaded.proposal else {
            return Err(Error::ProposalNotFound { proposal: self.name });
        };
        let state = proposal.state_at(self.at);
        let is_done = match &self.verdict {
            Verdict::PassOn => state == State::Pending && proposal.shown,
            verdict => verdict.state() == state,
        };
        if is_done {
            return Ok(Decision {
                answer: to_answer(proposal)?,
                ..Decision::default()
            });
        }
        if state != State::Pending {
            return Err(Error::ProposalDecided {
                proposal: self.name,
                state: state.as_str(),
            });
        }
        let mut kept = Decision::default();
        let mut after = proposal.clone();
        match &self.verdict {
            Verdict::PassOn => after.shown = true,
            Verdict::Approve(approval) => {
                after.edited.clone_from(&approval.operations);
                kept = self.carry_out(loaded, &after)?;
            }
            Verdict::Reject(reason) => {
                kept.rejection = self.by.is_some().then(|| Rejection {
                    fingerprint: proposal.fingerprint.clone(),
                    at: self.at,
                    reason: reason.clone(),
                });
            }
        }
        if self.verdict.state() != State::Pending {
            after.state = self.verdict.state();
            after.decided = Some(Decided {
                reason: match self.verdict {
                    Verdict::Reject(reason) => reason,
                    Verdict::Approve(_) | Verdict::PassOn => String::new(),
                },
                by: self.by,
                at: self.at,
            });
        }
        kept.answer = to_answer(&after)?;
        kept.proposals = vec![after];
        Ok(kept)
    }

    /// What was changed before it was approved has the person who changed it as its author.
    fn carry_out(&self, loaded: &Loaded, proposal: &Proposal) -> Result<Decision, Error> {
        let mut provenance = Provenance {
            approved_by: self.by.clone(),
            ..proposal.provenance.clone()
        };
        if proposal.edited.is_some() && self.by.is_some() {
            provenance.author.clone_from(&self.by);
        }
        let stamp = Stamp {
            at: self.at,
            provenance: &provenance,
        };
        let target = proposal.target;
        let operations = proposal.edited.as_ref().unwrap_or(&proposal.operations);
        let draft = edit::run(target, &loaded.book, operations, &self.ids, &self.limits, stamp).map_err(|refused| {
            let outcome = Outcome::Refused(refused.clone());
            let answer = Applied::new(outcome, target, &loaded.book, &self.limits, operations.len());
            Error::refused(refused, answer.tool_text)
        })?;
        Ok(decision(&draft))
    }
}
