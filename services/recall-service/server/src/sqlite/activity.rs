//! When the people of a team were last active.

use sqlx::SqliteConnection;
use steward_base::Timestamp;
use steward_base::names::{TeamId, UserId};
use steward_recall_core::team_activity::{MOST_USERS, TeamActivity};

use super::failure::Failure;

pub(super) async fn of_team(connection: &mut SqliteConnection, team: &TeamId) -> Result<Option<TeamActivity>, Failure> {
    let users: Vec<(String, i64)> = sqlx::query_as(
        "SELECT user, max(last_active) FROM session WHERE team = ? GROUP BY user ORDER BY 2 DESC, user LIMIT ?",
    )
    .bind(team.as_str())
    .bind(i64::try_from(MOST_USERS).unwrap_or(i64::MAX))
    .fetch_all(connection)
    .await?;
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
