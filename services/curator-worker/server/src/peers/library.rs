//! The registry's library as a run sees it: called with the token of its job and with nothing else.

use async_trait::async_trait;
use steward_base::Timestamp;
use steward_base::names::{TeamId, team_name};
use steward_client::LibraryClient;
use steward_curator_core::Error;
use steward_curator_core::curation::RunId;
use steward_curator_core::curation::execute::{Change, Library, LibraryPort};
use steward_curator_core::curation::transitions::{Age, Decision, Record};
use steward_proto::skill::v1 as pb;
use steward_proto::skill::v1::transition_result::Outcome;
use steward_runtime::failpoint;

use super::SKILLS;
use crate::identity::JobToken;

/// Records of one call.
const PAGE: i32 = 500;

/// The library for one claim.
#[derive(Debug)]
pub(crate) struct JobLibrary {
    client: LibraryClient,
    team: TeamId,
}

impl JobLibrary {
    pub(crate) fn new(client: &LibraryClient, team: &TeamId, token: &JobToken) -> Self {
        Self {
            client: client.clone().with_credentials(token.credentials()),
            team: team.clone(),
        }
    }
}

#[async_trait]
impl LibraryPort for JobLibrary {
    async fn records(&self) -> Result<Library, Error> {
        let (mut library, mut page_token) = (Library::default(), String::new());
        loop {
            let request = pb::ListRecordsRequest {
                parent: team_name(&self.team),
                page_size: PAGE,
                page_token,
            };
            let page = self.client.list_records(request).await.map_err(super::by(SKILLS))?;
            for found in page.records {
                library.records.push(record(found)?);
            }
            library
                .damaged
                .extend(page.damaged.into_iter().map(|damaged| damaged.name));
            if page.next_page_token.is_empty() {
                return Ok(library);
            }
            page_token = page.next_page_token;
        }
    }

    async fn create_snapshot(&self, run: &RunId) -> Result<String, Error> {
        let request = pb::CreateSnapshotRequest {
            parent: team_name(&self.team),
            run: run.to_string(),
        };
        let response = self.client.create_snapshot(request).await.map_err(super::by(SKILLS))?;
        Ok(response.snapshot.unwrap_or_default().name)
    }

    async fn apply(&self, run: &RunId, decisions: &[Decision]) -> Result<Vec<Change>, Error> {
        let transitions = decisions.iter().map(|decision| pb::Transition {
            uid: decision.uid.clone(),
            etag: decision.etag.clone(),
            age: age_to_pb(decision.to).into(),
        });
        let request = pb::ApplyTransitionsRequest {
            parent: team_name(&self.team),
            run: run.to_string(),
            transitions: transitions.collect(),
        };
        let response = self
            .client
            .apply_transitions(request)
            .await
            .map_err(super::by(SKILLS))?;
        failpoint::hit("curation.change.after");
        response.results.into_iter().map(change).collect()
    }

    async fn rollback(&self, run: &RunId, rollback: &RunId) -> Result<(String, Vec<Change>), Error> {
        let request = pb::RollbackRunRequest {
            parent: team_name(&self.team),
            run: run.to_string(),
            rollback: rollback.to_string(),
        };
        let response = self.client.rollback_run(request).await.map_err(super::by(SKILLS))?;
        failpoint::hit("curation.rollback.after");
        let changes = response.results.into_iter().map(change).collect::<Result<_, _>>()?;
        Ok((response.snapshot.unwrap_or_default().name, changes))
    }
}

fn record(found: pb::LibraryRecord) -> Result<Record, Error> {
    let time = |at: prost_types::Timestamp| Timestamp::from_parts(at.seconds, at.nanos);
    let created = found.create_time.map(time);
    Ok(Record {
        age: age(found.age())?,
        pinned: found.pinned,
        referenced: found.referenced,
        uses: found.uses,
        patches: found.patches,
        last_used: found.last_use_time.map(time),
        last_changed: found.last_change_time.map(time),
        created: created.ok_or_else(|| Error::unreadable("a record of the library", "it has no creation"))?,
        uid: found.uid,
        name: found.name,
        etag: found.etag,
    })
}

fn change(result: pb::TransitionResult) -> Result<Change, Error> {
    let outcome = match result.outcome() {
        Outcome::Applied => "applied",
        Outcome::Unchanged => "unchanged",
        Outcome::Conflict => "conflict",
        Outcome::Refused => "refused",
        Outcome::Unspecified => return Err(Error::unreadable("a change of the library", "it has no outcome")),
    };
    Ok(Change {
        from: age(result.from())?,
        to: age(result.to())?,
        outcome: outcome.to_owned(),
        skill: result.name,
        reason: result.reason,
    })
}

fn age(age: pb::SkillAge) -> Result<Age, Error> {
    match age {
        pb::SkillAge::Active => Ok(Age::Active),
        pb::SkillAge::Stale => Ok(Age::Stale),
        pb::SkillAge::Archived => Ok(Age::Archived),
        pb::SkillAge::Unspecified => Err(Error::unreadable("a record of the library", "it has no age")),
    }
}

const fn age_to_pb(age: Age) -> pb::SkillAge {
    match age {
        Age::Active => pb::SkillAge::Active,
        Age::Stale => pb::SkillAge::Stale,
        Age::Archived => pb::SkillAge::Archived,
    }
}
