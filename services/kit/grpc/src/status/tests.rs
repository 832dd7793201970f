use std::sync::Arc;

use steward_base::{FieldViolations, ResourceRef};
use steward_client::ambient::{Ambient, sync_scope};

use super::*;

#[derive(Debug, thiserror::Error)]
#[error("skill {id} is gone")]
struct Sample {
    kind: ErrorKind,
    id: &'static str,
    #[source]
    source: std::io::Error,
}

impl Fault for Sample {
    fn kind(&self) -> ErrorKind {
        self.kind
    }

    fn reason(&self) -> &'static str {
        "SAMPLE"
    }

    fn metadata(&self) -> Vec<(&'static str, String)> {
        vec![("skillId", self.id.to_owned())]
    }

    fn resource(&self) -> Option<ResourceRef> {
        Some(ResourceRef {
            resource_type: "skill.steward.dev/Skill",
            name: format!("skills/{}", self.id),
        })
    }
}

fn sample(kind: ErrorKind) -> Status {
    let source = std::io::Error::other("/secret/path is on fire");
    let ambient = Ambient {
        request_id: Some(Arc::from("req-1")),
        ..Ambient::default()
    };
    sync_scope(ambient, || {
        status(
            &Sample {
                kind,
                id: "tea",
                source,
            },
            "skill.steward.dev",
        )
    })
}

#[test]
fn every_status_names_reason_and_domain_and_none_shows_a_source() {
    let kinds = [
        (ErrorKind::InvalidInput, Code::InvalidArgument),
        (ErrorKind::NotFound, Code::NotFound),
        (ErrorKind::AlreadyExists, Code::AlreadyExists),
        (ErrorKind::Precondition, Code::FailedPrecondition),
        (ErrorKind::Conflict, Code::Aborted),
        (ErrorKind::Exhausted, Code::ResourceExhausted),
        (ErrorKind::Unauthenticated, Code::Unauthenticated),
        (ErrorKind::Forbidden, Code::PermissionDenied),
        (ErrorKind::Unavailable, Code::Unavailable),
        (ErrorKind::Timeout, Code::DeadlineExceeded),
        (ErrorKind::Internal, Code::Internal),
        (ErrorKind::DataLoss, Code::DataLoss),
    ];
    for (kind, code) in kinds {
        let status = sample(kind);
        assert_eq!(status.code(), code);
        let details = status.get_error_details();
        let info = details.error_info().expect("every status explains itself");
        assert_eq!(
            (info.reason.as_str(), info.domain.as_str()),
            ("SAMPLE", "skill.steward.dev")
        );
        assert!(!format!("{status:?}").contains("secret"), "{kind:?} leaks its source");
        assert_eq!(info.metadata.contains_key("requestId"), hides(kind));
        assert_eq!(info.metadata.contains_key("skillId"), !hides(kind));
    }
}

#[test]
fn an_internal_error_says_nothing_but_the_id_under_which_the_log_has_it() {
    let status = sample(ErrorKind::Internal);
    assert_eq!(status.message(), "an internal error occurred");
    assert_eq!(status.get_error_details().request_info().unwrap().request_id, "req-1");
}

#[test]
fn a_missing_resource_is_named() {
    let status = sample(ErrorKind::NotFound);
    assert_eq!(status.message(), "skill tea is gone");
    let details = status.get_error_details();
    let resource = details.resource_info().unwrap();
    assert_eq!(resource.resource_name, "skills/tea");
}

#[test]
fn all_wrong_fields_are_named() {
    let mut violations = FieldViolations::one("parent", "must not be empty");
    violations.add("page_size", "must not be negative");
    let status = status(&violations, "memory.steward.dev");
    let details = status.get_error_details();
    let fields: Vec<_> = details
        .bad_request()
        .unwrap()
        .field_violations
        .iter()
        .map(|found| &found.field)
        .collect();
    assert_eq!(fields, ["parent", "page_size"]);
}

#[test]
fn unavailable_says_when_to_ask_again() {
    assert!(
        sample(ErrorKind::Unavailable)
            .get_error_details()
            .retry_info()
            .unwrap()
            .retry_delay
            .is_some()
    );
    assert!(sample(ErrorKind::Exhausted).get_error_details().retry_info().is_none());
}

#[test]
fn a_status_always_fits_into_headers() {
    let mut violations = steward_base::FieldViolations::new();
    for index in 0..5000 {
        violations.add(format!("entries[{index}].content"), "必须是一到两千个字".repeat(50));
    }
    let flood = status(&violations, "memory.steward.dev");
    let long = Box::leak("记忆".repeat(20_000).into_boxed_str());
    let wide = |kind| {
        let source = std::io::Error::other("x");
        status(&Sample { kind, id: long, source }, "skill.steward.dev")
    };
    let kinds = [
        ErrorKind::NotFound,
        ErrorKind::Precondition,
        ErrorKind::Exhausted,
        ErrorKind::Conflict,
    ];
    for status in kinds.map(wide).into_iter().chain([flood.clone()]) {
        let mut headers = http::HeaderMap::new();
        status.add_header(&mut headers).unwrap();
        let size: usize = headers
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len())
            .sum();
        assert!(size < 12 * 1024, "{size} bytes: {:?}", status.code());
    }
    let details = flood.get_error_details();
    let shown = &details.bad_request().unwrap().field_violations;
    let last = shown.last().unwrap();
    assert_eq!(last.description, format!("and {} more", 5001 - shown.len()));
}
