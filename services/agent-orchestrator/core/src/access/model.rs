//! What access is about: teams, users, tokens, revocations.

use serde::{Deserialize, Serialize};
use steward_base::names::{TeamId, TokenId, UserId};
use steward_base::{Role, Timestamp};

/// Longest display name and token label, in characters.
pub(super) const MAX_LABEL: usize = 100;

/// A tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Team {
    /// Id.
    pub id: TeamId,
    /// Name for people; may be empty.
    pub display_name: String,
    /// When it was created.
    pub created: Timestamp,
}

/// A person in a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// Team.
    pub team: TeamId,
    /// Id in the team.
    pub id: UserId,
    /// Name for people; may be empty.
    pub display_name: String,
    /// What the user may do.
    pub role: Role,
    /// Whether the user has lost access.
    pub disabled: bool,
    /// When it was created.
    pub created: Timestamp,
}

/// What is kept of a token: never its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessToken {
    /// Team of its user.
    pub team: TeamId,
    /// Whose it is.
    pub user: UserId,
    /// Its id, the credential's `jti`.
    pub id: TokenId,
    /// What it is for; may be empty.
    pub label: String,
    /// When it was made.
    pub created: Timestamp,
    /// When it ends.
    pub expires: Timestamp,
    /// When it was revoked; `None` while it is good.
    pub revoked: Option<Timestamp>,
}

/// Something that is no longer accepted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Revoked {
    /// A token, by its id.
    Token(String),
    /// Every credential on behalf of a user.
    User(TeamId, UserId),
}

/// A revocation in force.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revocation {
    /// What is revoked.
    pub subject: Revoked,
    /// When the entry may be forgotten; `None`: never.
    pub expires: Option<Timestamp>,
}

/// One page of an ascending or descending list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Cursor after which the next page begins; `None` at the end.
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// Cuts a list that was read with one item more than `limit`, so that the end is known.
    pub fn cut(mut items: Vec<T>, limit: u32, cursor: impl Fn(&T) -> String) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| more).map(cursor);
        Self { items, next }
    }
}

/// By which a repeated request is recognised (`T-9`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestKey {
    /// Team of the caller.
    pub team: TeamId,
    /// The operation.
    pub scope: &'static str,
    /// What the caller sent.
    pub id: String,
    /// SHA-256 over the request's content.
    pub hash: String,
}

/// Longest request id of this package, in characters.
const MAX_REQUEST_ID: usize = 128;

impl RequestKey {
    /// `None` for the empty id, with which a call is not idempotent.
    pub(super) fn new(
        team: &TeamId,
        scope: &'static str,
        id: &str,
        content: &[&str],
        violations: &mut steward_base::FieldViolations,
    ) -> Option<Self> {
        if id.is_empty() {
            return None;
        }
        if id.chars().count() > MAX_REQUEST_ID {
            violations.add("request_id", format!("must have at most {MAX_REQUEST_ID} characters"));
            return None;
        }
        let hash = steward_base::hash::sha256_parts(content.iter().map(|part| part.as_bytes()));
        Some(Self {
            team: team.clone(),
            scope,
            id: id.to_owned(),
            hash,
        })
    }
}

/// Records a text that is too long for a label.
pub(super) fn check_label(field: &str, text: &str, violations: &mut steward_base::FieldViolations) {
    if text.chars().count() > MAX_LABEL || text.chars().any(char::is_control) {
        violations.add(field, format!("must have at most {MAX_LABEL} characters on one line"));
    }
}
