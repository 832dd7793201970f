//! `ExchangeJobToken`, for the worker.

use std::time::Duration;

use steward_base::names::{parse_session, parse_user};
use steward_base::{FieldViolations, JobRef};
use steward_orchestrator_core::access::{Error, JobTokenRequest};
use steward_proto::access::v1 as pb;

use super::super::convert::{duration_from_pb, origin_from_pb, timestamp_to_pb};
use super::AccessRpc;

pub(super) async fn exchange_job_token(
    rpc: &AccessRpc,
    request: pb::ExchangeJobTokenRequest,
) -> Result<pb::ExchangeJobTokenResponse, Error> {
    let mut violations = FieldViolations::new();
    let named = violations.take("user", parse_user(&request.user));
    let ttl = duration_from_pb("ttl", request.ttl, &mut violations);
    let mut session = None;
    if !request.session.is_empty()
        && let Some((team, id)) = violations.take("session", parse_session(&request.session))
    {
        if named.as_ref().is_some_and(|(of_user, _)| *of_user != team) {
            violations.add("session", "must be in the user's team");
        }
        session = Some(id);
    }
    let (Some((team, user)), true) = (named, violations.is_empty()) else {
        return Err(violations.into());
    };
    let token = rpc
        .access
        .exchange_job_token(JobTokenRequest {
            team,
            user,
            job: JobRef {
                id: request.job_id,
                fence: request.fence,
            },
            origin: origin_from_pb(request.origin),
            session,
            capabilities: request.capabilities,
            ttl: ttl.unwrap_or(Duration::ZERO),
        })
        .await?;
    Ok(pb::ExchangeJobTokenResponse {
        credential: token.credential.reveal().to_owned(),
        expire_time: Some(timestamp_to_pb(token.expires)),
    })
}
