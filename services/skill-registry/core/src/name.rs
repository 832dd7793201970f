//! What skills are called: scopes, categories, full names, and the references by which a caller means one (`S-6`).
//!
//! Within a scope a skill's name is unique; the category is a shelf and no part of its identity. A full name such as
//! `team/deploys/rollout` is exact; anything shorter must match one skill only, else it is an error and never a guess.

use std::fmt;

use serde::{Deserialize, Serialize};
use steward_base::names::{NameError, SkillId, TeamId, UserId};

use crate::path;

/// Where a skill lives, nearest first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// One person's own skills; nobody else sees them.
    User(UserId),
    /// The team's library.
    Team,
    /// In a read-only folder of the installation; each team has its own copy of the rows.
    External,
    /// Installed from a hub for the team.
    Hub,
    /// Shipped with Steward; each team has its own copy of the rows.
    Builtin,
}

impl Scope {
    /// The first part of a full name.
    pub const fn label(&self) -> &'static str {
        match self {
            Self::User(_) => "user",
            Self::Team => "team",
            Self::External => "external",
            Self::Hub => "hub",
            Self::Builtin => "builtin",
        }
    }

    /// The owner column of a store: the user's id, or nothing.
    pub fn owner(&self) -> &str {
        match self {
            Self::User(user) => user.as_str(),
            Self::Team | Self::External | Self::Hub | Self::Builtin => "",
        }
    }

    /// From the two columns of a store; `None` when they do not fit together.
    pub fn from_columns(label: &str, owner: &str) -> Option<Self> {
        match (label, owner) {
            ("user", owner) => UserId::parse(owner).ok().map(Self::User),
            ("team", "") => Some(Self::Team),
            ("external", "") => Some(Self::External),
            ("hub", "") => Some(Self::Hub),
            ("builtin", "") => Some(Self::Builtin),
            _ => None,
        }
    }

    /// Distance from the person: smaller is nearer.
    pub const fn rank(&self) -> u8 {
        match self {
            Self::User(_) => 0,
            Self::Team => 1,
            Self::External => 2,
            Self::Hub => 3,
            Self::Builtin => 4,
        }
    }
}

/// The slug of a text (`S-17`): lower case, blanks and underscores as hyphens, other signs dropped, at most 64 characters.
/// Empty when nothing is left.
pub fn slug(text: &str) -> String {
    let mut slug = String::new();
    for letter in text.trim().chars().flat_map(char::to_lowercase) {
        let letter = if letter.is_whitespace() || letter == '_' {
            '-'
        } else {
            letter
        };
        let fits = letter.is_ascii_lowercase() || letter.is_ascii_digit();
        if fits || letter == '-' && !slug.is_empty() && !slug.ends_with('-') {
            slug.push(letter);
        }
    }
    slug.truncate(steward_base::names::MAX_ID);
    slug.trim_end_matches('-').to_owned()
}

/// The shelf of a skill: up to three ids with `/` between them, or none.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Category(String);

const MAX_CATEGORY_PARTS: usize = 3;

/// Why a text is not a category.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be up to {MAX_CATEGORY_PARTS} parts joined by `/`, each of lower-case letters, digits and single hyphens, and \
     none that a system keeps for itself"
)]
pub struct CategoryError;

impl Category {
    /// Checks a category; the empty text is none.
    pub fn parse(text: &str) -> Result<Self, CategoryError> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let parts = text.split('/').collect::<Vec<_>>();
        let all_ids = parts
            .iter()
            .all(|part| SkillId::parse(*part).is_ok() && !path::is_reserved(part));
        if all_ids && parts.len() <= MAX_CATEGORY_PARTS {
            Ok(Self(text.to_owned()))
        } else {
            Err(CategoryError)
        }
    }

    /// The category as text, empty for none.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Category {
    type Error = CategoryError;

    fn try_from(text: String) -> Result<Self, CategoryError> {
        Self::parse(&text)
    }
}

impl From<Category> for String {
    fn from(category: Category) -> Self {
        category.0
    }
}

/// `category/name` or `name`: the folder that a skill has inside its scope.
pub fn folder(category: &Category, name: &SkillId) -> String {
    if category.0.is_empty() {
        name.to_string()
    } else {
        format!("{category}/{name}")
    }
}

/// `scope/category/name`: what is exact for the model and for people.
pub fn full_name(scope: &Scope, category: &Category, name: &SkillId) -> String {
    format!("{}/{}", scope.label(), folder(category, name))
}

/// Which of the skills in a scope keep a new one from having `folder`: those with its name, those in a folder below it,
/// and those whose folder it would lie in. In a folder outside a name may stand in several categories (D-17). `existing` are the skills in use, as category and name.
pub fn in_the_way<'a>(
    scope: &Scope,
    category: &Category,
    name: &SkillId,
    existing: impl IntoIterator<Item = (&'a Category, &'a SkillId)>,
) -> Vec<String> {
    let wanted = folder(category, name);
    let is_below = |inner: &str, outer: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'));
    let mut found = existing
        .into_iter()
        .filter(|(their_category, their_name)| {
            let theirs = folder(their_category, their_name);
            let has_name = if *scope == Scope::External {
                theirs == wanted
            } else {
                *their_name == name
            };
            has_name || is_below(&theirs, &wanted) || is_below(&wanted, &theirs)
        })
        .map(|(their_category, their_name)| full_name(scope, their_category, their_name))
        .collect::<Vec<_>>();
    found.sort();
    found
}

/// The AIP resource name of a skill. `id` is its name, or for one of several archived copies [`archived_id`].
pub fn resource_name(team: &TeamId, scope: &Scope, id: &str) -> String {
    match scope {
        Scope::User(user) => format!("teams/{team}/users/{user}/skills/{id}"),
        Scope::Team => format!("teams/{team}/skills/{id}"),
        Scope::External => format!("externals/skills/{id}"),
        Scope::Hub => format!("hub/skills/{id}"),
        Scope::Builtin => format!("builtins/skills/{id}"),
    }
}

/// What tells archived copies of one name apart. No name contains two hyphens in a row, so this is never one.
pub fn archived_id(name: &SkillId, uid: &str) -> String {
    format!("{name}--{uid}")
}

/// A skill's resource name, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillName {
    /// The team in it; builtins have none.
    pub team: Option<TeamId>,
    /// Whose it is.
    pub scope: Scope,
    /// The skill's name.
    pub name: SkillId,
    /// Which of several archived copies.
    pub uid: Option<String>,
}

/// Form of a skill's resource name.
pub const SKILL_PATTERN: &str = "teams/{team}/users/{user}/skills/{skill}, teams/{team}/skills/{skill}, \
                                 externals/skills/{skill}, hub/skills/{skill} or builtins/skills/{skill}";

impl SkillName {
    /// Takes a resource name apart.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let parts = text.split('/').collect::<Vec<_>>();
        let (team, scope, id) = match parts.as_slice() {
            ["teams", team, "users", user, "skills", id] => {
                (Some(TeamId::parse(*team)?), Scope::User(UserId::parse(*user)?), *id)
            }
            ["teams", team, "skills", id] => (Some(TeamId::parse(*team)?), Scope::Team, *id),
            ["externals", "skills", id] => (None, Scope::External, *id),
            ["hub", "skills", id] => (None, Scope::Hub, *id),
            ["builtins", "skills", id] => (None, Scope::Builtin, *id),
            _ => return Err(NameError::Pattern { pattern: SKILL_PATTERN }),
        };
        let (name, uid) = match id.split_once("--") {
            Some((name, uid)) if uid.len() == 32 && uid.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                (name, Some(uid.to_owned()))
            }
            _ => (id, None),
        };
        Ok(Self {
            team,
            scope,
            name: SkillId::parse(name)?,
            uid,
        })
    }
}

/// As it is parsed, whole: what is told of a skill that is not there names the one that was asked for.
impl fmt::Display for SkillName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(team) = &self.team {
            write!(f, "teams/{team}/")?;
        }
        match &self.scope {
            Scope::User(user) => write!(f, "users/{user}/")?,
            Scope::Team => {}
            Scope::External => f.write_str("externals/")?,
            Scope::Hub => f.write_str("hub/")?,
            Scope::Builtin => f.write_str("builtins/")?,
        }
        match &self.uid {
            Some(uid) => write!(f, "skills/{}--{uid}", self.name),
            None => write!(f, "skills/{}", self.name),
        }
    }
}

/// How a caller means a skill: a bare name, the end of a full name, a whole full name, or a resource name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// The last parts of a full name. `:` counts as `/`, since models write both.
    Parts(Vec<String>),
    /// Exactly one.
    Resource(SkillName),
}

/// Why a text cannot mean a skill.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be a skill's name, such as `rollout`, or its full name, such as `team/deploys/rollout`")]
pub struct ReferenceError;

impl Reference {
    /// Checks the syntax; that such a skill exists is another question.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        if let Ok(name) = SkillName::parse(text) {
            return Ok(Self::Resource(name));
        }
        let parts = text.trim().split(['/', ':']).map(str::to_owned).collect::<Vec<_>>();
        let well_formed = parts.iter().all(|part| SkillId::parse(part.as_str()).is_ok());
        if well_formed && parts.len() <= MAX_CATEGORY_PARTS + 2 {
            Ok(Self::Parts(parts))
        } else {
            Err(ReferenceError)
        }
    }

    /// The skill's name, by which a store finds the candidates.
    pub fn name(&self) -> Option<SkillId> {
        match self {
            Self::Parts(parts) => parts.last().and_then(|name| SkillId::parse(name.as_str()).ok()),
            Self::Resource(resource) => Some(resource.name.clone()),
        }
    }

    /// Whether `full_name` is this, with nothing left out.
    pub fn is_exactly(&self, full_name: &str) -> bool {
        match self {
            Self::Parts(parts) => full_name.split('/').eq(parts.iter().map(String::as_str)),
            Self::Resource(_) => false,
        }
    }

    /// Whether `full_name` ends with these parts.
    pub fn matches(&self, full_name: &str) -> bool {
        match self {
            Self::Parts(parts) => {
                let mut theirs = full_name.rsplit('/');
                parts.iter().rev().all(|wanted| theirs.next() == Some(wanted.as_str()))
            }
            Self::Resource(_) => false,
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parts(parts) => f.write_str(&parts.join("/")),
            Self::Resource(resource) => write!(f, "{}/{}", resource.scope.label(), resource.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_matches_from_its_end_by_whole_parts() {
        let reference = |text: &str| Reference::parse(text).unwrap();
        assert!(reference("rollout").matches("team/deploys/rollout"));
        assert!(reference("deploys/rollout").matches("team/deploys/rollout"));
        assert!(reference("deploys:rollout").matches("team/deploys/rollout"));
        assert!(reference("team/deploys/rollout").is_exactly("team/deploys/rollout"));
        assert!(!reference("out").matches("team/deploys/rollout"));
        assert!(!reference("team/rollout").matches("team/deploys/rollout"));
        assert!(!reference("x/team/deploys/rollout").matches("team/deploys/rollout"));
    }

    #[test]
    fn nothing_that_is_a_path_elsewhere_is_a_reference_or_a_category() {
        for bad in ["../other", "", "/tmp/x", "a//b", "A", "a b", "a\\b", "a/b/c/d/e/f"] {
            assert!(Reference::parse(bad).is_err(), "{bad:?} was accepted");
        }
        for bad in ["../x", "/tmp/x", "a/", "a/b/c/d", "Ops", "con", "ops/com1"] {
            assert!(Category::parse(bad).is_err(), "{bad:?} was accepted");
        }
        assert_eq!(Category::parse("home/tools").unwrap().as_str(), "home/tools");
    }

    #[test]
    fn resource_names_round_trip_and_tell_archived_copies_apart() {
        let (team, name) = (TeamId::parse("red").unwrap(), SkillId::parse("pdf-merge").unwrap());
        let uid = "0198c0000000700080000000000000ab";
        for scope in [
            Scope::User(UserId::parse("ann").unwrap()),
            Scope::Team,
            Scope::External,
            Scope::Hub,
            Scope::Builtin,
        ] {
            let parsed = SkillName::parse(&resource_name(&team, &scope, "pdf-merge")).unwrap();
            assert_eq!((&parsed.scope, &parsed.name, &parsed.uid), (&scope, &name, &None));
            assert_eq!(parsed.to_string(), resource_name(&team, &scope, "pdf-merge"));
            let archived = resource_name(&team, &scope, &archived_id(&name, uid));
            let parsed = SkillName::parse(&archived).unwrap();
            assert_eq!(parsed.to_string(), archived);
            assert_eq!((&parsed.name, parsed.uid.as_deref()), (&name, Some(uid)));
        }
        for bad in [
            "teams/red/skills/a--b",
            "teams/red/skills",
            "builtins/skills/../x",
            "teams/red/users/ann/skills/",
        ] {
            assert!(SkillName::parse(bad).is_err(), "{bad:?} was accepted");
        }
        assert!(matches!(
            Reference::parse("builtins/skills/plan"),
            Ok(Reference::Resource(_))
        ));
    }

    #[test]
    fn a_folder_that_holds_skills_or_lies_in_one_is_taken() {
        let id = |text: &str| SkillId::parse(text).unwrap();
        let shelf = |text: &str| Category::parse(text).unwrap();
        let (data, deep) = (shelf("data"), shelf("data/deep"));
        let (clean, parquet) = (id("csv-clean"), id("parquet"));
        let existing = [(&data, &clean), (&deep, &parquet)];
        let way = |category: &str, name: &str| in_the_way(&Scope::Team, &shelf(category), &id(name), existing);
        assert_eq!(way("", "data"), ["team/data/csv-clean", "team/data/deep/parquet"]);
        assert_eq!(way("data/csv-clean", "x"), ["team/data/csv-clean"]);
        assert_eq!(way("other", "parquet"), ["team/data/deep/parquet"]);
        assert_eq!(way("data", "csv"), Vec::<String>::new());
    }

    /// `S-17`.
    #[test]
    fn a_slug_is_lower_case_with_single_hyphens() {
        for (text, expected) in [
            ("Merge PDF_files", "merge-pdf-files"),
            ("  a -- b!  ", "a-b"),
            ("C++ / C#", "c-c"),
            ("文档", ""),
            ("-x-", "x"),
            ("Ärger", "rger"),
        ] {
            assert_eq!(slug(text), expected, "{text}");
        }
        let long = slug(&"ab_".repeat(50));
        assert!(SkillId::parse(&*long).is_ok(), "{long}");
    }

    #[test]
    fn scopes_survive_their_columns() {
        let all = [
            Scope::User(UserId::parse("ann").unwrap()),
            Scope::Team,
            Scope::External,
            Scope::Hub,
            Scope::Builtin,
        ];
        for scope in all {
            assert_eq!(Scope::from_columns(scope.label(), scope.owner()), Some(scope));
        }
        assert_eq!(Scope::from_columns("team", "ann"), None);
        assert_eq!(Scope::from_columns("galaxy", ""), None);
    }
}
