//! What a run starts from, what it may use, and how it ends.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use steward_base::{ErrorKind, Fault, FieldViolation, ResourceRef};
use steward_model::{Message, ModelError, ToolCall, ToolChoice, Usage};

use super::pairing::Orphans;
use super::ports::{AnswerEnd, ToolResult};

/// An error of a port, with its kind and reason. Any [`Fault`] becomes one with `?`.
#[derive(Debug)]
pub struct PortError(Box<dyn Fault>);

impl PortError {
    /// The error itself.
    pub fn fault(&self) -> &dyn Fault {
        &*self.0
    }
}

impl<F: Fault + 'static> From<F> for PortError {
    fn from(error: F) -> Self {
        Self(Box::new(error))
    }
}

impl fmt::Display for PortError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for PortError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

/// What is asked with: the stored parts of a session and its conversation so far.
#[derive(Debug, Clone)]
pub struct Conversation {
    /// The provider's name for the model.
    pub model: String,
    /// The stored system prompt.
    pub system: Arc<str>,
    /// The stored tool list.
    pub tools_json: Arc<str>,
    /// All messages as they are sent, oldest first. It may end with calls that have no results, or not all of them: they
    /// are dispatched before anything else.
    pub messages: Vec<Message>,
    /// Position of the turn's user message in `messages`; steps are counted from there.
    pub turn_start: usize,
    /// What keys of calls begin with: `session/turn`, or the job.
    pub key_prefix: String,
    /// Results for open calls that are known but not yet in `messages`: the client's answers, and those held back while
    /// the client had its calls.
    pub known_results: Vec<ToolResult>,
    /// Whether and what the model must call.
    pub tool_choice: ToolChoice,
    /// Upper bound of one answer in tokens.
    pub max_output_tokens: Option<u32>,
}

/// How much a run may use. `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Model calls of the turn, earlier segments included.
    pub iterations: u32,
    /// Tokens of one request, estimated where the provider has not counted yet (`R-5`).
    pub request_tokens: Option<u64>,
    /// Input and output tokens of this run together.
    pub total_tokens: Option<u64>,
}

/// Limits of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The budget.
    pub budget: Budget,
    /// Answers in a row with unreadable arguments that are put up with (`T-10`).
    pub malformed_in_a_row: u32,
    /// Refused calls after which the run ends by itself; `None` never.
    pub denials: Option<u32>,
}

impl Default for Settings {
    /// A foreground turn: 90 iterations (`T-1`).
    fn default() -> Self {
        let budget = Budget {
            iterations: 90,
            request_tokens: None,
            total_tokens: None,
        };
        Self {
            budget,
            malformed_in_a_row: 3,
            denials: None,
        }
    }
}

/// Which part of the budget is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spent {
    /// Model calls.
    Iterations,
    /// The next request would be too large.
    RequestTokens,
    /// All tokens of the run.
    TotalTokens,
}

/// How a run ended.
#[derive(Debug)]
pub enum Outcome {
    /// The model gave its answer, and it is stored.
    Final {
        /// The answer.
        text: String,
        /// Whether it is whole.
        end: AnswerEnd,
    },
    /// The client has calls to run. No result of this message is stored yet, so that they can be stored in order.
    RequiresAction {
        /// What the client has to run.
        open: Vec<ToolCall>,
        /// Results of the other calls; to be given back as known results.
        finished: Vec<ToolResult>,
    },
    /// It was interrupted; every call has its result.
    Interrupted,
    /// The budget is spent; the history is whole.
    BudgetSpent(Spent),
    /// Too many calls were refused; the history is whole.
    Denied,
    /// It failed.
    Failed {
        /// Why.
        error: KernelError,
    },
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The model could not be asked, or gave no usable answer.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A store or a dispatcher cannot go on.
    #[error(transparent)]
    Port(PortError),
    /// The model keeps writing arguments that cannot be read.
    #[error("the model wrote unreadable arguments {times} times in a row")]
    MalformedArguments {
        /// How often.
        times: u32,
    },
    /// The history is not one that may be sent (`T-11`).
    #[error("calls and results of the history do not belong together")]
    Orphans(#[from] Orphans),
}

impl From<PortError> for KernelError {
    fn from(error: PortError) -> Self {
        Self::Port(error)
    }
}

impl KernelError {
    /// The error of a port or of the model, whose details are passed on as they are.
    fn inner(&self) -> Option<&dyn Fault> {
        match self {
            Self::Model(error) => Some(error),
            Self::Port(error) => Some(error.fault()),
            Self::MalformedArguments { .. } | Self::Orphans(_) => None,
        }
    }
}

impl Fault for KernelError {
    fn kind(&self) -> ErrorKind {
        let own = if matches!(self, Self::Orphans(_)) {
            ErrorKind::Internal
        } else {
            ErrorKind::Unavailable
        };
        self.inner().map_or(own, Fault::kind)
    }

    fn reason(&self) -> &'static str {
        let own = if matches!(self, Self::Orphans(_)) {
            "HISTORY_NOT_PAIRED"
        } else {
            "MODEL_ARGUMENTS_MALFORMED"
        };
        self.inner().map_or(own, Fault::reason)
    }

    fn metadata(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::MalformedArguments { times } => vec![("times", times.to_string())],
            Self::Model(_) | Self::Port(_) | Self::Orphans(_) => self.inner().map(Fault::metadata).unwrap_or_default(),
        }
    }

    fn violations(&self) -> &[FieldViolation] {
        self.inner().map(Fault::violations).unwrap_or_default()
    }

    fn resource(&self) -> Option<ResourceRef> {
        self.inner().and_then(Fault::resource)
    }

    fn retry_after(&self) -> Option<Duration> {
        self.inner().and_then(Fault::retry_after)
    }
}

/// What a turn has done so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Progress {
    /// Model calls of the turn that left a message, earlier segments included (`T-3`).
    pub iterations: u32,
    /// Tokens of this run.
    pub usage: Usage,
    /// Names of the tools that the turn has called.
    pub tools_called: BTreeSet<String>,
}

/// The end of a run.
#[derive(Debug)]
pub struct Ended {
    /// How it ended.
    pub outcome: Outcome,
    /// What it did.
    pub progress: Progress,
    /// The whole conversation as it would be sent next.
    pub messages: Vec<Message>,
}

impl Progress {
    /// Whether a tool of this name was called in the turn.
    pub fn called(&self, tool: &str) -> bool {
        self.tools_called.contains(tool)
    }

    /// What `turn` has done already, its user message first.
    pub fn of_turn(turn: &[Message]) -> Self {
        let mut progress = Self::default();
        for message in turn {
            if let Message::Assistant { tool_calls, .. } = message {
                progress.iterations += 1;
                progress.note(tool_calls);
            }
        }
        progress
    }

    pub(super) fn note(&mut self, calls: &[ToolCall]) {
        self.tools_called.extend(calls.iter().map(|call| call.name.clone()));
    }
}
