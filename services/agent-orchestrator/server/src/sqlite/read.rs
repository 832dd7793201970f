//! Reading teams, users, tokens and revocations.

use steward_base::Timestamp;
use steward_base::names::{TeamId, TokenId, UserId};
use steward_orchestrator_core::access::{AccessToken, Page, Revocation, Revoked, Team, User};
use steward_store::Sqlite;

use super::Failure;
use super::rows::{TeamRow, TokenRow, UserRow, team_id, user_id};

const HOME: &str = "SELECT team FROM team WHERE home = 1";
const TEAM: &str = "SELECT team, display_name, created_at FROM team WHERE team = ?";
const TEAMS: &str = "SELECT team, display_name, created_at FROM team WHERE team > ? ORDER BY team LIMIT ?";
pub(super) const USER: &str =
    "SELECT team, user, display_name, role, disabled, created_at FROM user WHERE team = ? AND user = ?";
const USERS: &str = "\
SELECT team, user, display_name, role, disabled, created_at FROM user
WHERE team = ? AND user > ? ORDER BY user LIMIT ?";
pub(super) const TOKEN: &str = "\
SELECT team, token, user, label, created_at, expires_at, revoked_at FROM token WHERE team = ? AND token = ?";
const TOKENS: &str = "\
SELECT team, token, user, label, created_at, expires_at, revoked_at FROM token
WHERE team = ?1 AND (?2 IS NULL OR user = ?2) AND (?3 IS NULL OR token < ?3)
ORDER BY token DESC LIMIT ?4";
const REVOKED_TOKENS: &str =
    "SELECT token, expires_at FROM token WHERE revoked_at IS NOT NULL AND expires_at > ? ORDER BY token";
const DISABLED_USERS: &str = "SELECT team, user FROM user WHERE disabled = 1 ORDER BY team, user";

/// One more than asked for shows whether there is another page.
fn over(limit: u32) -> i64 {
    i64::from(limit) + 1
}

fn all<R, T: TryFrom<R, Error = Failure>>(rows: Vec<R>) -> Result<Vec<T>, Failure> {
    rows.into_iter().map(T::try_from).collect()
}

pub(super) async fn home_team(sqlite: &Sqlite) -> Result<Option<TeamId>, Failure> {
    let mut connection = sqlite.read().await?;
    let home: Option<String> = sqlx::query_scalar(HOME).fetch_optional(&mut *connection).await?;
    home.as_deref().map(team_id).transpose()
}

pub(super) async fn team(sqlite: &Sqlite, team: &TeamId) -> Result<Option<Team>, Failure> {
    let mut connection = sqlite.read().await?;
    let row: Option<TeamRow> = sqlx::query_as(TEAM)
        .bind(team.as_str())
        .fetch_optional(&mut *connection)
        .await?;
    row.map(Team::try_from).transpose()
}

pub(super) async fn teams(sqlite: &Sqlite, after: &str, limit: u32) -> Result<Page<Team>, Failure> {
    let mut connection = sqlite.read().await?;
    let rows: Vec<TeamRow> = sqlx::query_as(TEAMS)
        .bind(after)
        .bind(over(limit))
        .fetch_all(&mut *connection)
        .await?;
    Ok(Page::cut(all(rows)?, limit, |team: &Team| team.id.to_string()))
}

pub(super) async fn user(sqlite: &Sqlite, team: &TeamId, user: &UserId) -> Result<Option<User>, Failure> {
    let mut connection = sqlite.read().await?;
    let row: Option<UserRow> = sqlx::query_as(USER)
        .bind(team.as_str())
        .bind(user.as_str())
        .fetch_optional(&mut *connection)
        .await?;
    row.map(User::try_from).transpose()
}

pub(super) async fn users(sqlite: &Sqlite, team: &TeamId, after: &str, limit: u32) -> Result<Page<User>, Failure> {
    let mut connection = sqlite.read().await?;
    let rows: Vec<UserRow> = sqlx::query_as(USERS)
        .bind(team.as_str())
        .bind(after)
        .bind(over(limit))
        .fetch_all(&mut *connection)
        .await?;
    Ok(Page::cut(all(rows)?, limit, |user: &User| user.id.to_string()))
}

pub(super) async fn token(sqlite: &Sqlite, team: &TeamId, token: &TokenId) -> Result<Option<AccessToken>, Failure> {
    let mut connection = sqlite.read().await?;
    let row: Option<TokenRow> = sqlx::query_as(TOKEN)
        .bind(team.as_str())
        .bind(token.as_str())
        .fetch_optional(&mut *connection)
        .await?;
    row.map(AccessToken::try_from).transpose()
}

pub(super) async fn tokens(
    sqlite: &Sqlite,
    team: &TeamId,
    user: Option<&UserId>,
    after: Option<&str>,
    limit: u32,
) -> Result<Page<AccessToken>, Failure> {
    let mut connection = sqlite.read().await?;
    let rows: Vec<TokenRow> = sqlx::query_as(TOKENS)
        .bind(team.as_str())
        .bind(user.map(UserId::as_str))
        .bind(after)
        .bind(over(limit))
        .fetch_all(&mut *connection)
        .await?;
    Ok(Page::cut(all(rows)?, limit, |token: &AccessToken| token.id.to_string()))
}

pub(super) async fn revocations(sqlite: &Sqlite, now: Timestamp) -> Result<Vec<Revocation>, Failure> {
    let mut connection = sqlite.read().await?;
    let tokens: Vec<(String, i64)> = sqlx::query_as(REVOKED_TOKENS)
        .bind(now.as_micros())
        .fetch_all(&mut *connection)
        .await?;
    let users: Vec<(String, String)> = sqlx::query_as(DISABLED_USERS).fetch_all(&mut *connection).await?;
    let mut revocations: Vec<Revocation> = tokens
        .into_iter()
        .map(|(token, expires)| Revocation {
            subject: Revoked::Token(token),
            expires: Some(Timestamp::from_micros(expires)),
        })
        .collect();
    for (team, user) in users {
        revocations.push(Revocation {
            subject: Revoked::User(team_id(&team)?, user_id(&user)?),
            expires: None,
        });
    }
    Ok(revocations)
}
