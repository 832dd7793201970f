//! Every error of the hub is in the contract, and every reason of the contract is given by something.

use std::collections::BTreeSet;
use std::time::Duration;

use steward_base::{Fault as _, FieldViolations, Role};
use steward_fetch::FetchError;
use steward_proto::common::v1::ErrorReason as CommonReason;
use steward_proto::hub::v1::ErrorReason;
use steward_skill_hub::archive::ArchiveError;
use steward_skill_hub::error::{Error, StoreError};
use steward_skill_hub::provenance::{Barrier, Flaw};
use steward_skill_hub::quarantine::State;
use steward_skill_hub::source::SourceError;
use steward_skill_hub::withdrawal::Standing;
use steward_skill_scanner::{Scanner, Verdict};

fn text() -> String {
    "x".to_owned()
}

fn fetches() -> Vec<FetchError> {
    vec![
        FetchError::Address {
            url: text(),
            reason: "r",
        },
        FetchError::Private { host: text() },
        FetchError::Unresolved { host: text() },
        FetchError::Redirects { url: text(), limit: 1 },
        FetchError::TooLarge { host: text(), limit: 1 },
        FetchError::Timeout { host: text() },
        FetchError::Later {
            host: text(),
            retry_after: Duration::from_secs(1),
        },
        FetchError::Connection {
            host: text(),
            problem: text(),
        },
    ]
}

fn sources() -> Vec<SourceError> {
    let mut errors = vec![
        SourceError::Reference {
            source_name: "url",
            reference: text(),
            problem: "p",
        },
        SourceError::Gone { reference: text() },
        SourceError::Ambiguous {
            reference: text(),
            candidates: Vec::new(),
        },
        SourceError::Withheld {
            reference: text(),
            reason: text(),
        },
        SourceError::Answer {
            source_name: "url",
            problem: text(),
        },
        SourceError::Incomplete {
            file: text(),
            problem: text(),
        },
        SourceError::Archive(archive_error()),
    ];
    errors.extend(fetches().into_iter().map(SourceError::Fetch));
    errors
}

/// Of bytes that are no archive.
fn archive_error() -> ArchiveError {
    use steward_skill_hub::archive::{Limits, Selection, unpack};
    unpack(b"no archive", Selection::default(), &Limits::default(), &|| false).unwrap_err()
}

fn every_error() -> Vec<Error> {
    let mut errors = vec![
        Error::NoSource { reference: text() },
        Error::NoReason,
        Error::NoItem { id: text() },
        Error::NotInstalled { name: text() },
        Error::WrongState { state: State::Rejected },
        Error::Structure { problems: Vec::new() },
        Error::Blocked {
            verdict: Verdict::Caution,
            trust: "community",
        },
        Error::Signature {
            barrier: Barrier::Unsigned,
        },
        Error::Signature {
            barrier: Barrier::Invalid {
                file: text(),
                why: Flaw::Sum,
            },
        },
        Error::ApprovalVoid { what: "w" },
        Error::NameTaken {
            name: text(),
            holder: text(),
        },
        Error::Drifted {
            name: text(),
            files: Vec::new(),
        },
        StoreError::failed("x").into(),
        StoreError::conflict("x").into(),
        Error::SourceOff { name: text() },
        Error::QuarantineFull { open: 1, limit: 1 },
        Error::RequestIdReused { reference: text() },
        Error::RoleRequired {
            role: Role::Member,
            required: Role::Maintainer,
        },
        Error::NoEntry { sequence: 1 },
        Error::Withdrawn {
            standing: Standing::Yanked,
            reason: text(),
        },
        Error::NoWithdrawal { digest: text() },
        Error::NotPublished { name: text() },
        Error::NotPublishable {
            name: text(),
            problem: "p",
        },
        Error::Invalid(FieldViolations::one("name", "is wrong")),
    ];
    let of_sources = sources()
        .into_iter()
        .map(|source| Error::Source { name: text(), source });
    errors.extend(of_sources);
    errors
}

#[test]
fn every_reason_is_in_the_contract_and_every_one_of_the_contract_is_given() {
    let mut given: BTreeSet<String> = every_error()
        .iter()
        .map(|error| format!("ERROR_REASON_{}", error.reason()))
        .collect();
    for reason in &given {
        let is_known = ErrorReason::from_str_name(reason).is_some() || CommonReason::from_str_name(reason).is_some();
        assert!(is_known, "{reason} is not documented");
    }
    // The rules are part of the program: while they load, nothing can make this one.
    assert!(Scanner::new().is_ok());
    given.insert("ERROR_REASON_HUB_SCANNER_UNUSABLE".to_owned());
    let own = (1..)
        .map_while(|number| ErrorReason::try_from(number).ok())
        .map(|reason| reason.as_str_name());
    for reason in own {
        assert!(given.contains(reason), "nothing answers with {reason}");
    }
}
