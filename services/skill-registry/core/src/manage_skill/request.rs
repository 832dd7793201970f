//! Whether a request is well-formed and says enough, before anything is read. Pure.

use steward_base::{FieldViolations, Integrity, Origin};

use super::{ManageRequest, draft};
use crate::actor::Actor;
use crate::error::Error;
use crate::record::Evidence;
use crate::screen;

const MAX_REQUEST_ID_CHARS: usize = 128;
const MAX_REASON_CHARS: usize = 500;

pub(super) fn check_fields(request: &ManageRequest) -> Result<(), Error> {
    let mut violations = FieldViolations::new();
    check_request_id(&mut violations, &request.request_id);
    if request.skill.trim().is_empty() {
        violations.add("skill", "must name the skill");
    }
    if request.reason.chars().count() > MAX_REASON_CHARS {
        violations.add("reason", format!("must have at most {MAX_REASON_CHARS} characters"));
    } else if screen::has_secret(&request.reason) {
        // It is kept with the revision, like the files.
        violations.add("reason", "must not hold a credential");
    }
    draft::check_fields(&mut violations, &request.action);
    Ok(violations.into_result()?)
}

pub(crate) fn check_request_id(violations: &mut FieldViolations, id: &str) {
    if id.is_empty() || id.chars().count() > MAX_REQUEST_ID_CHARS {
        violations.add(
            "request_id",
            format!("must have 1 to {MAX_REQUEST_ID_CHARS} characters"),
        );
    }
}

/// A review cites spans of the session that it looks at, and they are not outsiders' words alone (`L-6`). One that is
/// bound to no session looks at none and has nothing to cite.
pub(super) fn check_evidence(actor: &Actor, evidence: Option<&Evidence>) -> Result<(), Error> {
    let is_trusted = |evidence: &Evidence| evidence.integrity.is_some_and(|level| level >= Integrity::Workspace);
    match (actor.origin, evidence) {
        (Origin::Review, None) => Err(Error::EvidenceRequired),
        (Origin::Review, Some(evidence)) => {
            let own_session = actor
                .session
                .as_ref()
                .map(|session| format!("teams/{}/sessions/{session}", actor.team));
            if evidence.spans.is_empty() || own_session.as_ref() != Some(&evidence.session) {
                return Err(Error::EvidenceRequired);
            }
            if is_trusted(evidence) {
                Ok(())
            } else {
                Err(Error::EvidenceUntrusted)
            }
        }
        (Origin::Curation, Some(evidence)) if !is_trusted(evidence) => Err(Error::EvidenceUntrusted),
        _ => Ok(()),
    }
}
