//! Due reviews: written with the turn's final message, kept until the worker has them (`R-1`).

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steward_base::names::TeamId;
use steward_recall_core::sessions::DueReviewRef;
use steward_recall_core::turn::DueReview;
use steward_store::{Db, params};

use super::failure::Failure;
use super::rows::{self, signed};

/// Teams that may have rows of a kind (due reviews, turns that wait), so that asking for all of them does not open every file.
///
/// A team is added inside the transaction that writes a row, and taken out inside a transaction that finds none. The
/// transactions of one team follow one another, so no row can be committed unnoticed in between.
#[derive(Debug, Clone, Default)]
pub(super) struct TeamsWith(Arc<Mutex<BTreeSet<TeamId>>>);

impl TeamsWith {
    pub(super) fn add(&self, team: &TeamId) {
        self.lock().insert(team.clone());
    }

    pub(super) fn remove(&self, team: &TeamId) {
        self.lock().remove(team);
    }

    pub(super) fn holds(&self, team: &TeamId) -> bool {
        self.lock().contains(team)
    }

    pub(super) fn all(&self) -> Vec<TeamId> {
        self.lock().iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<TeamId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn add(db: Db<'_>, due: &DueReview) -> Result<(), Failure> {
    db.execute(
        "INSERT INTO due_review (team, session, id, user, memory, skills, to_seq, turn, traceparent, created)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            due.team.as_str(),
            due.session.as_str(),
            due.review.id,
            due.user.as_str(),
            due.review.memory,
            due.review.skills,
            signed(due.to_seq),
            due.review.turn,
            due.review.traceparent,
            due.created.as_micros(),
        ],
    )?;
    Ok(())
}

/// The oldest rows of one team.
pub(super) fn list(db: Db<'_>, limit: u32) -> Result<Vec<DueReview>, Failure> {
    db.all(
        "SELECT team, session, id, user, memory, skills, to_seq, turn, traceparent, created FROM due_review
         ORDER BY created, id LIMIT ?",
        [limit],
        rows::due_review,
    )
}

/// Removes rows of one team; how many were there.
pub(super) fn acknowledge(db: Db<'_>, reviews: &[DueReviewRef]) -> Result<u32, Failure> {
    let mut removed = 0;
    for review in reviews {
        let done = db.execute(
            "DELETE FROM due_review WHERE team = ? AND session = ? AND id = ?",
            params![review.team.as_str(), review.session.as_str(), review.id],
        )?;
        removed += u32::try_from(done).unwrap_or(u32::MAX);
    }
    Ok(removed)
}
