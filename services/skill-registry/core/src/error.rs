//! What can go wrong in the registry, by what is wrong. Each variant has one reason, documented in the proto package.

use std::error::Error as StdError;
use std::fmt::Write as _;

use steward_base::{ErrorKind, Fault, FieldViolation, FieldViolations, Origin, ResourceRef, Role};

use crate::gate::Gate;
use crate::patch::Place;
use crate::path::SkillPath;

/// A boxed cause, for the log only.
pub type Source = Box<dyn StdError + Send + Sync>;

/// Why a store could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreFault {
    /// It does not answer.
    #[error("the skill store does not answer")]
    Unavailable {
        /// The cause.
        #[source]
        source: Source,
    },
    /// No room is left; nothing was changed.
    #[error("the skill store is full")]
    Full,
    /// What it holds contradicts itself; nothing was changed.
    #[error("the skill store holds damaged data: {what}")]
    Damaged {
        /// What was found.
        what: String,
    },
    /// A fault of ours.
    #[error("the skill store failed at {operation}")]
    Internal {
        /// What was being done.
        operation: &'static str,
        /// The cause.
        #[source]
        source: Source,
    },
}

/// Why a call to the registry failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Fields of the request are wrong.
    #[error(transparent)]
    Invalid(#[from] FieldViolations),
    /// The skill does not exist, or is another's.
    #[error("there is no skill {skill}; skills_list shows those there are")]
    SkillNotFound {
        /// As it was asked for.
        skill: String,
    },
    /// The name fits several skills.
    #[error("{skill} fits several skills, name one of them in full: {}", candidates.join(", "))]
    SkillAmbiguous {
        /// As it was asked for.
        skill: String,
        /// Full names.
        candidates: Vec<String>,
    },
    /// The name, or the folder that it needs, is taken.
    #[error("{skill} cannot be made, these are in the way: {}", in_the_way.join(", "))]
    SkillExists {
        /// The full name that was wanted.
        skill: String,
        /// Full names of what is there.
        in_the_way: Vec<String>,
    },
    /// The skill has no such file.
    #[error("{skill} has no file {path}; it has {}", list_or_none(files))]
    FileNotFound {
        /// Full name.
        skill: String,
        /// As it was asked for.
        path: SkillPath,
        /// What there is.
        files: Vec<String>,
    },
    /// The skill has no such revision.
    #[error("{skill} has no revision {revision}")]
    RevisionNotFound {
        /// Full name.
        skill: String,
        /// As it was asked for.
        revision: String,
    },
    /// The skill changed since the caller read it.
    #[error("{skill} changed since you read it: you read {expected}, it is {current} now; view it again")]
    StaleRevision {
        /// Full name.
        skill: String,
        /// What the caller goes by.
        expected: String,
        /// What it is now.
        current: String,
    },
    /// An agent did not look before it wrote.
    #[error("view {skill} first: it was not read in this {reader}, and a change must rest on what it says now")]
    NotRead {
        /// Full name.
        skill: String,
        /// `session` or `job`.
        reader: &'static str,
    },
    /// A write gate refuses.
    #[error("{action} of {skill} by {origin} is refused at gate {}: {}; do not try again", gate.as_str(), gate.advice())]
    GateRefused {
        /// Full name.
        skill: String,
        /// What was to be done.
        action: &'static str,
        /// Proven origin of the write.
        origin: Origin,
        /// Which gate.
        gate: Gate,
    },
    /// A person wants to delete a pinned skill.
    #[error("{skill} is pinned and cannot be deleted; unpin it first")]
    Pinned {
        /// Full name.
        skill: String,
    },
    /// The skill is archived.
    #[error("{skill} is archived; restore it first")]
    Archived {
        /// Full name.
        skill: String,
    },
    /// The text to replace does not occur.
    #[error(
        "the text to replace does not occur in {path} of {skill}{}",
        shown("; the nearest lines are", nearest)
    )]
    NoMatch {
        /// Full name.
        skill: String,
        /// The file.
        path: SkillPath,
        /// Most similar lines.
        nearest: Vec<Place>,
    },
    /// The text to replace occurs more than once.
    #[error(
        "the text to replace occurs {matches} times or more in {path} of {skill}; give more of the text around it, or replace all{}",
        shown("; it occurs at", places)
    )]
    AmbiguousMatch {
        /// Full name.
        skill: String,
        /// The file.
        path: SkillPath,
        /// How many were found.
        matches: usize,
        /// Where, the first ones.
        places: Vec<Place>,
    },
    /// The result would be no valid skill.
    #[error("{skill} would not be valid, nothing was changed: {violations}")]
    SkillInvalid {
        /// Full name.
        skill: String,
        /// What is wrong, by field of the skill.
        violations: FieldViolations,
    },
    /// The result would be too large.
    #[error("{what} would be {actual}, at most {limit} are allowed; nothing was changed")]
    LimitExceeded {
        /// What is bounded, with its unit.
        what: String,
        /// The bound.
        limit: usize,
        /// What it would be.
        actual: usize,
    },
    /// The guard refuses a text.
    #[error("{path} holds what looks like {category} ({excerpt:?}); rewrite that part, nothing was changed")]
    ContentBlocked {
        /// The file.
        path: String,
        /// The finding's category.
        category: String,
        /// Where it was found, cut short; empty for a secret.
        excerpt: String,
    },
    /// The scanner calls what an agent writes dangerous.
    #[error(
        "{skill}: the change was refused by the scanner ({category}); leave that part out, or leave it to a person. \
         Nothing was changed"
    )]
    ScannerRefused {
        /// Full name.
        skill: String,
        /// The kind of harm.
        category: String,
    },
    /// A review wrote without citing anything.
    #[error("a review must cite the spans of its own session that the change rests on")]
    EvidenceRequired,
    /// A person rejected the same change not long ago (`L-7`).
    #[error("a person rejected this change before; do not propose it again, go on. Their reason: {reason}")]
    RejectedBefore {
        /// The person's reason.
        reason: String,
    },
    /// The skill's record cannot be read.
    #[error("the record of {skill} cannot be read, nothing may change it: {problem}")]
    RecordDamaged {
        /// As far as it is known.
        skill: String,
        /// What is wrong, for the log.
        problem: String,
    },
    /// The caller's role does not reach.
    #[error("this needs the role {required:?} in the team, yours is {role:?}")]
    RoleRequired {
        /// What the caller is.
        role: Role,
        /// What it takes.
        required: Role,
    },
    /// The run has no snapshot: it was never taken, or was dropped for newer ones.
    #[error("there is no snapshot {snapshot}: none was taken, or it was dropped for newer ones")]
    SnapshotNotFound {
        /// Its resource name.
        snapshot: String,
    },
    /// Both sides changed the same lines.
    #[error("{skill} was changed here and elsewhere at the same lines of {}; nothing was changed", paths.join(", "))]
    MergeConflict {
        /// Full name.
        skill: String,
        /// The files.
        paths: Vec<String>,
    },
    /// Nothing answers to the slash command.
    #[error("nothing answers to /{command}{}", alike(near))]
    CommandNotFound {
        /// Without the slash.
        command: String,
        /// Commands that look like it.
        near: Vec<String>,
    },
    /// The bundle does not exist, or is another's.
    #[error("there is no bundle {bundle}")]
    BundleNotFound {
        /// Resource name.
        bundle: String,
    },
    /// A bundle of this slug exists in the scope.
    #[error("there is a bundle {bundle} already; give its etag to replace it")]
    BundleExists {
        /// Resource name.
        bundle: String,
    },
    /// The bundle changed since it was read.
    #[error("the bundle {bundle} changed since you read it")]
    EtagMismatch {
        /// Resource name.
        bundle: String,
    },
    /// The proposal does not exist, or is not for the caller.
    #[error("there is no proposal {proposal}")]
    ProposalNotFound {
        /// Resource name.
        proposal: String,
    },
    /// The skill is proposed already.
    #[error("the skill is proposed already, by {proposal}; nobody has decided on that")]
    ProposalExists {
        /// Resource name of the pending one.
        proposal: String,
    },
    /// Somebody has decided.
    #[error("the proposal {proposal} is {state}")]
    ProposalDecided {
        /// Resource name.
        proposal: String,
        /// How.
        state: &'static str,
    },
    /// A newer claim of the job exists.
    #[error("a newer claim of job {job} exists: yours has fence {fence}, the newest {current}")]
    StaleFence {
        /// Job id.
        job: String,
        /// The caller's.
        fence: u64,
        /// The newest seen.
        current: u64,
    },
    /// The request id was used for something else.
    #[error("request id {request_id} was used before with another request")]
    RequestIdReused {
        /// The id.
        request_id: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreFault),
}

fn list_or_none(names: &[String]) -> String {
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

fn alike(near: &[String]) -> String {
    if near.is_empty() {
        String::new()
    } else {
        format!("; there are /{}", near.join(", /"))
    }
}

fn shown(intro: &str, places: &[Place]) -> String {
    let mut text = String::new();
    for (index, place) in places.iter().enumerate() {
        let before = if index == 0 { intro } else { "," };
        _ = write!(text, "{before} line {}: {:?}", place.line, place.text);
    }
    text
}

/// Type of a skill in error details.
pub const SKILL_TYPE: &str = "skill.steward.dev/Skill";

impl Fault for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid(_)
            | Self::SkillInvalid { .. }
            | Self::ContentBlocked { .. }
            | Self::ScannerRefused { .. }
            | Self::RequestIdReused { .. } => ErrorKind::InvalidInput,
            Self::SkillNotFound { .. }
            | Self::FileNotFound { .. }
            | Self::RevisionNotFound { .. }
            | Self::SnapshotNotFound { .. }
            | Self::CommandNotFound { .. }
            | Self::BundleNotFound { .. }
            | Self::ProposalNotFound { .. } => ErrorKind::NotFound,
            Self::SkillExists { .. } | Self::BundleExists { .. } | Self::ProposalExists { .. } => {
                ErrorKind::AlreadyExists
            }
            Self::SkillAmbiguous { .. }
            | Self::NotRead { .. }
            | Self::Pinned { .. }
            | Self::Archived { .. }
            | Self::NoMatch { .. }
            | Self::AmbiguousMatch { .. }
            | Self::EvidenceRequired
            | Self::RejectedBefore { .. }
            | Self::MergeConflict { .. }
            | Self::ProposalDecided { .. } => ErrorKind::Precondition,
            Self::StaleRevision { .. } | Self::StaleFence { .. } | Self::EtagMismatch { .. } => ErrorKind::Conflict,
            Self::LimitExceeded { .. } | Self::Store(StoreFault::Full) => ErrorKind::Exhausted,
            Self::GateRefused { .. } | Self::RoleRequired { .. } => ErrorKind::Forbidden,
            Self::RecordDamaged { .. } | Self::Store(StoreFault::Damaged { .. }) => ErrorKind::DataLoss,
            Self::Store(StoreFault::Unavailable { .. }) => ErrorKind::Unavailable,
            Self::Store(StoreFault::Internal { .. }) => ErrorKind::Internal,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "INVALID_REQUEST",
            Self::SkillNotFound { .. } => "SKILL_NOT_FOUND",
            Self::SkillAmbiguous { .. } => "SKILL_AMBIGUOUS",
            Self::SkillExists { .. } => "SKILL_EXISTS",
            Self::FileNotFound { .. } => "FILE_NOT_FOUND",
            Self::RevisionNotFound { .. } => "REVISION_NOT_FOUND",
            Self::StaleRevision { .. } => "STALE_REVISION",
            Self::NotRead { .. } => "NOT_READ",
            Self::GateRefused { .. } => "GATE_REFUSED",
            Self::Pinned { .. } => "PINNED",
            Self::Archived { .. } => "ARCHIVED",
            Self::NoMatch { .. } => "NO_MATCH",
            Self::AmbiguousMatch { .. } => "AMBIGUOUS_MATCH",
            Self::SkillInvalid { .. } => "SKILL_INVALID",
            Self::LimitExceeded { .. } => "LIMIT_EXCEEDED",
            Self::ContentBlocked { .. } => "CONTENT_BLOCKED",
            Self::ScannerRefused { .. } => "SCANNER_REFUSED",
            Self::EvidenceRequired => "EVIDENCE_REQUIRED",
            Self::RejectedBefore { .. } => "REJECTED_BEFORE",
            Self::RecordDamaged { .. } => "RECORD_DAMAGED",
            Self::RoleRequired { .. } => "ROLE_REQUIRED",
            Self::SnapshotNotFound { .. } => "SNAPSHOT_NOT_FOUND",
            Self::MergeConflict { .. } => "MERGE_CONFLICT",
            Self::CommandNotFound { .. } => "COMMAND_NOT_FOUND",
            Self::BundleNotFound { .. } => "BUNDLE_NOT_FOUND",
            Self::BundleExists { .. } => "BUNDLE_EXISTS",
            Self::EtagMismatch { .. } => "ETAG_MISMATCH",
            Self::ProposalNotFound { .. } => "PROPOSAL_NOT_FOUND",
            Self::ProposalExists { .. } => "PROPOSAL_EXISTS",
            Self::ProposalDecided { .. } => "PROPOSAL_DECIDED",
            Self::StaleFence { .. } => "STALE_FENCE",
            Self::RequestIdReused { .. } => "REQUEST_ID_REUSED",
            Self::Store(StoreFault::Unavailable { .. }) => "DEPENDENCY_UNAVAILABLE",
            Self::Store(StoreFault::Full) => "STORAGE_FULL",
            Self::Store(StoreFault::Damaged { .. }) => "DATA_DAMAGED",
            Self::Store(StoreFault::Internal { .. }) => "INTERNAL",
        }
    }

    fn metadata(&self) -> Vec<(&'static str, String)> {
        let mut metadata = self.variables();
        // The store's failures are no business of the model; everything else is something that it can act on.
        if !matches!(self, Self::Store(_)) {
            metadata.push(("toolText", tool_text(self)));
        }
        metadata
    }

    fn violations(&self) -> &[FieldViolation] {
        match self {
            Self::Invalid(violations) | Self::SkillInvalid { violations, .. } => violations.as_slice(),
            _ => &[],
        }
    }

    fn resource(&self) -> Option<ResourceRef> {
        match self {
            Self::SkillNotFound { skill } | Self::SkillExists { skill, .. } => Some(ResourceRef {
                resource_type: SKILL_TYPE,
                name: skill.clone(),
            }),
            _ => None,
        }
    }
}

impl Error {
    /// Every variable of the message, under its wire name.
    fn variables(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::SkillNotFound { skill }
            | Self::Pinned { skill }
            | Self::Archived { skill }
            | Self::RecordDamaged { skill, .. }
            | Self::SkillInvalid { skill, .. } => vec![("skill", skill.clone())],
            Self::SkillAmbiguous { skill, candidates } => {
                vec![("skill", skill.clone()), ("candidates", candidates.join(","))]
            }
            Self::SkillExists { skill, in_the_way } => {
                vec![("skill", skill.clone()), ("inTheWay", in_the_way.join(","))]
            }
            Self::FileNotFound { skill, path, .. } | Self::NoMatch { skill, path, .. } => {
                vec![("skill", skill.clone()), ("path", path.to_string())]
            }
            Self::RevisionNotFound { skill, revision } => {
                vec![("skill", skill.clone()), ("revision", revision.clone())]
            }
            Self::StaleRevision {
                skill,
                expected,
                current,
            } => {
                vec![
                    ("skill", skill.clone()),
                    ("expected", expected.clone()),
                    ("current", current.clone()),
                ]
            }
            Self::NotRead { skill, reader } => vec![("skill", skill.clone()), ("reader", (*reader).to_owned())],
            other => other.more_variables(),
        }
    }

    /// Those of errors that are not about finding and reading a skill.
    fn more_variables(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::GateRefused {
                skill,
                action,
                origin,
                gate,
            } => vec![
                ("gate", gate.as_str().to_owned()),
                ("skill", skill.clone()),
                ("origin", origin.to_string()),
                ("action", (*action).to_owned()),
                ("advice", gate.advice().to_owned()),
            ],
            Self::AmbiguousMatch {
                skill, path, matches, ..
            } => {
                vec![
                    ("skill", skill.clone()),
                    ("path", path.to_string()),
                    ("matches", matches.to_string()),
                ]
            }
            Self::LimitExceeded { what, limit, actual } => {
                vec![
                    ("limit", limit.to_string()),
                    ("actual", actual.to_string()),
                    ("what", what.clone()),
                ]
            }
            Self::ScannerRefused { skill, category } => {
                vec![("skill", skill.clone()), ("category", category.clone())]
            }
            Self::ContentBlocked { path, category, .. } => vec![("category", category.clone()), ("path", path.clone())],
            Self::RoleRequired { role, required } => {
                vec![
                    ("role", role_name(*role).to_owned()),
                    ("required", role_name(*required).to_owned()),
                ]
            }
            Self::StaleFence { job, fence, current } => {
                vec![
                    ("job", job.clone()),
                    ("fence", fence.to_string()),
                    ("current", current.to_string()),
                ]
            }
            Self::SnapshotNotFound { snapshot } => vec![("snapshot", snapshot.clone())],
            Self::MergeConflict { skill, paths } => vec![("skill", skill.clone()), ("paths", paths.join(","))],
            Self::CommandNotFound { command, near } => vec![("command", command.clone()), ("near", near.join(","))],
            Self::BundleNotFound { bundle } | Self::BundleExists { bundle } | Self::EtagMismatch { bundle } => {
                vec![("bundle", bundle.clone())]
            }
            Self::ProposalNotFound { proposal } | Self::ProposalExists { proposal } => {
                vec![("proposal", proposal.clone())]
            }
            Self::ProposalDecided { proposal, state } => {
                vec![("proposal", proposal.clone()), ("state", (*state).to_owned())]
            }
            Self::RejectedBefore { reason } => vec![("reason", reason.clone())],
            Self::RequestIdReused { request_id } => vec![("requestId", request_id.clone())],
            Self::Store(StoreFault::Unavailable { .. }) => vec![("dependency", "skill store".to_owned())],
            // The rest has none; the contract test of the server sees every variant.
            _ => Vec::new(),
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

/// What the model reads when a call of its tool was refused: the sentence and the reason, on one line.
pub fn tool_text(error: &Error) -> String {
    format!("error {}: {error}", error.reason())
}
