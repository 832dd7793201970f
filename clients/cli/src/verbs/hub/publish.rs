//! Giving skills out to others.

use steward_proto::hub::v1 as pb;

use super::show;
use crate::connect::Session;
use crate::output::{ALL, Output, gather, size};

/// The resource name of a skill: of the team where only a name is given.
fn resource(session: &Session, given: &str) -> String {
    match given.split_once('/') {
        None => session.child("skills", given),
        Some(("team", name)) if !name.contains('/') => session.child("skills", name),
        Some(("hub", name)) if !name.contains('/') => format!("hub/skills/{name}"),
        Some(_) => given.to_owned(),
    }
}

pub(super) async fn publish(skill: &str, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let request = pb::PublishHubSkillRequest {
        parent: session.team.clone(),
        skill: resource(session, skill),
    };
    output.answer(
        &session.client.hub.publish_hub_skill(request).await?,
        |output, answer| {
            let Some(publication) = &answer.publication else { return };
            output.line(&format!(
                "Published, {} at {}.",
                size(publication.size_bytes),
                publication.path
            ));
            if !publication.served {
                output.warn("this installation serves nothing: skills.serve.listen is not set");
            }
        },
    )
}

pub(super) async fn unpublish(skill: &str, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let name = session.child("hubPublications", skill);
    let request = pb::UnpublishHubSkillRequest { name };
    output.answer(&session.client.hub.unpublish_hub_skill(request).await?, |output, _| {
        output.line("No longer given out; who has it keeps it.");
    })
}

pub(super) async fn list(session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let answer = gather(ALL, |page_size, page_token| {
        session
            .client
            .hub
            .list_hub_publications(pb::ListHubPublicationsRequest {
                parent: session.team.clone(),
                page_size,
                page_token,
            })
    });
    output.answer(&answer.await?, show::publications)
}
