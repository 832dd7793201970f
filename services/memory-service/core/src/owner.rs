//! Whose memory it is, and which of an owner's two books (`M-1`). Not who may see it: that is [`crate::access`].

use std::fmt;

use serde::{Deserialize, Serialize};
use steward_base::names::{self, EntryId, NameError, TeamId, UserId};

/// The pattern of a project's name.
const PROJECT: &str = "teams/{team}/projects/{project}";
/// The pattern of a store's name.
const STORE: &str = "{owner}/memory/notes, or teams/{team}/users/{user}/memory/profile";

/// Whose memory it is, inside one team.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "id")]
pub enum Owner {
    /// The team as a whole: notes that all members read.
    Team,
    /// A project inside the team: notes with a budget of their own.
    Project(String),
    /// One person: notes and profile, seen by that person alone.
    Person(UserId),
}

impl Owner {
    /// Whether several people read it, so that a write concerns more than its author (`M-13`).
    pub const fn is_shared(&self) -> bool {
        matches!(self, Self::Team | Self::Project(_))
    }

    /// Whether it has a book for `target`: only a person has a profile.
    pub const fn has(&self, target: Target) -> bool {
        matches!((self, target), (_, Target::Notes) | (Self::Person(_), Target::Profile))
    }

    /// A project by its key; the key has the syntax of an id.
    pub fn project(key: &str) -> Result<Self, NameError> {
        TeamId::parse(key).map(|checked| Self::Project(checked.into()))
    }

    /// The owner inside its team as one text, for store keys: `team`, `projects/{id}` or `users/{id}`.
    pub fn key(&self) -> String {
        match self {
            Self::Team => "team".to_owned(),
            Self::Project(project) => format!("projects/{project}"),
            Self::Person(user) => format!("users/{user}"),
        }
    }

    /// From its store key; `None` if it is none.
    pub fn from_key(key: &str) -> Option<Self> {
        match key.split_once('/') {
            None if key == "team" => Some(Self::Team),
            Some(("projects", project)) => Self::project(project).ok(),
            Some(("users", user)) => UserId::parse(user).ok().map(Self::Person),
            _ => None,
        }
    }

    /// The resource name inside `team`.
    pub fn name(&self, team: &TeamId) -> String {
        match self {
            Self::Team => names::team_name(team),
            Self::Project(project) => format!("teams/{team}/projects/{project}"),
            Self::Person(user) => names::user_name(team, user),
        }
    }

    /// Parses `teams/{team}`, `teams/{team}/projects/{project}` or `teams/{team}/users/{user}`.
    pub fn parse(name: &str) -> Result<(TeamId, Self), NameError> {
        if let Ok((team, user)) = names::parse_user(name) {
            return Ok((team, Self::Person(user)));
        }
        if let Ok([team, project]) = names::segments(name, ["teams", "projects"], PROJECT) {
            return Ok((TeamId::parse(team)?, Self::project(project)?));
        }
        match names::segments(name, ["teams"], "teams/{team}") {
            Ok([team]) => Ok((TeamId::parse(team)?, Self::Team)),
            Err(_) => Err(NameError::Pattern {
                pattern: "teams/{team}, teams/{team}/projects/{project} or teams/{team}/users/{user}",
            }),
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Team => f.write_str("the team"),
            Self::Project(project) => write!(f, "project {project}"),
            Self::Person(user) => write!(f, "user {user}"),
        }
    }
}

/// Which of an owner's books.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// The agent's own notes: environment, conventions, quirks of tools.
    Notes,
    /// The person: preferences, style, habits.
    Profile,
}

impl Target {
    /// The name in the tool, on export and in stores.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Notes => "notes",
            Self::Profile => "profile",
        }
    }

    /// From its name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Notes, Self::Profile]
            .into_iter()
            .find(|target| target.as_str() == name)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One memory store: a book of one owner in one team. Shows itself as its resource name, `{owner}/memory/{target}`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreName {
    /// The team.
    pub team: TeamId,
    /// Whose it is.
    pub owner: Owner,
    /// Which book.
    pub target: Target,
}

impl StoreName {
    /// Parses `{owner}/memory/{target}`. A profile of a team or project is no store.
    pub fn parse(name: &str) -> Result<Self, NameError> {
        let pattern = NameError::Pattern { pattern: STORE };
        let Some((owner, target)) = name.rsplit_once("/memory/") else {
            return Err(pattern);
        };
        let (team, owner) = Owner::parse(owner)?;
        match Target::parse(target) {
            Some(target) if owner.has(target) => Ok(Self { team, owner, target }),
            _ => Err(pattern),
        }
    }

    /// Parses `{store}/entries/{entry}`.
    pub fn parse_entry(name: &str) -> Result<(Self, EntryId), NameError> {
        let Some((store, entry)) = name.rsplit_once("/entries/") else {
            return Err(NameError::Pattern {
                pattern: "{store}/entries/{entry}",
            });
        };
        Ok((Self::parse(store)?, EntryId::parse(entry)?))
    }

    /// The resource name of an entry in this store.
    pub fn entry(&self, entry: &EntryId) -> String {
        format!("{self}/entries/{entry}")
    }
}

impl fmt::Display for StoreName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/memory/{}", self.owner.name(&self.team), self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_round_trip_as_names_and_as_keys() {
        for name in ["teams/red", "teams/red/projects/site", "teams/red/users/ann"] {
            let (team, owner) = Owner::parse(name).unwrap();
            assert_eq!(owner.name(&team), name);
            assert_eq!(Owner::from_key(&owner.key()), Some(owner));
        }
        for bad in [
            "",
            "teams",
            "teams/red/users",
            "teams/red/users/A",
            "teams/red/groups/x",
            "users/ann",
        ] {
            assert!(Owner::parse(bad).is_err(), "{bad:?} was accepted");
        }
        assert_eq!(Owner::from_key("users/../x"), None);
    }

    #[test]
    fn stores_and_entries_round_trip_and_nothing_else_is_one() {
        for name in [
            "teams/red/memory/notes",
            "teams/red/users/ann/memory/profile",
            "teams/red/projects/p/memory/notes",
        ] {
            let store = StoreName::parse(name).unwrap();
            assert_eq!(store.to_string(), name);
            let entry = format!("{name}/entries/e1");
            let (parsed, id) = StoreName::parse_entry(&entry).unwrap();
            assert_eq!((&parsed, parsed.entry(&id)), (&store, entry));
        }
        for bad in [
            "teams/red/memory/profile",
            "teams/red/users/ann/memory",
            "teams/red/memory/x",
            "memory/notes",
            "",
        ] {
            assert!(StoreName::parse(bad).is_err(), "{bad:?} was accepted");
        }
        assert!(StoreName::parse_entry("teams/red/memory/notes/entries/").is_err());
    }

    #[test]
    fn only_a_person_has_a_profile() {
        let ann = Owner::Person(UserId::parse("ann").unwrap());
        assert!(ann.has(Target::Profile) && ann.has(Target::Notes));
        assert!(!Owner::Team.has(Target::Profile) && Owner::Team.has(Target::Notes));
    }
}
