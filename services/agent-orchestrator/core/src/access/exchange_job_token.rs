//! `ExchangeJobToken`: a claim of a job becomes a credential that ends with the lease (`A-2`).
//!
//! The worker asks with its own identity at each claim and each heartbeat. A user who has lost access gets none, so that
//! a running job of that user ends at its next heartbeat at the latest.

use std::collections::BTreeSet;
use std::time::Duration;

use steward_base::names::{SessionId, TeamId, UserId};
use steward_base::{FieldViolations, JobRef, Origin, Timestamp};

use super::sign::{Claims, Credential, Subject};
use super::{Access, Error};

/// Longest life of a job's credential.
const MAX_TTL: Duration = Duration::from_mins(10);
/// Longest job id, in characters.
const MAX_JOB_ID: usize = 128;

/// Every capability that a restricted credential can have. One that is not here would open nothing.
pub const KNOWN_CAPABILITIES: &[&str] = &[
    "generate",
    "library_curate",
    "library_read",
    "memory",
    "memory_snapshot",
    "session_history",
    "session_search",
    "skill_index",
    "skill_manage",
    "skill_view",
    "skills_list",
];

/// What the worker asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobTokenRequest {
    /// Team of the person on whose behalf the job runs.
    pub team: TeamId,
    /// The person.
    pub user: UserId,
    /// Job and fence of the claim.
    pub job: JobRef,
    /// Origin that the job's writes will have.
    pub origin: Origin,
    /// Session that the job looks at.
    pub session: Option<SessionId>,
    /// Capabilities that the job needs.
    pub capabilities: Vec<String>,
    /// How long the lease still lives.
    pub ttl: Duration,
}

/// The credential for a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobToken {
    /// The credential.
    pub credential: Credential,
    /// When it ends.
    pub expires: Timestamp,
}

impl JobTokenRequest {
    fn check(&self) -> Result<(), FieldViolations> {
        let mut violations = FieldViolations::new();
        if self.job.id.is_empty() || self.job.id.chars().count() > MAX_JOB_ID {
            violations.add("job_id", format!("must have 1 to {MAX_JOB_ID} characters"));
        }
        if self.job.fence == 0 {
            violations.add("fence", "must be at least 1");
        }
        if !matches!(self.origin, Origin::Review | Origin::Curation) {
            violations.add("origin", "must be review or curation");
        }
        for (index, capability) in self.capabilities.iter().enumerate() {
            if !KNOWN_CAPABILITIES.contains(&capability.as_str()) {
                violations.add(format!("capabilities[{index}]"), "is not a capability");
            }
        }
        if self.ttl.is_zero() || self.ttl > MAX_TTL {
            violations.add("ttl", "must be more than zero and at most 10 minutes");
        }
        violations.into_result()
    }
}

impl Access {
    /// Signs the credential of a claim.
    pub async fn exchange_job_token(&self, request: JobTokenRequest) -> Result<JobToken, Error> {
        request.check()?;
        let JobTokenRequest {
            team,
            user,
            job,
            origin,
            session,
            capabilities,
            ttl,
        } = request;
        let Some(record) = self.store.user(&team, &user).await? else {
            return Err(Error::UserNotFound { team, user });
        };
        if record.disabled {
            return Err(Error::UserDisabled { team, user });
        }
        let now = self.clock.now();
        let claims = Claims {
            id: self.ids.new_id(),
            subject: Subject::Job {
                job,
                session,
                capabilities: capabilities.into_iter().collect::<BTreeSet<_>>(),
            },
            person: Some((team, user)),
            role: record.role,
            origin,
            issued: now,
            expires: now.plus(ttl),
        };
        Ok(JobToken {
            credential: self.signer.sign(&claims)?,
            expires: claims.expires,
        })
    }
}
