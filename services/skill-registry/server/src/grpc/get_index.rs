//! The index for a session's system prompt.

use steward_proto::skill::v1 as pb;
use steward_skill_core::Skills;
use tonic::{Request, Response, Status};

use super::convert::{exposure_to_pb, viewer};
use super::fail;
use steward_skill_core::index::Filter;

pub(super) async fn get_index(
    skills: &Skills,
    request: Request<pb::GetIndexRequest>,
) -> Result<Response<pb::GetIndexResponse>, Status> {
    let actor = viewer(&request, "user", &request.get_ref().user)?;
    let request = request.into_inner();
    // Without any tool named the session's tools are not known, and nothing is left out for them.
    let tools = (!request.tools.is_empty()).then(|| request.tools.into_iter().collect());
    let environments = (!request.environments.is_empty()).then(|| {
        request
            .environments
            .iter()
            .map(|name| name.trim().to_lowercase())
            .collect()
    });
    let filter = Filter {
        platform: request.platform,
        tools,
        environments,
    };
    let index = skills.get_index(&actor, &filter).await.map_err(fail)?;
    Ok(Response::new(pb::GetIndexResponse {
        exposures: index.shown.iter().map(exposure_to_pb).collect(),
        text: index.text.clone(),
        sha256: index.sha256.clone(),
    }))
}
