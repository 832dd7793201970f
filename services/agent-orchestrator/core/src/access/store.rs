//! The port to the store of teams, users and tokens. Every write is one transaction, durable when answered.

use std::fmt;

use async_trait::async_trait;
use steward_base::names::{TeamId, TokenId, UserId};
use steward_base::{ErrorKind, Fault, Role, Timestamp};

use super::model::{AccessToken, Page, RequestKey, Revocation, Team, User};

/// Why the store did not do what it was asked; expected refusals are answers, not failures.
#[derive(Debug, thiserror::Error)]
pub enum StoreFailure {
    /// It does not answer.
    #[error("the access store does not answer")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// No room left; nothing was changed.
    #[error("the disk is full; nothing was changed")]
    Full,
    /// What is stored is damaged; nothing was changed.
    #[error("the access store is damaged")]
    Damaged(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A fault of ours.
    #[error("the access store refused a statement")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Fault for StoreFailure {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Unavailable(_) => ErrorKind::Unavailable,
            Self::Full => ErrorKind::Exhausted,
            Self::Damaged(_) => ErrorKind::DataLoss,
            Self::Internal(_) => ErrorKind::Internal,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::Unavailable(_) => "DEPENDENCY_UNAVAILABLE",
            Self::Full => "STORAGE_FULL",
            Self::Damaged(_) => "DATA_DAMAGED",
            Self::Internal(_) => "INTERNAL",
        }
    }

    fn metadata(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Unavailable(_) => vec![("dependency", "access store".to_owned())],
            Self::Full | Self::Damaged(_) | Self::Internal(_) => Vec::new(),
        }
    }
}

/// What became of a write that may meet something else first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written<T> {
    /// It was written now, or by an earlier request with the same key: the first answer.
    Done(T),
    /// The id is taken; nothing was changed.
    Exists,
    /// What it would change is not there.
    Missing,
    /// The team would be left without an enabled admin; nothing was changed.
    LastAdmin,
    /// The request id belongs to another request; nothing was changed.
    RequestReused,
}

/// A change of a user, decided inside the store's transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserUpdate {
    /// New role; `None` leaves it.
    pub role: Option<Role>,
    /// Whether the user is disabled; `None` leaves it.
    pub disabled: Option<bool>,
    /// The present time, for tokens that the change ends.
    pub now: Timestamp,
}

impl UserUpdate {
    /// The user after the change.
    #[must_use]
    pub fn applied(self, user: &User) -> User {
        User {
            role: self.role.unwrap_or(user.role),
            disabled: self.disabled.unwrap_or(user.disabled),
            ..user.clone()
        }
    }

    /// Whether the user administers the team before the change and not after it.
    pub fn removes_admin(self, user: &User) -> bool {
        let administers = |user: &User| user.role >= Role::Admin && !user.disabled;
        administers(user) && !administers(&self.applied(user))
    }

    /// Whether tokens that were signed before would claim more than the user may from now on.
    pub fn lowers_role(self, user: &User) -> bool {
        self.applied(user).role < user.role
    }
}

/// Stores teams, users, tokens and the answers of idempotent requests.
#[async_trait]
pub trait AccessStore: fmt::Debug + Send + Sync {
    /// The installation's home team; `None` before the first start.
    async fn home_team(&self) -> Result<Option<TeamId>, StoreFailure>;

    /// Creates a team with its first admin; `home` marks the installation's own, of which there is one.
    async fn create_team(
        &self,
        team: &Team,
        admin: &User,
        home: bool,
        request: Option<&RequestKey>,
    ) -> Result<Written<(Team, User)>, StoreFailure>;

    /// A team.
    async fn team(&self, team: &TeamId) -> Result<Option<Team>, StoreFailure>;

    /// Teams by id, after a cursor.
    async fn teams(&self, after: Option<&str>, limit: u32) -> Result<Page<Team>, StoreFailure>;

    /// Creates a user; [`Written::Missing`] without its team.
    async fn create_user(&self, user: &User, request: Option<&RequestKey>) -> Result<Written<User>, StoreFailure>;

    /// A user.
    async fn user(&self, team: &TeamId, user: &UserId) -> Result<Option<User>, StoreFailure>;

    /// Users of a team by id, after a cursor.
    async fn users(&self, team: &TeamId, after: Option<&str>, limit: u32) -> Result<Page<User>, StoreFailure>;

    /// Changes a user. In the same transaction: refuses to take a team's last enabled admin away, and revokes the
    /// tokens of a user whose role falls, since each of them says the old one.
    async fn update_user(
        &self,
        team: &TeamId,
        user: &UserId,
        update: UserUpdate,
    ) -> Result<Written<User>, StoreFailure>;

    /// Keeps a token's record; [`Written::Missing`] without its user.
    async fn insert_token(&self, token: &AccessToken) -> Result<Written<()>, StoreFailure>;

    /// A token of a team.
    async fn token(&self, team: &TeamId, token: &TokenId) -> Result<Option<AccessToken>, StoreFailure>;

    /// Tokens of one user or of the whole team, newest first, after a cursor (a token id).
    async fn tokens(
        &self,
        team: &TeamId,
        user: Option<&UserId>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Page<AccessToken>, StoreFailure>;

    /// Revokes a token; one that is revoked already keeps its time.
    async fn revoke_token(
        &self,
        team: &TeamId,
        token: &TokenId,
        now: Timestamp,
    ) -> Result<Written<AccessToken>, StoreFailure>;

    /// Everything that is revoked and not yet over: tokens that have not ended, and disabled users.
    async fn revocations(&self, now: Timestamp) -> Result<Vec<Revocation>, StoreFailure>;
}
