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
use steward_store::{Db, Sqlite, SqliteOptions, StoreError};

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
            on_migrate: None,
            on_open: None,
        };
        Ok(Self {
            sqlite: Sqlite::open(path, options).await?,
        })
    }

    pub(crate) async fn close(&self) {
        self.sqlite.close().await;
    }

    async fn update<T: Send + 'static>(
        &self,
        work: impl FnOnce(Db<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreFailure> {
        Ok(self.sqlite.update(work).await?)
    }

    async fn view<T>(&self, work: impl FnOnce(Db<'_>) -> Result<T, Failure>) -> Result<T, StoreFailure> {
        Ok(self.sqlite.view(work).await?)
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
        self.view(read::home_team).await
    }

    async fn create_team(
        &self,
        team: &Team,
        admin: &User,
        home: bool,
        request: Option<&RequestKey>,
    ) -> Result<Written<(Team, User)>, StoreFailure> {
        let (team, admin, request) = (team.clone(), admin.clone(), request.cloned());
        self.update(move |db| write::create_team(db, team, admin, home, request.as_ref()))
            .await
    }

    async fn team(&self, team: &TeamId) -> Result<Option<Team>, StoreFailure> {
        self.view(|db| read::team(db, team)).await
    }

    async fn teams(&self, after: Option<&str>, limit: u32) -> Result<Page<Team>, StoreFailure> {
        self.view(|db| read::teams(db, after.unwrap_or_default(), limit)).await
    }

    async fn create_user(&self, user: &User, request: Option<&RequestKey>) -> Result<Written<User>, StoreFailure> {
        let (user, request) = (user.clone(), request.cloned());
        self.update(move |db| write::create_user(db, user, request.as_ref()))
            .await
    }

    async fn user(&self, team: &TeamId, user: &UserId) -> Result<Option<User>, StoreFailure> {
        self.view(|db| read::user(db, team, user)).await
    }

    async fn users(&self, team: &TeamId, after: Option<&str>, limit: u32) -> Result<Page<User>, StoreFailure> {
        self.view(|db| read::users(db, team, after.unwrap_or_default(), limit))
            .await
    }

    async fn update_user(
        &self,
        team: &TeamId,
        user: &UserId,
        update: UserUpdate,
    ) -> Result<Written<User>, StoreFailure> {
        let (team, user) = (team.clone(), user.clone());
        self.update(move |db| write::update_user(db, &team, &user, &update))
            .await
    }

    async fn insert_token(&self, token: &AccessToken) -> Result<Written<()>, StoreFailure> {
        let token = token.clone();
        self.update(move |db| write::insert_token(db, &token)).await
    }

    async fn token(&self, team: &TeamId, token: &TokenId) -> Result<Option<AccessToken>, StoreFailure> {
        self.view(|db| read::token(db, team, token)).await
    }

    async fn tokens(
        &self,
        team: &TeamId,
        user: Option<&UserId>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Page<AccessToken>, StoreFailure> {
        self.view(|db| read::tokens(db, team, user, after, limit)).await
    }

    async fn revoke_token(
        &self,
        team: &TeamId,
        token: &TokenId,
        now: Timestamp,
    ) -> Result<Written<AccessToken>, StoreFailure> {
        let (team, token) = (team.clone(), token.clone());
        self.update(move |db| write::revoke_token(db, &team, &token, now)).await
    }

    async fn revocations(&self, now: Timestamp) -> Result<Vec<Revocation>, StoreFailure> {
        // Of all teams.
        Ok(self.sqlite.view_beside(move |db| read::revocations(db, now)).await?)
    }
}
