//! Every error of the core is in the contract, and every reason of the contract is given by something.

use std::collections::BTreeSet;

use steward_base::{ErrorKind, Fault as _, FieldViolations, Origin, Role};
use steward_proto::common::v1::ErrorReason as CommonReason;
use steward_proto::skill::v1::ErrorReason;
use steward_skill_core::Error;
use steward_skill_core::error::StoreFault;
use steward_skill_core::gate::Gate;
use steward_skill_core::path::SkillPath;

fn every_error() -> Vec<Error> {
    let mut errors = errors_about_skills();
    errors.extend(errors_about_writes());
    errors
}

fn errors_about_skills() -> Vec<Error> {
    let skill = || "user/x".to_owned();
    let path = SkillPath::skill_md;
    vec![
        Error::Invalid(FieldViolations::one("skill", "is wrong")),
        Error::SkillNotFound { skill: skill() },
        Error::SkillAmbiguous {
            skill: skill(),
            candidates: vec![skill()],
        },
        Error::SkillExists {
            skill: skill(),
            in_the_way: vec![skill()],
        },
        Error::FileNotFound {
            skill: skill(),
            path: path(),
            files: Vec::new(),
        },
        Error::RevisionNotFound {
            skill: skill(),
            revision: "r".to_owned(),
        },
        Error::StaleRevision {
            skill: skill(),
            expected: "a".to_owned(),
            current: "b".to_owned(),
        },
        Error::NotRead {
            skill: skill(),
            reader: "session",
        },
        Error::GateRefused {
            skill: skill(),
            action: "patch",
            origin: Origin::Review,
            gate: Gate::UserMade,
        },
        Error::Pinned { skill: skill() },
        Error::Archived { skill: skill() },
    ]
}

fn errors_about_writes() -> Vec<Error> {
    let skill = || "user/x".to_owned();
    let path = SkillPath::skill_md;
    let source = || std::io::Error::other("inner text").into();
    vec![
        Error::NoMatch {
            skill: skill(),
            path: path(),
            nearest: Vec::new(),
        },
        Error::AmbiguousMatch {
            skill: skill(),
            path: path(),
            matches: 2,
            places: Vec::new(),
        },
        Error::SkillInvalid {
            skill: skill(),
            violations: FieldViolations::one("SKILL.md", "is wrong"),
        },
        Error::LimitExceeded {
            what: "files".to_owned(),
            limit: 1,
            actual: 2,
        },
        Error::ContentBlocked {
            path: "a".to_owned(),
            category: "secret".to_owned(),
            excerpt: String::new(),
        },
        Error::ScannerRefused {
            skill: skill(),
            category: "destructive".to_owned(),
        },
        Error::EvidenceRequired,
        Error::RejectedBefore { reason: "r".to_owned() },
        Error::RecordDamaged {
            skill: skill(),
            problem: "p".to_owned(),
        },
        Error::SnapshotNotFound {
            snapshot: "teams/red/librarySnapshots/r".to_owned(),
        },
        Error::MergeConflict {
            skill: skill(),
            paths: vec!["SKILL.md".to_owned()],
        },
        Error::RoleRequired {
            role: Role::Member,
            required: Role::Maintainer,
        },
        Error::CommandNotFound {
            command: "x".to_owned(),
            near: vec!["y".to_owned()],
        },
        Error::BundleNotFound { bundle: skill() },
        Error::BundleExists { bundle: skill() },
        Error::EtagMismatch { bundle: skill() },
        Error::ProposalNotFound { proposal: skill() },
        Error::ProposalExists { proposal: skill() },
        Error::ProposalDecided {
            proposal: skill(),
            state: "approved",
        },
        Error::StaleFence {
            job: "j".to_owned(),
            fence: 1,
            current: 2,
        },
        Error::RequestIdReused {
            request_id: "r".to_owned(),
        },
        Error::Store(StoreFault::Unavailable { source: source() }),
        Error::Store(StoreFault::Full),
        Error::Store(StoreFault::Damaged { what: "w".to_owned() }),
        Error::Store(StoreFault::Internal {
            operation: "o",
            source: source(),
        }),
    ]
}

/// Reason, kind and metadata keys on one line each: a change here is a change of the contract.
const CONTRACT: &str = "\
INVALID_REQUEST InvalidInput toolText
SKILL_NOT_FOUND NotFound skill,toolText
SKILL_AMBIGUOUS Precondition skill,candidates,toolText
SKILL_EXISTS AlreadyExists skill,inTheWay,toolText
FILE_NOT_FOUND NotFound skill,path,toolText
REVISION_NOT_FOUND NotFound skill,revision,toolText
STALE_REVISION Conflict skill,expected,current,toolText
NOT_READ Precondition skill,reader,toolText
GATE_REFUSED Forbidden gate,skill,origin,action,advice,toolText
PINNED Precondition skill,toolText
ARCHIVED Precondition skill,toolText
NO_MATCH Precondition skill,path,toolText
AMBIGUOUS_MATCH Precondition skill,path,matches,toolText
SKILL_INVALID InvalidInput skill,toolText
LIMIT_EXCEEDED Exhausted limit,actual,what,toolText
CONTENT_BLOCKED InvalidInput category,path,toolText
SCANNER_REFUSED InvalidInput skill,category,toolText
EVIDENCE_REQUIRED Precondition toolText
REJECTED_BEFORE Precondition reason,toolText
RECORD_DAMAGED DataLoss skill,toolText
SNAPSHOT_NOT_FOUND NotFound snapshot,toolText
MERGE_CONFLICT Precondition skill,paths,toolText
ROLE_REQUIRED Forbidden role,required,toolText
COMMAND_NOT_FOUND NotFound command,near,toolText
BUNDLE_NOT_FOUND NotFound bundle,toolText
BUNDLE_EXISTS AlreadyExists bundle,toolText
ETAG_MISMATCH Conflict bundle,toolText
PROPOSAL_NOT_FOUND NotFound proposal,toolText
PROPOSAL_EXISTS AlreadyExists proposal,toolText
PROPOSAL_DECIDED Precondition proposal,state,toolText
STALE_FENCE Conflict job,fence,current,toolText
REQUEST_ID_REUSED InvalidInput requestId,toolText
DEPENDENCY_UNAVAILABLE Unavailable dependency
STORAGE_FULL Exhausted \n\
DATA_DAMAGED DataLoss \n\
INTERNAL Internal \n";

#[test]
fn errors_have_the_reason_kind_and_metadata_of_the_contract() {
    let mut table = String::new();
    for error in every_error() {
        let keys = error
            .metadata()
            .into_iter()
            .map(|(key, _)| key)
            .collect::<Vec<_>>()
            .join(",");
        let kind: ErrorKind = error.kind();
        table.push_str(&[error.reason(), &format!("{kind:?}"), &keys].join(" "));
        table.push('\n');
    }
    assert_eq!(table, CONTRACT);
}

#[test]
fn every_reason_is_in_the_contract_and_every_one_of_the_contract_is_given() {
    let given = every_error()
        .iter()
        .map(|error| format!("ERROR_REASON_{}", error.reason()))
        .collect::<BTreeSet<_>>();
    for reason in &given {
        let is_known = ErrorReason::from_str_name(reason).is_some() || CommonReason::from_str_name(reason).is_some();
        assert!(is_known, "{reason} is not documented");
    }
    let own = (1..)
        .map_while(|number| ErrorReason::try_from(number).ok())
        .map(|reason| reason.as_str_name());
    for reason in own {
        assert!(given.contains(reason), "nothing answers with {reason}");
    }
}

#[test]
fn no_message_repeats_the_text_of_its_source() {
    for error in every_error() {
        assert!(!error.to_string().contains("inner text"), "{error}");
    }
}
