//! `CreateSession`.

use steward_base::FieldViolations;
use steward_base::names::{SessionId, TeamId, UserId, parse_session, parse_user};
use steward_grpc::{caller, request_hash};
use steward_proto::recall::v1 as pb;
use steward_recall_core::append_messages::RequestKey;
use steward_recall_core::create_session::NewSession;
use steward_recall_core::session::{Lineage, LineageReason, SessionSource};
use steward_recall_core::{Error, Sessions};
use tonic::{Request, Response, Status};

use super::access::parent_team;
use super::convert::{counters_from_pb, exposures_from_pb, frozen_from_pb, session_to_pb, sources_from_pb};
use super::fail;

pub(super) async fn create_session(
    sessions: &Sessions,
    request: Request<pb::CreateSessionRequest>,
) -> Result<Response<pb::CreateSessionResponse>, Status> {
    let team = parent_team(caller(&request)?, &request.get_ref().parent).map_err(fail)?;
    let new = new_session(sessions, team, request.into_inner()).map_err(fail)?;
    let created = sessions.create_session(new).await.map_err(fail)?;
    Ok(Response::new(pb::CreateSessionResponse {
        session: Some(session_to_pb(&created)),
    }))
}

fn new_session(sessions: &Sessions, team: TeamId, request: pb::CreateSessionRequest) -> Result<NewSession, Error> {
    let hash = request_hash("CreateSession", &request);
    let mut violations = FieldViolations::new();
    let Some(mut session) = request.session else {
        return Err(Error::field("session", "must be given"));
    };
    let id = match request.session_id {
        id if id.is_empty() => sessions.new_id(),
        id => id,
    };
    let id = violations.take("session_id", SessionId::parse(id));
    let user = user_of(&team, &session.user, &mut violations);
    let lineage = lineage_of(&team, &session, &mut violations);
    let source = sources_from_pb(&[session.source], "session.source", &mut violations).pop();
    let frozen = frozen_from_pb(&mut session, &mut violations);
    violations.into_result()?;
    let (Some(id), Some(user)) = (id, user) else {
        return Err(Error::field("session", "is incomplete"));
    };
    Ok(NewSession {
        team,
        id,
        user,
        source: source.unwrap_or(SessionSource::Chat),
        title: session.title,
        lineage,
        project: session.project,
        frozen,
        skip_review: session.skip_review,
        skip_memory: session.skip_memory,
        counters: session.counters.map(counters_from_pb).unwrap_or_default(),
        exposures: exposures_from_pb(session.exposures),
        request: RequestKey {
            id: request.request_id,
            hash,
        },
    })
}

fn user_of(team: &TeamId, name: &str, violations: &mut FieldViolations) -> Option<UserId> {
    let (of, user) = violations.take("session.user", parse_user(name))?;
    if of != *team {
        violations.add("session.user", "must be a user of the parent team");
    }
    Some(user)
}

fn lineage_of(team: &TeamId, session: &pb::Session, violations: &mut FieldViolations) -> Option<Lineage> {
    let reason = match session.lineage_reason() {
        pb::LineageReason::Unspecified => None,
        pb::LineageReason::Reset => Some(LineageReason::Reset),
        pb::LineageReason::Compression => Some(LineageReason::Compression),
        pb::LineageReason::Delegation => Some(LineageReason::Delegation),
        pb::LineageReason::Branch => Some(LineageReason::Branch),
    };
    if session.parent_session.is_empty() {
        if session.lineage_reason != 0 {
            violations.add("session.lineage_reason", "needs a parent session");
        }
        return None;
    }
    let (of, parent) = violations.take("session.parent_session", parse_session(&session.parent_session))?;
    if of != *team {
        violations.add("session.parent_session", "must be a session of the parent team");
    }
    let Some(reason) = reason else {
        violations.add("session.lineage_reason", "must say why there is a parent");
        return None;
    };
    Some(Lineage { parent, reason })
}
