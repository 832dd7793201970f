//! The services' methods: those that a review uses lead to the fakes, all others answer that nobody expected them.

use steward_proto::access::v1::access_service_server::AccessService;
use steward_proto::memory::v1::memory_service_server::MemoryService;
use steward_proto::recall::v1::session_store_service_server::SessionStoreService;
use steward_proto::skill::v1::skill_service_server::SkillService;
use tonic::{Code, Request, Response, Status};

use super::{Fakes, access, acknowledge, get_session, list_entries, list_messages, list_skills, memory, recall, skill};

macro_rules! service {
    (
        $service:ident of $package:ident {
            $($used:ident($used_request:ident) -> $used_response:ident = $answer:expr;)*
        } {
            $($unused:ident($request:ident) -> $response:ident;)*
            $(=> $watch:ident($watch_request:ident) -> $item:ident as $stream:ident;)*
        }
    ) => {
        #[tonic::async_trait]
        impl $service for Fakes {
            $(async fn $used(
                &self,
                request: Request<$package::$used_request>,
            ) -> Result<Response<$package::$used_response>, Status> {
                let answer: fn(&Fakes, Request<$package::$used_request>) -> Result<$package::$used_response, Status> = $answer;
                answer(self, request).map(Response::new)
            })*

            $(async fn $unused(
                &self,
                _: Request<$package::$request>,
            ) -> Result<Response<$package::$response>, Status> {
                Err(Status::new(Code::Unimplemented, stringify!($unused)))
            })*

            $(type $stream = futures::stream::Empty<Result<$package::$item, Status>>;

            async fn $watch(
                &self,
                _: Request<$package::$watch_request>,
            ) -> Result<Response<Self::$stream>, Status> {
                Err(Status::new(Code::Unimplemented, stringify!($watch)))
            })*
        }
    };
}

service! {
    AccessService of access {
        exchange_job_token(ExchangeJobTokenRequest) -> ExchangeJobTokenResponse = Fakes::exchange;
        list_revocations(ListRevocationsRequest) -> ListRevocationsResponse = |_, _| Ok(access::ListRevocationsResponse::default());
    } {
        who_am_i(WhoAmIRequest) -> WhoAmIResponse;
        create_team(CreateTeamRequest) -> CreateTeamResponse;
        list_teams(ListTeamsRequest) -> ListTeamsResponse;
        create_user(CreateUserRequest) -> CreateUserResponse;
        list_users(ListUsersRequest) -> ListUsersResponse;
        update_user(UpdateUserRequest) -> UpdateUserResponse;
        create_token(CreateTokenRequest) -> CreateTokenResponse;
        list_tokens(ListTokensRequest) -> ListTokensResponse;
        revoke_token(RevokeTokenRequest) -> RevokeTokenResponse;
    }
}

service! {
    MemoryService of memory {
        apply(ApplyRequest) -> ApplyResponse = Fakes::apply;
        list_entries(ListEntriesRequest) -> ListEntriesResponse = |_, _| Ok(list_entries());
        list_proposals(ListProposalsRequest) -> ListProposalsResponse =
            |fakes, _| Ok(memory::ListProposalsResponse { proposals: fakes.state().proposals.clone(), ..Default::default() });
        approve_proposal(ApproveProposalRequest) -> ApproveProposalResponse = Fakes::approve;
    } {
        get_entry(GetEntryRequest) -> GetEntryResponse;
        list_entry_revisions(ListEntryRevisionsRequest) -> ListEntryRevisionsResponse;
        revert_entry(RevertEntryRequest) -> RevertEntryResponse;
        get_snapshot(GetSnapshotRequest) -> GetSnapshotResponse;
        reject_proposal(RejectProposalRequest) -> RejectProposalResponse;
        get_proposal(GetProposalRequest) -> GetProposalResponse;
        diff_revisions(DiffRevisionsRequest) -> DiffRevisionsResponse;
        get_inbox(GetInboxRequest) -> GetInboxResponse;
        stage_correction(StageCorrectionRequest) -> StageCorrectionResponse;
        confirm_entry(ConfirmEntryRequest) -> ConfirmEntryResponse;
        report_checks(ReportChecksRequest) -> ReportChecksResponse;
        export_entries(ExportEntriesRequest) -> ExportEntriesResponse;
        import_entries(ImportEntriesRequest) -> ImportEntriesResponse;
        list_held_entries(ListHeldEntriesRequest) -> ListHeldEntriesResponse;
        delete_held_entry(DeleteHeldEntryRequest) -> DeleteHeldEntryResponse;
        erase_user_memory(EraseUserMemoryRequest) -> EraseUserMemoryResponse;
        => watch_inbox(WatchInboxRequest) -> WatchInboxResponse as WatchInboxStream;
        => export_user_memory(ExportUserMemoryRequest) -> ExportUserMemoryResponse as ExportUserMemoryStream;
    }
}

service! {
    SessionStoreService of recall {
        get_session(GetSessionRequest) -> GetSessionResponse = |fakes, request| get_session(fakes, &request);
        list_messages(ListMessagesRequest) -> ListMessagesResponse = |_, _| Ok(list_messages());
        list_due_reviews(ListDueReviewsRequest) -> ListDueReviewsResponse =
            |fakes, _| Ok(recall::ListDueReviewsResponse { due_reviews: fakes.state().due.clone() });
        acknowledge_due_reviews(AcknowledgeDueReviewsRequest) -> AcknowledgeDueReviewsResponse =
            |fakes, request| Ok(acknowledge(fakes, &request.into_inner().names));
        list_team_activity(ListTeamActivityRequest) -> ListTeamActivityResponse =
            |_, _| Ok(recall::ListTeamActivityResponse::default());
    } {
        update_session(UpdateSessionRequest) -> UpdateSessionResponse;
        create_session(CreateSessionRequest) -> CreateSessionResponse;
        list_sessions(ListSessionsRequest) -> ListSessionsResponse;
        acquire_turn_lease(AcquireTurnLeaseRequest) -> AcquireTurnLeaseResponse;
        renew_turn_lease(RenewTurnLeaseRequest) -> RenewTurnLeaseResponse;
        release_turn_lease(ReleaseTurnLeaseRequest) -> ReleaseTurnLeaseResponse;
        append_messages(AppendMessagesRequest) -> AppendMessagesResponse;
        get_turn(GetTurnRequest) -> GetTurnResponse;
        delete_session(DeleteSessionRequest) -> DeleteSessionResponse;
        rewind_session(RewindSessionRequest) -> RewindSessionResponse;
        fork_session(ForkSessionRequest) -> ForkSessionResponse;
        mark_compacted(MarkCompactedRequest) -> MarkCompactedResponse;
        list_expired_turns(ListExpiredTurnsRequest) -> ListExpiredTurnsResponse;
        check_integrity(CheckIntegrityRequest) -> CheckIntegrityResponse;
        backup_team(BackupTeamRequest) -> BackupTeamResponse;
        list_backups(ListBackupsRequest) -> ListBackupsResponse;
        restore_team(RestoreTeamRequest) -> RestoreTeamResponse;
    }
}

service! {
    SkillService of skill {
        list_skills(ListSkillsRequest) -> ListSkillsResponse = |_, _| Ok(list_skills());
    } {
        get_skill(GetSkillRequest) -> GetSkillResponse;
        view_skill(ViewSkillRequest) -> ViewSkillResponse;
        manage_skill(ManageSkillRequest) -> ManageSkillResponse;
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
}
