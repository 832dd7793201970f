//! `RevokeToken`. The token is refused here before it answers.

use steward_base::{Caller, FieldViolations};
use steward_orchestrator_core::access::Error;
use steward_proto::access::v1 as pb;

use super::super::convert::{token_name, token_to_pb};
use super::AccessRpc;

pub(super) async fn revoke_token(
    rpc: &AccessRpc,
    caller: &Caller,
    request: pb::RevokeTokenRequest,
) -> Result<pb::RevokeTokenResponse, Error> {
    let mut violations = FieldViolations::new();
    let Some((team, user, token)) = token_name("name", &request.name, &mut violations) else {
        return Err(violations.into());
    };
    let token = rpc.access.revoke_token(caller, &team, &user, &token).await?;
    rpc.revoked().await?;
    Ok(pb::RevokeTokenResponse {
        token: Some(token_to_pb(&token)),
    })
}
