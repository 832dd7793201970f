//! The signing key at work: credentials for people, jobs and services as the core asks for them, and the short-lived ones
//! with which this service calls others.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use steward_base::names::{SessionId, TeamId, UserId};
use steward_base::{Clock, IdGen, Origin, Role, Timestamp};
use steward_client::Credentials;
use steward_grpc::{Claims as Token, TokenSigner};
use steward_orchestrator_core::access::{Claims, Credential, Signer, SigningError, Subject};

/// Name of this service in its own credentials.
const SELF_SERVICE: &str = "agent-orchestrator";

/// Life of a credential that this service makes for its own calls.
const LIFE: Duration = Duration::from_mins(10);

/// It is replaced when it has less than this left.
const SPARE: Duration = Duration::from_mins(5);

/// The [`Signer`] with the installation's key.
#[derive(Debug)]
pub(crate) struct KeySigner(TokenSigner);

impl KeySigner {
    pub(crate) fn new(signer: TokenSigner) -> Self {
        Self(signer)
    }
}

/// Claims that say nothing: a fault of the code that made them.
#[derive(Debug, thiserror::Error)]
#[error("a person's credential names no person")]
struct NoPerson;

impl Signer for KeySigner {
    fn sign(&self, claims: &Claims) -> Result<Credential, SigningError> {
        let Claims {
            id,
            subject,
            person,
            role,
            origin,
            issued,
            expires,
        } = claims.clone();
        let personal = |person: Option<(TeamId, UserId)>| match person {
            Some((team, user)) => Ok(Token::user(id.clone(), team, user, role, issued, expires)),
            None => Err(SigningError(Box::new(NoPerson))),
        };
        let token = match subject {
            Subject::User => personal(person)?,
            Subject::Turn {
                session,
                turn,
                capabilities,
            } => personal(person)?.for_turn(session, turn, capabilities),
            Subject::Job {
                job,
                session,
                capabilities,
            } => personal(person)?.for_job(job, origin, session, capabilities),
            Subject::Service { name } => {
                let token = Token::service(id, &name, issued, expires);
                match person {
                    Some((team, user)) => token.on_behalf(team, user, role),
                    None => token,
                }
            }
        };
        let text = self.0.sign(&token).map_err(|error| SigningError(Box::new(error)))?;
        Ok(Credential::new(text))
    }
}

/// The person for whom a turn runs, as its credential proved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Person {
    pub(crate) team: TeamId,
    pub(crate) user: UserId,
    pub(crate) role: Role,
}

/// Makes the credentials of this service's own calls.
#[derive(Clone)]
pub(crate) struct Minter {
    signer: Arc<dyn Signer>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdGen>,
}

impl fmt::Debug for Minter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Minter").finish_non_exhaustive()
    }
}

impl Minter {
    pub(crate) fn new(signer: Arc<dyn Signer>, clock: Arc<dyn Clock>, ids: Arc<dyn IdGen>) -> Self {
        Self { signer, clock, ids }
    }

    /// For calls between services.
    pub(crate) fn service(&self) -> Credentials {
        let subject = Subject::Service {
            name: SELF_SERVICE.to_owned(),
        };
        self.renewing(subject, None, Role::Viewer)
    }

    /// For what a turn does on behalf of a person: nothing but these capabilities (`A-2`).
    pub(crate) fn turn(
        &self,
        person: &Person,
        session: &SessionId,
        turn: &str,
        capabilities: BTreeSet<String>,
    ) -> Credentials {
        let subject = Subject::Turn {
            session: session.clone(),
            turn: turn.to_owned(),
            capabilities,
        };
        self.renewing(subject, Some((person.team.clone(), person.user.clone())), person.role)
    }

    /// One credential, made when it is first needed and again before it ends.
    fn renewing(&self, subject: Subject, person: Option<(TeamId, UserId)>, role: Role) -> Credentials {
        let source = self.clone();
        let kept: Arc<Mutex<Option<(Timestamp, String)>>> = Arc::default();
        Credentials::provider(move || {
            let minted = source.current(&kept, &subject, person.as_ref(), role);
            std::future::ready(minted.map_err(Into::into))
        })
    }

    fn current(
        &self,
        kept: &Mutex<Option<(Timestamp, String)>>,
        subject: &Subject,
        person: Option<&(TeamId, UserId)>,
        role: Role,
    ) -> Result<String, SigningError> {
        let now = self.clock.now();
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((expires, text)) = &*kept
            && now.plus(SPARE) < *expires
        {
            return Ok(text.clone());
        }
        let claims = Claims {
            id: self.ids.new_id(),
            subject: subject.clone(),
            person: person.cloned(),
            role,
            origin: Origin::Foreground,
            issued: now,
            expires: now.plus(LIFE),
        };
        let text = self.signer.sign(&claims)?.reveal().to_owned();
        *kept = Some((claims.expires, text.clone()));
        Ok(text)
    }
}
