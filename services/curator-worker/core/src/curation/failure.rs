//! What an error means for a run that met it. No text of a peer reaches people.

use steward_base::{ErrorKind, Fault as _};

use crate::error::Error;
use crate::review::Problem;

/// How a try goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Another try may go better.
    Again(Problem),
    /// No try would.
    Failed(Problem),
    /// Somebody else has the job; nothing may be written any more.
    LeaseLost,
}

/// Decides by kind.
pub fn judge(error: &Error) -> Verdict {
    let reason = error.reason();
    if reason == "STALE_FENCE" {
        return Verdict::LeaseLost;
    }
    if reason == "SNAPSHOT_NOT_FOUND" {
        let sentence = "The run's snapshot was dropped for newer ones, so that it cannot be undone any more.";
        return Verdict::Failed(Problem::new(reason, sentence));
    }
    let sentence = match error.kind() {
        ErrorKind::Unavailable => "A service that the run needs did not answer.",
        ErrorKind::Timeout => "A service that the run needs did not answer in time.",
        ErrorKind::Exhausted => "A limit was reached.",
        ErrorKind::Unauthenticated | ErrorKind::Forbidden => "A service refused the run's credential.",
        ErrorKind::DataLoss => "Something that the run needs is damaged; nothing of it was begun.",
        ErrorKind::Conflict
        | ErrorKind::InvalidInput
        | ErrorKind::NotFound
        | ErrorKind::AlreadyExists
        | ErrorKind::Precondition
        | ErrorKind::Internal => "The run met a fault; the log has the details.",
    };
    let problem = Problem::new(reason, sentence);
    match error.kind() {
        ErrorKind::Unavailable
        | ErrorKind::Timeout
        | ErrorKind::Exhausted
        | ErrorKind::Unauthenticated
        | ErrorKind::Conflict
        | ErrorKind::Internal => Verdict::Again(problem),
        ErrorKind::InvalidInput
        | ErrorKind::NotFound
        | ErrorKind::AlreadyExists
        | ErrorKind::Precondition
        | ErrorKind::Forbidden
        | ErrorKind::DataLoss => Verdict::Failed(problem),
    }
}
