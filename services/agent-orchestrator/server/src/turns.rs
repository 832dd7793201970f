//! Turns at work: segments that run supervised in this service whether or not anyone listens (`T-7`, `T-8`).
//!
//! The store is the truth and this module only moves it along: a segment is begun, continued or taken up again from what
//! is stored, under a lease. What is kept here in memory, the events of a turn, is for those who watch; when it is gone
//! the stored messages tell the same in fewer words. Rules without effects are in the core, the loop is in the kernel.

mod beside;
mod clean;
mod close;
mod interrupt;
mod kept;
mod lines;
mod live;
mod log;
mod message;
mod natives;
mod owed;
mod pending;
mod ports;
mod ready;
mod registry;
mod segment;
mod start;
mod steer;
#[cfg(test)]
mod tests;
mod transcript;
mod watch;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use steward_agent::counters::NudgeSettings;
use steward_base::{Clock, PerTeam};
use steward_orchestrator_core::Error;
use steward_orchestrator_core::session::{Opened, Session, SessionKey, SessionStore, TurnLease};
use steward_orchestrator_core::turn::{ClientResult, UserMessage};
use steward_runtime::Tasks;
use steward_tools::{BuiltinTools, ToolAnswer, ToolContext};

use crate::locks::SessionLocks;
use crate::metrics::TurnMetrics;
use crate::model::Models;
use crate::owed::Owed;
use crate::peers::Beside;
use crate::signer::{Minter, Person};

use lines::Lines;
use registry::Registry;

pub(crate) use beside::has_provider;
pub(crate) use kept::KeptSessions;
pub(crate) use log::Following;

/// The built-in tools, as a turn calls them.
#[async_trait]
pub(crate) trait ToolRunner: fmt::Debug + Send + Sync {
    /// Calls a tool; always answers.
    async fn call(&self, context: &ToolContext, name: &str, arguments: &str) -> ToolAnswer;
}

#[async_trait]
impl ToolRunner for BuiltinTools {
    async fn call(&self, context: &ToolContext, name: &str, arguments: &str) -> ToolAnswer {
        BuiltinTools::call(self, context, name, arguments).await
    }
}

/// Limits of a turn.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    /// Model calls of one turn.
    pub(crate) iterations: u32,
    /// Life of a lease without a heartbeat.
    pub(crate) lease: Duration,
    /// How long a turn waits for the client.
    pub(crate) client_wait: Duration,
    /// When reviews become due.
    pub(crate) nudges: PerTeam<NudgeSettings>,
}

/// What turns need from around them.
pub(crate) struct Parts {
    pub(crate) sessions: Arc<dyn SessionStore>,
    pub(crate) locks: SessionLocks,
    /// Sessions for their next turn.
    pub(crate) kept: KeptSessions,
    pub(crate) models: Models,
    pub(crate) tools: Arc<dyn ToolRunner>,
    pub(crate) beside: Arc<dyn Beside>,
    /// What external memories are still to be told.
    pub(crate) owed: Arc<dyn Owed>,
    pub(crate) minter: Minter,
    pub(crate) tasks: Tasks,
    pub(crate) clock: Arc<dyn Clock>,
    /// Name under which leases are taken: the same after a restart, so that a session is not locked out by its own past.
    pub(crate) holder: String,
    pub(crate) limits: Limits,
    /// Ended turns whose events are kept.
    pub(crate) kept_turns: usize,
}

struct Shared {
    parts: Parts,
    registry: Registry,
    lines: Lines,
    metrics: TurnMetrics,
}

/// The turn engine. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Turns(Arc<Shared>);

impl fmt::Debug for Turns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turns")
            .field("registry", &self.0.registry)
            .finish_non_exhaustive()
    }
}

/// What a segment begins with.
#[derive(Debug, Clone)]
pub(crate) enum Input {
    /// A new user message.
    Message(UserMessage),
    /// Results of all open calls.
    Results(Vec<ClientResult>),
}

impl Input {
    fn fingerprint(&self) -> String {
        match self {
            Self::Message(message) => message.fingerprint(),
            Self::Results(results) => ClientResult::fingerprint(results),
        }
    }
}

impl Turns {
    pub(crate) fn new(parts: Parts) -> Self {
        let registry = Registry::new(parts.kept_turns);
        let metrics = TurnMetrics::of_process();
        Self(Arc::new(Shared {
            parts,
            registry,
            lines: Lines::default(),
            metrics,
        }))
    }

    fn parts(&self) -> &Parts {
        &self.0.parts
    }

    fn store(&self) -> &dyn SessionStore {
        &*self.0.parts.sessions
    }

    fn registry(&self) -> &Registry {
        &self.0.registry
    }

    fn lines(&self) -> &Lines {
        &self.0.lines
    }

    fn kept(&self) -> &KeptSessions {
        &self.0.parts.kept
    }

    fn metrics(&self) -> &TurnMetrics {
        &self.0.metrics
    }

    /// The session, if it is the person's: another's does not exist.
    pub(crate) async fn own_session(&self, person: &Person, key: &SessionKey) -> Result<Session, Error> {
        let missing = || Error::SessionNotFound { session: key.name() };
        if key.team != person.team {
            return Err(missing());
        }
        let session = self.store().session(key).await?;
        session
            .filter(|session| session.user == person.user)
            .ok_or_else(missing)
    }

    /// The session with its messages and one of its turns, if it is the person's.
    async fn open(&self, person: &Person, key: &SessionKey, turn: &str) -> Result<Opened, Error> {
        let missing = || Error::SessionNotFound { session: key.name() };
        if key.team != person.team {
            return Err(missing());
        }
        let opened = self.store().open(key, turn).await?;
        opened
            .filter(|opened| opened.session.user == person.user)
            .ok_or_else(missing)
    }

    /// The lease that goes with the first append of a turn.
    fn lease(&self, turn: &str) -> TurnLease {
        let Parts { holder, limits, .. } = self.parts();
        TurnLease {
            turn: turn.to_owned(),
            holder: holder.clone(),
            ttl: limits.lease,
        }
    }

    /// The lease of the session for a turn. Called under the session's lock with nothing of it running here, so that a
    /// lease which this very service left behind when it was killed may be taken over at once.
    async fn take_lease(&self, key: &SessionKey, turn: &str) -> Result<u64, Error> {
        let Parts { holder, limits, .. } = self.parts();
        match self.store().acquire_lease(key, turn, holder, limits.lease).await {
            Err(Error::TurnRunning { turn: other }) if other != turn => {
                let left = self.store().acquire_lease(key, &other, holder, limits.lease).await?;
                self.store().release_lease(key, left).await?;
                self.store().acquire_lease(key, turn, holder, limits.lease).await
            }
            outcome => outcome,
        }
    }

    /// Reads a session for its next turn, while nobody waits for it.
    async fn read_ahead(&self, key: &SessionKey) {
        let is_at_rest = || self.registry().running(key).is_none();
        if !is_at_rest() {
            return;
        }
        match self.store().open(key, "").await {
            Ok(Some(opened)) if opened.session.open_turn.is_none() && is_at_rest() => {
                self.kept().keep(opened, self.parts().clock.now());
            }
            Ok(_) => {}
            Err(error) => {
                tracing::debug!(session.id = %key.id, error = steward_base::error_chain(&error), "a session was not read ahead");
            }
        }
    }

    /// Gives a lease up. It would end by itself; a failure only makes the next turn wait.
    async fn give_up_lease(&self, key: &SessionKey, fence: u64) {
        if let Err(error) = self.store().release_lease(key, fence).await {
            tracing::warn!(session.id = %key.id, error = %error, "could not give a turn lease up");
        }
    }
}

/// What a turn's credential permits: the built-in tools and what belongs to them (`A-2`).
fn turn_capabilities() -> BTreeSet<String> {
    let around = ["memory_snapshot", "skill_index", "memory_provider", "memory_checks"];
    steward_tools::NAMES
        .into_iter()
        .chain(around)
        .map(str::to_owned)
        .collect()
}
