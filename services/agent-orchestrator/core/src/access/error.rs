//! Everything access can refuse or fail with. Reasons and their metadata are documented in
//! `steward/access/v1/error_reason.proto` and `steward/common/v1/error_reason.proto`.

use steward_base::names::{TeamId, UserId, user_name};
use steward_base::{ErrorKind, Fault, FieldViolation, FieldViolations, ResourceRef};

use super::sign::SigningError;
use super::store::StoreFailure;

/// Why an operation on teams, users or tokens did not happen.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Fields of the request are wrong.
    #[error("{0}")]
    Invalid(FieldViolations),
    /// The request id was used before with another request (`T-9`).
    #[error("request id {request_id} was used before with another request")]
    RequestIdReused {
        /// The request id.
        request_id: String,
        /// Names the field, as callers of an invalid request expect.
        violations: FieldViolations,
    },
    /// The id is taken.
    #[error("team {team} exists already")]
    TeamExists {
        /// The id.
        team: TeamId,
    },
    /// No such team, or not the caller's.
    #[error("team {team} does not exist")]
    TeamNotFound {
        /// The id.
        team: TeamId,
    },
    /// Only an admin of the home team may.
    #[error("only an admin of the installation's home team may do this")]
    HomeTeamRequired,
    /// The id is taken.
    #[error("user {user} exists already in team {team}")]
    UserExists {
        /// The team.
        team: TeamId,
        /// The id.
        user: UserId,
    },
    /// No such user, or not in the caller's team.
    #[error("user {user} does not exist in team {team}")]
    UserNotFound {
        /// The team.
        team: TeamId,
        /// The id.
        user: UserId,
    },
    /// The user has lost access.
    #[error("user {user} has lost access to team {team}")]
    UserDisabled {
        /// The team.
        team: TeamId,
        /// The id.
        user: UserId,
    },
    /// The change would leave a team that nobody can administer.
    #[error("team {team} would be left without an admin")]
    LastAdmin {
        /// The team.
        team: TeamId,
    },
    /// Only an admin may handle another user's tokens.
    #[error("only an admin may handle the tokens of another user")]
    NotYourToken,
    /// No such token, or not the caller's.
    #[error("token {token} does not exist")]
    TokenNotFound {
        /// The token's resource name.
        token: String,
    },
    /// The store does not answer, is full or is damaged.
    #[error("{0}")]
    Store(StoreFailure),
    /// A credential could not be signed: a fault of ours.
    #[error("a credential could not be signed")]
    Signing(#[source] SigningError),
}

impl Error {
    /// One wrong field.
    pub fn field(field: impl Into<String>, description: impl Into<String>) -> Self {
        Self::Invalid(FieldViolations::one(field, description))
    }

    /// The request id was used before with another request.
    pub(super) fn request_id_reused(request_id: &str) -> Self {
        Self::RequestIdReused {
            request_id: request_id.to_owned(),
            violations: FieldViolations::one("request_id", "was used before with another request"),
        }
    }
}

impl From<FieldViolations> for Error {
    fn from(violations: FieldViolations) -> Self {
        Self::Invalid(violations)
    }
}

impl From<StoreFailure> for Error {
    fn from(failure: StoreFailure) -> Self {
        Self::Store(failure)
    }
}

impl From<SigningError> for Error {
    fn from(error: SigningError) -> Self {
        Self::Signing(error)
    }
}

impl Fault for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid(_) | Self::RequestIdReused { .. } => ErrorKind::InvalidInput,
            Self::TeamExists { .. } | Self::UserExists { .. } => ErrorKind::AlreadyExists,
            Self::TeamNotFound { .. } | Self::UserNotFound { .. } | Self::TokenNotFound { .. } => ErrorKind::NotFound,
            Self::HomeTeamRequired | Self::UserDisabled { .. } | Self::NotYourToken => ErrorKind::Forbidden,
            Self::LastAdmin { .. } => ErrorKind::Precondition,
            Self::Store(failure) => failure.kind(),
            Self::Signing(_) => ErrorKind::Internal,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "INVALID_REQUEST",
            Self::RequestIdReused { .. } => "REQUEST_ID_REUSED",
            Self::TeamExists { .. } => "TEAM_EXISTS",
            Self::TeamNotFound { .. } => "TEAM_NOT_FOUND",
            Self::HomeTeamRequired => "HOME_TEAM_REQUIRED",
            Self::UserExists { .. } => "USER_EXISTS",
            Self::UserNotFound { .. } => "USER_NOT_FOUND",
            Self::UserDisabled { .. } => "USER_DISABLED",
            Self::LastAdmin { .. } => "LAST_ADMIN",
            Self::NotYourToken => "NOT_YOUR_TOKEN",
            Self::TokenNotFound { .. } => "TOKEN_NOT_FOUND",
            Self::Store(failure) => failure.reason(),
            Self::Signing(_) => "INTERNAL",
        }
    }

    fn metadata(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::RequestIdReused { request_id, .. } => vec![("requestId", request_id.clone())],
            Self::TeamExists { team } | Self::TeamNotFound { team } | Self::LastAdmin { team } => {
                vec![("team", team.to_string())]
            }
            Self::UserExists { team, user } | Self::UserNotFound { team, user } | Self::UserDisabled { team, user } => {
                vec![("team", team.to_string()), ("user", user.to_string())]
            }
            Self::TokenNotFound { token } => vec![("token", token.clone())],
            Self::Store(failure) => failure.metadata(),
            Self::Invalid(_) | Self::HomeTeamRequired | Self::NotYourToken | Self::Signing(_) => Vec::new(),
        }
    }

    fn violations(&self) -> &[FieldViolation] {
        match self {
            Self::Invalid(violations) | Self::RequestIdReused { violations, .. } => violations.as_slice(),
            _ => &[],
        }
    }

    fn resource(&self) -> Option<ResourceRef> {
        let (resource_type, name) = match self {
            Self::TeamExists { team } | Self::TeamNotFound { team } => {
                ("access.steward.dev/Team", steward_base::names::team_name(team))
            }
            Self::UserExists { team, user } | Self::UserNotFound { team, user } => {
                ("access.steward.dev/User", user_name(team, user))
            }
            Self::TokenNotFound { token } => ("access.steward.dev/AccessToken", token.clone()),
            _ => return None,
        };
        Some(ResourceRef { resource_type, name })
    }
}
