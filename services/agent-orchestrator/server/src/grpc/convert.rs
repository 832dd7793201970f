//! Between the contract's messages and the values of the core. Wire types parse, core types check.

use std::time::Duration;

use steward_base::names::{SessionId, TeamId, TokenId, UserId, parse_session, segments, team_name, user_name};
use steward_base::{FieldViolations, Integrity, Origin, Role, Timestamp};
use steward_orchestrator_core::access::{AccessToken, Team, User};
use steward_orchestrator_core::session::{Exposure, SessionKey, Usage};
use steward_proto::access::v1 as access;
use steward_proto::common::v1 as common;

pub(super) fn timestamp_to_pb(at: Timestamp) -> prost_types::Timestamp {
    let (seconds, nanos) = at.to_parts();
    prost_types::Timestamp { seconds, nanos }
}

/// A duration that is not negative; absent stays absent.
pub(super) fn duration_from_pb(
    field: &str,
    duration: Option<prost_types::Duration>,
    violations: &mut FieldViolations,
) -> Option<Duration> {
    let checked = Duration::try_from(duration?).map_err(|_| "must not be negative");
    violations.take(field, checked)
}

pub(super) fn role_from_pb(field: &str, role: i32, violations: &mut FieldViolations) -> Option<Role> {
    match common::Role::try_from(role) {
        Ok(common::Role::Unspecified) => None,
        Ok(common::Role::Viewer) => Some(Role::Viewer),
        Ok(common::Role::Member) => Some(Role::Member),
        Ok(common::Role::Maintainer) => Some(Role::Maintainer),
        Ok(common::Role::Admin) => Some(Role::Admin),
        Err(_) => {
            violations.add(field, "is not a role");
            None
        }
    }
}

pub(super) const fn role_to_pb(role: Role) -> common::Role {
    match role {
        Role::Viewer => common::Role::Viewer,
        Role::Member => common::Role::Member,
        Role::Maintainer => common::Role::Maintainer,
        Role::Admin => common::Role::Admin,
    }
}

/// The origins that a job can have; everything else counts as foreground, which the core refuses for a job.
pub(super) fn origin_from_pb(origin: i32) -> Origin {
    match common::Origin::try_from(origin) {
        Ok(common::Origin::Review) => Origin::Review,
        Ok(common::Origin::Curation) => Origin::Curation,
        _ => Origin::Foreground,
    }
}

/// `None` for what is not given.
pub(super) fn integrity_from_pb(integrity: i32) -> Option<Integrity> {
    match common::Integrity::try_from(integrity) {
        Ok(common::Integrity::External) => Some(Integrity::External),
        Ok(common::Integrity::UnknownTool) => Some(Integrity::UnknownTool),
        Ok(common::Integrity::Workspace) => Some(Integrity::Workspace),
        Ok(common::Integrity::Person) => Some(Integrity::Person),
        Ok(common::Integrity::Operator) => Some(Integrity::Operator),
        Ok(common::Integrity::Unspecified) | Err(_) => None,
    }
}

pub(super) fn session_key(field: &str, name: &str, violations: &mut FieldViolations) -> Option<SessionKey> {
    let (team, id): (TeamId, SessionId) = violations.take(field, parse_session(name))?;
    Some(SessionKey { team, id })
}

/// `teams/{team}/users/{user}/tokens/{token}`.
pub(super) fn token_name(
    field: &str,
    name: &str,
    violations: &mut FieldViolations,
) -> Option<(TeamId, UserId, TokenId)> {
    let pattern = "teams/{team}/users/{user}/tokens/{token}";
    let parsed = segments(name, ["teams", "users", "tokens"], pattern)
        .and_then(|[team, user, token]| Ok((TeamId::parse(team)?, UserId::parse(user)?, TokenId::parse(token)?)));
    violations.take(field, parsed)
}

pub(super) fn usage_to_pb(usage: Usage) -> common::Usage {
    common::Usage {
        input_tokens: usage.input,
        cached_input_tokens: usage.cached_input,
        cache_write_tokens: usage.cache_write,
        output_tokens: usage.output,
    }
}

pub(super) fn exposure_to_pb(exposure: Exposure) -> common::Exposure {
    common::Exposure {
        artifact: exposure.artifact,
        revision: exposure.revision,
        stage: exposure.stage,
        assignment_unit: exposure.assignment_unit,
        arm: exposure.arm,
        propensity: exposure.propensity,
    }
}

pub(super) fn team_to_pb(team: Team) -> access::Team {
    access::Team {
        name: team_name(&team.id),
        display_name: team.display_name,
        create_time: Some(timestamp_to_pb(team.created)),
    }
}

pub(super) fn user_to_pb(user: User) -> access::User {
    access::User {
        name: user_name(&user.team, &user.id),
        display_name: user.display_name,
        role: role_to_pb(user.role).into(),
        disabled: user.disabled,
        create_time: Some(timestamp_to_pb(user.created)),
    }
}

pub(super) fn token_to_pb(token: &AccessToken) -> access::AccessToken {
    access::AccessToken {
        name: format!("{}/tokens/{}", user_name(&token.team, &token.user), token.id),
        label: token.label.clone(),
        create_time: Some(timestamp_to_pb(token.created)),
        expire_time: Some(timestamp_to_pb(token.expires)),
        revoke_time: token.revoked.map(timestamp_to_pb),
    }
}
