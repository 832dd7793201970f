//! All that is held on a person: to give it, and to erase it (`M-14`). What is removed is overwritten on disk, since the
//! database is opened with `secure_delete`.

use std::collections::BTreeMap;

use sqlx::FromRow;
use sqlx::sqlite::SqliteConnection;
use steward_base::Timestamp;
use steward_base::names::{EntryId, TeamId, UserId};
use steward_memory_core::{Derived, Held, Holding, Owner, Receipt, Revision, StoreName, Support, Target};

use super::proposals::ProposalRow;
use super::rows::RevisionRow;
use super::{Failure, damaged};
use steward_store::Batch;

const REVISIONS: &str = "\
SELECT r.owner, r.target, e.revision AS present, r.entry, r.revision, r.action, r.content, r.written_at, r.author, r.origin,
       r.session, r.turn, r.job, r.evidence_session, r.evidence_spans, r.basis, r.integrity, r.reason, r.approved_by,
       r.holds_until, r.checks
FROM revisions AS r
LEFT JOIN entries AS e USING (team, owner, target, entry)
WHERE r.team = ?1 AND (r.owner = ?2 OR (r.owner NOT LIKE 'users/%' AND r.author = ?3))
ORDER BY r.owner, r.target, r.entry, r.revision";

/// Whole histories of the shared entries in which the person appears.
const SHARED: &str = "\
SELECT r.owner, r.target, NULL AS present, r.entry, r.revision, r.action, r.content, r.written_at, r.author, r.origin,
       r.session, r.turn, r.job, r.evidence_session, r.evidence_spans, r.basis, r.integrity, r.reason, r.approved_by,
       r.holds_until, r.checks
FROM revisions AS r
WHERE r.team = ?1 AND r.owner NOT LIKE 'users/%'
  AND EXISTS (SELECT 1 FROM revisions AS own
              WHERE own.team = r.team AND own.owner = r.owner AND own.target = r.target AND own.entry = r.entry
                AND own.author = ?2)
ORDER BY r.owner, r.target, r.entry, r.revision";

const PROPOSALS: &str = "\
SELECT proposal, owner, target, operations, waiting, provenance, created_at, state, decided_by, decided_at, decision_reason,
       expires_at, fingerprint, shown, edited
FROM proposals
WHERE team = ? AND (owner = ? OR author = ?)
ORDER BY proposal";

const COUNTS: &str = "\
SELECT (SELECT count(*) FROM entries WHERE team = ?1 AND owner = ?2),
       (SELECT count(*) FROM revisions WHERE team = ?1 AND owner = ?2),
       (SELECT count(*) FROM proposals WHERE team = ?1 AND (owner = ?2 OR (author = ?3 AND state <> 'approved'))),
       (SELECT count(*) FROM requests WHERE team = ?1 AND substr(scope, instr(scope, '/') + 1) = ?3)
     + (SELECT count(*) FROM held WHERE team = ?1 AND owner = ?2)
     + (SELECT count(*) FROM rejections WHERE team = ?1 AND owner = ?2)";

#[derive(Debug, FromRow)]
struct PlacedRow {
    owner: String,
    target: String,
    present: Option<i64>,
    #[sqlx(flatten)]
    revision: RevisionRow,
}

impl PlacedRow {
    fn store(&self, team: &TeamId) -> Result<StoreName, Failure> {
        Ok(StoreName {
            team: team.clone(),
            owner: Owner::from_key(&self.owner).ok_or_else(|| damaged("owner", &self.owner))?,
            target: Target::parse(&self.target).ok_or_else(|| damaged("target", &self.target))?,
        })
    }
}

pub(super) async fn holdings(
    connection: &mut SqliteConnection,
    team: &TeamId,
    user: &UserId,
) -> Result<Vec<Holding>, Failure> {
    let owner = Owner::Person(user.clone()).key();
    let rows: Vec<PlacedRow> = sqlx::query_as(REVISIONS)
        .bind(team.as_str())
        .bind(&owner)
        .bind(user.as_str())
        .fetch_all(&mut *connection)
        .await?;
    let mut holdings = Vec::with_capacity(rows.len());
    for row in rows {
        holdings.push(Holding::Revision {
            store: row.store(team)?,
            present: row.present == Some(row.revision.revision),
            revision: Box::new(row.revision.into_revision()?),
        });
    }
    let rows: Vec<ProposalRow> = sqlx::query_as(PROPOSALS)
        .bind(team.as_str())
        .bind(&owner)
        .bind(user.as_str())
        .fetch_all(&mut *connection)
        .await?;
    for row in rows {
        holdings.push(Holding::Proposal(Box::new(row.into_proposal()?)));
    }
    for target in [Target::Notes, Target::Profile] {
        let store = StoreName {
            team: team.clone(),
            owner: Owner::Person(user.clone()),
            target,
        };
        let kept = held(connection, &store).await?;
        holdings.extend(kept.into_iter().map(|held| Holding::Held {
            store: store.clone(),
            held,
        }));
    }
    Ok(holdings)
}

pub(super) async fn held(connection: &mut SqliteConnection, store: &StoreName) -> Result<Vec<Held>, Failure> {
    let rows: Vec<(String, Vec<u8>, i64)> = sqlx::query_as(
        "SELECT held, bytes, came_at FROM held WHERE team = ? AND owner = ? AND target = ? ORDER BY came_at, held",
    )
    .bind(store.team.as_str())
    .bind(store.owner.key())
    .bind(store.target.as_str())
    .fetch_all(connection)
    .await?;
    rows.into_iter()
        .map(|(id, bytes, at)| {
            Ok(Held {
                id: EntryId::parse(id.as_str()).map_err(|_| damaged("held id", &id))?,
                bytes,
                at: Timestamp::from_micros(at),
            })
        })
        .collect()
}

/// Removes what is the person's own and, with `shared`, what rests on the person's words alone elsewhere.
pub(super) async fn erase(
    connection: &mut SqliteConnection,
    team: &TeamId,
    user: &UserId,
    shared: bool,
    at: Timestamp,
) -> Result<Receipt, Failure> {
    let owner = Owner::Person(user.clone()).key();
    let before = counts(connection, team, &owner, user).await?;
    let mut derived = Vec::new();
    let mut batch = Batch::default();
    for ((store, entry), history) in histories(connection, team, user).await? {
        let (Some(support), Some(last)) = (Support::of(&history, user), history.last()) else {
            continue;
        };
        let erased = shared && support == Support::Sole;
        if erased {
            remove_entry(&mut batch, &store, &entry);
        }
        derived.push(Derived {
            entry: store.entry(&entry),
            revision: last.number,
            support,
            erased,
        });
    }
    remove_own(&mut batch, team, &owner, user);
    batch
        .statement("INSERT OR REPLACE INTO erasures (team, owner, erased_at, revisions) VALUES (?, ?, ?, ?)")
        .with(team.as_str())
        .with(owner.as_str())
        .with(at.as_micros())
        .with(before.revisions);
    batch.run(connection).await?;
    let after = counts(connection, team, &owner, user).await?;
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

#[derive(Debug)]
struct Counts {
    entries: i64,
    revisions: i64,
    proposals: i64,
    others: i64,
}

async fn counts(
    connection: &mut SqliteConnection,
    team: &TeamId,
    owner: &str,
    user: &UserId,
) -> Result<Counts, Failure> {
    let (entries, revisions, proposals, others) = sqlx::query_as(COUNTS)
        .bind(team.as_str())
        .bind(owner)
        .bind(user.as_str())
        .fetch_one(connection)
        .await?;
    Ok(Counts {
        entries,
        revisions,
        proposals,
        others,
    })
}

type Histories = BTreeMap<(StoreName, EntryId), Vec<Revision>>;

async fn histories(connection: &mut SqliteConnection, team: &TeamId, user: &UserId) -> Result<Histories, Failure> {
    let rows: Vec<PlacedRow> = sqlx::query_as(SHARED)
        .bind(team.as_str())
        .bind(user.as_str())
        .fetch_all(connection)
        .await?;
    let mut histories = Histories::new();
    for row in rows {
        let store = row.store(team)?;
        let revision = row.revision.into_revision()?;
        histories
            .entry((store, revision.entry.clone()))
            .or_default()
            .push(revision);
    }
    Ok(histories)
}

fn remove_entry(batch: &mut Batch, store: &StoreName, entry: &EntryId) {
    for sql in [
        "DELETE FROM doubts WHERE team = ? AND owner = ? AND target = ? AND entry = ?",
        "DELETE FROM entries WHERE team = ? AND owner = ? AND target = ? AND entry = ?",
        "DELETE FROM revisions WHERE team = ? AND owner = ? AND target = ? AND entry = ?",
    ] {
        batch
            .statement(sql)
            .with(store.team.as_str())
            .with(store.owner.key())
            .with(store.target.as_str())
            .with(entry.as_str());
    }
    batch
        .statement("UPDATE books SET revision = revision + 1 WHERE team = ? AND owner = ? AND target = ?")
        .with(store.team.as_str())
        .with(store.owner.key())
        .with(store.target.as_str());
}

fn remove_own(batch: &mut Batch, team: &TeamId, owner: &str, user: &UserId) {
    for sql in [
        "DELETE FROM doubts WHERE team = ? AND owner = ?",
        "DELETE FROM entries WHERE team = ? AND owner = ?",
        "DELETE FROM revisions WHERE team = ? AND owner = ?",
        "DELETE FROM rejections WHERE team = ? AND owner = ?",
        "DELETE FROM held WHERE team = ? AND owner = ?",
        "UPDATE books SET revision = revision + 1, refusals = '{\"is_final\":false,\"turns\":[]}' WHERE team = ? AND owner = ?",
    ] {
        batch.statement(sql).with(team.as_str()).with(owner.to_owned());
    }
    batch
        .statement("DELETE FROM proposals WHERE team = ? AND (owner = ? OR (author = ? AND state <> 'approved'))")
        .with(team.as_str())
        .with(owner.to_owned())
        .with(user.as_str());
    batch
        .statement("DELETE FROM requests WHERE team = ? AND substr(scope, instr(scope, '/') + 1) = ?")
        .with(team.as_str())
        .with(user.as_str());
}
