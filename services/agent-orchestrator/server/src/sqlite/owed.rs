//! What external memories are still to be told, beside access in one file: this service has no other.

use async_trait::async_trait;
use steward_base::Timestamp;
use steward_base::names::{SessionId, TeamId, UserId};
use steward_orchestrator_core::Error;
use steward_orchestrator_core::session::SessionKey;
use steward_store::{Row, StoreError};

use super::rows::{role, role_name};
use super::{Failure, SqliteAccessStore, damaged};
use crate::owed::{Debt, Owed, What};
use crate::signer::Person;

#[derive(Debug)]
struct DebtRow {
    team: String,
    session: String,
    turn: String,
    user: String,
    role: String,
    since: i64,
}

impl DebtRow {
    fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            team: row.get(0)?,
            session: row.get(1)?,
            turn: row.get(2)?,
            user: row.get(3)?,
            role: row.get(4)?,
            since: row.get(5)?,
        })
    }
}

impl TryFrom<DebtRow> for Debt {
    type Error = Failure;

    fn try_from(row: DebtRow) -> Result<Self, Failure> {
        let team = TeamId::parse(row.team.as_str()).map_err(|_| damaged("team", &row.team))?;
        Ok(Self {
            key: SessionKey {
                team: team.clone(),
                id: session(&row.session)?,
            },
            person: Person {
                team,
                user: UserId::parse(row.user.as_str()).map_err(|_| damaged("user", &row.user))?,
                role: role(&row.role)?,
            },
            what: if row.turn.is_empty() {
                What::End
            } else {
                What::Turn(row.turn)
            },
            since: Timestamp::from_micros(row.since),
        })
    }
}

fn session(text: &str) -> Result<SessionId, Failure> {
    SessionId::parse(text).map_err(|_| damaged("session", text))
}

fn turn(what: &What) -> &str {
    match what {
        What::Turn(turn) => turn,
        What::End => "",
    }
}

fn failed(failure: Failure) -> Error {
    match failure {
        Failure::Store(StoreError::Full) => Error::StorageFull,
        Failure::Store(error) => Error::internal("keep what an external memory is to be told", error),
        Failure::Damaged(what) => Error::internal("read what an external memory is to be told", what),
    }
}

#[async_trait]
impl Owed for SqliteAccessStore {
    async fn owe(&self, debt: Debt) -> Result<(), Error> {
        let written = self.sqlite.update(move |db| {
            let values = (
                debt.key.team.as_str(),
                debt.key.id.as_str(),
                turn(&debt.what),
                debt.person.user.as_str(),
                role_name(debt.person.role),
                debt.since.as_micros(),
            );
            db.execute(
                "INSERT INTO owed (team, session, turn, user, role, since) VALUES (?, ?, ?, ?, ?, ?) \
                 ON CONFLICT (team, session, turn) DO NOTHING",
                values,
            )?;
            Ok::<_, Failure>(())
        });
        written.await.map_err(failed)
    }

    async fn of(&self, key: &SessionKey) -> Result<Vec<Debt>, Error> {
        let sql =
            "SELECT team, session, turn, user, role, since FROM owed WHERE team = ? AND session = ? ORDER BY number";
        let read = self.sqlite.view(|db| {
            db.all(sql, (key.team.as_str(), key.id.as_str()), |row| {
                Debt::try_from(DebtRow::read(row)?)
            })
        });
        read.await.map_err(failed)
    }

    async fn sessions(&self, limit: u32) -> Result<Vec<SessionKey>, Error> {
        let sql = "SELECT team, session FROM owed GROUP BY team, session ORDER BY min(number) LIMIT ?";
        let read = self.sqlite.view_beside(move |db| {
            let rows: Vec<(String, String)> =
                db.all(sql, [limit], |row| Ok::<_, StoreError>((row.get(0)?, row.get(1)?)))?;
            let keys = rows.into_iter().map(|(team, id)| {
                Ok(SessionKey {
                    team: TeamId::parse(team.as_str()).map_err(|_| damaged("team", &team))?,
                    id: session(&id)?,
                })
            });
            keys.collect::<Result<Vec<_>, Failure>>()
        });
        read.await.map_err(failed)
    }

    async fn settle(&self, key: &SessionKey, what: &What) -> Result<(), Error> {
        let (key, what) = (key.clone(), what.clone());
        let written = self.sqlite.update(move |db| {
            db.execute(
                "DELETE FROM owed WHERE team = ? AND session = ? AND turn = ?",
                (key.team.as_str(), key.id.as_str(), turn(&what)),
            )?;
            Ok::<_, Failure>(())
        });
        written.await.map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use steward_testkit::TempDir;

    use super::*;
    use crate::owed::contract;

    #[tokio::test]
    async fn sqlite_keeps_what_is_owed() {
        let folder = TempDir::new("owed");
        let store = SqliteAccessStore::open(folder.join("access.db"), 2).await.unwrap();
        contract(&store).await;
        store.close().await;
        let again = SqliteAccessStore::open(folder.join("access.db"), 2).await.unwrap();
        assert_eq!(again.sessions(9).await.unwrap().len(), 2);
        again.close().await;
    }
}
