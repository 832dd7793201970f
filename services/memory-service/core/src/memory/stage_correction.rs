//! A person's correction, staged in the same turn without a model: a candidate for their own memory that the review of the
//! conversation confirms, merges or drops. Nothing is in memory before.

use steward_base::names::{SessionId, TeamId, UserId};
use steward_base::{Caller, FieldViolations, Integrity};
use steward_guard::correction::{self, Correction, Kind};

use super::apply::check_spans;
use super::{Memory, check_request_id, from_answer, request_key, to_answer};
use crate::access::{self, Act, Waiting};
use crate::book::Limits;
use crate::edit::{self, Operation, Stamp};
use crate::entry::{Basis, Evidence, Provenance};
use crate::error::Error;
use crate::near::fingerprint;
use crate::owner::{Owner, StoreName, Target};
use crate::proposal::{Proposal, ProposalId, State};
use crate::screen;
use crate::store::{Decision, Loaded};

/// Longest message that is looked at, in characters.
const MOST_TEXT: usize = 100_000;

/// A message of the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageRequest {
    /// The team.
    pub team: TeamId,
    /// The person who wrote it.
    pub user: UserId,
    /// The session in which it stands.
    pub session: SessionId,
    /// The message's span there.
    pub span: String,
    /// What the person said.
    pub text: String,
    /// Makes a retry safe.
    pub request_id: String,
}

/// Records what is wrong with the parts of a [`StageRequest`].
pub fn check_stage(request_id: &str, span: &str, text: &str, violations: &mut FieldViolations) {
    check_request_id(request_id, violations);
    check_spans("span", std::slice::from_ref(&span.to_owned()), violations);
    if text.chars().count() > MOST_TEXT {
        violations.add("text", format!("must have at most {MOST_TEXT} characters"));
    }
}

struct Staging {
    operations: Vec<Operation>,
    provenance: Provenance,
    id: ProposalId,
    owner: Owner,
    target: Target,
    at: steward_base::Timestamp,
    limits: Limits,
}

impl Memory {
    /// Stages what the message asks for, if it asks for anything; a candidate that waits already is not staged again, and
    /// one that the scan refuses not at all. Answers what is staged of this message.
    pub async fn stage_correction(&self, caller: &Caller, request: &StageRequest) -> Result<Vec<Proposal>, Error> {
        let mut violations = FieldViolations::new();
        check_stage(&request.request_id, &request.span, &request.text, &mut violations);
        let elsewhere = caller
            .session()
            .is_some_and(|session| session != request.session.as_str());
        if elsewhere {
            violations.add("session", "must be the session of the credential");
        }
        violations.into_result()?;
        let notes = StoreName {
            team: request.team.clone(),
            owner: Owner::Person(request.user.clone()),
            target: Target::Notes,
        };
        access::check(caller, &notes, Act::Decide)?;
        let mut staged = Vec::new();
        for (index, correction) in correction::find(&request.text).into_iter().enumerate() {
            if screen::finding(&correction.text).is_none() {
                staged.extend(self.stage(caller, request, index, correction).await?);
            }
        }
        Ok(staged)
    }

    async fn stage(
        &self,
        caller: &Caller,
        request: &StageRequest,
        index: usize,
        correction: Correction,
    ) -> Result<Option<Proposal>, Error> {
        let target = match correction.kind {
            Kind::Always | Kind::Never => Target::Profile,
            Kind::Remember => Target::Notes,
        };
        let store = StoreName {
            team: request.team.clone(),
            owner: Owner::Person(request.user.clone()),
            target,
        };
        let operations = vec![Operation::Add {
            content: correction.text,
        }];
        let mut frame = self.frame(caller, &store);
        let id = format!("{}/{index}", request.request_id);
        frame.request = Some(request_key("stage", caller, &id, &operations)?);
        frame.fingerprint = Some(fingerprint(&operations));
        let evidence = Evidence {
            session: request.session.clone(),
            spans: vec![request.span.clone()],
            basis: Some(Basis::Stated),
            integrity: Some(Integrity::Person),
        };
        let staging = Staging {
            operations,
            provenance: Provenance::of(caller, Some(evidence), String::new()),
            id: ProposalId::from(self.fresh_id()?),
            owner: store.owner.clone(),
            target,
            at: frame.at,
            limits: self.limits_of(&store),
        };
        let answer = self
            .store
            .write(frame, Box::new(move |loaded| staging.decide(loaded)))
            .await?;
        from_answer(&answer)
    }
}

impl Staging {
    fn decide(self, loaded: &Loaded) -> Result<Decision, Error> {
        let waits = loaded.same.as_ref();
        let stamp = Stamp {
            at: self.at,
            provenance: &self.provenance,
        };
        let ids = [self.id.as_entry()];
        // What is there already needs no candidate; what does not fit may fit once the review has merged it.
        let is_known = edit::run(self.target, &loaded.book, &self.operations, &ids, &self.limits, stamp)
            .is_ok_and(|draft| !draft.is_change());
        if waits.is_some() || is_known || loaded.pending >= self.limits.pending {
            return Ok(Decision {
                answer: to_answer(&waits)?,
                ..Decision::default()
            });
        }
        let proposal = Proposal {
            fingerprint: fingerprint(&self.operations),
            id: self.id,
            owner: self.owner,
            target: self.target,
            operations: self.operations,
            waiting: Waiting::Correction,
            provenance: self.provenance,
            created: self.at,
            state: State::Pending,
            decided: None,
            expires: self.at.plus(self.limits.proposal_life),
            shown: true,
            edited: None,
        };
        Ok(Decision {
            answer: to_answer(&Some(&proposal))?,
            proposals: vec![proposal],
            ..Decision::default()
        })
    }
}
