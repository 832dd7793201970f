//! The first request of a turn, made ready while its message is being stored. It is sent if the loop asks for the very
//! same, and not before the message is durable; else it is forgotten.

use std::sync::Arc;

use steward_model::{
    Continuation, ModelRequest, PrefixJudge, PrefixState, PrefixVerdict, Prepared, Provider as _, ToolChoice,
};
use steward_orchestrator_core::session::{NewMessage, Opened};

use super::natives::Natives;
use super::ports::{as_model_message, as_model_messages, continuation_of, judge_of};
use crate::model::Chosen;

/// A request with the judgement on its prefix (`P-4`).
pub(super) struct Ready {
    prepared: Prepared,
    judged: Judged,
}

/// The judgement, and the judge of what follows.
pub(super) struct Judged {
    pub(super) judge: PrefixJudge,
    pub(super) verdict: PrefixVerdict,
    pub(super) state: PrefixState,
}

impl Ready {
    /// The request that follows when `message` stands behind the history. `None` if it cannot be put into the provider's
    /// form, which the loop finds out in its turn.
    pub(super) fn of(opened: &Opened, message: &NewMessage, model: &Chosen) -> Option<Self> {
        let Opened { session, history, .. } = opened;
        let mut messages = as_model_messages(history);
        messages.push(as_model_message(message));
        let continuation = continuation_of(session, &mut Natives::of(history), messages.len());
        let request = ModelRequest {
            model: session.model.clone(),
            system: Arc::clone(&session.system_prompt),
            tools_json: Arc::clone(&session.tools_json),
            messages,
            tool_choice: ToolChoice::Auto,
            max_output_tokens: model.max_output_tokens,
        };
        let prepared = model.provider.prepare(request, continuation).ok()?;
        let mut judge = judge_of(&session.prefix);
        let (verdict, state) = judge.judge(prepared.rendered.clone());
        Some(Self {
            prepared,
            judged: Judged { judge, verdict, state },
        })
    }

    /// Whether this is what is asked.
    pub(super) fn is(&self, request: &ModelRequest, continuation: &Continuation) -> bool {
        *self.prepared.request == *request && *self.prepared.continuation == *continuation
    }

    pub(super) fn into_parts(self) -> (Prepared, Judged) {
        (self.prepared, self.judged)
    }
}
