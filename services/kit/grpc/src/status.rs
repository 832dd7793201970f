//! From a fault to a gRPC status: code, message, `ErrorInfo` and the details of its kind. Nothing else builds a status.
//!
//! The fault is logged here, once, with its chain of sources. What the caller gets of an internal error is a fixed text
//! and the request id under which the log has the rest (`O-5`).
//!
//! A status travels in headers, of which peers and proxies take 8 to 16 KiB: a larger one would reach a caller in the same
//! process and be a broken connection to every other. Texts are therefore cut, and long lists of wrong fields end with how
//! many more there are.

mod bounded;

use std::collections::HashMap;
use std::time::Duration;

use steward_base::{ErrorKind, Fault, error_chain};
use steward_client::ambient;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, FieldViolation, PreconditionViolation, QuotaViolation, StatusExt as _};

use self::bounded::{VIOLATIONS, VIOLATIONS_BYTES};

/// Wait that UNAVAILABLE and RESOURCE_EXHAUSTED name when the fault names none.
const DEFAULT_RETRY: Duration = Duration::from_millis(500);

/// The status for `fault`; `domain` is the service's, for example `memory.steward.dev`.
pub fn status(fault: &(dyn Fault + 'static), domain: &str) -> Status {
    let request_id = ambient::current().request_id;
    log(fault, domain);
    let kind = fault.kind();
    let metadata: HashMap<String, String> = if hides(kind) {
        request_id
            .iter()
            .map(|id| ("requestId".to_owned(), id.to_string()))
            .collect()
    } else {
        bounded::metadata(fault.metadata()).collect()
    };
    let mut details = ErrorDetails::with_error_info(fault.reason(), domain, metadata);
    add_details(&mut details, fault, request_id.as_deref());
    Status::with_error_details(code(kind), bounded::message(message(fault)), details)
}

/// The gRPC code of a kind.
pub const fn code(kind: ErrorKind) -> Code {
    match kind {
        ErrorKind::InvalidInput => Code::InvalidArgument,
        ErrorKind::NotFound => Code::NotFound,
        ErrorKind::AlreadyExists => Code::AlreadyExists,
        ErrorKind::Precondition => Code::FailedPrecondition,
        ErrorKind::Conflict => Code::Aborted,
        ErrorKind::Exhausted => Code::ResourceExhausted,
        ErrorKind::Unauthenticated => Code::Unauthenticated,
        ErrorKind::Forbidden => Code::PermissionDenied,
        ErrorKind::Unavailable => Code::Unavailable,
        ErrorKind::Timeout => Code::DeadlineExceeded,
        ErrorKind::Internal => Code::Internal,
        ErrorKind::DataLoss => Code::DataLoss,
    }
}

/// Kinds of which the caller learns nothing but the kind and the reason.
const fn hides(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Internal | ErrorKind::DataLoss)
}

fn message(fault: &dyn Fault) -> String {
    match fault.kind() {
        ErrorKind::Unauthenticated => "a valid credential is required".to_owned(),
        ErrorKind::Forbidden => "the credential does not permit this".to_owned(),
        ErrorKind::Timeout => "the deadline passed".to_owned(),
        ErrorKind::Internal => "an internal error occurred".to_owned(),
        ErrorKind::DataLoss => "stored data is damaged".to_owned(),
        ErrorKind::InvalidInput
        | ErrorKind::NotFound
        | ErrorKind::AlreadyExists
        | ErrorKind::Precondition
        | ErrorKind::Conflict
        | ErrorKind::Exhausted
        | ErrorKind::Unavailable => fault.to_string(),
    }
}

fn add_details(details: &mut ErrorDetails, fault: &dyn Fault, request_id: Option<&str>) {
    match fault.kind() {
        ErrorKind::InvalidInput => {
            let wrong = violations(fault);
            if !wrong.is_empty() {
                details.set_bad_request(wrong);
            }
        }
        ErrorKind::NotFound | ErrorKind::AlreadyExists => {
            if let Some(resource) = fault.resource() {
                details.set_resource_info(resource.resource_type, bounded::text(resource.name), "", "");
            }
        }
        ErrorKind::Precondition => {
            let subject = fault.resource().map(|resource| resource.name).unwrap_or_default();
            let (subject, text) = (bounded::text(subject), bounded::text(fault.to_string()));
            let violation = PreconditionViolation::new(fault.reason(), subject, text);
            details.set_precondition_failure(vec![violation]);
        }
        ErrorKind::Exhausted => {
            let subject = fault.resource().map(|resource| resource.name).unwrap_or_default();
            let (subject, text) = (bounded::text(subject), bounded::text(fault.to_string()));
            details.set_quota_failure(vec![QuotaViolation::new(subject, text)]);
            // Some limits never lift by waiting; only a fault that knows says when.
            if let Some(after) = fault.retry_after() {
                details.set_retry_info(Some(after));
            }
        }
        ErrorKind::Unavailable => {
            details.set_retry_info(Some(fault.retry_after().unwrap_or(DEFAULT_RETRY)));
        }
        ErrorKind::Internal | ErrorKind::DataLoss => {
            if let Some(id) = request_id {
                details.set_request_info(id, "");
            }
        }
        ErrorKind::Conflict | ErrorKind::Unauthenticated | ErrorKind::Forbidden | ErrorKind::Timeout => {}
    }
}

/// The wrong fields, all of them unless they are too many for headers.
fn violations(fault: &dyn Fault) -> Vec<FieldViolation> {
    let all = fault.violations();
    let mut shown = Vec::new();
    let mut bytes = 0;
    for found in all {
        let violation = FieldViolation::new(
            bounded::text(found.field.clone()),
            bounded::text(found.description.clone()),
        );
        bytes += violation.field.len() + violation.description.len();
        if bytes > VIOLATIONS_BYTES || shown.len() == VIOLATIONS {
            let rest = all.len() - shown.len();
            shown.push(FieldViolation::new("", format!("and {rest} more")));
            break;
        }
        shown.push(violation);
    }
    shown
}

/// One event per failed request. Errors are for a person who must act, warnings for something degraded.
///
/// What is the caller's own doing is logged by its reason and the names of the fields only: the text repeats what the
/// caller sent, and what people say does not belong into a log. The caller has the text.
fn log(fault: &(dyn Fault + 'static), domain: &str) {
    let reason = fault.reason();
    let code = code(fault.kind());
    let id = ambient::current().request_id;
    let id = id.as_deref().unwrap_or_default();
    match fault.kind() {
        ErrorKind::Internal | ErrorKind::DataLoss => {
            tracing::error!(
                error.domain = domain,
                error.reason = reason,
                ?code,
                request.id = id,
                error = error_chain(fault),
                "call failed"
            );
        }
        ErrorKind::Unavailable | ErrorKind::Timeout => {
            tracing::warn!(
                error.domain = domain,
                error.reason = reason,
                ?code,
                request.id = id,
                error = error_chain(fault),
                "call failed"
            );
        }
        ErrorKind::Exhausted | ErrorKind::Unauthenticated | ErrorKind::Forbidden => {
            // Tells what is wrong with a credential, without any part of it; nobody but the log is told.
            let problem = (fault.kind() == ErrorKind::Unauthenticated).then(|| error_chain(fault));
            tracing::info!(
                error.domain = domain,
                error.reason = reason,
                ?code,
                request.id = id,
                error = problem,
                "call refused"
            );
        }
        ErrorKind::InvalidInput
        | ErrorKind::NotFound
        | ErrorKind::AlreadyExists
        | ErrorKind::Precondition
        | ErrorKind::Conflict => {
            let fields: Vec<_> = fault.violations().iter().map(|wrong| wrong.field.as_str()).collect();
            tracing::debug!(
                error.domain = domain,
                error.reason = reason,
                ?code,
                request.id = id,
                ?fields,
                "call refused"
            );
        }
    }
}

#[cfg(test)]
mod tests;
