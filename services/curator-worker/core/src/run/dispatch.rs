//! The dispatch table of a review (`R-4`): judged here, executed by the services, each answer journalled.

use std::sync::Arc;

use async_trait::async_trait;
use steward_agent::kernel::{CallRequest, Dispatch, Dispatched, PortError, ToolOutput};
use steward_agent::review::{
    Admission, Basis as CitedBasis, Evidence as Cited, Refusal, ReviewPolicy, SpanRef, SpanTable, hide_output,
};
use steward_base::{Integrity, SpanOrigin};

use super::Memo;
use crate::error::Error;
use crate::halt::Halt;
use crate::ports::{CallRecord, Peers, StagedCorrection, ToolUse};
use crate::problem::halt_on;
use crate::review::{Basis, Evidence, Write, WriteResult};

/// Reason of a write that the review's own rules refused.
const POLICY: &str = "REVIEW_POLICY";

pub(super) struct JournalledDispatch {
    pub(super) policy: ReviewPolicy,
    pub(super) spans: SpanTable,
    /// What the person corrected and waits; `c1` is the first.
    pub(super) corrections: Vec<StagedCorrection>,
    /// Evidence never counts for more than this.
    pub(super) ceiling: Integrity,
    pub(super) peers: Arc<dyn Peers>,
    pub(super) journal: Arc<Memo>,
    pub(super) halt: Halt,
}

/// A call that goes to the services.
struct Prepared {
    evidence: Option<Evidence>,
    arguments: String,
    /// Whether it takes a share of the review's writes.
    counts: bool,
}

#[async_trait]
impl Dispatch for JournalledDispatch {
    async fn dispatch(&self, call: &CallRequest) -> Result<Dispatched, PortError> {
        let _shield = self.halt.shield();
        if let Some(record) = self.journal.answer(call) {
            self.count_again(call, &record);
            return Ok(done(record));
        }
        let record = match self.policy.admit(call) {
            Err(Refusal::NotPermitted(text)) => return Ok(Dispatched::Denied(text)),
            Err(Refusal::NotAccepted(text)) => refused(call, text),
            Ok(admission) => match self.prepared(call, admission) {
                Err(refusal) => refused(call, refusal),
                Ok(prepared) => match self.execute(call, prepared).await {
                    Ok(record) => record,
                    Err(error) => return self.stop(error),
                },
            },
        };
        if let Err(error) = self.journal.record_answer(call, record.clone()).await {
            return self.stop(error);
        }
        Ok(done(record))
    }

    /// One after the other: a view in the same answer comes before the change that needs it, and a later try meets the
    /// limits at the same call.
    fn lane(&self, _call: &CallRequest) -> Option<String> {
        Some("review".to_owned())
    }
}

impl JournalledDispatch {
    fn stop(&self, error: Error) -> Result<Dispatched, PortError> {
        self.halt.stop(halt_on(&error));
        Err(error.into())
    }

    /// The call as it goes to the services, or why it does not.
    fn prepared(&self, call: &CallRequest, admission: Admission) -> Result<Prepared, String> {
        let arguments = call.call.arguments.clone();
        Ok(match admission {
            Admission::Read => Prepared {
                evidence: None,
                arguments,
                counts: false,
            },
            Admission::Write(cited) => Prepared {
                evidence: Some(self.evidence(&cited)),
                arguments,
                counts: true,
            },
            Admission::Decide(id) => self.decision(call, &id)?,
        })
    }

    /// A decision on a correction: on the person's words as evidence, and with the id that the store knows. Whoever has
    /// met text from outside keeps it as it stands or not at all (`L-6`).
    fn decision(&self, call: &CallRequest, id: &str) -> Result<Prepared, String> {
        let number = id.strip_prefix('c').and_then(|number| number.parse::<usize>().ok());
        let found = number.and_then(|number| self.corrections.get(number.checked_sub(1)?));
        let Some(correction) = found else {
            return Err("Refused, nothing was written: no correction waits under this id.".to_owned());
        };
        let reworded = ["content", "old_text"]
            .iter()
            .any(|field| call.arguments.get(*field).is_some_and(|value| !value.is_null()));
        if reworded && self.ceiling < Integrity::Operator {
            return Err(
                "Refused, nothing was written: with text from outside in the conversation, a correction is \
                        kept as the person said it, or dropped."
                    .to_owned(),
            );
        }
        let mut arguments = call.arguments.clone();
        arguments.insert("correction".to_owned(), correction.proposal.as_str().into());
        Ok(Prepared {
            evidence: Some(Evidence {
                spans: vec![correction.span.clone()],
                basis: Basis::Stated,
                integrity: Integrity::Person,
            }),
            arguments: serde_json::Value::Object(arguments).to_string(),
            counts: false,
        })
    }

    async fn execute(&self, call: &CallRequest, prepared: Prepared) -> Result<CallRecord, Error> {
        let Prepared {
            evidence,
            arguments,
            counts,
        } = prepared;
        let request = ToolUse {
            name: call.call.name.clone(),
            arguments,
            key: call.key.clone(),
            evidence: evidence.clone(),
        };
        let outcome = self.peers.call(request).await?;
        // A search finds old pages, too.
        let output = hide_output(ToolOutput {
            content: outcome.content,
            is_error: outcome.is_error,
            spans: outcome.spans,
        });
        let write = outcome.write.map(|write| Write {
            evidence,
            why: text(call, "why"),
            preview: preview(call),
            ..write
        });
        let record = CallRecord {
            content: output.content,
            is_error: output.is_error,
            spans: output.spans,
            admitted: true,
            write,
        };
        if counts && !took_effect(&record) {
            self.policy.refund();
        }
        Ok(record)
    }

    /// Brings the policy's count of writes to where it was when the journalled call was made.
    fn count_again(&self, call: &CallRequest, record: &CallRecord) {
        let writes = record.admitted && matches!(self.policy.admit(call), Ok(Admission::Write(_)));
        if writes && !took_effect(record) {
            self.policy.refund();
        }
    }

    fn evidence(&self, cited: &Cited) -> Evidence {
        Evidence {
            spans: cited.spans.iter().map(|span| self.stored_id(span)).collect(),
            basis: match cited.basis {
                CitedBasis::Stated => Basis::Stated,
                CitedBasis::Checked => Basis::Checked,
                CitedBasis::SeenOnce => Basis::SeenOnce,
            },
            integrity: cited.integrity.min(self.ceiling),
        }
    }

    /// `s{seq}` or `s{seq}.{index}`: an id that still means something when the review is long gone. The numbers by which
    /// the review cites hold for its own request only.
    fn stored_id(&self, span: &SpanRef) -> String {
        let same: Vec<&SpanRef> = self
            .spans
            .spans()
            .iter()
            .filter(|other| other.message_id == span.message_id)
            .collect();
        match same.iter().position(|other| other.id == span.id) {
            Some(index) if same.len() > 1 => format!("s{}.{index}", span.message_id),
            _ => format!("s{}", span.message_id),
        }
    }
}

/// Whether the call used up one of the review's writes.
fn took_effect(record: &CallRecord) -> bool {
    record.write.as_ref().is_some_and(|write| match write.result {
        WriteResult::Accepted | WriteResult::Proposed => true,
        WriteResult::Unchanged | WriteResult::Refused => false,
    })
}

fn refused(call: &CallRequest, refusal: String) -> CallRecord {
    let tool = call.call.name.clone();
    let target = if tool == "memory" {
        text(call, "target")
    } else {
        text(call, "name")
    };
    let output = ToolOutput::of(refusal, SpanOrigin::System, Integrity::Workspace);
    CallRecord {
        content: output.content,
        is_error: true,
        spans: output.spans,
        admitted: false,
        write: Some(Write {
            line: format!("{tool}: {POLICY}"),
            action: text(call, "action"),
            tool,
            target,
            result: WriteResult::Refused,
            reason: POLICY.to_owned(),
            gate: String::new(),
            preview: preview(call),
            revision: String::new(),
            evidence: None,
            why: text(call, "why"),
        }),
    }
}

fn done(record: CallRecord) -> Dispatched {
    Dispatched::Done(ToolOutput {
        content: record.content,
        is_error: record.is_error,
        spans: record.spans,
    })
}

/// Opening words of what the call writes, or of what it takes away: of a skill its text, without the header.
fn preview(call: &CallRequest) -> String {
    let of = |fields: &serde_json::Map<String, serde_json::Value>| {
        let written = ["content", "new_text", "old_text", "path"].into_iter();
        let mut texts = written.filter_map(|field| fields.get(field)?.as_str());
        texts.find(|text| !text.trim().is_empty()).map(body).map(str::to_owned)
    };
    let operations = call.arguments.get("operations").and_then(serde_json::Value::as_array);
    let of_each: Vec<String> = operations
        .into_iter()
        .flatten()
        .filter_map(|operation| of(operation.as_object()?))
        .collect();
    let whole = of(&call.arguments).unwrap_or_else(|| of_each.join(" · "));
    let line = whole.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(super::PREVIEW) {
        Some(_) => line.chars().take(super::PREVIEW - 1).chain(['…']).collect(),
        None => line,
    }
}

/// A skill's text without its header; any other text as it is.
fn body(text: &str) -> &str {
    let after = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n"));
    after.map_or(text, |(_, body)| body)
}

/// A text argument, cut to what the ledger keeps.
fn text(call: &CallRequest, field: &str) -> String {
    let value = call
        .arguments
        .get(field)
        .and_then(serde_json::Value::as_str)
        .unwrap_or_default();
    value.chars().take(super::LONGEST).collect()
}

impl Memo {
    fn answer(&self, call: &CallRequest) -> Option<CallRecord> {
        self.known().answers.get(&(call.step, call.index)).cloned()
    }

    async fn record_answer(&self, call: &CallRequest, record: CallRecord) -> Result<(), Error> {
        self.store.record_answer(call.step, call.index, &record).await?;
        self.known().answers.insert((call.step, call.index), record);
        Ok(())
    }
}
