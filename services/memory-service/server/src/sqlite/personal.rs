//! All that is held on a person: to give it, and to erase it (`M-14`). What is removed is overwritten on disk, since the
//! database is opened with `secure_delete`.

use std::collections::BTreeMap;

use steward_base::Timestamp;
use steward_base::names::{EntryId, TeamId, UserId};
use steward_memory_core::{Derived, Held, Holding, Owner, Receipt, Revision, StoreName, Support, Target};
use steward_store::{Db, Row};

use super::proposals::{ProposalRow, select_proposals};
use super::rows::{RevisionRow, revision_columns};
use super::{Failure, damaged};

const REVISIONS: &str = concat!(
    "SELECT r.owner, r.target, e.revision, ",
    revision_columns!(),
    " FROM revisions AS r \
      LEFT JOIN entries AS e USING (team, owner, target, entry) \
      WHERE r.team = ?1 AND (r.owner = ?2 OR (r.owner NOT LIKE 'users/%' AND r.author = ?3)) \
      ORDER BY r.owner, r.target, r.entry, r.revision"
);

/// Whole histories of the shared entries in which the person appears.
const SHARED: &str = concat!(
    "SELECT r.owner, r.target, NULL, ",
    revision_columns!(),
    " FROM revisions AS r \
      WHERE r.team = ?1 AND r.owner NOT LIKE 'users/%' \
        AND EXISTS (SELECT 1 FROM revisions AS own \
                    WHERE own.team = r.team AND own.owner = r.owner AND own.target = r.target AND own.entry = r.entry \
                      AND own.author = ?2) \
      ORDER BY r.owner, r.target, r.entry, r.revision"
);

const PROPOSALS: &str = select_proposals!("WHERE team = ? AND (owner = ? OR author = ?) ORDER BY proposal");

const COUNTS: &str = "\
SELECT (SELECT count(*) FROM entries WHERE team = ?1 AND owner = ?2),
       (SELECT count(*) FROM revisions WHERE team = ?1 AND owner = ?2),
       (SELECT count(*) FROM proposals WHERE team = ?1 AND (owner = ?2 OR (author = ?3 AND state <> 'approved'))),
       (SELECT count(*) FROM requests WHERE team = ?1 AND substr(scope, instr(scope, '/') + 1) = ?3)
     + (SELECT count(*) FROM held WHERE team = ?1 AND owner = ?2)
     + (SELECT count(*) FROM rejections WHERE team = ?1 AND owner = ?2)";

/// A revision with the store that it belongs to.
struct Placed {
    store: StoreName,
    /// The number of the revision that is present, if the entry is.
    present: Option<i64>,
    revision: Revision,
}

impl Placed {
    fn read(row: &Row<'_>, team: &TeamId) -> Result<Self, Failure> {
        let (owner, target): (String, String) = (row.get(0)?, row.get(1)?);
        Ok(Self {
            store: StoreName {
                team: team.clone(),
                owner: Owner::from_key(&owner).ok_or_else(|| damaged("owner", &owner))?,
                target: Target::parse(&target).ok_or_else(|| damaged("target", &target))?,
            },
            present: row.get(2)?,
            revision: RevisionRow::read(row, 3)?.into_revision()?,
        })
    }
}

pub(super) fn holdings(db: Db<'_>, team: &TeamId, user: &UserId) -> Result<Vec<Holding>, Failure> {
    let owner = Owner::Person(user.clone()).key();
    let values = (team.as_str(), owner.as_str(), user.as_str());
    let mut holdings = db.all(REVISIONS, values, |row| {
        let placed = Placed::read(row, team)?;
        Ok::<_, Failure>(Holding::Revision {
            store: placed.store,
            present: placed.present == Some(placed.revision.number.into()),
            revision: Box::new(placed.revision),
        })
    })?;
    holdings.extend(db.all(PROPOSALS, values, |row| {
        let proposal = ProposalRow::read(row)?.into_proposal()?;
        Ok::<_, Failure>(Holding::Proposal(Box::new(proposal)))
    })?);
    for target in [Target::Notes, Target::Profile] {
        let store = StoreName {
            team: team.clone(),
            owner: Owner::Person(user.clone()),
            target,
        };
        holdings.extend(held(db, &store)?.into_iter().map(|held| Holding::Held {
            store: store.clone(),
            held,
        }));
    }
    Ok(holdings)
}

pub(super) fn held(db: Db<'_>, store: &StoreName) -> Result<Vec<Held>, Failure> {
    db.all(
        "SELECT held, bytes, came_at FROM held WHERE team = ? AND owner = ? AND target = ? ORDER BY came_at, held",
        (store.team.as_str(), store.owner.key(), store.target.as_str()),
        |row| {
            let id: String = row.get(0)?;
            Ok(Held {
                id: EntryId::parse(id.as_str()).map_err(|_| damaged("held id", &id))?,
                bytes: row.get(1)?,
                at: Timestamp::from_micros(row.get(2)?),
            })
        },
    )
}

/// Removes what is the person's own and, with `shared`, what rests on the person's words alone elsewhere.
pub(super) fn erase(db: Db<'_>, team: &TeamId, user: &UserId, shared: bool, at: Timestamp) -> Result<Receipt, Failure> {
    let owner = Owner::Person(user.clone()).key();
    let before = counts(db, team, &owner, user)?;
    let mut derived = Vec::new();
    for ((store, entry), history) in histories(db, team, user)? {
        let (Some(support), Some(last)) = (Support::of(&history, user), history.last()) else {
            continue;
        };
        let erased = shared && support == Support::Sole;
        if erased {
            remove_entry(db, &store, &entry)?;
        }
        derived.push(Derived {
            entry: store.entry(&entry),
            revision: last.number,
            support,
            erased,
        });
    }
    remove_own(db, team, &owner, user)?;
    db.execute(
        "INSERT OR REPLACE INTO erasures (team, owner, erased_at, revisions) VALUES (?, ?, ?, ?)",
        (team.as_str(), &owner, at.as_micros(), before.revisions),
    )?;
    let after = counts(db, team, &owner, user)?;
    let number = |value: i64| u64::try_from(value).unwrap_or(0);
    Ok(Receipt {
        entries: number(before.entries),
        revisions: number(before.revisions),
        proposals: number(before.proposals),
        others: number(before.others),
        found_after: number(after.entries + after.revisions + after.proposals + after.others),
        derived,
    })
}

#[derive(Debug, Default)]
struct Counts {
    entries: i64,
    revisions: i64,
    proposals: i64,
    others: i64,
}

fn counts(db: Db<'_>, team: &TeamId, owner: &str, user: &UserId) -> Result<Counts, Failure> {
    let counted = db.first(COUNTS, (team.as_str(), owner, user.as_str()), |row| {
        Ok::<_, Failure>(Counts {
            entries: row.get(0)?,
            revisions: row.get(1)?,
            proposals: row.get(2)?,
            others: row.get(3)?,
        })
    });
    Ok(counted?.unwrap_or_default())
}

type Histories = BTreeMap<(StoreName, EntryId), Vec<Revision>>;

fn histories(db: Db<'_>, team: &TeamId, user: &UserId) -> Result<Histories, Failure> {
    let mut histories = Histories::new();
    db.all(SHARED, (team.as_str(), user.as_str()), |row| {
        let Placed { store, revision, .. } = Placed::read(row, team)?;
        let history = histories.entry((store, revision.entry.clone())).or_default();
        history.push(revision);
        Ok::<_, Failure>(())
    })?;
    Ok(histories)
}

fn remove_entry(db: Db<'_>, store: &StoreName, entry: &EntryId) -> Result<(), Failure> {
    let (team, owner, target) = (store.team.as_str(), store.owner.key(), store.target.as_str());
    for sql in [
        "DELETE FROM doubts WHERE team = ? AND owner = ? AND target = ? AND entry = ?",
        "DELETE FROM entries WHERE team = ? AND owner = ? AND target = ? AND entry = ?",
        "DELETE FROM revisions WHERE team = ? AND owner = ? AND target = ? AND entry = ?",
    ] {
        db.execute(sql, (team, &owner, target, entry.as_str()))?;
    }
    db.execute(
        "UPDATE books SET revision = revision + 1 WHERE team = ? AND owner = ? AND target = ?",
        (team, &owner, target),
    )?;
    Ok(())
}

fn remove_own(db: Db<'_>, team: &TeamId, owner: &str, user: &UserId) -> Result<(), Failure> {
    let team = team.as_str();
    for sql in [
        "DELETE FROM doubts WHERE team = ? AND owner = ?",
        "DELETE FROM entries WHERE team = ? AND owner = ?",
        "DELETE FROM revisions WHERE team = ? AND owner = ?",
        "DELETE FROM rejections WHERE team = ? AND owner = ?",
        "DELETE FROM held WHERE team = ? AND owner = ?",
        "UPDATE books SET revision = revision + 1, refusals = '{\"is_final\":false,\"turns\":[]}' WHERE team = ? AND owner = ?",
    ] {
        db.execute(sql, (team, owner))?;
    }
    db.execute(
        "DELETE FROM proposals WHERE team = ? AND (owner = ? OR (author = ? AND state <> 'approved'))",
        (team, owner, user.as_str()),
    )?;
    db.execute(
        "DELETE FROM requests WHERE team = ? AND substr(scope, instr(scope, '/') + 1) = ?",
        (team, user.as_str()),
    )?;
    Ok(())
}
