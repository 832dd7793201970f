//! The hub's writes, each in one transaction that the caller has begun. Checks come first.

use sqlx::sqlite::SqliteConnection;
use steward_base::Timestamp;
use steward_base::hash::sha256_hex;
use steward_runtime::failpoint;
use steward_skill_core::store::Change;
use steward_skill_hub::audit::{Entry, Event};
use steward_skill_hub::lock::Lock;
use steward_skill_hub::quarantine::{Item, State};
use steward_skill_hub::store::Installed;
use steward_skill_hub::withdrawal::Withdrawal;
use steward_skill_scanner::Suppression;

use super::super::rows::signed;
use super::super::write as library;
use super::{HubFailure, read};

/// What goes into the log of a team.
#[derive(Debug, Clone)]
pub(crate) struct Happened {
    pub(crate) team: String,
    pub(crate) at: Timestamp,
    pub(crate) events: Vec<Event>,
}

/// An item as it shall be.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) item: Item,
    /// The state that the change rests on; none to put it in.
    pub(crate) before: Option<State>,
    pub(crate) happened: Happened,
}

/// An install as it shall be.
#[derive(Debug, Clone)]
pub(crate) struct Settled {
    /// Installed, with its bytes.
    pub(crate) item: Item,
    pub(crate) installed: Installed,
    /// The lock that the change rests on.
    pub(crate) before: Option<Lock>,
    pub(crate) happened: Happened,
}

/// A removal.
#[derive(Debug, Clone)]
pub(crate) struct Removed {
    pub(crate) name: String,
    pub(crate) happened: Happened,
}

/// A withdrawal as it shall be.
#[derive(Debug, Clone)]
pub(crate) struct Withdrawn {
    pub(crate) digest: String,
    /// What the change rests on.
    pub(crate) before: Option<Withdrawal>,
    pub(crate) after: Option<Withdrawal>,
    /// The skill that is installed with the digest.
    pub(crate) skill: Option<String>,
    pub(crate) happened: Happened,
}

pub(super) async fn put_item(connection: &mut SqliteConnection, stored: Stored) -> Result<(), HubFailure> {
    let Stored { item, before, happened } = stored;
    set_item(connection, &happened.team, &item, before).await?;
    append(connection, happened).await
}

/// Writes the row of an item that is in state `before`, and its bytes when it is new; drops them when they are of no use.
async fn set_item(
    connection: &mut SqliteConnection,
    team: &str,
    item: &Item,
    before: Option<State>,
) -> Result<(), HubFailure> {
    let there: Option<String> = sqlx::query_scalar("SELECT state FROM hub_items WHERE team = ? AND id = ?")
        .bind(team)
        .bind(&item.id)
        .fetch_optional(&mut *connection)
        .await?;
    if there.as_deref() != before.map(State::as_str) {
        return Err(HubFailure::Conflict("the item is in another state"));
    }
    sqlx::query(
        "INSERT INTO hub_items (team, id, place, state, content) VALUES (?, ?, ?, ?, ?) \
         ON CONFLICT (team, id) DO UPDATE SET state = excluded.state, content = excluded.content",
    )
    .bind(team)
    .bind(&item.id)
    .bind(item.place())
    .bind(item.state.as_str())
    .bind(serde_json::to_string(item)?)
    .execute(&mut *connection)
    .await?;
    match (before, item.state.keeps_bytes()) {
        (None, true) => put_files(connection, team, item).await,
        (Some(_), false) => drop_files(connection, team, &item.id).await,
        (None, false) | (Some(_), true) => Ok(()),
    }
}

async fn put_files(connection: &mut SqliteConnection, team: &str, item: &Item) -> Result<(), HubFailure> {
    for (path, file) in item.tree.iter() {
        let sha256 = sha256_hex(&file.bytes);
        sqlx::query("INSERT INTO blobs (team, sha256, bytes) VALUES (?, ?, ?) ON CONFLICT (team, sha256) DO NOTHING")
            .bind(team)
            .bind(&sha256)
            .bind(&*file.bytes)
            .execute(&mut *connection)
            .await?;
        sqlx::query(
            "INSERT INTO hub_item_files (team, item, path, sha256, size, executable) VALUES (?, ?, ?, ?, ?, ?)",
        )
        .bind(team)
        .bind(&item.id)
        .bind(path)
        .bind(sha256)
        .bind(i64::try_from(file.bytes.len()).unwrap_or(i64::MAX))
        .bind(i64::from(file.executable))
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

async fn drop_files(connection: &mut SqliteConnection, team: &str, item: &str) -> Result<(), HubFailure> {
    sqlx::query("DELETE FROM hub_item_files WHERE team = ? AND item = ?")
        .bind(team)
        .bind(item)
        .execute(&mut *connection)
        .await?;
    Ok(library::drop_orphans(connection, team).await?)
}

pub(super) async fn install(
    connection: &mut SqliteConnection,
    changes: Vec<Change>,
    settled: Settled,
) -> Result<(), HubFailure> {
    let Settled {
        item,
        installed,
        before,
        happened,
    } = settled;
    let team = happened.team.clone();
    let lock = &installed.lock;
    let there = read::installed(connection, &team, &lock.name).await?;
    if there.map(|installed| installed.lock) != before {
        return Err(HubFailure::Conflict("another revision was installed meanwhile"));
    }
    let withdrawn = read::withdrawal(connection, &team, &lock.digest).await?;
    if withdrawn.is_some_and(|withdrawal| withdrawal.is_in_force()) {
        return Err(HubFailure::Conflict("it was withdrawn meanwhile"));
    }
    set_item(connection, &team, &item, Some(State::Approved)).await?;
    for change in changes {
        library::commit(connection, change).await?;
    }
    failpoint::hit("hub.install.inside");
    sqlx::query(
        "INSERT INTO hub_locks (team, name, item, content) VALUES (?, ?, ?, ?) \
         ON CONFLICT (team, name) DO UPDATE SET item = excluded.item, content = excluded.content",
    )
    .bind(&team)
    .bind(&lock.name)
    .bind(&lock.item)
    .bind(serde_json::to_string(&installed)?)
    .execute(&mut *connection)
    .await?;
    append(connection, happened).await
}

pub(super) async fn remove(
    connection: &mut SqliteConnection,
    changes: Vec<Change>,
    removed: Removed,
) -> Result<(), HubFailure> {
    let Removed { name, happened } = removed;
    for change in changes {
        library::commit(connection, change).await?;
    }
    sqlx::query("DELETE FROM hub_locks WHERE team = ? AND name = ?")
        .bind(&happened.team)
        .bind(name)
        .execute(&mut *connection)
        .await?;
    append(connection, happened).await
}

pub(super) async fn withdraw(
    connection: &mut SqliteConnection,
    changes: Vec<Change>,
    withdrawn: Withdrawn,
) -> Result<(), HubFailure> {
    let Withdrawn {
        digest,
        before,
        after,
        skill,
        happened,
    } = withdrawn;
    let team = happened.team.clone();
    let locks = read::all_installed(connection, &team).await?;
    let mut locks = locks.into_iter().map(|installed| installed.lock);
    let there = locks.find(|lock| lock.digest == digest).map(|lock| lock.name);
    if read::withdrawal(connection, &team, &digest).await? != before || there != skill {
        return Err(HubFailure::Conflict("it was withdrawn or installed meanwhile"));
    }
    // Before the library's changes: a skill that comes back is held against what is withdrawn now.
    match after {
        Some(after) => {
            sqlx::query(
                "INSERT INTO hub_withdrawals (team, digest, force, content) VALUES (?, ?, ?, ?) \
                 ON CONFLICT (team, digest) DO UPDATE SET force = excluded.force, content = excluded.content",
            )
            .bind(&team)
            .bind(&digest)
            .bind(i64::from(after.is_in_force()))
            .bind(serde_json::to_string(&after)?)
            .execute(&mut *connection)
            .await?
        }
        None => {
            sqlx::query("DELETE FROM hub_withdrawals WHERE team = ? AND digest = ?")
                .bind(&team)
                .bind(&digest)
                .execute(&mut *connection)
                .await?
        }
    };
    failpoint::hit("hub.withdraw.inside");
    for change in changes {
        library::commit(connection, change).await?;
    }
    append(connection, happened).await
}

pub(super) async fn accept(
    connection: &mut SqliteConnection,
    suppression: Suppression,
    happened: Happened,
) -> Result<(), HubFailure> {
    sqlx::query(
        "INSERT INTO hub_accepted (team, fingerprint, content) VALUES (?, ?, ?) \
         ON CONFLICT (team, fingerprint) DO UPDATE SET content = excluded.content",
    )
    .bind(&happened.team)
    .bind(&suppression.fingerprint)
    .bind(serde_json::to_string(&suppression)?)
    .execute(&mut *connection)
    .await?;
    append(connection, happened).await
}

pub(super) async fn rescanned(
    connection: &mut SqliteConnection,
    team: String,
    rule_set: String,
) -> Result<(), HubFailure> {
    sqlx::query(
        "INSERT INTO hub_rescans (team, rule_set) VALUES (?, ?) \
         ON CONFLICT (team) DO UPDATE SET rule_set = excluded.rule_set",
    )
    .bind(team)
    .bind(rule_set)
    .execute(connection)
    .await?;
    Ok(())
}

/// Continues the team's chain (`H-7`). The one writer of the database makes this a sequence without gaps.
pub(super) async fn append(connection: &mut SqliteConnection, happened: Happened) -> Result<(), HubFailure> {
    let Happened { team, at, events } = happened;
    let mut last = read::last_entry(connection, &team).await?;
    for event in events {
        let entry = Entry::after(last.as_ref(), event, at);
        sqlx::query("INSERT INTO hub_log (team, sequence, at, action, content) VALUES (?, ?, ?, ?, ?)")
            .bind(&team)
            .bind(signed(entry.sequence))
            .bind(entry.at.as_micros())
            .bind(entry.action.as_str())
            .bind(serde_json::to_string(&entry)?)
            .execute(&mut *connection)
            .await?;
        last = Some(entry);
    }
    Ok(())
}
