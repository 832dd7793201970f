//! `AuditService`: what the log of this process says, for admins, about their own team.

use std::sync::Arc;

use steward_base::names::{TeamId, UserId, parse_team, parse_user, user_name};
use steward_base::{Caller, ErrorKind, Fault, FieldViolations, Timestamp, page};
use steward_grpc::{caller, code_name, status, team_of};
use steward_proto::access::v1 as pb;
use steward_proto::access::v1::audit_service_server::AuditService;
use steward_store::StoreError;
use tonic::{Code, Request, Response, Status};

use crate::log::AuditLog;
use crate::store::{NO_TEAM, Query, Row};

const DOMAIN: &str = "access.steward.dev";
const DEFAULT_PAGE: u32 = 50;
const LARGEST_PAGE: u32 = 500;

/// Lists.
#[derive(Debug, Clone)]
pub(crate) struct AuditRpc {
    log: Arc<AuditLog>,
    home: TeamId,
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("team {team} does not exist")]
    TeamNotFound { team: TeamId },
    #[error("only an admin of the installation's home team may see records without a team")]
    HomeTeamRequired,
    #[error("{0}")]
    Invalid(FieldViolations),
    #[error("the audit log cannot be written at present")]
    NotWritten,
    #[error("the audit log cannot be read")]
    Store(#[from] StoreError),
}

impl From<FieldViolations> for Error {
    fn from(violations: FieldViolations) -> Self {
        Self::Invalid(violations)
    }
}

impl Fault for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::TeamNotFound { .. } => ErrorKind::NotFound,
            Self::HomeTeamRequired => ErrorKind::Forbidden,
            Self::Invalid(violations) => violations.kind(),
            Self::NotWritten => ErrorKind::Unavailable,
            Self::Store(error) => error.kind(),
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::TeamNotFound { .. } => "TEAM_NOT_FOUND",
            Self::HomeTeamRequired => "HOME_TEAM_REQUIRED",
            Self::Invalid(violations) => violations.reason(),
            Self::NotWritten => "DEPENDENCY_UNAVAILABLE",
            Self::Store(error) => match error.kind() {
                ErrorKind::Unavailable => "DEPENDENCY_UNAVAILABLE",
                ErrorKind::Exhausted => "STORAGE_FULL",
                ErrorKind::DataLoss => "DATA_DAMAGED",
                _ => "INTERNAL",
            },
        }
    }

    fn metadata(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::TeamNotFound { team } => vec![("team", team.to_string())],
            Self::NotWritten => vec![("dependency", "audit log".to_owned())],
            Self::HomeTeamRequired | Self::Invalid(_) | Self::Store(_) => Vec::new(),
        }
    }

    fn violations(&self) -> &[steward_base::FieldViolation] {
        match self {
            Self::Invalid(violations) => violations.violations(),
            _ => &[],
        }
    }
}

impl AuditRpc {
    pub(crate) fn new(log: Arc<AuditLog>, home: TeamId) -> Self {
        Self { log, home }
    }

    async fn list(
        &self,
        caller: &Caller,
        request: pb::ListAuditEventsRequest,
    ) -> Result<pb::ListAuditEventsResponse, Error> {
        let asked = parse(&request)?;
        let named = asked.team.clone();
        let team = team_of(caller, asked.team, || Error::TeamNotFound { team: named })?;
        if request.include_unattributed && team != self.home {
            return Err(Error::HomeTeamRequired);
        }
        if !self.log.flush().await {
            return Err(Error::NotWritten);
        }
        let limit = usize::try_from(asked.query.limit).unwrap_or(usize::MAX);
        let one_more = Query {
            team: team.to_string(),
            limit: asked.query.limit + 1,
            ..asked.query
        };
        let mut rows = self.log.store().list(one_more.clone()).await?;
        // Of a user there is none without a team.
        if request.include_unattributed && one_more.user.is_empty() {
            let without_team = Query {
                team: NO_TEAM.to_owned(),
                ..one_more
            };
            rows.extend(self.log.store().list(without_team).await?);
            rows.sort_unstable_by_key(|row| std::cmp::Reverse((row.time, row.id)));
        }
        let more = rows.len() > limit;
        rows.truncate(limit);
        let last = rows.last().filter(|_| more);
        let next_page_token = last
            .map(|row| page::encode(&binding(&request, &asked.range), &format!("{},{}", row.time, row.id)))
            .unwrap_or_default();
        Ok(pb::ListAuditEventsResponse {
            audit_events: rows.into_iter().map(to_pb).collect(),
            next_page_token,
        })
    }
}

struct Asked {
    team: TeamId,
    query: Query,
    range: String,
}

/// What a page token is good for.
fn binding<'a>(request: &'a pb::ListAuditEventsRequest, range: &'a str) -> [&'a str; 6] {
    [
        &request.parent,
        range,
        &request.user,
        &request.method,
        request.outcome().as_str_name(),
        if request.include_unattributed { "all" } else { "" },
    ]
}

fn parse(request: &pb::ListAuditEventsRequest) -> Result<Asked, FieldViolations> {
    let mut violations = FieldViolations::new();
    let team = violations.take("parent", parse_team(&request.parent));
    let time = |given: Option<prost_types::Timestamp>, absent: i64| {
        given.map_or(absent, |at| Timestamp::from_parts(at.seconds, at.nanos).as_micros())
    };
    let (from, to) = (time(request.start_time, i64::MIN), time(request.end_time, i64::MAX));
    if from > to {
        violations.add("end_time", "must not be before start_time");
    }
    let user = if request.user.is_empty() {
        String::new()
    } else {
        match violations.take("user", parse_user(&request.user)) {
            Some((of, _)) if team.as_ref().is_some_and(|team| *team != of) => {
                violations.add("user", "must be of the team");
                String::new()
            }
            Some((_, user)) => user.to_string(),
            None => String::new(),
        }
    };
    if pb::AuditOutcome::try_from(request.outcome).is_err() {
        violations.add("outcome", "must be one of the contract's");
    }
    let range = format!("{from},{to}");
    let limit = page::size(request.page_size, DEFAULT_PAGE, LARGEST_PAGE);
    let limit = violations.take("page_size", limit.map_err(|wrong| first_description(&wrong)));
    let cursor = page::decode(&binding(request, &range), &request.page_token).and_then(|cursor| match cursor {
        Some(cursor) => position(&cursor).ok_or_else(|| FieldViolations::one("page_token", "is damaged")),
        None => Ok((i64::MAX, i64::MAX)),
    });
    let after = violations.take("page_token", cursor.map_err(|wrong| first_description(&wrong)));
    match (team, limit, after) {
        (Some(team), Some(limit), Some(after)) if violations.is_empty() => Ok(Asked {
            query: Query {
                team: team.to_string(),
                from,
                to,
                after,
                user,
                method: request.method.trim_matches('/').to_owned(),
                outcome: request.outcome,
                limit,
            },
            team,
            range,
        }),
        _ => Err(violations),
    }
}

/// `page` names the field itself; here it is named with all others.
fn first_description(violations: &FieldViolations) -> String {
    violations
        .as_slice()
        .first()
        .map(|violation| violation.description.clone())
        .unwrap_or_default()
}

fn position(cursor: &str) -> Option<(i64, i64)> {
    let (time, id) = cursor.split_once(',')?;
    Some((time.parse().ok()?, id.parse().ok()?))
}

fn to_pb(row: Row) -> pb::AuditEvent {
    let (seconds, nanos) = Timestamp::from_micros(row.time).to_parts();
    let user = TeamId::parse(row.team.as_str())
        .ok()
        .zip(UserId::parse(row.user.as_str()).ok());
    let team = if row.team.is_empty() { "-" } else { &row.team };
    pb::AuditEvent {
        name: format!("teams/{team}/auditEvents/{}", row.id),
        time: Some(prost_types::Timestamp { seconds, nanos }),
        service: row.service,
        method: row.method,
        principal_kind: row.kind,
        user: user.map(|(team, user)| user_name(&team, &user)).unwrap_or_default(),
        role: row.role,
        origin: row.origin,
        caller_service: row.caller,
        job_id: row.job,
        fence: u64::try_from(row.fence).unwrap_or(0),
        session_id: row.session,
        token_id: row.token,
        resources: row.resources.lines().map(str::to_owned).collect(),
        request_id: row.request,
        peer: row.peer,
        outcome: row.outcome,
        code: code_name(Code::from_i32(row.code)).to_owned(),
        reason: row.reason,
        count: u64::try_from(row.count).unwrap_or(0),
    }
}

#[tonic::async_trait]
impl AuditService for AuditRpc {
    async fn list_audit_events(
        &self,
        request: Request<pb::ListAuditEventsRequest>,
    ) -> Result<Response<pb::ListAuditEventsResponse>, Status> {
        let caller = caller(&request)?.clone();
        let listed = self.list(&caller, request.into_inner()).await;
        listed.map(Response::new).map_err(|error| status(&error, DOMAIN))
    }
}
