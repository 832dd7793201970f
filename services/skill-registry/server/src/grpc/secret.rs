//! `steward.skill.v1.SecretService`: values for variables that skills declare. Nothing here logs a message.

use std::sync::Arc;

use steward_base::FieldViolations;
use steward_base::names::{self, TeamId};
use steward_proto::skill::v1 as pb;
use steward_proto::skill::v1::secret_service_server::SecretService;
use steward_skill_core::secrets::{SecretInfo, SecretValue};
use steward_skill_core::{Actor, Error, Skills};
use tonic::{Request, Response, Status};

use super::convert::{time_to_pb, variable_to_pb, viewer};
use super::fail;

/// The RPCs on secrets.
#[derive(Debug, Clone)]
pub(crate) struct SecretHandlers {
    skills: Arc<Skills>,
}

impl SecretHandlers {
    pub(crate) const fn new(skills: Arc<Skills>) -> Self {
        Self { skills }
    }
}

fn told(team: &TeamId, secret: &SecretInfo) -> pb::Secret {
    pb::Secret {
        name: format!("teams/{team}/secrets/{}", secret.name),
        author: secret
            .author
            .as_ref()
            .map_or_else(String::new, |author| names::user_name(team, author)),
        set_time: time_to_pb(secret.set),
        readable: secret.readable,
    }
}

/// The variable out of `teams/{team}/secrets/{secret}`; another team's is one that is not there.
fn variable<'a>(actor: &Actor, name: &'a str) -> Result<Option<&'a str>, Status> {
    match name.split('/').collect::<Vec<_>>().as_slice() {
        ["teams", team, "secrets", variable] => Ok((*team == actor.team.as_str()).then_some(*variable)),
        _ => Err(fail(Error::from(FieldViolations::one(
            "name",
            "must be teams/{team}/secrets/{secret}",
        )))),
    }
}

#[tonic::async_trait]
impl SecretService for SecretHandlers {
    async fn set_secret(
        &self,
        request: Request<pb::SetSecretRequest>,
    ) -> Result<Response<pb::SetSecretResponse>, Status> {
        let actor = viewer(&request, "parent", &request.get_ref().parent)?;
        let request = request.into_inner();
        let value = SecretValue::new(request.value);
        let kept = self
            .skills
            .set_secret(&actor, &request.secret, value)
            .await
            .map_err(fail)?;
        Ok(Response::new(pb::SetSecretResponse {
            secret: Some(told(&actor.team, &kept)),
        }))
    }

    async fn list_secrets(
        &self,
        request: Request<pb::ListSecretsRequest>,
    ) -> Result<Response<pb::ListSecretsResponse>, Status> {
        let actor = viewer(&request, "parent", &request.get_ref().parent)?;
        let secrets = self.skills.list_secrets(&actor).await.map_err(fail)?;
        Ok(Response::new(pb::ListSecretsResponse {
            secrets: secrets.iter().map(|secret| told(&actor.team, secret)).collect(),
        }))
    }

    async fn delete_secret(
        &self,
        request: Request<pb::DeleteSecretRequest>,
    ) -> Result<Response<pb::DeleteSecretResponse>, Status> {
        let actor = Actor::new(steward_grpc::caller(&request)?).map_err(fail)?;
        let name = request.into_inner().name;
        let deleted = match variable(&actor, &name)? {
            Some(variable) => self.skills.delete_secret(&actor, variable).await.map_err(fail)?,
            None => false,
        };
        Ok(Response::new(pb::DeleteSecretResponse { deleted }))
    }

    async fn deliver_secrets(
        &self,
        request: Request<pb::DeliverSecretsRequest>,
    ) -> Result<Response<pb::DeliverSecretsResponse>, Status> {
        let actor = viewer(&request, "parent", &request.get_ref().parent)?;
        let skill = request.into_inner().skill;
        let (record, delivered) = self.skills.deliver_secrets(&actor, &skill).await.map_err(fail)?;
        let secrets = delivered
            .values
            .into_iter()
            .map(|(variable, value)| pb::DeliveredSecret {
                variable,
                value: value.expose().to_owned(),
            });
        Ok(Response::new(pb::DeliverSecretsResponse {
            skill: record.resource_name(),
            secrets: secrets.collect(),
            missing: delivered
                .missing
                .into_iter()
                .map(|variable| variable_to_pb(variable, false))
                .collect(),
        }))
    }
}

#[cfg(test)]
mod tests;
