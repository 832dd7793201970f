//! Running the calls of one message: at once where they are independent, in lanes where they are not, with one result
//! for each in the end.

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde_json::{Map, Value};
use steward_model::{FinishReason, ToolCall};

use crate::digest::cut;

use super::arguments::{Arguments, judge};
use super::outcome::PortError;
use super::ports::{CallRequest, Dispatched, Event, Ports, ResultKind, ToolResult};
use super::table::{ToolTable, storable_name};

/// A call after judgement: what to store, and what to run or to answer instead.
pub(super) struct Prepared {
    /// Position in its message.
    pub(super) index: usize,
    pub(super) stored: ToolCall,
    pub(super) plan: Plan,
}

pub(super) enum Plan {
    Run(Map<String, Value>),
    Answer(ResultKind, String),
}

impl Prepared {
    pub(super) fn is_malformed(&self) -> bool {
        matches!(self.plan, Plan::Answer(ResultKind::Malformed, _))
    }
}

/// Judges one call. Nothing runs here.
pub(super) fn prepare(table: &ToolTable, index: usize, call: ToolCall, finish: FinishReason) -> Prepared {
    let Some(name) = table.resolve(&call.name).map(str::to_owned) else {
        let text = format!(
            "There is no tool named {:?} here. The tools are: {}.",
            cut(&call.name, 64),
            table.names()
        );
        let (Arguments::Usable { text: arguments, .. } | Arguments::Unusable { text: arguments }) =
            judge(&call.arguments, false);
        let mut name = storable_name(&call.name);
        while table.resolve(&name).is_some() {
            name.push('_');
        }
        let stored = ToolCall {
            name,
            arguments,
            ..call
        };
        return Prepared {
            index,
            stored,
            plan: Plan::Answer(ResultKind::Unknown, text),
        };
    };
    let cut = finish == FinishReason::Length;
    match judge(&call.arguments, cut || table.requires_arguments(&name)) {
        Arguments::Usable { text, value } => Prepared {
            index,
            stored: ToolCall {
                name,
                arguments: text,
                ..call
            },
            plan: Plan::Run(value),
        },
        Arguments::Unusable { text } => {
            let problem = if cut {
                "Your output was cut off at its length limit in the middle of this call. Nothing was run. \
                 Make the call again in smaller parts."
            } else {
                "The arguments of this call are not one JSON object in which each name stands once, perhaps because your \
                 output was cut off. Nothing was run. Write the call again."
            };
            let plan = Plan::Answer(ResultKind::Malformed, problem.to_owned());
            Prepared {
                index,
                stored: ToolCall {
                    name,
                    arguments: text,
                    ..call
                },
                plan,
            }
        }
    }
}

/// What became of the calls of one message.
pub(super) struct Collected {
    /// The calls as stored.
    pub(super) calls: Vec<ToolCall>,
    /// One entry per call; `None` while the client has it.
    pub(super) results: Vec<Option<ToolResult>>,
    pub(super) interrupted: bool,
}

/// Runs the prepared calls. `known` are results that are there already, matched by call id.
pub(super) async fn run_calls(
    ports: &Ports,
    key_prefix: &str,
    step: u32,
    prepared: Vec<Prepared>,
    known: &[ToolResult],
) -> Result<Collected, PortError> {
    let calls: Vec<ToolCall> = prepared.iter().map(|call| call.stored.clone()).collect();
    let mut results: Vec<Option<ToolResult>> = Vec::with_capacity(calls.len());
    let mut requests = Vec::new();
    for (position, Prepared { index, stored, plan }) in prepared.into_iter().enumerate() {
        let there = known.iter().find(|result| result.call_id == stored.id).cloned();
        results.push(match (there, plan) {
            (Some(there), _) => Some(there),
            (None, Plan::Answer(kind, text)) => Some(shown(ports, ToolResult::ours(&stored, kind, text))),
            (None, Plan::Run(arguments)) => {
                let key = format!("{key_prefix}/{step}/{index}");
                requests.push((
                    position,
                    CallRequest {
                        key,
                        step,
                        index,
                        call: stored,
                        arguments,
                    },
                ));
                None
            }
        });
    }
    let mut waiting: Vec<usize> = requests.iter().map(|(position, _)| *position).collect();
    let mut running = stream::select_all(lanes(ports, requests).into_iter().map(|lane| in_order(ports, lane)));
    while !waiting.is_empty() {
        let finished = tokio::select! {
            biased;
            () = ports.interrupt.cancelled() => None,
            finished = running.next() => finished,
        };
        let Some((position, dispatched)) = finished else { break };
        waiting.retain(|other| *other != position);
        results[position] = as_result(&calls[position], dispatched?).map(|result| shown(ports, result));
    }
    let interrupted = !waiting.is_empty();
    for position in waiting {
        let text = "The turn was interrupted while this call ran. Whether it had an effect is not known.";
        results[position] = Some(shown(
            ports,
            ToolResult::ours(&calls[position], ResultKind::Interrupted, text),
        ));
    }
    Ok(Collected {
        calls,
        results,
        interrupted,
    })
}

fn shown(ports: &Ports, result: ToolResult) -> ToolResult {
    ports.events.emit(Event::CallFinished(result.clone()));
    result
}

/// Requests of one lane with their positions, in the model's order.
type Lane = Vec<(usize, CallRequest)>;

/// Groups the requests by lane; a request without one is a lane of its own.
fn lanes(ports: &Ports, requests: Lane) -> Vec<Lane> {
    let (mut names, mut lanes): (Vec<Option<String>>, Vec<Lane>) = (Vec::new(), Vec::new());
    for request in requests {
        let name = ports.dispatch.lane(&request.1);
        if let Some(lane) = names.iter().position(|lane| name.is_some() && *lane == name) {
            lanes[lane].push(request);
        } else {
            names.push(name);
            lanes.push(vec![request]);
        }
    }
    lanes
}

fn in_order(ports: &Ports, lane: Lane) -> BoxStream<'_, (usize, Result<Dispatched, PortError>)> {
    let run = move |(position, request): (usize, CallRequest)| async move {
        (position, ports.dispatch.dispatch(&request).await)
    };
    stream::iter(lane).then(run).boxed()
}

fn as_result(call: &ToolCall, dispatched: Dispatched) -> Option<ToolResult> {
    match dispatched {
        Dispatched::Client => None,
        Dispatched::Denied(text) => Some(ToolResult::ours(call, ResultKind::Denied, text)),
        Dispatched::Done(output) => Some(ToolResult {
            call_id: call.id.clone(),
            name: call.name.clone(),
            content: output.content,
            is_error: output.is_error,
            spans: output.spans,
            kind: ResultKind::Done,
        }),
    }
}
