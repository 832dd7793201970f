//! Tools that count what they do: one effect per key, however often they are called, as the real stores promise.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use steward_base::{Integrity, Span, SpanOrigin};
use steward_testkit::{PATIENCE, wait_for};
use steward_tools::{ToolAnswer, ToolContext};
use tokio::sync::Semaphore;

use crate::turns::ToolRunner;

/// The built-in tools of a test.
#[derive(Debug)]
pub(crate) struct CountingTools {
    /// Effects by key: the arguments of the first call.
    effects: Mutex<BTreeMap<String, String>>,
    /// Keys in the order of their calls, repeated ones included.
    calls: Mutex<Vec<String>>,
    /// While set, calls of `session_search` wait for a permit, and other calls hang after their effect.
    hang: AtomicBool,
    gate: Semaphore,
}

impl Default for CountingTools {
    fn default() -> Self {
        Self {
            effects: Mutex::default(),
            calls: Mutex::default(),
            hang: AtomicBool::new(false),
            gate: Semaphore::new(0),
        }
    }
}

impl CountingTools {
    pub(crate) fn effects(&self) -> BTreeMap<String, String> {
        self.effects.lock().unwrap().clone()
    }

    pub(crate) fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap().clone()
    }

    /// From now on no call returns by itself.
    pub(crate) fn hang(&self, hang: bool) {
        self.hang.store(hang, Ordering::SeqCst);
    }

    /// Lets one hanging call return.
    pub(crate) fn release(&self) {
        self.gate.add_permits(1);
    }

    pub(crate) async fn wait_for_calls(&self, count: usize) {
        wait_for("the tools to be called", PATIENCE, || async {
            self.calls().len() >= count
        })
        .await;
    }
}

#[async_trait]
impl ToolRunner for CountingTools {
    async fn call(&self, context: &ToolContext, name: &str, arguments: &str) -> ToolAnswer {
        let key = context.key.clone();
        self.effects
            .lock()
            .unwrap()
            .entry(key.clone())
            .or_insert_with(|| arguments.to_owned());
        self.calls.lock().unwrap().push(key.clone());
        if self.hang.load(Ordering::SeqCst) && !arguments.contains("quick") {
            self.gate.acquire().await.unwrap().forget();
        }
        let result = format!("{name} did {key}");
        ToolAnswer {
            spans: vec![Span {
                start: 0,
                end: u32::try_from(result.len()).unwrap(),
                origin: SpanOrigin::Tool(name.to_owned()),
                integrity: Integrity::Workspace,
            }],
            content: result,
            is_error: false,
            summary: format!("{name}: done"),
            effect: None,
            failure: None,
            needed: None,
        }
    }
}
