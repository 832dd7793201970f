//! What can be said of a signature, as data: it is stored with the skill, shown to people and part of what they approve.

use serde::{Deserialize, Serialize};
use steward_base::Timestamp;

/// One signature file and what it says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// Its path.
    pub file: String,
    /// What it says.
    pub outcome: Outcome,
}

/// What a signature says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Outcome {
    /// There is no root to verify it by.
    NotChecked,
    /// It holds for every file of the tree but itself.
    Verified {
        /// Who vouched for the identity, for example `https://token.actions.githubusercontent.com`.
        issuer: String,
        /// The identity: an address or a URI.
        subject: String,
        /// When it was signed at the earliest, by the log or a timestamp authority.
        signed_at: Timestamp,
        /// The files, in the order of their paths.
        covers: Vec<String>,
    },
    /// It does not hold for this tree.
    Invalid {
        /// Why.
        why: Flaw,
    },
    /// It is of a kind, or by a root, that cannot be judged here. As good as none.
    Unknown {
        /// Why.
        why: Unknown,
    },
}

impl Outcome {
    /// The stable name, in snake case.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::NotChecked => "not_checked",
            Self::Verified { .. } => "verified",
            Self::Invalid { .. } => "invalid",
            Self::Unknown { .. } => "unknown",
        }
    }
}

/// Why a signature is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "flaw", rename_all = "snake_case")]
pub enum Flaw {
    /// More bytes than a bundle has.
    #[error("it has {bytes} bytes, which no bundle has")]
    TooLarge {
        /// Its size.
        bytes: u64,
    },
    /// No bundle, or one that is cut or damaged.
    #[error("it is no whole bundle: {problem}")]
    Bundle {
        /// What the parser says.
        problem: String,
    },
    /// Its statement is not put together as its type says.
    #[error("its statement is malformed: {problem}")]
    Statement {
        /// What is wrong.
        problem: String,
    },
    /// A file's digest is by an algorithm that is not the one of the format.
    #[error("it states a {algorithm:?} digest of {file:?}")]
    Algorithm {
        /// The file.
        file: String,
        /// The algorithm.
        algorithm: String,
    },
    /// A file is listed twice.
    #[error("it lists {file:?} twice")]
    Duplicate {
        /// The file.
        file: String,
    },
    /// A name that is no path inside a folder.
    #[error("it lists {file:?}, which is no path in a skill")]
    Path {
        /// The name.
        file: String,
    },
    /// The digest of the whole is not the one of its list.
    #[error("its digest of the whole is not that of the files it lists")]
    Sum,
    /// A file that it does not cover: somebody added it.
    #[error("it does not cover {file:?}")]
    NotCovered {
        /// The file.
        file: String,
    },
    /// A file that it covers is not there.
    #[error("it covers {file:?}, which is not there")]
    Missing {
        /// The file.
        file: String,
    },
    /// A file is not the one that was signed.
    #[error("{file:?} is not the one that was signed")]
    Changed {
        /// The file.
        file: String,
    },
    /// It signs neither this tree nor its `SKILL.md`.
    #[error("what it signs is neither this tree nor its SKILL.md")]
    Elsewhere,
    /// The signature, its certificate, its log entry or its time does not hold.
    #[error("it does not hold: {problem}")]
    Forged {
        /// What the verification says.
        problem: String,
    },
    /// It says that it was made later than now.
    #[error("it says that it was made later than now")]
    Future,
}

/// Why a signature cannot be judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "unknown", rename_all = "snake_case")]
pub enum Unknown {
    /// The bundle is of another version.
    #[error("bundles of the type {media_type:?} are not known")]
    Format {
        /// Its media type.
        media_type: String,
    },
    /// The statement is about something else than the files of a model or skill.
    #[error("statements of the type {predicate_type:?} are not known")]
    Predicate {
        /// Its type.
        predicate_type: String,
    },
    /// The files are listed in another way than whole.
    #[error("files that are listed by {method:?} are not known")]
    Method {
        /// How.
        method: String,
    },
    /// It is made with a bare key.
    #[error("it is made with a key, and keys are not among what is trusted")]
    BareKey,
    /// It stands in no log, so that nobody can tell when it was made.
    #[error("it stands in no transparency log")]
    NotLogged,
    /// It stands in a log of another root.
    #[error("its log is not one of the trusted root")]
    Root,
    /// A kind of signature, key or entry that the library does not verify.
    #[error("it cannot be verified here: {problem}")]
    Unsupported {
        /// What the verification says.
        problem: String,
    },
}
