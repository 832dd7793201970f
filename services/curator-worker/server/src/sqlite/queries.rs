//! Reading the ledger on behalf of a person.

use sqlx::sqlite::SqliteRow;
use sqlx::{Connection as _, Row as _};
use steward_base::names::{ReviewId, SessionId, TeamId, UserId};
use steward_curator_core::Error;
use steward_curator_core::review::{Review, review_name};
use steward_queue::QueueStats;

use super::rows::{self, read};
use super::{Failure, Ledger};

/// Whose reviews, and of which session.
#[derive(Debug, Clone)]
pub(crate) struct Whose {
    pub(crate) team: TeamId,
    pub(crate) user: UserId,
    pub(crate) session: Option<SessionId>,
}

/// A page of reviews, newest first.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    pub(crate) reviews: Vec<Review>,
    /// Where the next page starts; absent at the end.
    pub(crate) next: Option<(i64, String)>,
}

/// Changes of reviews, each with its number.
#[derive(Debug, Clone)]
pub(crate) struct Changes {
    pub(crate) reviews: Vec<(u64, Review)>,
    /// The number of the team's last change, to go on from.
    pub(crate) last: u64,
}

impl Ledger {
    /// A review of this person.
    pub(crate) async fn get(&self, team: &TeamId, user: &UserId, id: &ReviewId) -> Result<Review, Error> {
        let read = async {
            let mut connection = self.sqlite.read().await?;
            rows::get(&mut connection, team, id.as_str()).await
        };
        let found = read.await.map_err(|Failure(error)| error)?;
        found
            .filter(|review| review.user == *user)
            .ok_or_else(|| Error::ReviewNotFound {
                review: review_name(team, id),
            })
    }

    /// How the queue stands.
    pub(crate) async fn standing(&self) -> Result<QueueStats, Error> {
        let read = async {
            let mut connection = self.sqlite.read().await?;
            Ok::<_, Failure>(self.jobs.stats(&mut connection).await?)
        };
        read.await.map_err(|Failure(error)| error)
    }

    /// A page of at most `size` reviews before `before`, newest first.
    pub(crate) async fn list(&self, whose: &Whose, before: Option<(i64, String)>, size: u32) -> Result<Page, Error> {
        let read = async {
            let mut connection = self.sqlite.read().await?;
            let (created, id) = before.unwrap_or((i64::MAX, String::new()));
            let rows = sqlx::query(
                "SELECT * FROM review
                 WHERE team = ?1 AND user_id = ?2 AND (?3 IS NULL OR session = ?3)
                   AND (created_at < ?4 OR (created_at = ?4 AND id < ?5))
                 ORDER BY created_at DESC, id DESC LIMIT ?6",
            )
            .bind(whose.team.as_str())
            .bind(whose.user.as_str())
            .bind(whose.session.as_ref().map(SessionId::as_str))
            .bind(created)
            .bind(id)
            .bind(i64::from(size) + 1)
            .fetch_all(&mut *connection)
            .await?;
            rows.iter().map(rows::read).collect::<Result<Vec<_>, Failure>>()
        };
        let mut reviews = read.await.map_err(|Failure(error)| error)?;
        let more = reviews.len() > size as usize;
        reviews.truncate(size as usize);
        let next = reviews
            .last()
            .filter(|_| more)
            .map(|review| (review.created_at.as_micros(), review.id.to_string()));
        Ok(Page { reviews, next })
    }

    /// The reviews that have not ended, in the order of their last change.
    pub(crate) async fn unfinished(&self, whose: &Whose) -> Result<Changes, Error> {
        self.changes(whose, 0, "unfinished", u32::MAX).await
    }

    /// Changes after the one with this number, oldest first. A review that changed several times shows once, as it is.
    pub(crate) async fn changed_after(&self, whose: &Whose, after: u64, limit: u32) -> Result<Changes, Error> {
        self.changes(whose, after, "all", limit).await
    }

    async fn changes(&self, whose: &Whose, after: u64, which: &str, limit: u32) -> Result<Changes, Error> {
        let read = async {
            let mut connection = self.sqlite.read().await?;
            // One view for rows and last number, so that no change falls between the two.
            let mut view = connection.begin().await?;
            let last: i64 = sqlx::query_scalar("SELECT coalesce(max(change_seq), 0) FROM review WHERE team = ?")
                .bind(whose.team.as_str())
                .fetch_one(&mut *view)
                .await?;
            let rows = sqlx::query(
                "SELECT * FROM review
                 WHERE team = ?1 AND user_id = ?2 AND (?3 IS NULL OR session = ?3) AND change_seq > ?4
                   AND (?5 = 'all' OR state IN ('queued', 'running'))
                 ORDER BY change_seq LIMIT ?6",
            )
            .bind(whose.team.as_str())
            .bind(whose.user.as_str())
            .bind(whose.session.as_ref().map(SessionId::as_str))
            .bind(i64::try_from(after).unwrap_or(i64::MAX))
            .bind(which)
            .bind(limit)
            .fetch_all(&mut *view)
            .await?;
            view.commit().await?;
            let numbered = |row: &SqliteRow| -> Result<(u64, Review), Failure> {
                let number: i64 = row.try_get("change_seq")?;
                Ok((u64::try_from(number).unwrap_or(0), read(row)?))
            };
            let reviews = rows.iter().map(numbered).collect::<Result<Vec<_>, Failure>>()?;
            Ok::<_, Failure>((reviews, u64::try_from(last).unwrap_or(0)))
        };
        let (reviews, last) = read.await.map_err(|Failure(error)| error)?;
        // A full page ends where it ends; what lies beyond comes with the next.
        let last = match reviews.last() {
            Some((number, _)) if reviews.len() >= limit as usize => *number,
            _ => last,
        };
        Ok(Changes { reviews, last })
    }
}
