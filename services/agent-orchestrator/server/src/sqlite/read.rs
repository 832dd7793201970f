//! Reading teams, users, tokens and revocations.

use steward_base::Timestamp;
use steward_base::names::{TeamId, TokenId, UserId};
use steward_orchestrator_core::access::{AccessToken, Page, Revocation, Revoked, Team, User};
use steward_store::{Db, StoreError};

use super::Failure;
use super::rows::{TeamRow, TokenRow, UserRow, team_id, user_id};

const HOME: &str = "SELECT team FROM team WHERE home = 1";
const TEAM: &str = "SELECT team, display_name, created_at FROM team WHERE team = ?";
const TEAMS: &str = "SELECT team, display_name, created_at FROM team WHERE team > ? ORDER BY team LIMIT ?";
const USER: &str = "SELECT team, user, display_name, role, disabled, created_at FROM user WHERE team = ? AND user = ?";
const USERS: &str = "\
SELECT team, user, display_name, role, disabled, created_at FROM user
WHERE team = ? AND user > ? ORDER BY user LIMIT ?";
const TOKEN: &str = "\
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

pub(super) fn home_team(db: Db<'_>) -> Result<Option<TeamId>, Failure> {
    let home: Option<String> = db.optional(HOME, ())?;
    home.as_deref().map(team_id).transpose()
}

pub(super) fn team(db: Db<'_>, team: &TeamId) -> Result<Option<Team>, Failure> {
    let row = db.first(TEAM, [team.as_str()], TeamRow::read)?;
    row.map(Team::try_from).transpose()
}

pub(super) fn teams(db: Db<'_>, after: &str, limit: u32) -> Result<Page<Team>, Failure> {
    let rows = db.all(TEAMS, (after, over(limit)), TeamRow::read)?;
    Ok(Page::cut(all(rows)?, limit, |team: &Team| team.id.to_string()))
}

pub(super) fn user(db: Db<'_>, team: &TeamId, user: &UserId) -> Result<Option<User>, Failure> {
    let row = db.first(USER, (team.as_str(), user.as_str()), UserRow::read)?;
    row.map(User::try_from).transpose()
}

pub(super) fn users(db: Db<'_>, team: &TeamId, after: &str, limit: u32) -> Result<Page<User>, Failure> {
    let rows = db.all(USERS, (team.as_str(), after, over(limit)), UserRow::read)?;
    Ok(Page::cut(all(rows)?, limit, |user: &User| user.id.to_string()))
}

pub(super) fn token(db: Db<'_>, team: &TeamId, token: &TokenId) -> Result<Option<AccessToken>, Failure> {
    let row = db.first(TOKEN, (team.as_str(), token.as_str()), TokenRow::read)?;
    row.map(AccessToken::try_from).transpose()
}

pub(super) fn tokens(
    db: Db<'_>,
    team: &TeamId,
    user: Option<&UserId>,
    after: Option<&str>,
    limit: u32,
) -> Result<Page<AccessToken>, Failure> {
    let asked = (team.as_str(), user.map(UserId::as_str), after, over(limit));
    let rows = db.all(TOKENS, asked, TokenRow::read)?;
    Ok(Page::cut(all(rows)?, limit, |token: &AccessToken| token.id.to_string()))
}

pub(super) fn revocations(db: Db<'_>, now: Timestamp) -> Result<Vec<Revocation>, Failure> {
    let mut revocations: Vec<Revocation> = db.all(REVOKED_TOKENS, [now.as_micros()], |row| {
        Ok::<_, StoreError>(Revocation {
            subject: Revoked::Token(row.get(0)?),
            expires: Some(Timestamp::from_micros(row.get(1)?)),
        })
    })?;
    let users: Vec<(String, String)> = db.all(DISABLED_USERS, (), |row| {
        Ok::<_, StoreError>((row.get(0)?, row.get(1)?))
    })?;
    for (team, user) in users {
        revocations.push(Revocation {
            subject: Revoked::User(team_id(&team)?, user_id(&user)?),
            expires: None,
        });
    }
    Ok(revocations)
}
