//! A review keeps no conversation: the journal has all that a later try needs, and nobody watches its words (`R-5`,
//! `R-9`).

use async_trait::async_trait;
use steward_agent::kernel::{
    CallingMessage, Event, Events, FinalMessage, PortError, Progress, Steering, ToolResult, Transcript,
};

pub(super) struct NoTranscript;

#[async_trait]
impl Transcript for NoTranscript {
    async fn append_calls(&self, _message: &CallingMessage) -> Result<(), PortError> {
        Ok(())
    }

    async fn append_results(&self, _step: u32, _results: &[ToolResult]) -> Result<(), PortError> {
        Ok(())
    }

    async fn append_steering(&self, _step: u32, _texts: &[Steering]) -> Result<(), PortError> {
        Ok(())
    }

    async fn append_final(&self, _message: &FinalMessage, _progress: &Progress) -> Result<(), PortError> {
        Ok(())
    }

    async fn take_steering(&self) -> Result<Vec<Steering>, PortError> {
        Ok(Vec::new())
    }
}

pub(super) struct NoEvents;

impl Events for NoEvents {
    fn emit(&self, _event: Event) {}
}
