//! What can go wrong in the hub, as data.

use std::time::Duration;

use steward_base::{ErrorKind, Fault};
use steward_skill_scanner::Verdict;

use crate::quarantine::State;
use crate::source::SourceError;

/// Why a hub operation did nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No enabled source has this name or claims this reference.
    #[error("no source takes {reference:?}")]
    NoSource {
        /// The reference or source's name.
        reference: String,
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
    /// What was approved is not what would be installed.
    #[error("the approval was for something else: {what} differs")]
    ApprovalVoid {
        /// What differs.
        what: &'static str,
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

/// A failure of a store, in its own words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct StoreError {
    /// What went wrong.
    pub problem: String,
    /// Whether someone else changed it first.
    pub conflict: bool,
}

impl Fault for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NoSource { .. } | Self::NoReason => ErrorKind::InvalidInput,
            Self::NoItem { .. } | Self::NotInstalled { .. } => ErrorKind::NotFound,
            Self::WrongState { .. }
            | Self::Structure { .. }
            | Self::Blocked { .. }
            | Self::ApprovalVoid { .. }
            | Self::Drifted { .. } => ErrorKind::Precondition,
            Self::NameTaken { .. } => ErrorKind::AlreadyExists,
            Self::Store { source } if source.conflict => ErrorKind::Conflict,
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
            Self::NoReason => "HUB_FORCE_WITHOUT_REASON",
            Self::NoItem { .. } => "HUB_ITEM_NOT_FOUND",
            Self::NotInstalled { .. } => "HUB_SKILL_NOT_INSTALLED",
            Self::WrongState { .. } => "HUB_ITEM_STATE",
            Self::Structure { .. } => "HUB_STRUCTURE_REFUSED",
            Self::Blocked { .. } => "HUB_POLICY_BLOCKED",
            Self::ApprovalVoid { .. } => "HUB_APPROVAL_VOID",
            Self::NameTaken { .. } => "HUB_NAME_TAKEN",
            Self::Drifted { .. } => "HUB_LOCAL_CHANGES",
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
            Self::NoSource { reference } => vec![("reference", reference.clone())],
            Self::Source { name, source } => vec![("source", name.clone()), ("problem", source.to_string())],
            Self::NoItem { id } => vec![("item", id.clone())],
            Self::NotInstalled { name } => vec![("name", name.clone())],
            Self::WrongState { state } => vec![("state", state.as_str().to_owned())],
            Self::Structure { problems } => vec![("problems", problems.join("; "))],
            Self::Blocked { verdict, trust } => vec![("verdict", verdict.to_string()), ("trust", (*trust).to_owned())],
            Self::ApprovalVoid { what } => vec![("what", (*what).to_owned())],
            Self::NameTaken { name, holder } => vec![("name", name.clone()), ("holder", holder.clone())],
            Self::Drifted { name, files } => vec![("name", name.clone()), ("files", files.join(", "))],
            Self::NoReason | Self::Store { .. } | Self::Scanner { .. } => Vec::new(),
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
        Self::Store { source }
    }
}
