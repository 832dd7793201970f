//! A turn that runs here, waits here for its client, or ended here a while ago.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use steward_agent::kernel::{Steering, ToolResult};
use steward_orchestrator_core::session::SessionKey;
use steward_orchestrator_core::turn::Event;
use tokio_util::sync::CancellationToken;

use super::log::EventLog;

/// A request that the turn has answered or is answering.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Request id.
    pub(crate) id: String,
    /// Fingerprint of its content.
    pub(crate) fingerprint: String,
    /// Position of its first event.
    pub(crate) from: usize,
}

#[derive(Debug)]
struct State {
    marks: Vec<Mark>,
    interrupt: CancellationToken,
    /// What the person added and the loop has not taken yet; `None` while no segment runs.
    steering: Option<Vec<Steering>>,
    /// Results of calls that ran here while the client has others of the same answer.
    held: Vec<ToolResult>,
}

/// One turn in this process.
#[derive(Debug)]
pub(crate) struct LiveTurn {
    key: SessionKey,
    id: String,
    log: EventLog,
    corrected: AtomicBool,
    state: Mutex<State>,
}

impl LiveTurn {
    /// With the events that are known of it so far.
    pub(crate) fn new(key: SessionKey, id: String, events: Vec<Event>) -> Self {
        let state = State {
            marks: Vec::new(),
            interrupt: CancellationToken::new(),
            steering: None,
            held: Vec::new(),
        };
        Self {
            key,
            id,
            log: EventLog::new(events),
            corrected: AtomicBool::new(false),
            state: Mutex::new(state),
        }
    }

    pub(crate) fn key(&self) -> &SessionKey {
        &self.key
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Something that the person corrected in it was staged.
    pub(crate) fn correct(&self) {
        self.corrected.store(true, Ordering::Release);
    }

    pub(crate) fn is_corrected(&self) -> bool {
        self.corrected.load(Ordering::Acquire)
    }

    pub(crate) fn log(&self) -> &EventLog {
        &self.log
    }

    /// A segment begins: it can be interrupted and steered from now on.
    pub(crate) fn begin(&self, mark: Mark) -> CancellationToken {
        let mut state = self.state();
        state.marks.push(mark);
        state.interrupt = CancellationToken::new();
        state.steering = Some(Vec::new());
        state.interrupt.clone()
    }

    /// A segment is over: what was added and not taken is dropped, and nothing more is accepted.
    pub(crate) fn rest(&self) {
        self.state().steering = None;
    }

    pub(crate) fn mark(&self, request: &str) -> Option<Mark> {
        self.state().marks.iter().find(|mark| mark.id == request).cloned()
    }

    pub(crate) fn interrupt(&self) {
        self.state().interrupt.cancel();
    }

    /// Takes a text for the next model call; whether a segment runs that could take it up.
    pub(crate) fn steer(&self, mark: Mark, text: Steering) -> bool {
        let mut state = self.state();
        let Some(steering) = state.steering.as_mut() else {
            return false;
        };
        steering.push(text);
        state.marks.push(mark);
        true
    }

    pub(crate) fn take_steering(&self) -> Vec<Steering> {
        self.state().steering.as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(crate) fn hold(&self, results: Vec<ToolResult>) {
        self.state().held = results;
    }

    pub(crate) fn take_held(&self) -> Vec<ToolResult> {
        std::mem::take(&mut self.state().held)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
