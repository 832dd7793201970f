//! The memory tool: operations on one store, all or none (`M-3` to `M-9`).

use serde::Serialize;
use steward_base::{Caller, FieldViolations, Identity};

use super::{Memory, check_reason, check_request_id, decision, from_answer, request_key, to_answer};
use crate::access::{self, Act, Gate, Waiting};
use crate::answer::{Applied, Outcome};
use crate::book::Limits;
use crate::edit::{self, Draft, Operation, Stamp};
use crate::entry::{Evidence, Provenance};
use crate::error::Error;
use crate::freshness::Holds;
use crate::near::{fingerprint, repeats};
use crate::owner::{Owner, StoreName, Target};
use crate::proposal::{Proposal, ProposalId, State};
use crate::refusal::{Refusal, Refused};
use crate::store::{Decision, Loaded};

/// Most spans that one write may cite.
const MAX_SPANS: usize = 100;
/// Longest name of a turn, in characters.
const MAX_TURN: usize = 128;

/// Operations on one store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplyRequest {
    /// The store.
    pub store: StoreName,
    /// What to do, in order.
    pub operations: Vec<Operation>,
    /// The store's etag as the caller read it; `None` for no check.
    pub etag: Option<String>,
    /// Makes a retry safe.
    pub request_id: String,
    /// What the write rests on.
    pub evidence: Option<Evidence>,
    /// Why, in the writer's words.
    pub reason: String,
    /// The turn in which the tool was called, for callers whose credential does not say; may be empty.
    pub turn: String,
    /// How long what is added or replaced holds.
    pub holds: Holds,
}

/// Records what is wrong with the parts of an [`ApplyRequest`], whatever is stored, so that a reader of the wire can name
/// these fields together with those that it could not read. `operations` is how many there are, `spans` what is cited.
pub fn check_apply(
    request_id: &str,
    reason: &str,
    turn: &str,
    operations: usize,
    spans: &[String],
    limits: &Limits,
    violations: &mut FieldViolations,
) {
    check_request_id(request_id, violations);
    check_reason(reason, violations);
    if turn.chars().count() > MAX_TURN {
        violations.add("turn", format!("must have at most {MAX_TURN} characters"));
    }
    if !(1..=limits.batch).contains(&operations) {
        violations.add("operations", format!("must hold 1 to {} operations", limits.batch));
    }
    if spans.len() > MAX_SPANS {
        violations.add("evidence.spans", format!("must hold at most {MAX_SPANS} ids"));
    } else {
        check_spans("evidence.spans", spans, violations);
    }
}

/// Records which of `spans` is no span's id, in a field with one id or several.
pub(super) fn check_spans(field: &str, spans: &[String], violations: &mut FieldViolations) {
    if let Some(at) = spans.iter().position(|span| !is_span_id(span)) {
        let field = if field.ends_with('s') {
            format!("{field}[{at}]")
        } else {
            field.to_owned()
        };
        violations.add(field, "must have the form s{message} or s{message}.{index}");
    }
}

/// Whether a text is the id of a span: `s{message}` or `s{message}.{index}`.
fn is_span_id(text: &str) -> bool {
    let number = |digits: &str| (1..=10).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit());
    text.strip_prefix('s').is_some_and(|rest| match rest.split_once('.') {
        None => number(rest),
        Some((message, index)) => number(message) && number(index),
    })
}

/// What identifies a request beside its id.
#[derive(Serialize)]
struct Content<'a> {
    store: String,
    operations: &'a [Operation],
    etag: Option<&'a str>,
    evidence: Option<&'a Evidence>,
    reason: &'a str,
    #[serde(skip_serializing_if = "Holds::is_unlimited")]
    holds: &'a Holds,
}

/// One call, ready to be decided on what is stored.
struct Call {
    request: ApplyRequest,
    provenance: Provenance,
    gate: Gate,
    turn: String,
    ids: Vec<steward_base::names::EntryId>,
    proposal: ProposalId,
    limits: Limits,
    at: steward_base::Timestamp,
    automatic: bool,
    /// What the person keeps for themselves, where others would read what the agent writes.
    private: Vec<String>,
}

impl Memory {
    /// Carries out the operations, or proposes them, or refuses them ([`Error::Refused`]). The same request id again
    /// gives the first answer, refusals included.
    pub async fn apply(&self, caller: &Caller, request: ApplyRequest) -> Result<Applied, Error> {
        let mut violations = FieldViolations::new();
        check_apply(
            &request.request_id,
            &request.reason,
            &request.turn,
            request.operations.len(),
            request
                .evidence
                .as_ref()
                .map_or(&[], |evidence| evidence.spans.as_slice()),
            self.limits(),
            &mut violations,
        );
        request.holds.check(self.clock.now(), &mut violations);
        violations.into_result()?;
        access::check(caller, &request.store, Act::Write)?;
        let content = Content {
            store: request.store.to_string(),
            operations: &request.operations,
            etag: request.etag.as_deref(),
            evidence: request.evidence.as_ref(),
            reason: &request.reason,
            holds: &request.holds,
        };
        let mut frame = self.frame(caller, &request.store);
        frame.request = Some(request_key("apply", caller, &request.request_id, &content)?);
        let gate = access::gate(caller, &request.store.owner, request.evidence.as_ref());
        if caller.origin.is_automatic() || matches!(gate, Gate::Propose(_)) {
            frame.fingerprint = Some(fingerprint(&request.operations));
        }
        let private = self.private_texts(caller, &request.store).await?;
        let mut ids = self.fresh_ids(request.operations.len() + 1)?;
        let proposal = ids
            .pop()
            .map(ProposalId::from)
            .ok_or_else(|| Error::invalid("operations", "must not be empty"))?;
        let call = Call {
            provenance: Provenance {
                holds: request.holds.clone(),
                ..Provenance::of(caller, request.evidence.clone(), request.reason.clone())
            },
            gate,
            turn: turn_of(caller, &request),
            ids,
            proposal,
            limits: self.limits_of(&request.store),
            at: frame.at,
            automatic: caller.origin.is_automatic(),
            private,
            request,
        };
        let answer = self
            .store
            .write(frame, Box::new(move |loaded| call.decide(loaded)))
            .await?;
        let applied: Applied = from_answer(&answer)?;
        match applied.outcome {
            Outcome::Refused(refused) => Err(Error::refused(refused, applied.tool_text)),
            Outcome::Applied { .. } | Outcome::Proposed(_) => Ok(applied),
        }
    }

    /// What the person of this caller keeps for themselves, where the agent is about to write what others read: it has
    /// seen both. A person who writes by hand knows what they share.
    async fn private_texts(&self, caller: &Caller, store: &StoreName) -> Result<Vec<String>, Error> {
        let by_agent = matches!(caller.identity, Identity::Turn { .. } | Identity::Job { .. });
        let Some(user) = caller.user.as_ref().filter(|_| by_agent && store.owner.is_shared()) else {
            return Ok(Vec::new());
        };
        let own = [Target::Notes, Target::Profile].map(|target| StoreName {
            team: store.team.clone(),
            owner: Owner::Person(user.clone()),
            target,
        });
        let books = self.store.books(&own).await?;
        Ok(books
            .into_iter()
            .flat_map(|book| book.entries)
            .map(|entry| entry.content)
            .collect())
    }
}

/// Refusals for lack of room are counted by the turn, or the job, that the credential names; only callers whose
/// credential names none may say which turn it is.
fn turn_of(caller: &Caller, request: &ApplyRequest) -> String {
    match &caller.identity {
        Identity::Turn { turn, .. } => turn.clone(),
        Identity::Job { job, .. } => job.id.clone(),
        Identity::User | Identity::Service { .. } => request.turn.clone(),
    }
}

impl Call {
    fn decide(&self, loaded: &Loaded) -> Result<Decision, Error> {
        if let Some(expected) = &self.request.etag
            && *expected != loaded.book.etag()
        {
            return Err(Error::EtagMismatch {
                expected: expected.clone(),
                current: loaded.book.etag(),
            });
        }
        if let Gate::Refuse(refusal) = &self.gate {
            return self.refuse(loaded, Refused::whole(refusal.clone()));
        }
        if let Some(refused) = self.unwanted(loaded) {
            return self.refuse(loaded, refused);
        }
        let stamp = Stamp {
            at: self.at,
            provenance: &self.provenance,
        };
        let target = self.request.store.target;
        let drafted = edit::run(
            target,
            &loaded.book,
            &self.request.operations,
            &self.ids,
            &self.limits,
            stamp,
        );
        match (drafted, &self.gate) {
            (Err(refused), _) => self.refuse(loaded, refused),
            (Ok(draft), Gate::Propose(waiting)) if draft.is_change() => self.propose(loaded, *waiting),
            (Ok(draft), _) => self.keep(draft),
        }
    }

    /// What was rejected not long ago, and what would show to many what one person keeps for themselves.
    fn unwanted(&self, loaded: &Loaded) -> Option<Refused> {
        let may_be_refused = self.automatic || matches!(self.gate, Gate::Propose(_));
        let fresh = loaded
            .rejected
            .as_ref()
            .filter(|rejection| may_be_refused && rejection.at.plus(self.limits.rejection_memory) > self.at);
        if let Some(rejection) = fresh {
            return Some(Refused::whole(Refusal::RejectedBefore {
                reason: rejection.reason.clone(),
            }));
        }
        let private = |operation: &Operation| match operation {
            Operation::Add { content } | Operation::Replace { content, .. } => {
                repeats(content, self.private.iter().map(String::as_str))
            }
            Operation::Remove { .. } => false,
        };
        let at = self.request.operations.iter().position(private)?;
        Some(Refused::at(at, Refusal::Private))
    }

    fn keep(&self, draft: Draft) -> Result<Decision, Error> {
        let mut decision = decision(&draft);
        decision.answer = self.answer(Outcome::Applied { steps: draft.steps }, &draft.book)?;
        Ok(decision)
    }

    fn propose(&self, loaded: &Loaded, waiting: Waiting) -> Result<Decision, Error> {
        let store = &self.request.store;
        if let Some(same) = loaded
            .same
            .as_ref()
            .filter(|same| same.provenance.author == self.provenance.author)
        {
            // It waits already; a second one would ask the same person twice.
            return Ok(Decision {
                answer: self.answer(Outcome::Proposed(Box::new(same.clone())), &loaded.book)?,
                ..Decision::default()
            });
        }
        if loaded.pending >= self.limits.pending {
            return Err(Error::ProposalsPending {
                store: store.to_string(),
                limit: self.limits.pending,
            });
        }
        let proposal = Proposal {
            id: self.proposal.clone(),
            owner: store.owner.clone(),
            target: store.target,
            operations: self.request.operations.clone(),
            waiting,
            provenance: self.provenance.clone(),
            created: self.at,
            state: State::Pending,
            decided: None,
            expires: self.at.plus(self.limits.proposal_life),
            fingerprint: fingerprint(&self.request.operations),
            shown: !(self.automatic && store.owner.is_shared()),
            edited: None,
        };
        let answer = self.answer(Outcome::Proposed(Box::new(proposal.clone())), &loaded.book)?;
        Ok(Decision {
            proposals: vec![proposal],
            answer,
            ..Decision::default()
        })
    }

    /// A refusal is an answer that is kept like any other; one for lack of room is counted (`M-5`, `D-09`).
    fn refuse(&self, loaded: &Loaded, mut refused: Refused) -> Result<Decision, Error> {
        let mut head = None;
        if let Refusal::OverBudget { entries, is_final, .. } = &mut refused.refusal {
            let mut refusals = loaded.book.refusals.clone();
            *is_final = refusals.count(&self.turn, self.limits.refusals);
            if *is_final {
                entries.clear();
            }
            head = Some((loaded.book.revision, refusals));
        }
        let answer = self.answer(Outcome::Refused(refused), &loaded.book)?;
        Ok(Decision {
            head,
            answer,
            ..Decision::default()
        })
    }

    fn answer(&self, outcome: Outcome, book: &crate::book::Book) -> Result<String, Error> {
        let operations = self.request.operations.len();
        to_answer(&Applied::new(
            outcome,
            self.request.store.target,
            book,
            &self.limits,
            operations,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn span_ids_have_one_form() {
        for good in ["s1", "s12.3"] {
            assert!(is_span_id(good), "{good}");
        }
        for bad in ["", "s", "1", "s.1", "s1.", "s1.2.3", "s-1", "s12345678901", "m1", "s１"] {
            assert!(!is_span_id(bad), "{bad}");
        }
    }
}
