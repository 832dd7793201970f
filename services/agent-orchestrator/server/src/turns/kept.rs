//! Sessions as they were made here, or read after their last turn here, so that the next turn need not read its session
//! before it stores the message.
//!
//! A guess and no more. The append that is built on one names its number and etag; whatever changed in between, here, in
//! another process or by a person, makes recall refuse it in the transaction, and the session is read as ever. So nothing
//! here has to be told of changes, and losing all of it loses nothing but time.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steward_base::Timestamp;
use steward_orchestrator_core::session::{Message, Opened, Session, SessionKey};

/// Most bytes that are kept.
const MOST_BYTES: usize = 32 << 20;
/// Larger ones are not kept: there is to be room for many.
const LARGEST: usize = 4 << 20;
/// Nobody's words stay longer than this for the sake of a turn that may never come.
const LONGEST: Duration = Duration::from_mins(10);

#[derive(Default)]
struct Kept {
    /// The one that was kept last is at the back.
    sessions: VecDeque<Entry>,
    bytes: usize,
}

struct Entry {
    opened: Opened,
    bytes: usize,
    since: Timestamp,
}

/// The sessions that are kept. Clones are the same ones.
#[derive(Clone, Default)]
pub(crate) struct KeptSessions(Arc<Mutex<Kept>>);

impl fmt::Debug for KeptSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptSessions").finish_non_exhaustive()
    }
}

impl KeptSessions {
    /// Takes the session out, if it is there.
    pub(super) fn take(&self, key: &SessionKey, now: Timestamp) -> Option<Opened> {
        let mut kept = self.kept();
        kept.drop_outdated(now);
        kept.remove(key)
    }

    /// Keeps a session that was just made, for its first turn.
    pub(crate) fn keep_new(&self, session: &Session, now: Timestamp) {
        // Another try of the same request may have been faster, and something said since.
        if session.last_seq == 0 && session.open_turn.is_none() {
            let opened = Opened {
                session: session.clone(),
                turn: None,
                history: Vec::new(),
            };
            self.keep(opened, now);
        }
    }

    /// Keeps the session in place of what was kept of it before.
    pub(super) fn keep(&self, opened: Opened, now: Timestamp) {
        let bytes = size_of(&opened);
        let mut kept = self.kept();
        kept.drop_outdated(now);
        drop(kept.remove(&opened.session.key));
        if bytes > LARGEST {
            return;
        }
        kept.bytes += bytes;
        kept.sessions.push_back(Entry {
            opened,
            bytes,
            since: now,
        });
        while kept.bytes > MOST_BYTES {
            kept.drop_first();
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn remove(&mut self, key: &SessionKey) -> Option<Opened> {
        let place = self
            .sessions
            .iter()
            .position(|entry| entry.opened.session.key == *key)?;
        let entry = self.sessions.remove(place)?;
        self.bytes -= entry.bytes;
        Some(entry.opened)
    }

    fn drop_first(&mut self) {
        if let Some(entry) = self.sessions.pop_front() {
            self.bytes -= entry.bytes;
        }
    }

    fn drop_outdated(&mut self, now: Timestamp) {
        while self
            .sessions
            .front()
            .is_some_and(|entry| now.since(entry.since) > LONGEST)
        {
            self.drop_first();
        }
    }
}

/// About how many bytes it takes.
fn size_of(opened: &Opened) -> usize {
    let Opened { session, history, .. } = opened;
    let Session {
        system_prompt,
        tools_json,
        setup,
        exposures,
        ..
    } = session;
    let messages = history.iter().map(message_size).sum::<usize>();
    let around = size_of_val(session) + system_prompt.len() + tools_json.len() + setup.len();
    around + exposures.len() * 256 + messages
}

fn message_size(message: &Message) -> usize {
    let body = &message.body;
    let calls = body
        .calls()
        .iter()
        .map(|call| 128 + call.arguments.len())
        .sum::<usize>();
    let sent = body.sent_text.as_ref().map_or(0, String::len);
    let native = body.native.as_ref().map_or(0, |native| native.blocks.len());
    size_of_val(message) + body.text.len() + sent + native + calls + body.spans.len() * 64
}

#[cfg(test)]
mod tests {
    use steward_base::Timestamp;
    use steward_base::names::{SessionId, TeamId, UserId};
    use steward_orchestrator_core::session::{Counters, Prefix, Usage};

    use super::*;

    fn opened(id: &str, prompt: usize) -> Opened {
        let session = Session {
            key: key(id),
            user: UserId::parse("ann").unwrap(),
            foreground: true,
            title: String::new(),
            project: String::new(),
            model: String::new(),
            system_prompt: "x".repeat(prompt).into(),
            stable_prompt_bytes: 0,
            tools_json: "".into(),
            client_tools: Vec::new(),
            skip_review: false,
            counters: Counters::default(),
            prefix: Prefix::default(),
            usage: Usage::default(),
            last_seq: 0,
            open_calls: Vec::new(),
            exposures: Vec::new(),
            created: Timestamp::default(),
            last_active: Timestamp::default(),
            open_turn: None,
            setup: Vec::new(),
            external_memory: false,
            etag: "1".to_owned(),
        };
        Opened {
            session,
            turn: None,
            history: Vec::new(),
        }
    }

    fn key(id: &str) -> SessionKey {
        SessionKey {
            team: TeamId::parse("red").unwrap(),
            id: SessionId::parse(id).unwrap(),
        }
    }

    const NOON: Timestamp = Timestamp::from_secs(1_795_953_600);

    #[test]
    fn a_session_is_taken_once_and_the_last_one_kept_counts() {
        let kept = KeptSessions::default();
        kept.keep(opened("a", 10), NOON);
        kept.keep(opened("a", 20), NOON);
        assert_eq!(kept.take(&key("a"), NOON).unwrap().session.system_prompt.len(), 20);
        assert!(kept.take(&key("a"), NOON).is_none());
        assert_eq!(kept.kept().bytes, 0);
    }

    #[test]
    fn there_is_room_for_so_many_and_none_for_a_giant() {
        let kept = KeptSessions::default();
        for number in 0..12 {
            kept.keep(opened(&format!("s{number}"), 3 << 20), NOON);
        }
        assert!(kept.kept().bytes <= MOST_BYTES);
        assert!(kept.take(&key("s0"), NOON).is_none() && kept.take(&key("s11"), NOON).is_some());
        kept.keep(opened("giant", LARGEST + 1), NOON);
        assert!(kept.take(&key("giant"), NOON).is_none());
    }

    #[test]
    fn nothing_is_kept_for_long() {
        let kept = KeptSessions::default();
        kept.keep(opened("a", 10), NOON);
        assert!(
            kept.take(&key("a"), NOON.plus(LONGEST + Duration::from_secs(1)))
                .is_none()
        );
        assert_eq!(kept.kept().bytes, 0);
    }
}
