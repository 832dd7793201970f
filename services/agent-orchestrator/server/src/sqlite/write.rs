//! Writing: each function is the body of one transaction.

use serde::Serialize;
use serde::de::DeserializeOwned;
use steward_base::Timestamp;
use steward_base::names::{TeamId, TokenId, UserId};
use steward_orchestrator_core::access::{AccessToken, RequestKey, Team, User, UserUpdate, Written};
use steward_store::{Db, StoreError, params};

use super::rows::role_name;
use super::{Failure, damaged, read};

/// The first answer to a request, if it was made before.
enum Earlier<T> {
    No,
    Same(T),
    Other,
}

fn earlier<T: DeserializeOwned>(db: Db<'_>, request: Option<&RequestKey>) -> Result<Earlier<T>, Failure> {
    let Some(key) = request else { return Ok(Earlier::No) };
    let sql = "SELECT hash, answer FROM request WHERE team = ? AND scope = ? AND request_id = ?";
    let kept: Option<(String, String)> = db.first(sql, (key.team.as_str(), key.scope, &key.id), |row| {
        Ok::<_, StoreError>((row.get(0)?, row.get(1)?))
    })?;
    match kept {
        None => Ok(Earlier::No),
        Some((hash, _)) if hash != key.hash => Ok(Earlier::Other),
        Some((_, answer)) => match serde_json::from_str(&answer) {
            Ok(answer) => Ok(Earlier::Same(answer)),
            Err(_) => Err(damaged("answer of request", &key.id)),
        },
    }
}

fn keep<T: Serialize>(db: Db<'_>, request: Option<&RequestKey>, answer: &T) -> Result<(), Failure> {
    let Some(key) = request else { return Ok(()) };
    let answer = serde_json::to_string(answer).map_err(|error| Failure::Damaged(error.to_string()))?;
    db.execute(
        "INSERT INTO request (team, scope, request_id, hash, answer) VALUES (?, ?, ?, ?, ?)",
        (key.team.as_str(), key.scope, &key.id, &key.hash, answer),
    )?;
    Ok(())
}

fn exists(db: Db<'_>, team: &TeamId) -> Result<bool, Failure> {
    Ok(db.exists("SELECT 1 FROM team WHERE team = ?", [team.as_str()])?)
}

fn insert_user(db: Db<'_>, user: &User) -> Result<(), Failure> {
    let values = params![
        user.team.as_str(),
        user.id.as_str(),
        user.display_name,
        role_name(user.role),
        user.disabled,
        user.created.as_micros(),
    ];
    db.execute(
        "INSERT INTO user (team, user, display_name, role, disabled, created_at) VALUES (?, ?, ?, ?, ?, ?)",
        values,
    )?;
    Ok(())
}

pub(super) fn create_team(
    db: Db<'_>,
    team: Team,
    admin: User,
    home: bool,
    request: Option<&RequestKey>,
) -> Result<Written<(Team, User)>, Failure> {
    match earlier(db, request)? {
        Earlier::Same(answer) => return Ok(Written::Done(answer)),
        Earlier::Other => return Ok(Written::RequestReused),
        Earlier::No => {}
    }
    if exists(db, &team.id)? || (home && db.exists("SELECT 1 FROM team WHERE home = 1", ())?) {
        return Ok(Written::Exists);
    }
    db.execute(
        "INSERT INTO team (team, display_name, home, created_at) VALUES (?, ?, ?, ?)",
        (team.id.as_str(), &team.display_name, home, team.created.as_micros()),
    )?;
    insert_user(db, &admin)?;
    let answer = (team, admin);
    keep(db, request, &answer)?;
    Ok(Written::Done(answer))
}

pub(super) fn create_user(db: Db<'_>, user: User, request: Option<&RequestKey>) -> Result<Written<User>, Failure> {
    match earlier(db, request)? {
        Earlier::Same(answer) => return Ok(Written::Done(answer)),
        Earlier::Other => return Ok(Written::RequestReused),
        Earlier::No => {}
    }
    if !exists(db, &user.team)? {
        return Ok(Written::Missing);
    }
    if read::user(db, &user.team, &user.id)?.is_some() {
        return Ok(Written::Exists);
    }
    insert_user(db, &user)?;
    keep(db, request, &user)?;
    Ok(Written::Done(user))
}

pub(super) fn update_user(
    db: Db<'_>,
    team: &TeamId,
    user: &UserId,
    update: &UserUpdate,
) -> Result<Written<User>, Failure> {
    let Some(before) = read::user(db, team, user)? else {
        return Ok(Written::Missing);
    };
    let of_the_user = (team.as_str(), user.as_str());
    if update.removes_admin(&before) {
        let other = "SELECT 1 FROM user WHERE team = ? AND user <> ? AND role = 'admin' AND disabled = 0";
        if !db.exists(other, of_the_user)? {
            return Ok(Written::LastAdmin);
        }
    }
    if update.lowers_role(&before) {
        db.execute(
            "UPDATE token SET revoked_at = ? WHERE team = ? AND user = ? AND revoked_at IS NULL",
            (update.now.as_micros(), team.as_str(), user.as_str()),
        )?;
    }
    let after = update.applied(&before);
    db.execute(
        "UPDATE user SET role = ?, disabled = ? WHERE team = ? AND user = ?",
        (role_name(after.role), after.disabled, team.as_str(), user.as_str()),
    )?;
    Ok(Written::Done(after))
}

pub(super) fn insert_token(db: Db<'_>, token: &AccessToken) -> Result<Written<()>, Failure> {
    if read::user(db, &token.team, &token.user)?.is_none() {
        return Ok(Written::Missing);
    }
    let values = params![
        token.team.as_str(),
        token.id.as_str(),
        token.user.as_str(),
        token.label,
        token.created.as_micros(),
        token.expires.as_micros(),
        token.revoked.map(Timestamp::as_micros),
    ];
    let inserted = db.execute(
        "INSERT INTO token (team, token, user, label, created_at, expires_at, revoked_at)
         VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (team, token) DO NOTHING",
        values,
    )?;
    Ok(if inserted == 1 {
        Written::Done(())
    } else {
        Written::Exists
    })
}

pub(super) fn revoke_token(
    db: Db<'_>,
    team: &TeamId,
    token: &TokenId,
    now: Timestamp,
) -> Result<Written<AccessToken>, Failure> {
    db.execute(
        "UPDATE token SET revoked_at = ? WHERE team = ? AND token = ? AND revoked_at IS NULL",
        (now.as_micros(), team.as_str(), token.as_str()),
    )?;
    Ok(match read::token(db, team, token)? {
        Some(token) => Written::Done(token),
        None => Written::Missing,
    })
}
