//! `GetInbox` and `WatchInbox`: one count, asked for once or sent whenever it changes.

use std::pin::Pin;
use std::time::Duration;

use futures::Stream;
use steward_base::Caller;
use steward_base::names::{TeamId, parse_team};
use steward_memory_core::{Error, Inbox, Memory};
use steward_proto::memory::v1 as pb;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tonic::{Request, Response, Status};

use super::convert::time_to_pb;
use super::fail;

/// How often a watched inbox is counted again without a write: proposals expire and entries end by themselves.
const RECOUNT: Duration = Duration::from_mins(1);

/// A stream of inboxes.
pub(super) type Inboxes = Pin<Box<dyn Stream<Item = Result<pb::WatchInboxResponse, Status>> + Send>>;

pub(super) async fn get_inbox(
    memory: &Memory,
    request: Request<pb::GetInboxRequest>,
) -> Result<Response<pb::GetInboxResponse>, Status> {
    let caller = steward_grpc::caller(&request)?;
    let team = team_from_pb(&request.get_ref().parent).map_err(fail)?;
    let inbox = memory.inbox(caller, &team).await.map_err(fail)?;
    Ok(Response::new(pb::GetInboxResponse {
        inbox: Some(inbox_to_pb(inbox)),
    }))
}

pub(super) async fn watch_inbox(
    memory: &Memory,
    changes: Receiver<TeamId>,
    request: Request<pb::WatchInboxRequest>,
) -> Result<Response<Inboxes>, Status> {
    let caller = steward_grpc::caller(&request)?.clone();
    let team = team_from_pb(&request.get_ref().parent).map_err(fail)?;
    let first = memory.inbox(&caller, &team).await.map_err(fail)?;
    Ok(Response::new(watch(memory.clone(), caller, team, changes, first)))
}

fn watch(memory: Memory, caller: Caller, team: TeamId, mut changes: Receiver<TeamId>, first: Inbox) -> Inboxes {
    Box::pin(async_stream::stream! {
        let mut shown = first;
        yield Ok(response(first));
        while changed(&mut changes, &team).await {
            match memory.inbox(&caller, &team).await {
                Ok(now) if now != shown => {
                    shown = now;
                    yield Ok(response(now));
                }
                Ok(_) => {}
                Err(error) => {
                    yield Err(fail(error));
                    return;
                }
            }
        }
    })
}

/// Waits until something may have changed in `team`; `false` once nothing will any more.
async fn changed(changes: &mut Receiver<TeamId>, team: &TeamId) -> bool {
    loop {
        match tokio::time::timeout(RECOUNT, changes.recv()).await {
            Ok(Ok(of)) if of != *team => {}
            // What was missed may have been of this team.
            Err(_) | Ok(Ok(_) | Err(RecvError::Lagged(_))) => return true,
            Ok(Err(RecvError::Closed)) => return false,
        }
    }
}

fn response(inbox: Inbox) -> pb::WatchInboxResponse {
    pb::WatchInboxResponse {
        inbox: Some(inbox_to_pb(inbox)),
    }
}

fn team_from_pb(parent: &str) -> Result<TeamId, Error> {
    parse_team(parent).map_err(|problem| Error::invalid("parent", problem.to_string()))
}

fn inbox_to_pb(inbox: Inbox) -> pb::Inbox {
    let number = |value| u32::try_from(value).unwrap_or(u32::MAX);
    pb::Inbox {
        pending_proposals: number(inbox.proposals),
        oldest_create_time: inbox.oldest.map(time_to_pb),
        stale_entries: number(inbox.stale),
    }
}
