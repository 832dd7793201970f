//! A store of sessions in memory, for tests of the turn engine. It has the leases, fences, sequence numbers and request
//! ids of the real one, so that a test can lose a process between any two steps and go on with another.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use steward_base::names::{TeamId, UserId};
use steward_base::{Clock, Timestamp};

use super::store::{Append, DueReview, MessagePage, NewSession, SessionPage, SessionStore, TurnUpdate};
use super::{Counters, Message, Prefix, Session, SessionKey, Turn, Usage};
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
    answers: BTreeMap<String, u64>,
    appends: u32,
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

    fn append(&mut self, append: Append, now: Timestamp) -> Result<u64, Error> {
        if let Some(answer) = self.answers.get(&append.request_id) {
            return Ok(*answer);
        }
        self.check_fence(append.fence)?;
        if append.expected_seq != self.session.last_seq {
            let problem = format!("ends at {}, not at {}", self.session.last_seq, append.expected_seq);
            return Err(Error::internal("append to a session", problem));
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
        self.answers.insert(append.request_id, self.session.last_seq);
        self.appends += 1;
        Ok(self.session.last_seq)
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
            system_prompt: new.system_prompt,
            tools_json: new.tools_json,
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
        };
        let kept = Kept {
            session: session.clone(),
            messages: Vec::new(),
            turns: BTreeMap::new(),
            due: Vec::new(),
            fence: 0,
            holding: None,
            answers: BTreeMap::new(),
            appends: 0,
        };
        sessions.insert(new.key, kept);
        Ok(session)
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
        self.with(key, |kept| {
            if let Some(holding) = kept.holding.as_mut().filter(|holding| holding.expires > now) {
                if holding.turn != turn || holding.holder != holder {
                    return Err(Error::TurnRunning {
                        turn: holding.turn.clone(),
                    });
                }
                holding.expires = now.plus(ttl);
                return Ok(kept.fence);
            }
            kept.fence += 1;
            kept.holding = Some(Holding {
                turn: turn.to_owned(),
                holder: holder.to_owned(),
                expires: now.plus(ttl),
            });
            Ok(kept.fence)
        })
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

    async fn append(&self, key: &SessionKey, append: Append) -> Result<u64, Error> {
        let now = self.clock.now();
        self.with(key, |kept| kept.append(append, now))
    }

    async fn history(&self, key: &SessionKey) -> Result<Vec<Message>, Error> {
        self.with(key, |kept| Ok(kept.messages.clone()))
    }

    async fn messages(&self, key: &SessionKey, _page_size: i32, _page_token: &str) -> Result<MessagePage, Error> {
        let messages = self.history(key).await?;
        Ok(MessagePage {
            messages,
            next_page_token: String::new(),
        })
    }

    async fn turn(&self, key: &SessionKey, turn: &str) -> Result<Option<Turn>, Error> {
        self.with(key, |kept| Ok(kept.turns.get(turn).cloned()))
    }
}
