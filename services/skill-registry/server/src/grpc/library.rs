//! `steward.skill.v1.LibraryService`: one file per RPC, which decodes, calls the core and encodes.

mod apply_transitions;
mod convert;
mod create_snapshot;
mod erase_person_library;
mod list_records;
mod list_snapshots;
mod restore_snapshot;
mod rollback_run;
mod set_references;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use steward_proto::skill::v1 as pb;
use steward_proto::skill::v1::library_service_server::LibraryService;
use steward_skill_core::{Library, Skills};
use tonic::{Request, Response, Status};

/// The RPCs on a library as a whole.
#[derive(Debug, Clone)]
pub(crate) struct LibraryHandlers {
    library: Arc<Library>,
    skills: Arc<Skills>,
}

impl LibraryHandlers {
    pub(crate) fn new(library: Library, skills: Arc<Skills>) -> Self {
        Self {
            library: Arc::new(library),
            skills,
        }
    }
}

#[tonic::async_trait]
impl LibraryService for LibraryHandlers {
    async fn list_records(
        &self,
        request: Request<pb::ListRecordsRequest>,
    ) -> Result<Response<pb::ListRecordsResponse>, Status> {
        list_records::list_records(&self.library, request).await
    }

    async fn create_snapshot(
        &self,
        request: Request<pb::CreateSnapshotRequest>,
    ) -> Result<Response<pb::CreateSnapshotResponse>, Status> {
        create_snapshot::create_snapshot(&self.library, request).await
    }

    async fn apply_transitions(
        &self,
        request: Request<pb::ApplyTransitionsRequest>,
    ) -> Result<Response<pb::ApplyTransitionsResponse>, Status> {
        apply_transitions::apply_transitions(&self.library, request).await
    }

    async fn rollback_run(
        &self,
        request: Request<pb::RollbackRunRequest>,
    ) -> Result<Response<pb::RollbackRunResponse>, Status> {
        rollback_run::rollback_run(&self.library, request).await
    }

    async fn list_snapshots(
        &self,
        request: Request<pb::ListSnapshotsRequest>,
    ) -> Result<Response<pb::ListSnapshotsResponse>, Status> {
        list_snapshots::list_snapshots(&self.library, request).await
    }

    async fn restore_snapshot(
        &self,
        request: Request<pb::RestoreSnapshotRequest>,
    ) -> Result<Response<pb::RestoreSnapshotResponse>, Status> {
        restore_snapshot::restore_snapshot(&self.library, request).await
    }

    async fn set_references(
        &self,
        request: Request<pb::SetReferencesRequest>,
    ) -> Result<Response<pb::SetReferencesResponse>, Status> {
        set_references::set_references(&self.skills, request).await
    }

    async fn erase_person_library(
        &self,
        request: Request<pb::ErasePersonLibraryRequest>,
    ) -> Result<Response<pb::ErasePersonLibraryResponse>, Status> {
        erase_person_library::erase_person_library(&self.skills, request).await
    }
}
