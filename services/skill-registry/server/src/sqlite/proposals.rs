//! Proposals. Their content is JSON; what is searched by has columns of its own. A proposal is pending in its row until
//! somebody decides or another takes its slot; that it has expired by then is told from the time.

use async_trait::async_trait;
use steward_base::names::TeamId;
use steward_base::{JobRef, Timestamp};
use steward_skill_core::error::StoreFault;
use steward_skill_core::proposals::{self, Proposal, ProposalState, Seen};
use steward_skill_core::store::{CommitError, ProposalStore};
use steward_store::{Db, Row, params};

use super::SqliteSkillStore;
use super::shelf::{decoded, encoded, owner};
use super::write::{self, Failure};

/// Keeps a decision if the proposal is pending; whether it was.
pub(super) fn decide(db: Db<'_>, proposal: &Proposal) -> Result<bool, Failure> {
    let content = encoded("encode a proposal", proposal)?;
    let decided = proposal.decision.as_ref().map_or(0, |decision| decision.at.as_micros());
    let changed = db.execute(
        "UPDATE proposals SET state = ?, content = ?, decided = ? WHERE team = ? AND id = ? AND state = 'pending'",
        params![
            proposal.state.as_str(),
            content,
            decided,
            proposal.team.as_str(),
            &proposal.id
        ],
    )?;
    Ok(changed == 1)
}

fn add(db: Db<'_>, proposal: &Proposal, fence: Option<&JobRef>) -> Result<Option<Proposal>, Failure> {
    if let Some(job) = fence {
        write::take_fence(db, &proposal.team, job)?;
    }
    let (slot, at) = (proposal.slot(), proposal.created.as_micros());
    db.execute(
        "UPDATE proposals SET state = 'expired' WHERE team = ? AND slot = ? AND state = 'pending' AND expires <= ?",
        params![proposal.team.as_str(), &slot, at],
    )?;
    let pending: Option<String> = db.optional(
        "SELECT content FROM proposals WHERE team = ? AND slot = ? AND state = 'pending'",
        params![proposal.team.as_str(), &slot],
    )?;
    if let Some(pending) = pending {
        return Ok(Some(decoded("a proposal", &pending)?));
    }
    let content = encoded("encode a proposal", proposal)?;
    let fingerprint = proposal
        .staged
        .as_ref()
        .map_or("", |staged| staged.fingerprint.as_str());
    db.execute(
        "INSERT INTO proposals (team, id, skill, slot, fingerprint, author, private, state, place, created, expires, \
         content) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            proposal.team.as_str(),
            &proposal.id,
            &proposal.uid,
            &slot,
            fingerprint,
            owner(proposal.author.as_ref()),
            i64::from(proposal.is_private()),
            proposal.state.as_str(),
            proposals::place(proposal),
            at,
            proposal.expires.map_or(i64::MAX, Timestamp::as_micros),
            content
        ],
    )?;
    Ok(None)
}

/// A row of content and state. The column tells the state: what expired when another took its slot was not written anew.
fn read(row: &Row<'_>) -> Result<Proposal, Failure> {
    let (content, state): (String, String) = (row.get("content")?, row.get("state")?);
    let mut proposal: Proposal = decoded("a proposal", &content)?;
    proposal.state = ProposalState::parse(&state).ok_or_else(|| StoreFault::Damaged {
        what: format!("a proposal: is {state}"),
    })?;
    Ok(proposal)
}

#[async_trait]
impl ProposalStore for SqliteSkillStore {
    async fn proposal(&self, team: &TeamId, id: &str) -> Result<Option<Proposal>, StoreFault> {
        let found = self.sqlite.view(|db| {
            db.first(
                "SELECT content, state FROM proposals WHERE team = ? AND id = ?",
                [team.as_str(), id],
                read,
            )
        });
        found.await.map_err(|failure| failure.into_fault("find a proposal"))
    }

    async fn proposals(
        &self,
        team: &TeamId,
        seen: &Seen,
        (state, at): (ProposalState, Timestamp),
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Proposal>, StoreFault> {
        let (team, author, others) = (team.clone(), owner(seen.user.as_ref()), seen.team);
        let after = after.unwrap_or_default().to_owned();
        let found = self.sqlite.view_beside(move |db| {
            // Expired is what says so, and what is still called pending after its time.
            db.all(
                "SELECT content, state FROM proposals \
                 WHERE team = ?1 AND (author <> '' AND author = ?2 OR ?3 AND private = 0) AND place > ?4 \
                 AND state IN (?7, 'pending') \
                 AND CASE WHEN state = 'pending' AND expires <= ?6 THEN 'expired' ELSE state END = ?7 \
                 ORDER BY place LIMIT ?5",
                params![
                    team.as_str(),
                    author,
                    others,
                    after,
                    limit,
                    at.as_micros(),
                    state.as_str()
                ],
                read,
            )
        });
        found.await.map_err(|failure| failure.into_fault("list proposals"))
    }

    async fn waiting(
        &self,
        team: &TeamId,
        seen: &Seen,
        at: Timestamp,
    ) -> Result<(usize, Option<Timestamp>), StoreFault> {
        let (team, author, others) = (team.clone(), owner(seen.user.as_ref()), seen.team);
        let found = self.sqlite.view_beside(move |db| {
            db.first(
                "SELECT count(*), min(created) FROM proposals WHERE team = ?1 \
                 AND (author <> '' AND author = ?2 OR ?3 AND private = 0) AND state = 'pending' AND expires > ?4",
                params![team.as_str(), author, others, at.as_micros()],
                |row| Ok::<(i64, Option<i64>), Failure>((row.get(0)?, row.get(1)?)),
            )
        });
        let found = found.await.map_err(|failure| failure.into_fault("count proposals"))?;
        let (count, oldest) = found.unwrap_or_default();
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        Ok((count, oldest.map(Timestamp::from_micros)))
    }

    async fn rejected(
        &self,
        team: &TeamId,
        fingerprint: &str,
        since: Timestamp,
    ) -> Result<Option<Proposal>, StoreFault> {
        let found = self.sqlite.view(|db| {
            db.first(
                "SELECT content, state FROM proposals WHERE team = ? AND fingerprint = ? AND fingerprint <> '' \
                 AND state = 'rejected' AND decided > ? ORDER BY decided DESC LIMIT 1",
                params![team.as_str(), fingerprint, since.as_micros()],
                read,
            )
        });
        found.await.map_err(|failure| failure.into_fault("find a rejection"))
    }

    async fn add_proposal(&self, proposal: Proposal, fence: Option<JobRef>) -> Result<Option<Proposal>, CommitError> {
        let added = self.sqlite.update(move |db| add(db, &proposal, fence.as_ref())).await;
        added.map_err(Failure::into_commit_error)
    }

    async fn decide(&self, proposal: Proposal) -> Result<bool, StoreFault> {
        let decided = self.sqlite.update(move |db| decide(db, &proposal)).await;
        decided.map_err(|failure| failure.into_fault("decide on a proposal"))
    }
}
