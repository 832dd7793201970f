//! Whether files that get into use are a tree that the team revoked (`H-2`), asked in the transaction that would put them
//! there.
//!
//! A withdrawal names the digest that the hub counts, over paths, bytes and modes. The library knows no modes, and its own
//! tree hash is another. So files are held against the digest that they have as plain files, and against that of every item
//! of the hub that brought just these bytes in. An entry that cannot be read counts as a revocation.

use std::collections::BTreeSet;

use steward_base::error_chain;
use steward_skill_core::error::StoreFault;
use steward_skill_core::record::FileEntry;
use steward_skill_core::store::CommitError;
use steward_skill_hub::withdrawal::{Standing, Withdrawal};
use steward_skill_scanner::Tree;
use steward_store::{Db, StoreError, params};

use super::super::write::Failure;
use super::{HubFailure, read};

/// Refuses files whose tree is revoked.
pub(in crate::sqlite) fn check(db: Db<'_>, team: &str, files: &[FileEntry]) -> Result<(), Failure> {
    if !db.exists("SELECT 1 FROM hub_withdrawals WHERE team = ? AND force = 1", [team])? {
        return Ok(());
    }
    for digest in digests(db, team, files)? {
        let entry: Option<String> = db.optional(
            "SELECT content FROM hub_withdrawals WHERE team = ? AND digest = ? AND force = 1",
            params![team, digest],
        )?;
        if entry.is_some_and(|entry| !is_yanked(&entry)) {
            return Err(CommitError::Revoked.into());
        }
    }
    Ok(())
}

/// What is yanked stays where it is and comes back; only installing it anew is refused, by the hub.
fn is_yanked(entry: &str) -> bool {
    serde_json::from_str::<Withdrawal>(entry).is_ok_and(|withdrawal| withdrawal.standing == Standing::Yanked)
}

/// The digests by which the hub can know these files.
pub(super) fn digests(db: Db<'_>, team: &str, files: &[FileEntry]) -> Result<BTreeSet<String>, Failure> {
    let mut digests = BTreeSet::from([digest(files, &BTreeSet::new())]);
    // By the one file that tells skills apart best.
    let Some(telling) = files.iter().find(|file| file.path.is_skill_md()).or(files.first()) else {
        return Ok(digests);
    };
    let items: Vec<String> = db.all(
        "SELECT item FROM hub_item_files WHERE team = ? AND sha256 = ? AND path = ?",
        params![team, &telling.sha256, telling.path.as_str()],
        |row| Ok::<_, StoreError>(row.get(0)?),
    )?;
    for item in items {
        let manifest = read::manifest(db, team, &item).map_err(unreadable)?;
        if manifest.files == files {
            digests.insert(digest(files, &manifest.executables));
        }
    }
    Ok(digests)
}

fn digest(files: &[FileEntry], executables: &BTreeSet<String>) -> String {
    let files = files.iter().map(|file| {
        let path = file.path.as_str();
        (path, executables.contains(path), file.sha256.as_str())
    });
    Tree::digest_of(files)
}

fn unreadable(failure: HubFailure) -> Failure {
    match failure {
        HubFailure::Library(error) => error.into(),
        other => CommitError::Store(StoreFault::Internal {
            operation: "read what the hub brought",
            source: error_chain(&steward_skill_hub::error::StoreError::from(other)).into(),
        })
        .into(),
    }
}
