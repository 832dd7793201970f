//! Copies of a team's whole store, and putting one back. What a copy is and how it is made is the store's affair; that it is
//! verified before anybody relies on it is not.

use std::fmt;

use async_trait::async_trait;
use steward_base::Timestamp;
use steward_base::names::TeamId;

use crate::error::Error;

/// A copy of a team's store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// The tenant.
    pub team: TeamId,
    /// Id in the team; ids ascend with time.
    pub id: String,
    /// Size in bytes.
    pub size: u64,
    /// When it was made.
    pub created: Timestamp,
    /// What was counted in it; `None` where it was not opened.
    pub counts: Option<Counts>,
}

/// What a store holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sessions.
    pub sessions: u64,
    /// Messages.
    pub messages: u64,
}

/// A backup that was put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// What is there now.
    pub counts: Counts,
    /// Id of the backup that what was there before became; `None` where nothing was.
    pub set_aside: Option<String>,
}

/// Keeps copies of teams.
#[async_trait]
pub trait Backups: fmt::Debug + Send + Sync + 'static {
    /// Makes a copy under this id while everything goes on, opens it again, checks and counts it. A copy that does not pass is
    /// removed.
    async fn backup(&self, team: &TeamId, id: &str, now: Timestamp) -> Result<Backup, Error>;

    /// The copies of a team, newest first: at most `limit` that are older than `before`.
    async fn backups(&self, team: &TeamId, before: Option<&str>, limit: u32) -> Result<Vec<Backup>, Error>;

    /// Puts a copy in the place of a team's store, whole or not at all, after it was checked and counted. What was there
    /// becomes the copy `aside`. [`Error::BackupNotFound`], [`Error::BackupUnusable`].
    async fn restore(&self, team: &TeamId, id: &str, aside: &str) -> Result<Restored, Error>;
}

/// Whether a text can be the id of a backup: nothing of it leads to another folder.
pub fn is_id(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::is_id;

    #[test]
    fn no_id_leads_to_another_folder() {
        assert!(is_id("0190f3b6a4c07d5e8f00112233445566") && is_id("a-1"));
        for odd in ["", ".", "..", "../x", "a/b", "a.db", "ä", &"x".repeat(65)] {
            assert!(!is_id(odd), "{odd}");
        }
    }
}
