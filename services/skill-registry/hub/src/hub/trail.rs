//! The log as people read it, and the proof that an entry is in it (`H-7`).

use super::Hub;
use crate::audit::{self, Entry};
use crate::error::Error;

/// What shows that one entry is in the log as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// The entry.
    pub entry: Entry,
    /// Entries in the log.
    pub count: usize,
    /// Root of the tree over all of them.
    pub root: String,
    /// Hashes that lead from the entry to the root.
    pub path: Vec<String>,
    /// Whether they do.
    pub included: bool,
    /// Number of the first entry that is not what it was; nothing if the chain is whole.
    pub first_broken: Option<u64>,
}

impl Hub {
    /// The team's log, oldest first.
    pub async fn audit(&self, team: &str) -> Result<Vec<Entry>, Error> {
        self.audit_page(team, 0, usize::MAX).await
    }

    /// At most `limit` entries that follow the one with number `after`.
    pub async fn audit_page(&self, team: &str, after: u64, limit: usize) -> Result<Vec<Entry>, Error> {
        Ok(self.parts.store.audit(team, after, limit).await?)
    }

    /// Reads the whole log anew and shows that an entry is in it; with zero, the newest.
    pub async fn prove(&self, team: &str, sequence: u64) -> Result<Proof, Error> {
        let entries = self.audit(team).await?;
        let missing = || Error::NoEntry { sequence };
        let index = match sequence {
            0 => entries.len().checked_sub(1).ok_or_else(missing)?,
            _ => usize::try_from(sequence - 1).map_err(|_| missing())?,
        };
        let hashes: Vec<String> = entries.iter().map(|entry| entry.hash.clone()).collect();
        let path = audit::inclusion(&hashes, index).ok_or_else(missing)?;
        let root = audit::root(&hashes);
        let entry = entries.get(index).cloned().ok_or_else(missing)?;
        Ok(Proof {
            count: hashes.len(),
            included: audit::includes(&root, hashes.len(), index, &entry.hash, &path),
            first_broken: audit::first_broken(&entries),
            entry,
            root,
            path,
        })
    }
}
