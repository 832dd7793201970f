//! Deleting a session for good. What is left is a mark that its id is spent, so that whoever still holds a lease on it learns
//! what happened instead of writing into nothing.

use steward_base::Timestamp;
use steward_base::names::{SessionId, TeamId};

use crate::append_messages::check_etag;
use crate::error::Error;
use crate::session::Session;
use crate::sessions::Sessions;
use crate::update_session::check_unheld;

/// A session to be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deletion {
    /// The tenant.
    pub team: TeamId,
    /// The session.
    pub session: SessionId,
    /// The state that the caller read; empty: any.
    pub etag: String,
}

/// Whether the session may be deleted: not while a turn runs. A turn that waits for its client is deleted with it.
pub fn decide(session: &Session, deletion: &Deletion, now: Timestamp) -> Result<(), Error> {
    check_unheld(session, now)?;
    check_etag(&deletion.etag, session)
}

impl Sessions {
    /// Deletes the session with everything that belongs to it; a session that is deleted already stays so (`Q-9`).
    pub async fn delete_session(&self, deletion: Deletion) -> Result<(), Error> {
        self.store.delete_session(deletion, self.clock.now()).await
    }
}
