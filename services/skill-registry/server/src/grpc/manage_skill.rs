//! The six actions of the agent's tool.

use steward_proto::skill::v1 as pb;
use steward_skill_core::Skills;
use tonic::{Request, Response, Status};

use super::convert::{manage_from_pb, skill_to_pb, viewer};
use super::{Changes, fail};

pub(super) async fn manage_skill(
    skills: &Skills,
    changes: &Changes,
    request: Request<pb::ManageSkillRequest>,
) -> Result<Response<pb::ManageSkillResponse>, Status> {
    let actor = viewer(&request, "parent", &request.get_ref().parent)?;
    let request = request.into_inner();
    let hash = steward_grpc::request_hash("ManageSkill", &request);
    let wanted = manage_from_pb(request, hash).map_err(|violations| fail(violations.into()))?;
    let managed = skills.manage_skill(&actor, &wanted).await.map_err(fail)?;
    if !managed.proposal.is_empty() {
        changes.tell(&actor.team);
    }
    Ok(Response::new(pb::ManageSkillResponse {
        skill: Some(skill_to_pb(&managed.skill)),
        tool_text: managed.tool_text,
        approximate: managed.approximate,
        proposal: managed.proposal,
    }))
}
