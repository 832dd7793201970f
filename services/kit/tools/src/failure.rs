//! How a service's error reaches the model: rules that it can act on in the service's own words, everything else as a
//! plain statement of what is known about the call.

use std::fmt::Write as _;

use steward_base::{ErrorKind, Integrity};
use steward_client::ClientError;

use crate::answer::{Effect, EffectResult, Failure, ToolAnswer, own};

/// Key of the `ErrorInfo` metadata under which a service sends its answer for the model.
const TOOL_TEXT: &str = "toolText";

/// What the failed call was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    /// It could have changed something.
    Write,
    /// It could not.
    Read,
}

/// The answer for a call that a service did not carry out. `store` is the store's name in sentences.
pub(crate) fn failed(tool: &str, store: &str, sort: Sort, error: &ClientError) -> ToolAnswer {
    let content = text(store, sort, error);
    tracing::debug!(tool, kind = ?error.kind, reason = error.reason, "a built-in tool's service refused or failed");
    ToolAnswer {
        spans: own(tool, &content, Integrity::Workspace),
        content,
        is_error: true,
        summary: format!("{tool}: {}", error.reason),
        effect: None,
        needed: None,
        failure: Some(Failure {
            kind: error.kind,
            reason: error.reason,
        }),
    }
}

/// The same for a write: a rule that refused it is part of what is recorded.
pub(crate) fn refused(
    tool: &'static str,
    store: &str,
    action: &'static str,
    target: String,
    error: &ClientError,
) -> ToolAnswer {
    let answer = failed(tool, store, Sort::Write, error);
    if !is_rule(error.kind) {
        return answer;
    }
    answer.with_effect(Effect {
        tool: tool.to_owned(),
        action: action.to_owned(),
        target,
        result: EffectResult::Refused,
        reason: error.reason.to_owned(),
        gate: gate(error),
        revision: String::new(),
    })
}

/// Which of its gates a service names.
fn gate(error: &ClientError) -> String {
    let named = error.metadata.iter().find(|(key, _)| *key == "gate");
    named.map(|(_, gate)| gate.clone()).unwrap_or_default()
}

/// Whether the error is a decision about this call, which certainly changed nothing.
fn is_rule(kind: ErrorKind) -> bool {
    match kind {
        ErrorKind::InvalidInput
        | ErrorKind::NotFound
        | ErrorKind::AlreadyExists
        | ErrorKind::Precondition
        | ErrorKind::Conflict
        | ErrorKind::Exhausted
        | ErrorKind::Forbidden => true,
        ErrorKind::Unauthenticated
        | ErrorKind::Unavailable
        | ErrorKind::Timeout
        | ErrorKind::Internal
        | ErrorKind::DataLoss => false,
    }
}

fn text(store: &str, sort: Sort, error: &ClientError) -> String {
    match error.kind {
        ErrorKind::InvalidInput => with_fields(error),
        ErrorKind::NotFound
        | ErrorKind::AlreadyExists
        | ErrorKind::Precondition
        | ErrorKind::Conflict
        | ErrorKind::Exhausted
        | ErrorKind::Forbidden => own_words(error),
        ErrorKind::Unauthenticated => {
            format!("The {store} no longer accepts the credential of this work. Nothing was done; do not try again.")
        }
        ErrorKind::Unavailable => match sort {
            Sort::Write => format!(
                "The {store} did not answer. Most likely nothing was changed. You may try once more; if it fails \
                 again, go on without and say so."
            ),
            Sort::Read => format!("The {store} did not answer. You may try once more, then go on without."),
        },
        ErrorKind::Timeout => match sort {
            Sort::Write => format!(
                "The {store} did not answer in time, so it is not known whether the change was made. Look before you \
                 try again."
            ),
            Sort::Read => format!("The {store} did not answer in time. You may try once more, then go on without."),
        },
        ErrorKind::Internal => {
            format!("The {store} failed and has logged why. Trying again will not help; go on without.")
        }
        ErrorKind::DataLoss => {
            format!("Stored data of the {store} is damaged; a person has to look at it. Go on without.")
        }
    }
}

/// What the service wrote for the model, else its message.
fn own_words(error: &ClientError) -> String {
    let given = error
        .metadata
        .iter()
        .find(|(key, _)| *key == TOOL_TEXT)
        .map(|(_, text)| text.as_str());
    match given.filter(|text| !text.trim().is_empty()) {
        Some(text) => text.to_owned(),
        None if error.message.trim().is_empty() => format!("Refused: {}.", error.reason),
        None => error.message.clone(),
    }
}

fn with_fields(error: &ClientError) -> String {
    let mut text = own_words(error);
    for violation in &error.violations {
        // The message often lists the fields already.
        if !text.contains(&violation.description) {
            let _ = write!(text, "\n- {}: {}", violation.field, violation.description);
        }
    }
    text
}
