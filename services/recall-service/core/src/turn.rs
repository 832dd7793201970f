//! Turns, and the reviews that they make due.

use steward_base::Timestamp;
use steward_base::names::{SessionId, TeamId, UserId};

use crate::session::named_enum;

named_enum! {
    /// What became of a turn.
    TurnState {
        /// A segment runs, or ran in a process that is gone.
        Running = "running",
        /// Waits for the client's tool results.
        RequiresAction = "requires_action",
        /// Delivered a final answer.
        Completed = "completed",
        /// Ended with an error.
        Failed = "failed",
        /// Stopped by the person.
        Interrupted = "interrupted",
        /// Waited too long for the client.
        Expired = "expired",
    }
}

impl TurnState {
    /// Whether it can still change.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Running | Self::RequiresAction)
    }
}

/// One user message until the final answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// The request id of its first segment.
    pub id: String,
    /// What became of it.
    pub state: TurnState,
    /// Number of its first message.
    pub first_seq: u64,
    /// Number of its last message so far.
    pub last_seq: u64,
    /// Model calls so far.
    pub iterations: u32,
    /// Segments so far.
    pub segments: u32,
    /// Reason of a failed turn; else empty.
    pub error_reason: String,
    /// Message of a failed turn; else empty.
    pub error_message: String,
    /// When it began.
    pub created: Timestamp,
    /// When it ended.
    pub ended: Option<Timestamp>,
}

/// A turn that waits for a client whose time is over (`T-8`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpiredTurn {
    /// The tenant.
    pub team: TeamId,
    /// The session.
    pub session: SessionId,
    /// Whose it is.
    pub user: UserId,
    /// The turn.
    pub turn: String,
    /// When the first of its calls expired.
    pub expired: Timestamp,
}

/// A change of a turn, as part of an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnUpdate {
    /// Turn id.
    pub id: String,
    /// New state.
    pub state: TurnState,
    /// Model calls so far.
    pub iterations: u32,
    /// Segments so far.
    pub segments: u32,
    /// Reason of a failed turn.
    pub error_reason: String,
    /// Message of a failed turn.
    pub error_message: String,
}

/// A review that a turn is about to make due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDueReview {
    /// Id, drawn by the operation; ids ascend with time.
    pub id: String,
    /// Whether memory is to be reviewed.
    pub memory: bool,
    /// Whether skills are to be reviewed.
    pub skills: bool,
    /// Turn that made it due.
    pub turn: String,
    /// W3C trace context of the turn; may be empty.
    pub traceparent: String,
}

/// A row of the outbox: it stays until the worker has it safe in its own queue (`R-1`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueReview {
    /// The tenant.
    pub team: TeamId,
    /// Session to look back at.
    pub session: SessionId,
    /// On whose behalf.
    pub user: UserId,
    /// The last message that the review may see.
    pub to_seq: u64,
    /// When it became due.
    pub created: Timestamp,
    /// The rest.
    pub review: NewDueReview,
}

impl DueReview {
    /// Full resource name.
    pub fn name(&self) -> String {
        format!(
            "teams/{}/sessions/{}/dueReviews/{}",
            self.team, self.session, self.review.id
        )
    }
}
