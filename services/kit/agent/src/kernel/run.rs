//! One run of the loop over one stretch of a turn.

use std::sync::Arc;

use steward_model::{Delta, FinishReason, Message, ModelError, ModelRequest, Reply, ToolCall, Usage};

use super::dispatching::{Prepared, prepare, run_calls};
use super::estimate_tokens;
use super::outcome::{Conversation, Ended, KernelError, Outcome, Progress, Settings, Spent};
use super::pairing::{open_calls, pairing};
use super::ports::{AnswerEnd, CallingMessage, DeltaSink, Event, FinalMessage, Ports, ResultKind, StepRef, ToolResult};
use super::table::ToolTable;

/// Runs the loop until something stops it. Dropping the future at any point leaves a history that can be taken up again.
pub async fn run(ports: &Ports, settings: &Settings, conversation: Conversation) -> Ended {
    let mut run = Run::new(ports, settings, conversation);
    let outcome = match run.drive().await {
        Ok(outcome) => outcome,
        Err(error) => Outcome::Failed { error },
    };
    Ended {
        outcome,
        progress: run.progress,
        messages: run.conversation.messages,
    }
}

struct Run<'a> {
    ports: &'a Ports,
    settings: &'a Settings,
    conversation: Conversation,
    progress: Progress,
    malformed_in_a_row: u32,
    denials: u32,
    /// Tokens that the provider counted, and how many messages they cover.
    counted: Option<(u64, usize)>,
}

enum Asked {
    Answered(Reply),
    Interrupted,
}

impl<'a> Run<'a> {
    fn new(ports: &'a Ports, settings: &'a Settings, conversation: Conversation) -> Self {
        let turn = conversation.messages.get(conversation.turn_start..).unwrap_or_default();
        let progress = Progress::of_turn(turn);
        Self {
            ports,
            settings,
            conversation,
            progress,
            malformed_in_a_row: 0,
            denials: 0,
            counted: None,
        }
    }

    async fn drive(&mut self) -> Result<Outcome, KernelError> {
        if let Some(outcome) = self.take_up_open_calls().await? {
            return Ok(outcome);
        }
        loop {
            if self.ports.interrupt.is_cancelled() {
                return Ok(Outcome::Interrupted);
            }
            self.take_steering().await?;
            if let Some(spent) = self.spent() {
                return Ok(Outcome::BudgetSpent(spent));
            }
            pairing(&self.conversation.messages)?;
            let reply = match self.ask().await? {
                Asked::Answered(reply) => reply,
                Asked::Interrupted => return Ok(Outcome::Interrupted),
            };
            if reply.tool_calls.is_empty() {
                return self.finish(reply).await;
            }
            if let Some(outcome) = self.act(reply).await? {
                return Ok(outcome);
            }
        }
    }

    /// Dispatches what the history left open, under the keys that the first run used.
    async fn take_up_open_calls(&mut self) -> Result<Option<Outcome>, KernelError> {
        let open = open_calls(&self.conversation.messages);
        if open.is_empty() {
            // They answer nothing any more. A later call that a provider gives an old id must not meet them.
            self.conversation.known_results.clear();
            return Ok(None);
        }
        let table = ToolTable::read(&self.conversation.tools_json)?;
        let prepared = open
            .into_iter()
            .map(|(index, call)| prepare(&table, index, call, FinishReason::ToolCalls));
        let prepared = prepared.collect();
        self.run_and_store(self.progress.iterations.saturating_sub(1), prepared)
            .await
    }

    async fn take_steering(&mut self) -> Result<(), KernelError> {
        let texts = self.ports.transcript.take_steering().await?;
        if texts.is_empty() {
            return Ok(());
        }
        self.ports
            .transcript
            .append_steering(self.progress.iterations, &texts)
            .await?;
        self.conversation
            .messages
            .extend(texts.iter().map(|text| Message::user(text.sent.clone())));
        self.ports.events.emit(Event::Steered(texts));
        Ok(())
    }

    fn spent(&self) -> Option<Spent> {
        let budget = self.settings.budget;
        if self.progress.iterations >= budget.iterations {
            return Some(Spent::Iterations);
        }
        if budget
            .total_tokens
            .is_some_and(|limit| self.progress.usage.total() >= limit)
        {
            return Some(Spent::TotalTokens);
        }
        let limit = budget.request_tokens?;
        (self.request_tokens() > limit).then_some(Spent::RequestTokens)
    }

    /// Size of the next request: what the provider counted, plus an estimate of what came since.
    fn request_tokens(&self) -> u64 {
        let (counted, upto) = self.counted.unwrap_or_else(|| {
            (
                estimate_tokens(&self.conversation.system) + estimate_tokens(&self.conversation.tools_json),
                0,
            )
        });
        let size = |message: &Message| {
            let calls = match message {
                Message::Assistant { tool_calls, .. } => tool_calls.as_slice(),
                Message::User { .. } | Message::Tool { .. } => &[],
            };
            let calls: u64 = calls.iter().map(|call| 8 + estimate_tokens(&call.arguments)).sum();
            4 + estimate_tokens(message.content()) + calls
        };
        counted + self.conversation.messages.iter().skip(upto).map(size).sum::<u64>()
    }

    fn request(&self) -> ModelRequest {
        ModelRequest {
            model: self.conversation.model.clone(),
            system: Arc::clone(&self.conversation.system),
            tools_json: Arc::clone(&self.conversation.tools_json),
            messages: self.conversation.messages.clone(),
            tool_choice: self.conversation.tool_choice.clone(),
            max_output_tokens: self.conversation.max_output_tokens,
        }
    }

    /// One answer of the model. An empty one is asked for again, once.
    async fn ask(&mut self) -> Result<Asked, KernelError> {
        for attempt in 0..2 {
            let at = StepRef {
                step: self.progress.iterations,
                attempt,
            };
            self.ports.events.emit(Event::StepStarted(at));
            let mut partial = String::new();
            let outcome = {
                let mut sink = Shown {
                    ports: self.ports,
                    partial: &mut partial,
                };
                tokio::select! {
                    biased;
                    () = self.ports.interrupt.cancelled() => None,
                    reply = self.ports.model.call(at, self.request(), &mut sink) => Some(reply),
                }
            };
            match outcome {
                None => {
                    self.store_cut(partial, AnswerEnd::Interrupted).await?;
                    return Ok(Asked::Interrupted);
                }
                Some(Err(error)) => {
                    self.store_cut(partial, AnswerEnd::BrokenOff).await?;
                    return Err(error.into());
                }
                Some(Ok(reply)) => {
                    self.progress.usage.add(&reply.usage);
                    if !reply.is_empty() {
                        return Ok(Asked::Answered(reply));
                    }
                    self.ports.events.emit(Event::EmptyAnswer);
                }
            }
        }
        Err(ModelError::Empty.into())
    }

    /// Keeps what the person has seen of an answer that will not be finished; nothing seen, nothing stored.
    async fn store_cut(&mut self, partial: String, end: AnswerEnd) -> Result<(), KernelError> {
        if partial.trim().is_empty() {
            return Ok(());
        }
        let note = match end {
            AnswerEnd::Interrupted => "[The person interrupted the answer here.]",
            AnswerEnd::BrokenOff | AnswerEnd::Length | AnswerEnd::Complete => "[The answer broke off here.]",
        };
        let sent = format!("{partial}\n\n{note}");
        self.store_final(FinalMessage {
            step: self.progress.iterations,
            said: partial,
            sent,
            end,
            usage: Usage::default(),
        })
        .await
    }

    async fn finish(&mut self, reply: Reply) -> Result<Outcome, KernelError> {
        let end = if reply.finish == FinishReason::Length {
            AnswerEnd::Length
        } else {
            AnswerEnd::Complete
        };
        let text = reply.content;
        self.store_final(FinalMessage {
            step: self.progress.iterations,
            said: text.clone(),
            sent: text.clone(),
            end,
            usage: reply.usage,
        })
        .await?;
        Ok(Outcome::Final { text, end })
    }

    async fn store_final(&mut self, message: FinalMessage) -> Result<(), KernelError> {
        self.progress.iterations += 1;
        self.ports.transcript.append_final(&message, &self.progress).await?;
        self.conversation.messages.push(Message::assistant(message.sent));
        Ok(())
    }

    /// Stores an answer with calls, then runs them.
    async fn act(&mut self, reply: Reply) -> Result<Option<Outcome>, KernelError> {
        let table = ToolTable::read(&self.conversation.tools_json)?;
        let calls = reply.tool_calls.into_iter().enumerate();
        let prepared: Vec<Prepared> = calls
            .map(|(index, call)| prepare(&table, index, call, reply.finish))
            .collect();
        let malformed = prepared.iter().any(Prepared::is_malformed);
        self.malformed_in_a_row = if malformed { self.malformed_in_a_row + 1 } else { 0 };
        if self.malformed_in_a_row > self.settings.malformed_in_a_row {
            self.store_cut(reply.content, AnswerEnd::BrokenOff).await?;
            return Err(KernelError::MalformedArguments {
                times: self.malformed_in_a_row,
            });
        }
        let step = self.progress.iterations;
        let tool_calls: Vec<ToolCall> = prepared.iter().map(|call| call.stored.clone()).collect();
        let message = CallingMessage {
            step,
            content: reply.content,
            tool_calls,
            usage: reply.usage,
        };
        self.ports.transcript.append_calls(&message).await?;
        self.progress.iterations += 1;
        self.progress.note(&message.tool_calls);
        self.ports.events.emit(Event::CallsStored(message.tool_calls.clone()));
        self.conversation.messages.push(Message::Assistant {
            content: message.content,
            tool_calls: message.tool_calls,
        });
        self.counted = reply
            .usage
            .input
            .map(|_| (reply.usage.total(), self.conversation.messages.len()));
        self.run_and_store(step, prepared).await
    }

    async fn run_and_store(&mut self, step: u32, prepared: Vec<Prepared>) -> Result<Option<Outcome>, KernelError> {
        let known = std::mem::take(&mut self.conversation.known_results);
        let collected = run_calls(self.ports, &self.conversation.key_prefix, step, prepared, &known).await?;
        let pairs = collected.calls.into_iter().zip(collected.results);
        let interrupted = collected.interrupted || self.ports.interrupt.is_cancelled();
        let (mut open, mut results) = (Vec::new(), Vec::new());
        for (call, result) in pairs {
            match result {
                Some(result) => results.push(result),
                None if interrupted => {
                    results.push(ToolResult::ours(
                        &call,
                        ResultKind::Cancelled,
                        "The turn was interrupted; this was not run.",
                    ));
                }
                None => open.push(call),
            }
        }
        if !open.is_empty() {
            return Ok(Some(Outcome::RequiresAction {
                open,
                finished: results,
            }));
        }
        self.ports.transcript.append_results(step, &results).await?;
        let denied = results
            .iter()
            .filter(|result| result.kind == ResultKind::Denied)
            .count();
        self.denials = self.denials.saturating_add(u32::try_from(denied).unwrap_or(u32::MAX));
        self.conversation
            .messages
            .extend(results.into_iter().map(|result| Message::Tool {
                call_id: result.call_id,
                name: result.name,
                content: result.content,
            }));
        if interrupted {
            return Ok(Some(Outcome::Interrupted));
        }
        let too_many = self.settings.denials.is_some_and(|limit| self.denials >= limit);
        Ok(too_many.then_some(Outcome::Denied))
    }
}

/// Shows the pieces of an answer and keeps what was seen of it.
struct Shown<'a> {
    ports: &'a Ports,
    partial: &'a mut String,
}

impl DeltaSink for Shown<'_> {
    fn take(&mut self, delta: &Delta) {
        let event = match delta {
            Delta::Text(text) => {
                self.partial.push_str(text);
                Event::Text(text.clone())
            }
            Delta::ToolCallStarted { position, name } => Event::CallStarted {
                position: *position,
                name: name.clone(),
            },
            Delta::Retrying { attempt, wait, error } => Event::Retrying {
                attempt: *attempt,
                wait: *wait,
                error: error.clone(),
            },
            Delta::ToolCall(_) | Delta::Finish { .. } => return,
        };
        self.ports.events.emit(event);
    }
}
