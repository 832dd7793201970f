//! One segment: from what it begins with to its end, under a lease that a heartbeat keeps.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use steward_agent::kernel::{self, Conversation, Ended, KernelError, Outcome, Ports, Settings, Spent, ToolResult};
use steward_base::{ErrorKind, Fault as _};
use steward_model::{ToolCall as ModelCall, ToolChoice};
use steward_orchestrator_core::Error;
use steward_orchestrator_core::session::{Message, OpenCall, Session, Turn, TurnState};
use steward_orchestrator_core::turn::{Event, PendingCall, turn_start};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::beside::has_provider;
use super::live::LiveTurn;
use super::natives::Natives;
use super::ports::{Context, TurnDispatch, TurnEvents, TurnModel, as_call, as_model_messages, judge_of, lock};
use super::ready::Ready;
use super::transcript::{Stored, TurnTranscript};
use super::{Turns, turn_capabilities};
use crate::metrics::SegmentEnd;
use crate::model::{Chosen, model_error};
use crate::signer::Person;

/// A segment that is ready to run.
pub(super) struct Segment {
    pub(super) turns: Turns,
    pub(super) live: Arc<LiveTurn>,
    pub(super) person: Person,
    pub(super) session: Arc<Session>,
    pub(super) turn: Turn,
    pub(super) history: Vec<Message>,
    /// Results that are there and not stored yet.
    pub(super) known: Vec<ToolResult>,
    pub(super) model: Chosen,
    pub(super) fence: u64,
    pub(super) interrupt: CancellationToken,
    /// The first request, if it is ready.
    pub(super) ready: Option<Ready>,
}

/// How a segment ended, for the registry.
enum Known {
    /// The store knows it.
    Stored(Event),
    /// The store does not; a repeated request takes the turn up again.
    Lost(Error),
}

impl Known {
    fn end(&self) -> SegmentEnd {
        match self {
            Self::Stored(Event::Completed(_)) => SegmentEnd::Turn(TurnState::Completed),
            Self::Stored(Event::RequiresAction(_)) => SegmentEnd::Turn(TurnState::RequiresAction),
            Self::Stored(Event::Interrupted { .. }) => SegmentEnd::Turn(TurnState::Interrupted),
            Self::Stored(_) => SegmentEnd::Turn(TurnState::Failed),
            Self::Lost(_) => SegmentEnd::Lost,
        }
    }
}

/// Lets readers go when the segment is dropped half way, by a hard stop or a panic.
struct Watched {
    turns: Turns,
    live: Arc<LiveTurn>,
    settled: bool,
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !self.settled {
            self.turns.registry().forget(&self.live);
            self.live.log().close();
        }
    }
}

impl Segment {
    /// Runs the loop to the end of the segment and leaves store, registry and log in agreement.
    pub(super) async fn run(self) {
        let mut watched = Watched {
            turns: self.turns.clone(),
            live: Arc::clone(&self.live),
            settled: false,
        };
        let (turns, live, key, fence) = (
            self.turns.clone(),
            Arc::clone(&self.live),
            self.session.key.clone(),
            self.fence,
        );
        // What the turn makes due, reviews among it, becomes part of this span.
        let span =
            tracing::info_span!("turn", session.id = %key.id, turn.id = live.id(), outcome = tracing::field::Empty);
        let begun = Instant::now();
        let (person, session) = (self.person.clone(), Arc::clone(&self.session));
        let first: Vec<Message> = self.first_of_turn().into_iter().collect();
        let known = Box::pin(self.drive()).instrument(span.clone()).await;
        let end = known.end();
        span.record("outcome", end.word());
        turns.metrics().segment_ended(end, begun.elapsed());
        match known {
            // The lease went with the end, and the registry is first: whoever reads the last event may send the next message
            // at once.
            Known::Stored(event) => {
                let answer = match &event {
                    Event::Completed(completed) => Some(completed.text.clone()),
                    _ => None,
                };
                let told = answer.zip(turns.to_tell(&person, &session, live.id(), &first));
                turns.registry().rest(&live);
                let is_over = event.ends_turn();
                live.log().push(event);
                watched.settled = true;
                if let Some((answer, turn)) = told {
                    turns.hand_over(turn, &answer).await;
                } else if is_over && !has_provider(&session) {
                    // The answer first: whoever passes it on was woken on this very thread.
                    tokio::task::yield_now().await;
                    turns.read_ahead(&key).await;
                }
            }
            Known::Lost(error) => {
                tracing::warn!(session.id = %key.id, turn.id = live.id(), error = steward_base::error_chain(&error), "a turn stops without its end being stored");
                turns.give_up_lease(&key, fence).await;
                turns.registry().forget(&live);
                live.log().push(failed(&error));
                live.log().close();
            }
        }
        watched.settled = true;
    }

    /// The person's message.
    fn first_of_turn(&self) -> Option<Message> {
        let turn = self.live.id();
        self.history.iter().find(|message| message.body.turn == turn).cloned()
    }

    async fn drive(mut self) -> Known {
        let context = Arc::new(Context {
            turns: self.turns.clone(),
            live: Arc::clone(&self.live),
            person: self.person.clone(),
            prefix: Mutex::new(self.session.prefix.clone()),
            judge: Mutex::new(judge_of(&self.session.prefix)),
            natives: Mutex::new(Natives::of(&self.history)),
            session: Arc::clone(&self.session),
            model: self.model.clone(),
            fence: self.fence,
            failure: Mutex::default(),
            summaries: Mutex::new(HashMap::new()),
            ready: Mutex::new(self.ready.take()),
        });
        let transcript = Arc::new(TurnTranscript::new(Arc::clone(&context), &self.turn, &self.history));
        let ports = self.ports(&context, &transcript);
        let mut settings = Settings::default();
        settings.budget.iterations = self.turns.parts().limits.iterations;
        let conversation = self.conversation();
        let ended = tokio::select! {
            ended = kernel::run(&ports, &settings, conversation) => Ok(ended),
            error = self.keep_lease() => Err(error),
        };
        self.turns
            .metrics()
            .prefix_broke(&self.session.prefix, &lock(&context.prefix));
        match ended {
            Ok(ended) => self.settle(&context, &transcript, ended).await,
            Err(error) => Known::Lost(error),
        }
    }

    fn ports(&self, context: &Arc<Context>, transcript: &Arc<TurnTranscript>) -> Ports {
        let credentials =
            self.turns
                .parts()
                .minter
                .turn(&self.person, &self.session.key.id, self.live.id(), turn_capabilities());
        Ports {
            model: Arc::new(TurnModel(Arc::clone(context))),
            transcript: Arc::clone(transcript) as _,
            dispatch: Arc::new(TurnDispatch {
                context: Arc::clone(context),
                tools: Arc::clone(&self.turns.parts().tools),
                credentials,
            }),
            events: Arc::new(TurnEvents(Arc::clone(context))),
            interrupt: self.interrupt.clone(),
        }
    }

    fn conversation(&self) -> Conversation {
        Conversation {
            model: self.session.model.clone(),
            system: Arc::clone(&self.session.system_prompt),
            tools_json: Arc::clone(&self.session.tools_json),
            messages: as_model_messages(&self.history),
            turn_start: turn_start(&self.history, self.live.id()),
            key_prefix: format!("{}/{}", self.session.key.id, self.live.id()),
            known_results: self.known.clone(),
            tool_choice: ToolChoice::Auto,
            max_output_tokens: self.model.max_output_tokens,
        }
    }

    /// Renews the lease for as long as it is polled; ends when the lease is lost. A store that does not answer is no loss:
    /// what is appended is checked anyway.
    async fn keep_lease(&self) -> Error {
        let ttl = self.turns.parts().limits.lease;
        loop {
            tokio::time::sleep(ttl / 3).await;
            match self.turns.store().renew_lease(&self.session.key, self.fence, ttl).await {
                Ok(()) => {}
                Err(error @ (Error::StaleFence { .. } | Error::SessionNotFound { .. })) => return error,
                Err(error) => {
                    tracing::warn!(session.id = %self.session.key.id, error = steward_base::error_chain(&error), "could not renew a turn lease");
                }
            }
        }
    }

    /// Stores the end that is not stored yet, and says what it was.
    async fn settle(&self, context: &Context, transcript: &TurnTranscript, ended: Ended) -> Known {
        let stopped = lock(&context.failure).take();
        match stopped {
            Some(error) if leaves_the_end_open(&error) => return Known::Lost(error),
            Some(error) => return self.fail(transcript, error).await,
            None => {}
        }
        match transcript.ended() {
            Some(Stored::Completed(completed)) => return Known::Stored(Event::Completed(completed)),
            Some(Stored::Interrupted(partial_text)) => return Known::Stored(Event::Interrupted { partial_text }),
            Some(Stored::BrokenOff) => {
                return Known::Stored(failed(&Error::ModelAnswerInvalid {
                    model: self.model.name.clone(),
                }));
            }
            None => {}
        }
        match ended.outcome {
            Outcome::RequiresAction { open, finished } => self.wait(transcript, &open, finished).await,
            Outcome::Interrupted | Outcome::Denied => match transcript.end_interrupted().await {
                Ok(()) => Known::Stored(Event::Interrupted {
                    partial_text: String::new(),
                }),
                Err(error) => Known::Lost(error),
            },
            Outcome::BudgetSpent(spent) => self.fail(transcript, self.spent(spent)).await,
            Outcome::Failed { error } => self.fail(transcript, self.failure(error)).await,
            // The loop says that it stored an answer, and nothing was stored.
            Outcome::Final { .. } => Known::Lost(Error::internal("end a turn", "the answer is not stored")),
        }
    }

    async fn wait(&self, transcript: &TurnTranscript, open: &[ModelCall], finished: Vec<ToolResult>) -> Known {
        let parts = self.turns.parts();
        let expires = parts.clock.now().plus(parts.limits.client_wait);
        let open: Vec<OpenCall> = open
            .iter()
            .map(|call| OpenCall {
                call: as_call(call),
                turn: self.live.id().to_owned(),
                expires,
            })
            .collect();
        let calls = open.iter().map(PendingCall::from).collect();
        match transcript.wait_for_client(open).await {
            Ok(()) => {
                self.live.hold(finished);
                Known::Stored(Event::RequiresAction(calls))
            }
            Err(error) => Known::Lost(error),
        }
    }

    async fn fail(&self, transcript: &TurnTranscript, error: Error) -> Known {
        if error.kind() == ErrorKind::Internal {
            tracing::error!(session.id = %self.session.key.id, turn.id = self.live.id(), error = steward_base::error_chain(&error), "a turn failed");
        } else {
            tracing::info!(session.id = %self.session.key.id, turn.id = self.live.id(), error.reason = error.reason(), "a turn failed");
        }
        match transcript
            .end_failed(error.reason().to_owned(), error.public_message())
            .await
        {
            Ok(()) => Known::Stored(failed(&error)),
            Err(error) => Known::Lost(error),
        }
    }

    fn spent(&self, spent: Spent) -> Error {
        match spent {
            Spent::Iterations => Error::IterationsSpent {
                limit: self.turns.parts().limits.iterations,
            },
            Spent::RequestTokens | Spent::TotalTokens => Error::ContextTooLong {
                model: self.model.name.clone(),
            },
        }
    }

    fn failure(&self, error: KernelError) -> Error {
        let model = self.model.name.clone();
        match error {
            KernelError::Model(error) => model_error(&model, &error),
            KernelError::MalformedArguments { .. } => Error::ModelAnswerInvalid { model },
            KernelError::Orphans(orphans) => Error::internal("check the history", orphans),
            KernelError::Port(error) => Error::internal("run a turn", error),
        }
    }
}

impl Context {
    /// What is stored of a turn whose answer the provider broke off.
    pub(super) fn broken_off(&self) -> (String, String) {
        let error = Error::ModelAnswerInvalid {
            model: self.model.name.clone(),
        };
        (error.reason().to_owned(), error.public_message())
    }
}

/// Whether an end cannot be stored, or must not be by this process: the turn is then taken up or closed by a later request.
const fn leaves_the_end_open(error: &Error) -> bool {
    matches!(
        error,
        Error::Unavailable { .. }
            | Error::StorageFull
            | Error::StaleFence { .. }
            | Error::SessionChanged { .. }
            | Error::SessionNotFound { .. }
    )
}

fn failed(error: &Error) -> Event {
    Event::Failed {
        reason: error.reason().to_owned(),
        message: error.public_message(),
        retryable: error.may_succeed_later()
            || matches!(error, Error::StaleFence { .. } | Error::SessionChanged { .. }),
    }
}
