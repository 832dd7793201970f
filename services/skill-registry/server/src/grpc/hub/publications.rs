//! What the team gives out: publishing, ending that, listing.

use steward_base::{FieldViolations, page};
use steward_proto::hub::v1 as pb;
use steward_skill_core::name::{Scope, SkillName};
use steward_skill_core::{Actor, Skills};
use steward_skill_hub::error::Error;
use steward_skill_hub::hub::Hub;
use steward_skill_hub::publish::Draft;
use steward_skill_scanner::{File, Tree};
use tonic::Status;

use super::convert::publication_to_pb;
use super::{DEFAULT_PAGE, HubHandlers, MAX_PAGE, Person, fail};

/// A team's shelf of what it gives out.
pub(super) struct Shelf<'a> {
    hub: &'a Hub,
    person: &'a Person,
    skills: &'a Skills,
    serving: bool,
}

impl<'a> Shelf<'a> {
    pub(super) fn new(handlers: &'a HubHandlers, hub: &'a Hub, person: &'a Person) -> Self {
        Self {
            hub,
            person,
            skills: &handlers.skills,
            serving: handlers.serving,
        }
    }

    pub(super) async fn publish_hub_skill(
        &self,
        actor: &Actor,
        request: pb::PublishHubSkillRequest,
    ) -> Result<pb::PublishHubSkillResponse, Status> {
        let mut violations = FieldViolations::new();
        self.person.check_parent(&mut violations, &request.parent);
        let name = violations.take("skill", SkillName::parse(&request.skill));
        violations.into_result().map_err(|violations| fail(violations.into()))?;
        let refused = |problem| {
            fail(Error::NotPublishable {
                name: request.skill.clone(),
                problem,
            })
        };
        let hub_skill = match name.as_ref().map(|name| &name.scope) {
            Some(Scope::Team) => false,
            Some(Scope::Hub) => true,
            Some(Scope::User(_)) => return Err(refused("it is a person's own; propose it to the team first")),
            Some(Scope::External | Scope::Builtin) | None => return Err(refused("it is not the team's")),
        };
        let exported = self.skills.export_skill(actor, &request.skill, "").await;
        let exported = exported.map_err(super::super::fail)?;
        let mut tree = Tree::new();
        for (path, bytes) in exported.files {
            tree.insert(path.to_string(), File::plain(bytes));
        }
        if hub_skill {
            // With the modes of what was approved, so that it is the same tree.
            let kept = self.hub.in_library(self.person.team.as_str(), &exported.folder).await;
            tree = kept.map_err(fail)?.unwrap_or(tree);
        }
        let draft = Draft {
            name: exported.folder,
            skill: request.skill.clone(),
            revision: exported.revision,
            tree,
        };
        let publication = self.hub.publish(self.person.actor(), draft).await.map_err(fail)?;
        let publication = publication_to_pb(self.person.team.as_str(), publication, self.serving);
        Ok(pb::PublishHubSkillResponse {
            publication: Some(publication),
        })
    }

    pub(super) async fn list_hub_publications(
        &self,
        request: pb::ListHubPublicationsRequest,
    ) -> Result<pb::ListHubPublicationsResponse, Error> {
        let mut violations = FieldViolations::new();
        self.person.check_parent(&mut violations, &request.parent);
        violations.into_result()?;
        let size = page::size(request.page_size, DEFAULT_PAGE, MAX_PAGE)?;
        let bound = ["hubPublications", request.parent.as_str()];
        let after = page::decode(&bound, &request.page_token)?.unwrap_or_default();
        let size = usize::try_from(size).unwrap_or_default();
        let team = self.person.team.as_str();
        let mut all = self.hub.publications(team).await?;
        let served = self.hub.served(team).await?;
        all.retain(|publication| publication.name > after);
        let more = all.len() > size;
        all.truncate(size);
        let next_page_token = all
            .last()
            .filter(|_| more)
            .map_or_else(String::new, |last| page::encode(&bound, &last.name));
        let publications = all.into_iter().map(|publication| {
            let is_served = self.serving && served.contains(&publication);
            publication_to_pb(team, publication, is_served)
        });
        Ok(pb::ListHubPublicationsResponse {
            publications: publications.collect(),
            next_page_token,
        })
    }
}

pub(super) async fn unpublish_hub_skill(
    hub: &Hub,
    person: &Person,
    request: pb::UnpublishHubSkillRequest,
) -> Result<pb::UnpublishHubSkillResponse, Error> {
    let missing = |name: &str| Error::NotPublished { name: name.to_owned() };
    let pattern = "teams/{team}/hubPublications/{skill}";
    let name = person.child(&request.name, "hubPublications", pattern, missing)?;
    hub.unpublish(person.actor(), name).await?;
    Ok(pb::UnpublishHubSkillResponse {})
}
