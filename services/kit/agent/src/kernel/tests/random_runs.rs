//! Random scripts of answers, failing ports, crashes and interrupts (`T-1`, `T-10`, `T-11`, `D-36`, `D-72`, `D-75`): whatever
//! happens at whichever call of a port, the history can be sent, results stand in the model's order, a key means one call,
//! and the budget holds.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use proptest::prelude::*;
use steward_base::{Integrity, SpanOrigin};
use steward_model::{FinishReason, Message, ModelError, ModelRequest, Reply, ToolCall, Usage};
use tokio_util::sync::CancellationToken;

use super::super::*;
use super::rig::{LeaseLost, conversation};

const ITERATIONS: u32 = 9;

#[derive(Debug, Clone)]
enum Answer {
    Text,
    Empty,
    Fails,
    /// Names and kinds of arguments, and whether the provider's limit cut it.
    Calls(Vec<(&'static str, &'static str)>, bool),
}

/// What goes wrong at one call of a port, counted over all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mishap {
    /// The process dies before it has an effect.
    Before,
    /// The process dies after it has taken effect, before anyone hears of it.
    After,
    Interrupt,
    Steer,
}

fn answers() -> impl Strategy<Value = Vec<Answer>> {
    let name = prop_oneof![
        4 => Just("look"), 3 => Just("write"), 1 => Just("client"), 1 => Just("forbidden"), 1 => Just("fly"),
        1 => Just("looklook"),
    ];
    let arguments = prop_oneof![
        5 => Just(r#"{"n":1}"#), 1 => Just(""), 1 => Just(r#"{"n":"half"#), 1 => Just(r#"{"n":1}{"n":1}"#),
        1 => Just(r#"{"n":1,"n":2}"#), 1 => Just("[]"),
    ];
    let calls = prop::collection::vec((name, arguments), 1..5);
    let answer = prop_oneof![
        2 => Just(Answer::Text), 1 => Just(Answer::Empty), 1 => Just(Answer::Fails),
        8 => (calls, any::<bool>()).prop_map(|(calls, cut)| Answer::Calls(calls, cut)),
    ];
    prop::collection::vec(answer, 1..8)
}

fn mishaps() -> impl Strategy<Value = BTreeMap<usize, Mishap>> {
    let mishap = prop_oneof![
        4 => Just(Mishap::Before), 4 => Just(Mishap::After), 1 => Just(Mishap::Interrupt), 1 => Just(Mishap::Steer),
    ];
    prop::collection::btree_map(0..60_usize, mishap, 0..8)
}

/// What outlives a process: the rows, and what tools did under which key.
#[derive(Default)]
struct Durable {
    messages: Vec<Message>,
    effects: BTreeMap<String, ToolCall>,
    waiting: Vec<Steering>,
    /// Steps of the answers that were asked for.
    asked: u32,
    calls_of_ports: usize,
}

struct World {
    script: Vec<Answer>,
    mishaps: BTreeMap<usize, Mishap>,
    durable: Mutex<Durable>,
    interrupt: CancellationToken,
}

impl World {
    fn durable(&self) -> MutexGuard<'_, Durable> {
        self.durable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One call of a port with its effect.
    fn port<T>(&self, effect: impl FnOnce(&mut Durable) -> T) -> Result<T, PortError> {
        let mut durable = self.durable();
        let mishap = self.mishaps.get(&durable.calls_of_ports).copied();
        durable.calls_of_ports += 1;
        if mishap == Some(Mishap::Before) {
            return Err(LeaseLost.into());
        }
        let outcome = effect(&mut durable);
        match mishap {
            Some(Mishap::After) => return Err(LeaseLost.into()),
            Some(Mishap::Interrupt) => self.interrupt.cancel(),
            Some(Mishap::Steer) => durable.waiting.push(Steering::new("and be quick")),
            Some(Mishap::Before) | None => {}
        }
        Ok(outcome)
    }
}

struct Ends(Arc<World>);

#[async_trait]
impl ModelPort for Ends {
    async fn call(&self, at: StepRef, request: ModelRequest, _sink: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        assert_eq!(pairing(&request.messages), Ok(()), "only whole histories are sent");
        assert!(at.step < ITERATIONS, "the budget holds");
        let world = &self.0;
        let answer = &world.script[at.step as usize % world.script.len()];
        let crashed = world.port(|durable| durable.asked += 1).is_err();
        let broken = || ModelError::BrokenOff;
        let (content, tool_calls, finish) = match answer {
            _ if crashed => return Err(broken()),
            Answer::Fails => return Err(broken()),
            Answer::Text => ("done".to_owned(), Vec::new(), FinishReason::Stop),
            Answer::Empty => (String::new(), Vec::new(), FinishReason::Stop),
            Answer::Calls(calls, cut) => {
                let call = |(at_call, (name, arguments)): (usize, &(&str, &str))| ToolCall {
                    id: format!("call_{}_{at_call}", at.step),
                    name: (*name).to_owned(),
                    arguments: (*arguments).to_owned(),
                };
                let finish = if *cut {
                    FinishReason::Length
                } else {
                    FinishReason::ToolCalls
                };
                (String::new(), calls.iter().enumerate().map(call).collect(), finish)
            }
        };
        let usage = Usage::default();
        Ok(Reply {
            content,
            tool_calls,
            finish,
            usage,
        })
    }
}

#[async_trait]
impl Transcript for Ends {
    async fn append_calls(&self, message: &CallingMessage) -> Result<(), PortError> {
        let message = Message::Assistant {
            content: message.content.clone(),
            tool_calls: message.tool_calls.clone(),
        };
        self.0.port(|durable| durable.messages.push(message))
    }

    async fn append_results(&self, _step: u32, results: &[ToolResult]) -> Result<(), PortError> {
        let rows: Vec<Message> = results
            .iter()
            .map(|result| Message::Tool {
                call_id: result.call_id.clone(),
                name: result.name.clone(),
                content: result.content.clone(),
            })
            .collect();
        self.0.port(|durable| durable.messages.extend(rows))
    }

    async fn append_steering(&self, _step: u32, texts: &[Steering]) -> Result<(), PortError> {
        let rows: Vec<Message> = texts.iter().map(|text| Message::user(text.sent.clone())).collect();
        self.0.port(|durable| durable.messages.extend(rows))
    }

    async fn append_final(&self, message: &FinalMessage, _progress: &Progress) -> Result<(), PortError> {
        let message = Message::assistant(message.sent.clone());
        self.0.port(|durable| durable.messages.push(message))
    }

    async fn take_steering(&self) -> Result<Vec<Steering>, PortError> {
        self.0.port(|durable| std::mem::take(&mut durable.waiting))
    }
}

#[async_trait]
impl Dispatch for Ends {
    async fn dispatch(&self, call: &CallRequest) -> Result<Dispatched, PortError> {
        // What finishes first is not what was called first.
        for _ in 0..(call.index * 7) % 4 {
            tokio::task::yield_now().await;
        }
        assert_eq!(
            call.arguments.len(),
            usize::from(!call.call.arguments.starts_with("{}")),
            "{call:?}"
        );
        assert_eq!(call.key, format!("s/t/{}/{}", call.step, call.index));
        match call.call.name.as_str() {
            "client" => return Ok(Dispatched::Client),
            "forbidden" => return Ok(Dispatched::Denied("no".to_owned())),
            _ => {}
        }
        self.0.port(|durable| {
            let known = durable
                .effects
                .entry(call.key.clone())
                .or_insert_with(|| call.call.clone());
            assert_eq!(*known, call.call, "a key means one call for ever");
        })?;
        let origin = SpanOrigin::Tool(call.call.name.clone());
        Ok(Dispatched::Done(ToolOutput::of(
            call.key.clone(),
            origin,
            Integrity::Workspace,
        )))
    }

    fn lane(&self, call: &CallRequest) -> Option<String> {
        (call.call.name == "write").then(|| "write".to_owned())
    }
}

impl Events for Ends {
    fn emit(&self, _event: Event) {}
}

fn ports(world: &Arc<World>) -> Ports {
    Ports {
        model: Arc::new(Ends(Arc::clone(world))),
        transcript: Arc::new(Ends(Arc::clone(world))),
        dispatch: Arc::new(Ends(Arc::clone(world))),
        events: Arc::new(Ends(Arc::clone(world))),
        interrupt: world.interrupt.clone(),
    }
}

/// Runs process after process on what the one before has left, until a turn ends otherwise than by a crash.
async fn drive(world: &Arc<World>) -> Outcome {
    let mut settings = Settings::default();
    settings.budget.iterations = ITERATIONS;
    let mut known = Vec::new();
    loop {
        let messages = world.durable().messages.clone();
        let ended = run(
            &ports(world),
            &settings,
            Conversation {
                messages,
                known_results: std::mem::take(&mut known),
                ..conversation("go")
            },
        )
        .await;
        let crashes_left = {
            let durable = world.durable();
            world.mishaps.range(durable.calls_of_ports..).next().is_some()
        };
        match ended.outcome {
            Outcome::RequiresAction { open, finished } => {
                let client = open
                    .iter()
                    .map(|call| ToolResult::ours(call, ResultKind::Done, "from the client"));
                known = finished.into_iter().chain(client).collect();
            }
            Outcome::Failed {
                error: KernelError::Port(_),
            } => {}
            Outcome::Failed {
                error: KernelError::Model(_),
            } if crashes_left => {}
            outcome => return outcome,
        }
    }
}

/// Every result right after its message, in the order of the calls, and unreadable calls answered without being run.
fn check_order(world: &World) {
    let durable = world.durable();
    let mut step = 0;
    let mut rows = durable.messages.iter().peekable();
    while let Some(row) = rows.next() {
        let Message::Assistant { tool_calls, .. } = row else {
            continue;
        };
        for (index, call) in tool_calls.iter().enumerate() {
            let Some(Message::Tool { call_id, name, content }) =
                rows.next_if(|row| matches!(row, Message::Tool { .. }))
            else {
                panic!("{} has no result", call.id)
            };
            assert_eq!((call_id, name), (&call.id, &call.name));
            assert!(
                serde_json::from_str::<serde_json::Value>(&call.arguments).is_ok(),
                "{}",
                call.arguments
            );
            let key = format!("s/t/{step}/{index}");
            if *content == key {
                assert_eq!(durable.effects.get(&key), Some(call));
            }
            if call.arguments.contains("malformed_arguments") || call.name == "fly" {
                assert_eq!(durable.effects.get(&key), None, "it was never run");
            }
        }
        step += 1;
    }
    assert!(step <= ITERATIONS, "{step} answers");
}

proptest! {
    #[test]
    fn whatever_fails_a_turn_ends_whole_in_order_and_within_its_budget(script in answers(), mishaps in mishaps()) {
        let world = Arc::new(World {
            script,
            mishaps,
            durable: Mutex::new(Durable { messages: vec![Message::user("go")], ..Durable::default() }),
            interrupt: CancellationToken::new(),
        });
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let outcome = runtime.block_on(drive(&world));
        prop_assert_eq!(pairing(&world.durable().messages), Ok(()), "{:?}", outcome);
        check_order(&world);
        if matches!(outcome, Outcome::Final { .. }) {
            let ends_with_the_answer = matches!(world.durable().messages.last(), Some(Message::Assistant { .. }));
            prop_assert!(ends_with_the_answer);
        }
    }
}
