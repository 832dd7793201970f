//! The dispatcher of a review: the policy in front, the tools behind it, and a note of every write that was acknowledged.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use steward_base::{Integrity, SpanOrigin};

use crate::kernel::{CallRequest, Dispatch, Dispatched, PortError, ToolOutput};

use super::evidence::Evidence;
use super::hide::hide_output;
use super::policy::{Admission, Refusal, ReviewPolicy};
use super::verdict::WriteNote;

/// What came of a tool that a review was allowed to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolRun {
    /// Its output.
    pub output: ToolOutput,
    /// The write that a store acknowledged; `None` for reads, refusals, and writes that changed nothing.
    pub note: Option<WriteNote>,
}

/// The tools of a review.
#[async_trait]
pub trait ReviewTools: Send + Sync {
    /// Runs an admitted call; writes come with their evidence.
    ///
    /// # Errors
    /// Only what must end the run, as for [`Dispatch::dispatch`].
    async fn run(&self, call: &CallRequest, evidence: Option<&Evidence>) -> Result<ToolRun, PortError>;
}

/// The dispatcher.
pub struct ReviewDispatch {
    policy: ReviewPolicy,
    tools: Arc<dyn ReviewTools>,
    notes: Mutex<Vec<WriteNote>>,
}

impl fmt::Debug for ReviewDispatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReviewDispatch")
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

impl ReviewDispatch {
    /// Puts `policy` in front of `tools`.
    pub fn new(policy: ReviewPolicy, tools: Arc<dyn ReviewTools>) -> Self {
        Self {
            policy,
            tools,
            notes: Mutex::default(),
        }
    }

    /// The acknowledged writes so far, in order (`R-8`).
    pub fn notes(&self) -> Vec<WriteNote> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Dispatch for ReviewDispatch {
    async fn dispatch(&self, call: &CallRequest) -> Result<Dispatched, PortError> {
        let evidence = match self.policy.admit(call) {
            Ok(Admission::Read) => None,
            Ok(Admission::Write(evidence)) => Some(evidence),
            Err(Refusal::NotPermitted(text)) => return Ok(Dispatched::Denied(text)),
            Err(Refusal::NotAccepted(text)) => {
                let output = ToolOutput::of(text, SpanOrigin::System, Integrity::Workspace).failed();
                return Ok(Dispatched::Done(output));
            }
        };
        let run = self.tools.run(call, evidence.as_ref()).await?;
        match run.note {
            Some(note) => self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(note),
            None if evidence.is_some() => self.policy.refund(),
            None => {}
        }
        Ok(Dispatched::Done(hide_output(run.output)))
    }

    /// Writes go one after the other, so that which of them are the three is the same when the job is run again.
    fn lane(&self, call: &CallRequest) -> Option<String> {
        matches!(call.call.name.as_str(), "memory" | "skill_manage").then(|| "writes".to_owned())
    }
}
