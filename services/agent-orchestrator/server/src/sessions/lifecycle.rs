//! `DeleteSession`, `RewindSession`, `ForkSession`: what becomes of a conversation as a whole. recall-service does it; whose it
//! is, and that no turn of this process begins in the meantime, is seen to here.

use steward_base::FieldViolations;
use steward_orchestrator_core::Error;
use steward_orchestrator_core::session::{Fork, Rewind, Session, SessionKey, derived_session_id};

use super::{Sessions, check_request_id, check_title};
use crate::owed::{Debt, What};
use crate::signer::Person;
use crate::turns::has_provider;

/// A session that is to go on from another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Branch {
    /// The last message that is taken along; 0: all.
    pub(crate) through_seq: u64,
    /// Empty: that of the other one.
    pub(crate) title: String,
    pub(crate) request_id: String,
}

impl Sessions {
    /// Deletes a session for good.
    pub(crate) async fn delete(&self, person: &Person, key: &SessionKey, etag: &str) -> Result<(), Error> {
        let lock = self.locks.of(key);
        let _decided = lock.lock().await;
        let session = self.get(person, key).await?;
        let told = has_provider(&session);
        if told {
            // From before the deletion, so that no end of the process loses it.
            self.owed.owe(self.end_of(person, key)).await?;
        }
        if let Err(error) = self.store.delete_session(key, etag).await {
            if told {
                self.owed.settle(key, &What::End).await?;
            }
            return Err(error);
        }
        self.nudge.nudge();
        tracing::info!(session.id = %key.id, "a session was deleted");
        Ok(())
    }

    fn end_of(&self, person: &Person, key: &SessionKey) -> Debt {
        Debt {
            key: key.clone(),
            person: person.clone(),
            what: What::End,
            since: self.clock.now(),
        }
    }

    /// Takes back what was said after a message. The same request id again changes nothing more.
    pub(crate) async fn rewind(&self, person: &Person, key: &SessionKey, rewind: Rewind) -> Result<Session, Error> {
        let mut violations = FieldViolations::new();
        check_request_id(&rewind.request_id, &mut violations);
        violations.into_result()?;
        let lock = self.locks.of(key);
        let _decided = lock.lock().await;
        self.get(person, key).await?;
        self.store.rewind_session(key, rewind).await
    }

    /// Begins a session that goes on from a message of this one. The same request id again finds it.
    pub(crate) async fn fork(&self, person: &Person, key: &SessionKey, branch: Branch) -> Result<Session, Error> {
        let mut violations = FieldViolations::new();
        check_request_id(&branch.request_id, &mut violations);
        check_title(&branch.title, &mut violations);
        violations.into_result()?;
        self.get(person, key).await?;
        let id = derived_session_id(&person.team, &person.user, &branch.request_id)
            .map_err(|error| Error::internal("name a session", error))?;
        let fork = Fork {
            id,
            through_seq: branch.through_seq,
            title: branch.title,
            request_id: branch.request_id,
        };
        self.store.fork_session(key, fork).await
    }
}
