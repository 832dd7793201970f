//! Proposals: kept whole, read by who may see them.

use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{FromRow, Row as _};
use steward_base::Timestamp;
use steward_base::names::TeamId;
use steward_memory_core::proposal::Decided;
use steward_memory_core::{Listed, Owner, Proposal, ProposalId, ProposalQuery, State, Target, Waiting};

use super::rows::user;
use super::{Failure, damaged};

const PAGE: &str = "\
SELECT proposal, owner, target, operations, waiting, provenance, created_at, state, decided_by, decided_at, decision_reason
FROM proposals
WHERE team = ?1 AND state = ?2 AND proposal > ?3
  AND (owner = ?4 OR (owner NOT LIKE 'users/%' AND (?5 OR author = ?6)))
ORDER BY proposal
LIMIT ?7";

const GET: &str = "\
SELECT proposal, owner, target, operations, waiting, provenance, created_at, state, decided_by, decided_at, decision_reason
FROM proposals
WHERE team = ? AND proposal = ?";

const PUT: &str = "\
INSERT INTO proposals (team, proposal, owner, target, operations, waiting, author, provenance, created_at, state,
                       decided_by, decided_at, decision_reason)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (team, proposal) DO UPDATE SET
    state = excluded.state, decided_by = excluded.decided_by, decided_at = excluded.decided_at,
    decision_reason = excluded.decision_reason";

#[derive(Debug, FromRow)]
struct ProposalRow {
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
}

impl ProposalRow {
    fn into_proposal(self) -> Result<Proposal, Failure> {
        let decided = match self.decided_at {
            None => None,
            Some(at) => Some(Decided {
                by: user(self.decided_by.as_deref())?,
                at: Timestamp::from_micros(at),
                reason: self.decision_reason.unwrap_or_default(),
            }),
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

/// How many proposals wait for a decision on what `owner` has.
pub(super) async fn pending(connection: &mut SqliteConnection, team: &TeamId, owner: &Owner) -> Result<usize, Failure> {
    let count: i64 =
        sqlx::query_scalar("SELECT count(*) FROM proposals WHERE team = ? AND state = 'pending' AND owner = ?")
            .bind(team.as_str())
            .bind(owner.key())
            .fetch_one(connection)
            .await?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

pub(super) async fn put(connection: &mut SqliteConnection, team: &TeamId, proposal: &Proposal) -> Result<(), Failure> {
    let decided = proposal.decided.as_ref();
    sqlx::query(PUT)
        .bind(team.as_str())
        .bind(proposal.id.as_str())
        .bind(proposal.owner.key())
        .bind(proposal.target.as_str())
        .bind(super::write::json(&proposal.operations)?)
        .bind(proposal.waiting.as_str())
        .bind(proposal.provenance.author.as_ref().map(|user| user.as_str().to_owned()))
        .bind(super::write::json(&proposal.provenance)?)
        .bind(proposal.created.as_micros())
        .bind(proposal.state.as_str())
        .bind(
            decided
                .and_then(|decided| decided.by.as_ref())
                .map(|user| user.as_str().to_owned()),
        )
        .bind(decided.map(|decided| decided.at.as_micros()))
        .bind(decided.map(|decided| decided.reason.clone()))
        .execute(connection)
        .await?;
    Ok(())
}
