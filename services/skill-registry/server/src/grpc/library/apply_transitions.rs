//! Changing the age of skills.

use steward_base::FieldViolations;
use steward_proto::skill::v1 as pb;
use steward_skill_core::library::Transition;
use steward_skill_core::{Actor, Library};
use tonic::{Request, Response, Status};

use super::super::fail;
use super::convert::{age_from_pb, result_to_pb};

pub(super) async fn apply_transitions(
    library: &Library,
    request: Request<pb::ApplyTransitionsRequest>,
) -> Result<Response<pb::ApplyTransitionsResponse>, Status> {
    let actor = Actor::new(steward_grpc::caller(&request)?).map_err(fail)?;
    let request = request.into_inner();
    let transitions = decode(request.transitions).map_err(|violations| fail(violations.into()))?;
    let results = library
        .apply_transitions(&actor, &request.parent, &request.run, &transitions)
        .await
        .map_err(fail)?;
    Ok(Response::new(pb::ApplyTransitionsResponse {
        results: results.into_iter().map(result_to_pb).collect(),
    }))
}

fn decode(transitions: Vec<pb::Transition>) -> Result<Vec<Transition>, FieldViolations> {
    let mut violations = FieldViolations::new();
    let mut decoded = Vec::with_capacity(transitions.len());
    for (at, transition) in transitions.into_iter().enumerate() {
        match age_from_pb(transition.age()) {
            Some(age) => decoded.push(Transition {
                uid: transition.uid,
                etag: transition.etag,
                age,
            }),
            None => violations.add(format!("transitions[{at}].age"), "must be given"),
        }
    }
    violations.into_result()?;
    Ok(decoded)
}
