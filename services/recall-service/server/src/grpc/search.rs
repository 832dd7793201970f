//! `Search`.

use steward_base::names::{SessionId, TeamId, parse_session, parse_user};
use steward_base::{Caller, FieldViolations};
use steward_grpc::caller;
use steward_proto::recall::v1 as pb;
use steward_proto::recall::v1::search_request::Shape;
use steward_recall_core::message::Role;
use steward_recall_core::search::{Answer, Asker, Discover, Read, Scroll, Sort};
use steward_recall_core::{Error, Search, Sessions};
use tonic::{Request, Response, Status};

use super::access::{bounded, session_of};
use super::convert::{answer_to_pb, role_from_pb, sources_from_pb, time_from_pb};
use super::fail;

pub(super) async fn search(
    search: &Search,
    sessions: &Sessions,
    request: Request<pb::SearchRequest>,
) -> Result<Response<pb::SearchResponse>, Status> {
    let caller = caller(&request)?.clone();
    let mut answer = answer(search, &caller, request.into_inner()).await.map_err(fail)?;
    // After the search: what it met is known by now.
    let trouble = || caller.team.as_ref().and_then(|team| sessions.index_trouble(team));
    let incomplete = answer.incomplete.take().or_else(trouble);
    Ok(Response::new(pb::SearchResponse {
        incomplete: incomplete.unwrap_or_default(),
        ..answer_to_pb(answer)
    }))
}

async fn answer(search: &Search, caller: &Caller, request: pb::SearchRequest) -> Result<Answer, Error> {
    let asker = asker_of(caller, &request)?;
    match request.shape {
        Some(Shape::Discover(discover)) => search.discover(&asker, discover_of(discover)?).await,
        Some(Shape::Read(read)) => search.read(&asker, &read_of(caller, &read)?).await,
        Some(Shape::Scroll(scroll)) => search.scroll(&asker, &scroll_of(caller, &scroll)?).await,
        Some(Shape::Browse(browse)) => {
            let mut violations = FieldViolations::new();
            let limit = bounded("browse.limit", browse.limit, 10, 50, &mut violations);
            violations.into_result()?;
            search.browse(&asker, limit as usize).await
        }
        None => Err(Error::field("shape", "must be discover, read, browse or scroll")),
    }
}

/// People search in their own sessions only. A credential that is bound to a session asks from there, whatever the
/// request says.
fn asker_of(caller: &Caller, request: &pb::SearchRequest) -> Result<Asker, Error> {
    let (team, user) = parse_user(&request.parent).map_err(|problem| Error::field("parent", problem.to_string()))?;
    if caller.team.as_ref() != Some(&team) || caller.user.as_ref() != Some(&user) {
        return Err(Error::field("parent", "must be the caller"));
    }
    let current = match caller.session() {
        Some(bound) => SessionId::parse(bound).ok(),
        None if request.current_session.is_empty() => None,
        None => Some(current_session(&team, &request.current_session)?),
    };
    Ok(Asker { team, user, current })
}

fn current_session(team: &TeamId, name: &str) -> Result<SessionId, Error> {
    let (of, session) = parse_session(name).map_err(|problem| Error::field("current_session", problem.to_string()))?;
    if of == *team {
        Ok(session)
    } else {
        Err(Error::field(
            "current_session",
            "must be a session of the caller's team",
        ))
    }
}

fn discover_of(discover: pb::Discover) -> Result<Discover, Error> {
    let mut violations = FieldViolations::new();
    let limit = bounded("discover.limit", discover.limit, 3, 10, &mut violations);
    let sort = match pb::SearchSort::try_from(discover.sort) {
        Ok(pb::SearchSort::Unspecified | pb::SearchSort::Relevance) => Sort::Relevance,
        Ok(pb::SearchSort::Newest) => Sort::Newest,
        Ok(pb::SearchSort::Oldest) => Sort::Oldest,
        Err(_) => {
            violations.add("discover.sort", "is unknown");
            Sort::Relevance
        }
    };
    let roles = roles_of(&discover.roles, "discover.roles", &mut violations);
    let sources = sources_from_pb(&discover.sources, "discover.sources", &mut violations);
    violations.into_result()?;
    Ok(Discover {
        query: discover.query,
        limit: limit as usize,
        sort,
        roles,
        sources,
        after: discover.after.as_ref().map(time_from_pb),
        before: discover.before.as_ref().map(time_from_pb),
    })
}

fn read_of(caller: &Caller, read: &pb::Read) -> Result<Read, Error> {
    let (_, session) = session_of(caller, "read.session", &read.session)?;
    let mut violations = FieldViolations::new();
    let limit = bounded("read.limit", read.limit, 50, 200, &mut violations);
    violations.into_result()?;
    Ok(Read {
        session,
        from_seq: read.from_seq,
        limit,
    })
}

fn scroll_of(caller: &Caller, scroll: &pb::Scroll) -> Result<Scroll, Error> {
    let (_, session) = session_of(caller, "scroll.session", &scroll.session)?;
    let mut violations = FieldViolations::new();
    let window = bounded("scroll.window", scroll.window, 5, 20, &mut violations);
    let roles = match roles_of(&scroll.roles, "scroll.roles", &mut violations) {
        roles if roles.is_empty() => vec![Role::User, Role::Assistant],
        roles => roles,
    };
    violations.into_result()?;
    Ok(Scroll {
        session,
        around_seq: scroll.around_seq,
        window,
        roles,
    })
}

fn roles_of(numbers: &[i32], field: &str, violations: &mut FieldViolations) -> Vec<Role> {
    let named = numbers.iter().enumerate();
    named
        .filter_map(|(at, number)| role_from_pb(*number, &format!("{field}[{at}]"), violations))
        .collect()
}
