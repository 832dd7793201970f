//! `ListPendingActions`: which of a person's sessions wait for their client.

use steward_base::Timestamp;
use steward_orchestrator_core::Error;
use steward_orchestrator_core::session::{Session, SessionKey};
use steward_orchestrator_core::turn::{Closing, PendingCall};

use super::Turns;
use crate::signer::Person;

/// Most sessions that one answer names.
const MOST: usize = 200;

/// A session that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) session: SessionKey,
    pub(crate) turn: String,
    pub(crate) calls: Vec<PendingCall>,
}

impl Turns {
    /// The caller's sessions with open calls, most recently active first. Calls that waited too long are closed on the
    /// way.
    pub(crate) async fn pending(&self, person: &Person) -> Result<Vec<Pending>, Error> {
        let (mut found, mut page_token) = (Vec::new(), String::new());
        loop {
            let page = self
                .store()
                .sessions(&person.team, &person.user, 200, &page_token)
                .await?;
            for session in page.sessions {
                let Some(open) = session.open_calls.first() else {
                    continue;
                };
                if open.expires <= self.parts().clock.now() {
                    self.expire(&session, &open.turn).await;
                    continue;
                }
                found.push(Pending {
                    turn: open.turn.clone(),
                    calls: session.open_calls.iter().map(PendingCall::from).collect(),
                    session: session.key,
                });
            }
            page_token = page.next_page_token;
            if page_token.is_empty() || found.len() >= MOST {
                found.truncate(MOST);
                return Ok(found);
            }
        }
    }

    /// Closes turns of whoever's that waited too long for their client; how many it closed. One that went on in the meantime
    /// is left alone, and one that cannot be closed keeps no other from it.
    pub(crate) async fn close_expired(&self, most: u32) -> Result<u64, Error> {
        let mut closed = 0;
        for waiting in self.store().expired_turns(most).await? {
            match self.store().session(&waiting.session).await {
                Ok(Some(session)) if is_over(&session, &waiting.turn, self.parts().clock.now()) => {
                    closed += u64::from(self.expire(&session, &waiting.turn).await);
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(session.id = %waiting.session.id, error = %error, "could not look at a turn that has expired");
                }
            }
        }
        Ok(closed)
    }

    async fn expire(&self, session: &Session, turn: &str) -> bool {
        let lock = self.parts().locks.of(&session.key);
        let _decided = lock.lock().await;
        if self.registry().running(&session.key).is_some() {
            return false;
        }
        // The next request of the session meets the same calls; nothing is lost by not closing them now.
        match self.close_turn(session, turn, Closing::Expired).await {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(session.id = %session.key.id, error = %error, "could not close a turn that has expired");
                false
            }
        }
    }
}

/// The turn waits, and the first of its calls has waited too long.
fn is_over(session: &Session, turn: &str, now: Timestamp) -> bool {
    let mut waiting = session.open_calls.iter().filter(|open| open.turn == turn);
    waiting.any(|open| open.expires <= now)
}
