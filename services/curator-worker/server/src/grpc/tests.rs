//! The error contract of the service on one screen.

use steward_base::{ErrorKind, Fault as _, FieldViolations};
use steward_curator_core::review::ReviewState;
use steward_proto::common::v1 as common;
use steward_store::StoreError;

use super::*;

fn every_error() -> Vec<Error> {
    let review = || "teams/red/reviews/r".to_owned();
    vec![
        Error::Invalid(FieldViolations::one("parent", "is wrong")),
        Error::ReviewNotFound { review: review() },
        Error::NotRetryable {
            review: review(),
            state: ReviewState::Running,
        },
        Error::Ended {
            review: review(),
            state: ReviewState::Dead,
        },
        Error::RunNotFound {
            run: "teams/red/curationRuns/r".to_owned(),
        },
        Error::CurationOpen {
            run: "teams/red/curationRuns/r".to_owned(),
        },
        Error::NotUndoable {
            run: "teams/red/curationRuns/r".to_owned(),
            state: "dry_run",
        },
        Error::request_id_reused("r1"),
        Error::StaleFence {
            review: "r".to_owned(),
            fence: 1,
            current: 2,
        },
        Error::store(StoreError::Closed),
        Error::store(StoreError::Full),
        Error::unreadable("a row of the ledger", "inner"),
    ]
}

#[test]
fn every_error_has_its_code_reason_and_metadata() {
    let lines: Vec<String> = every_error()
        .iter()
        .map(|error| {
            let status = steward_grpc::status(error, DOMAIN);
            let keys: Vec<&str> = error.metadata().into_iter().map(|(key, _)| key).collect();
            format!(
                "{:?} {} [{}] {}",
                status.code(),
                error.reason(),
                keys.join(" "),
                status.message()
            )
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn every_reason_is_documented_in_the_contract() {
    for error in every_error() {
        let name = format!("ERROR_REASON_{}", error.reason());
        let own = pb::ErrorReason::from_str_name(&name).is_some();
        let shared = common::ErrorReason::from_str_name(&name).is_some();
        assert!(own ^ shared, "{name} stands in one of the two enums");
        assert!(error.kind() != ErrorKind::InvalidInput || !error.violations().is_empty());
    }
}
