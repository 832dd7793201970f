//! `steward.recall.v1`: one file per RPC or pair of RPCs, which decodes, calls the core and encodes.

mod access;
mod append_messages;
mod backups;
mod check_integrity;
mod convert;
mod create_session;
mod delete_session;
mod due_reviews;
mod export_sessions;
mod fork_session;
mod get_session;
mod get_turn;
mod import_sessions;
mod list_expired_turns;
mod list_messages;
mod list_sessions;
mod list_team_activity;
mod mark_compacted;
mod rewind_session;
mod search;
mod session_line;
#[cfg(test)]
mod tests;
mod turn_lease;
mod update_session;

use std::sync::Arc;

use steward_base::Clock;
use steward_proto::recall::v1 as pb;
use steward_proto::recall::v1::recall_service_server::RecallService;
use steward_proto::recall::v1::session_store_service_server::SessionStoreService;
use steward_recall_core::backups::Backups;
use steward_recall_core::{Error, Search, Sessions};
use tonic::{Request, Response, Status, Streaming};

/// `ErrorInfo.domain` of this service.
const DOMAIN: &str = "recall.steward.dev";

/// The one way from an error of the core to a status.
#[expect(clippy::needless_pass_by_value, reason = "made to be used with map_err")]
fn fail(error: Error) -> Status {
    steward_grpc::status(&error, DOMAIN)
}

/// The RPCs for services.
#[derive(Debug, Clone)]
pub(crate) struct SessionStoreHandlers {
    sessions: Sessions,
    backups: Arc<dyn Backups>,
    clock: Arc<dyn Clock>,
}

impl SessionStoreHandlers {
    pub(crate) const fn new(sessions: Sessions, backups: Arc<dyn Backups>, clock: Arc<dyn Clock>) -> Self {
        Self {
            sessions,
            backups,
            clock,
        }
    }
}

/// The search.
#[derive(Debug, Clone)]
pub(crate) struct RecallHandlers {
    search: Search,
    sessions: Sessions,
}

impl RecallHandlers {
    pub(crate) const fn new(search: Search, sessions: Sessions) -> Self {
        Self { search, sessions }
    }
}

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl SessionStoreService for SessionStoreHandlers {
    async fn create_session(&self, request: Request<pb::CreateSessionRequest>) -> Answer<pb::CreateSessionResponse> {
        create_session::create_session(&self.sessions, request).await
    }

    async fn get_session(&self, request: Request<pb::GetSessionRequest>) -> Answer<pb::GetSessionResponse> {
        get_session::get_session(&self.sessions, request).await
    }

    async fn update_session(&self, request: Request<pb::UpdateSessionRequest>) -> Answer<pb::UpdateSessionResponse> {
        update_session::update_session(&self.sessions, request).await
    }

    async fn list_sessions(&self, request: Request<pb::ListSessionsRequest>) -> Answer<pb::ListSessionsResponse> {
        list_sessions::list_sessions(&self.sessions, request).await
    }

    async fn acquire_turn_lease(
        &self,
        request: Request<pb::AcquireTurnLeaseRequest>,
    ) -> Answer<pb::AcquireTurnLeaseResponse> {
        turn_lease::acquire(&self.sessions, request).await
    }

    async fn renew_turn_lease(
        &self,
        request: Request<pb::RenewTurnLeaseRequest>,
    ) -> Answer<pb::RenewTurnLeaseResponse> {
        turn_lease::renew(&self.sessions, request).await
    }

    async fn release_turn_lease(
        &self,
        request: Request<pb::ReleaseTurnLeaseRequest>,
    ) -> Answer<pb::ReleaseTurnLeaseResponse> {
        turn_lease::release(&self.sessions, request).await
    }

    async fn append_messages(&self, request: Request<pb::AppendMessagesRequest>) -> Answer<pb::AppendMessagesResponse> {
        append_messages::append_messages(&self.sessions, request).await
    }

    async fn delete_session(&self, request: Request<pb::DeleteSessionRequest>) -> Answer<pb::DeleteSessionResponse> {
        delete_session::delete_session(&self.sessions, request).await
    }

    async fn rewind_session(&self, request: Request<pb::RewindSessionRequest>) -> Answer<pb::RewindSessionResponse> {
        rewind_session::rewind_session(&self.sessions, request).await
    }

    async fn fork_session(&self, request: Request<pb::ForkSessionRequest>) -> Answer<pb::ForkSessionResponse> {
        fork_session::fork_session(&self.sessions, request).await
    }

    async fn mark_compacted(&self, request: Request<pb::MarkCompactedRequest>) -> Answer<pb::MarkCompactedResponse> {
        mark_compacted::mark_compacted(&self.sessions, request).await
    }

    async fn list_expired_turns(
        &self,
        request: Request<pb::ListExpiredTurnsRequest>,
    ) -> Answer<pb::ListExpiredTurnsResponse> {
        list_expired_turns::list_expired_turns(&self.sessions, request).await
    }

    async fn list_messages(&self, request: Request<pb::ListMessagesRequest>) -> Answer<pb::ListMessagesResponse> {
        list_messages::list_messages(&self.sessions, request).await
    }

    async fn get_turn(&self, request: Request<pb::GetTurnRequest>) -> Answer<pb::GetTurnResponse> {
        get_turn::get_turn(&self.sessions, request).await
    }

    async fn list_due_reviews(
        &self,
        request: Request<pb::ListDueReviewsRequest>,
    ) -> Answer<pb::ListDueReviewsResponse> {
        due_reviews::list(&self.sessions, request).await
    }

    async fn acknowledge_due_reviews(
        &self,
        request: Request<pb::AcknowledgeDueReviewsRequest>,
    ) -> Answer<pb::AcknowledgeDueReviewsResponse> {
        due_reviews::acknowledge(&self.sessions, request).await
    }

    async fn list_team_activity(
        &self,
        request: Request<pb::ListTeamActivityRequest>,
    ) -> Answer<pb::ListTeamActivityResponse> {
        list_team_activity::list_team_activity(&self.sessions, request).await
    }

    async fn check_integrity(&self, request: Request<pb::CheckIntegrityRequest>) -> Answer<pb::CheckIntegrityResponse> {
        check_integrity::check_integrity(&self.sessions, request).await
    }

    async fn backup_team(&self, request: Request<pb::BackupTeamRequest>) -> Answer<pb::BackupTeamResponse> {
        backups::backup_team((&self.sessions, &self.backups, &self.clock), request).await
    }

    async fn list_backups(&self, request: Request<pb::ListBackupsRequest>) -> Answer<pb::ListBackupsResponse> {
        backups::list_backups(&self.backups, request).await
    }

    async fn restore_team(&self, request: Request<pb::RestoreTeamRequest>) -> Answer<pb::RestoreTeamResponse> {
        backups::restore_team((&self.sessions, &self.backups), request).await
    }
}

#[tonic::async_trait]
impl RecallService for RecallHandlers {
    async fn search(&self, request: Request<pb::SearchRequest>) -> Answer<pb::SearchResponse> {
        search::search(&self.search, &self.sessions, request).await
    }

    type ExportSessionsStream = export_sessions::Export;

    async fn export_sessions(&self, request: Request<pb::ExportSessionsRequest>) -> Answer<Self::ExportSessionsStream> {
        export_sessions::export_sessions(&self.sessions, &request)
    }

    async fn import_sessions(
        &self,
        request: Request<Streaming<pb::ImportSessionsRequest>>,
    ) -> Answer<pb::ImportSessionsResponse> {
        import_sessions::import_sessions(&self.sessions, request).await
    }
}
