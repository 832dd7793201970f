//! What a request does to a session: it attaches to what it began before, is answered from the store, takes up what a lost
//! process left, or begins a segment. Decided under the session's lock; what is begun runs on whether or not the caller
//! stays (`T-8`, `T-9`).

use std::sync::Arc;

use steward_agent::kernel::{ResultKind, ToolResult};
use steward_client::ambient;
use steward_orchestrator_core::Error;
use steward_orchestrator_core::session::{NewMessage, Opened, Said, SessionKey, Turn, TurnState};
use steward_orchestrator_core::turn::{ClientResult, Closing, answered_by, client_results, own_words, replay};
use steward_runtime::Policy;
use tokio::sync::oneshot;

use super::live::{LiveTurn, Mark};
use super::log::{Until, follow, recited};
use super::ready::Ready;
use super::segment::Segment;
use super::{Following, Input, Turns};
use crate::signer::Person;

/// What a request comes to.
pub(super) enum Begun {
    /// Nothing new happens.
    Attached(Following),
    /// A segment that is to run now.
    Running(Box<Segment>, Following),
}

/// A request, as far as every way through has to know it.
pub(super) struct Ask {
    pub(super) person: Person,
    pub(super) key: SessionKey,
    pub(super) request: String,
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
                match Box::pin(turns.begin(ask, input)).await {
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
        let lock = self.parts().locks.of(&ask.key);
        let _decided = lock.lock().await;
        if let Some((live, mark)) = self.registry().answered(&ask.key, &ask.request) {
            self.own_session(&ask.person, &ask.key).await?;
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

    async fn begin_results(&self, ask: Ask, results: &[ClientResult]) -> Result<Begun, Error> {
        if let Some(live) = self.registry().running(&ask.key) {
            return Err(Error::TurnRunning {
                turn: live.id().to_owned(),
            });
        }
        // The turn that waits is most often the one that came to rest here last.
        let resting = self.registry().resting(&ask.key);
        let likely = resting.as_ref().map_or("", |live| live.id());
        let mut opened = self.open(&ask.person, &ask.key, likely).await?;
        let no_open_calls = || Error::NoOpenCalls {
            session: ask.key.name(),
        };
        let Some(waiting) = opened.session.open_calls.first() else {
            let Some(turn) = answered_by(&opened.history, results) else {
                return Err(no_open_calls());
            };
            let turn = self.store().turn(&ask.key, turn).await?.ok_or_else(no_open_calls)?;
            return self.take_up(ask, turn, opened, usize::MAX).await;
        };
        let turn_id = waiting.turn.clone();
        if waiting.expires <= self.parts().clock.now() {
            self.close_turn(&opened.session, &turn_id, Closing::Expired).await?;
            return Err(no_open_calls());
        }
        let session = &opened.session;
        let messages = client_results(&session.open_calls, results, &session.client_tools, &turn_id)?;
        self.parts().models.for_turns(&session.model)?;
        let turn = match opened.turn.take().filter(|turn| turn.id == turn_id) {
            Some(turn) => turn,
            None => self.store().turn(&ask.key, &turn_id).await?.ok_or_else(no_open_calls)?,
        };
        let fence = self.take_lease(&ask.key, &turn_id).await?;
        let live = self.registry().find(&ask.key, &turn_id);
        let live = live.unwrap_or_else(|| restored(&opened, &turn));
        let mut known = live.take_held();
        known.extend(messages.into_iter().filter_map(as_known));
        let from = live.log().len();
        let launch = Launch {
            known,
            from,
            ..Launch::new(live, turn, opened, fence)
        };
        self.launch(ask, launch).await
    }

    /// A request whose turn is stored: it is answered from the store, or its turn is taken up again. `segment` says with
    /// which one its events begin; past the end means the last.
    pub(super) async fn take_up(&self, ask: Ask, turn: Turn, opened: Opened, segment: usize) -> Result<Begun, Error> {
        let replayed = replay(&opened.session, &turn, &opened.history);
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
        self.parts().models.for_turns(&opened.session.model)?;
        let fence = self.take_lease(&ask.key, &turn.id).await?;
        tracing::info!(session.id = %ask.key.id, turn.id = turn.id, "a turn whose process was lost is taken up");
        // Its process may have written until the lease changed hands.
        let opened = match self.open(&ask.person, &ask.key, &turn.id).await {
            Ok(opened) => opened,
            Err(error) => {
                self.give_up_lease(&ask.key, fence).await;
                return Err(error);
            }
        };
        let turn = opened.turn.clone().unwrap_or(turn);
        if turn.state != TurnState::Running {
            self.give_up_lease(&ask.key, fence).await;
            let events = replay(&opened.session, &turn, &opened.history).events;
            return Ok(Begun::Attached(recited(&turn.id, events, from)));
        }
        let live = restored(&opened, &turn);
        let first = opened.history.iter().find(|message| message.seq == turn.first_seq);
        // The lost process may not have come to it; staged twice is staged once.
        if let Some((seq, words)) = first.and_then(|first| Some((first.seq, own_words(&first.body)?))) {
            self.stage_corrections(&ask.person, &opened.session, &live, seq, words);
        }
        let launch = Launch {
            from,
            ..Launch::new(live, turn, opened, fence)
        };
        self.launch(ask, launch).await
    }

    /// Registers the segment and makes it ready to run.
    pub(super) async fn launch(&self, ask: Ask, launch: Launch) -> Result<Begun, Error> {
        let Launch {
            live,
            turn,
            opened,
            fence,
            known,
            from,
            ready,
        } = launch;
        let model = match self.parts().models.for_turns(&opened.session.model) {
            Ok(model) => model,
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
            session: Arc::new(opened.session),
            turn,
            history: opened.history,
            known,
            model,
            fence,
            interrupt,
            ready,
        };
        Ok(Begun::Running(Box::new(segment), following))
    }
}

/// What a segment is made of, under its lease.
pub(super) struct Launch {
    live: Arc<LiveTurn>,
    turn: Turn,
    opened: Opened,
    fence: u64,
    /// Results that are there and not stored yet.
    known: Vec<ToolResult>,
    /// Position of the first event for whoever asked.
    from: usize,
    /// The first request, if it is ready.
    pub(super) ready: Option<Ready>,
}

impl Launch {
    pub(super) fn new(live: Arc<LiveTurn>, turn: Turn, opened: Opened, fence: u64) -> Self {
        Self {
            live,
            turn,
            opened,
            fence,
            known: Vec::new(),
            from: 0,
            ready: None,
        }
    }
}

/// A turn as its stored messages tell it.
fn restored(opened: &Opened, turn: &Turn) -> Arc<LiveTurn> {
    let Opened { session, history, .. } = opened;
    let events = replay(session, turn, history).events;
    Arc::new(LiveTurn::new(session.key.clone(), turn.id.clone(), events))
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
