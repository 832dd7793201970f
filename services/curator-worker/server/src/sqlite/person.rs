//! Letting go of a person's reviews (`M-14`): rows with the opening words of their writes, and the journals, which hold whole
//! requests and replies. What is removed is overwritten on disk, since the database is opened with `secure_delete`.

use steward_base::names::{ReviewId, TeamId, UserId};
use steward_curator_core::Error;
use steward_curator_core::review::Ending;

use super::{Cancelled, Failure, Ledger, by_a_person, rows};

/// The tables that hold what a job went through.
const JOURNALS: [&str; 3] = ["journal_opening", "journal_reply", "journal_answer"];

impl Ledger {
    /// Removes the person's reviews. Those that wait are cancelled first; those that run are asked to stop, stay, and are
    /// answered.
    pub(crate) async fn erase_reviews(&self, team: &TeamId, user: &UserId) -> Result<(u64, Vec<ReviewId>), Error> {
        let (team, user) = (team.clone(), user.clone());
        let erased = self.write_and_tell(move |ledger, connection| {
            Box::pin(async move {
                let found = sqlx::query("SELECT * FROM review WHERE team = ? AND user_id = ?")
                    .bind(team.as_str())
                    .bind(user.as_str())
                    .fetch_all(&mut *connection)
                    .await?;
                let found = found.iter().map(rows::read).collect::<Result<Vec<_>, Failure>>()?;
                let (mut erased, mut running) = (0, Vec::new());
                for mut review in found {
                    let id = review.id.clone();
                    if review.ended_at.is_none() {
                        if ledger.jobs.cancel(connection, &team, id.as_str()).await? != Cancelled::AtOnce {
                            running.push(id);
                            continue;
                        }
                        let report = review.report.clone();
                        review.end(Ending::Cancelled(by_a_person()), report, ledger.clock.now());
                    }
                    for table in JOURNALS {
                        sqlx::query(sqlx::AssertSqlSafe(format!(
                            "DELETE FROM {table} WHERE team = ? AND job = ?"
                        )))
                        .bind(team.as_str())
                        .bind(id.as_str())
                        .execute(&mut *connection)
                        .await?;
                    }
                    sqlx::query("DELETE FROM review WHERE team = ? AND id = ?")
                        .bind(team.as_str())
                        .bind(id.as_str())
                        .execute(&mut *connection)
                        .await?;
                    erased += 1;
                }
                Ok((erased, running))
            })
        });
        let erased = erased.await?;
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
}
