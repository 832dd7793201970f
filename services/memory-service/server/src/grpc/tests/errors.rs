//! The error contract of the whole service on one screen.

use steward_base::{ErrorKind, Fault as _, FieldViolations};
use steward_memory_core::{Error, Refusal, Refused, Target};

use super::super::DOMAIN;
use super::*;

fn refused(refusal: Refusal) -> Error {
    Error::refused(Refused::at(0, refusal), "text for the model".to_owned())
}

fn every_error() -> Vec<Error> {
    let (entry, store) = ("e".to_owned(), "s".to_owned());
    let proposal = || "p".to_owned();
    let source = || std::io::Error::other("inner").into();
    let target = Target::Notes;
    vec![
        Error::InvalidRequest(FieldViolations::one("store", "is wrong")),
        Error::StoreNotFound { store: store.clone() },
        Error::EntryNotFound { entry: entry.clone() },
        Error::RevisionNotFound { entry, revision: 3 },
        Error::ProposalNotFound { proposal: proposal() },
        Error::ProposalDecided {
            proposal: proposal(),
            state: "approved",
        },
        Error::ProposalsPending { store, limit: 100 },
        Error::EtagMismatch {
            expected: "1".to_owned(),
            current: "2".to_owned(),
        },
        Error::StaleFence {
            job: "j".to_owned(),
            fence: 1,
            current: 2,
        },
        Error::RequestIdReused {
            request_id: "r".to_owned(),
        },
        Error::RoleRequired {
            role: Role::Member,
            required: Role::Maintainer,
        },
        Error::AutomaticDecision,
        refused(Refusal::Missing {
            field: "content".to_owned(),
            target,
            entries: Vec::new(),
        }),
        refused(Refusal::NoMatch {
            target,
            closest: Vec::new(),
        }),
        refused(Refusal::Ambiguous {
            target,
            matches: vec!["a".to_owned(), "b".to_owned()],
        }),
        refused(Refusal::OverBudget {
            target,
            used: 1,
            limit: 2,
            needed: 3,
            entries: Vec::new(),
            is_final: false,
        }),
        refused(Refusal::Blocked {
            category: "secret".to_owned(),
        }),
        refused(Refusal::EvidenceMissing),
        refused(Refusal::RejectedBefore {
            reason: "no".to_owned(),
        }),
        refused(Refusal::Private),
        Error::StoreUnavailable { source: source() },
        Error::StorageFull { source: source() },
        Error::DataDamaged {
            what: "a row".to_owned(),
        },
        Error::Internal {
            operation: "doing",
            source: source(),
        },
    ]
}

#[test]
fn every_error_has_its_code_reason_and_metadata() {
    let mut lines = Vec::new();
    for error in every_error() {
        let status = steward_grpc::status(&error, DOMAIN);
        let keys: Vec<&str> = error.metadata().into_iter().map(|(key, _)| key).collect();
        lines.push(format!(
            "{:?} {} [{}] {}",
            status.code(),
            error.reason(),
            keys.join(" "),
            status.message()
        ));
    }
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn every_reason_is_documented_in_the_contract() {
    for error in every_error() {
        let name = format!("ERROR_REASON_{}", error.reason());
        let own = pb::ErrorReason::from_str_name(&name).is_some();
        let shared = common::ErrorReason::from_str_name(&name).is_some();
        assert!(own ^ shared, "{name} stands in one of the two enums");
        assert!(
            error.kind() != ErrorKind::InvalidInput
                || !error.violations().is_empty()
                || error.reason() == "REQUEST_ID_REUSED"
        );
    }
}
