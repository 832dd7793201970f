//! The service without a wire: one method per RPC, one file per verb.

mod apply;
mod decide_proposal;
mod entries;
mod get_snapshot;
mod import_entries;
mod inbox;
mod keep_fresh;
mod list_proposals;
mod personal_data;
mod revert_entry;
mod stage_correction;

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use steward_base::hash::sha256_hex;
use steward_base::names::EntryId;
use steward_base::{Caller, Clock, FieldViolations, IdGen, PerTeam};

use crate::book::Limits;
use crate::edit::Draft;
use crate::error::Error;
use crate::owner::StoreName;
use crate::screen;
use crate::store::{Decision, Frame, MemoryStore, RequestKey};

pub use apply::{ApplyRequest, check_apply};
pub use decide_proposal::Approval;
pub use entries::{EntryPage, RevisionDiff};
pub use import_entries::{ImportRequest, Imported, check_import};
pub use inbox::Inbox;
pub use keep_fresh::{CheckResult, ConfirmRequest};
pub use revert_entry::RevertRequest;
pub use stage_correction::{StageRequest, check_stage};

/// Longest request id, in characters.
const MAX_REQUEST_ID: usize = 128;
/// Longest reason, in characters.
const MAX_REASON: usize = 500;

/// Records what is wrong with a request id: it must have 1 to 128 characters.
pub fn check_request_id(request_id: &str, violations: &mut FieldViolations) {
    if !(1..=MAX_REQUEST_ID).contains(&request_id.chars().count()) {
        violations.add("request_id", format!("must have 1 to {MAX_REQUEST_ID} characters"));
    }
}

/// Records what is wrong with a reason: it may have at most 500 characters. It is kept and read later like an entry, so it
/// passes the same scan (`M-9`, D-12).
pub fn check_reason(reason: &str, violations: &mut FieldViolations) {
    if reason.chars().count() > MAX_REASON {
        violations.add("reason", format!("must have at most {MAX_REASON} characters"));
    } else if let Some(category) = screen::finding(reason) {
        violations.add("reason", format!("was refused: {category}"));
    }
}

/// Records what is wrong with the reason of a rejection: it must have 1 to 500 characters.
pub fn check_rejection(reason: &str, violations: &mut FieldViolations) {
    check_reason(reason, violations);
    if reason.trim().is_empty() {
        violations.add("reason", "must not be empty");
    }
}

/// All that memory-service does.
#[derive(Debug, Clone)]
pub struct Memory {
    store: Arc<dyn MemoryStore>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdGen>,
    limits: PerTeam<Limits>,
}

impl Memory {
    /// Puts it together.
    pub fn new(
        store: Arc<dyn MemoryStore>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdGen>,
        limits: PerTeam<Limits>,
    ) -> Self {
        Self {
            store,
            clock,
            ids,
            limits,
        }
    }

    /// The limits in force where a team has none of its own.
    pub const fn limits(&self) -> &Limits {
        self.limits.default()
    }

    /// The limits of the team that a store belongs to.
    fn limits_of(&self, store: &StoreName) -> Limits {
        *self.limits.of(&store.team)
    }

    fn frame(&self, caller: &Caller, store: &StoreName) -> Frame {
        Frame {
            store: store.clone(),
            at: self.clock.now(),
            request: None,
            job: caller.job().cloned(),
            entry: None,
            proposal: None,
            fingerprint: None,
        }
    }

    /// The present time, by which an entry holds or does not.
    pub fn now(&self) -> steward_base::Timestamp {
        self.clock.now()
    }

    fn fresh_id(&self) -> Result<EntryId, Error> {
        EntryId::parse(self.ids.new_id()).map_err(|source| internal("drawing an id", source))
    }

    fn fresh_ids(&self, count: usize) -> Result<Vec<EntryId>, Error> {
        (0..count).map(|_| self.fresh_id()).collect()
    }
}

/// The key under which the first answer to a request is kept. Ids of different people and different calls never meet.
fn request_key(call: &str, caller: &Caller, request_id: &str, content: &impl Serialize) -> Result<RequestKey, Error> {
    let user = caller.user.as_ref().map_or("", |user| user.as_str());
    let bytes = serde_json::to_vec(content).map_err(|source| internal("hashing a request", source))?;
    Ok(RequestKey {
        scope: format!("{call}/{user}"),
        id: request_id.to_owned(),
        hash: sha256_hex(&bytes),
    })
}

/// What a draft leaves behind in the store.
fn decision(draft: &Draft) -> Decision {
    if !draft.is_change() {
        return Decision::default();
    }
    Decision {
        head: Some((draft.book.revision, draft.book.refusals.clone())),
        put: draft.changed(),
        gone: draft.gone(),
        revisions: draft.revisions.clone(),
        ..Decision::default()
    }
}

fn to_answer(answer: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(answer).map_err(|source| internal("writing an answer", source))
}

fn from_answer<T: DeserializeOwned>(answer: &str) -> Result<T, Error> {
    serde_json::from_str(answer).map_err(|source| Error::DataDamaged {
        what: format!("a stored answer: {source}"),
    })
}

fn internal(operation: &'static str, source: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Internal {
        operation,
        source: Box::new(source),
    }
}

#[cfg(test)]
mod tests;
