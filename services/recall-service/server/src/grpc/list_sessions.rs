//! `ListSessions`.

use steward_base::names::{SessionId, TeamId, parse_user};
use steward_base::{FieldViolations, Timestamp, page};
use steward_grpc::caller;
use steward_proto::recall::v1 as pb;
use steward_recall_core::session::{Session, SessionSource};
use steward_recall_core::store::SessionList;
use steward_recall_core::{Error, Sessions};
use tonic::{Request, Response, Status};

use super::access::parent_team;
use super::convert::{session_to_pb, sources_from_pb};
use super::fail;

pub(super) async fn list_sessions(
    sessions: &Sessions,
    request: Request<pb::ListSessionsRequest>,
) -> Result<Response<pb::ListSessionsResponse>, Status> {
    let team = parent_team(caller(&request)?, &request.get_ref().parent).map_err(fail)?;
    let request = request.into_inner();
    let list = list_of(team, &request).map_err(fail)?;
    let size = list.limit;
    let mut found = sessions
        .list_sessions(&SessionList {
            limit: size + 1,
            ..list
        })
        .await
        .map_err(fail)?;
    let has_more = found.len() > size as usize;
    found.truncate(size as usize);
    let end = found.last().filter(|_| has_more);
    let next_page_token = end
        .map(|end| with_arguments(&request, |arguments| page::encode(arguments, &cursor(end))))
        .unwrap_or_default();
    let sessions = found.iter().map(session_to_pb).collect();
    Ok(Response::new(pb::ListSessionsResponse {
        sessions,
        next_page_token,
    }))
}

fn list_of(team: TeamId, request: &pb::ListSessionsRequest) -> Result<SessionList, Error> {
    let mut violations = FieldViolations::new();
    let user = violations.take("user", parse_user(&request.user));
    if user.as_ref().is_some_and(|(of, _)| *of != team) {
        violations.add("user", "must be a user of the parent team");
    }
    let sources = match sources_from_pb(&request.sources, "sources", &mut violations) {
        sources if sources.is_empty() => SessionSource::visible(),
        sources => sources,
    };
    violations.into_result()?;
    let Some((_, user)) = user else {
        return Err(Error::field("user", "must be given"));
    };
    let limit = page::size(request.page_size, 50, 200)?;
    let cursor = with_arguments(request, |arguments| page::decode(arguments, &request.page_token))?;
    let after = cursor.as_deref().and_then(position);
    Ok(SessionList {
        team,
        user,
        sources,
        after,
        limit,
    })
}

fn with_arguments<T>(request: &pb::ListSessionsRequest, then: impl FnOnce(&[&str]) -> T) -> T {
    let sources = format!("{:?}", request.sources);
    then(&[&request.parent, &request.user, &sources])
}

fn cursor(session: &Session) -> String {
    format!("{}/{}", session.last_active.as_micros(), session.id)
}

fn position(cursor: &str) -> Option<(Timestamp, SessionId)> {
    let (at, id) = cursor.split_once('/')?;
    Some((Timestamp::from_micros(at.parse().ok()?), SessionId::parse(id).ok()?))
}
