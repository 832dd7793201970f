//! Steering: a text that the running turn takes up before its next model call (`T-7`). A stream that ends without a
//! `steered` event says that the turn ended first and the text was not taken up. Only the process that runs a turn can take
//! a text for it; another one says that the turn is running.

use steward_agent::kernel::Steering;
use steward_guard::fence::with_message;
use steward_orchestrator_core::Error;
use steward_orchestrator_core::session::SessionKey;
use steward_orchestrator_core::turn::UserMessage;

use super::live::Mark;
use super::log::{Until, follow};
use super::{Following, Turns};
use crate::signer::Person;

impl Turns {
    /// Adds the text and attaches to the running segment.
    pub(crate) async fn steer(
        &self,
        person: &Person,
        key: &SessionKey,
        request: String,
        message: &UserMessage,
    ) -> Result<Following, Error> {
        let session = self.own_session(person, key).await?;
        if !message.attachments.is_empty() {
            return Err(Error::field("user_message.attachments", "must be empty with `steer`"));
        }
        let fingerprint = message.fingerprint();
        if let Some((live, mark)) = self.registry().answered(key, &request) {
            if mark.fingerprint != fingerprint {
                return Err(Error::request_id_reused(&request));
            }
            return Ok(follow(live, mark.from, Until::Segment));
        }
        let none = || match &session.open_turn {
            // It runs in another process, or did in one that is gone.
            Some(turn) if session.open_calls.is_empty() => Error::TurnRunning { turn: turn.clone() },
            _ => Error::NoTurnToSteer { session: key.name() },
        };
        let live = self.registry().running(key).ok_or_else(none)?;
        let from = live.log().len();
        let mark = Mark {
            id: request,
            fingerprint,
            from,
        };
        if live.steer(mark, steering(&message.text)) {
            Ok(follow(live, from, Until::Segment))
        } else {
            // It ended while this was read.
            Err(Error::NoTurnToSteer { session: key.name() })
        }
    }
}

/// The text in its channel; a fence that the person typed is none (D-74).
fn steering(said: &str) -> Steering {
    let Steering { sent, .. } = Steering::new(with_message(said, None));
    Steering {
        said: said.to_owned(),
        sent,
    }
}
