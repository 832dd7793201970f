//! A store of sessions in memory, for tests of the turn engine. It has the leases, fences, sequence numbers and request
//! ids of the real one, so that a test can lose a process between any two steps and go on with another.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use steward_base::names::{TeamId, UserId};
use steward_base::{Clock, Timestamp};

use super::store::{
    Append, Appended, DueReview, ExpiredTurn, Fork, MessagePage, NewSession, Opened, Rewind, SessionPage, SessionStore,
    SessionUpdate, TurnUpdate,
};
use super::{Counters, KeptSetup, Message, Prefix, Session, SessionKey, Turn, Usage};
use crate::error::Error;

#[derive(Debug)]
struct Holding {
    turn: String,
    holder: String,
    expires: Timestamp,
}

#[derive(Debug)]
struct Kept {
    session: Session,
    messages: Vec<Message>,
    turns: BTreeMap<String, Turn>,
    due: Vec<DueReview>,
    fence: u64,
    holding: Option<Holding>,
    answers: BTreeMap<String, Appended>,
    updates: BTreeSet<String>,
    appends: u32,
    version: u64,
}

/// Sessions of one test.
#[derive(Debug)]
pub struct InMemorySessionStore {
    clock: Arc<dyn Clock>,
    sessions: Mutex<BTreeMap<SessionKey, Kept>>,
}

impl InMemorySessionStore {
    /// Empty; leases end by `clock`.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            sessions: Mutex::default(),
        }
    }

    /// The reviews that a session's turns made due.
    pub fn due_reviews(&self, key: &SessionKey) -> Vec<DueReview> {
        self.kept().get(key).map(|kept| kept.due.clone()).unwrap_or_default()
    }

    /// How many appends changed the session; repeated ones are not counted.
    pub fn appends(&self, key: &SessionKey) -> u32 {
        self.kept().get(key).map_or(0, |kept| kept.appends)
    }

    /// All messages of a session, in order.
    pub fn history(&self, key: &SessionKey) -> Vec<Message> {
        let kept = self.kept();
        kept.get(key).map(|kept| kept.messages.clone()).unwrap_or_default()
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<SessionKey, Kept>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, key: &SessionKey, work: impl FnOnce(&mut Kept) -> Result<T, Error>) -> Result<T, Error> {
        let mut sessions = self.kept();
        let kept = sessions
            .get_mut(key)
            .ok_or_else(|| Error::SessionNotFound { session: key.name() })?;
        work(kept)
    }
}

impl Kept {
    fn acquire(&mut self, turn: &str, holder: &str, ttl: Duration, now: Timestamp) -> Result<u64, Error> {
        if let Some(holding) = self.holding.as_mut().filter(|holding| holding.expires > now) {
            if holding.turn != turn || holding.holder != holder {
                return Err(Error::TurnRunning {
                    turn: holding.turn.clone(),
                });
            }
            holding.expires = now.plus(ttl);
            return Ok(self.fence);
        }
        self.fence += 1;
        self.holding = Some(Holding {
            turn: turn.to_owned(),
            holder: holder.to_owned(),
            expires: now.plus(ttl),
        });
        Ok(self.fence)
    }

    fn expect(&self, expected: &str, current: String) -> Result<(), Error> {
        if expected == current {
            return Ok(());
        }
        Err(Error::SessionChanged {
            session: self.session.key.name(),
            expected: expected.to_owned(),
            current,
        })
    }

    /// The session changes: its etag does.
    fn touch(&mut self) {
        self.version += 1;
        self.session.etag = self.version.to_string();
    }

    fn update(&mut self, update: SessionUpdate, now: Timestamp) -> Result<(), Error> {
        if self.updates.contains(&update.request_id) {
            return Ok(());
        }
        if let Some(turn) = self.busy_with(now) {
            return Err(Error::TurnRunning { turn });
        }
        if !update.etag.is_empty() {
            self.expect(&update.etag, self.session.etag.clone())?;
        }
        if let Some(title) = update.title {
            self.session.title = title;
        }
        if let Some(anew) = update.anew {
            let session = &mut self.session;
            session.model = anew.model;
            session.system_prompt = anew.system_prompt.into();
            session.stable_prompt_bytes = anew.stable_prompt_bytes;
            session.tools_json = anew.tools_json.into();
            session.client_tools = anew.client_tools;
            session.external_memory = KeptSetup::has_provider(&anew.setup);
            session.setup = anew.setup;
            session.exposures = anew.exposures;
            session.prefix = Prefix {
                planned_breaks: session.prefix.planned_breaks + 1,
                unplanned_breaks: session.prefix.unplanned_breaks,
                requests: session.prefix.requests,
                last_break_reason: anew.reason.to_owned(),
                ..Prefix::default()
            };
        }
        self.updates.insert(update.request_id);
        self.touch();
        Ok(())
    }

    /// A turn runs, or waits for its client.
    fn busy_with(&self, now: Timestamp) -> Option<String> {
        let held = self.holding.as_ref().filter(|holding| holding.expires > now);
        let waiting = self.session.open_turn.clone();
        waiting.or(held.map(|holding| holding.turn.clone()))
    }

    fn rewind(&mut self, rewind: Rewind, now: Timestamp) -> Result<(), Error> {
        if self.updates.contains(&rewind.request_id) {
            return Ok(());
        }
        if let Some(turn) = self.busy_with(now) {
            return Err(Error::TurnRunning { turn });
        }
        if !rewind.etag.is_empty() {
            self.expect(&rewind.etag, self.session.etag.clone())?;
        }
        self.messages.retain(|message| message.seq <= rewind.to_seq);
        self.session.prefix = Prefix {
            planned_breaks: self.session.prefix.planned_breaks + 1,
            unplanned_breaks: self.session.prefix.unplanned_breaks,
            requests: self.session.prefix.requests,
            last_break_reason: "rewind".to_owned(),
            ..Prefix::default()
        };
        self.updates.insert(rewind.request_id);
        self.touch();
        Ok(())
    }

    /// A session of its own with the history up to a message.
    fn forked(&self, key: SessionKey, fork: Fork, now: Timestamp) -> Self {
        let mut session = self.session.clone();
        session.key = key;
        if !fork.title.is_empty() {
            session.title = fork.title;
        }
        session.prefix = Prefix::default();
        session.usage = Usage::default();
        session.open_turn = None;
        session.open_calls = Vec::new();
        (session.created, session.last_active) = (now, now);
        let last = if fork.through_seq == 0 {
            u64::MAX
        } else {
            fork.through_seq
        };
        let taken = self.messages.iter().filter(|message| message.seq <= last);
        let messages: Vec<Message> = (1..)
            .zip(taken)
            .map(|(seq, message)| Message { seq, ..message.clone() })
            .collect();
        session.last_seq = messages.len() as u64;
        "0".clone_into(&mut session.etag);
        Self::new(session, messages)
    }

    fn new(session: Session, messages: Vec<Message>) -> Self {
        Self {
            session,
            messages,
            turns: BTreeMap::new(),
            due: Vec::new(),
            fence: 0,
            holding: None,
            answers: BTreeMap::new(),
            updates: BTreeSet::new(),
            appends: 0,
            version: 0,
        }
    }

    fn check_fence(&self, fence: u64) -> Result<(), Error> {
        if fence == self.fence && self.holding.is_some() {
            return Ok(());
        }
        Err(Error::StaleFence {
            fence,
            current: self.fence.to_string(),
        })
    }

    fn update_turn(&mut self, update: TurnUpdate, first_new: u64) {
        let last_seq = self.session.last_seq;
        let first_seq = self.turns.get(&update.id).map_or(first_new, |turn| turn.first_seq);
        self.session.open_turn = update.state.is_open().then(|| update.id.clone());
        let turn = Turn {
            id: update.id.clone(),
            state: update.state,
            first_seq,
            last_seq,
            iterations: update.iterations,
            segments: update.segments,
            error_reason: update.error_reason,
            error_message: update.error_message,
        };
        self.turns.insert(update.id, turn);
    }

    fn append(&mut self, append: Append, now: Timestamp) -> Result<Appended, Error> {
        if let Some(answer) = self.answers.get(&append.request_id) {
            return Ok(*answer);
        }
        if append.lease.is_none() {
            self.check_fence(append.fence)?;
        }
        // A lease that is taken and a sequence that is wrong: nothing of it happens.
        let sequence = self.expect(&append.expected_seq.to_string(), self.session.last_seq.to_string());
        let sequence = sequence.and_then(|()| match append.expected_etag.as_str() {
            "" => Ok(()),
            etag => self.expect(etag, self.session.etag.clone()),
        });
        let fence = match &append.lease {
            Some(lease) if sequence.is_ok() => self.acquire(&lease.turn, &lease.holder, lease.ttl, now)?,
            _ => append.fence,
        };
        sequence?;
        let ended = append.turn.as_ref().is_some_and(|update| {
            let stored = self.turns.get(&update.id);
            stored.is_some_and(|turn| !turn.state.is_open() && turn.state != update.state)
        });
        if ended {
            return Err(Error::internal("append to a session", "the turn has ended"));
        }
        let first_new = self.session.last_seq + 1;
        for body in append.messages {
            self.session.last_seq += 1;
            self.messages.push(Message {
                seq: self.session.last_seq,
                body,
                created: now,
            });
        }
        self.session.last_active = now;
        if let Some(update) = append.turn {
            self.update_turn(update, first_new);
        }
        self.session.counters = append.counters.unwrap_or(self.session.counters);
        if let Some(prefix) = append.prefix {
            self.session.prefix = prefix;
        }
        self.session.usage = self.session.usage.plus(append.usage.unwrap_or_default());
        if let Some(open_calls) = append.open_calls {
            self.session.open_calls = open_calls;
        }
        self.due.extend(append.due_review);
        if !append.title.is_empty() {
            self.session.title = append.title;
        }
        self.session.exposures.extend(append.exposures);
        if append.release {
            self.holding = None;
        }
        let appended = Appended {
            last_seq: self.session.last_seq,
            fence,
        };
        self.answers.insert(append.request_id, appended);
        self.appends += 1;
        self.touch();
        Ok(appended)
    }
}

#[async_trait]
impl SessionStore for InMemorySessionStore {
    async fn create_session(&self, new: NewSession, _request_id: &str) -> Result<Session, Error> {
        let now = self.clock.now();
        let mut sessions = self.kept();
        if let Some(kept) = sessions.get(&new.key) {
            return Ok(kept.session.clone());
        }
        let session = Session {
            key: new.key.clone(),
            user: new.user,
            foreground: true,
            title: new.title,
            project: new.project,
            model: new.model,
            system_prompt: new.system_prompt.into(),
            stable_prompt_bytes: new.stable_prompt_bytes,
            tools_json: new.tools_json.into(),
            client_tools: new.client_tools,
            skip_review: new.skip_review,
            counters: Counters::default(),
            prefix: Prefix::default(),
            usage: Usage::default(),
            last_seq: 0,
            open_calls: Vec::new(),
            exposures: new.exposures,
            created: now,
            last_active: now,
            open_turn: None,
            external_memory: KeptSetup::has_provider(&new.setup),
            setup: new.setup,
            etag: "0".to_owned(),
        };
        sessions.insert(new.key, Kept::new(session.clone(), Vec::new()));
        Ok(session)
    }

    async fn delete_session(&self, key: &SessionKey, etag: &str) -> Result<(), Error> {
        let now = self.clock.now();
        self.with(key, |kept| {
            match kept.holding.as_ref().filter(|holding| holding.expires > now) {
                Some(holding) => Err(Error::TurnRunning {
                    turn: holding.turn.clone(),
                }),
                None if etag.is_empty() => Ok(()),
                None => kept.expect(etag, kept.session.etag.clone()),
            }
        })?;
        self.kept().remove(key);
        Ok(())
    }

    async fn rewind_session(&self, key: &SessionKey, rewind: Rewind) -> Result<Session, Error> {
        let now = self.clock.now();
        self.with(key, |kept| {
            kept.rewind(rewind, now)?;
            Ok(kept.session.clone())
        })
    }

    async fn fork_session(&self, parent: &SessionKey, fork: Fork) -> Result<Session, Error> {
        let key = SessionKey {
            team: parent.team.clone(),
            id: fork.id.clone(),
        };
        if let Some(known) = self.kept().get(&key) {
            return Ok(known.session.clone());
        }
        let now = self.clock.now();
        let forked = self.with(parent, |kept| Ok(kept.forked(key.clone(), fork, now)))?;
        let session = forked.session.clone();
        self.kept().insert(key, forked);
        Ok(session)
    }

    async fn expired_turns(&self, limit: u32) -> Result<Vec<ExpiredTurn>, Error> {
        let now = self.clock.now();
        let sessions = self.kept();
        let waiting = sessions.values().filter_map(|kept| {
            let first = kept.session.open_calls.iter().find(|call| call.expires <= now)?;
            Some(ExpiredTurn {
                session: kept.session.key.clone(),
                user: kept.session.user.clone(),
                turn: first.turn.clone(),
            })
        });
        Ok(waiting.take(limit as usize).collect())
    }

    async fn update_session(&self, key: &SessionKey, update: SessionUpdate) -> Result<Session, Error> {
        let now = self.clock.now();
        self.with(key, |kept| {
            kept.update(update, now)?;
            Ok(kept.session.clone())
        })
    }

    async fn open(&self, key: &SessionKey, turn: &str) -> Result<Option<Opened>, Error> {
        Ok(self.kept().get(key).map(|kept| Opened {
            session: kept.session.clone(),
            turn: kept.turns.get(turn).cloned(),
            history: kept.messages.clone(),
        }))
    }

    async fn session(&self, key: &SessionKey) -> Result<Option<Session>, Error> {
        Ok(self.kept().get(key).map(|kept| kept.session.clone()))
    }

    async fn sessions(
        &self,
        team: &TeamId,
        user: &UserId,
        page_size: i32,
        _page_token: &str,
    ) -> Result<SessionPage, Error> {
        let sessions = self.kept();
        let own = sessions.values().map(|kept| &kept.session);
        let mut own: Vec<Session> = own
            .filter(|session| session.key.team == *team && session.user == *user)
            .cloned()
            .collect();
        own.sort_by(|left, right| right.last_active.cmp(&left.last_active).then(left.key.cmp(&right.key)));
        own.truncate(usize::try_from(page_size).ok().filter(|size| *size > 0).unwrap_or(50));
        Ok(SessionPage {
            sessions: own,
            next_page_token: String::new(),
        })
    }

    async fn acquire_lease(&self, key: &SessionKey, turn: &str, holder: &str, ttl: Duration) -> Result<u64, Error> {
        let now = self.clock.now();
        self.with(key, |kept| kept.acquire(turn, holder, ttl, now))
    }

    async fn renew_lease(&self, key: &SessionKey, fence: u64, ttl: Duration) -> Result<(), Error> {
        let expires = self.clock.now().plus(ttl);
        self.with(key, |kept| {
            kept.check_fence(fence)?;
            if let Some(holding) = kept.holding.as_mut() {
                holding.expires = expires;
            }
            Ok(())
        })
    }

    async fn release_lease(&self, key: &SessionKey, fence: u64) -> Result<(), Error> {
        self.with(key, |kept| {
            if kept.fence == fence {
                kept.holding = None;
            }
            Ok(())
        })
    }

    async fn append(&self, key: &SessionKey, append: Append) -> Result<Appended, Error> {
        let now = self.clock.now();
        self.with(key, |kept| kept.append(append, now))
    }

    async fn messages(&self, key: &SessionKey, _page_size: i32, _page_token: &str) -> Result<MessagePage, Error> {
        Ok(MessagePage {
            messages: self.history(key),
            next_page_token: String::new(),
        })
    }

    async fn turn(&self, key: &SessionKey, turn: &str) -> Result<Option<Turn>, Error> {
        self.with(key, |kept| Ok(kept.turns.get(turn).cloned()))
    }
}
