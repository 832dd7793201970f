//! `ListTokens`.

use steward_base::names::{TeamId, UserId, segments};
use steward_base::{Caller, page};
use steward_orchestrator_core::access::{Error, TokenList};
use steward_proto::access::v1 as pb;

use super::super::convert::token_to_pb;
use super::AccessRpc;

const PATTERN: &str = "teams/{team}/users/{user}";

fn parent(name: &str) -> Result<TokenList, Error> {
    let wrong = |error: steward_base::names::NameError| Error::field("parent", error.to_string());
    let [team, user] = segments(name, ["teams", "users"], PATTERN).map_err(wrong)?;
    let team = TeamId::parse(team).map_err(wrong)?;
    if user == "-" {
        return Ok(TokenList::Team(team));
    }
    Ok(TokenList::User(team, UserId::parse(user).map_err(wrong)?))
}

pub(super) async fn list_tokens(
    rpc: &AccessRpc,
    caller: &Caller,
    request: pb::ListTokensRequest,
) -> Result<pb::ListTokensResponse, Error> {
    let list = parent(&request.parent)?;
    let limit = page::size(request.page_size, 50, 200)?;
    let arguments = ["tokens", request.parent.as_str()];
    let after = page::decode(&arguments, &request.page_token)?;
    let listed = rpc.access.list_tokens(caller, &list, after.as_deref(), limit).await?;
    Ok(pb::ListTokensResponse {
        next_page_token: listed
            .next
            .map(|cursor| page::encode(&arguments, &cursor))
            .unwrap_or_default(),
        tokens: listed.items.iter().map(token_to_pb).collect(),
    })
}
