//! Rows as the tables hold them, and the values that they stand for. A value that nothing ever wrote is damage and is
//! reported as such, never guessed at. Each `read` takes the columns in the order of the statement.

use steward_base::names::{TeamId, TokenId, UserId};
use steward_base::{Role, Timestamp};
use steward_orchestrator_core::access::{AccessToken, Team, User};
use steward_store::{Row, StoreError};

use super::{Failure, damaged};

#[derive(Debug)]
pub(super) struct TeamRow {
    team: String,
    display_name: String,
    created_at: i64,
}

#[derive(Debug)]
pub(super) struct UserRow {
    team: String,
    user: String,
    display_name: String,
    role: String,
    disabled: bool,
    created_at: i64,
}

#[derive(Debug)]
pub(super) struct TokenRow {
    team: String,
    token: String,
    user: String,
    label: String,
    created_at: i64,
    expires_at: i64,
    revoked_at: Option<i64>,
}

impl TeamRow {
    pub(super) fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            team: row.get(0)?,
            display_name: row.get(1)?,
            created_at: row.get(2)?,
        })
    }
}

impl UserRow {
    pub(super) fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            team: row.get(0)?,
            user: row.get(1)?,
            display_name: row.get(2)?,
            role: row.get(3)?,
            disabled: row.get(4)?,
            created_at: row.get(5)?,
        })
    }
}

impl TokenRow {
    pub(super) fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            team: row.get(0)?,
            token: row.get(1)?,
            user: row.get(2)?,
            label: row.get(3)?,
            created_at: row.get(4)?,
            expires_at: row.get(5)?,
            revoked_at: row.get(6)?,
        })
    }
}

pub(super) fn team_id(text: &str) -> Result<TeamId, Failure> {
    TeamId::parse(text).map_err(|_| damaged("team", text))
}

pub(super) fn user_id(text: &str) -> Result<UserId, Failure> {
    UserId::parse(text).map_err(|_| damaged("user", text))
}

pub(super) const fn role_name(role: Role) -> &'static str {
    match role {
        Role::Viewer => "viewer",
        Role::Member => "member",
        Role::Maintainer => "maintainer",
        Role::Admin => "admin",
    }
}

pub(super) fn role(text: &str) -> Result<Role, Failure> {
    [Role::Viewer, Role::Member, Role::Maintainer, Role::Admin]
        .into_iter()
        .find(|role| role_name(*role) == text)
        .ok_or_else(|| damaged("role", text))
}

impl TryFrom<TeamRow> for Team {
    type Error = Failure;

    fn try_from(row: TeamRow) -> Result<Self, Failure> {
        Ok(Self {
            id: team_id(&row.team)?,
            display_name: row.display_name,
            created: Timestamp::from_micros(row.created_at),
        })
    }
}

impl TryFrom<UserRow> for User {
    type Error = Failure;

    fn try_from(row: UserRow) -> Result<Self, Failure> {
        Ok(Self {
            team: team_id(&row.team)?,
            id: user_id(&row.user)?,
            display_name: row.display_name,
            role: role(&row.role)?,
            disabled: row.disabled,
            created: Timestamp::from_micros(row.created_at),
        })
    }
}

impl TryFrom<TokenRow> for AccessToken {
    type Error = Failure;

    fn try_from(row: TokenRow) -> Result<Self, Failure> {
        Ok(Self {
            team: team_id(&row.team)?,
            user: user_id(&row.user)?,
            id: TokenId::parse(row.token.clone()).map_err(|_| damaged("token", &row.token))?,
            label: row.label,
            created: Timestamp::from_micros(row.created_at),
            expires: Timestamp::from_micros(row.expires_at),
            revoked: row.revoked_at.map(Timestamp::from_micros),
        })
    }
}
