//! Letting go of a person's reviews (`M-14`): rows with the opening words of their writes, and the journals, which hold whole
//! requests and replies. What is removed is overwritten on disk, since the database is opened with `secure_delete`.

use steward_base::names::{ReviewId, TeamId, UserId};
use steward_curator_core::Error;
use steward_curator_core::review::Ending;
use steward_store::Db;

use super::{Cancelled, Failure, Ledger, by_a_person, rows};

/// What lets go of a review: of what its job went through, then of its row.
const ERASE: [&str; 4] = [
    "DELETE FROM journal_opening WHERE team = ? AND job = ?",
    "DELETE FROM journal_reply WHERE team = ? AND job = ?",
    "DELETE FROM journal_answer WHERE team = ? AND job = ?",
    "DELETE FROM review WHERE team = ? AND id = ?",
];

impl Ledger {
    /// Removes the person's reviews. Those that wait are cancelled first; those that run are asked to stop, stay, and are
    /// answered.
    pub(crate) async fn erase_reviews(&self, team: &TeamId, user: &UserId) -> Result<(u64, Vec<ReviewId>), Error> {
        let (team, user) = (team.clone(), user.clone());
        let erased = self
            .write_and_tell(move |ledger, db| ledger.erase_in(db, &team, &user))
            .await?;
        // Out of the log, too. A reader that is in the way lets it go with the next one.
        if erased.0 > 0
            && let Err(error) = self.sqlite.checkpoint().await
        {
            tracing::warn!(
                error = steward_base::error_chain(&error),
                "the log still holds what was erased"
            );
        }
        Ok(erased)
    }

    fn erase_in(&self, db: Db<'_>, team: &TeamId, user: &UserId) -> Result<(u64, Vec<ReviewId>), Failure> {
        let sql = "SELECT * FROM review WHERE team = ? AND user_id = ?";
        let found = db.all(sql, (team.as_str(), user.as_str()), rows::read)?;
        let (mut erased, mut running) = (0, Vec::new());
        for mut review in found {
            let id = review.id.clone();
            if review.ended_at.is_none() {
                if self.steps.cancel(db, team, id.as_str())? != Cancelled::AtOnce {
                    running.push(id);
                    continue;
                }
                let report = review.report.clone();
                review.end(Ending::Cancelled(by_a_person()), report, self.clock.now());
            }
            for erase in ERASE {
                db.execute(erase, (team.as_str(), id.as_str()))?;
            }
            erased += 1;
        }
        Ok((erased, running))
    }
}
