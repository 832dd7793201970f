//! `AppendMessages`.

use steward_base::FieldViolations;
use steward_base::names::{SessionId, TeamId};
use steward_grpc::{caller, request_hash};
use steward_proto::recall::v1 as pb;
use steward_recall_core::append_messages::{Append, OpenCallsChange, RequestKey};
use steward_recall_core::lease::LeaseRequest;
use steward_recall_core::turn::NewDueReview;
use steward_recall_core::{Error, Sessions};
use tonic::{Request, Response, Status};

use super::access::session_of;
use super::convert::{
    counters_from_pb, duration_from_pb, exposures_from_pb, messages_from_pb, open_calls_from_pb, prefix_from_pb,
    turn_update_from_pb, usage_from_pb,
};
use super::fail;

pub(super) async fn append_messages(
    sessions: &Sessions,
    request: Request<pb::AppendMessagesRequest>,
) -> Result<Response<pb::AppendMessagesResponse>, Status> {
    let (team, session) = session_of(caller(&request)?, "session", &request.get_ref().session).map_err(fail)?;
    let append = append_of(sessions, team, session, request.into_inner()).map_err(fail)?;
    let appended = sessions.append_messages(append).await.map_err(fail)?;
    Ok(Response::new(pb::AppendMessagesResponse {
        last_seq: appended.last_seq,
        due_review: appended.due_review.unwrap_or_default(),
        fence: appended.fence,
    }))
}

fn append_of(
    sessions: &Sessions,
    team: TeamId,
    session: SessionId,
    mut request: pb::AppendMessagesRequest,
) -> Result<Append, Error> {
    // By whom, under which fence and upon which state the same is asked again makes no other request of it: a retry may come
    // from the next holder.
    let fence = std::mem::take(&mut request.fence);
    let acquire = request.acquire_lease.take();
    let expected_etag = std::mem::take(&mut request.expected_etag);
    let hash = request_hash("AppendMessages", &request);
    let mut violations = FieldViolations::new();
    let messages = messages_from_pb(request.messages, &mut violations);
    let turn = request.turn.and_then(|turn| turn_update_from_pb(turn, &mut violations));
    let calls = open_calls_from_pb(request.open_calls, &mut violations);
    violations.into_result()?;
    let open_calls = if request.replace_open_calls {
        OpenCallsChange::Replace(calls)
    } else {
        OpenCallsChange::Add(calls)
    };
    let due_review = request.due_review.map(|due| NewDueReview {
        id: sessions.new_id(),
        memory: due.memory,
        skills: due.skills,
        turn: due.turn,
        traceparent: due.traceparent,
    });
    Ok(Append {
        team,
        session,
        fence,
        acquire: acquire.map(|lease| LeaseRequest {
            turn: lease.turn,
            holder: lease.holder,
            ttl: duration_from_pb(lease.ttl),
        }),
        release: request.release_lease,
        expected_seq: request.expected_seq,
        expected_etag,
        request: RequestKey {
            id: request.request_id,
            hash,
        },
        messages,
        turn,
        counters: request.counters.map(counters_from_pb),
        prefix: request.prefix.map(prefix_from_pb),
        usage: request.usage.map(usage_from_pb),
        open_calls,
        due_review,
        title: Some(request.title).filter(|title| !title.is_empty()),
        exposures: exposures_from_pb(request.exposures),
    })
}
