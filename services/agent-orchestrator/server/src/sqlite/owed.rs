//! What external memories are still to be told, beside access in one file: this service has no other.

use async_trait::async_trait;
use sqlx::FromRow;
use steward_base::Timestamp;
use steward_base::names::{SessionId, TeamId, UserId};
use steward_orchestrator_core::Error;
use steward_orchestrator_core::session::SessionKey;

use super::rows::{role, role_name};
use super::{Failure, SqliteAccessStore, damaged};
use crate::owed::{Debt, Owed, What};
use crate::signer::Person;

#[derive(Debug, FromRow)]
struct Row {
    team: String,
    session: String,
    turn: String,
    user: String,
    role: String,
    since: i64,
}

impl TryFrom<Row> for Debt {
    type Error = Failure;

    fn try_from(row: Row) -> Result<Self, Failure> {
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
        Failure::Store(steward_store::StoreError::Full) => Error::StorageFull,
        Failure::Store(error) => Error::internal("keep what an external memory is to be told", error),
        Failure::Damaged(what) => Error::internal("read what an external memory is to be told", what),
    }
}

#[async_trait]
impl Owed for SqliteAccessStore {
    async fn owe(&self, debt: Debt) -> Result<(), Error> {
        let written = self.sqlite.write(move |connection| {
            Box::pin(async move {
                sqlx::query(
                    "INSERT INTO owed (team, session, turn, user, role, since) VALUES (?, ?, ?, ?, ?, ?) \
                     ON CONFLICT (team, session, turn) DO NOTHING",
                )
                .bind(debt.key.team.as_str())
                .bind(debt.key.id.as_str())
                .bind(turn(&debt.what))
                .bind(debt.person.user.as_str())
                .bind(role_name(debt.person.role))
                .bind(debt.since.as_micros())
                .execute(connection)
                .await?;
                Ok::<_, Failure>(())
            })
        });
        written.await.map_err(failed)
    }

    async fn of(&self, key: &SessionKey) -> Result<Vec<Debt>, Error> {
        let read = async {
            let mut connection = self.sqlite.read().await?;
            let rows: Vec<Row> = sqlx::query_as(
                "SELECT team, session, turn, user, role, since FROM owed WHERE team = ? AND session = ? ORDER BY number",
            )
            .bind(key.team.as_str())
            .bind(key.id.as_str())
            .fetch_all(&mut *connection)
            .await?;
            rows.into_iter()
                .map(Debt::try_from)
                .collect::<Result<Vec<_>, Failure>>()
        };
        read.await.map_err(failed)
    }

    async fn sessions(&self, limit: u32) -> Result<Vec<SessionKey>, Error> {
        let read = async {
            let mut connection = self.sqlite.read().await?;
            let rows: Vec<(String, String)> =
                sqlx::query_as("SELECT team, session FROM owed GROUP BY team, session ORDER BY min(number) LIMIT ?")
                    .bind(i64::from(limit))
                    .fetch_all(&mut *connection)
                    .await?;
            let keys = rows.into_iter().map(|(team, id)| {
                Ok(SessionKey {
                    team: TeamId::parse(team.as_str()).map_err(|_| damaged("team", &team))?,
                    id: session(&id)?,
                })
            });
            keys.collect::<Result<Vec<_>, Failure>>()
        };
        read.await.map_err(failed)
    }

    async fn settle(&self, key: &SessionKey, what: &What) -> Result<(), Error> {
        let (key, what) = (key.clone(), what.clone());
        let written = self.sqlite.write(move |connection| {
            Box::pin(async move {
                sqlx::query("DELETE FROM owed WHERE team = ? AND session = ? AND turn = ?")
                    .bind(key.team.as_str())
                    .bind(key.id.as_str())
                    .bind(turn(&what))
                    .execute(connection)
                    .await?;
                Ok::<_, Failure>(())
            })
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
