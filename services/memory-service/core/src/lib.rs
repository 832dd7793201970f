//! The rules of memory-service: short declarative facts that stand in front of the agent at the start of every session
//! (`M-1` to `M-13`), their history, and the proposals that wait for a person.
//!
//! [`Memory`] is the service without a wire: one method per RPC, each with the verified [`steward_base::Caller`]. What an
//! operation does to a store is a pure function ([`edit`]), who may is another ([`access`]), what a session is shown a
//! third ([`snapshot`]). Where entries are kept is behind [`MemoryStore`].
//!
//! Not here: gRPC, SQL, clients. Not anywhere: a model call.
#![warn(missing_docs)]

pub mod access;
pub mod answer;
pub mod book;
pub mod diff;
pub mod edit;
pub mod entry;
pub mod error;
pub mod find;
pub mod freshness;
pub mod memory;
pub mod memory_store;
pub mod near;
pub mod owner;
pub mod personal;
pub mod proposal;
pub mod provider;
pub mod refusal;
pub mod screen;
pub mod snapshot;
pub mod store;
pub mod text;
pub mod transfer;

#[cfg(test)]
mod test_support;

pub use access::Waiting;
pub use answer::{Applied, Outcome};
pub use book::{Book, Limits, Refusals};
pub use edit::{Operation, Step};
pub use entry::{Action, Basis, Entry, Evidence, Provenance, Revision};
pub use error::Error;
pub use freshness::{Check, Holds, Stale};
pub use memory::{
    ApplyRequest, Approval, CheckResult, ConfirmRequest, EntryPage, ImportRequest, Imported, Inbox, Memory,
    RevertRequest, RevisionDiff, StageRequest, check_apply, check_import, check_reason, check_rejection,
    check_request_id, check_stage,
};
pub use memory_store::InMemoryMemoryStore;
pub use owner::{Owner, StoreName, Target};
pub use personal::{Derived, Holding, Receipt, Support};
pub use proposal::{Proposal, ProposalId, Rejection, State, parse_proposal_name, proposal_name};
pub use refusal::{Refusal, Refused};
pub use snapshot::{LeftOut, Present, Shown, Snapshot};
pub use store::{Decide, Decision, Frame, Listed, Loaded, MemoryStore, ProposalQuery, RequestKey, Visible, listed_id};
pub use transfer::Held;
