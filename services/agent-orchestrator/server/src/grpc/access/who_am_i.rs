//! `WhoAmI`.

use steward_base::Caller;
use steward_base::names::user_name;
use steward_orchestrator_core::access::Error;
use steward_proto::access::v1 as pb;

use super::super::convert::{role_to_pb, timestamp_to_pb};
use super::AccessRpc;

pub(super) async fn who_am_i(rpc: &AccessRpc, caller: &Caller) -> Result<pb::WhoAmIResponse, Error> {
    let me = rpc.access.who_am_i(caller).await?;
    Ok(pb::WhoAmIResponse {
        user: user_name(&me.team, &me.user),
        role: role_to_pb(me.role).into(),
        expire_time: me.expires.map(timestamp_to_pb),
        home_team: me.home_team,
    })
}
