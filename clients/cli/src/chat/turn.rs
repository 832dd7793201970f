//! One turn: stream its events, run what the person permits, send the results, until the final answer.

use std::path::PathBuf;

use anyhow::bail;
use steward_client::ErrorOrigin;
use steward_proto::agent::v1 as pb;
use steward_proto::agent::v1::run_turn_request::Input;
use steward_proto::skill::v1::SecretRequest;

use super::approve::{Approval, Decision};
use super::events::{Cursor, End};
use super::secrets::Secrets;
use super::tools::Call;
use crate::connect::{Session, request_id};
use crate::output::{Output, printable};

/// How often a broken stream is taken up again before the turn is given up here; it goes on at the server.
const REATTACH: u32 = 5;

/// A conversation in this terminal.
#[derive(Debug)]
pub(super) struct Conversation {
    /// The connection.
    pub(super) session: Session,
    /// Full name of the session.
    pub(super) name: String,
    /// What the person permits.
    pub(super) approval: Approval,
    /// Where tools run.
    pub(super) folder: PathBuf,
    /// What skills need there.
    pub(super) secrets: Secrets,
    /// Whether a person can be asked for it.
    pub(super) can_ask: bool,
}

impl Conversation {
    /// Says something and shows the answer. Tells whether a review of the turn is due.
    pub(super) async fn say(&mut self, text: &str, output: &mut Output) -> anyhow::Result<bool> {
        let message = pb::UserMessage {
            text: text.to_owned(),
            attachments: Vec::new(),
        };
        self.run(Input::UserMessage(message), output).await
    }

    /// Runs the calls that the session waits with, if it does, and goes on with the turn. Tells the same as
    /// [`Self::say`]; `None` when nothing waits.
    pub(super) async fn resume(&mut self, output: &mut Output) -> anyhow::Result<Option<bool>> {
        let request = pb::ListPendingActionsRequest {
            parent: self.session.user.clone(),
        };
        let pending = self.session.client.agent.list_pending_actions(request).await?;
        let Some(action) = pending.actions.into_iter().find(|action| action.session == self.name) else {
            return Ok(None);
        };
        if !output.is_json() {
            output.aside("the last turn waits for this machine");
        }
        let results = self.run_calls(action.calls, output).await;
        self.run(Input::ToolResults(results), output).await.map(Some)
    }

    async fn run(&mut self, mut input: Input, output: &mut Output) -> anyhow::Result<bool> {
        loop {
            let (end, wanted) = self.segment(input, output).await?;
            for request in wanted {
                self.secrets.wanted(request);
            }
            // Between two segments nobody's text is torn apart, and the calls that come next have what was given.
            self.secrets.ask(self.can_ask, &self.session, output).await;
            match end {
                End::Completed(completed) => {
                    return Ok(completed.review_due.is_some_and(|due| due.memory || due.skills));
                }
                End::Calls(calls) => input = Input::ToolResults(self.run_calls(calls, output).await),
            }
        }
    }

    async fn segment(&self, input: Input, output: &mut Output) -> anyhow::Result<(End, Vec<SecretRequest>)> {
        let request = pb::RunTurnRequest {
            session: self.name.clone(),
            request_id: request_id(),
            input: Some(input),
            steer: false,
        };
        let agent = &self.session.client.agent;
        let mut cursor = Cursor::new();
        let mut broken = 0;
        // The same request id attaches to the same segment, so a broken stream is simply asked for again.
        loop {
            let mut stream = match agent.run_turn(request.clone()).await {
                Ok(stream) => stream,
                Err(error) if error.origin == ErrorOrigin::Transport && broken < REATTACH => {
                    broken += 1;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            cursor.attach();
            loop {
                match stream.message().await {
                    Ok(Some(item)) => {
                        if let Some(end) = item.event.and_then(|event| cursor.take(event, output).transpose()) {
                            return Ok((end?, cursor.take_wanted()));
                        }
                    }
                    Ok(None) => bail!("the server ended the stream without an end of the turn"),
                    Err(error) if error.origin == ErrorOrigin::Transport && broken < REATTACH => {
                        broken += 1;
                        break;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }

    async fn run_calls(&mut self, calls: Vec<pb::PendingCall>, output: &mut Output) -> pb::ToolResults {
        let mut results = Vec::with_capacity(calls.len());
        for call in calls {
            let (content, is_error) = self.run_call(&call, output).await;
            results.push(pb::ToolResult {
                call_id: call.call_id,
                content,
                is_error,
                ..pb::ToolResult::default()
            });
        }
        pb::ToolResults { results }
    }

    async fn run_call(&mut self, call: &pb::PendingCall, output: &mut Output) -> (String, bool) {
        let parsed = match Call::parse(&call.tool, &call.arguments_json, &self.folder) {
            Ok(parsed) => parsed,
            Err(problem) => return (problem, true),
        };
        if self.approval.ask(&call.tool, &parsed.describe()) == Decision::Decline {
            return (
                "The person declined this call. Do not try it another way; ask or go on without it.".into(),
                true,
            );
        }
        if !output.is_json() {
            output.aside(&format!("{}: {}", call.tool, printable(&parsed.describe())));
        }
        match parsed.run(&self.folder, &self.secrets).await {
            Ok(text) => (text, false),
            Err(text) => (text, true),
        }
    }
}
