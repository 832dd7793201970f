//! Proposals. Their content is JSON; what is searched by has columns of its own. A proposal is pending in its row until
//! somebody decides or another takes its slot; that it has expired by then is told from the time.

use async_trait::async_trait;
use sqlx::sqlite::SqliteConnection;
use steward_base::names::TeamId;
use steward_base::{JobRef, Timestamp};
use steward_skill_core::error::StoreFault;
use steward_skill_core::proposals::{self, Proposal, ProposalState, Seen};
use steward_skill_core::store::{CommitError, ProposalStore};

use super::shelf::{decoded, encoded, owner};
use super::write::{self, Failure};
use super::{SqliteSkillStore, fault};

/// Keeps a decision if the proposal is pending; whether it was.
pub(super) async fn decide(connection: &mut SqliteConnection, proposal: &Proposal) -> Result<bool, Failure> {
    let content = encoded("encode a proposal", proposal).map_err(CommitError::Store)?;
    let decided = proposal.decision.as_ref().map_or(0, |decision| decision.at.as_micros());
    let changed = sqlx::query(
        "UPDATE proposals SET state = ?, content = ?, decided = ? WHERE team = ? AND id = ? AND state = 'pending'",
    )
    .bind(proposal.state.as_str())
    .bind(content)
    .bind(decided)
    .bind(proposal.team.as_str())
    .bind(&proposal.id)
    .execute(connection)
    .await?;
    Ok(changed.rows_affected() == 1)
}

async fn add(
    connection: &mut SqliteConnection,
    proposal: &Proposal,
    fence: Option<&JobRef>,
) -> Result<Option<String>, Failure> {
    if let Some(job) = fence {
        write::take_fence(connection, &proposal.team, job).await?;
    }
    let (slot, at) = (proposal.slot(), proposal.created.as_micros());
    sqlx::query(
        "UPDATE proposals SET state = 'expired' WHERE team = ? AND slot = ? AND state = 'pending' AND expires <= ?",
    )
    .bind(proposal.team.as_str())
    .bind(&slot)
    .bind(at)
    .execute(&mut *connection)
    .await?;
    let pending: Option<String> =
        sqlx::query_scalar("SELECT content FROM proposals WHERE team = ? AND slot = ? AND state = 'pending'")
            .bind(proposal.team.as_str())
            .bind(&slot)
            .fetch_optional(&mut *connection)
            .await?;
    if pending.is_some() {
        return Ok(pending);
    }
    let content = encoded("encode a proposal", proposal).map_err(CommitError::Store)?;
    let fingerprint = proposal
        .staged
        .as_ref()
        .map_or("", |staged| staged.fingerprint.as_str());
    sqlx::query(
        "INSERT INTO proposals (team, id, skill, slot, fingerprint, author, private, state, place, created, expires, \
         content) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(proposal.team.as_str())
    .bind(&proposal.id)
    .bind(&proposal.uid)
    .bind(&slot)
    .bind(fingerprint)
    .bind(owner(proposal.author.as_ref()))
    .bind(i64::from(proposal.is_private()))
    .bind(proposal.state.as_str())
    .bind(proposals::place(proposal))
    .bind(at)
    .bind(proposal.expires.map_or(i64::MAX, Timestamp::as_micros))
    .bind(content)
    .execute(connection)
    .await?;
    Ok(None)
}

/// A row whose state is told by a column: what expired when another took its slot was not written anew.
fn read(content: &str, state: &str) -> Result<Proposal, StoreFault> {
    let mut proposal: Proposal = decoded("a proposal", content)?;
    proposal.state = ProposalState::parse(state).ok_or_else(|| StoreFault::Damaged {
        what: format!("a proposal: is {state}"),
    })?;
    Ok(proposal)
}

#[async_trait]
impl ProposalStore for SqliteSkillStore {
    async fn proposal(&self, team: &TeamId, id: &str) -> Result<Option<Proposal>, StoreFault> {
        let internal = |error| fault("find a proposal", error);
        let mut reader = self.sqlite.read().await.map_err(internal)?;
        let found: Option<(String, String)> =
            sqlx::query_as("SELECT content, state FROM proposals WHERE team = ? AND id = ?")
                .bind(team.as_str())
                .bind(id)
                .fetch_optional(&mut *reader)
                .await
                .map_err(|error| internal(error.into()))?;
        found.map(|(content, state)| read(&content, &state)).transpose()
    }

    async fn proposals(
        &self,
        team: &TeamId,
        seen: &Seen,
        (state, at): (ProposalState, Timestamp),
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Proposal>, StoreFault> {
        let internal = |error| fault("list proposals", error);
        let mut reader = self.sqlite.read().await.map_err(internal)?;
        // Expired is what says so, and what is still called pending after its time.
        let found: Vec<(String, String)> = sqlx::query_as(
            "SELECT content, state FROM proposals \
             WHERE team = ?1 AND (author <> '' AND author = ?2 OR ?3 AND private = 0) AND place > ?4 \
             AND state IN (?7, 'pending') \
             AND CASE WHEN state = 'pending' AND expires <= ?6 THEN 'expired' ELSE state END = ?7 \
             ORDER BY place LIMIT ?5",
        )
        .bind(team.as_str())
        .bind(owner(seen.user.as_ref()))
        .bind(seen.team)
        .bind(after.unwrap_or_default())
        .bind(i64::from(limit))
        .bind(at.as_micros())
        .bind(state.as_str())
        .fetch_all(&mut *reader)
        .await
        .map_err(|error| internal(error.into()))?;
        found.iter().map(|(content, state)| read(content, state)).collect()
    }

    async fn waiting(
        &self,
        team: &TeamId,
        seen: &Seen,
        at: Timestamp,
    ) -> Result<(usize, Option<Timestamp>), StoreFault> {
        let internal = |error| fault("count proposals", error);
        let mut reader = self.sqlite.read().await.map_err(internal)?;
        let (count, oldest): (i64, Option<i64>) = sqlx::query_as(
            "SELECT count(*), min(created) FROM proposals \
             WHERE team = ?1 AND (author <> '' AND author = ?2 OR ?3 AND private = 0) AND state = 'pending' AND expires > ?4",
        )
            .bind(team.as_str())
            .bind(owner(seen.user.as_ref()))
            .bind(seen.team)
            .bind(at.as_micros())
            .fetch_one(&mut *reader)
            .await
            .map_err(|error| internal(error.into()))?;
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        Ok((count, oldest.map(Timestamp::from_micros)))
    }

    async fn rejected(
        &self,
        team: &TeamId,
        fingerprint: &str,
        since: Timestamp,
    ) -> Result<Option<Proposal>, StoreFault> {
        let internal = |error| fault("find a rejection", error);
        let mut reader = self.sqlite.read().await.map_err(internal)?;
        let found: Option<(String, String)> = sqlx::query_as(
            "SELECT content, state FROM proposals WHERE team = ? AND fingerprint = ? AND fingerprint <> '' \
             AND state = 'rejected' AND decided > ? ORDER BY decided DESC LIMIT 1",
        )
        .bind(team.as_str())
        .bind(fingerprint)
        .bind(since.as_micros())
        .fetch_optional(&mut *reader)
        .await
        .map_err(|error| internal(error.into()))?;
        found.map(|(content, state)| read(&content, &state)).transpose()
    }

    async fn add_proposal(&self, proposal: Proposal, fence: Option<JobRef>) -> Result<Option<Proposal>, CommitError> {
        let written = self
            .sqlite
            .write(move |connection| Box::pin(async move { add(connection, &proposal, fence.as_ref()).await }))
            .await;
        let pending: Option<String> = written.map_err(Failure::into_commit_error)?;
        let decode = |content: String| decoded("a proposal", &content);
        Ok(pending.map(decode).transpose()?)
    }

    async fn decide(&self, proposal: Proposal) -> Result<bool, StoreFault> {
        let written = self
            .sqlite
            .write(move |connection| Box::pin(async move { decide(connection, &proposal).await }))
            .await;
        written.map_err(|failure: Failure| match failure.into_commit_error() {
            CommitError::Store(fault) => fault,
            other => StoreFault::Internal {
                operation: "decide on a proposal",
                source: Box::new(other),
            },
        })
    }
}
