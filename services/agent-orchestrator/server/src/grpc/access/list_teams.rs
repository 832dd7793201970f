//! `ListTeams`.

use steward_base::{Caller, page};
use steward_orchestrator_core::access::Error;
use steward_proto::access::v1 as pb;

use super::super::convert::team_to_pb;
use super::AccessRpc;

pub(super) async fn list_teams(
    rpc: &AccessRpc,
    caller: &Caller,
    request: pb::ListTeamsRequest,
) -> Result<pb::ListTeamsResponse, Error> {
    let limit = page::size(request.page_size, 50, 200)?;
    let after = page::decode(&["teams"], &request.page_token)?;
    let listed = rpc.access.list_teams(caller, after.as_deref(), limit).await?;
    Ok(pb::ListTeamsResponse {
        teams: listed.items.into_iter().map(team_to_pb).collect(),
        next_page_token: listed
            .next
            .map(|cursor| page::encode(&["teams"], &cursor))
            .unwrap_or_default(),
    })
}
