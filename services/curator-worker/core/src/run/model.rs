//! The model of a review: what the journal holds is not asked again, and what is new is journalled before anyone acts on
//! it.
//!
//! What a provider wants back of its own messages goes along beside the request: of the session where it is replayed, and
//! of the review itself. The loop knows nothing of it, so that it can get into no text.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use steward_agent::kernel::{DeltaSink, ModelPort, StepRef};
use steward_agent::review::{ReviewMode, ReviewRequest};
use steward_model::{Continuation, ModelError, ModelRequest, NativeBlocks, Reply};

use super::Memo;
use crate::error::Error;
use crate::halt::Halt;
use crate::ports::{KeptReply, Peers, SessionView};
use crate::problem::halt_on;

pub(super) struct JournalledModel {
    pub(super) peers: Arc<dyn Peers>,
    pub(super) journal: Arc<Memo>,
    pub(super) halt: Halt,
    pub(super) beside: Beside,
}

/// What goes with the requests of a review beside their messages.
#[derive(Debug, Default)]
pub(super) struct Beside {
    stable_len: Option<usize>,
    /// By the position of their message.
    natives: Mutex<BTreeMap<usize, NativeBlocks>>,
}

impl Beside {
    /// For a request that shows the session as it was, or with what came from outside hidden. The provider's own form of a
    /// message is given back only where nothing was hidden before it: it may hold what the model thought of hidden text
    /// (`R-3`). A digest goes to another model, or begins elsewhere, and gets nothing.
    pub(super) fn of(session: &SessionView, request: &ReviewRequest) -> Self {
        if request.mode == ReviewMode::Digest {
            return Self::default();
        }
        let hidden = request.spans.spans().iter().find(|span| span.hidden);
        let shown = hidden.map_or(session.messages.len(), |span| {
            let of_span = session
                .messages
                .iter()
                .position(|message| message.id == span.message_id);
            of_span.unwrap_or(0)
        });
        // Up to there every message of the session is one of the request.
        let natives = session.natives.range(..shown);
        Self {
            stable_len: session.stable_len,
            natives: Mutex::new(natives.map(|(at, native)| (*at, native.clone())).collect()),
        }
    }

    /// For a request with so many messages; its answer will stand behind them.
    fn before(&self, length: usize) -> Continuation {
        let mut natives = self.natives();
        // An empty answer is asked for again, and leaves nothing.
        natives.split_off(&length);
        Continuation {
            stable_len: self.stable_len,
            natives: natives.clone(),
        }
    }

    fn answered(&self, length: usize, native: Option<&NativeBlocks>) {
        self.natives().extend(native.map(|native| (length, native.clone())));
    }

    fn natives(&self) -> MutexGuard<'_, BTreeMap<usize, NativeBlocks>> {
        self.natives.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ModelPort for JournalledModel {
    async fn call(&self, at: StepRef, request: ModelRequest, _sink: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let length = request.messages.len();
        let beside = self.beside.before(length);
        if let Some(kept) = self.journal.reply(at) {
            self.beside.answered(length, kept.native.as_ref());
            return Ok(kept.reply);
        }
        self.halt.pass_safe_point();
        if self.halt.interrupt().is_cancelled() {
            // The kernel sees the interrupt and drops this call.
            return std::future::pending().await;
        }
        match self.ask(at, request, beside).await {
            Ok(kept) => {
                self.beside.answered(length, kept.native.as_ref());
                Ok(kept.reply)
            }
            Err(error) => {
                self.halt.stop(halt_on(&error));
                let what = error.to_string();
                Err(ModelError::NotAvailable { what })
            }
        }
    }
}

impl JournalledModel {
    async fn ask(&self, at: StepRef, request: ModelRequest, beside: Continuation) -> Result<KeptReply, Error> {
        let kept = self.peers.generate(request, beside).await?;
        // An empty answer says nothing that a later try would have to repeat.
        if !kept.reply.is_empty() {
            self.journal.record_reply(at, kept.clone()).await?;
        }
        Ok(kept)
    }
}

impl Memo {
    fn reply(&self, at: StepRef) -> Option<KeptReply> {
        self.known().replies.get(&at).cloned()
    }

    async fn record_reply(&self, at: StepRef, reply: KeptReply) -> Result<(), Error> {
        self.store.record_reply(at, &reply).await?;
        self.known().replies.insert(at, reply);
        Ok(())
    }
}
