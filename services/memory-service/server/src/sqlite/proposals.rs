//! Proposals: kept whole, read by who may see them.

use steward_base::Timestamp;
use steward_base::names::{TeamId, UserId};
use steward_memory_core::proposal::Decided;
use steward_memory_core::{
    Listed, Owner, Proposal, ProposalId, ProposalQuery, State, StoreName, Target, Visible, Waiting,
};
use steward_store::{Db, Row, StoreError, params};

use super::rows::user;
use super::write::json;
use super::{Failure, damaged};

/// A selection of what [`ProposalRow::read`] reads, in its order.
macro_rules! select_proposals {
    ($which:literal) => {
        concat!(
            "SELECT proposal, owner, target, operations, waiting, provenance, created_at, state, decided_by, decided_at, \
             decision_reason, expires_at, fingerprint, shown, edited FROM proposals ",
            $which
        )
    };
}
pub(super) use select_proposals;

const PAGE: &str = select_proposals!(
    "WHERE team = ?1 AND proposal > ?3 \
       AND CASE WHEN ?2 = 'expired' THEN state = 'pending' AND expires_at <= ?8 \
                WHEN ?2 = 'pending' THEN state = 'pending' AND expires_at > ?8 \
                ELSE state = ?2 END \
       AND (owner = ?4 OR (owner NOT LIKE 'users/%' AND ((?5 AND shown) OR author = ?6))) \
     ORDER BY proposal \
     LIMIT ?7"
);

const WAITING: &str = "\
SELECT count(*), min(created_at)
FROM proposals
WHERE team = ?1 AND state = 'pending' AND expires_at > ?2
  AND (owner = ?3 OR (owner NOT LIKE 'users/%' AND ((?4 AND shown) OR author = ?5)))";

const SAME: &str = select_proposals!(
    "WHERE team = ? AND state = 'pending' AND owner = ? AND target = ? AND fingerprint = ? AND expires_at > ? \
     ORDER BY proposal \
     LIMIT 1"
);

const PENDING: &str = "\
SELECT count(*) FROM proposals WHERE team = ? AND state = 'pending' AND owner = ? AND expires_at > ?";

const GET: &str = select_proposals!("WHERE team = ? AND proposal = ?");

const PUT: &str = "\
INSERT INTO proposals (team, proposal, owner, target, operations, waiting, author, provenance, created_at, state,
                       decided_by, decided_at, decision_reason, expires_at, fingerprint, shown, edited)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (team, proposal) DO UPDATE
SET state = excluded.state, decided_by = excluded.decided_by, decided_at = excluded.decided_at,
    decision_reason = excluded.decision_reason, shown = excluded.shown, edited = excluded.edited";

#[derive(Debug)]
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
    /// Reads what [`select_proposals`] selects.
    pub(super) fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        let mut columns = 0..;
        let mut column = || columns.next().unwrap_or_default();
        Ok(Self {
            proposal: row.get(column())?,
            owner: row.get(column())?,
            target: row.get(column())?,
            operations: row.get(column())?,
            waiting: row.get(column())?,
            provenance: row.get(column())?,
            created_at: row.get(column())?,
            state: row.get(column())?,
            decided_by: row.get(column())?,
            decided_at: row.get(column())?,
            decision_reason: row.get(column())?,
            expires_at: row.get(column())?,
            fingerprint: row.get(column())?,
            shown: row.get(column())?,
            edited: row.get(column())?,
        })
    }

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

pub(super) fn get(db: Db<'_>, team: &TeamId, proposal: &ProposalId) -> Result<Option<Proposal>, Failure> {
    db.first(GET, (team.as_str(), proposal.as_str()), |row| {
        ProposalRow::read(row)?.into_proposal()
    })
}

pub(super) fn page(db: Db<'_>, query: &ProposalQuery) -> Result<Vec<Listed>, Failure> {
    let user = query.visible.user.as_ref();
    let values = params![
        query.team.as_str(),
        query.state.as_str(),
        query.after.as_deref().unwrap_or(""),
        user.map(|user| Owner::Person(user.clone()).key()),
        query.visible.shared,
        user.map(UserId::as_str),
        query.limit,
        query.at.as_micros(),
    ];
    db.all(PAGE, values, |row| {
        let proposal = ProposalRow::read(row).map_err(Failure::from);
        let proposal = proposal.and_then(ProposalRow::into_proposal);
        Ok(proposal.map_err(|_| row.get(0).unwrap_or_default()))
    })
}

/// How many wait that `visible` includes, and since when the oldest does.
pub(super) fn waiting(
    db: Db<'_>,
    team: &TeamId,
    visible: &Visible,
    at: Timestamp,
) -> Result<(usize, Option<Timestamp>), Failure> {
    let user = visible.user.as_ref();
    let values = params![
        team.as_str(),
        at.as_micros(),
        user.map(|user| Owner::Person(user.clone()).key()),
        visible.shared,
        user.map(UserId::as_str),
    ];
    let counted = db.first(WAITING, values, |row| {
        let (count, oldest): (i64, Option<i64>) = (row.get(0)?, row.get(1)?);
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        Ok::<_, Failure>((count, oldest.map(Timestamp::from_micros)))
    });
    Ok(counted?.unwrap_or_default())
}

/// How many wait for the owner of `store`.
pub(super) fn pending(db: Db<'_>, store: &StoreName, at: Timestamp) -> Result<usize, Failure> {
    let values = (store.team.as_str(), store.owner.key(), at.as_micros());
    let count: i64 = db.value(PENDING, values)?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// A proposal for `store` with this fingerprint that waits.
pub(super) fn same(
    db: Db<'_>,
    store: &StoreName,
    fingerprint: &str,
    at: Timestamp,
) -> Result<Option<Proposal>, Failure> {
    let values = (
        store.team.as_str(),
        store.owner.key(),
        store.target.as_str(),
        fingerprint,
        at.as_micros(),
    );
    // One that cannot be read is no reason not to make another.
    let same = db.first(SAME, values, |row| {
        Ok::<_, Failure>(ProposalRow::read(row)?.into_proposal().ok())
    });
    Ok(same?.flatten())
}

pub(super) fn put(db: Db<'_>, team: &TeamId, proposal: &Proposal) -> Result<(), Failure> {
    let decided = proposal.decided.as_ref();
    let values = params![
        team.as_str(),
        proposal.id.as_str(),
        proposal.owner.key(),
        proposal.target.as_str(),
        json(&proposal.operations)?,
        proposal.waiting.as_str(),
        proposal.provenance.author.as_ref().map(UserId::as_str),
        json(&proposal.provenance)?,
        proposal.created.as_micros(),
        proposal.state.as_str(),
        decided.and_then(|decided| decided.by.as_ref()).map(UserId::as_str),
        decided.map(|decided| decided.at.as_micros()),
        decided.map(|decided| decided.reason.as_str()),
        proposal.expires.as_micros(),
        proposal.fingerprint.as_str(),
        proposal.shown,
        proposal.edited.as_ref().map(json).transpose()?,
    ];
    db.execute(PUT, values)?;
    Ok(())
}
