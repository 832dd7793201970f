//! `steward.memory.v1.MemoryService`: one file per RPC, which decodes, calls the core and encodes.

mod apply;
mod approve_proposal;
mod convert;
mod get_entry;
mod get_snapshot;
mod list_entries;
mod list_entry_revisions;
mod list_proposals;
mod reject_proposal;
mod revert_entry;
#[cfg(test)]
mod tests;

use steward_memory_core::{Error, Memory};
use steward_proto::memory::v1 as pb;
use steward_proto::memory::v1::memory_service_server::MemoryService;
use tonic::{Request, Response, Status};

/// `ErrorInfo.domain` of this service.
const DOMAIN: &str = "memory.steward.dev";

/// The RPCs of memory-service.
#[derive(Debug, Clone)]
pub(crate) struct Handlers {
    memory: Memory,
}

impl Handlers {
    pub(crate) const fn new(memory: Memory) -> Self {
        Self { memory }
    }
}

/// The one way from an error of the core to a status.
#[expect(clippy::needless_pass_by_value, reason = "made to be used with map_err")]
fn fail(error: Error) -> Status {
    steward_grpc::status(&error, DOMAIN)
}

#[tonic::async_trait]
impl MemoryService for Handlers {
    async fn apply(&self, request: Request<pb::ApplyRequest>) -> Result<Response<pb::ApplyResponse>, Status> {
        apply::apply(&self.memory, request).await
    }

    async fn list_entries(
        &self,
        request: Request<pb::ListEntriesRequest>,
    ) -> Result<Response<pb::ListEntriesResponse>, Status> {
        list_entries::list_entries(&self.memory, request).await
    }

    async fn get_entry(&self, request: Request<pb::GetEntryRequest>) -> Result<Response<pb::GetEntryResponse>, Status> {
        get_entry::get_entry(&self.memory, request).await
    }

    async fn list_entry_revisions(
        &self,
        request: Request<pb::ListEntryRevisionsRequest>,
    ) -> Result<Response<pb::ListEntryRevisionsResponse>, Status> {
        list_entry_revisions::list_entry_revisions(&self.memory, request).await
    }

    async fn revert_entry(
        &self,
        request: Request<pb::RevertEntryRequest>,
    ) -> Result<Response<pb::RevertEntryResponse>, Status> {
        revert_entry::revert_entry(&self.memory, request).await
    }

    async fn get_snapshot(
        &self,
        request: Request<pb::GetSnapshotRequest>,
    ) -> Result<Response<pb::GetSnapshotResponse>, Status> {
        get_snapshot::get_snapshot(&self.memory, request).await
    }

    async fn list_proposals(
        &self,
        request: Request<pb::ListProposalsRequest>,
    ) -> Result<Response<pb::ListProposalsResponse>, Status> {
        list_proposals::list_proposals(&self.memory, request).await
    }

    async fn approve_proposal(
        &self,
        request: Request<pb::ApproveProposalRequest>,
    ) -> Result<Response<pb::ApproveProposalResponse>, Status> {
        approve_proposal::approve_proposal(&self.memory, request).await
    }

    async fn reject_proposal(
        &self,
        request: Request<pb::RejectProposalRequest>,
    ) -> Result<Response<pb::RejectProposalResponse>, Status> {
        reject_proposal::reject_proposal(&self.memory, request).await
    }
}
