//! What can go wrong, in twelve kinds, and the trait by which every domain error says which one it is.
//!
//! A domain error never carries ready-made text for the caller beyond its `Display`; the edge builds the gRPC status
//! from [`Fault`] alone, so that code, reason and details are the same for every service (`O-5`).

use std::error::Error;
use std::fmt;
use std::time::Duration;

/// The closed list of error kinds. Each maps to exactly one gRPC code at the edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The request itself is wrong; all wrong fields are named. `INVALID_ARGUMENT`.
    InvalidInput,
    /// The named resource does not exist, or the caller may not know that it does. `NOT_FOUND`.
    NotFound,
    /// A resource with this name exists. `ALREADY_EXISTS`.
    AlreadyExists,
    /// The state of the system does not permit this; retrying without a change will not help. `FAILED_PRECONDITION`.
    Precondition,
    /// Someone else changed it first, or holds it; read again and retry. `ABORTED`.
    Conflict,
    /// A budget, quota or size limit is used up. `RESOURCE_EXHAUSTED`.
    Exhausted,
    /// No valid credential. `UNAUTHENTICATED`.
    Unauthenticated,
    /// A valid credential that does not permit this. `PERMISSION_DENIED`.
    Forbidden,
    /// A dependency does not answer; retrying later may help. `UNAVAILABLE`.
    Unavailable,
    /// The deadline passed. `DEADLINE_EXCEEDED`.
    Timeout,
    /// A fault of ours. The caller gets a fixed text and the log gets the chain. `INTERNAL`.
    Internal,
    /// Stored data is damaged. `DATA_LOSS`.
    DataLoss,
}

impl ErrorKind {
    /// Whether the same call may succeed later without any change by the caller.
    pub fn is_retryable(self) -> bool {
        match self {
            Self::Unavailable | Self::Timeout => true,
            Self::InvalidInput
            | Self::NotFound
            | Self::AlreadyExists
            | Self::Precondition
            | Self::Conflict
            | Self::Exhausted
            | Self::Unauthenticated
            | Self::Forbidden
            | Self::Internal
            | Self::DataLoss => false,
        }
    }
}

/// One wrong field of a request: `google.rpc.BadRequest.FieldViolation`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldViolation {
    /// Path of the field in the request message, for example `entry.content`.
    pub field: String,
    /// What is wrong with it and what would be right.
    pub description: String,
}

/// Collects every wrong field of a request, so that the caller hears of all of them at once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldViolations(Vec<FieldViolation>);

impl FieldViolations {
    /// Starts with no violation.
    pub fn new() -> Self {
        Self::default()
    }

    /// One violation, ready to return.
    pub fn one(field: impl Into<String>, description: impl Into<String>) -> Self {
        let mut violations = Self::new();
        violations.add(field, description);
        violations
    }

    /// Records one wrong field.
    pub fn add(&mut self, field: impl Into<String>, description: impl Into<String>) {
        self.0.push(FieldViolation {
            field: field.into(),
            description: description.into(),
        });
    }

    /// Takes the value of a check, or records its message under `field`.
    pub fn take<T, E: fmt::Display>(&mut self, field: &str, checked: Result<T, E>) -> Option<T> {
        match checked {
            Ok(value) => Some(value),
            Err(problem) => {
                self.add(field, problem.to_string());
                None
            }
        }
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The recorded fields, in the order in which they were found.
    pub fn as_slice(&self) -> &[FieldViolation] {
        &self.0
    }

    /// `Ok` when nothing was recorded.
    pub fn into_result(self) -> Result<(), Self> {
        if self.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl fmt::Display for FieldViolations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, violation) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{}: {}", violation.field, violation.description)?;
        }
        Ok(())
    }
}

impl Error for FieldViolations {}

impl Fault for FieldViolations {
    fn kind(&self) -> ErrorKind {
        ErrorKind::InvalidInput
    }

    fn reason(&self) -> &'static str {
        "INVALID_REQUEST"
    }

    fn violations(&self) -> &[FieldViolation] {
        &self.0
    }
}

/// The resource that an error is about: `google.rpc.ResourceInfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceRef {
    /// Type, for example `memory.steward.dev/Entry`.
    pub resource_type: &'static str,
    /// Full resource name.
    pub name: String,
}

/// An error of a domain, as the edge sees it.
///
/// `Display` is the message for the caller where the kind permits one; it is lower case, without a full stop, and never
/// repeats its source. `reason` is the stable identifier that clients match on; each service documents its reasons in
/// `error_reason.proto`.
pub trait Fault: Error + Send + Sync {
    /// Which of the twelve kinds this is.
    fn kind(&self) -> ErrorKind;

    /// `ErrorInfo.reason`: UPPER_SNAKE_CASE, stable, unique within the service's error domain.
    fn reason(&self) -> &'static str;

    /// `ErrorInfo.metadata`: lowerCamel keys; every variable in the message appears here.
    fn metadata(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// All wrong fields, for [`ErrorKind::InvalidInput`].
    fn violations(&self) -> &[FieldViolation] {
        &[]
    }

    /// The resource in question, for not-found and already-exists errors.
    fn resource(&self) -> Option<ResourceRef> {
        None
    }

    /// When a retry is worth while.
    fn retry_after(&self) -> Option<Duration> {
        None
    }
}

/// An error and all its sources on one line, outermost first, for logs.
pub fn error_chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        source = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_violations_are_named_in_one_message() {
        let mut violations = FieldViolations::new();
        assert_eq!(violations.take("page_size", Ok::<_, String>(3)), Some(3));
        assert_eq!(violations.take::<i32, _>("parent", Err("must not be empty")), None);
        violations.add("entry.content", "must have 1 to 2200 characters");
        let error = violations.into_result().expect_err("two fields are wrong");
        assert_eq!(
            error.to_string(),
            "parent: must not be empty; entry.content: must have 1 to 2200 characters"
        );
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
}
