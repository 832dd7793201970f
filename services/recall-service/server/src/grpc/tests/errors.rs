//! Every error of the core: its code's kind, its reason in the contract, its metadata.

use std::collections::BTreeSet;

use steward_base::{ErrorKind, Fault as _, FieldViolations};
use steward_proto::common::v1 as common;
use steward_proto::recall::v1 as pb;
use steward_recall_core::Error;

fn every_error() -> Vec<Error> {
    let session = || "teams/red/sessions/s1".to_owned();
    vec![
        Error::Invalid(FieldViolations::one("field", "is wrong")),
        Error::request_id_reused("r1"),
        Error::SessionNotFound { session: session() },
        Error::SessionDeleted { session: session() },
        Error::SessionExists { session: session() },
        Error::MessageNotFound {
            session: session(),
            seq: 4,
        },
        Error::TurnNotFound { turn: "t1".to_owned() },
        Error::TurnRunning {
            turn: "t1".to_owned(),
            holder: "p1".to_owned(),
        },
        Error::StaleFence { fence: 1, current: 2 },
        Error::SequenceMismatch {
            expected: 1,
            current: 2,
        },
        Error::EtagMismatch {
            expected: "1".to_owned(),
            current: "2".to_owned(),
        },
        Error::InContext { session: session() },
        Error::BackupNotFound {
            backup: "teams/red/backups/b1".to_owned(),
        },
        Error::BackupUnusable {
            backup: "teams/red/backups/b1".to_owned(),
            problem: "torn".to_owned(),
        },
        Error::MessageTooLarge { limit: 1, actual: 2 },
        Error::StoreUnavailable { source: "busy".into() },
        Error::StoreFull,
        Error::damaged("torn"),
        Error::internal("a thing", "broke"),
    ]
}

#[test]
fn the_contract_of_errors_does_not_change_unnoticed() {
    let lines = every_error().into_iter().map(|error| {
        let keys: Vec<&str> = error.metadata().into_iter().map(|(key, _)| key).collect();
        let code = steward_grpc::code(error.kind());
        format!("{code:?} {} {keys:?}", error.reason())
    });
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r#"
    InvalidArgument INVALID_REQUEST []
    InvalidArgument REQUEST_ID_REUSED ["requestId"]
    NotFound SESSION_NOT_FOUND ["session"]
    NotFound SESSION_DELETED ["session"]
    AlreadyExists SESSION_EXISTS ["session"]
    NotFound MESSAGE_NOT_FOUND ["session", "seq"]
    NotFound TURN_NOT_FOUND ["turn"]
    Aborted TURN_RUNNING ["turn", "holder"]
    Aborted STALE_FENCE ["fence", "current"]
    Aborted SEQUENCE_MISMATCH ["expected", "current"]
    Aborted ETAG_MISMATCH ["expected", "current"]
    FailedPrecondition IN_CONTEXT ["session"]
    NotFound BACKUP_NOT_FOUND ["backup"]
    FailedPrecondition BACKUP_UNUSABLE ["backup", "problem"]
    ResourceExhausted MESSAGE_TOO_LARGE ["limit", "actual"]
    Unavailable DEPENDENCY_UNAVAILABLE ["dependency"]
    ResourceExhausted STORAGE_FULL []
    DataLoss DATA_DAMAGED []
    Internal INTERNAL []
    "#);
}

#[test]
fn every_reason_stands_in_the_contract_and_every_own_one_is_used() {
    let used: BTreeSet<String> = every_error()
        .iter()
        .map(|error| format!("ERROR_REASON_{}", error.reason()))
        .collect();
    for reason in &used {
        let known =
            pb::ErrorReason::from_str_name(reason).is_some() || common::ErrorReason::from_str_name(reason).is_some();
        assert!(known, "{reason} is not in the contract");
    }
    for number in 1_i32.. {
        let Ok(reason) = pb::ErrorReason::try_from(number) else {
            break;
        };
        assert!(used.contains(reason.as_str_name()), "{reason:?} is never given");
    }
}

#[test]
fn only_what_may_pass_by_itself_is_worth_a_retry() {
    let retryable: Vec<&str> = every_error()
        .iter()
        .filter(|error| error.kind().is_retryable())
        .map(steward_base::Fault::reason)
        .collect();
    assert_eq!(retryable, ["DEPENDENCY_UNAVAILABLE"]);
    assert_eq!(Error::StoreFull.kind(), ErrorKind::Exhausted);
}
