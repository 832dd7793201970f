//! Every error of the core has a reason that the contract documents, and every documented reason has an error.

use std::collections::BTreeSet;

use steward_base::names::{TeamId, UserId};
use steward_base::{ErrorKind, Fault, FieldViolations};
use steward_orchestrator_core::access::{self, StoreFailure};
use steward_orchestrator_core::{Error, access::SigningError};
use steward_proto::{access as access_pb, agent as agent_pb, common as common_pb};

fn agent_errors() -> Vec<Error> {
    let model = || "m".to_owned();
    let session = || "teams/red/sessions/s".to_owned();
    let violations = FieldViolations::one("field", "is wrong");
    vec![
        Error::Invalid(violations.clone()),
        Error::request_id_reused("r1"),
        Error::SessionNotFound { session: session() },
        Error::TurnNotFound { turn: "t".to_owned() },
        Error::TurnRunning { turn: "t".to_owned() },
        Error::NoTurnToSteer { session: session() },
        Error::NoOpenCalls { session: session() },
        Error::CallsMismatch {
            turn: "t".to_owned(),
            violations,
        },
        Error::ModelNotConfigured,
        Error::ModelUnknown { model: model() },
        Error::ModelUnavailable {
            model: model(),
            retry_after: None,
        },
        Error::ModelRefused {
            model: model(),
            status: 401,
        },
        Error::ModelQuota {
            model: model(),
            retry_after: None,
        },
        Error::ContextTooLong { model: model() },
        Error::ModelAnswerInvalid { model: model() },
        Error::IterationsSpent { limit: 90 },
        Error::ToolNameTaken {
            tool: "memory".to_owned(),
        },
        Error::SessionChanged {
            session: session(),
            expected: "1".to_owned(),
            current: "2".to_owned(),
        },
        Error::StaleFence {
            fence: 1,
            current: "2".to_owned(),
        },
        Error::Unavailable {
            dependency: "recall-service",
            source: "gone".into(),
        },
        Error::StorageFull,
        Error::internal("try", "broken"),
    ]
}

fn access_errors() -> Vec<access::Error> {
    let (team, user) = (TeamId::parse("red").unwrap(), UserId::parse("ann").unwrap());
    let (team, user) = (|| team.clone(), || user.clone());
    vec![
        access::Error::Invalid(FieldViolations::one("field", "is wrong")),
        access::Error::TeamExists { team: team() },
        access::Error::TeamNotFound { team: team() },
        access::Error::HomeTeamRequired,
        access::Error::UserExists {
            team: team(),
            user: user(),
        },
        access::Error::UserNotFound {
            team: team(),
            user: user(),
        },
        access::Error::UserDisabled {
            team: team(),
            user: user(),
        },
        access::Error::LastAdmin { team: team() },
        access::Error::NotYourToken,
        access::Error::TokenNotFound { token: "t".to_owned() },
        access::Error::Store(StoreFailure::Unavailable("gone".into())),
        access::Error::Store(StoreFailure::Full),
        access::Error::Store(StoreFailure::Damaged("odd".into())),
        access::Error::Store(StoreFailure::Internal("broken".into())),
        access::Error::Signing(SigningError("no key".into())),
    ]
}

fn is_common(reason: &str) -> bool {
    common_pb::v1::ErrorReason::from_str_name(&format!("ERROR_REASON_{reason}")).is_some()
}

/// Kind, reason and metadata keys, a line each.
fn contract<F: Fault>(errors: &[F]) -> String {
    let line = |error: &F| {
        let keys: Vec<&str> = error.metadata().into_iter().map(|(key, _)| key).collect();
        format!("{:?} {} [{}]", error.kind(), error.reason(), keys.join(", "))
    };
    errors.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_errors_of_agent_and_access_are_what_callers_rely_on() {
    insta::assert_snapshot!("agent_errors", contract(&agent_errors()));
    insta::assert_snapshot!("access_errors", contract(&access_errors()));
}

#[test]
fn every_reason_is_documented_and_every_documented_reason_is_given() {
    let given: BTreeSet<&str> = agent_errors()
        .iter()
        .map(Fault::reason)
        .filter(|reason| !is_common(reason))
        .collect();
    let documented: BTreeSet<String> = (1..)
        .map_while(|number| agent_pb::v1::ErrorReason::try_from(number).ok())
        .map(|reason| reason.as_str_name().replace("ERROR_REASON_", ""))
        .collect();
    assert_eq!(given, documented.iter().map(String::as_str).collect());

    let given: BTreeSet<&str> = access_errors()
        .iter()
        .map(Fault::reason)
        .filter(|reason| !is_common(reason))
        .collect();
    let documented: BTreeSet<String> = (1..)
        .map_while(|number| access_pb::v1::ErrorReason::try_from(number).ok())
        .map(|reason| reason.as_str_name().replace("ERROR_REASON_", ""))
        .collect();
    assert_eq!(given, documented.iter().map(String::as_str).collect());
}

#[test]
fn what_is_inside_never_shows_in_a_failed_turn() {
    for error in agent_errors() {
        let shown = error.public_message();
        assert_eq!(
            error.kind() == ErrorKind::Internal,
            shown.contains("something went wrong")
        );
        assert!(!shown.contains("gone") && !shown.contains("broken"), "{shown}");
    }
}
