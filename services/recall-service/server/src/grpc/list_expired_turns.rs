//! `ListExpiredTurns`.

use steward_base::names::{session_name, user_name};
use steward_base::page;
use steward_grpc::caller;
use steward_proto::recall::v1 as pb;
use steward_recall_core::Sessions;
use tonic::{Request, Response, Status};

use super::convert::time_to_pb;
use super::fail;

pub(super) async fn list_expired_turns(
    sessions: &Sessions,
    request: Request<pb::ListExpiredTurnsRequest>,
) -> Result<Response<pb::ListExpiredTurnsResponse>, Status> {
    let caller = caller(&request)?;
    let limit = page::size(request.get_ref().page_size, 100, 500).map_err(|error| fail(error.into()))?;
    let expired = sessions
        .list_expired_turns(caller.team.as_ref(), limit)
        .await
        .map_err(fail)?;
    let turns = expired.into_iter().map(|turn| pb::ExpiredTurn {
        session: session_name(&turn.team, &turn.session),
        user: user_name(&turn.team, &turn.user),
        turn: turn.turn,
        expire_time: Some(time_to_pb(turn.expired)),
    });
    Ok(Response::new(pb::ListExpiredTurnsResponse { turns: turns.collect() }))
}
