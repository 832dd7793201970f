//! `ListUsers`.

use steward_base::names::parse_team;
use steward_base::{Caller, page};
use steward_orchestrator_core::access::Error;
use steward_proto::access::v1 as pb;

use super::super::convert::user_to_pb;
use super::AccessRpc;

pub(super) async fn list_users(
    rpc: &AccessRpc,
    caller: &Caller,
    request: pb::ListUsersRequest,
) -> Result<pb::ListUsersResponse, Error> {
    let team = parse_team(&request.parent).map_err(|error| Error::field("parent", error.to_string()))?;
    let limit = page::size(request.page_size, 50, 200)?;
    let arguments = ["users", team.as_str()];
    let after = page::decode(&arguments, &request.page_token)?;
    let listed = rpc.access.list_users(caller, &team, after.as_deref(), limit).await?;
    Ok(pb::ListUsersResponse {
        next_page_token: listed
            .next
            .map(|cursor| page::encode(&arguments, &cursor))
            .unwrap_or_default(),
        users: listed.items.into_iter().map(user_to_pb).collect(),
    })
}
