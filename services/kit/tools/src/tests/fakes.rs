//! Services that answer as told and remember what they were asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use steward_proto::memory::v1::memory_service_server::{MemoryService, MemoryServiceServer};
use steward_proto::memory::v1::{self as memory};
use steward_proto::recall::v1::recall_service_server::{RecallService, RecallServiceServer};
use steward_proto::recall::v1::{self as recall};
use steward_proto::skill::v1::skill_service_server::{SkillService, SkillServiceServer};
use steward_proto::skill::v1::{self as skill};
use tonic::{Code, Request, Response, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

type Queue<T> = Mutex<VecDeque<Result<T, Status>>>;

#[derive(Default)]
struct State {
    applied: Mutex<Vec<(memory::ApplyRequest, String)>>,
    apply: Queue<memory::ApplyResponse>,
    entries: Mutex<Vec<memory::Entry>>,
    decided: Mutex<Vec<String>>,
    manage: Queue<skill::ManageSkillResponse>,
    view: Queue<skill::ViewSkillResponse>,
    viewed: Mutex<Vec<skill::ViewSkillRequest>>,
    search: Queue<recall::SearchResponse>,
}

/// All three services.
#[derive(Clone, Default)]
pub(super) struct Fake(Arc<State>);

impl Fake {
    pub(super) fn memory(&self) -> MemoryServiceServer<Self> {
        MemoryServiceServer::new(self.clone())
    }

    pub(super) fn skills(&self) -> SkillServiceServer<Self> {
        SkillServiceServer::new(self.clone())
    }

    pub(super) fn recall(&self) -> RecallServiceServer<Self> {
        RecallServiceServer::new(self.clone())
    }

    pub(super) fn answer_apply(&self, answer: Result<memory::ApplyResponse, Status>) {
        self.0.apply.lock().unwrap().push_back(answer);
    }

    pub(super) fn answer_manage(&self, answer: Result<skill::ManageSkillResponse, Status>) {
        self.0.manage.lock().unwrap().push_back(answer);
    }

    pub(super) fn answer_view(&self, answer: Result<skill::ViewSkillResponse, Status>) {
        self.0.view.lock().unwrap().push_back(answer);
    }

    pub(super) fn viewed(&self) -> Vec<skill::ViewSkillRequest> {
        self.0.viewed.lock().unwrap().clone()
    }

    pub(super) fn answer_search(&self, answer: Result<recall::SearchResponse, Status>) {
        self.0.search.lock().unwrap().push_back(answer);
    }

    pub(super) fn entries(&self, contents: &[&str]) {
        let entry = |content: &&str| memory::Entry {
            content: (*content).to_owned(),
            ..Default::default()
        };
        *self.0.entries.lock().unwrap() = contents.iter().map(entry).collect();
    }

    /// Decisions on proposals, one line each.
    pub(super) fn decided(&self) -> Vec<String> {
        self.0.decided.lock().unwrap().clone()
    }

    pub(super) fn applied(&self) -> Vec<(memory::ApplyRequest, String)> {
        self.0.applied.lock().unwrap().clone()
    }
}

/// A refusal as the services make them.
pub(super) fn refusal(code: Code, reason: &str, domain: &str, metadata: &[(&str, &str)]) -> Status {
    let metadata: std::collections::HashMap<String, String> = metadata
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    Status::with_error_details(code, "refused", ErrorDetails::with_error_info(reason, domain, metadata))
}

fn next<T>(queue: &Queue<T>) -> Result<Response<T>, Status> {
    let answer = queue.lock().unwrap().pop_front();
    answer.unwrap_or_else(|| Err(unused())).map(Response::new)
}

fn unused() -> Status {
    Status::new(Code::Unimplemented, "the test did not expect this call")
}

#[tonic::async_trait]
impl MemoryService for Fake {
    async fn apply(&self, request: Request<memory::ApplyRequest>) -> Result<Response<memory::ApplyResponse>, Status> {
        let authorization = request
            .metadata()
            .get("authorization")
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        self.0
            .applied
            .lock()
            .unwrap()
            .push((request.into_inner(), authorization));
        next(&self.0.apply)
    }

    async fn list_entries(
        &self,
        _: Request<memory::ListEntriesRequest>,
    ) -> Result<Response<memory::ListEntriesResponse>, Status> {
        let entries = self.0.entries.lock().unwrap().clone();
        Ok(Response::new(memory::ListEntriesResponse {
            entries,
            ..Default::default()
        }))
    }

    async fn get_entry(
        &self,
        _: Request<memory::GetEntryRequest>,
    ) -> Result<Response<memory::GetEntryResponse>, Status> {
        Err(unused())
    }

    async fn list_entry_revisions(
        &self,
        _: Request<memory::ListEntryRevisionsRequest>,
    ) -> Result<Response<memory::ListEntryRevisionsResponse>, Status> {
        Err(unused())
    }

    async fn revert_entry(
        &self,
        _: Request<memory::RevertEntryRequest>,
    ) -> Result<Response<memory::RevertEntryResponse>, Status> {
        Err(unused())
    }

    async fn get_snapshot(
        &self,
        _: Request<memory::GetSnapshotRequest>,
    ) -> Result<Response<memory::GetSnapshotResponse>, Status> {
        Err(unused())
    }

    async fn list_proposals(
        &self,
        _: Request<memory::ListProposalsRequest>,
    ) -> Result<Response<memory::ListProposalsResponse>, Status> {
        Err(unused())
    }

    async fn approve_proposal(
        &self,
        request: Request<memory::ApproveProposalRequest>,
    ) -> Result<Response<memory::ApproveProposalResponse>, Status> {
        let request = request.into_inner();
        let line = format!("approve {} with {} operation", request.name, request.operations.len());
        self.0.decided.lock().unwrap().push(line);
        let proposal = memory::Proposal {
            name: request.name,
            store: "teams/red/users/ann/memory/profile".to_owned(),
            ..Default::default()
        };
        Ok(Response::new(memory::ApproveProposalResponse {
            proposal: Some(proposal),
        }))
    }

    async fn get_proposal(
        &self,
        _: Request<memory::GetProposalRequest>,
    ) -> Result<Response<memory::GetProposalResponse>, Status> {
        Err(unused())
    }

    async fn reject_proposal(
        &self,
        request: Request<memory::RejectProposalRequest>,
    ) -> Result<Response<memory::RejectProposalResponse>, Status> {
        let request = request.into_inner();
        let line = format!("reject {}: {}", request.name, request.reason);
        self.0.decided.lock().unwrap().push(line);
        Ok(Response::new(memory::RejectProposalResponse::default()))
    }

    async fn diff_revisions(
        &self,
        _: Request<memory::DiffRevisionsRequest>,
    ) -> Result<Response<memory::DiffRevisionsResponse>, Status> {
        Err(unused())
    }

    async fn get_inbox(
        &self,
        _: Request<memory::GetInboxRequest>,
    ) -> Result<Response<memory::GetInboxResponse>, Status> {
        Err(unused())
    }

    async fn stage_correction(
        &self,
        _: Request<memory::StageCorrectionRequest>,
    ) -> Result<Response<memory::StageCorrectionResponse>, Status> {
        Err(unused())
    }

    async fn confirm_entry(
        &self,
        _: Request<memory::ConfirmEntryRequest>,
    ) -> Result<Response<memory::ConfirmEntryResponse>, Status> {
        Err(unused())
    }

    async fn report_checks(
        &self,
        _: Request<memory::ReportChecksRequest>,
    ) -> Result<Response<memory::ReportChecksResponse>, Status> {
        Err(unused())
    }

    async fn export_entries(
        &self,
        _: Request<memory::ExportEntriesRequest>,
    ) -> Result<Response<memory::ExportEntriesResponse>, Status> {
        Err(unused())
    }

    async fn import_entries(
        &self,
        _: Request<memory::ImportEntriesRequest>,
    ) -> Result<Response<memory::ImportEntriesResponse>, Status> {
        Err(unused())
    }

    async fn list_held_entries(
        &self,
        _: Request<memory::ListHeldEntriesRequest>,
    ) -> Result<Response<memory::ListHeldEntriesResponse>, Status> {
        Err(unused())
    }

    async fn delete_held_entry(
        &self,
        _: Request<memory::DeleteHeldEntryRequest>,
    ) -> Result<Response<memory::DeleteHeldEntryResponse>, Status> {
        Err(unused())
    }

    async fn erase_user_memory(
        &self,
        _: Request<memory::EraseUserMemoryRequest>,
    ) -> Result<Response<memory::EraseUserMemoryResponse>, Status> {
        Err(unused())
    }

    type WatchInboxStream = futures::stream::Empty<Result<memory::WatchInboxResponse, Status>>;

    async fn watch_inbox(
        &self,
        _: Request<memory::WatchInboxRequest>,
    ) -> Result<Response<Self::WatchInboxStream>, Status> {
        Err(unused())
    }

    type ExportUserMemoryStream = futures::stream::Empty<Result<memory::ExportUserMemoryResponse, Status>>;

    async fn export_user_memory(
        &self,
        _: Request<memory::ExportUserMemoryRequest>,
    ) -> Result<Response<Self::ExportUserMemoryStream>, Status> {
        Err(unused())
    }
}

#[tonic::async_trait]
impl RecallService for Fake {
    type ExportSessionsStream = futures::stream::Empty<Result<recall::ExportSessionsResponse, Status>>;

    async fn export_sessions(
        &self,
        _: Request<recall::ExportSessionsRequest>,
    ) -> Result<Response<Self::ExportSessionsStream>, Status> {
        Err(unused())
    }

    async fn import_sessions(
        &self,
        _: Request<tonic::Streaming<recall::ImportSessionsRequest>>,
    ) -> Result<Response<recall::ImportSessionsResponse>, Status> {
        Err(unused())
    }

    async fn search(&self, _: Request<recall::SearchRequest>) -> Result<Response<recall::SearchResponse>, Status> {
        next(&self.0.search)
    }
}

macro_rules! unused_skill_methods {
    ($($method:ident($request:ident) -> $response:ident;)*) => {
        #[tonic::async_trait]
        impl SkillService for Fake {
            async fn manage_skill(
                &self,
                _: Request<skill::ManageSkillRequest>,
            ) -> Result<Response<skill::ManageSkillResponse>, Status> {
                next(&self.0.manage)
            }

            async fn view_skill(
                &self,
                request: Request<skill::ViewSkillRequest>,
            ) -> Result<Response<skill::ViewSkillResponse>, Status> {
                self.0.viewed.lock().unwrap().push(request.into_inner());
                next(&self.0.view)
            }

            $(async fn $method(&self, _: Request<skill::$request>) -> Result<Response<skill::$response>, Status> {
                Err(unused())
            })*
        }
    };
}

unused_skill_methods! {
    get_skill(GetSkillRequest) -> GetSkillResponse;
    list_skills(ListSkillsRequest) -> ListSkillsResponse;
    archive_skill(ArchiveSkillRequest) -> ArchiveSkillResponse;
    restore_skill(RestoreSkillRequest) -> RestoreSkillResponse;
    purge_skill(PurgeSkillRequest) -> PurgeSkillResponse;
    pin_skill(PinSkillRequest) -> PinSkillResponse;
    get_index(GetIndexRequest) -> GetIndexResponse;
    hide_skill(HideSkillRequest) -> HideSkillResponse;
    blame_file(BlameFileRequest) -> BlameFileResponse;
    list_revisions(ListRevisionsRequest) -> ListRevisionsResponse;
    diff_revisions(DiffRevisionsRequest) -> DiffRevisionsResponse;
    restore_revision(RestoreRevisionRequest) -> RestoreRevisionResponse;
}
