//! When the people of a team were last active.

use steward_base::Timestamp;
use steward_base::names::{TeamId, UserId};
use steward_recall_core::team_activity::{MOST_USERS, TeamActivity};
use steward_store::{Db, params};

use super::failure::Failure;

pub(super) fn of_team(db: Db<'_>, team: &TeamId) -> Result<Option<TeamActivity>, Failure> {
    let users: Vec<(String, i64)> = db.all(
        "SELECT user, max(last_active) FROM session WHERE team = ? GROUP BY user ORDER BY 2 DESC, user LIMIT ?",
        params![team.as_str(), i64::try_from(MOST_USERS).unwrap_or(i64::MAX)],
        |row| Ok::<_, Failure>((row.get(0)?, row.get(1)?)),
    )?;
    let Some((_, latest)) = users.first() else {
        return Ok(None);
    };
    Ok(Some(TeamActivity {
        team: team.clone(),
        last_active: Timestamp::from_micros(*latest),
        users: users
            .into_iter()
            .filter_map(|(user, _)| UserId::parse(user).ok())
            .collect(),
    }))
}
