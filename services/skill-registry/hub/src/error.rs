//! What can go wrong in the hub, as data.

use std::time::Duration;

use steward_base::{ErrorKind, Fault, FieldViolation, FieldViolations, Role};
use steward_skill_provenance::Barrier;
use steward_skill_scanner::Verdict;

use crate::quarantine::State;
use crate::source::SourceError;
use crate::withdrawal::Standing;

/// Why a hub operation did nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No enabled source has this name or claims this reference.
    #[error("no source takes {reference:?}")]
    NoSource {
        /// The reference or source's name.
        reference: String,
    },
    /// The source that a skill came from is switched off; no other one is asked for it.
    #[error("{name} is switched off")]
    SourceOff {
        /// The source.
        name: String,
    },
    /// A source failed.
    #[error("{name} did not deliver")]
    Source {
        /// The source.
        name: String,
        /// Why.
        #[source]
        source: SourceError,
    },
    /// No such item in quarantine.
    #[error("there is no quarantine item {id:?}")]
    NoItem {
        /// Its id.
        id: String,
    },
    /// No installed skill of this name.
    #[error("no skill {name:?} was installed from the hub")]
    NotInstalled {
        /// Its name.
        name: String,
    },
    /// The item is in a state that does not permit this.
    #[error("the item is {}, which does not permit this", state.as_str())]
    WrongState {
        /// Its state.
        state: State,
    },
    /// The folder is no skill that can be installed.
    #[error("the folder is no skill that can be installed: {}", problems.join("; "))]
    Structure {
        /// What is wrong.
        problems: Vec<String>,
    },
    /// The policy blocks it.
    #[error("a {verdict} verdict is blocked for {trust} skills")]
    Blocked {
        /// The verdict.
        verdict: Verdict,
        /// The level of trust.
        trust: &'static str,
    },
    /// A signature that does not hold, or lacks where one is required. Nobody's word lifts this.
    #[error("{barrier}")]
    Signature {
        /// What stands in the way.
        barrier: Barrier,
    },
    /// What was approved is not what would be installed.
    #[error("the approval was for something else: {what} differs")]
    ApprovalVoid {
        /// What differs.
        what: &'static str,
    },
    /// Nobody installs it any more.
    #[error("it is {}: {reason}", standing.as_str())]
    Withdrawn {
        /// Yanked or revoked.
        standing: Standing,
        /// Why.
        reason: String,
    },
    /// Nothing is known of this tree.
    #[error("{digest} is not withdrawn")]
    NoWithdrawal {
        /// The digest.
        digest: String,
    },
    /// The team publishes no such skill.
    #[error("no skill {name:?} is published")]
    NotPublished {
        /// Its name.
        name: String,
    },
    /// The skill is not one that a team gives out.
    #[error("{name:?} cannot be published: {problem}")]
    NotPublishable {
        /// Its resource name.
        name: String,
        /// Why.
        problem: &'static str,
    },
    /// Force needs a reason.
    #[error("force needs a reason")]
    NoReason,
    /// The name belongs to a skill that did not come from this source.
    #[error("{name:?} is taken by {holder}")]
    NameTaken {
        /// The name.
        name: String,
        /// What holds it.
        holder: String,
    },
    /// The installed skill was changed since it was installed.
    #[error("{name:?} was changed here since it was installed")]
    Drifted {
        /// The skill.
        name: String,
        /// The files that differ.
        files: Vec<String>,
    },
    /// The library's own rules refuse the skill.
    #[error("{}", .0.message)]
    Library(Refusal),
    /// Someone else was quicker.
    #[error("it was changed meanwhile")]
    ChangedMeanwhile {
        /// What is no longer so.
        problem: String,
    },
    /// The quarantine is full.
    #[error("{open} items wait in quarantine, and {limit} may; reject or install some first")]
    QuarantineFull {
        /// Items that wait.
        open: usize,
        /// How many may.
        limit: usize,
    },
    /// The request id was used for another reference.
    #[error("the request id was used for {reference:?}")]
    RequestIdReused {
        /// What it was used for.
        reference: String,
    },
    /// The person's role may not do this.
    #[error("a {} may not do this, a {} may", role_name(*role), role_name(*required))]
    RoleRequired {
        /// The role.
        role: Role,
        /// The lowest that may.
        required: Role,
    },
    /// No entry of the log has this number.
    #[error("the log has no entry {sequence}")]
    NoEntry {
        /// The number.
        sequence: u64,
    },
    /// Fields of the request are wrong.
    #[error("{0}")]
    Invalid(FieldViolations),
    /// The store failed.
    #[error("the hub's store does not answer")]
    Store {
        /// What it says.
        #[source]
        source: StoreError,
    },
    /// The scanner's own rules are unusable.
    #[error("the scanner cannot be used")]
    Scanner {
        /// Why.
        #[source]
        source: steward_skill_scanner::RuleError,
    },
}

/// Why a store did nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// It does not answer, or cannot.
    #[error("{problem}")]
    Failed {
        /// In its own words.
        problem: String,
    },
    /// Someone else was quicker: what the change rests on is no longer so.
    #[error("{problem}")]
    Conflict {
        /// What is no longer so.
        problem: String,
    },
    /// The library's own rules refuse the change.
    #[error("{}", .0.message)]
    Refused(Refusal),
}

impl StoreError {
    /// A failure in the store's own words.
    pub fn failed(problem: impl Into<String>) -> Self {
        Self::Failed {
            problem: problem.into(),
        }
    }

    /// Someone else was quicker.
    pub fn conflict(problem: impl Into<String>) -> Self {
        Self::Conflict {
            problem: problem.into(),
        }
    }
}

/// An error of the library as data: the hub passes it on and does not judge it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Its kind.
    pub kind: ErrorKind,
    /// Its reason, in the library's domain.
    pub reason: &'static str,
    /// Its message.
    pub message: String,
    /// Its facts.
    pub metadata: Vec<(&'static str, String)>,
    /// Wrong fields, if the content is not valid.
    pub violations: Vec<FieldViolation>,
}

impl Default for Refusal {
    fn default() -> Self {
        Self {
            kind: ErrorKind::Internal,
            reason: "",
            message: String::new(),
            metadata: Vec::new(),
            violations: Vec::new(),
        }
    }
}

const fn role_name(role: Role) -> &'static str {
    match role {
        Role::Viewer => "viewer",
        Role::Member => "member",
        Role::Maintainer => "maintainer",
        Role::Admin => "admin",
    }
}

impl Fault for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NoSource { .. } | Self::NoReason | Self::RequestIdReused { .. } | Self::Invalid(_) => {
                ErrorKind::InvalidInput
            }
            Self::NoItem { .. }
            | Self::NotInstalled { .. }
            | Self::NoEntry { .. }
            | Self::NoWithdrawal { .. }
            | Self::NotPublished { .. } => ErrorKind::NotFound,
            Self::Library(refusal) => refusal.kind,
            Self::ChangedMeanwhile { .. } => ErrorKind::Conflict,
            Self::QuarantineFull { .. } => ErrorKind::Exhausted,
            Self::RoleRequired { .. } => ErrorKind::Forbidden,
            Self::SourceOff { .. }
            | Self::WrongState { .. }
            | Self::Structure { .. }
            | Self::Blocked { .. }
            | Self::Signature { .. }
            | Self::ApprovalVoid { .. }
            | Self::Withdrawn { .. }
            | Self::NotPublishable { .. }
            | Self::Drifted { .. } => ErrorKind::Precondition,
            Self::NameTaken { .. } => ErrorKind::AlreadyExists,
            Self::Store { .. } => ErrorKind::Unavailable,
            Self::Scanner { .. } => ErrorKind::Internal,
            Self::Source { source, .. } => match source {
                SourceError::Reference { .. } => ErrorKind::InvalidInput,
                SourceError::Gone { .. } => ErrorKind::NotFound,
                SourceError::Ambiguous { .. }
                | SourceError::Withheld { .. }
                | SourceError::Incomplete { .. }
                | SourceError::Archive(_) => ErrorKind::Precondition,
                SourceError::Answer { .. } => ErrorKind::Unavailable,
                SourceError::Fetch(error) => error.kind(),
            },
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::NoSource { .. } => "HUB_NO_SOURCE",
            Self::SourceOff { .. } => "HUB_SOURCE_OFF",
            Self::NoReason => "HUB_FORCE_WITHOUT_REASON",
            Self::NoItem { .. } => "HUB_ITEM_NOT_FOUND",
            Self::NotInstalled { .. } => "HUB_SKILL_NOT_INSTALLED",
            Self::WrongState { .. } => "HUB_ITEM_STATE",
            Self::Structure { .. } => "HUB_STRUCTURE_REFUSED",
            Self::Blocked { .. } => "HUB_POLICY_BLOCKED",
            Self::Signature { barrier } => match barrier {
                Barrier::Invalid { .. } => "HUB_SIGNATURE_INVALID",
                Barrier::Unsigned => "HUB_SIGNATURE_REQUIRED",
            },
            Self::ApprovalVoid { .. } => "HUB_APPROVAL_VOID",
            Self::Withdrawn { .. } => "HUB_WITHDRAWN",
            Self::NoWithdrawal { .. } => "HUB_WITHDRAWAL_NOT_FOUND",
            Self::NotPublished { .. } => "HUB_PUBLICATION_NOT_FOUND",
            Self::NotPublishable { .. } => "HUB_NOT_PUBLISHABLE",
            Self::NameTaken { .. } => "HUB_NAME_TAKEN",
            Self::Drifted { .. } => "HUB_LOCAL_CHANGES",
            Self::Library(refusal) => refusal.reason,
            Self::ChangedMeanwhile { .. } => "HUB_CHANGED_MEANWHILE",
            Self::QuarantineFull { .. } => "HUB_QUARANTINE_FULL",
            Self::RequestIdReused { .. } => "HUB_REQUEST_ID_REUSED",
            Self::RoleRequired { .. } => "HUB_ROLE_REQUIRED",
            Self::NoEntry { .. } => "HUB_ENTRY_NOT_FOUND",
            Self::Invalid(violations) => violations.reason(),
            Self::Store { .. } => "HUB_STORE_UNAVAILABLE",
            Self::Scanner { .. } => "HUB_SCANNER_UNUSABLE",
            Self::Source { source, .. } => match source {
                SourceError::Reference { .. } => "HUB_REFERENCE_INVALID",
                SourceError::Gone { .. } => "HUB_GONE_UPSTREAM",
                SourceError::Ambiguous { .. } => "HUB_REFERENCE_AMBIGUOUS",
                SourceError::Withheld { .. } => "HUB_WITHHELD_BY_SOURCE",
                SourceError::Incomplete { .. } => "HUB_INCOMPLETE",
                SourceError::Archive(_) => "HUB_ARCHIVE_REFUSED",
                SourceError::Answer { .. } => "HUB_ANSWER_NOT_UNDERSTOOD",
                SourceError::Fetch(error) => error.reason(),
            },
        }
    }

    fn metadata(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::NoSource { reference } | Self::RequestIdReused { reference } => {
                vec![("reference", reference.clone())]
            }
            Self::SourceOff { name } => vec![("source", name.clone())],
            Self::Source { name, source } => vec![("source", name.clone()), ("problem", source.to_string())],
            Self::NoItem { id } => vec![("item", id.clone())],
            Self::NotInstalled { name } | Self::NotPublished { name } => vec![("name", name.clone())],
            Self::WrongState { state } => vec![("state", state.as_str().to_owned())],
            Self::Structure { problems } => vec![("problems", problems.join("; "))],
            Self::Blocked { verdict, trust } => vec![("verdict", verdict.to_string()), ("trust", (*trust).to_owned())],
            Self::Signature {
                barrier: Barrier::Invalid { file, why },
            } => vec![("file", file.clone()), ("problem", why.to_string())],
            Self::ApprovalVoid { what } => vec![("what", (*what).to_owned())],
            Self::Withdrawn { standing, reason } => {
                vec![("standing", standing.as_str().to_owned()), ("reason", reason.clone())]
            }
            Self::NoWithdrawal { digest } => vec![("digest", digest.clone())],
            Self::NotPublishable { name, problem } => {
                vec![("name", name.clone()), ("problem", (*problem).to_owned())]
            }
            Self::NameTaken { name, holder } => vec![("name", name.clone()), ("holder", holder.clone())],
            Self::Drifted { name, files } => vec![("name", name.clone()), ("files", files.join(", "))],
            Self::Library(refusal) => refusal.metadata.clone(),
            Self::ChangedMeanwhile { problem } => vec![("problem", problem.clone())],
            Self::QuarantineFull { open, limit } => vec![("open", open.to_string()), ("limit", limit.to_string())],
            Self::RoleRequired { role, required } => {
                vec![
                    ("role", role_name(*role).to_owned()),
                    ("required", role_name(*required).to_owned()),
                ]
            }
            Self::NoEntry { sequence } => vec![("sequence", sequence.to_string())],
            Self::Signature {
                barrier: Barrier::Unsigned,
            }
            | Self::NoReason
            | Self::Invalid(_)
            | Self::Store { .. }
            | Self::Scanner { .. } => Vec::new(),
        }
    }

    fn violations(&self) -> &[FieldViolation] {
        match self {
            Self::Library(refusal) => &refusal.violations,
            Self::Invalid(violations) => violations.violations(),
            _ => &[],
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Source {
                source: SourceError::Fetch(error),
                ..
            } => error.retry_after(),
            _ => None,
        }
    }
}

impl From<StoreError> for Error {
    fn from(source: StoreError) -> Self {
        match source {
            StoreError::Refused(refusal) => Self::Library(refusal),
            StoreError::Conflict { problem } => Self::ChangedMeanwhile { problem },
            StoreError::Failed { .. } => Self::Store { source },
        }
    }
}

impl From<FieldViolations> for Error {
    fn from(violations: FieldViolations) -> Self {
        Self::Invalid(violations)
    }
}
