//! One small struct per service: the generated client over a [`Wire`], with our error, a default deadline and the
//! message limits that the servers have.

mod stream;
mod upload;

use std::time::Duration;

use steward_proto::{access, agent, hub, learning, memory, recall, skill};

use crate::credentials::Credentials;
use crate::error::ClientError;
use crate::wire::Wire;

pub use stream::ResponseStream;

/// How long a call that answers once may take, unless set otherwise. Streams have no deadline of their own.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Largest message in either direction, in bytes; servers and clients share it.
pub const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

macro_rules! facade {
    (
        $(#[$docs:meta])*
        $name:ident = $package:ident::$module:ident::$generated:ident {
            $($method:ident($request:ident) -> $response:ident;)*
            $(=> $stream:ident($stream_request:ident) -> $item:ident;)*
        }
    ) => {
        $(#[$docs])*
        #[derive(Debug, Clone)]
        pub struct $name {
            wire: Wire,
            timeout: Option<Duration>,
        }

        impl $name {
            /// Over `wire`, with [`DEFAULT_TIMEOUT`].
            pub fn new(wire: Wire) -> Self {
                Self { wire, timeout: Some(DEFAULT_TIMEOUT) }
            }

            /// With another deadline per call that answers once; `None` waits as long as the call it is made in.
            #[must_use]
            pub fn with_timeout(mut self, timeout: Option<Duration>) -> Self {
                self.timeout = timeout;
                self
            }

            /// Over the same connection with other credentials.
            #[must_use]
            pub fn with_credentials(mut self, credentials: Credentials) -> Self {
                self.wire = self.wire.with_credentials(credentials);
                self
            }

            fn generated(&self) -> $package::v1::$module::$generated<Wire> {
                $package::v1::$module::$generated::new(self.wire.clone())
                    .max_decoding_message_size(MAX_MESSAGE_BYTES)
                    .max_encoding_message_size(MAX_MESSAGE_BYTES)
            }

            $(
                #[doc = concat!("Calls `", stringify!($request), "`'s RPC and returns its answer.")]
                pub async fn $method(
                    &self,
                    request: $package::v1::$request,
                ) -> Result<$package::v1::$response, ClientError> {
                    let mut client = self.generated();
                    let request = timed(request, self.timeout);
                    let call = async move { client.$method(request).await };
                    limited(self.timeout, call).await
                }
            )*

            $(
                #[doc = concat!("Calls `", stringify!($stream_request), "`'s RPC; the answers come one by one.")]
                pub async fn $stream(
                    &self,
                    request: $package::v1::$stream_request,
                ) -> Result<ResponseStream<$package::v1::$item>, ClientError> {
                    let answer = self.generated().$stream(request).await?;
                    Ok(ResponseStream::new(answer.into_inner()))
                }
            )*
        }
    };
}

facade! {
    /// `steward.access.v1.AccessService`: teams, users, tokens.
    AccessClient = access::access_service_client::AccessServiceClient {
        who_am_i(WhoAmIRequest) -> WhoAmIResponse;
        create_team(CreateTeamRequest) -> CreateTeamResponse;
        list_teams(ListTeamsRequest) -> ListTeamsResponse;
        create_user(CreateUserRequest) -> CreateUserResponse;
        list_users(ListUsersRequest) -> ListUsersResponse;
        update_user(UpdateUserRequest) -> UpdateUserResponse;
        create_token(CreateTokenRequest) -> CreateTokenResponse;
        list_tokens(ListTokensRequest) -> ListTokensResponse;
        revoke_token(RevokeTokenRequest) -> RevokeTokenResponse;
        exchange_job_token(ExchangeJobTokenRequest) -> ExchangeJobTokenResponse;
        list_revocations(ListRevocationsRequest) -> ListRevocationsResponse;
    }
}

facade! {
    /// `steward.access.v1.AuditService`: who changed what and who was refused, in one process.
    AuditClient = access::audit_service_client::AuditServiceClient {
        list_audit_events(ListAuditEventsRequest) -> ListAuditEventsResponse;
    }
}

facade! {
    /// `steward.access.v1.RevocationService`, which every server has.
    RevocationClient = access::revocation_service_client::RevocationServiceClient {
        apply_revocations(ApplyRevocationsRequest) -> ApplyRevocationsResponse;
    }
}

facade! {
    /// `steward.agent.v1.AgentService`: turns.
    AgentClient = agent::agent_service_client::AgentServiceClient {
        interrupt_turn(InterruptTurnRequest) -> InterruptTurnResponse;
        list_pending_actions(ListPendingActionsRequest) -> ListPendingActionsResponse;
        => run_turn(RunTurnRequest) -> RunTurnResponse;
        => watch_turn(WatchTurnRequest) -> WatchTurnResponse;
    }
}

facade! {
    /// `steward.agent.v1.ModelService`: model calls for services.
    ModelClient = agent::model_service_client::ModelServiceClient {
        get_model_route(GetModelRouteRequest) -> GetModelRouteResponse;
        => generate(GenerateRequest) -> GenerateResponse;
    }
}

facade! {
    /// `steward.agent.v1.SessionService`: a person's sessions.
    SessionClient = agent::session_service_client::SessionServiceClient {
        create_session(CreateSessionRequest) -> CreateSessionResponse;
        get_session(GetSessionRequest) -> GetSessionResponse;
        update_session(UpdateSessionRequest) -> UpdateSessionResponse;
        list_sessions(ListSessionsRequest) -> ListSessionsResponse;
        delete_session(DeleteSessionRequest) -> DeleteSessionResponse;
        rewind_session(RewindSessionRequest) -> RewindSessionResponse;
        fork_session(ForkSessionRequest) -> ForkSessionResponse;
        list_session_messages(ListSessionMessagesRequest) -> ListSessionMessagesResponse;
    }
}

facade! {
    /// `steward.hub.v1.HubService`: skills from outside.
    HubClient = hub::hub_service_client::HubServiceClient {
        search_hub(SearchHubRequest) -> SearchHubResponse;
        get_hub_item(GetHubItemRequest) -> GetHubItemResponse;
        list_hub_items(ListHubItemsRequest) -> ListHubItemsResponse;
        release_hub_item(ReleaseHubItemRequest) -> ReleaseHubItemResponse;
        reject_hub_item(RejectHubItemRequest) -> RejectHubItemResponse;
        accept_hub_finding(AcceptHubFindingRequest) -> AcceptHubFindingResponse;
        export_hub_findings(ExportHubFindingsRequest) -> ExportHubFindingsResponse;
        install_hub_item(InstallHubItemRequest) -> InstallHubItemResponse;
        get_hub_skill(GetHubSkillRequest) -> GetHubSkillResponse;
        list_hub_skills(ListHubSkillsRequest) -> ListHubSkillsResponse;
        verify_hub_skill(VerifyHubSkillRequest) -> VerifyHubSkillResponse;
        uninstall_hub_skill(UninstallHubSkillRequest) -> UninstallHubSkillResponse;
        plan_hub_update(PlanHubUpdateRequest) -> PlanHubUpdateResponse;
        withdraw_hub_tree(WithdrawHubTreeRequest) -> WithdrawHubTreeResponse;
        reinstate_hub_tree(ReinstateHubTreeRequest) -> ReinstateHubTreeResponse;
        list_hub_withdrawals(ListHubWithdrawalsRequest) -> ListHubWithdrawalsResponse;
        publish_hub_skill(PublishHubSkillRequest) -> PublishHubSkillResponse;
        unpublish_hub_skill(UnpublishHubSkillRequest) -> UnpublishHubSkillResponse;
        list_hub_publications(ListHubPublicationsRequest) -> ListHubPublicationsResponse;
        list_hub_audit_entries(ListHubAuditEntriesRequest) -> ListHubAuditEntriesResponse;
        check_hub_audit_entry(CheckHubAuditEntryRequest) -> CheckHubAuditEntryResponse;
        => fetch_hub_item(FetchHubItemRequest) -> FetchHubItemResponse;
        => fetch_hub_update(FetchHubUpdateRequest) -> FetchHubUpdateResponse;
        => rescan_hub_skills(RescanHubSkillsRequest) -> RescanHubSkillsResponse;
        => check_hub_skills(CheckHubSkillsRequest) -> CheckHubSkillsResponse;
    }
}

facade! {
    /// `steward.learning.v1.ReviewService`: what the reviewer did.
    ReviewClient = learning::review_service_client::ReviewServiceClient {
        list_reviews(ListReviewsRequest) -> ListReviewsResponse;
        get_review(GetReviewRequest) -> GetReviewResponse;
        retry_review(RetryReviewRequest) -> RetryReviewResponse;
        cancel_review(CancelReviewRequest) -> CancelReviewResponse;
        => watch_reviews(WatchReviewsRequest) -> WatchReviewsResponse;
    }
}

facade! {
    /// `steward.learning.v1.PersonService`: all that is held on a person.
    PersonClient = learning::person_service_client::PersonServiceClient {
        erase_person(ErasePersonRequest) -> ErasePersonResponse;
        => export_person(ExportPersonRequest) -> ExportPersonResponse;
    }
}

facade! {
    /// `steward.learning.v1.CuratorService`: the ageing of a team's library.
    CuratorClient = learning::curator_service_client::CuratorServiceClient {
        run_curation(RunCurationRequest) -> RunCurationResponse;
        get_curation_status(GetCurationStatusRequest) -> GetCurationStatusResponse;
        pause_curation(PauseCurationRequest) -> PauseCurationResponse;
        resume_curation(ResumeCurationRequest) -> ResumeCurationResponse;
        list_curation_runs(ListCurationRunsRequest) -> ListCurationRunsResponse;
        get_curation_report(GetCurationReportRequest) -> GetCurationReportResponse;
        rollback_curation_run(RollbackCurationRunRequest) -> RollbackCurationRunResponse;
    }
}

facade! {
    /// `steward.skill.v1.LibraryService`: a team's library, for a curation.
    LibraryClient = skill::library_service_client::LibraryServiceClient {
        list_records(ListRecordsRequest) -> ListRecordsResponse;
        create_snapshot(CreateSnapshotRequest) -> CreateSnapshotResponse;
        apply_transitions(ApplyTransitionsRequest) -> ApplyTransitionsResponse;
        rollback_run(RollbackRunRequest) -> RollbackRunResponse;
        list_snapshots(ListSnapshotsRequest) -> ListSnapshotsResponse;
        restore_snapshot(RestoreSnapshotRequest) -> RestoreSnapshotResponse;
        set_references(SetReferencesRequest) -> SetReferencesResponse;
        erase_person_library(ErasePersonLibraryRequest) -> ErasePersonLibraryResponse;
    }
}

facade! {
    /// `steward.skill.v1.CommandService`: what a person types, and what a session opens at its start.
    CommandClient = skill::command_service_client::CommandServiceClient {
        list_commands(ListCommandsRequest) -> ListCommandsResponse;
        expand_command(ExpandCommandRequest) -> ExpandCommandResponse;
        preload_skills(PreloadSkillsRequest) -> PreloadSkillsResponse;
    }
}

facade! {
    /// `steward.skill.v1.BundleService`: skills that are opened together.
    BundleClient = skill::bundle_service_client::BundleServiceClient {
        get_bundle(GetBundleRequest) -> GetBundleResponse;
        list_bundles(ListBundlesRequest) -> ListBundlesResponse;
        save_bundle(SaveBundleRequest) -> SaveBundleResponse;
        delete_bundle(DeleteBundleRequest) -> DeleteBundleResponse;
    }
}

facade! {
    /// `steward.skill.v1.ProposalService`: a person's skill on its way into the team's library.
    SkillProposalClient = skill::proposal_service_client::ProposalServiceClient {
        propose_skill(ProposeSkillRequest) -> ProposeSkillResponse;
        get_proposal(GetProposalRequest) -> GetProposalResponse;
        list_proposals(ListProposalsRequest) -> ListProposalsResponse;
        approve_proposal(ApproveProposalRequest) -> ApproveProposalResponse;
        reject_proposal(RejectProposalRequest) -> RejectProposalResponse;
        get_inbox(GetInboxRequest) -> GetInboxResponse;
        => watch_inbox(WatchInboxRequest) -> WatchInboxResponse;
    }
}

facade! {
    /// `steward.skill.v1.SecretService`: a team's values for variables that skills declare.
    SecretClient = skill::secret_service_client::SecretServiceClient {
        set_secret(SetSecretRequest) -> SetSecretResponse;
        list_secrets(ListSecretsRequest) -> ListSecretsResponse;
        delete_secret(DeleteSecretRequest) -> DeleteSecretResponse;
        deliver_secrets(DeliverSecretsRequest) -> DeliverSecretsResponse;
    }
}

facade! {
    /// `steward.skill.v1.ExchangeService`: skills as files, in and out.
    ExchangeClient = skill::exchange_service_client::ExchangeServiceClient {
        check_skill(CheckSkillRequest) -> CheckSkillResponse;
        import_skill(ImportSkillRequest) -> ImportSkillResponse;
        export_skill(ExportSkillRequest) -> ExportSkillResponse;
    }
}

facade! {
    /// `steward.memory.v1.MemoryService`: memory entries.
    MemoryClient = memory::memory_service_client::MemoryServiceClient {
        apply(ApplyRequest) -> ApplyResponse;
        list_entries(ListEntriesRequest) -> ListEntriesResponse;
        get_entry(GetEntryRequest) -> GetEntryResponse;
        list_entry_revisions(ListEntryRevisionsRequest) -> ListEntryRevisionsResponse;
        diff_revisions(DiffRevisionsRequest) -> DiffRevisionsResponse;
        revert_entry(RevertEntryRequest) -> RevertEntryResponse;
        get_snapshot(GetSnapshotRequest) -> GetSnapshotResponse;
        list_proposals(ListProposalsRequest) -> ListProposalsResponse;
        get_proposal(GetProposalRequest) -> GetProposalResponse;
        approve_proposal(ApproveProposalRequest) -> ApproveProposalResponse;
        reject_proposal(RejectProposalRequest) -> RejectProposalResponse;
        get_inbox(GetInboxRequest) -> GetInboxResponse;
        stage_correction(StageCorrectionRequest) -> StageCorrectionResponse;
        confirm_entry(ConfirmEntryRequest) -> ConfirmEntryResponse;
        report_checks(ReportChecksRequest) -> ReportChecksResponse;
        export_entries(ExportEntriesRequest) -> ExportEntriesResponse;
        import_entries(ImportEntriesRequest) -> ImportEntriesResponse;
        list_held_entries(ListHeldEntriesRequest) -> ListHeldEntriesResponse;
        delete_held_entry(DeleteHeldEntryRequest) -> DeleteHeldEntryResponse;
        erase_user_memory(EraseUserMemoryRequest) -> EraseUserMemoryResponse;
        => watch_inbox(WatchInboxRequest) -> WatchInboxResponse;
        => export_user_memory(ExportUserMemoryRequest) -> ExportUserMemoryResponse;
    }
}

facade! {
    /// `steward.memory.v1.ProviderService`: the one external memory of a team, for whoever runs turns.
    ProviderClient = memory::provider_service_client::ProviderServiceClient {
        open_provider_session(OpenProviderSessionRequest) -> OpenProviderSessionResponse;
        recall_from_provider(RecallFromProviderRequest) -> RecallFromProviderResponse;
        sync_turn_to_provider(SyncTurnToProviderRequest) -> SyncTurnToProviderResponse;
        call_provider_tool(CallProviderToolRequest) -> CallProviderToolResponse;
        tell_provider(TellProviderRequest) -> TellProviderResponse;
    }
}

facade! {
    /// `steward.recall.v1.RecallService`: search in the past.
    RecallClient = recall::recall_service_client::RecallServiceClient {
        search(SearchRequest) -> SearchResponse;
        => export_sessions(ExportSessionsRequest) -> ExportSessionsResponse;
    }
}

facade! {
    /// `steward.recall.v1.SessionStoreService`: sessions and messages, for services.
    SessionStoreClient = recall::session_store_service_client::SessionStoreServiceClient {
        create_session(CreateSessionRequest) -> CreateSessionResponse;
        get_session(GetSessionRequest) -> GetSessionResponse;
        update_session(UpdateSessionRequest) -> UpdateSessionResponse;
        list_sessions(ListSessionsRequest) -> ListSessionsResponse;
        acquire_turn_lease(AcquireTurnLeaseRequest) -> AcquireTurnLeaseResponse;
        renew_turn_lease(RenewTurnLeaseRequest) -> RenewTurnLeaseResponse;
        release_turn_lease(ReleaseTurnLeaseRequest) -> ReleaseTurnLeaseResponse;
        append_messages(AppendMessagesRequest) -> AppendMessagesResponse;
        delete_session(DeleteSessionRequest) -> DeleteSessionResponse;
        rewind_session(RewindSessionRequest) -> RewindSessionResponse;
        fork_session(ForkSessionRequest) -> ForkSessionResponse;
        mark_compacted(MarkCompactedRequest) -> MarkCompactedResponse;
        list_expired_turns(ListExpiredTurnsRequest) -> ListExpiredTurnsResponse;
        list_messages(ListMessagesRequest) -> ListMessagesResponse;
        get_turn(GetTurnRequest) -> GetTurnResponse;
        list_due_reviews(ListDueReviewsRequest) -> ListDueReviewsResponse;
        acknowledge_due_reviews(AcknowledgeDueReviewsRequest) -> AcknowledgeDueReviewsResponse;
        list_team_activity(ListTeamActivityRequest) -> ListTeamActivityResponse;
        backup_team(BackupTeamRequest) -> BackupTeamResponse;
        list_backups(ListBackupsRequest) -> ListBackupsResponse;
        restore_team(RestoreTeamRequest) -> RestoreTeamResponse;
        check_integrity(CheckIntegrityRequest) -> CheckIntegrityResponse;
    }
}

facade! {
    /// `steward.skill.v1.SkillService`: skills.
    SkillClient = skill::skill_service_client::SkillServiceClient {
        get_skill(GetSkillRequest) -> GetSkillResponse;
        list_skills(ListSkillsRequest) -> ListSkillsResponse;
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

/// All facades over one wire, for an installation whose services answer on one port.
#[derive(Debug, Clone)]
pub struct Client {
    /// Teams, users, tokens.
    pub access: AccessClient,
    /// Turns.
    pub agent: AgentClient,
    /// Model calls.
    pub model: ModelClient,
    /// A person's sessions.
    pub sessions: SessionClient,
    /// What the reviewer did.
    pub reviews: ReviewClient,
    /// The ageing of a team's library.
    pub curator: CuratorClient,
    /// All that is held on a person.
    pub people: PersonClient,
    /// Memory entries.
    pub memory: MemoryClient,
    /// Search in the past.
    pub recall: RecallClient,
    /// Sessions and messages, for services.
    pub store: SessionStoreClient,
    /// Skills.
    pub skills: SkillClient,
    /// Skills as files.
    pub exchange: ExchangeClient,
    /// A team's secrets.
    pub secrets: SecretClient,
    /// Slash commands.
    pub commands: CommandClient,
    /// Skills that are opened together.
    pub bundles: BundleClient,
    /// Skills on their way into the team's library.
    pub skill_proposals: SkillProposalClient,
    /// A team's library as a whole.
    pub library: LibraryClient,
    /// Skills from outside.
    pub hub: HubClient,
}

impl Client {
    /// Every facade over the same wire.
    pub fn new(wire: Wire) -> Self {
        Self::by_package(move |_| wire.clone())
    }

    /// Each facade over the wire of its package, `memory` for example, for an installation whose services answer at
    /// several addresses.
    pub fn by_package(wire: impl Fn(&str) -> Wire) -> Self {
        Self {
            access: AccessClient::new(wire("access")),
            agent: AgentClient::new(wire("agent")),
            model: ModelClient::new(wire("agent")),
            sessions: SessionClient::new(wire("agent")),
            reviews: ReviewClient::new(wire("learning")),
            curator: CuratorClient::new(wire("learning")),
            people: PersonClient::new(wire("learning")),
            memory: MemoryClient::new(wire("memory")),
            recall: RecallClient::new(wire("recall")),
            store: SessionStoreClient::new(wire("recall")),
            skills: SkillClient::new(wire("skill")),
            exchange: ExchangeClient::new(wire("skill")),
            secrets: SecretClient::new(wire("skill")),
            commands: CommandClient::new(wire("skill")),
            bundles: BundleClient::new(wire("skill")),
            skill_proposals: SkillProposalClient::new(wire("skill")),
            library: LibraryClient::new(wire("skill")),
            // skill-registry serves the hub too.
            hub: HubClient::new(wire("skill")),
        }
    }
}

fn timed<T>(message: T, timeout: Option<Duration>) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    if let Some(timeout) = timeout {
        request.set_timeout(timeout);
    }
    request
}

/// The whole call under the deadline: the wire ends with the head of the answer, a message may still be missing.
async fn limited<T>(
    timeout: Option<Duration>,
    call: impl Future<Output = Result<tonic::Response<T>, tonic::Status>>,
) -> Result<T, ClientError> {
    let answer = match timeout {
        Some(timeout) => tokio::time::timeout(timeout, call)
            .await
            .map_err(|_| ClientError::timed_out())?,
        None => call.await,
    };
    Ok(answer?.into_inner())
}
