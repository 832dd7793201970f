//! The port to where skills are kept.
//!
//! Rules read a state, decide, and hand the store one [`Change`] that names the version it rests on. The store applies
//! all of it or nothing, in one transaction: fence, request id, version, names, what is revoked, revision, blobs, what
//! the writer has read, and the first answer. So there is one place at which a tree gets into use, whoever brings it.

pub mod contract;
mod erase;
mod secrets;
mod shelf;

use std::collections::BTreeSet;

use async_trait::async_trait;
use steward_base::names::{SkillId, TeamId, UserId};
use steward_base::{JobRef, Timestamp};

use crate::error::StoreFault;
use crate::name::Scope;
use crate::proposals::Proposal;
use crate::record::{Files, Found, Revision, SkillRecord};

pub use erase::{EraseStore, Erased, Erasure};
pub use secrets::SecretStore;
pub use shelf::{BundleStore, ProposalStore};

/// Who remembers having read a skill (`S-12`): a session, or a job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reader {
    /// By its id.
    Session(String),
    /// By its id; a retry of the job has read what its first try read.
    Job(String),
}

impl Reader {
    /// The key in stores.
    pub fn key(&self) -> String {
        match self {
            Self::Session(id) => format!("session/{id}"),
            Self::Job(id) => format!("job/{id}"),
        }
    }

    /// What it is, for messages.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Session(_) => "session",
            Self::Job(_) => "job",
        }
    }
}

/// Which request a write answers (`T-9`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestKey {
    /// Whose ids these are: two callers' equal ids are two requests.
    pub scope: String,
    /// As the caller gave it.
    pub id: String,
    /// Hash over the rest of the request.
    pub hash: String,
}

/// What was answered to a request id before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstAnswer {
    /// Hash of the request then.
    pub hash: String,
    /// The answer, as the rules serialised it.
    pub answer: String,
}

/// A write, whole.
#[derive(Debug, Clone)]
pub struct Change {
    /// The record as it shall be; its `version` is one more than `expected`. Usage in it is ignored after creation.
    pub record: SkillRecord,
    /// The version that the change rests on; none to create.
    pub expected: Option<u64>,
    /// The new revision with its files; none if only the record changes.
    pub revision: Option<(Revision, Files)>,
    /// A revision kept right before it: what a source had, where the new one unites that with changes made here.
    pub beneath: Option<(Revision, Files)>,
    /// Whether it counts as a patch (`S-9`).
    pub is_patch: bool,
    /// Who has now read the new revision, having written it.
    pub reader: Option<Reader>,
    /// The claim under which it is written.
    pub fence: Option<JobRef>,
    /// The request that it answers, with the answer.
    pub answer: Option<(RequestKey, String)>,
    /// The proposal that it carries out, decided. Applied only if that is still pending.
    pub decides: Option<Proposal>,
}

/// Why a change was not applied. Nothing of it was.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// The record is not at the expected version, or exists although it should not; or the proposal is not pending.
    #[error("the skill is at another version")]
    VersionMismatch,
    /// Skills in use of the scope that keep the name or folder from being used; full names.
    #[error("the name or folder is taken")]
    InTheWay(Vec<String>),
    /// The files that would be in use are a tree that the team revoked (`H-2`), or nobody can say that they are not.
    #[error("its tree is revoked")]
    Revoked,
    /// A newer claim of the job was seen.
    #[error("a newer claim of the job exists")]
    StaleFence {
        /// The newest fence seen.
        current: u64,
    },
    /// The request id was answered meanwhile.
    #[error("the request was answered before")]
    Answered(FirstAnswer),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreFault),
}

/// A look at a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// The tenant.
    pub team: TeamId,
    /// Which skill.
    pub uid: String,
    /// Which revision was shown.
    pub revision: String,
    /// Who remembers it.
    pub reader: Option<Reader>,
    /// Whether it is a use, or a look by a review or curation (`S-9`).
    pub is_use: bool,
    /// When.
    pub at: Timestamp,
}

/// The destruction of an archived skill.
#[derive(Debug, Clone)]
pub struct Purge {
    /// The record as it was read.
    pub record: SkillRecord,
    /// Who does it: user id and token id, for the audit.
    pub by: String,
    /// When.
    pub at: Timestamp,
}

/// Where skills are kept. Implementations pass [`contract::check`].
#[async_trait]
pub trait SkillStore: BundleStore + ProposalStore + SecretStore + EraseStore + std::fmt::Debug + Send + Sync {
    /// What was answered to this request id before.
    async fn first_answer(&self, team: &TeamId, scope: &str, id: &str) -> Result<Option<FirstAnswer>, StoreFault>;

    /// The skills of these scopes, in use or archived, ordered by scope (nearest first), category, name and uid.
    async fn list(&self, team: &TeamId, scopes: &[Scope], archived: bool) -> Result<Vec<Found>, StoreFault>;

    /// All skills with this name in these scopes, in use or archived, in the same order.
    async fn named(&self, team: &TeamId, scopes: &[Scope], name: &SkillId) -> Result<Vec<Found>, StoreFault>;

    /// Revisions with a number below `before`, newest first, at most `limit`.
    async fn revisions(
        &self,
        team: &TeamId,
        uid: &str,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<Revision>, StoreFault>;

    /// One revision by its id.
    async fn revision(&self, team: &TeamId, uid: &str, id: &str) -> Result<Option<Revision>, StoreFault>;

    /// The files of a revision, checked against its hashes.
    async fn files(&self, team: &TeamId, revision: &Revision) -> Result<Files, StoreFault>;

    /// The revision that a reader has last seen of a skill.
    async fn last_read(&self, team: &TeamId, reader: &Reader, uid: &str) -> Result<Option<String>, StoreFault>;

    /// Counts a look and remembers it.
    async fn record_view(&self, view: View) -> Result<(), StoreFault>;

    /// A number that differs whenever anything that a listing of the team shows differs: a change, a hiding, a purge; no use.
    async fn generation(&self, team: &TeamId) -> Result<u64, StoreFault>;

    /// Identities of the skills that are hidden from the user: by the user, or by the team from everyone.
    async fn hidden(&self, team: &TeamId, user: Option<&UserId>) -> Result<BTreeSet<String>, StoreFault>;

    /// Hides a skill from a user, or with none from the whole team, or shows it again.
    async fn set_hidden(&self, team: &TeamId, user: Option<&UserId>, uid: &str, hidden: bool)
    -> Result<(), StoreFault>;

    /// Makes `uids` the skills that a holder, such as a schedule, names; none to forget the holder.
    async fn set_references(&self, team: &TeamId, holder: &str, uids: &[String]) -> Result<(), StoreFault>;

    /// Whether any holder names the skill.
    async fn is_referenced(&self, team: &TeamId, uid: &str) -> Result<bool, StoreFault>;

    /// Applies a change. One by which files get into use that are a revoked tree is refused: a new revision of a skill in
    /// use, or a skill that comes back into use.
    async fn commit(&self, change: Change) -> Result<(), CommitError>;

    /// What [`SkillStore::commit`] would answer now. Nothing is kept of it.
    async fn dry_run(&self, change: Change) -> Result<(), CommitError>;

    /// Destroys a skill with its revisions, what was read of it, the answers about it, writes to it that wait or waited for a
    /// decision, and blobs that nothing else uses.
    /// Leaves a line in the audit. Returns how many revisions there were.
    async fn purge(&self, purge: Purge) -> Result<u64, CommitError>;
}
