//! Closing a turn that nobody will go on with: a result for every open call, and its end, in one transaction (`T-8`,
//! `T-11`).

use steward_agent::counters::{TurnFacts, after_turn};
use steward_agent::kernel::ToolResult;
use steward_orchestrator_core::Error;
use steward_orchestrator_core::session::{
    Append, Message, NewMessage, Opened, Said, Session, Turn, TurnState, TurnUpdate,
};
use steward_orchestrator_core::turn::{Closing, Event, closing_results, turn_start, unanswered};

use super::Turns;
use super::ports::{as_agent_counters, as_counters, as_model_messages};

impl Turns {
    /// Closes the session's open turn under its own lease. Called under the session's lock.
    pub(super) async fn close_turn(&self, session: &Session, turn: &str, why: Closing) -> Result<(), Error> {
        let key = &session.key;
        let fence = self.take_lease(key, turn).await?;
        let closed = self.close_under_lease(session, turn, fence, why).await;
        if !matches!(closed, Ok(true)) {
            self.give_up_lease(key, fence).await;
        }
        if closed? && let Some(live) = self.registry().find(key, turn) {
            live.log().push(Event::Interrupted {
                partial_text: String::new(),
            });
        }
        Ok(())
    }

    /// Whether there was something to close; the lease is given up with it.
    async fn close_under_lease(&self, session: &Session, id: &str, fence: u64, why: Closing) -> Result<bool, Error> {
        let key = &session.key;
        let opened = self.store().open(key, id).await?;
        let Opened { session, turn, history } = opened.ok_or_else(|| Error::SessionNotFound { session: key.name() })?;
        let Some(turn) = turn.filter(|turn| turn.state.is_open()) else {
            return Ok(false);
        };
        let why = cause(&session, &turn, why, self.parts().clock.now());
        let held = self
            .registry()
            .find(key, id)
            .map(|live| live.take_held())
            .unwrap_or_default();
        let messages = results(&session, &turn, &history, &held, why);
        let own = &history[turn_start(&history, id)..];
        let facts = TurnFacts::of_turn(&as_model_messages(own), false);
        let (counters, _) = after_turn(
            as_agent_counters(session.counters),
            facts,
            *self.parts().limits.nudges.of(&key.team),
        );
        let append = Append {
            fence,
            expected_seq: session.last_seq,
            request_id: format!("{id}/close"),
            messages,
            turn: Some(TurnUpdate {
                id: id.to_owned(),
                state: why.state(),
                iterations: turn.iterations,
                segments: turn.segments,
                error_reason: String::new(),
                error_message: String::new(),
            }),
            counters: Some(as_counters(counters, session.counters.user_turns + 1)),
            open_calls: Some(Vec::new()),
            release: true,
            ..Append::default()
        };
        self.store().append(key, append).await?;
        self.metrics().turn_ended(why.state());
        tracing::info!(session.id = %key.id, turn.id = id, cause = ?why, "a turn was closed");
        Ok(true)
    }
}

/// In the model's order: what the client was to run is cancelled; what ran here keeps its result, or says that it is
/// not known.
fn results(session: &Session, turn: &Turn, history: &[Message], held: &[ToolResult], why: Closing) -> Vec<NewMessage> {
    let mut messages = Vec::new();
    for call in unanswered(history) {
        if let Some(result) = held.iter().find(|result| result.call_id == call.id) {
            messages.push(result_message(result, &turn.id));
            continue;
        }
        let waits = session.open_calls.iter().any(|open| open.call.id == call.id);
        let why = if waits { why } else { Closing::Lost };
        messages.extend(closing_results(std::slice::from_ref(&call), why, &turn.id));
    }
    messages
}

fn cause(session: &Session, turn: &Turn, why: Closing, now: steward_base::Timestamp) -> Closing {
    let expired = session.open_calls.iter().any(|open| open.expires <= now);
    match turn.state {
        TurnState::RequiresAction if expired => Closing::Expired,
        TurnState::Running if why == Closing::NewMessage => Closing::Lost,
        _ => why,
    }
}

/// A result of the loop as it is stored.
pub(super) fn result_message(result: &ToolResult, turn: &str) -> NewMessage {
    NewMessage {
        said: Said::Tool {
            call_id: result.call_id.clone(),
            tool: result.name.clone(),
            is_error: result.is_error,
        },
        text: result.content.clone(),
        sent_text: None,
        spans: result.spans.clone(),
        usage: None,
        turn: turn.to_owned(),
        native: None,
    }
}
