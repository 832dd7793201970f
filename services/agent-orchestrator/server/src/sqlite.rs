//! Access in SQLite: one database for all teams, `access.db`. Not a rule here: what may be written is decided in the core;
//! the checks in these transactions are those that only a transaction can make.

mod owed;
mod read;
mod rows;
#[cfg(test)]
mod tests;
mod write;

use std::path::PathBuf;

use async_trait::async_trait;
use steward_base::Timestamp;
use steward_base::names::{TeamId, TokenId, UserId};
use steward_orchestrator_core::access::{
    AccessStore, AccessToken, Page, RequestKey, Revocation, StoreFailure, Team, User, UserUpdate, Written,
};
use steward_store::{Sqlite, SqliteOptions, StoreError};

static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!();

/// The [`AccessStore`] of an installation on one machine.
#[derive(Debug, Clone)]
pub(crate) struct SqliteAccessStore {
    sqlite: Sqlite,
}

impl SqliteAccessStore {
    pub(crate) async fn open(path: PathBuf, readers: u32) -> Result<Self, StoreError> {
        let options = SqliteOptions {
            migrator: &MIGRATIONS,
            readers,
            on_connect: None,
        };
        Ok(Self {
            sqlite: Sqlite::open(path, options).await?,
        })
    }

    pub(crate) async fn close(&self) {
        self.sqlite.close().await;
    }

    async fn write<T, F>(&self, operation: F) -> Result<T, StoreFailure>
    where
        F: for<'c> FnOnce(&'c mut sqlx::SqliteConnection) -> steward_store::BoxFuture<'c, Result<T, Failure>>
            + Send
            + 'static,
        T: Send + 'static,
    {
        Ok(self.sqlite.write(operation).await?)
    }
}

/// What the engine or a row says; becomes a [`StoreFailure`].
#[derive(Debug)]
enum Failure {
    Store(StoreError),
    Damaged(String),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

impl From<Failure> for StoreFailure {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Damaged(what) => Self::Damaged(what.into()),
            Failure::Store(error) => match error {
                StoreError::Unavailable { .. } | StoreError::Closed => Self::Unavailable(Box::new(error)),
                StoreError::Full => Self::Full,
                StoreError::Damaged { .. } => Self::Damaged(Box::new(error)),
                StoreError::InUse { .. }
                | StoreError::NewerSchema { .. }
                | StoreError::Migration { .. }
                | StoreError::Constraint { .. }
                | StoreError::TargetExists { .. }
                | StoreError::Panicked
                | StoreError::Statement { .. } => Self::Internal(Box::new(error)),
            },
        }
    }
}

/// A stored value that is none of those that are ever written.
fn damaged(what: &str, value: &str) -> Failure {
    Failure::Damaged(format!("{what} {value:?} is not one that is ever written"))
}

#[async_trait]
impl AccessStore for SqliteAccessStore {
    async fn home_team(&self) -> Result<Option<TeamId>, StoreFailure> {
        Ok(read::home_team(&self.sqlite).await?)
    }

    async fn create_team(
        &self,
        team: &Team,
        admin: &User,
        home: bool,
        request: Option<&RequestKey>,
    ) -> Result<Written<(Team, User)>, StoreFailure> {
        let (team, admin, request) = (team.clone(), admin.clone(), request.cloned());
        self.write(move |connection| Box::pin(write::create_team(connection, team, admin, home, request)))
            .await
    }

    async fn team(&self, team: &TeamId) -> Result<Option<Team>, StoreFailure> {
        Ok(read::team(&self.sqlite, team).await?)
    }

    async fn teams(&self, after: Option<&str>, limit: u32) -> Result<Page<Team>, StoreFailure> {
        Ok(read::teams(&self.sqlite, after.unwrap_or_default(), limit).await?)
    }

    async fn create_user(&self, user: &User, request: Option<&RequestKey>) -> Result<Written<User>, StoreFailure> {
        let (user, request) = (user.clone(), request.cloned());
        self.write(move |connection| Box::pin(write::create_user(connection, user, request)))
            .await
    }

    async fn user(&self, team: &TeamId, user: &UserId) -> Result<Option<User>, StoreFailure> {
        Ok(read::user(&self.sqlite, team, user).await?)
    }

    async fn users(&self, team: &TeamId, after: Option<&str>, limit: u32) -> Result<Page<User>, StoreFailure> {
        Ok(read::users(&self.sqlite, team, after.unwrap_or_default(), limit).await?)
    }

    async fn update_user(
        &self,
        team: &TeamId,
        user: &UserId,
        update: UserUpdate,
    ) -> Result<Written<User>, StoreFailure> {
        let (team, user) = (team.clone(), user.clone());
        self.write(move |connection| Box::pin(write::update_user(connection, team, user, update)))
            .await
    }

    async fn insert_token(&self, token: &AccessToken) -> Result<Written<()>, StoreFailure> {
        let token = token.clone();
        self.write(move |connection| Box::pin(write::insert_token(connection, token)))
            .await
    }

    async fn token(&self, team: &TeamId, token: &TokenId) -> Result<Option<AccessToken>, StoreFailure> {
        Ok(read::token(&self.sqlite, team, token).await?)
    }

    async fn tokens(
        &self,
        team: &TeamId,
        user: Option<&UserId>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Page<AccessToken>, StoreFailure> {
        Ok(read::tokens(&self.sqlite, team, user, after, limit).await?)
    }

    async fn revoke_token(
        &self,
        team: &TeamId,
        token: &TokenId,
        now: Timestamp,
    ) -> Result<Written<AccessToken>, StoreFailure> {
        let (team, token) = (team.clone(), token.clone());
        self.write(move |connection| Box::pin(write::revoke_token(connection, team, token, now)))
            .await
    }

    async fn revocations(&self, now: Timestamp) -> Result<Vec<Revocation>, StoreFailure> {
        Ok(read::revocations(&self.sqlite, now).await?)
    }
}
