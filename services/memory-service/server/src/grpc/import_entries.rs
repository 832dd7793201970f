//! `ImportEntries`.

use steward_base::FieldViolations;
use steward_memory_core::{Error, ImportRequest, Imported, Memory, StoreName, check_import};
use steward_proto::memory::v1 as pb;
use tonic::{Request, Response, Status};

use super::convert::{checked, held_name, step_to_pb};
use super::fail;

pub(super) async fn import_entries(
    memory: &Memory,
    request: Request<pb::ImportEntriesRequest>,
) -> Result<Response<pb::ImportEntriesResponse>, Status> {
    let caller = steward_grpc::caller(&request)?.clone();
    let request = request_from_pb(request.into_inner()).map_err(fail)?;
    let store = request.store.clone();
    let imported = memory.import_entries(&caller, request).await.map_err(fail)?;
    Ok(Response::new(pb::ImportEntriesResponse {
        results: imported.into_iter().map(|one| result_to_pb(&store, one)).collect(),
    }))
}

fn request_from_pb(request: pb::ImportEntriesRequest) -> Result<ImportRequest, Error> {
    let mut violations = FieldViolations::new();
    let store = violations.take("store", StoreName::parse(&request.store));
    check_import(&request.request_id, request.file.len(), &mut violations);
    violations.into_result()?;
    Ok(ImportRequest {
        store: checked(store, "store")?,
        file: request.file.to_vec(),
        dry_run: request.dry_run,
        request_id: request.request_id,
    })
}

fn result_to_pb(store: &StoreName, imported: Imported) -> pb::ImportResult {
    match imported {
        Imported::Done { done } => pb::ImportResult {
            change: Some(step_to_pb(store, done)),
            ..pb::ImportResult::default()
        },
        Imported::Refused { refusal } => pb::ImportResult {
            refused_reason: refusal.reason().to_owned(),
            refused_message: refusal.summary(),
            ..pb::ImportResult::default()
        },
        Imported::Held { id, preview } => pb::ImportResult {
            held: Some(pb::HeldEntry {
                name: held_name(store, &id),
                preview,
                ..pb::HeldEntry::default()
            }),
            ..pb::ImportResult::default()
        },
    }
}
