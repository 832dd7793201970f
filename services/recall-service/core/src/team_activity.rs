//! When the people of a team were last active: what says that nobody is disturbed by a curation (`C-1`).

use steward_base::Timestamp;
use steward_base::names::{TeamId, UserId};

use crate::error::Error;
use crate::sessions::Sessions;

/// Users that are named per team.
pub const MOST_USERS: usize = 10;

/// The latest activity of a team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamActivity {
    /// The team.
    pub team: TeamId,
    /// Latest activity in any of its sessions.
    pub last_active: Timestamp,
    /// Its users by their latest activity, latest first, at most [`MOST_USERS`].
    pub users: Vec<UserId>,
}

/// Some teams, in the order of their ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActivityPage {
    /// Those of them that have sessions.
    pub teams: Vec<TeamActivity>,
    /// The last team that was looked at, if there may be more behind it.
    pub next: Option<TeamId>,
}

impl Sessions {
    /// At most `limit` teams behind `after`.
    pub async fn list_team_activity(&self, after: Option<&TeamId>, limit: u32) -> Result<ActivityPage, Error> {
        self.store.team_activity(after, limit).await
    }
}
