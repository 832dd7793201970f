//! The skills that a user sees, and apart from them the broken ones.

use steward_proto::skill::v1 as pb;
use steward_skill_core::Skills;
use tonic::{Request, Response, Status};

use super::convert::{broken_to_pb, listed_to_pb, viewer};
use super::fail;
use steward_skill_core::list_skills::ListRequest;

pub(super) async fn list_skills(
    skills: &Skills,
    request: Request<pb::ListSkillsRequest>,
) -> Result<Response<pb::ListSkillsResponse>, Status> {
    let actor = viewer(&request, "parent", &request.get_ref().parent)?;
    let request = request.into_inner();
    let wanted = ListRequest {
        archived: request.archived,
        category: request.category,
        page_size: request.page_size,
        page_token: request.page_token,
    };
    let listed = skills.list_skills(&actor, &wanted).await.map_err(fail)?;
    Ok(Response::new(pb::ListSkillsResponse {
        skills: listed
            .skills
            .iter()
            .map(|record| pb::Skill {
                hidden: listed.hidden.contains(&record.uid),
                ..listed_to_pb(record)
            })
            .collect(),
        broken: listed.broken.iter().map(broken_to_pb).collect(),
        next_page_token: listed.next_page_token,
        tool_text: listed.tool_text,
    }))
}
