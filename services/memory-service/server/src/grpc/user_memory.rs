//! `ExportUserMemory` and `EraseUserMemory` (`M-14`).

use std::pin::Pin;

use futures::{Stream, StreamExt as _};
use steward_base::names::{TeamId, UserId, parse_user};
use steward_memory_core::{Derived, Error, Holding, Memory, Receipt, Support};
use steward_proto::memory::v1 as pb;
use steward_proto::memory::v1::export_user_memory_response::Holding as Item;
use tonic::{Request, Response, Status};

use super::convert::{held_to_pb, proposal_to_pb, revision_to_pb};
use super::fail;
use crate::providers::{Desk, PersonErasure};

/// A stream of what is held.
pub(super) type Holdings = Pin<Box<dyn Stream<Item = Result<pb::ExportUserMemoryResponse, Status>> + Send>>;

pub(super) async fn export_user_memory(
    memory: &Memory,
    request: Request<pb::ExportUserMemoryRequest>,
) -> Result<Response<Holdings>, Status> {
    let caller = steward_grpc::caller(&request)?;
    let (team, user) = person_from_pb(&request.get_ref().user).map_err(fail)?;
    let holdings = memory.export_user(caller, &team, &user).await.map_err(fail)?;
    let items = holdings
        .into_iter()
        .map(move |holding| Ok(holding_to_pb(&team, holding)));
    Ok(Response::new(futures::stream::iter(items).boxed()))
}

pub(super) async fn erase_user_memory(
    memory: &Memory,
    desk: &Desk,
    request: Request<pb::EraseUserMemoryRequest>,
) -> Result<Response<pb::EraseUserMemoryResponse>, Status> {
    let caller = steward_grpc::caller(&request)?;
    let request = request.get_ref();
    let (team, user) = person_from_pb(&request.user).map_err(fail)?;
    let receipt = memory
        .erase_user(caller, &team, &user, request.shared)
        .await
        .map_err(fail)?;
    let mut answer = receipt_to_pb(receipt);
    answer.set_provider(erasure_to_pb(desk.erase(&team, &user).await));
    Ok(Response::new(answer))
}

fn person_from_pb(user: &str) -> Result<(TeamId, UserId), Error> {
    parse_user(user).map_err(|problem| Error::invalid("user", problem.to_string()))
}

fn holding_to_pb(team: &TeamId, holding: Holding) -> pb::ExportUserMemoryResponse {
    let item = match holding {
        Holding::Revision {
            store,
            revision,
            present,
        } => Item::Revision(pb::HeldRevision {
            entry: store.entry(&revision.entry),
            revision: Some(revision_to_pb(team, *revision)),
            present,
        }),
        Holding::Proposal(proposal) => Item::Proposal(proposal_to_pb(team, &proposal)),
        Holding::Held { store, held } => Item::Held(held_to_pb(&store, held)),
    };
    pb::ExportUserMemoryResponse { holding: Some(item) }
}

const fn erasure_to_pb(erasure: PersonErasure) -> pb::ProviderErasure {
    match erasure {
        PersonErasure::None => pb::ProviderErasure::None,
        PersonErasure::Erased => pb::ProviderErasure::Erased,
        PersonErasure::Unsupported => pb::ProviderErasure::Unsupported,
        PersonErasure::Failed => pb::ProviderErasure::Failed,
    }
}

fn receipt_to_pb(receipt: Receipt) -> pb::EraseUserMemoryResponse {
    pb::EraseUserMemoryResponse {
        entries: receipt.entries,
        revisions: receipt.revisions,
        proposals: receipt.proposals,
        others: receipt.others,
        found_after: receipt.found_after,
        derived_entries: receipt.derived.into_iter().map(derived_to_pb).collect(),
        provider: pb::ProviderErasure::Unspecified.into(),
    }
}

fn derived_to_pb(derived: Derived) -> pb::DerivedEntry {
    let support = match derived.support {
        Support::Sole => pb::derived_entry::Support::Sole,
        Support::Mixed => pb::derived_entry::Support::Mixed,
        Support::Independent => pb::derived_entry::Support::Independent,
    };
    pb::DerivedEntry {
        entry: derived.entry,
        revision: u64::from(derived.revision),
        support: support.into(),
        erased: derived.erased,
    }
}
