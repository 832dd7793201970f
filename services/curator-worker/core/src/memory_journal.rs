//! A journal in memory, with a fence of its own: for tests, and the model that other journals are held against.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use steward_agent::kernel::StepRef;

use crate::error::Error;
use crate::ports::{CallRecord, Journal, Journalled, KeptReply, Opening};

/// What outlives the claims.
#[derive(Debug, Clone, Default)]
pub struct SharedJournal(Arc<Mutex<(u64, Journalled)>>);

impl SharedJournal {
    /// The journal under a new claim; the earlier claim is stale from now on.
    pub fn claim(&self) -> InMemoryJournal {
        let mut shared = self.lock();
        shared.0 += 1;
        InMemoryJournal {
            shared: self.clone(),
            fence: shared.0,
        }
    }

    /// What it holds.
    pub fn content(&self) -> Journalled {
        self.lock().1.clone()
    }

    fn lock(&self) -> MutexGuard<'_, (u64, Journalled)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The journal under one claim.
#[derive(Debug)]
pub struct InMemoryJournal {
    shared: SharedJournal,
    fence: u64,
}

impl InMemoryJournal {
    fn write(&self, write: impl FnOnce(&mut Journalled)) -> Result<(), Error> {
        let mut shared = self.shared.lock();
        if shared.0 != self.fence {
            return Err(Error::StaleFence {
                review: "in-memory".to_owned(),
                fence: self.fence,
                current: shared.0,
            });
        }
        write(&mut shared.1);
        Ok(())
    }
}

#[async_trait]
impl Journal for InMemoryJournal {
    async fn load(&self) -> Result<Journalled, Error> {
        Ok(self.shared.content())
    }

    async fn record_opening(&self, opening: &Opening) -> Result<(), Error> {
        self.write(|journal| {
            journal.opening.get_or_insert_with(|| opening.clone());
        })
    }

    async fn record_reply(&self, at: StepRef, reply: &KeptReply) -> Result<(), Error> {
        self.write(|journal| {
            journal.replies.entry(at).or_insert_with(|| reply.clone());
        })
    }

    async fn record_answer(&self, step: u32, call: usize, answer: &CallRecord) -> Result<(), Error> {
        self.write(|journal| {
            journal.answers.entry((step, call)).or_insert_with(|| answer.clone());
        })
    }
}
