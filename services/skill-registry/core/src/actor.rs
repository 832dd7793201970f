//! Who acts, as far as the registry cares: taken from the verified credential, once per call.

use steward_base::names::{TeamId, UserId};
use steward_base::{Caller, Identity, JobRef, Origin, Role};

use crate::error::Error;
use crate::name::{Scope, SkillName};
use crate::record::{Authorship, Evidence};
use crate::store::Reader;

/// A caller inside its team.
#[derive(Debug, Clone)]
pub struct Actor {
    /// The tenant; nothing outside of it exists for this call.
    pub team: TeamId,
    /// The person, or on whose behalf.
    pub user: Option<UserId>,
    /// The person's role.
    pub role: Role,
    /// Proven origin of what it writes.
    pub origin: Origin,
    /// Session, turn and job that the credential is bound to.
    pub session: Option<String>,
    /// Turn that the credential is bound to.
    pub turn: Option<String>,
    /// Claim that the credential is bound to.
    pub job: Option<JobRef>,
    /// Whether an agent acts, and not a person's own program.
    pub is_agent: bool,
    /// The credential's id, for the audit.
    pub token_id: String,
}

impl Actor {
    /// From the verified caller. A caller without a team has nothing to look for here.
    pub fn new(caller: &Caller) -> Result<Self, Error> {
        let Some(team) = caller.team.clone() else {
            return Err(Error::SkillNotFound {
                skill: "of no team".to_owned(),
            });
        };
        let turn = match &caller.identity {
            Identity::Turn { turn, .. } => Some(turn.clone()),
            Identity::User | Identity::Job { .. } | Identity::Service { .. } => None,
        };
        Ok(Self {
            team,
            user: caller.user.clone(),
            role: caller.role,
            origin: caller.origin,
            session: caller.session().map(str::to_owned),
            turn,
            job: caller.job().cloned(),
            is_agent: matches!(caller.identity, Identity::Turn { .. } | Identity::Job { .. }),
            token_id: caller.token_id.clone(),
        })
    }

    /// From the verified caller, who asks for the view of `team` and `user`. Another's answers as if it did not exist.
    pub fn in_view(caller: &Caller, team: &TeamId, user: &UserId) -> Result<Self, Error> {
        let actor = Self::new(caller)?;
        if actor.team == *team && actor.user.as_ref() == Some(user) {
            Ok(actor)
        } else {
            Err(Error::SkillNotFound {
                skill: format!("of teams/{team}/users/{user}"),
            })
        }
    }

    /// The scopes that it sees, nearest first.
    pub fn scopes(&self) -> Vec<Scope> {
        let own = self.user.clone().map(Scope::User);
        own.into_iter()
            .chain([Scope::Team, Scope::External, Scope::Hub, Scope::Builtin])
            .collect()
    }

    /// Whether the skill with this name can exist for it.
    pub fn sees(&self, name: &SkillName) -> bool {
        name.team.as_ref().is_none_or(|team| *team == self.team) && self.scopes().contains(&name.scope)
    }

    /// Who remembers what it reads: a job before a session, since a job looks at a session that is not its own.
    pub fn reader(&self) -> Option<Reader> {
        if !self.is_agent {
            return None;
        }
        let job = self.job.as_ref().map(|job| Reader::Job(job.id.clone()));
        job.or_else(|| self.session.clone().map(Reader::Session))
    }

    /// Whether what it looks at counts as a use (`S-9`).
    pub const fn is_use(&self) -> bool {
        matches!(self.origin, Origin::Foreground | Origin::Schedule | Origin::Delegate)
    }

    /// The person's or the job's share of request ids.
    pub fn request_scope(&self) -> String {
        match (&self.job, &self.user) {
            (Some(job), _) => format!("job/{}", job.id),
            (None, Some(user)) => format!("user/{user}"),
            (None, None) => format!("token/{}", self.token_id),
        }
    }

    /// For a revision.
    pub fn authorship(&self, reason: &str, evidence: &[Evidence]) -> Authorship {
        Authorship {
            user: self.user.clone(),
            origin: self.origin,
            session: self.session.clone(),
            turn: self.turn.clone(),
            job: self.job.clone(),
            reason: reason.to_owned(),
            evidence: evidence.to_vec(),
        }
    }

    /// For the audit.
    pub fn audit_name(&self) -> String {
        let user = self.user.as_ref().map_or("-", UserId::as_str);
        format!("{user} {} {}", self.origin, self.token_id)
    }
}
