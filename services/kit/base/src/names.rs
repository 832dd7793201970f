//! Resource names (AIP-122): `teams/{team}`, `teams/{team}/users/{user}`, `teams/{team}/sessions/{session}`, …
//!
//! Ids are checked where they enter and carry their check in their type, so that no path, SQL key or log line is ever
//! built from unchecked text (`S-7`).

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a text is not an id or a resource name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Wrong characters or length.
    #[error("must be 1 to {max} lower-case letters, digits and single hyphens, not starting or ending with a hyphen")]
    Syntax {
        /// Longest permitted length in characters.
        max: usize,
    },
    /// The segments do not follow the pattern.
    #[error("must have the form {pattern}")]
    Pattern {
        /// The pattern, for example `teams/{team}/users/{user}`.
        pattern: &'static str,
    },
}

/// Longest id, in characters.
pub const MAX_ID: usize = 64;

fn check_id(text: &str) -> Result<(), NameError> {
    let well_formed = !text.is_empty()
        && text.len() <= MAX_ID
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
        && !text.contains("--");
    if well_formed {
        Ok(())
    } else {
        Err(NameError::Syntax { max: MAX_ID })
    }
}

macro_rules! id_type {
    ($(#[$docs:meta])* $name:ident) => {
        $(#[$docs])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Checks the syntax of an id.
            pub fn parse(text: impl Into<String>) -> Result<Self, NameError> {
                let text = text.into();
                check_id(&text)?;
                Ok(Self(text))
            }

            /// The bare id, without its collection.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;

            fn try_from(text: String) -> Result<Self, NameError> {
                Self::parse(text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }
    };
}

id_type! {
    /// A team: the tenant. Nothing crosses teams.
    TeamId
}
id_type! {
    /// A person in a team.
    UserId
}
id_type! {
    /// One conversation.
    SessionId
}
id_type! {
    /// A memory entry.
    EntryId
}
id_type! {
    /// A skill: the name that its folder and front matter carry.
    SkillId
}
id_type! {
    /// A review job and its ledger row.
    ReviewId
}
id_type! {
    /// An access token.
    TokenId
}

/// `teams/{team}`.
pub fn team_name(team: &TeamId) -> String {
    format!("teams/{team}")
}

/// `teams/{team}/users/{user}`.
pub fn user_name(team: &TeamId, user: &UserId) -> String {
    format!("teams/{team}/users/{user}")
}

/// `teams/{team}/sessions/{session}`.
pub fn session_name(team: &TeamId, session: &SessionId) -> String {
    format!("teams/{team}/sessions/{session}")
}

/// Parses `teams/{team}`.
pub fn parse_team(name: &str) -> Result<TeamId, NameError> {
    let [team] = segments(name, ["teams"], "teams/{team}")?;
    TeamId::parse(team)
}

/// Parses `teams/{team}/users/{user}`.
pub fn parse_user(name: &str) -> Result<(TeamId, UserId), NameError> {
    let [team, user] = segments(name, ["teams", "users"], "teams/{team}/users/{user}")?;
    Ok((TeamId::parse(team)?, UserId::parse(user)?))
}

/// Parses `teams/{team}/sessions/{session}`.
pub fn parse_session(name: &str) -> Result<(TeamId, SessionId), NameError> {
    let [team, session] = segments(name, ["teams", "sessions"], "teams/{team}/sessions/{session}")?;
    Ok((TeamId::parse(team)?, SessionId::parse(session)?))
}

/// Splits a resource name into its ids, checking that the collections are exactly `collections`, in order.
pub fn segments<'a, const N: usize>(
    name: &'a str,
    collections: [&str; N],
    pattern: &'static str,
) -> Result<[&'a str; N], NameError> {
    let mut ids = [""; N];
    let mut parts = name.split('/');
    for (id, collection) in ids.iter_mut().zip(collections) {
        match (parts.next(), parts.next()) {
            (Some(found), Some(value)) if found == collection && !value.is_empty() => *id = value,
            _ => return Err(NameError::Pattern { pattern }),
        }
    }
    if parts.next().is_some() {
        Err(NameError::Pattern { pattern })
    } else {
        Ok(ids)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_round_trip() {
        let (team, user) = parse_user("teams/red/users/ann-2").unwrap();
        assert_eq!(user_name(&team, &user), "teams/red/users/ann-2");
        let (team, session) = parse_session("teams/red/sessions/0198c").unwrap();
        assert_eq!(session_name(&team, &session), "teams/red/sessions/0198c");
        assert_eq!(parse_team("teams/red").unwrap(), team);
    }

    #[test]
    fn anything_that_could_be_a_path_is_refused() {
        for bad in [
            "",
            "..",
            "a/b",
            "A",
            "a_b",
            "-a",
            "a-",
            "a--b",
            "a\0",
            "a\\b",
            "c:",
            "é",
            &"a".repeat(65),
        ] {
            assert!(TeamId::parse(bad).is_err(), "{bad:?} was accepted");
        }
        for bad in [
            "teams",
            "teams/",
            "teams/a/",
            "teams/a/users",
            "team/a",
            "/teams/a",
            "teams/a/users/b/c",
        ] {
            assert!(parse_team(bad).is_err(), "{bad:?} was accepted");
            assert!(parse_user(bad).is_err(), "{bad:?} was accepted");
        }
    }

    proptest! {
        #[test]
        fn an_accepted_id_is_safe_in_a_path(text in ".{0,70}") {
            if let Ok(id) = TeamId::parse(text) {
                prop_assert!(!id.as_str().contains(['/', '\\', '.', ':', '\0']));
            }
        }
    }
}
