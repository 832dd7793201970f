//! Proposals: kept whole, read by who may see them.

use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{FromRow, Row as _};
use steward_base::Timestamp;
use steward_base::names::{TeamId, UserId};
use steward_memory_core::proposal::Decided;
use steward_memory_core::{
    Listed, Owner, Proposal, ProposalId, ProposalQuery, State, StoreName, Target, Visible, Waiting,
};

use super::rows::user;
use super::{Failure, damaged};
use steward_store::Batch;

const PAGE: &str = "\
SELECT proposal, owner, target, operations, waiting, provenance, created_at, state, decided_by, decided_at, decision_reason,
       expires_at, fingerprint, shown, edited
FROM proposals
WHERE team = ?1 AND proposal > ?3
  AND CASE WHEN ?2 = 'expired' THEN state = 'pending' AND expires_at <= ?8
           WHEN ?2 = 'pending' THEN state = 'pending' AND expires_at > ?8
           ELSE state = ?2 END
  AND (owner = ?4 OR (owner NOT LIKE 'users/%' AND ((?5 AND shown) OR author = ?6)))
ORDER BY proposal
LIMIT ?7";

const WAITING: &str = "\
SELECT count(*), min(created_at)
FROM proposals
WHERE team = ?1 AND state = 'pending' AND expires_at > ?2
  AND (owner = ?3 OR (owner NOT LIKE 'users/%' AND ((?4 AND shown) OR author = ?5)))";

const SAME: &str = "\
SELECT proposal, owner, target, operations, waiting, provenance, created_at, state, decided_by, decided_at, decision_reason,
       expires_at, fingerprint, shown, edited
FROM proposals
WHERE team = ? AND state = 'pending' AND owner = ? AND target = ? AND fingerprint = ? AND expires_at > ?
ORDER BY proposal
LIMIT 1";

const GET: &str = "\
SELECT proposal, owner, target, operations, waiting, provenance, created_at, state, decided_by, decided_at, decision_reason,
       expires_at, fingerprint, shown, edited
FROM proposals
WHERE team = ? AND proposal = ?";

#[derive(Debug, FromRow)]
pub(super) struct ProposalRow {
    proposal: String,
    owner: String,
    target: String,
    operations: String,
    waiting: String,
    provenance: String,
    created_at: i64,
    state: String,
    decided_by: Option<String>,
    decided_at: Option<i64>,
    decision_reason: Option<String>,
    expires_at: i64,
    fingerprint: String,
    shown: bool,
    edited: Option<String>,
}

impl ProposalRow {
    pub(super) fn into_proposal(self) -> Result<Proposal, Failure> {
        let decided = match self.decided_at {
            None => None,
            Some(at) => Some(Decided {
                by: user(self.decided_by.as_deref())?,
                at: Timestamp::from_micros(at),
                reason: self.decision_reason.unwrap_or_default(),
            }),
        };
        let edited = match &self.edited {
            None => None,
            Some(text) => {
                Some(serde_json::from_str(text).map_err(|_| damaged("edited operations of", &self.proposal))?)
            }
        };
        Ok(Proposal {
            id: ProposalId::parse(self.proposal.as_str()).map_err(|_| damaged("proposal id", &self.proposal))?,
            owner: Owner::from_key(&self.owner).ok_or_else(|| damaged("owner", &self.owner))?,
            target: Target::parse(&self.target).ok_or_else(|| damaged("target", &self.target))?,
            operations: serde_json::from_str(&self.operations).map_err(|_| damaged("operations of", &self.proposal))?,
            waiting: Waiting::parse(&self.waiting).ok_or_else(|| damaged("cause", &self.waiting))?,
            provenance: serde_json::from_str(&self.provenance).map_err(|_| damaged("provenance of", &self.proposal))?,
            created: Timestamp::from_micros(self.created_at),
            state: State::parse(&self.state).ok_or_else(|| damaged("state", &self.state))?,
            decided,
            expires: Timestamp::from_micros(self.expires_at),
            fingerprint: self.fingerprint,
            shown: self.shown,
            edited,
        })
    }
}

pub(super) async fn get(
    connection: &mut SqliteConnection,
    team: &TeamId,
    proposal: &ProposalId,
) -> Result<Option<Proposal>, Failure> {
    let row: Option<ProposalRow> = sqlx::query_as(GET)
        .bind(team.as_str())
        .bind(proposal.as_str())
        .fetch_optional(connection)
        .await?;
    row.map(ProposalRow::into_proposal).transpose()
}

pub(super) async fn page(connection: &mut SqliteConnection, query: &ProposalQuery) -> Result<Vec<Listed>, Failure> {
    let user = query.visible.user.as_ref();
    let rows: Vec<SqliteRow> = sqlx::query(PAGE)
        .bind(query.team.as_str())
        .bind(query.state.as_str())
        .bind(query.after.as_deref().unwrap_or(""))
        .bind(user.map(|user| Owner::Person(user.clone()).key()))
        .bind(query.visible.shared)
        .bind(user.map(|user| user.as_str().to_owned()))
        .bind(query.limit)
        .bind(query.at.as_micros())
        .fetch_all(connection)
        .await?;
    let read = |row: &SqliteRow| {
        let proposal = ProposalRow::from_row(row).map_err(Failure::from);
        proposal
            .and_then(ProposalRow::into_proposal)
            .map_err(|_| row.try_get("proposal").unwrap_or_default())
    };
    Ok(rows.iter().map(read).collect())
}

/// How many wait that `visible` includes, and since when the oldest does.
pub(super) async fn waiting(
    connection: &mut SqliteConnection,
    team: &TeamId,
    visible: &Visible,
    at: Timestamp,
) -> Result<(usize, Option<Timestamp>), Failure> {
    let user = visible.user.as_ref();
    let (count, oldest): (i64, Option<i64>) = sqlx::query_as(WAITING)
        .bind(team.as_str())
        .bind(at.as_micros())
        .bind(user.map(|user| Owner::Person(user.clone()).key()))
        .bind(visible.shared)
        .bind(user.map(|user| user.as_str().to_owned()))
        .fetch_one(connection)
        .await?;
    Ok((
        usize::try_from(count).unwrap_or(usize::MAX),
        oldest.map(Timestamp::from_micros),
    ))
}

/// A proposal for `store` with this fingerprint that waits.
pub(super) async fn same(
    connection: &mut SqliteConnection,
    store: &StoreName,
    fingerprint: &str,
    at: Timestamp,
) -> Result<Option<Proposal>, Failure> {
    let row: Option<ProposalRow> = sqlx::query_as(SAME)
        .bind(store.team.as_str())
        .bind(store.owner.key())
        .bind(store.target.as_str())
        .bind(fingerprint)
        .bind(at.as_micros())
        .fetch_optional(connection)
        .await?;
    // One that cannot be read is no reason not to make another.
    Ok(row.and_then(|row| row.into_proposal().ok()))
}

pub(super) fn put(batch: &mut Batch, team: &TeamId, proposal: &Proposal) -> Result<(), Failure> {
    let decided = proposal.decided.as_ref();
    let edited = proposal.edited.as_ref().map(super::write::json).transpose()?;
    let (operations, provenance) = (
        super::write::json(&proposal.operations)?,
        super::write::json(&proposal.provenance)?,
    );
    batch
        .statement(
            "INSERT INTO proposals (team, proposal, owner, target, operations, waiting, author, provenance, created_at, state, \
             decided_by, decided_at, decision_reason, expires_at, fingerprint, shown, edited) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
             ON CONFLICT (team, proposal) DO UPDATE SET state = excluded.state, decided_by = excluded.decided_by, \
             decided_at = excluded.decided_at, decision_reason = excluded.decision_reason, shown = excluded.shown, \
             edited = excluded.edited",
        )
        .with(team.as_str())
        .with(proposal.id.as_str())
        .with(proposal.owner.key())
        .with(proposal.target.as_str())
        .with(operations)
        .with(proposal.waiting.as_str())
        .with(proposal.provenance.author.as_ref().map(UserId::as_str))
        .with(provenance)
        .with(proposal.created.as_micros())
        .with(proposal.state.as_str())
        .with(decided.and_then(|decided| decided.by.as_ref()).map(UserId::as_str))
        .with(decided.map(|decided| decided.at.as_micros()))
        .with(decided.map(|decided| decided.reason.as_str()))
        .with(proposal.expires.as_micros())
        .with(proposal.fingerprint.as_str())
        .with(proposal.shown)
        .with(edited);
    Ok(())
}
