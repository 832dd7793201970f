//! The desk between turns and the external memories of teams (`M-15`, `M-18`, `M-19`).
//!
//! Reads have a deadline and a breaker, so that a slow or dead provider costs a turn at most that deadline, and soon
//! nothing. Writes of a session stand in one line each and are made one after the other, tried again a few times, then let
//! go of with a word in the log; whoever waits for one is told and may hand it over again. When the service stops, lines have a few seconds to empty.

mod grpc;
mod lane;
mod mem0;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use steward_base::names::{TeamId, UserId};
use steward_base::{Caller, Clock, Origin};
use steward_memory_core::provider::{
    Breaker, Erasing, Event, Provider, ProviderError, Providers, Scope, ToolCall, ToolReply, ToolSchema, Turn, accept,
    fenced, own_answer, shown, words,
};
use tokio::time::timeout;

use self::lane::{Fate, Lane, Task};
use crate::config::{ProviderConfig, ProviderKind};

pub(crate) use self::grpc::GrpcProvider;
pub(crate) use self::mem0::Mem0Provider;

/// How long a tool of a provider may take.
const TOOL_TIME: Duration = Duration::from_secs(20);
/// How long a provider has to erase a person: whoever asks for it waits for more than this one.
const ERASE_TIME: Duration = Duration::from_secs(10);
/// Names the end of a session, whoever tells of it.
const SESSION_END: &str = "session-end";
/// How many sessions are ended at once.
const AT_ONCE: usize = 8;
/// How long lines have to empty when the service stops.
pub(crate) const DRAIN_TIME: Duration = Duration::from_secs(5);
/// How long somebody waits for a write who wants to know what became of it; the write goes on.
const WAIT_TIME: Duration = Duration::from_secs(15);
/// Most that is recalled for one message.
const RECALLED: usize = 8;
/// Sessions whose lines are kept.
const MOST_LANES: usize = 1_024;

/// An answer of a provider, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asked<T> {
    /// It answered.
    Answered(T),
    /// The team has none, or the caller keeps away from it.
    None,
    /// It failed, or is left alone for now.
    Unavailable,
}

/// What became of a person in an external memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PersonErasure {
    /// The team has none.
    None,
    /// Nothing of the person is left there.
    Erased,
    /// It cannot erase a person.
    Unsupported,
    /// It failed or did not answer.
    Failed,
}

/// A write that stands in line.
#[derive(Debug)]
pub(crate) struct Queued(Fate);

impl Queued {
    /// Waits, not for ever, until the provider has it.
    pub(crate) async fn made(self) -> Asked<()> {
        match timeout(WAIT_TIME, self.0).await {
            Ok(Ok(true)) => Asked::Answered(()),
            Ok(Ok(false) | Err(_)) | Err(_) => Asked::Unavailable,
        }
    }
}

/// What a provider adds to a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) block: String,
    pub(crate) tools: Vec<ToolSchema>,
}

/// All providers with what is known of them. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Desk {
    attached: Arc<BTreeMap<TeamId, Arc<Attached>>>,
}

pub(super) struct Attached {
    provider: Arc<dyn Provider>,
    clock: Arc<dyn Clock>,
    /// How long it has to answer what a turn waits for.
    patience: Duration,
    breaker: Mutex<Breaker>,
    lanes: Mutex<HashMap<Scope, Lane>>,
}

impl fmt::Debug for Attached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attached")
            .field("provider", &self.provider)
            .finish_non_exhaustive()
    }
}

impl Desk {
    /// `patience` is how long a provider has to answer what a turn waits for.
    pub(crate) fn new(providers: Providers, patience: Duration, clock: &Arc<dyn Clock>) -> Self {
        let attach = |provider| {
            Arc::new(Attached {
                provider,
                clock: Arc::clone(clock),
                patience,
                breaker: Mutex::default(),
                lanes: Mutex::default(),
            })
        };
        let attached = providers.all().map(|(team, provider)| (team, attach(provider)));
        Self {
            attached: Arc::new(attached.collect()),
        }
    }

    /// What the provider adds to a session. Tools with a name of ours, or none that can be read, refuse all of them.
    pub(crate) async fn open(&self, caller: &Caller, scope: &Scope) -> Asked<Offer> {
        let Some(attached) = self.of(caller, scope) else {
            return Asked::None;
        };
        let Some(hello) = attached
            .ask(attached.patience, attached.provider.initialize(scope))
            .await
        else {
            return Asked::Unavailable;
        };
        let tools = accept(&hello.tools).unwrap_or_else(|error| {
            tracing::warn!(team = %scope.team, %error, "the tools of an external memory are refused");
            Vec::new()
        });
        Asked::Answered(Offer {
            block: shown(&hello.block),
            tools,
        })
    }

    /// The fenced block for a message; empty when nothing is recalled.
    pub(crate) async fn recall(&self, caller: &Caller, scope: &Scope, message: &str) -> Asked<String> {
        let Some(attached) = self.of(caller, scope) else {
            return Asked::None;
        };
        let Some(words) = words(message) else {
            return Asked::Answered(String::new());
        };
        let reading = attached.provider.prefetch(scope, words, RECALLED);
        match attached.ask(attached.patience, reading).await {
            None => Asked::Unavailable,
            Some(items) => Asked::Answered(fenced(&items, RECALLED)),
        }
    }

    /// Queues a turn: nothing where there is nothing to queue, unavailable without room.
    pub(crate) fn sync(
        &self,
        caller: &Caller,
        scope: &Scope,
        id: String,
        message: &str,
        answer: &str,
    ) -> Asked<Queued> {
        let Some(attached) = self.of(caller, scope) else {
            return Asked::None;
        };
        let Some(words) = words(message) else {
            return Asked::None;
        };
        let turn = Turn {
            id,
            user: words.to_owned(),
            assistant: own_answer(answer),
        };
        attached.queue(scope, Task::Sync(turn))
    }

    pub(crate) async fn call(&self, caller: &Caller, scope: &Scope, call: &ToolCall) -> Asked<ToolReply> {
        let Some(attached) = self.of(caller, scope) else {
            return Asked::None;
        };
        let calling = attached.provider.call_tool(scope, call);
        attached
            .ask(TOOL_TIME, calling)
            .await
            .map_or(Asked::Unavailable, Asked::Answered)
    }

    /// Tells what is about to be compressed, and waits for what ought to stay.
    pub(crate) async fn before_compression(&self, caller: &Caller, scope: &Scope, event: &Event) -> Asked<String> {
        let Some(attached) = self.of(caller, scope) else {
            return Asked::None;
        };
        let telling = attached.provider.observe(scope, event, "");
        match attached.ask(attached.patience, telling).await {
            None => Asked::Unavailable,
            Some(text) => Asked::Answered(shown(&text)),
        }
    }

    /// Tells of an event behind the turns.
    pub(crate) fn tell(&self, caller: &Caller, scope: &Scope, event: Event, id: String) -> Asked<Queued> {
        let Some(attached) = self.of(caller, scope) else {
            return Asked::None;
        };
        attached.queue(scope, Task::Tell(event, id))
    }

    /// Has everything of a person erased: what waits to be told of them is not told any more, and the sessions that it was told
    /// of are over first (`M-14`).
    pub(crate) async fn erase(&self, team: &TeamId, user: &UserId) -> PersonErasure {
        let Some(attached) = self.attached.get(team) else {
            return PersonErasure::None;
        };
        let open = attached.abandon(user).await;
        attached.end(open).await;
        match timeout(ERASE_TIME, attached.provider.erase_person(team, user)).await {
            Ok(Ok(Erasing::Erased)) => PersonErasure::Erased,
            Ok(Ok(Erasing::Unsupported)) => PersonErasure::Unsupported,
            Ok(Err(error)) => {
                tracing::warn!(%team, %error, "an external memory could not erase a person");
                PersonErasure::Failed
            }
            Err(_) => {
                tracing::warn!(%team, "an external memory took too long to erase a person");
                PersonErasure::Failed
            }
        }
    }

    /// Lets the lines empty, for as long as there is time, and tells the providers that we stop.
    pub(crate) async fn drain(&self) {
        let all = self.attached.values().map(|attached| attached.drain());
        if timeout(DRAIN_TIME, futures::future::join_all(all)).await.is_err() {
            tracing::warn!("an external memory did not take in all turns before the stop");
        }
    }

    fn of(&self, caller: &Caller, scope: &Scope) -> Option<&Arc<Attached>> {
        // Reviews, delegations and curations look at sessions that are not theirs to tell of (`M-19`).
        let keeps_away = matches!(caller.origin, Origin::Review | Origin::Curation | Origin::Delegate);
        self.attached.get(&scope.team).filter(|_| !keeps_away)
    }
}

impl Attached {
    /// Waits for an answer as long as it may take; nothing is asked of one that is left alone.
    async fn ask<T>(&self, limit: Duration, asking: impl Future<Output = Result<T, ProviderError>>) -> Option<T> {
        if !self.breaker().allows(self.clock.now()) {
            return None;
        }
        match timeout(limit, asking).await {
            Ok(Ok(answer)) => {
                self.breaker().succeeded();
                Some(answer)
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "an external memory failed");
                self.breaker().failed(self.clock.now());
                None
            }
            Err(_) => {
                tracing::warn!("an external memory took too long");
                self.breaker().failed(self.clock.now());
                None
            }
        }
    }

    fn queue(self: &Arc<Self>, scope: &Scope, task: Task) -> Asked<Queued> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if lanes.len() >= MOST_LANES {
            lanes.retain(|_, lane| !lane.is_idle());
        }
        let lane = lanes
            .entry(scope.clone())
            .or_insert_with(|| Lane::start(Arc::clone(&self.provider), scope.clone()));
        lane.push(task)
            .map_or(Asked::Unavailable, |fate| Asked::Answered(Queued(fate)))
    }

    /// Takes the person's lines away with all that waits in them; gives the sessions that had one.
    async fn abandon(&self, user: &UserId) -> Vec<Scope> {
        let (sessions, lanes): (Vec<Scope>, Vec<Lane>) = {
            let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
            lanes.extract_if(|scope, _| scope.user == *user).unzip()
        };
        futures::future::join_all(lanes.into_iter().map(Lane::abandon)).await;
        sessions
    }

    /// Says of sessions that they ended. What becomes of it is logged at most: all of them are erased next.
    async fn end(&self, sessions: Vec<Scope>) {
        let telling = sessions.into_iter().map(|scope| async move {
            let told = self.provider.observe(&scope, &Event::SessionEnd, SESSION_END);
            self.ask(self.patience, told).await
        });
        let all = stream::iter(telling).buffer_unordered(AT_ONCE).collect::<Vec<_>>();
        if timeout(ERASE_TIME, all).await.is_err() {
            tracing::warn!("an external memory was not told of all sessions of an erased person that they ended");
        }
    }

    async fn drain(&self) {
        let lanes: Vec<Lane> = {
            let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
            lanes.drain().map(|(_, lane)| lane).collect()
        };
        futures::future::join_all(lanes.into_iter().map(Lane::finish)).await;
        if let Err(error) = self.provider.shutdown().await {
            tracing::warn!(%error, "an external memory did not end well");
        }
    }

    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The provider that the settings describe.
pub(crate) fn from_config(config: &ProviderConfig) -> Result<Arc<dyn Provider>, String> {
    let key = config.key.reveal();
    Ok(match config.kind {
        ProviderKind::Grpc => Arc::new(GrpcProvider::connect(&config.url, key)?),
        ProviderKind::Mem0 => Arc::new(Mem0Provider::connect(&config.url, key)?),
    })
}
