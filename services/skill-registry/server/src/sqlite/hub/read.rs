//! What is asked of the hub's tables.

use std::collections::BTreeMap;

use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection, Row};
use steward_base::hash::sha256_hex;
use steward_skill_core::path::SkillPath;
use steward_skill_core::record::FileEntry;
use steward_skill_hub::audit::Entry;
use steward_skill_hub::quarantine::Item;
use steward_skill_hub::store::Installed;
use steward_skill_hub::withdrawal::Withdrawal;
use steward_skill_scanner::{File, Suppression, Tree};

use super::super::rows::{signed, unsigned};
use super::{HubFailure, Manifest};

/// SQLite takes no larger number.
fn rows(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

pub(super) async fn item(connection: &mut SqliteConnection, team: &str, id: &str) -> Result<Option<Item>, HubFailure> {
    // One transaction, so that state and bytes are of one moment.
    let mut transaction = connection.begin().await?;
    let content: Option<String> = sqlx::query_scalar("SELECT content FROM hub_items WHERE team = ? AND id = ?")
        .bind(team)
        .bind(id)
        .fetch_optional(&mut *transaction)
        .await?;
    let Some(content) = content else {
        return Ok(None);
    };
    let mut item: Item = serde_json::from_str(&content)?;
    item.tree = tree(&mut transaction, team, id).await?;
    transaction.commit().await?;
    Ok(Some(item))
}

/// The bytes, held against their digests: what is damaged is installed by nobody.
async fn tree(connection: &mut SqliteConnection, team: &str, id: &str) -> Result<Tree, HubFailure> {
    let found = sqlx::query(
        "SELECT f.path, f.sha256, f.executable, b.bytes FROM hub_item_files f \
         JOIN blobs b ON b.team = f.team AND b.sha256 = f.sha256 WHERE f.team = ? AND f.item = ?",
    )
    .bind(team)
    .bind(id)
    .fetch_all(connection)
    .await?;
    let mut tree = Tree::new();
    for row in &found {
        let (path, sha256): (String, String) = (row.try_get("path")?, row.try_get("sha256")?);
        let bytes: Vec<u8> = row.try_get("bytes")?;
        if sha256_hex(&bytes) != sha256 {
            return Err(HubFailure::Failed(format!(
                "the bytes of {path} of item {id} are damaged"
            )));
        }
        let file = File {
            bytes: bytes.into(),
            executable: row.try_get::<i64, _>("executable")? != 0,
        };
        tree.insert(path, file);
    }
    Ok(tree)
}

pub(super) async fn items(
    connection: &mut SqliteConnection,
    team: &str,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<Item>, HubFailure> {
    let found: Vec<String> =
        sqlx::query_scalar("SELECT content FROM hub_items WHERE team = ? AND place > ? ORDER BY place LIMIT ?")
            .bind(team)
            .bind(after.unwrap_or_default())
            .bind(rows(limit))
            .fetch_all(connection)
            .await?;
    parsed(&found)
}

fn parsed<T: serde::de::DeserializeOwned>(found: &[String]) -> Result<Vec<T>, HubFailure> {
    let parsed = found.iter().map(|content| serde_json::from_str(content));
    Ok(parsed.collect::<Result<Vec<T>, _>>()?)
}

pub(super) async fn open_items(connection: &mut SqliteConnection, team: &str) -> Result<usize, HubFailure> {
    let found: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM hub_items WHERE team = ? AND state IN ('blocked', 'awaiting_approval', 'approved')",
    )
    .bind(team)
    .fetch_one(connection)
    .await?;
    Ok(usize::try_from(found).unwrap_or_default())
}

pub(super) async fn manifest(
    connection: &mut SqliteConnection,
    team: &str,
    item: &str,
) -> Result<Manifest, HubFailure> {
    let found = sqlx::query("SELECT path, sha256, size, executable FROM hub_item_files WHERE team = ? AND item = ?")
        .bind(team)
        .bind(item)
        .fetch_all(connection)
        .await?;
    let mut manifest = Manifest::default();
    let mut files = BTreeMap::new();
    for row in &found {
        let text: String = row.try_get("path")?;
        if row.try_get::<i64, _>("executable")? != 0 {
            manifest.executables.insert(text.clone());
        }
        // A path that the library does not take was never installed.
        let Ok(path) = SkillPath::parse(&text) else {
            continue;
        };
        let entry = FileEntry {
            path: path.clone(),
            sha256: row.try_get("sha256")?,
            size: unsigned(row.try_get("size")?),
        };
        files.insert(path, entry);
    }
    manifest.files = files.into_values().collect();
    Ok(manifest)
}

pub(super) async fn installed(
    connection: &mut SqliteConnection,
    team: &str,
    name: &str,
) -> Result<Option<Installed>, HubFailure> {
    let content: Option<String> = sqlx::query_scalar("SELECT content FROM hub_locks WHERE team = ? AND name = ?")
        .bind(team)
        .bind(name)
        .fetch_optional(connection)
        .await?;
    Ok(content.map(|content| serde_json::from_str(&content)).transpose()?)
}

pub(super) async fn all_installed(connection: &mut SqliteConnection, team: &str) -> Result<Vec<Installed>, HubFailure> {
    let found: Vec<String> = sqlx::query_scalar("SELECT content FROM hub_locks WHERE team = ? ORDER BY name")
        .bind(team)
        .fetch_all(connection)
        .await?;
    parsed(&found)
}

pub(super) async fn withdrawal(
    connection: &mut SqliteConnection,
    team: &str,
    digest: &str,
) -> Result<Option<Withdrawal>, HubFailure> {
    let content: Option<String> =
        sqlx::query_scalar("SELECT content FROM hub_withdrawals WHERE team = ? AND digest = ?")
            .bind(team)
            .bind(digest)
            .fetch_optional(connection)
            .await?;
    Ok(content.map(|content| serde_json::from_str(&content)).transpose()?)
}

pub(super) async fn withdrawals(connection: &mut SqliteConnection, team: &str) -> Result<Vec<Withdrawal>, HubFailure> {
    let found: Vec<String> = sqlx::query_scalar("SELECT content FROM hub_withdrawals WHERE team = ? ORDER BY digest")
        .bind(team)
        .fetch_all(connection)
        .await?;
    parsed(&found)
}

/// Teams for which something is installed or waits.
pub(super) async fn teams(connection: &mut SqliteConnection) -> Result<Vec<String>, HubFailure> {
    let found = sqlx::query_scalar(
        "SELECT team FROM hub_locks UNION SELECT team FROM hub_items \
         WHERE state IN ('blocked', 'awaiting_approval', 'approved') ORDER BY team",
    )
    .fetch_all(connection)
    .await?;
    Ok(found)
}

pub(super) async fn teams_to_rescan(
    connection: &mut SqliteConnection,
    rule_set: &str,
) -> Result<Vec<String>, HubFailure> {
    let found = sqlx::query_scalar(
        "SELECT DISTINCT l.team FROM hub_locks l WHERE NOT EXISTS \
         (SELECT 1 FROM hub_rescans r WHERE r.team = l.team AND r.rule_set = ?) ORDER BY l.team",
    )
    .bind(rule_set)
    .fetch_all(connection)
    .await?;
    Ok(found)
}

pub(super) async fn accepted(connection: &mut SqliteConnection, team: &str) -> Result<Vec<Suppression>, HubFailure> {
    let found: Vec<String> = sqlx::query_scalar("SELECT content FROM hub_accepted WHERE team = ? ORDER BY fingerprint")
        .bind(team)
        .fetch_all(connection)
        .await?;
    parsed(&found)
}

pub(super) async fn log(
    connection: &mut SqliteConnection,
    team: &str,
    after: u64,
    limit: usize,
) -> Result<Vec<Entry>, HubFailure> {
    let found: Vec<String> =
        sqlx::query_scalar("SELECT content FROM hub_log WHERE team = ? AND sequence > ? ORDER BY sequence LIMIT ?")
            .bind(team)
            .bind(signed(after))
            .bind(rows(limit))
            .fetch_all(connection)
            .await?;
    parsed(&found)
}

pub(super) async fn last_entry(connection: &mut SqliteConnection, team: &str) -> Result<Option<Entry>, HubFailure> {
    let content: Option<String> =
        sqlx::query_scalar("SELECT content FROM hub_log WHERE team = ? ORDER BY sequence DESC LIMIT 1")
            .bind(team)
            .fetch_optional(connection)
            .await?;
    Ok(content.map(|content| serde_json::from_str(&content)).transpose()?)
}
