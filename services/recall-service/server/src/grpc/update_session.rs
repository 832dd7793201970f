//! `UpdateSession`.

use steward_base::FieldViolations;
use steward_grpc::{caller, request_hash};
use steward_proto::recall::v1 as pb;
use steward_recall_core::append_messages::RequestKey;
use steward_recall_core::update_session::{Changes, SessionUpdate};
use steward_recall_core::{Error, Sessions};
use tonic::{Request, Response, Status};

use super::access::session_of;
use super::convert::{client_tools_from_pb, exposures_from_pb, session_to_pb};
use super::fail;

pub(super) async fn update_session(
    sessions: &Sessions,
    request: Request<pb::UpdateSessionRequest>,
) -> Result<Response<pb::UpdateSessionResponse>, Status> {
    let name = request.get_ref().session.as_ref().map(|session| session.name.clone());
    let (team, session) = session_of(caller(&request)?, "session.name", &name.unwrap_or_default()).map_err(fail)?;
    let request = request.into_inner();
    let key = RequestKey {
        hash: request_hash("UpdateSession", &request),
        id: request.request_id,
    };
    let wanted = request.session.unwrap_or_default();
    let update = SessionUpdate {
        team,
        session,
        etag: wanted.etag.clone(),
        changes: changes_of(wanted, &request.update_mask.unwrap_or_default()).map_err(fail)?,
        break_reason: request.break_reason,
        request: key,
    };
    let changed = sessions.update_session(update).await.map_err(fail)?;
    Ok(Response::new(pb::UpdateSessionResponse {
        session: Some(session_to_pb(&changed)),
    }))
}

/// What the mask names, and an error for what it cannot name.
fn changes_of(wanted: pb::Session, mask: &prost_types::FieldMask) -> Result<Changes, Error> {
    let mut violations = FieldViolations::new();
    let mut changes = Changes::default();
    let mut wanted = wanted;
    for (at, path) in mask.paths.iter().enumerate() {
        match path.as_str() {
            "title" => changes.title = Some(wanted.title.clone()),
            "model" => changes.model = Some(wanted.model.clone()),
            "system_prompt" => changes.system_prompt = Some(wanted.system_prompt.clone()),
            "stable_prompt_bytes" => changes.stable_prompt_bytes = Some(wanted.stable_prompt_bytes),
            "tools_json" => changes.tools_json = Some(wanted.tools_json.clone()),
            "client_tools" if changes.client_tools.is_none() => {
                let tools = std::mem::take(&mut wanted.client_tools);
                changes.client_tools = Some(client_tools_from_pb(tools, &mut violations));
            }
            "setup" => changes.setup = Some(wanted.setup.to_vec()),
            "exposures" if changes.exposures.is_none() => {
                changes.exposures = Some(exposures_from_pb(std::mem::take(&mut wanted.exposures)));
            }
            "client_tools" | "exposures" => {}
            _ => violations.add(
                format!("update_mask.paths[{at}]"),
                "must be title, model, system_prompt, stable_prompt_bytes, tools_json, client_tools, setup or exposures",
            ),
        }
    }
    violations.into_result()?;
    Ok(changes)
}
