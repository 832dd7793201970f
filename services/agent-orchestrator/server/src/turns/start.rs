//! What a request does to a session: it attaches to what it began before, is answered from the store, takes up what a lost
//! process left, or begins a segment. Decided under the session's lock; what is begun runs on whether or not the caller
//! stays (`T-8`, `T-9`).

use std::sync::Arc;

use steward_agent::kernel::{ResultKind, ToolResult};
use steward_client::ambient;
use steward_orchestrator_core::Error;
use steward_orchestrator_core::session::{
    Append, Message, NewMessage, Said, Session, SessionKey, Turn, TurnState, TurnUpdate,
};
use steward_orchestrator_core::turn::{
    ClientResult, Closing, Event, UserMessage, answered_by, client_results, replay, title_of,
};
use steward_runtime::{Policy, failpoint};
use tokio::sync::oneshot;

use super::live::{LiveTurn, Mark};
use super::log::{Until, follow, recited};
use super::segment::Segment;
use super::{Following, Input, Turns};
use crate::signer::Person;

/// What a request comes to.
enum Begun {
    /// Nothing new happens.
    Attached(Following),
    /// A segment that is to run now.
    Running(Box<Segment>, Following),
}

/// A request, as far as every way through has to know it.
struct Ask {
    person: Person,
    key: SessionKey,
    request: String,
    fingerprint: String,
}

impl Ask {
    fn mark(&self, from: usize) -> Mark {
        Mark {
            id: self.request.clone(),
            fingerprint: self.fingerprint.clone(),
            from,
        }
    }
}

impl Turns {
    /// Starts or continues a turn and gives its events until the segment ends.
    pub(crate) async fn run(
        &self,
        person: Person,
        key: SessionKey,
        request: String,
        input: Input,
    ) -> Result<Following, Error> {
        self.own_session(&person, &key).await?;
        let ask = Ask {
            person,
            key,
            request,
            fingerprint: input.fingerprint(),
        };
        let (answer, begun) = oneshot::channel();
        let turns = self.clone();
        // In a task of its own from the very beginning: a caller that leaves half way must not leave half a turn.
        self.parts().tasks.spawn("turn", Policy::WORK, async move {
            ambient::detached(async move {
                match turns.begin(ask, input).await {
                    Ok(Begun::Attached(following)) => drop(answer.send(Ok(following))),
                    Ok(Begun::Running(segment, following)) => {
                        drop(answer.send(Ok(following)));
                        segment.run().await;
                    }
                    Err(error) => drop(answer.send(Err(error))),
                }
            })
            .await;
            Ok(())
        });
        begun.await.unwrap_or_else(|closed| {
            Err(Error::Unavailable {
                dependency: "agent-orchestrator",
                source: Box::new(closed),
            })
        })
    }

    async fn begin(&self, ask: Ask, input: Input) -> Result<Begun, Error> {
        let lock = self.registry().lock(&ask.key);
        let _decided = lock.lock().await;
        if let Some((live, mark)) = self.registry().answered(&ask.key, &ask.request) {
            if mark.fingerprint != ask.fingerprint {
                return Err(Error::request_id_reused(&ask.request));
            }
            return Ok(Begun::Attached(follow(live, mark.from, Until::Segment)));
        }
        match input {
            Input::Message(message) => self.begin_message(ask, &message).await,
            Input::Results(results) => self.begin_results(ask, &results).await,
        }
    }

    async fn begin_message(&self, ask: Ask, message: &UserMessage) -> Result<Begun, Error> {
        let stored = message.stored(&ask.person.user, &ask.request);
        if let Some(turn) = self.store().turn(&ask.key, &ask.request).await? {
            let history = self.store().history(&ask.key).await?;
            let first = history.iter().find(|message| message.seq == turn.first_seq);
            // A message that is no longer in the context cannot be compared; its id is evidence enough.
            if first.is_some_and(|first| first.body.sent() != stored.sent()) {
                return Err(Error::request_id_reused(&ask.request));
            }
            return self.take_up(ask, turn, history, 0).await;
        }
        if let Some(live) = self.registry().running(&ask.key) {
            return Err(Error::TurnRunning {
                turn: live.id().to_owned(),
            });
        }
        let session = self.own_session(&ask.person, &ask.key).await?;
        self.parts().models.for_turns(&session.model)?;
        if let Some(open) = &session.open_turn {
            self.close_turn(&session, open, Closing::NewMessage).await?;
        }
        let session = self.own_session(&ask.person, &ask.key).await?;
        let fence = self.take_lease(&ask.key, &ask.request).await?;
        let appended = self.append_user_message(&session, fence, &ask.request, stored).await;
        if appended.is_err() {
            self.give_up_lease(&ask.key, fence).await;
        }
        appended?;
        let live = Arc::new(LiveTurn::new(ask.key.clone(), ask.request.clone(), Vec::new()));
        live.log().push(Event::Started { segment: 1 });
        let turn = new_turn(&ask.request);
        self.launch(ask, live, turn, fence, Vec::new(), 0).await
    }

    async fn append_user_message(
        &self,
        session: &Session,
        fence: u64,
        turn: &str,
        message: NewMessage,
    ) -> Result<u64, Error> {
        failpoint::hit("turn.user_message.before");
        let title = if session.title.is_empty() {
            title_of(&message.text)
        } else {
            String::new()
        };
        let append = Append {
            fence,
            expected_seq: session.last_seq,
            request_id: format!("{turn}/user"),
            messages: vec![message],
            turn: Some(TurnUpdate {
                id: turn.to_owned(),
                state: TurnState::Running,
                iterations: 0,
                segments: 1,
                error_reason: String::new(),
                error_message: String::new(),
            }),
            title,
            ..Append::default()
        };
        let seq = self.store().append(&session.key, append).await?;
        failpoint::hit("turn.user_message.after");
        Ok(seq)
    }

    async fn begin_results(&self, ask: Ask, results: &[ClientResult]) -> Result<Begun, Error> {
        if let Some(live) = self.registry().running(&ask.key) {
            return Err(Error::TurnRunning {
                turn: live.id().to_owned(),
            });
        }
        let session = self.own_session(&ask.person, &ask.key).await?;
        let no_open_calls = || Error::NoOpenCalls {
            session: ask.key.name(),
        };
        let Some(waiting) = session.open_calls.first() else {
            let history = self.store().history(&ask.key).await?;
            let Some(turn) = answered_by(&history, results) else {
                return Err(no_open_calls());
            };
            let turn = self.store().turn(&ask.key, turn).await?.ok_or_else(no_open_calls)?;
            return self.take_up(ask, turn, history, usize::MAX).await;
        };
        let turn_id = waiting.turn.clone();
        if waiting.expires <= self.parts().clock.now() {
            self.close_turn(&session, &turn_id, Closing::Expired).await?;
            return Err(no_open_calls());
        }
        let messages = client_results(&session.open_calls, results, &session.client_tools, &turn_id)?;
        self.parts().models.for_turns(&session.model)?;
        let turn = self.store().turn(&ask.key, &turn_id).await?.ok_or_else(no_open_calls)?;
        let fence = self.take_lease(&ask.key, &turn_id).await?;
        let live = match self.registry().find(&ask.key, &turn_id) {
            Some(live) => live,
            None => self.restored(&session, &turn).await?,
        };
        let mut known = live.take_held();
        known.extend(messages.into_iter().filter_map(as_known));
        let from = live.log().len();
        self.launch(ask, live, turn, fence, known, from).await
    }

    /// A request whose turn is stored: it is answered from the store, or its turn is taken up again. `segment` says with
    /// which one its events begin; past the end means the last.
    async fn take_up(&self, ask: Ask, turn: Turn, history: Vec<Message>, segment: usize) -> Result<Begun, Error> {
        let session = self.own_session(&ask.person, &ask.key).await?;
        let replayed = replay(&session, &turn, &history);
        let position = |segments: &[usize]| segments.get(segment).or(segments.last()).copied().unwrap_or(0);
        let from = position(&replayed.segments);
        if turn.state != TurnState::Running {
            return Ok(Begun::Attached(recited(&turn.id, replayed.events, from)));
        }
        if let Some(live) = self.registry().running(&ask.key) {
            return Err(Error::TurnRunning {
                turn: live.id().to_owned(),
            });
        }
        self.parts().models.for_turns(&session.model)?;
        let fence = self.take_lease(&ask.key, &turn.id).await?;
        tracing::info!(session.id = %ask.key.id, turn.id = turn.id, "a turn whose process was lost is taken up");
        // Its process may have written until the lease changed hands.
        let live = self.restored(&session, &turn).await?;
        self.launch(ask, live, turn, fence, Vec::new(), from).await
    }

    async fn restored(&self, session: &Session, turn: &Turn) -> Result<Arc<LiveTurn>, Error> {
        let history = self.store().history(&session.key).await?;
        let replayed = replay(session, turn, &history);
        Ok(Arc::new(LiveTurn::new(
            session.key.clone(),
            turn.id.clone(),
            replayed.events,
        )))
    }

    /// Registers the segment and makes it ready to run, from the session and the history as they are under the lease.
    async fn launch(
        &self,
        ask: Ask,
        live: Arc<LiveTurn>,
        turn: Turn,
        fence: u64,
        known: Vec<ToolResult>,
        from: usize,
    ) -> Result<Begun, Error> {
        let read = async {
            let session = self.own_session(&ask.person, &ask.key).await?;
            let history = self.store().history(&ask.key).await?;
            let model = self.parts().models.for_turns(&session.model)?;
            Ok::<_, Error>((session, history, model))
        };
        let (session, history, model) = match read.await {
            Ok(read) => read,
            Err(error) => {
                self.give_up_lease(&ask.key, fence).await;
                return Err(error);
            }
        };
        let interrupt = live.begin(ask.mark(from));
        self.registry().run(&live);
        let following = follow(Arc::clone(&live), from, Until::Segment);
        let segment = Segment {
            turns: self.clone(),
            live,
            person: ask.person,
            session,
            turn,
            history,
            known,
            model,
            fence,
            interrupt,
        };
        Ok(Begun::Running(Box::new(segment), following))
    }
}

fn new_turn(id: &str) -> Turn {
    Turn {
        id: id.to_owned(),
        state: TurnState::Running,
        first_seq: 0,
        last_seq: 0,
        iterations: 0,
        segments: 1,
        error_reason: String::new(),
        error_message: String::new(),
    }
}

/// A client's result as the loop knows it.
fn as_known(message: NewMessage) -> Option<ToolResult> {
    let Said::Tool {
        call_id,
        tool,
        is_error,
    } = message.said
    else {
        return None;
    };
    Some(ToolResult {
        call_id,
        name: tool,
        content: message.text,
        is_error,
        spans: message.spans,
        kind: ResultKind::Done,
    })
}
