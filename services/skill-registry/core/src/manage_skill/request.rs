//! Whether a request is well-formed and says enough, before anything is read. Pure.

use steward_base::{FieldViolations, Origin};

use super::{ManageRequest, draft};
use crate::actor::Actor;
use crate::error::Error;
use crate::gate::{self, Cited, Footing};
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

/// On what the write stands (`L-6`). A review cites spans of the session that it looks at; one that is bound to no session
/// looks at none and has nothing to cite.
pub(super) fn footing(actor: &Actor, evidence: Option<&Evidence>) -> Result<Footing, Error> {
    let own_session = actor
        .session
        .as_ref()
        .map(|session| format!("teams/{}/sessions/{session}", actor.team));
    let is_own = |evidence: &&Evidence| {
        let cites = !evidence.spans.is_empty() && own_session.as_ref() == Some(&evidence.session);
        // Others than reviews may look at several sessions.
        cites || actor.origin != Origin::Review
    };
    let cited = evidence
        .filter(is_own)
        .map_or(Cited::Nothing, |evidence| Cited::Spans(evidence.integrity));
    match gate::footing(actor.origin, cited) {
        Footing::Uncited => Err(Error::EvidenceRequired),
        footing => Ok(footing),
    }
}
