//! What goes on beside a turn and never holds it up: what the person corrected is staged, and the external memory hears of
//! the turn. A failure costs a line in the log. The one thing that a turn waits for, with a deadline, is what is recalled
//! for its message.

use std::sync::Arc;

use steward_client::ambient;
use steward_orchestrator_core::Error;
use steward_orchestrator_core::session::{Exposure, Message, NewMessage, Said, Session, SessionKey};
use steward_orchestrator_core::turn::{Beside as With, UserMessage, own_words};
use steward_runtime::Policy;

use super::Turns;
use super::lines::Place;
use super::live::LiveTurn;
use super::owed::Words;
use crate::owed::{Debt, What};
use crate::peers::{At, Happened};
use crate::signer::Person;

/// A message as it is stored, with what it shows of what was learned.
#[derive(Debug, Clone)]
pub(super) struct Composed {
    pub(super) message: NewMessage,
    pub(super) exposures: Vec<Exposure>,
}

/// A turn with what is told of it afterwards, taken before anyone can begin the next.
pub(super) struct ToTell {
    at: At,
    key: SessionKey,
    words: String,
    place: Place,
}

pub(super) fn at(person: &Person, key: &SessionKey, turn: &str) -> At {
    At {
        person: person.clone(),
        session: key.id.clone(),
        turn: turn.to_owned(),
    }
}

/// Whether the session's turns have an external memory beside them. Only a person's own session does (`M-19`).
pub(crate) fn has_provider(session: &Session) -> bool {
    session.foreground && session.external_memory
}

/// Whether a text may be a command: a slash with a word directly behind it.
pub(super) fn may_be_command(text: &str) -> bool {
    let name = text.strip_prefix('/').and_then(|rest| rest.chars().next());
    name.is_some_and(char::is_alphanumeric)
}

impl Turns {
    /// The message as it is stored: a command opened, and what an external memory recalls behind it.
    pub(super) async fn compose(
        &self,
        person: &Person,
        session: &Session,
        turn: &str,
        message: &UserMessage,
    ) -> Result<Composed, Error> {
        let at = at(person, &session.key, turn);
        let (mut with, mut exposures) = (With::default(), Vec::new());
        if may_be_command(&message.text)
            && let Some(expanded) = self.parts().beside.expand(&at, &message.text).await?
        {
            with.expanded = Some(expanded.message);
            exposures = expanded.exposures;
        }
        let message = self.recalled(person, session, &at, message, with).await?;
        Ok(Composed { message, exposures })
    }

    /// The message with what the external memory recalls for it, if the session has one and it recalls anything in time.
    async fn recalled(
        &self,
        person: &Person,
        session: &Session,
        at: &At,
        message: &UserMessage,
        mut with: With,
    ) -> Result<NewMessage, Error> {
        let stored = message.stored(&person.user, &at.turn, &with)?;
        if !has_provider(session) {
            return Ok(stored);
        }
        let Some(words) = own_words(&stored) else {
            return Ok(stored);
        };
        // While it is waited for what is recalled: from here on the memory is owed the turn, whatever happens to this process.
        let (recalled, ()) = tokio::join!(
            self.parts().beside.recall(at, words),
            self.owe(person, session, &at.turn)
        );
        with.recalled = recalled;
        if with.recalled.is_none() {
            return Ok(stored);
        }
        // What does not fit with it goes without it.
        Ok(message.stored(&person.user, &at.turn, &with).unwrap_or(stored))
    }

    async fn owe(&self, person: &Person, session: &Session, turn: &str) {
        let debt = Debt {
            key: session.key.clone(),
            person: person.clone(),
            what: What::Turn(turn.to_owned()),
            since: self.parts().clock.now(),
        };
        if let Err(error) = self.parts().owed.owe(debt).await {
            tracing::warn!(session.id = %session.key.id, turn.id = turn, error = steward_base::error_chain(&error), "an external memory will not hear of a turn");
        }
    }

    /// The person's message is durable: looks for corrections in it, and tells the external memory that a turn begins.
    pub(super) fn after_message(&self, person: &Person, session: &Session, live: &Arc<LiveTurn>, message: &Message) {
        let Some(words) = own_words(&message.body) else { return };
        self.stage_corrections(person, session, live, message.seq, words);
        if has_provider(session) {
            self.tell(person, session, live.id(), Happened::TurnStart, words.to_owned());
        }
    }

    /// Stages what the words correct, without a model and without holding anything up. What is staged in time makes a review
    /// due with the turn; what is not waits for the next one.
    pub(super) fn stage_corrections(
        &self,
        person: &Person,
        session: &Session,
        live: &Arc<LiveTurn>,
        seq: u64,
        words: &str,
    ) {
        if !session.foreground {
            return;
        }
        let at = at(person, &session.key, live.id());
        let (beside, live, words) = (Arc::clone(&self.parts().beside), Arc::clone(live), words.to_owned());
        let staging = async move {
            match beside.stage_correction(&at, seq, &words).await {
                Ok(true) => live.correct(),
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(session.id = %at.session, turn.id = at.turn, error = steward_base::error_chain(&error), "a correction could not be staged");
                }
            }
            Ok(())
        };
        self.parts()
            .tasks
            .spawn("turn-correction", Policy::WORK, ambient::detached(staging));
    }

    /// Tells the external memory of something, behind what it was told before.
    pub(super) fn tell(&self, person: &Person, session: &Session, turn: &str, happened: Happened, detail: String) {
        let at = at(person, &session.key, turn);
        let mut place = self.lines().stand(&session.key);
        let beside = Arc::clone(&self.parts().beside);
        let telling = async move {
            place.reached().await;
            if let Err(error) = beside.tell(&at, happened, &detail).await {
                tracing::warn!(session.id = %at.session, turn.id = at.turn, error = steward_base::error_chain(&error), "an external memory was not told");
            }
            Ok(())
        };
        self.parts()
            .tasks
            .spawn("turn-tell", Policy::WORK, ambient::detached(telling));
    }

    /// What the external memory is told of a turn; its place is taken before the next turn can begin.
    pub(super) fn to_tell(
        &self,
        person: &Person,
        session: &Session,
        turn: &str,
        history: &[Message],
    ) -> Option<ToTell> {
        if !has_provider(session) {
            return None;
        }
        let first = history
            .iter()
            .find(|message| message.body.turn == turn && message.body.said == Said::User)?;
        Some(ToTell {
            words: own_words(&first.body)?.to_owned(),
            at: at(person, &session.key, turn),
            key: session.key.clone(),
            place: self.lines().stand(&session.key),
        })
    }

    /// Hands the finished turn over, behind all that is owed of the session. Nobody waits for it: the person has their answer.
    pub(super) async fn hand_over(&self, turn: ToTell, answer: &str) {
        let ToTell {
            at,
            key,
            words,
            mut place,
        } = turn;
        place.reached().await;
        let words = Words {
            said: words,
            answer: answer.to_owned(),
        };
        if let Err(error) = self.pay(&key, Some((&at.turn, &words))).await {
            tracing::warn!(session.id = %at.session, turn.id = at.turn, error = steward_base::error_chain(&error), "a turn was not handed over to the external memory yet");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::may_be_command;

    #[test]
    fn a_command_is_a_slash_with_a_name_behind_it() {
        for command in ["/deploy", "/deploy to staging", "/部署", "/team/ops/deploy now"] {
            assert!(may_be_command(command), "{command}");
        }
        for text in ["", "/", "/ deploy", "//", " /deploy", "deploy", "/-x"] {
            assert!(!may_be_command(text), "{text}");
        }
    }
}
