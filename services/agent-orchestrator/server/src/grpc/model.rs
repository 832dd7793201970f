//! `ModelService`: model calls for jobs. Stateless; keys stay here.

use std::pin::Pin;

use futures::{Stream, StreamExt as _};
use steward_base::names::parse_user;
use steward_base::{Caller, FieldViolations};
use steward_model::{
    Continuation, Delta, FinishReason, Message, ModelRequest, NativeBlocks, Rendered, ToolCall, ToolChoice, parse_tools,
};
use steward_orchestrator_core::Error;
use steward_orchestrator_core::session::Usage;
use steward_proto::agent::v1 as pb;
use steward_proto::agent::v1::model_service_server::ModelService;
use steward_proto::common::v1 as common;
use tonic::{Request, Response, Status};

use super::agent_status;
use super::convert::usage_to_pb;
use crate::model::{Chosen, Models, model_error};

/// Serves [`Models`].
#[derive(Debug, Clone)]
pub(crate) struct ModelRpc {
    models: Models,
}

impl ModelRpc {
    pub(crate) fn new(models: Models) -> Self {
        Self { models }
    }
}

type Streamed = Pin<Box<dyn Stream<Item = Result<pb::GenerateResponse, Status>> + Send>>;

#[tonic::async_trait]
impl ModelService for ModelRpc {
    type GenerateStream = Streamed;

    async fn generate(&self, request: Request<pb::GenerateRequest>) -> Result<Response<Streamed>, Status> {
        let caller = steward_grpc::caller(&request)?.clone();
        let request = request.into_inner();
        check_user(&caller, &request.user).map_err(agent_status)?;
        let model = self.models.for_jobs(&request.model).map_err(agent_status)?;
        let purpose = request.purpose.clone();
        let (asked, continuation) =
            model_request(request, &model.name, model.max_output_tokens).map_err(agent_status)?;
        let failed = {
            let name = model.name.clone();
            move |error: &steward_model::ModelError| agent_status(model_error(&name, error))
        };
        let prepared = model.provider.prepare(asked, continuation);
        let prepared = prepared.map_err(|error| failed(&error))?;
        let sent = Sent::of(&model.name, &prepared.rendered);
        let deltas = model.provider.send(prepared).await.map_err(|error| failed(&error))?;
        tracing::debug!(purpose, model = model.name, "a job asks the model");
        let items = deltas.filter_map(move |delta| {
            let item = match delta {
                Ok(delta) => item(delta, &sent, &model).map(Ok),
                Err(error) => Some(Err(failed(&error))),
            };
            std::future::ready(item)
        });
        Ok(Response::new(Box::pin(items)))
    }

    async fn get_model_route(
        &self,
        _request: Request<pb::GetModelRouteRequest>,
    ) -> Result<Response<pb::GetModelRouteResponse>, Status> {
        let route = self.models.route();
        Ok(Response::new(pb::GetModelRouteResponse {
            configured: route.configured,
            model: route.model,
            base_url: route.base_url,
            review_model: route.review_model,
            context_window: route.context_window,
            provider: route.provider.to_owned(),
            models: route.models,
        }))
    }
}

/// A credential that is bound to a person asks for that person only.
fn check_user(caller: &Caller, name: &str) -> Result<(), Error> {
    let (team, user) = parse_user(name).map_err(|error| Error::field("user", error.to_string()))?;
    let allowed = match (&caller.team, &caller.user) {
        (Some(own_team), Some(own_user)) => *own_team == team && *own_user == user,
        _ => caller.is_service(),
    };
    if allowed {
        Ok(())
    } else {
        Err(Error::field("user", "must be the one the credential is for"))
    }
}

/// The request and what goes with it beside its messages.
fn model_request(
    request: pb::GenerateRequest,
    model: &str,
    default_limit: Option<u32>,
) -> Result<(ModelRequest, Continuation), Error> {
    let mut violations = FieldViolations::new();
    let stable = usize::try_from(request.stable_prompt_bytes).unwrap_or(usize::MAX);
    if !request.system_prompt.is_char_boundary(stable) {
        violations.add(
            "stable_prompt_bytes",
            "must be at most the length of `system_prompt`, on a character boundary",
        );
    }
    let mut continuation = Continuation {
        stable_len: (stable > 0).then_some(stable),
        ..Continuation::default()
    };
    if parse_tools(&request.tools_json).is_err() {
        violations.add(
            "tools_json",
            "must be a JSON array of {name, description, input_schema}",
        );
    }
    let mut messages = Vec::with_capacity(request.messages.len());
    for (index, message) in request.messages.into_iter().enumerate() {
        match message.message {
            Some(message) => {
                let (message, native) = message_from_pb(message);
                continuation.natives.extend(native.map(|native| (index, native)));
                messages.push(message);
            }
            None => violations.add(
                format!("messages[{index}]"),
                "must be a user, assistant or tool message",
            ),
        }
    }
    if messages.is_empty() {
        violations.add("messages", "must not be empty");
    }
    violations.into_result()?;
    let request = ModelRequest {
        model: model.to_owned(),
        system: request.system_prompt.into(),
        tools_json: request.tools_json.into(),
        messages,
        tool_choice: ToolChoice::Auto,
        max_output_tokens: Some(request.max_output_tokens)
            .filter(|limit| *limit > 0)
            .or(default_limit),
    };
    Ok((request, continuation))
}

fn message_from_pb(message: pb::model_message::Message) -> (Message, Option<NativeBlocks>) {
    let message = match message {
        pb::model_message::Message::User(user) => Message::User { content: user.text },
        pb::model_message::Message::Assistant(assistant) => {
            let message = Message::Assistant {
                content: assistant.text,
                tool_calls: assistant.tool_calls.into_iter().map(call_from_pb).collect(),
            };
            return (message, assistant.native.map(native_from_pb));
        }
        pb::model_message::Message::Tool(tool) => Message::Tool {
            call_id: tool.call_id,
            name: tool.name,
            content: tool.text,
        },
    };
    (message, None)
}

fn native_from_pb(native: common::NativeBlocks) -> NativeBlocks {
    NativeBlocks {
        provider: native.provider,
        model: native.model,
        blocks: native.blocks_json,
    }
}

fn native_to_pb(native: NativeBlocks) -> common::NativeBlocks {
    common::NativeBlocks {
        provider: native.provider,
        model: native.model,
        blocks_json: native.blocks,
    }
}

fn call_from_pb(call: pb::ModelToolCall) -> ToolCall {
    ToolCall {
        id: call.id,
        name: call.name,
        arguments: call.arguments_json,
    }
}

/// What was sent and to which model, for the caller's prefix report.
struct Sent {
    model: String,
    tools: String,
    system: String,
    messages: String,
}

impl Sent {
    fn of(model: &str, rendered: &Rendered) -> Self {
        use steward_base::hash::sha256_hex;
        Self {
            model: model.to_owned(),
            tools: sha256_hex(rendered.tools()),
            system: sha256_hex(rendered.system()),
            messages: sha256_hex(rendered.messages()),
        }
    }
}

fn item(delta: Delta, sent: &Sent, asked: &Chosen) -> Option<pb::GenerateResponse> {
    use pb::generate_response::Item;
    let item = match delta {
        Delta::Text(text) => Item::TextDelta(text),
        Delta::ToolCall(call) => Item::ToolCall(pb::ModelToolCall {
            id: call.id,
            name: call.name,
            arguments_json: call.arguments,
        }),
        Delta::Finish { reason, usage, native } => Item::Finish(pb::GenerateFinish {
            finish_reason: finish_word(reason).to_owned(),
            usage: Some(usage_to_pb(Usage {
                input: usage.input,
                cached_input: usage.cached_input,
                cache_write: usage.cache_write,
                output: usage.output,
            })),
            tools_sha256: sent.tools.clone(),
            system_sha256: sent.system.clone(),
            messages_sha256: sent.messages.clone(),
            model: sent.model.clone(),
            native: native.map(native_to_pb),
            cost_picodollars: asked.cost_picodollars(&usage),
        }),
        Delta::Retrying { .. } | Delta::ToolCallStarted { .. } => return None,
    };
    Some(pb::GenerateResponse { item: Some(item) })
}

const fn finish_word(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::Stop => "stop",
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::Length => "length",
        FinishReason::Filtered => "content_filter",
        FinishReason::Other => "other",
    }
}

#[cfg(test)]
mod tests;
