//! What an error means for a review that met it: stop, try again later, or end; and the sentence that people get. No text
//! of a provider or a peer reaches them.

use steward_base::{ErrorKind, Fault};

use crate::error::Error;
use crate::halt::HaltReason;
use crate::review::{Ending, Problem};

/// Decides by reason where one has a meaning of its own, else by kind.
pub fn halt_on(error: &Error) -> HaltReason {
    let problem = describe(error);
    match error.reason() {
        "STALE_FENCE" => return HaltReason::LeaseLost,
        "SESSION_NOT_FOUND" => {
            return HaltReason::Ended(Ending::Cancelled(Problem::new(
                "SESSION_DELETED",
                "The session was deleted.",
            )));
        }
        "USER_DISABLED" | "USER_NOT_FOUND" => {
            return HaltReason::Ended(Ending::Cancelled(Problem::new(
                "ACCESS_LOST",
                "The user has lost access.",
            )));
        }
        _ => {}
    }
    match error.kind() {
        // A token that ran out is exchanged for a new one by the next try; a person who lost access is told apart above.
        ErrorKind::Unavailable
        | ErrorKind::Timeout
        | ErrorKind::Exhausted
        | ErrorKind::Unauthenticated
        | ErrorKind::Conflict
        | ErrorKind::Internal => HaltReason::TryAgain(problem),
        ErrorKind::InvalidInput
        | ErrorKind::NotFound
        | ErrorKind::AlreadyExists
        | ErrorKind::Precondition
        | ErrorKind::Forbidden
        | ErrorKind::DataLoss => HaltReason::Ended(Ending::Failed(problem)),
    }
}

/// The problem in words for people.
pub fn describe(error: &Error) -> Problem {
    let reason = error.reason();
    let sentence = match reason {
        "MODEL_NOT_CONFIGURED" | "MODEL_UNKNOWN" => "No model is configured for reviews.",
        "MODEL_UNAVAILABLE" => "The model did not answer.",
        "MODEL_REFUSED" => "The model's provider rejected the request or the key.",
        "MODEL_QUOTA" => "The quota at the model's provider is used up.",
        "CONTEXT_TOO_LONG" => "The conversation does not fit the model's window.",
        "MODEL_ANSWER_INVALID" => "The model's answer was cut off or could not be read.",
        _ => match error.kind() {
            ErrorKind::Unavailable => "A service that the review needs did not answer.",
            ErrorKind::Timeout => "A service that the review needs did not answer in time.",
            ErrorKind::Exhausted => "A limit was reached.",
            ErrorKind::Unauthenticated | ErrorKind::Forbidden => "A service refused the review's credential.",
            ErrorKind::Conflict => "Something changed while the review ran.",
            ErrorKind::InvalidInput
            | ErrorKind::NotFound
            | ErrorKind::AlreadyExists
            | ErrorKind::Precondition
            | ErrorKind::Internal
            | ErrorKind::DataLoss => "The review met a fault; the log has the details.",
        },
    };
    Problem::new(reason, sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("secret text of a provider")]
    struct Peer(ErrorKind, &'static str);

    impl Fault for Peer {
        fn kind(&self) -> ErrorKind {
            self.0
        }
        fn reason(&self) -> &'static str {
            self.1
        }
    }

    fn on(kind: ErrorKind, reason: &'static str) -> HaltReason {
        halt_on(&Error::peer("peer", Peer(kind, reason)))
    }

    #[test]
    fn what_time_may_mend_is_tried_again_and_the_rest_ends() {
        assert!(matches!(
            on(ErrorKind::Unavailable, "MODEL_UNAVAILABLE"),
            HaltReason::TryAgain(_)
        ));
        assert!(matches!(
            on(ErrorKind::Exhausted, "MODEL_QUOTA"),
            HaltReason::TryAgain(_)
        ));
        assert!(matches!(
            on(ErrorKind::Precondition, "CONTEXT_TOO_LONG"),
            HaltReason::Ended(Ending::Failed(_))
        ));
        assert!(matches!(on(ErrorKind::Conflict, "STALE_FENCE"), HaltReason::LeaseLost));
    }

    #[test]
    fn a_session_or_user_that_is_gone_cancels() {
        for (kind, reason, word) in [
            (ErrorKind::NotFound, "SESSION_NOT_FOUND", "SESSION_DELETED"),
            (ErrorKind::Forbidden, "USER_DISABLED", "ACCESS_LOST"),
        ] {
            let HaltReason::Ended(Ending::Cancelled(problem)) = on(kind, reason) else {
                panic!("{reason} cancels")
            };
            assert_eq!(problem.reason, word);
        }
    }

    #[test]
    fn people_never_see_text_of_a_peer() {
        let problem = describe(&Error::peer(
            "agent-orchestrator",
            Peer(ErrorKind::Unavailable, "MODEL_UNAVAILABLE"),
        ));
        assert_eq!(problem, Problem::new("MODEL_UNAVAILABLE", "The model did not answer."));
    }
}
