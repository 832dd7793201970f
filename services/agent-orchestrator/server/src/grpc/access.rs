//! `AccessService`: teams, users, tokens.

mod create_team;
mod create_token;
mod create_user;
mod exchange_job_token;
mod list_teams;
mod list_tokens;
mod list_users;
mod revoke_token;
mod update_user;
mod who_am_i;

use steward_grpc::auth::revocation_to_pb;
use steward_orchestrator_core::access::{Access, Error};
use steward_proto::access::v1 as pb;
use steward_proto::access::v1::access_service_server::AccessService;
use tonic::{Request, Response, Status};

use super::access_status;
use crate::background::RevocationPush;

/// Serves the operations of the core.
#[derive(Debug, Clone)]
pub(crate) struct AccessRpc {
    access: Access,
    revocations: RevocationPush,
}

impl AccessRpc {
    pub(crate) fn new(access: Access, revocations: RevocationPush) -> Self {
        Self { access, revocations }
    }

    /// Something that others must refuse has changed.
    async fn revoked(&self) -> Result<(), Error> {
        self.revocations.changed().await
    }
}

fn answer<T>(outcome: Result<T, Error>) -> Result<Response<T>, Status> {
    outcome.map(Response::new).map_err(access_status)
}

#[tonic::async_trait]
impl AccessService for AccessRpc {
    async fn who_am_i(&self, request: Request<pb::WhoAmIRequest>) -> Result<Response<pb::WhoAmIResponse>, Status> {
        let caller = steward_grpc::caller(&request)?;
        let expires = steward_grpc::expires(&request)?;
        answer(who_am_i::who_am_i(self, caller, expires).await)
    }

    async fn create_team(
        &self,
        request: Request<pb::CreateTeamRequest>,
    ) -> Result<Response<pb::CreateTeamResponse>, Status> {
        let caller = steward_grpc::caller(&request)?.clone();
        answer(create_team::create_team(self, &caller, request.into_inner()).await)
    }

    async fn list_teams(
        &self,
        request: Request<pb::ListTeamsRequest>,
    ) -> Result<Response<pb::ListTeamsResponse>, Status> {
        let caller = steward_grpc::caller(&request)?.clone();
        answer(list_teams::list_teams(self, &caller, request.into_inner()).await)
    }

    async fn create_user(
        &self,
        request: Request<pb::CreateUserRequest>,
    ) -> Result<Response<pb::CreateUserResponse>, Status> {
        let caller = steward_grpc::caller(&request)?.clone();
        answer(create_user::create_user(self, &caller, request.into_inner()).await)
    }

    async fn list_users(
        &self,
        request: Request<pb::ListUsersRequest>,
    ) -> Result<Response<pb::ListUsersResponse>, Status> {
        let caller = steward_grpc::caller(&request)?.clone();
        answer(list_users::list_users(self, &caller, request.into_inner()).await)
    }

    async fn update_user(
        &self,
        request: Request<pb::UpdateUserRequest>,
    ) -> Result<Response<pb::UpdateUserResponse>, Status> {
        let caller = steward_grpc::caller(&request)?.clone();
        answer(update_user::update_user(self, &caller, request.into_inner()).await)
    }

    async fn create_token(
        &self,
        request: Request<pb::CreateTokenRequest>,
    ) -> Result<Response<pb::CreateTokenResponse>, Status> {
        let caller = steward_grpc::caller(&request)?.clone();
        answer(create_token::create_token(self, &caller, request.into_inner()).await)
    }

    async fn list_tokens(
        &self,
        request: Request<pb::ListTokensRequest>,
    ) -> Result<Response<pb::ListTokensResponse>, Status> {
        let caller = steward_grpc::caller(&request)?.clone();
        answer(list_tokens::list_tokens(self, &caller, request.into_inner()).await)
    }

    async fn revoke_token(
        &self,
        request: Request<pb::RevokeTokenRequest>,
    ) -> Result<Response<pb::RevokeTokenResponse>, Status> {
        let caller = steward_grpc::caller(&request)?.clone();
        answer(revoke_token::revoke_token(self, &caller, request.into_inner()).await)
    }

    async fn exchange_job_token(
        &self,
        request: Request<pb::ExchangeJobTokenRequest>,
    ) -> Result<Response<pb::ExchangeJobTokenResponse>, Status> {
        answer(exchange_job_token::exchange_job_token(self, request.into_inner()).await)
    }

    async fn list_revocations(
        &self,
        _request: Request<pb::ListRevocationsRequest>,
    ) -> Result<Response<pb::ListRevocationsResponse>, Status> {
        let (version, listed) = self.revocations.listed().await.map_err(access_status)?;
        Ok(Response::new(pb::ListRevocationsResponse {
            revocations: listed.iter().map(revocation_to_pb).collect(),
            version,
        }))
    }
}
