//! Reading the ledger on behalf of a person.

use steward_base::names::{ReviewId, SessionId, TeamId, UserId};
use steward_curator_core::Error;
use steward_curator_core::review::{Review, review_name};
use steward_queue::QueueStats;
use steward_store::{Db, Row};

use super::{Failure, Ledger, rows};

const PAGE: &str = "\
SELECT * FROM review
WHERE team = ?1 AND user_id = ?2 AND (?3 IS NULL OR session = ?3)
  AND (created_at < ?4 OR (created_at = ?4 AND id < ?5))
ORDER BY created_at DESC, id DESC LIMIT ?6";

const CHANGED: &str = "\
SELECT * FROM review
WHERE team = ?1 AND user_id = ?2 AND (?3 IS NULL OR session = ?3) AND change_seq > ?4
  AND (?5 = 'all' OR state IN ('queued', 'running'))
ORDER BY change_seq LIMIT ?6";

/// Whose reviews, and of which session.
#[derive(Debug, Clone)]
pub(crate) struct Whose {
    pub(crate) team: TeamId,
    pub(crate) user: UserId,
    pub(crate) session: Option<SessionId>,
}

impl Whose {
    /// As columns have it.
    fn columns(&self) -> (&str, &str, Option<&str>) {
        let session = self.session.as_ref().map(SessionId::as_str);
        (self.team.as_str(), self.user.as_str(), session)
    }
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
        let found = self.read(|db| rows::get(db, team, id.as_str())).await?;
        found
            .filter(|review| review.user == *user)
            .ok_or_else(|| Error::ReviewNotFound {
                review: review_name(team, id),
            })
    }

    /// How the queue stands.
    pub(crate) async fn standing(&self) -> Result<QueueStats, Error> {
        self.read_beside(|ledger, db| Ok(ledger.steps.stats(db)?)).await
    }

    /// A page of at most `size` reviews before `before`, newest first.
    pub(crate) async fn list(&self, whose: &Whose, before: Option<(i64, String)>, size: u32) -> Result<Page, Error> {
        let (created, id) = before.unwrap_or((i64::MAX, String::new()));
        let whose = whose.clone();
        let page = self.read_beside(move |_, db| {
            let (team, user, session) = whose.columns();
            db.all(
                PAGE,
                (team, user, session, created, id, i64::from(size) + 1),
                rows::read,
            )
        });
        let mut reviews = page.await?;
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

    async fn changes(&self, whose: &Whose, after: u64, which: &'static str, limit: u32) -> Result<Changes, Error> {
        let whose = whose.clone();
        // One view for rows and last number, so that no change falls between the two.
        let changes = self.read_beside(move |_, db| {
            let last = rows::last_change(db, &whose.team)?;
            Ok((
                changed(db, &whose, after, which, limit)?,
                u64::try_from(last).unwrap_or(0),
            ))
        });
        let (reviews, last) = changes.await?;
        // A full page ends where it ends; what lies beyond comes with the next.
        let last = match reviews.last() {
            Some((number, _)) if reviews.len() >= limit as usize => *number,
            _ => last,
        };
        Ok(Changes { reviews, last })
    }
}

/// Changes with their numbers.
fn changed(db: Db<'_>, whose: &Whose, after: u64, which: &str, limit: u32) -> Result<Vec<(u64, Review)>, Failure> {
    let (team, user, session) = whose.columns();
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    db.all(CHANGED, (team, user, session, after, which, limit), |row: &Row<'_>| {
        let number: i64 = row.get("change_seq")?;
        Ok((u64::try_from(number).unwrap_or(0), rows::read(row)?))
    })
}
