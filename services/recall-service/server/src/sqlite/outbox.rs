//! Due reviews: written with the turn's final message, kept until the worker has them (`R-1`).

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sqlx::SqliteConnection;
use steward_base::names::TeamId;
use steward_recall_core::sessions::DueReviewRef;
use steward_recall_core::turn::DueReview;

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

pub(super) async fn add(connection: &mut SqliteConnection, due: &DueReview) -> Result<(), Failure> {
    sqlx::query("INSERT INTO due_review VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
        .bind(due.team.as_str())
        .bind(due.session.as_str())
        .bind(&due.review.id)
        .bind(due.user.as_str())
        .bind(due.review.memory)
        .bind(due.review.skills)
        .bind(signed(due.to_seq))
        .bind(&due.review.turn)
        .bind(&due.review.traceparent)
        .bind(due.created.as_micros())
        .execute(connection)
        .await?;
    Ok(())
}

/// The oldest rows of one team.
pub(super) async fn list(connection: &mut SqliteConnection, limit: u32) -> Result<Vec<DueReview>, Failure> {
    let found = sqlx::query("SELECT * FROM due_review ORDER BY created, id LIMIT ?")
        .bind(i64::from(limit))
        .fetch_all(connection)
        .await?;
    found.iter().map(rows::due_review).collect()
}

/// Removes rows of one team; how many were there.
pub(super) async fn acknowledge(connection: &mut SqliteConnection, reviews: &[DueReviewRef]) -> Result<u32, Failure> {
    let mut removed = 0;
    for review in reviews {
        let done = sqlx::query("DELETE FROM due_review WHERE team = ? AND session = ? AND id = ?")
            .bind(review.team.as_str())
            .bind(review.session.as_str())
            .bind(&review.id)
            .execute(&mut *connection)
            .await?;
        removed += u32::try_from(done.rows_affected()).unwrap_or(u32::MAX);
    }
    Ok(removed)
}
