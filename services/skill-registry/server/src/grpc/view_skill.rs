//! Opening a skill or one of its files.

use steward_proto::skill::v1 as pb;
use steward_skill_core::Skills;
use steward_skill_core::secrets::is_for;
use steward_skill_core::view_skill::{Surroundings, Viewed};
use tonic::{Request, Response, Status};

use super::convert::{file_to_pb, skill_to_pb, variable_to_pb, viewer};
use super::fail;

/// What a client may ask a person for (`S-8`).
fn secret_request(viewed: &Viewed) -> Option<pb::SecretRequest> {
    let variables = viewed.missing.iter().cloned();
    (!viewed.missing.is_empty()).then(|| pb::SecretRequest {
        skill: viewed.skill.resource_name(),
        variables: variables.map(|variable| variable_to_pb(variable, false)).collect(),
        team_store: is_for(&viewed.skill),
    })
}

pub(super) async fn view_skill(
    skills: &Skills,
    request: Request<pb::ViewSkillRequest>,
) -> Result<Response<pb::ViewSkillResponse>, Status> {
    let actor = viewer(&request, "parent", &request.get_ref().parent)?;
    let request = request.into_inner();
    let surroundings = Surroundings {
        variables: request.variables.into_iter().collect(),
        known: request.variables_known,
    };
    let viewed = skills
        .view_skill_in(&actor, &request.skill, &request.path, &surroundings)
        .await
        .map_err(fail)?;
    let declared = viewed.skill.header().filter(|_| request.path.is_empty());
    let declared = declared.map_or(&[][..], |header| &header.variables);
    let variables = declared.iter().map(|variable| {
        let kept = viewed.kept.contains(&variable.name);
        variable_to_pb(variable.clone(), kept)
    });
    let variables = variables.collect();
    let secret_request = secret_request(&viewed);
    Ok(Response::new(pb::ViewSkillResponse {
        skill: Some(skill_to_pb(&viewed.skill)),
        content: viewed.content,
        files: viewed.files.iter().map(file_to_pb).collect(),
        binary: viewed.binary,
        tool_text: viewed.tool_text,
        setup_needed: !viewed.missing.is_empty(),
        secret_request,
        variables,
        missing: viewed
            .missing
            .into_iter()
            .map(|variable| variable_to_pb(variable, false))
            .collect(),
    }))
}
