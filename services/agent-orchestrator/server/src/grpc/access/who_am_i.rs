//! `WhoAmI`.

use steward_base::names::user_name;
use steward_base::{Caller, Timestamp};
use steward_orchestrator_core::access::Error;
use steward_proto::access::v1 as pb;

use super::super::convert::{role_to_pb, timestamp_to_pb};
use super::AccessRpc;

pub(super) async fn who_am_i(
    rpc: &AccessRpc,
    caller: &Caller,
    expires: Timestamp,
) -> Result<pb::WhoAmIResponse, Error> {
    let me = rpc.access.who_am_i(caller).await?;
    Ok(pb::WhoAmIResponse {
        user: user_name(&me.team, &me.user),
        role: role_to_pb(me.role).into(),
        expire_time: Some(timestamp_to_pb(expires)),
        home_team: me.home_team,
    })
}
