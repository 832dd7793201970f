//! One model call through the orchestrator, which has the keys.

use steward_base::error_chain;
use steward_client::{ClientError, ModelClient};
use steward_curator_core::Error;
use steward_curator_core::ports::KeptReply;
use steward_model::{Continuation, FinishReason, Message, ModelRequest, NativeBlocks, Reply, ToolCall, Usage};
use steward_proto::agent::v1 as pb;
use steward_proto::agent::v1::generate_response::Item;
use steward_proto::agent::v1::model_message::Message as Sent;
use steward_proto::common::v1 as common;

use super::AGENT;

/// Asks and reads the answer to its end.
pub(super) async fn generate(
    client: &ModelClient,
    user: String,
    request: ModelRequest,
    beside: Continuation,
) -> Result<KeptReply, Error> {
    let request = to_pb(user, request, beside);
    let peer = |error: ClientError| Error::peer(AGENT, error);
    let mut stream = client.generate(request).await.map_err(peer)?;
    let (mut content, mut tool_calls, mut finished) = (String::new(), Vec::new(), None);
    // To the end of the stream: who leaves before has given up, as the server's audit sees it.
    loop {
        let item = match stream.message().await {
            Ok(Some(response)) => response.item,
            Ok(None) => break,
            Err(error) if finished.is_some() => {
                tracing::warn!(
                    error = error_chain(&error),
                    "a model call failed behind its whole answer"
                );
                break;
            }
            Err(error) => return Err(peer(error)),
        };
        match item {
            Some(Item::TextDelta(text)) => content.push_str(&text),
            Some(Item::ToolCall(call)) => {
                tool_calls.push(ToolCall {
                    id: call.id,
                    name: call.name,
                    arguments: call.arguments_json,
                });
            }
            Some(Item::Finish(finish)) => finished = Some(finish),
            None => {}
        }
    }
    let finish = finished.ok_or_else(|| Error::peer(AGENT, BrokenOff))?;
    let reply = Reply {
        content,
        tool_calls,
        finish: reason(&finish.finish_reason),
        usage: usage(finish.usage.as_ref()),
    };
    let native = finish.native.map(super::convert::native);
    let cost = finish.cost_picodollars;
    Ok(KeptReply { reply, native, cost })
}

/// The stream ended before the answer did.
#[derive(Debug, thiserror::Error)]
#[error("the model's answer broke off")]
struct BrokenOff;

impl steward_base::Fault for BrokenOff {
    fn kind(&self) -> steward_base::ErrorKind {
        steward_base::ErrorKind::Unavailable
    }

    fn reason(&self) -> &'static str {
        "MODEL_ANSWER_INVALID"
    }
}

fn to_pb(user: String, request: ModelRequest, mut beside: Continuation) -> pb::GenerateRequest {
    let messages = request.messages.into_iter().enumerate();
    pb::GenerateRequest {
        user,
        model: request.model,
        system_prompt: request.system.to_string(),
        tools_json: request.tools_json.to_string(),
        messages: messages
            .map(|(at, one)| message(one, beside.natives.remove(&at)))
            .collect(),
        max_output_tokens: request.max_output_tokens.unwrap_or(0),
        purpose: "review".to_owned(),
        stable_prompt_bytes: beside.stable_len.and_then(|length| length.try_into().ok()).unwrap_or(0),
    }
}

fn message(message: Message, native: Option<NativeBlocks>) -> pb::ModelMessage {
    let sent = match message {
        Message::User { content } => Sent::User(pb::ModelUserMessage { text: content }),
        Message::Assistant { content, tool_calls } => Sent::Assistant(pb::ModelAssistantMessage {
            text: content,
            tool_calls: tool_calls
                .into_iter()
                .map(|call| pb::ModelToolCall {
                    id: call.id,
                    name: call.name,
                    arguments_json: call.arguments,
                })
                .collect(),
            native: native.map(super::convert::native_to_pb),
        }),
        Message::Tool { call_id, name, content } => Sent::Tool(pb::ModelToolMessage {
            call_id,
            name,
            text: content,
        }),
    };
    pb::ModelMessage { message: Some(sent) }
}

fn reason(word: &str) -> FinishReason {
    match word {
        "stop" => FinishReason::Stop,
        "tool_calls" => FinishReason::ToolCalls,
        "length" => FinishReason::Length,
        "content_filter" | "filtered" => FinishReason::Filtered,
        _ => FinishReason::Other,
    }
}

fn usage(usage: Option<&common::Usage>) -> Usage {
    let Some(usage) = usage else { return Usage::default() };
    Usage {
        input: usage.input_tokens,
        cached_input: usage.cached_input_tokens,
        cache_write: usage.cache_write_tokens,
        output: usage.output_tokens,
        reasoning: None,
    }
}
