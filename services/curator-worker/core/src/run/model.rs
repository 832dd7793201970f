//! The model of a review: what the journal holds is not asked again, and what is new is journalled before anyone acts on
//! it.

use std::sync::Arc;

use async_trait::async_trait;
use steward_agent::kernel::{DeltaSink, ModelPort, StepRef};
use steward_model::{ModelError, ModelRequest, Reply};

use super::Memo;
use crate::error::Error;
use crate::halt::Halt;
use crate::ports::Peers;
use crate::problem::halt_on;

pub(super) struct JournalledModel {
    pub(super) peers: Arc<dyn Peers>,
    pub(super) journal: Arc<Memo>,
    pub(super) halt: Halt,
}

#[async_trait]
impl ModelPort for JournalledModel {
    async fn call(&self, at: StepRef, request: ModelRequest, _sink: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        if let Some(reply) = self.journal.reply(at) {
            return Ok(reply);
        }
        self.halt.pass_safe_point();
        if self.halt.interrupt().is_cancelled() {
            // The kernel sees the interrupt and drops this call.
            return std::future::pending().await;
        }
        self.ask(at, request).await.map_err(|error| {
            self.halt.stop(halt_on(&error));
            ModelError::NotAvailable {
                what: error.to_string(),
            }
        })
    }
}

impl JournalledModel {
    async fn ask(&self, at: StepRef, request: ModelRequest) -> Result<Reply, Error> {
        let reply = self.peers.generate(request).await?;
        // An empty answer says nothing that a later try would have to repeat.
        if !reply.is_empty() {
            self.journal.record_reply(at, reply.clone()).await?;
        }
        Ok(reply)
    }
}

impl Memo {
    fn reply(&self, at: StepRef) -> Option<Reply> {
        self.known().replies.get(&at).cloned()
    }

    async fn record_reply(&self, at: StepRef, reply: Reply) -> Result<(), Error> {
        self.store.record_reply(at, &reply).await?;
        self.known().replies.insert(at, reply);
        Ok(())
    }
}
