//! The hub's writes, each in one transaction that the caller has begun. Checks come first.

use steward_base::Timestamp;
use steward_base::hash::sha256_hex;
use steward_runtime::failpoint;
use steward_skill_core::store::Change;
use steward_skill_hub::audit::{Entry, Event};
use steward_skill_hub::lock::Lock;
use steward_skill_hub::quarantine::{Item, State};
use steward_skill_hub::store::Installed;
use steward_skill_hub::withdrawal::{Standing, Withdrawal};
use steward_skill_scanner::Suppression;
use steward_store::{Db, params};

use super::super::rows::signed;
use super::super::write as library;
use super::{HubFailure, copies, read};

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

impl Withdrawn {
    /// Whether the tree is revoked afterwards.
    pub(super) fn revokes(&self) -> bool {
        let standing = self.after.as_ref().map(|after| after.standing);
        standing == Some(Standing::Revoked)
    }
}

pub(super) fn put_item(db: Db<'_>, stored: Stored) -> Result<(), HubFailure> {
    let Stored { item, before, happened } = stored;
    set_item(db, &happened.team, &item, before)?;
    append(db, happened)
}

/// Writes the row of an item that is in state `before`, and its bytes when it is new; drops them when they are of no use.
fn set_item(db: Db<'_>, team: &str, item: &Item, before: Option<State>) -> Result<(), HubFailure> {
    let there: Option<String> = db.optional(
        "SELECT state FROM hub_items WHERE team = ? AND id = ?",
        params![team, &item.id],
    )?;
    if there.as_deref() != before.map(State::as_str) {
        return Err(HubFailure::Conflict("the item is in another state"));
    }
    db.execute(
        "INSERT INTO hub_items (team, id, place, state, content) VALUES (?, ?, ?, ?, ?) \
         ON CONFLICT (team, id) DO UPDATE SET state = excluded.state, content = excluded.content",
        params![
            team,
            &item.id,
            item.place(),
            item.state.as_str(),
            serde_json::to_string(item)?
        ],
    )?;
    match (before, item.state.keeps_bytes()) {
        (None, true) => put_files(db, team, item),
        (Some(_), false) => drop_files(db, team, &item.id),
        (None, false) | (Some(_), true) => Ok(()),
    }
}

fn put_files(db: Db<'_>, team: &str, item: &Item) -> Result<(), HubFailure> {
    for (path, file) in item.tree.iter() {
        let sha256 = sha256_hex(&file.bytes);
        db.execute(
            "INSERT INTO blobs (team, sha256, bytes) VALUES (?, ?, ?) ON CONFLICT (team, sha256) DO NOTHING",
            params![team, &sha256, &*file.bytes],
        )?;
        db.execute(
            "INSERT INTO hub_item_files (team, item, path, sha256, size, executable) VALUES (?, ?, ?, ?, ?, ?)",
            params![
                team,
                &item.id,
                path,
                sha256,
                i64::try_from(file.bytes.len()).unwrap_or(i64::MAX),
                i64::from(file.executable)
            ],
        )?;
    }
    Ok(())
}

fn drop_files(db: Db<'_>, team: &str, item: &str) -> Result<(), HubFailure> {
    db.execute(
        "DELETE FROM hub_item_files WHERE team = ? AND item = ?",
        params![team, item],
    )?;
    Ok(library::drop_orphans(db, team)?)
}

pub(super) fn install(db: Db<'_>, changes: Vec<Change>, settled: Settled) -> Result<(), HubFailure> {
    let Settled {
        item,
        installed,
        before,
        happened,
    } = settled;
    let team = happened.team.clone();
    let lock = &installed.lock;
    let there = read::installed(db, &team, &lock.name)?;
    if there.map(|installed| installed.lock) != before {
        return Err(HubFailure::Conflict("another revision was installed meanwhile"));
    }
    let withdrawn = read::withdrawal(db, &team, &lock.digest)?;
    if withdrawn.is_some_and(|withdrawal| withdrawal.is_in_force()) {
        return Err(HubFailure::Conflict("it was withdrawn meanwhile"));
    }
    set_item(db, &team, &item, Some(State::Approved))?;
    for change in changes {
        library::commit(db, change)?;
    }
    failpoint::hit("hub.install.inside");
    db.execute(
        "INSERT INTO hub_locks (team, name, item, content) VALUES (?, ?, ?, ?) \
         ON CONFLICT (team, name) DO UPDATE SET item = excluded.item, content = excluded.content",
        params![&team, &lock.name, &lock.item, serde_json::to_string(&installed)?],
    )?;
    append(db, happened)
}

pub(super) fn remove(db: Db<'_>, changes: Vec<Change>, removed: Removed) -> Result<(), HubFailure> {
    let Removed { name, happened } = removed;
    for change in changes {
        library::commit(db, change)?;
    }
    db.execute(
        "DELETE FROM hub_locks WHERE team = ? AND name = ?",
        params![&happened.team, name],
    )?;
    append(db, happened)
}

pub(super) fn withdraw(db: Db<'_>, changes: Vec<Change>, withdrawn: Withdrawn) -> Result<(), HubFailure> {
    let revokes = withdrawn.revokes();
    let Withdrawn {
        digest,
        before,
        after,
        skill,
        happened,
    } = withdrawn;
    let team = happened.team.clone();
    let locks = read::all_installed(db, &team)?;
    let mut locks = locks.into_iter().map(|installed| installed.lock);
    let there = locks.find(|lock| lock.digest == digest).map(|lock| lock.name);
    if read::withdrawal(db, &team, &digest)? != before || there != skill {
        return Err(HubFailure::Conflict("it was withdrawn or installed meanwhile"));
    }
    // Before the library's changes: a skill that comes back is held against what is withdrawn now.
    match after {
        Some(after) => db.execute(
            "INSERT INTO hub_withdrawals (team, digest, force, content) VALUES (?, ?, ?, ?) \
                 ON CONFLICT (team, digest) DO UPDATE SET force = excluded.force, content = excluded.content",
            params![
                &team,
                &digest,
                i64::from(after.is_in_force()),
                serde_json::to_string(&after)?
            ],
        )?,
        None => db.execute(
            "DELETE FROM hub_withdrawals WHERE team = ? AND digest = ?",
            params![&team, &digest],
        )?,
    };
    failpoint::hit("hub.withdraw.inside");
    for change in changes {
        library::commit(db, change)?;
    }
    if revokes && !copies::in_use(db, &team, &digest)?.is_empty() {
        return Err(HubFailure::Conflict("it was copied meanwhile"));
    }
    append(db, happened)
}

pub(super) fn accept(db: Db<'_>, suppression: &Suppression, happened: Happened) -> Result<(), HubFailure> {
    db.execute(
        "INSERT INTO hub_accepted (team, fingerprint, content) VALUES (?, ?, ?) \
         ON CONFLICT (team, fingerprint) DO UPDATE SET content = excluded.content",
        params![
            &happened.team,
            &suppression.fingerprint,
            serde_json::to_string(suppression)?
        ],
    )?;
    append(db, happened)
}

pub(super) fn rescanned(db: Db<'_>, team: &str, rule_set: &str) -> Result<(), HubFailure> {
    db.execute(
        "INSERT INTO hub_rescans (team, rule_set) VALUES (?, ?) \
         ON CONFLICT (team) DO UPDATE SET rule_set = excluded.rule_set",
        params![team, rule_set],
    )?;
    Ok(())
}

/// Continues the team's chain (`H-7`). The one writer of the database makes this a sequence without gaps.
pub(super) fn append(db: Db<'_>, happened: Happened) -> Result<(), HubFailure> {
    let Happened { team, at, events } = happened;
    let mut last = read::last_entry(db, &team)?;
    for event in events {
        let entry = Entry::after(last.as_ref(), event, at);
        db.execute(
            "INSERT INTO hub_log (team, sequence, at, action, content) VALUES (?, ?, ?, ?, ?)",
            params![
                &team,
                signed(entry.sequence),
                entry.at.as_micros(),
                entry.action.as_str(),
                serde_json::to_string(&entry)?
            ],
        )?;
        last = Some(entry);
    }
    Ok(())
}
