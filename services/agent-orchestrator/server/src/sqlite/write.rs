//! Writing: each function is the body of one transaction.

use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::sqlite::SqliteConnection;
use steward_base::Timestamp;
use steward_base::names::{TeamId, TokenId, UserId};
use steward_orchestrator_core::access::{AccessToken, RequestKey, Team, User, UserUpdate, Written};

use super::read::{TOKEN, USER};
use super::rows::{TokenRow, UserRow, role_name};
use super::{Failure, damaged};

/// The first answer to a request, if it was made before.
enum Earlier<T> {
    No,
    Same(T),
    Other,
}

async fn earlier<T: DeserializeOwned>(
    connection: &mut SqliteConnection,
    request: Option<&RequestKey>,
) -> Result<Earlier<T>, Failure> {
    let Some(key) = request else { return Ok(Earlier::No) };
    let kept: Option<(String, String)> =
        sqlx::query_as("SELECT hash, answer FROM request WHERE team = ? AND scope = ? AND request_id = ?")
            .bind(key.team.as_str())
            .bind(key.scope)
            .bind(&key.id)
            .fetch_optional(connection)
            .await?;
    match kept {
        None => Ok(Earlier::No),
        Some((hash, _)) if hash != key.hash => Ok(Earlier::Other),
        Some((_, answer)) => match serde_json::from_str(&answer) {
            Ok(answer) => Ok(Earlier::Same(answer)),
            Err(_) => Err(damaged("answer of request", &key.id)),
        },
    }
}

async fn keep<T: Serialize + Sync>(
    connection: &mut SqliteConnection,
    request: Option<&RequestKey>,
    answer: &T,
) -> Result<(), Failure> {
    let Some(key) = request else { return Ok(()) };
    let answer = serde_json::to_string(answer).map_err(|error| Failure::Damaged(error.to_string()))?;
    sqlx::query("INSERT INTO request (team, scope, request_id, hash, answer) VALUES (?, ?, ?, ?, ?)")
        .bind(key.team.as_str())
        .bind(key.scope)
        .bind(&key.id)
        .bind(&key.hash)
        .bind(answer)
        .execute(connection)
        .await?;
    Ok(())
}

async fn exists(connection: &mut SqliteConnection, team: &TeamId) -> Result<bool, Failure> {
    let found: Option<i64> = sqlx::query_scalar("SELECT 1 FROM team WHERE team = ?")
        .bind(team.as_str())
        .fetch_optional(connection)
        .await?;
    Ok(found.is_some())
}

async fn find_user(connection: &mut SqliteConnection, team: &TeamId, user: &UserId) -> Result<Option<User>, Failure> {
    let row: Option<UserRow> = sqlx::query_as(USER)
        .bind(team.as_str())
        .bind(user.as_str())
        .fetch_optional(connection)
        .await?;
    row.map(User::try_from).transpose()
}

async fn insert_user(connection: &mut SqliteConnection, user: &User) -> Result<(), Failure> {
    sqlx::query("INSERT INTO user (team, user, display_name, role, disabled, created_at) VALUES (?, ?, ?, ?, ?, ?)")
        .bind(user.team.as_str())
        .bind(user.id.as_str())
        .bind(&user.display_name)
        .bind(role_name(user.role))
        .bind(user.disabled)
        .bind(user.created.as_micros())
        .execute(connection)
        .await?;
    Ok(())
}

pub(super) async fn create_team(
    connection: &mut SqliteConnection,
    team: Team,
    admin: User,
    home: bool,
    request: Option<RequestKey>,
) -> Result<Written<(Team, User)>, Failure> {
    match earlier(connection, request.as_ref()).await? {
        Earlier::Same(answer) => return Ok(Written::Done(answer)),
        Earlier::Other => return Ok(Written::RequestReused),
        Earlier::No => {}
    }
    let homes: i64 = sqlx::query_scalar("SELECT count(*) FROM team WHERE home = 1")
        .fetch_one(&mut *connection)
        .await?;
    if exists(connection, &team.id).await? || (home && homes > 0) {
        return Ok(Written::Exists);
    }
    sqlx::query("INSERT INTO team (team, display_name, home, created_at) VALUES (?, ?, ?, ?)")
        .bind(team.id.as_str())
        .bind(&team.display_name)
        .bind(home)
        .bind(team.created.as_micros())
        .execute(&mut *connection)
        .await?;
    insert_user(connection, &admin).await?;
    let answer = (team, admin);
    keep(connection, request.as_ref(), &answer).await?;
    Ok(Written::Done(answer))
}

pub(super) async fn create_user(
    connection: &mut SqliteConnection,
    user: User,
    request: Option<RequestKey>,
) -> Result<Written<User>, Failure> {
    match earlier(connection, request.as_ref()).await? {
        Earlier::Same(answer) => return Ok(Written::Done(answer)),
        Earlier::Other => return Ok(Written::RequestReused),
        Earlier::No => {}
    }
    if !exists(connection, &user.team).await? {
        return Ok(Written::Missing);
    }
    if find_user(connection, &user.team, &user.id).await?.is_some() {
        return Ok(Written::Exists);
    }
    insert_user(connection, &user).await?;
    keep(connection, request.as_ref(), &user).await?;
    Ok(Written::Done(user))
}

pub(super) async fn update_user(
    connection: &mut SqliteConnection,
    team: TeamId,
    user: UserId,
    update: UserUpdate,
) -> Result<Written<User>, Failure> {
    let Some(before) = find_user(connection, &team, &user).await? else {
        return Ok(Written::Missing);
    };
    if update.removes_admin(&before) {
        let others: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM user WHERE team = ? AND user <> ? AND role = 'admin' AND disabled = 0",
        )
        .bind(team.as_str())
        .bind(user.as_str())
        .fetch_one(&mut *connection)
        .await?;
        if others == 0 {
            return Ok(Written::LastAdmin);
        }
    }
    if update.lowers_role(&before) {
        sqlx::query("UPDATE token SET revoked_at = ? WHERE team = ? AND user = ? AND revoked_at IS NULL")
            .bind(update.now.as_micros())
            .bind(team.as_str())
            .bind(user.as_str())
            .execute(&mut *connection)
            .await?;
    }
    let after = update.applied(&before);
    sqlx::query("UPDATE user SET role = ?, disabled = ? WHERE team = ? AND user = ?")
        .bind(role_name(after.role))
        .bind(after.disabled)
        .bind(team.as_str())
        .bind(user.as_str())
        .execute(connection)
        .await?;
    Ok(Written::Done(after))
}

pub(super) async fn insert_token(
    connection: &mut SqliteConnection,
    token: AccessToken,
) -> Result<Written<()>, Failure> {
    if find_user(connection, &token.team, &token.user).await?.is_none() {
        return Ok(Written::Missing);
    }
    let inserted = sqlx::query(
        "INSERT INTO token (team, token, user, label, created_at, expires_at, revoked_at)
         VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (team, token) DO NOTHING",
    )
    .bind(token.team.as_str())
    .bind(token.id.as_str())
    .bind(token.user.as_str())
    .bind(&token.label)
    .bind(token.created.as_micros())
    .bind(token.expires.as_micros())
    .bind(token.revoked.map(Timestamp::as_micros))
    .execute(connection)
    .await?;
    Ok(if inserted.rows_affected() == 1 {
        Written::Done(())
    } else {
        Written::Exists
    })
}

pub(super) async fn revoke_token(
    connection: &mut SqliteConnection,
    team: TeamId,
    token: TokenId,
    now: Timestamp,
) -> Result<Written<AccessToken>, Failure> {
    sqlx::query("UPDATE token SET revoked_at = ? WHERE team = ? AND token = ? AND revoked_at IS NULL")
        .bind(now.as_micros())
        .bind(team.as_str())
        .bind(token.as_str())
        .execute(&mut *connection)
        .await?;
    let row: Option<TokenRow> = sqlx::query_as(TOKEN)
        .bind(team.as_str())
        .bind(token.as_str())
        .fetch_optional(connection)
        .await?;
    Ok(match row {
        Some(row) => Written::Done(AccessToken::try_from(row)?),
        None => Written::Missing,
    })
}
