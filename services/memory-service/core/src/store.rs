//! The port behind which memory is kept, in one shape for every engine.
//!
//! A write is one call: the store opens a transaction, refuses a stale job, gives the first answer again for a request id
//! it knows, loads what the frame names, lets a pure function decide, and keeps the decision and its answer together.
//! Writes to one store are therefore serialised (`M-11`), and every rule is tested without an engine.

use std::fmt;

use async_trait::async_trait;
use steward_base::names::{EntryId, TeamId, UserId};
use steward_base::{JobRef, Timestamp};

use crate::book::{Book, Refusals};
use crate::entry::{Entry, Revision};
use crate::error::Error;
use crate::owner::{Owner, StoreName};
use crate::personal::{Holding, Receipt};
use crate::proposal::{Proposal, ProposalId, Rejection, State};
use crate::transfer::Held;

pub mod contract;

/// A request id in the room in which it is unique, with what the request asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestKey {
    /// The kind of call and the person on whose behalf it is made.
    pub scope: String,
    /// The caller's id.
    pub id: String,
    /// Hash of the whole request: the same id with another hash is refused.
    pub hash: String,
}

/// What a write is about: what to check first and what to load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The store.
    pub store: StoreName,
    /// The time of the write.
    pub at: Timestamp,
    /// For exactly-once effects; `None` where the state itself makes a repetition harmless.
    pub request: Option<RequestKey>,
    /// The job that writes, with its fence.
    pub job: Option<JobRef>,
    /// The entry whose history is needed.
    pub entry: Option<EntryId>,
    /// The proposal that is needed.
    pub proposal: Option<ProposalId>,
    /// The fingerprint of what is about to be proposed.
    pub fingerprint: Option<String>,
}

/// What the decision is made on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Loaded {
    /// The store's book.
    pub book: Book,
    /// History of the frame's entry, oldest first; empty if it never was in this store.
    pub history: Vec<Revision>,
    /// The frame's proposal.
    pub proposal: Option<Proposal>,
    /// Proposals for the store's owner that wait for a decision; 0 where the frame has no fingerprint.
    pub pending: usize,
    /// The last rejection of the frame's fingerprint in this store.
    pub rejected: Option<Rejection>,
    /// A proposal with the frame's fingerprint that waits for this store.
    pub same: Option<Proposal>,
}

/// What to keep. An empty one keeps only the answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decision {
    /// The book's new revision and refusals.
    pub head: Option<(u64, Refusals)>,
    /// Entries that are new or have changed.
    pub put: Vec<Entry>,
    /// Entries that are no longer present.
    pub gone: Vec<EntryId>,
    /// New revisions, in order.
    pub revisions: Vec<Revision>,
    /// Proposals that are new or have changed.
    pub proposals: Vec<Proposal>,
    /// A candidate that is not to be proposed again for a while.
    pub rejection: Option<Rejection>,
    /// Reports on checks: the revision of an entry, and the check that failed, or `None` where all hold again.
    pub checked: Vec<(EntryId, u32, Option<String>)>,
    /// What could not be read and is kept as it is.
    pub held: Vec<Held>,
    /// Of what is kept like that, what a person let go.
    pub let_go: Vec<EntryId>,
    /// The answer, in the caller's own format.
    pub answer: String,
}

/// The pure part of a write. An error keeps nothing, not even the request id.
pub type Decide = Box<dyn FnOnce(&Loaded) -> Result<Decision, Error> + Send>;

/// Which proposals a person may see: those on their own memory, those they made, and, for a maintainer, all those on
/// what the team shares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visible {
    /// The person, if any.
    pub user: Option<UserId>,
    /// Whether all proposals on shared memory are visible.
    pub shared: bool,
}

impl Visible {
    /// Whether `proposal` is visible.
    pub fn includes(&self, proposal: &Proposal) -> bool {
        match &proposal.owner {
            Owner::Person(user) => Some(user) == self.user.as_ref(),
            Owner::Team | Owner::Project(_) => {
                (self.shared && proposal.shown) || (self.user.is_some() && proposal.provenance.author == self.user)
            }
        }
    }
}

/// A proposal of a page, or the id of one that cannot be read.
pub type Listed = Result<Proposal, String>;

/// The id of a listed proposal.
pub fn listed_id(listed: &Listed) -> &str {
    match listed {
        Ok(proposal) => proposal.id.as_str(),
        Err(id) => id,
    }
}

/// What to list of proposals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposalQuery {
    /// The team.
    pub team: TeamId,
    /// Only this state.
    pub state: State,
    /// Only what the caller may see.
    pub visible: Visible,
    /// The present, by which some have expired.
    pub at: Timestamp,
    /// Only later ones than this id; proposals are ordered by id, which is the order in which they were made.
    pub after: Option<String>,
    /// At most this many.
    pub limit: u32,
}

/// Where memory is kept. All methods see every write that was answered before.
#[async_trait]
pub trait MemoryStore: fmt::Debug + Send + Sync + 'static {
    /// One write, all or nothing, durable when answered: the decision's answer, or the first one of the same request.
    /// A caller that goes away does not stop it half way.
    async fn write(&self, frame: Frame, decide: Decide) -> Result<String, Error>;

    /// The book of a store.
    async fn book(&self, store: &StoreName) -> Result<Book, Error>;

    /// The books of several stores in one consistent view, in the order asked for.
    async fn books(&self, stores: &[StoreName]) -> Result<Vec<Book>, Error>;

    /// History of an entry, oldest first; empty if it never was in the store.
    async fn history(&self, store: &StoreName, entry: &EntryId) -> Result<Vec<Revision>, Error>;

    /// A proposal by id.
    async fn proposal(&self, team: &TeamId, proposal: &ProposalId) -> Result<Option<Proposal>, Error>;

    /// A page of proposals, oldest first. One that cannot be read hides no other.
    async fn proposals(&self, query: &ProposalQuery) -> Result<Vec<Listed>, Error>;

    /// How many proposals wait that `visible` includes, and since when the oldest does.
    async fn waiting(
        &self,
        team: &TeamId,
        visible: &Visible,
        at: Timestamp,
    ) -> Result<(usize, Option<Timestamp>), Error>;

    /// How many present entries no longer hold at `at` (see [`Entry::stale`]): of what the team and its projects share, and
    /// of this person's own.
    async fn stale(&self, team: &TeamId, user: Option<&UserId>, at: Timestamp) -> Result<usize, Error>;

    /// What a store keeps although it could not be read, oldest first.
    async fn held(&self, store: &StoreName) -> Result<Vec<Held>, Error>;

    /// All that is held on a person, in a stable order, what others share with their traces included (`M-14`).
    async fn personal(&self, team: &TeamId, user: &UserId) -> Result<Vec<Holding>, Error>;

    /// Removes for good all that belongs to a person: entries, history, proposals, first answers, in one step. With
    /// `shared`, also the entries of shared stores that rest on this person's words alone. The receipt counts what is
    /// found afterwards. Books stay, empty, with a later revision, so that no slow writer meets a state that it knows.
    async fn erase(&self, team: &TeamId, user: &UserId, shared: bool, at: Timestamp) -> Result<Receipt, Error>;
}
