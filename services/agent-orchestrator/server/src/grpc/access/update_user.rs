//! `UpdateUser`. What it ends is refused here before it answers.

use steward_base::names::parse_user;
use steward_base::{Caller, FieldViolations};
use steward_orchestrator_core::access::{Error, UserChange};
use steward_proto::access::v1 as pb;

use super::super::convert::{role_from_pb, user_to_pb};
use super::AccessRpc;

pub(super) async fn update_user(
    rpc: &AccessRpc,
    caller: &Caller,
    request: pb::UpdateUserRequest,
) -> Result<pb::UpdateUserResponse, Error> {
    let mut violations = FieldViolations::new();
    let named = violations.take("name", parse_user(&request.name));
    let role = role_from_pb("role", request.role, &mut violations);
    let (Some((team, user)), true) = (named, violations.is_empty()) else {
        return Err(violations.into());
    };
    let change = UserChange {
        role,
        disabled: request.disabled,
    };
    let user = rpc.access.update_user(caller, &team, &user, change).await?;
    rpc.revoked().await?;
    Ok(pb::UpdateUserResponse {
        user: Some(user_to_pb(user)),
    })
}
