//! A person's decision on a proposal: approve it, and it takes effect like any other write; or reject it for good.

use steward_base::names::{EntryId, TeamId, UserId};
use steward_base::{Caller, FieldViolations, Timestamp};

use super::list_proposals::visible_to;
use super::{Memory, check_rejection, decision, from_answer, to_answer};
use crate::access::{self, Act};
use crate::answer::{Applied, Outcome};
use crate::book::Limits;
use crate::edit::{self, Stamp};
use crate::entry::Provenance;
use crate::error::Error;
use crate::proposal::{Decided, Proposal, ProposalId, State, proposal_name};
use crate::store::{Decision, Frame, Loaded};

/// A decision, ready to be made on what is stored.
struct Verdict {
    name: String,
    state: State,
    by: Option<UserId>,
    reason: String,
    at: Timestamp,
    ids: Vec<EntryId>,
    limits: Limits,
}

impl Memory {
    /// Carries a proposal out, on what is stored now and under the scan and budget of now. Approving what is approved
    /// changes nothing.
    pub async fn approve_proposal(&self, caller: &Caller, team: &TeamId, id: &ProposalId) -> Result<Proposal, Error> {
        self.decide(caller, team, id, State::Approved, String::new()).await
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
        self.decide(caller, team, id, State::Rejected, reason).await
    }

    async fn decide(
        &self,
        caller: &Caller,
        team: &TeamId,
        id: &ProposalId,
        state: State,
        reason: String,
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
        access::permit(caller, &proposal.owner, Act::Decide)?;
        let frame = Frame {
            proposal: Some(id.clone()),
            ..self.frame(caller, &proposal.store(team))
        };
        let verdict = Verdict {
            name,
            state,
            by: caller.user.clone(),
            reason,
            at: frame.at,
            ids: self.fresh_ids(proposal.operations.len())?,
            limits: self.limits,
        };
        let answer = self
            .store
            .write(frame, Box::new(move |loaded| verdict.decide(loaded)))
            .await?;
        from_answer(&answer)
    }
}

impl Verdict {
    fn decide(self, loaded: &Loaded) -> Result<Decision, Error> {
        let Some(proposal) = &loaded.proposal else {
            return Err(Error::ProposalNotFound { proposal: self.name });
        };
        if proposal.state == self.state {
            return Ok(Decision {
                answer: to_answer(proposal)?,
                ..Decision::default()
            });
        }
        if proposal.state != State::Pending {
            return Err(Error::ProposalDecided {
                proposal: self.name,
                state: proposal.state.as_str(),
            });
        }
        let mut kept = if self.state == State::Approved {
            self.carry_out(loaded, proposal)?
        } else {
            Decision::default()
        };
        let decided = Decided {
            by: self.by,
            at: self.at,
            reason: self.reason,
        };
        let proposal = Proposal {
            state: self.state,
            decided: Some(decided),
            ..proposal.clone()
        };
        kept.answer = to_answer(&proposal)?;
        kept.proposal = Some(proposal);
        Ok(kept)
    }

    fn carry_out(&self, loaded: &Loaded, proposal: &Proposal) -> Result<Decision, Error> {
        let provenance = Provenance {
            approved_by: self.by.clone(),
            ..proposal.provenance.clone()
        };
        let stamp = Stamp {
            at: self.at,
            provenance: &provenance,
        };
        let (target, operations) = (proposal.target, &proposal.operations);
        let draft = edit::run(target, &loaded.book, operations, &self.ids, &self.limits, stamp).map_err(|refused| {
            let outcome = Outcome::Refused(refused.clone());
            let answer = Applied::new(outcome, target, &loaded.book, &self.limits, operations.len());
            Error::refused(refused, answer.tool_text)
        })?;
        Ok(decision(&draft))
    }
}
