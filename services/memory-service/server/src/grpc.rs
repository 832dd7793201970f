//! `steward.memory.v1.MemoryService`: one file per RPC, which decodes, calls the core and encodes.

mod apply;
mod approve_proposal;
mod confirm_entry;
mod convert;
mod diff_revisions;
mod export_entries;
mod get_entry;
mod get_proposal;
mod get_snapshot;
mod held_entries;
mod import_entries;
mod inbox;
mod list_entries;
mod list_entry_revisions;
mod list_proposals;
mod provider;
mod reject_proposal;
mod report_checks;
mod revert_entry;
mod stage_correction;
#[cfg(test)]
mod tests;
mod user_memory;

use steward_base::names::TeamId;
use steward_memory_core::{Error, Memory};
use steward_proto::memory::v1 as pb;
use steward_proto::memory::v1::memory_service_server::MemoryService;
use tokio::sync::broadcast::{self, Sender};
use tonic::{Request, Response, Status};

pub(crate) use self::provider::ProviderHandlers;
use crate::providers::Desk;

/// `ErrorInfo.domain` of this service.
const DOMAIN: &str = "memory.steward.dev";

/// The RPCs of memory-service.
#[derive(Debug, Clone)]
pub(crate) struct Handlers {
    memory: Memory,
    desk: Desk,
    /// Teams in which something may wait for someone now that did not before, or no longer does.
    changes: Sender<TeamId>,
}

impl Handlers {
    pub(crate) fn new(memory: Memory, desk: Desk) -> Self {
        let (changes, _) = broadcast::channel(REMEMBERED_CHANGES);
        Self { memory, desk, changes }
    }

    /// Tells those who watch an inbox of the caller's team that a write has ended well.
    fn wrote<T>(&self, team: Option<TeamId>, answer: Result<Response<T>, Status>) -> Result<Response<T>, Status> {
        if let (Ok(_), Some(team)) = (&answer, team) {
            // Nobody watching is no fault.
            let _ = self.changes.send(team);
        }
        answer
    }
}

/// Changes that a slow watcher may fall behind; it then counts once for all of them.
const REMEMBERED_CHANGES: usize = 64;

fn team_of<T>(request: &Request<T>) -> Option<TeamId> {
    steward_grpc::caller(request)
        .ok()
        .and_then(|caller| caller.team.clone())
}

/// The one way from an error of the core to a status.
#[expect(clippy::needless_pass_by_value, reason = "made to be used with map_err")]
fn fail(error: Error) -> Status {
    steward_grpc::status(&error, DOMAIN)
}

#[tonic::async_trait]
impl MemoryService for Handlers {
    async fn apply(&self, request: Request<pb::ApplyRequest>) -> Result<Response<pb::ApplyResponse>, Status> {
        let team = team_of(&request);
        self.wrote(team, apply::apply(&self.memory, request).await)
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
        let team = team_of(&request);
        self.wrote(team, revert_entry::revert_entry(&self.memory, request).await)
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

    async fn get_proposal(
        &self,
        request: Request<pb::GetProposalRequest>,
    ) -> Result<Response<pb::GetProposalResponse>, Status> {
        get_proposal::get_proposal(&self.memory, request).await
    }

    async fn approve_proposal(
        &self,
        request: Request<pb::ApproveProposalRequest>,
    ) -> Result<Response<pb::ApproveProposalResponse>, Status> {
        let team = team_of(&request);
        self.wrote(team, approve_proposal::approve_proposal(&self.memory, request).await)
    }

    async fn reject_proposal(
        &self,
        request: Request<pb::RejectProposalRequest>,
    ) -> Result<Response<pb::RejectProposalResponse>, Status> {
        let team = team_of(&request);
        self.wrote(team, reject_proposal::reject_proposal(&self.memory, request).await)
    }

    async fn diff_revisions(
        &self,
        request: Request<pb::DiffRevisionsRequest>,
    ) -> Result<Response<pb::DiffRevisionsResponse>, Status> {
        diff_revisions::diff_revisions(&self.memory, request).await
    }

    async fn get_inbox(&self, request: Request<pb::GetInboxRequest>) -> Result<Response<pb::GetInboxResponse>, Status> {
        inbox::get_inbox(&self.memory, request).await
    }

    async fn stage_correction(
        &self,
        request: Request<pb::StageCorrectionRequest>,
    ) -> Result<Response<pb::StageCorrectionResponse>, Status> {
        let team = team_of(&request);
        self.wrote(team, stage_correction::stage_correction(&self.memory, request).await)
    }

    async fn confirm_entry(
        &self,
        request: Request<pb::ConfirmEntryRequest>,
    ) -> Result<Response<pb::ConfirmEntryResponse>, Status> {
        let team = team_of(&request);
        self.wrote(team, confirm_entry::confirm_entry(&self.memory, request).await)
    }

    async fn report_checks(
        &self,
        request: Request<pb::ReportChecksRequest>,
    ) -> Result<Response<pb::ReportChecksResponse>, Status> {
        let team = team_of(&request);
        self.wrote(team, report_checks::report_checks(&self.memory, request).await)
    }

    async fn export_entries(
        &self,
        request: Request<pb::ExportEntriesRequest>,
    ) -> Result<Response<pb::ExportEntriesResponse>, Status> {
        export_entries::export_entries(&self.memory, request).await
    }

    async fn import_entries(
        &self,
        request: Request<pb::ImportEntriesRequest>,
    ) -> Result<Response<pb::ImportEntriesResponse>, Status> {
        let team = team_of(&request);
        self.wrote(team, import_entries::import_entries(&self.memory, request).await)
    }

    async fn list_held_entries(
        &self,
        request: Request<pb::ListHeldEntriesRequest>,
    ) -> Result<Response<pb::ListHeldEntriesResponse>, Status> {
        held_entries::list_held_entries(&self.memory, request).await
    }

    async fn delete_held_entry(
        &self,
        request: Request<pb::DeleteHeldEntryRequest>,
    ) -> Result<Response<pb::DeleteHeldEntryResponse>, Status> {
        held_entries::delete_held_entry(&self.memory, request).await
    }

    async fn erase_user_memory(
        &self,
        request: Request<pb::EraseUserMemoryRequest>,
    ) -> Result<Response<pb::EraseUserMemoryResponse>, Status> {
        let team = team_of(&request);
        self.wrote(
            team,
            user_memory::erase_user_memory(&self.memory, &self.desk, request).await,
        )
    }

    type WatchInboxStream = inbox::Inboxes;

    async fn watch_inbox(
        &self,
        request: Request<pb::WatchInboxRequest>,
    ) -> Result<Response<Self::WatchInboxStream>, Status> {
        // From before the first count, so that no change falls between the two.
        inbox::watch_inbox(&self.memory, self.changes.subscribe(), request).await
    }

    type ExportUserMemoryStream = user_memory::Holdings;

    async fn export_user_memory(
        &self,
        request: Request<pb::ExportUserMemoryRequest>,
    ) -> Result<Response<Self::ExportUserMemoryStream>, Status> {
        user_memory::export_user_memory(&self.memory, request).await
    }
}
