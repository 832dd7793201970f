//! Which sessions a caller may know of. What it may not know of is answered like what does not exist.

use steward_base::names::{SessionId, TeamId, parse_session, session_name};
use steward_base::{Caller, FieldViolations};
use steward_grpc::team_of;
use steward_recall_core::{Error, session::Session};

/// Team and session of the resource name in `field`, if the team is the caller's.
pub(super) fn session_of(caller: &Caller, field: &str, name: &str) -> Result<(TeamId, SessionId), Error> {
    let (team, session) = parse_session(name).map_err(|problem| Error::field(field, problem.to_string()))?;
    let missing = || Error::SessionNotFound {
        session: name.to_owned(),
    };
    Ok((team_of(caller, team, missing)?, session))
}

/// The team named in `parent`, if it is the caller's. Teams have no existence of their own here: a foreign one is no
/// team that the caller can name.
pub(super) fn parent_team(caller: &Caller, parent: &str) -> Result<TeamId, Error> {
    let team =
        steward_base::names::parse_team(parent).map_err(|problem| Error::field("parent", problem.to_string()))?;
    team_of(caller, team, || Error::field("parent", "is not the caller's team"))
}

/// Whether a credential that is bound to a session, or speaks for one person, may read this session.
pub(super) fn check_readable(caller: &Caller, session: &Session) -> Result<(), Error> {
    let is_bound_elsewhere = caller.session().is_some_and(|bound| bound != session.id.as_str());
    let is_anothers = caller.user.as_ref() != Some(&session.user);
    if !caller.is_service() && (is_bound_elsewhere || is_anothers) {
        return Err(Error::SessionNotFound {
            session: session_name(&session.team, &session.id),
        });
    }
    Ok(())
}

/// A number of things that is asked for: the default where it is 0, coerced down to the maximum, never negative.
pub(super) fn bounded(field: &str, asked: i32, default: u32, max: u32, violations: &mut FieldViolations) -> u32 {
    match u32::try_from(asked) {
        Ok(0) => default,
        Ok(asked) => asked.min(max),
        Err(_) => {
            violations.add(field, "must not be negative");
            default
        }
    }
}
