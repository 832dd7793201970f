//! `CreateTeam`.

use steward_base::names::{TeamId, UserId};
use steward_base::{Caller, FieldViolations};
use steward_orchestrator_core::access::{Error, NewTeam};
use steward_proto::access::v1 as pb;

use super::super::convert::{team_to_pb, user_to_pb};
use super::AccessRpc;

pub(super) async fn create_team(
    rpc: &AccessRpc,
    caller: &Caller,
    request: pb::CreateTeamRequest,
) -> Result<pb::CreateTeamResponse, Error> {
    let mut violations = FieldViolations::new();
    let team = violations.take("team_id", TeamId::parse(request.team_id));
    let admin = violations.take("admin_user_id", UserId::parse(request.admin_user_id));
    let (Some(team), Some(admin)) = (team, admin) else {
        return Err(violations.into());
    };
    let new = NewTeam {
        team,
        display_name: request.display_name,
        admin,
        request_id: request.request_id,
    };
    let (team, admin) = rpc.access.create_team(caller, new).await?;
    Ok(pb::CreateTeamResponse {
        team: Some(team_to_pb(team)),
        admin: Some(user_to_pb(admin)),
    })
}
