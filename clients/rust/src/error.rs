//! The one error of this client: what kind, which reason, and whether the server said so or nobody answered.

use std::collections::HashSet;
use std::error::Error;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use steward_base::{ErrorKind, Fault, FieldViolation, ResourceRef};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

/// Any error, as sources and as the error of a wire.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Who says that the call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorOrigin {
    /// A Steward server answered with this error.
    Server,
    /// No answer came: connection, local deadline, or something between that speaks no Steward. Whether the call took
    /// effect is unknown.
    Transport,
}

/// Why a call failed. A server may pass it on as its own fault; kind, reason and fields are kept. Its fields are those
/// of [`ErrorDetails`].
#[derive(Debug, Clone)]
pub struct ClientError(Box<ErrorDetails>);

/// What is known about a failed call.
#[derive(Debug, Clone)]
pub struct ErrorDetails {
    /// Which of the twelve kinds.
    pub kind: ErrorKind,
    /// `ErrorInfo.reason`, for example `SKILL_NOT_FOUND`; `UNAVAILABLE`, `DEADLINE_EXCEEDED` and `CANCELLED` when nobody
    /// gave one.
    pub reason: &'static str,
    /// `ErrorInfo.domain` of the service that failed; empty without an answer.
    pub domain: String,
    /// The message for the caller.
    pub message: String,
    /// `ErrorInfo.metadata`.
    pub metadata: Vec<(&'static str, String)>,
    /// When the server wants to be asked again.
    pub retry_after: Option<Duration>,
    /// All wrong fields of the request.
    pub violations: Vec<FieldViolation>,
    /// The resource in question.
    pub resource: Option<ResourceRef>,
    /// The server's id of the request, for its log; empty when unknown.
    pub request_id: String,
    /// Who says so.
    pub origin: ErrorOrigin,
    source: Option<Arc<Status>>,
}

/// The source of a status that this client made itself.
#[derive(Debug)]
pub(crate) struct Unanswered(pub(crate) String);

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Unanswered {}

/// A status of this client's own, for the layers below the generated code.
#[expect(
    clippy::disallowed_methods,
    reason = "the caller sees a ClientError; this only travels through tonic"
)]
pub(crate) fn unanswered(code: Code, message: &str, detail: impl Into<String>) -> Status {
    let mut status = Status::new(code, message);
    status.set_source(Arc::new(Unanswered(detail.into())));
    status
}

impl ClientError {
    /// From what the generated client returns.
    pub fn from_status(status: Status) -> Self {
        let details = status.get_error_details();
        let info = details.error_info();
        // Only Steward's servers explain themselves; everything else is something in between.
        let origin = if info.is_some() {
            ErrorOrigin::Server
        } else {
            ErrorOrigin::Transport
        };
        let kind = kind(status.code(), origin);
        let metadata = info.map(|info| {
            let mut pairs: Vec<_> = info
                .metadata
                .iter()
                .filter_map(|(key, value)| Some((intern(key)?, value.clone())))
                .collect();
            pairs.sort();
            pairs
        });
        Self(Box::new(ErrorDetails {
            kind,
            reason: info
                .and_then(|info| intern(&info.reason))
                .unwrap_or_else(|| fallback_reason(kind, status.code())),
            domain: info.map(|info| info.domain.clone()).unwrap_or_default(),
            message: status.message().to_owned(),
            metadata: metadata.unwrap_or_default(),
            retry_after: details.retry_info().and_then(|info| info.retry_delay),
            violations: details.bad_request().map(violations).unwrap_or_default(),
            resource: details.resource_info().map(|info| ResourceRef {
                resource_type: intern(&info.resource_type).unwrap_or("unknown"),
                name: info.resource_name.clone(),
            }),
            request_id: details
                .request_info()
                .map(|info| info.request_id.clone())
                .unwrap_or_default(),
            origin,
            source: Some(Arc::new(status)),
        }))
    }

    /// Nobody answered in time.
    pub(crate) fn timed_out() -> Self {
        Self::from_status(unanswered(
            Code::DeadlineExceeded,
            "the deadline passed",
            "no answer before the deadline",
        ))
    }

    /// The address cannot be connected to at all.
    pub(crate) fn bad_endpoint(endpoint: &str, problem: &dyn Error) -> Self {
        let message = format!("`{endpoint}` is not an endpoint such as http://127.0.0.1:7400");
        let mut error = Self::from_status(unanswered(Code::InvalidArgument, &message, problem.to_string()));
        error.0.kind = ErrorKind::InvalidInput;
        error.0.reason = "ENDPOINT_INVALID";
        error
    }

    /// Whether the call certainly changed nothing, so that repeating it is safe even without a request id.
    pub fn is_certainly_not_applied(&self) -> bool {
        match self.kind {
            ErrorKind::InvalidInput
            | ErrorKind::NotFound
            | ErrorKind::AlreadyExists
            | ErrorKind::Precondition
            | ErrorKind::Conflict
            | ErrorKind::Exhausted
            | ErrorKind::Unauthenticated
            | ErrorKind::Forbidden => self.origin == ErrorOrigin::Server,
            ErrorKind::Unavailable | ErrorKind::Timeout | ErrorKind::Internal | ErrorKind::DataLoss => false,
        }
    }
}

impl Deref for ClientError {
    type Target = ErrorDetails;

    fn deref(&self) -> &ErrorDetails {
        &self.0
    }
}

impl From<Status> for ClientError {
    fn from(status: Status) -> Self {
        Self::from_status(status)
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.message.is_empty() {
            f.write_str(self.reason)
        } else {
            f.write_str(&self.message)
        }
    }
}

impl Error for ClientError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        // The status itself would repeat the message; what lies below it says why nobody answered.
        self.source.as_ref().and_then(|status| status.source())
    }
}

impl Fault for ClientError {
    fn kind(&self) -> ErrorKind {
        self.kind
    }

    fn reason(&self) -> &'static str {
        self.reason
    }

    fn metadata(&self) -> Vec<(&'static str, String)> {
        self.metadata.clone()
    }

    fn violations(&self) -> &[FieldViolation] {
        &self.violations
    }

    fn resource(&self) -> Option<ResourceRef> {
        self.resource.clone()
    }

    fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

fn violations(request: &tonic_types::BadRequest) -> Vec<FieldViolation> {
    let convert = |violation: &tonic_types::FieldViolation| FieldViolation {
        field: violation.field.clone(),
        description: violation.description.clone(),
    };
    request.field_violations.iter().map(convert).collect()
}

fn kind(code: Code, origin: ErrorOrigin) -> ErrorKind {
    match code {
        Code::InvalidArgument | Code::OutOfRange => ErrorKind::InvalidInput,
        Code::NotFound => ErrorKind::NotFound,
        Code::AlreadyExists => ErrorKind::AlreadyExists,
        Code::FailedPrecondition | Code::Unimplemented => ErrorKind::Precondition,
        Code::Aborted => ErrorKind::Conflict,
        Code::ResourceExhausted => ErrorKind::Exhausted,
        Code::Unauthenticated => ErrorKind::Unauthenticated,
        Code::PermissionDenied => ErrorKind::Forbidden,
        Code::Unavailable => ErrorKind::Unavailable,
        // tonic's own timers say CANCELLED; Steward's servers never do.
        Code::DeadlineExceeded | Code::Cancelled => ErrorKind::Timeout,
        Code::DataLoss => ErrorKind::DataLoss,
        // Without an answer, "unknown" is a connection that broke.
        Code::Unknown if origin == ErrorOrigin::Transport => ErrorKind::Unavailable,
        Code::Internal | Code::Unknown | Code::Ok => ErrorKind::Internal,
    }
}

fn fallback_reason(kind: ErrorKind, code: Code) -> &'static str {
    match (kind, code) {
        (_, Code::Unimplemented) => "UNIMPLEMENTED",
        (ErrorKind::Timeout, _) => "DEADLINE_EXCEEDED",
        (ErrorKind::Unavailable, _) => "UNAVAILABLE",
        (ErrorKind::Exhausted, _) => "EXHAUSTED",
        _ => "UNKNOWN",
    }
}

/// Names from the wire as `'static` text, which [`Fault`] wants: reasons and metadata keys are a small closed set. What a
/// hostile server invents beyond that is dropped.
fn intern(name: &str) -> Option<&'static str> {
    const MOST: usize = 1024;
    const LONGEST: usize = 64;
    static NAMES: OnceLock<Mutex<HashSet<&'static str>>> = OnceLock::new();
    let mut names = NAMES
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return Some(known);
    }
    if names.len() >= MOST || name.is_empty() || name.len() > LONGEST {
        return None;
    }
    let fresh: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(fresh);
    Some(fresh)
}
