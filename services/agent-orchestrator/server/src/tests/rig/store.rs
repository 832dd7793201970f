//! A store of sessions that loses its process: at a chosen append, before it is done or after, nothing answers any more.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use steward_base::names::{TeamId, UserId};
use steward_orchestrator_core::Error;
use steward_orchestrator_core::session::{
    Append, Appended, ExpiredTurn, Fork, InMemorySessionStore, MessagePage, NewSession, Opened, Rewind, Session,
    SessionKey, SessionPage, SessionStore, SessionUpdate, Turn,
};
use steward_testkit::{PATIENCE, wait_for};

/// On which side of an append the process is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Before,
    After,
}

/// The store as one process sees it.
#[derive(Debug)]
pub(crate) struct CrashingStore {
    inner: Arc<InMemorySessionStore>,
    crash: Mutex<Option<(&'static str, When)>>,
    dead: AtomicBool,
    /// What was asked of it for turns, in order: `open` with the turn, `append` with its request id.
    asked: Mutex<Vec<String>>,
}

impl CrashingStore {
    pub(crate) fn over(inner: Arc<InMemorySessionStore>) -> Self {
        Self {
            inner,
            crash: Mutex::default(),
            dead: AtomicBool::new(false),
            asked: Mutex::default(),
        }
    }

    /// Loses the process at the next append whose request id ends with `name`.
    pub(crate) fn crash_at(&self, name: &'static str, when: When) {
        *self.crash.lock().unwrap() = Some((name, when));
    }

    pub(crate) async fn crashed(&self) {
        wait_for("the process to be lost", PATIENCE, || async {
            self.dead.load(Ordering::SeqCst)
        })
        .await;
    }

    /// What was asked since this was asked last.
    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }

    /// Waits until the session was read for a turn that may follow.
    pub(crate) async fn read_ahead(&self) {
        wait_for("the session to be read ahead", PATIENCE, || async {
            self.asked.lock().unwrap().last().is_some_and(|last| last == "opened ")
        })
        .await;
    }

    fn note(&self, asked: String) {
        self.asked.lock().unwrap().push(asked);
    }

    async fn alive(&self) {
        if self.dead.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }

    async fn die_if(&self, request_id: &str, now: When) {
        let hit = {
            let crash = self.crash.lock().unwrap();
            crash.is_some_and(|(name, when)| when == now && request_id.ends_with(name))
        };
        if hit {
            self.dead.store(true, Ordering::SeqCst);
        }
        self.alive().await;
    }
}

#[async_trait]
impl SessionStore for CrashingStore {
    async fn create_session(&self, new: NewSession, request_id: &str) -> Result<Session, Error> {
        self.alive().await;
        self.inner.create_session(new, request_id).await
    }

    async fn session(&self, key: &SessionKey) -> Result<Option<Session>, Error> {
        self.alive().await;
        self.inner.session(key).await
    }

    async fn sessions(&self, team: &TeamId, user: &UserId, size: i32, token: &str) -> Result<SessionPage, Error> {
        self.alive().await;
        self.inner.sessions(team, user, size, token).await
    }

    async fn acquire_lease(&self, key: &SessionKey, turn: &str, holder: &str, ttl: Duration) -> Result<u64, Error> {
        self.alive().await;
        self.inner.acquire_lease(key, turn, holder, ttl).await
    }

    async fn renew_lease(&self, key: &SessionKey, fence: u64, ttl: Duration) -> Result<(), Error> {
        self.alive().await;
        self.inner.renew_lease(key, fence, ttl).await
    }

    async fn release_lease(&self, key: &SessionKey, fence: u64) -> Result<(), Error> {
        self.alive().await;
        self.inner.release_lease(key, fence).await
    }

    async fn append(&self, key: &SessionKey, append: Append) -> Result<Appended, Error> {
        let request_id = append.request_id.clone();
        self.note(format!("append {request_id}"));
        self.die_if(&request_id, When::Before).await;
        let answer = self.inner.append(key, append).await;
        self.die_if(&request_id, When::After).await;
        answer
    }

    async fn update_session(&self, key: &SessionKey, update: SessionUpdate) -> Result<Session, Error> {
        self.alive().await;
        self.inner.update_session(key, update).await
    }

    async fn open(&self, key: &SessionKey, turn: &str) -> Result<Option<Opened>, Error> {
        self.alive().await;
        let opened = self.inner.open(key, turn).await;
        self.note(format!("opened {turn}"));
        opened
    }

    async fn delete_session(&self, key: &SessionKey, etag: &str) -> Result<(), Error> {
        self.alive().await;
        self.inner.delete_session(key, etag).await
    }

    async fn rewind_session(&self, key: &SessionKey, rewind: Rewind) -> Result<Session, Error> {
        self.alive().await;
        self.inner.rewind_session(key, rewind).await
    }

    async fn fork_session(&self, parent: &SessionKey, fork: Fork) -> Result<Session, Error> {
        self.alive().await;
        self.inner.fork_session(parent, fork).await
    }

    async fn expired_turns(&self, limit: u32) -> Result<Vec<ExpiredTurn>, Error> {
        self.alive().await;
        self.inner.expired_turns(limit).await
    }

    async fn messages(&self, key: &SessionKey, size: i32, token: &str) -> Result<MessagePage, Error> {
        self.alive().await;
        self.inner.messages(key, size, token).await
    }

    async fn turn(&self, key: &SessionKey, turn: &str) -> Result<Option<Turn>, Error> {
        self.alive().await;
        self.inner.turn(key, turn).await
    }
}
