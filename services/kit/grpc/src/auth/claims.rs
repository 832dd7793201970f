//! What a token says, and which caller that makes.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use steward_base::names::{SessionId, TeamId, UserId};
use steward_base::{Caller, Capability, Identity, JobRef, Origin, Role, Timestamp};

/// The only issuer.
pub const ISSUER: &str = "steward";

/// Prefix of a service's subject: `services/curator-worker`.
pub const SERVICE_PREFIX: &str = "services/";

/// The service that signs and revokes, and that acts for a person during a turn.
pub const ORCHESTRATOR: &str = "agent-orchestrator";

/// The service that runs jobs.
pub const WORKER: &str = "curator-worker";

/// What a token was issued for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenKind {
    /// A person.
    User,
    /// One turn of the agent.
    Turn,
    /// One claim of a job.
    Job,
    /// A service.
    Service,
}

/// The content of a token. Times are whole seconds since the Unix epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// Always [`ISSUER`].
    pub iss: String,
    /// The user's id, or `services/{name}`.
    pub sub: String,
    /// Token id, for audit and revocation.
    pub jti: String,
    /// When it was issued.
    pub iat: i64,
    /// When it ends.
    pub exp: i64,
    /// What it is for.
    pub kind: TokenKind,
    /// The team that its bearer stays inside of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<TeamId>,
    /// The person on whose behalf its bearer acts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserId>,
    /// The person's role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Where the bearer's writes come from; absent: a person is present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The session that it is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The turn that it is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// The job and claim that it is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobRef>,
    /// What a restricted token permits.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub caps: BTreeSet<Capability>,
}

impl Claims {
    /// A person's own token.
    pub fn user(id: impl Into<String>, team: TeamId, user: UserId, role: Role, from: Timestamp, to: Timestamp) -> Self {
        let mut claims = Self::new(TokenKind::User, user.to_string(), id.into(), from, to);
        claims.team = Some(team);
        claims.user = Some(user);
        claims.role = Some(role);
        claims
    }

    /// A service's token. [`Claims::on_behalf`] adds a person.
    pub fn service(id: impl Into<String>, name: &str, from: Timestamp, to: Timestamp) -> Self {
        Self::new(
            TokenKind::Service,
            format!("{SERVICE_PREFIX}{name}"),
            id.into(),
            from,
            to,
        )
    }

    /// Names the person for whom a service acts.
    #[must_use]
    pub fn on_behalf(mut self, team: TeamId, user: UserId, role: Role) -> Self {
        self.team = Some(team);
        self.user = Some(user);
        self.role = Some(role);
        self
    }

    /// Narrows a person's claims to one turn.
    #[must_use]
    pub fn for_turn(mut self, session: SessionId, turn: impl Into<String>, caps: BTreeSet<Capability>) -> Self {
        self.kind = TokenKind::Turn;
        self.session = Some(session);
        self.turn = Some(turn.into());
        self.caps = caps;
        self
    }

    /// Narrows a person's claims to one claim of a job. `origin` is review or curation.
    #[must_use]
    pub fn for_job(
        mut self,
        job: JobRef,
        origin: Origin,
        session: Option<SessionId>,
        caps: BTreeSet<Capability>,
    ) -> Self {
        self.kind = TokenKind::Job;
        self.job = Some(job);
        self.origin = Some(origin);
        self.session = session;
        self.caps = caps;
        self
    }

    fn new(kind: TokenKind, sub: String, jti: String, from: Timestamp, to: Timestamp) -> Self {
        Self {
            iss: ISSUER.to_owned(),
            sub,
            jti,
            iat: from.as_secs(),
            exp: to.as_secs(),
            kind,
            team: None,
            user: None,
            role: None,
            origin: None,
            session: None,
            turn: None,
            job: None,
            caps: BTreeSet::new(),
        }
    }

    /// The caller that these claims make, or what is missing from them.
    pub(super) fn into_caller(self) -> Result<Caller, &'static str> {
        let personal = self.kind != TokenKind::Service;
        if personal && (self.team.is_none() || self.user.is_none() || self.role.is_none()) {
            return Err("names no team, user or role");
        }
        // Half a person would be nobody whom a revocation could name.
        if self.user.is_some() && self.team.is_none() {
            return Err("names a user without a team");
        }
        if self.jti.is_empty() {
            return Err("has no id");
        }
        let origin = self.origin.unwrap_or(Origin::Foreground);
        let identity = match self.kind {
            TokenKind::User => Identity::User,
            TokenKind::Turn => Identity::Turn {
                session: self.session.ok_or("names no session")?.to_string(),
                turn: self.turn.ok_or("names no turn")?,
                capabilities: self.caps,
            },
            // A job that passes for a person would get around every gate that asks for one.
            TokenKind::Job if !origin.is_automatic() => return Err("is a job's without an automatic origin"),
            TokenKind::Job => Identity::Job {
                job: self.job.ok_or("names no job")?,
                session: self.session.map(|session| session.to_string()),
                capabilities: self.caps,
            },
            TokenKind::Service => {
                let name = self.sub.strip_prefix(SERVICE_PREFIX).filter(|name| !name.is_empty());
                let name = name.ok_or("names no service")?;
                Identity::Service { name: name.to_owned() }
            }
        };
        Ok(Caller {
            team: self.team,
            user: self.user,
            role: self.role.unwrap_or(Role::Viewer),
            origin,
            identity,
            token_id: self.jti,
        })
    }
}
