//! `CreateUser`.

use steward_base::names::{UserId, parse_team};
use steward_base::{Caller, FieldViolations, Role};
use steward_orchestrator_core::access::{Error, NewUser};
use steward_proto::access::v1 as pb;

use super::super::convert::{role_from_pb, user_to_pb};
use super::AccessRpc;

pub(super) async fn create_user(
    rpc: &AccessRpc,
    caller: &Caller,
    request: pb::CreateUserRequest,
) -> Result<pb::CreateUserResponse, Error> {
    let mut violations = FieldViolations::new();
    let wanted = request.user.unwrap_or_default();
    let team = violations.take("parent", parse_team(&request.parent));
    let user = violations.take("user_id", UserId::parse(request.user_id));
    let role = role_from_pb("user.role", wanted.role, &mut violations);
    if wanted.disabled {
        violations.add("user.disabled", "must not be set for a new user");
    }
    let (Some(team), Some(user), true) = (team, user, violations.is_empty()) else {
        return Err(violations.into());
    };
    let new = NewUser {
        team,
        user,
        display_name: wanted.display_name,
        role: role.unwrap_or(Role::Member),
        request_id: request.request_id,
    };
    let user = rpc.access.create_user(caller, new).await?;
    Ok(pb::CreateUserResponse {
        user: Some(user_to_pb(user)),
    })
}
