//! `CreateToken`.

use steward_base::names::parse_user;
use steward_base::{Caller, FieldViolations};
use steward_orchestrator_core::access::{Error, NewToken};
use steward_proto::access::v1 as pb;

use super::super::convert::{duration_from_pb, token_to_pb};
use super::AccessRpc;

pub(super) async fn create_token(
    rpc: &AccessRpc,
    caller: &Caller,
    request: pb::CreateTokenRequest,
) -> Result<pb::CreateTokenResponse, Error> {
    let mut violations = FieldViolations::new();
    let named = violations.take("parent", parse_user(&request.parent));
    let ttl = duration_from_pb("ttl", request.ttl, &mut violations);
    let (Some((team, user)), true) = (named, violations.is_empty()) else {
        return Err(violations.into());
    };
    let new = NewToken {
        team,
        user,
        label: request.label,
        ttl,
    };
    let issued = rpc.access.create_token(caller, new).await?;
    Ok(pb::CreateTokenResponse {
        token: Some(token_to_pb(&issued.token)),
        credential: issued.credential.reveal().to_owned(),
    })
}
