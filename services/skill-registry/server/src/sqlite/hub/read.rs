//! What is asked of the hub's tables.

use std::collections::BTreeMap;

use steward_base::hash::sha256_hex;
use steward_skill_core::path::SkillPath;
use steward_skill_core::record::FileEntry;
use steward_skill_hub::audit::Entry;
use steward_skill_hub::quarantine::Item;
use steward_skill_hub::store::Installed;
use steward_skill_hub::withdrawal::Withdrawal;
use steward_skill_scanner::{File, Suppression, Tree};
use steward_store::{Db, Row, params};

use super::super::rows::{signed, unsigned};
use super::{HubFailure, Manifest};

/// SQLite takes no larger number.
fn rows(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// A column that holds JSON.
pub(super) fn json<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: usize) -> Result<T, HubFailure> {
    Ok(serde_json::from_str(&row.get::<_, String>(column)?)?)
}

/// A row whose first column is the JSON of what it is about.
pub(super) fn content<T: serde::de::DeserializeOwned>(row: &Row<'_>) -> Result<T, HubFailure> {
    json(row, 0)
}

pub(super) fn item(db: Db<'_>, team: &str, id: &str) -> Result<Option<Item>, HubFailure> {
    let found = db.first(
        "SELECT content FROM hub_items WHERE team = ? AND id = ?",
        [team, id],
        content::<Item>,
    )?;
    let Some(mut item) = found else { return Ok(None) };
    item.tree = tree(db, team, id)?;
    Ok(Some(item))
}

/// The bytes, held against their digests: what is damaged is installed by nobody.
fn tree(db: Db<'_>, team: &str, id: &str) -> Result<Tree, HubFailure> {
    let files = db.all(
        "SELECT f.path, f.sha256, f.executable, b.bytes FROM hub_item_files f \
         JOIN blobs b ON b.team = f.team AND b.sha256 = f.sha256 WHERE f.team = ? AND f.item = ?",
        [team, id],
        |row| {
            let (path, sha256): (String, String) = (row.get(0)?, row.get(1)?);
            let (executable, bytes): (bool, Vec<u8>) = (row.get(2)?, row.get(3)?);
            if sha256_hex(&bytes) != sha256 {
                return Err(HubFailure::Failed(format!(
                    "the bytes of {path} of item {id} are damaged"
                )));
            }
            let bytes = bytes.into();
            Ok((path, File { bytes, executable }))
        },
    )?;
    let mut tree = Tree::new();
    for (path, file) in files {
        tree.insert(path, file);
    }
    Ok(tree)
}

pub(super) fn items(db: Db<'_>, team: &str, after: Option<&str>, limit: usize) -> Result<Vec<Item>, HubFailure> {
    db.all(
        "SELECT content FROM hub_items WHERE team = ? AND place > ? ORDER BY place LIMIT ?",
        params![team, after.unwrap_or_default(), rows(limit)],
        content,
    )
}

pub(super) fn open_items(db: Db<'_>, team: &str) -> Result<usize, HubFailure> {
    let found: i64 = db.value(
        "SELECT count(*) FROM hub_items WHERE team = ? AND state IN ('blocked', 'awaiting_approval', 'approved')",
        [team],
    )?;
    Ok(usize::try_from(found).unwrap_or_default())
}

pub(super) fn manifest(db: Db<'_>, team: &str, item: &str) -> Result<Manifest, HubFailure> {
    let found = db.all(
        "SELECT path, sha256, size, executable FROM hub_item_files WHERE team = ? AND item = ?",
        [team, item],
        |row| Ok::<(String, String, i64, bool), HubFailure>((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
    )?;
    let mut manifest = Manifest::default();
    let mut files = BTreeMap::new();
    for (text, sha256, size, executable) in found {
        // A path that the library does not take was never installed.
        if let Ok(path) = SkillPath::parse(&text) {
            let entry = FileEntry {
                path: path.clone(),
                sha256,
                size: unsigned(size),
            };
            files.insert(path, entry);
        }
        if executable {
            manifest.executables.insert(text);
        }
    }
    manifest.files = files.into_values().collect();
    Ok(manifest)
}

pub(super) fn installed(db: Db<'_>, team: &str, name: &str) -> Result<Option<Installed>, HubFailure> {
    db.first(
        "SELECT content FROM hub_locks WHERE team = ? AND name = ?",
        [team, name],
        content,
    )
}

pub(super) fn all_installed(db: Db<'_>, team: &str) -> Result<Vec<Installed>, HubFailure> {
    db.all(
        "SELECT content FROM hub_locks WHERE team = ? ORDER BY name",
        [team],
        content,
    )
}

pub(super) fn withdrawal(db: Db<'_>, team: &str, digest: &str) -> Result<Option<Withdrawal>, HubFailure> {
    db.first(
        "SELECT content FROM hub_withdrawals WHERE team = ? AND digest = ?",
        [team, digest],
        content,
    )
}

pub(super) fn withdrawals(db: Db<'_>, team: &str) -> Result<Vec<Withdrawal>, HubFailure> {
    db.all(
        "SELECT content FROM hub_withdrawals WHERE team = ? ORDER BY digest",
        [team],
        content,
    )
}

/// Teams for which something is installed or waits.
pub(super) fn teams(db: Db<'_>) -> Result<Vec<String>, HubFailure> {
    db.all(
        "SELECT team FROM hub_locks UNION SELECT team FROM hub_items \
         WHERE state IN ('blocked', 'awaiting_approval', 'approved') ORDER BY team",
        (),
        |row| Ok(row.get(0)?),
    )
}

pub(super) fn teams_to_rescan(db: Db<'_>, rule_set: &str) -> Result<Vec<String>, HubFailure> {
    db.all(
        "SELECT DISTINCT l.team FROM hub_locks l WHERE NOT EXISTS \
         (SELECT 1 FROM hub_rescans r WHERE r.team = l.team AND r.rule_set = ?) ORDER BY l.team",
        [rule_set],
        |row| Ok(row.get(0)?),
    )
}

pub(super) fn accepted(db: Db<'_>, team: &str) -> Result<Vec<Suppression>, HubFailure> {
    db.all(
        "SELECT content FROM hub_accepted WHERE team = ? ORDER BY fingerprint",
        [team],
        content,
    )
}

pub(super) fn log(db: Db<'_>, team: &str, after: u64, limit: usize) -> Result<Vec<Entry>, HubFailure> {
    db.all(
        "SELECT content FROM hub_log WHERE team = ? AND sequence > ? ORDER BY sequence LIMIT ?",
        params![team, signed(after), rows(limit)],
        content,
    )
}

pub(super) fn last_entry(db: Db<'_>, team: &str) -> Result<Option<Entry>, HubFailure> {
    db.first(
        "SELECT content FROM hub_log WHERE team = ? ORDER BY sequence DESC LIMIT 1",
        [team],
        content,
    )
}
