//! Settings of a service that a team may have of its own: `[memory.teams.red]` in its section, with the keys that may differ.
//!
//! A team need not exist: its settings are for when it does. What a team does not set is as for all. A value is judged by the
//! section's own rules, with the team's settings in the place of the section's, so that no rule is written twice.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use steward_base::PerTeam;
use steward_base::names::TeamId;

use super::Problem;

/// The keys of a section that a team may set; see [`team_settings!`](crate::team_settings).
pub trait TeamSettings<Section> {
    /// The section with these settings in the place of its own.
    fn over(&self, section: &Section) -> Section;
}

/// Settings by team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Teams<S>(BTreeMap<String, S>);

impl<S> Default for Teams<S> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<S> FromIterator<(String, S)> for Teams<S> {
    fn from_iter<I: IntoIterator<Item = (String, S)>>(settings: I) -> Self {
        Self(settings.into_iter().collect())
    }
}

impl<S> Teams<S> {
    /// What is wrong with them by the section's own `judge`. What is wrong with the section itself is not said again for
    /// each team.
    pub fn validate<C>(&self, section: &C, judge: impl Fn(&C) -> Vec<Problem>) -> Vec<Problem>
    where
        S: TeamSettings<C>,
    {
        let known: BTreeSet<(String, String)> = judge(section)
            .into_iter()
            .map(|known| (known.path, known.message))
            .collect();
        let mut problems = Vec::new();
        for (team, own) in &self.0 {
            let place = format!("teams.{team}");
            if let Err(problem) = TeamId::parse(team.as_str()) {
                problems.push(Problem::new(place.clone(), format!("is no id of a team: {problem}")));
            }
            let found = judge(&own.over(section)).into_iter();
            let of_team = found.filter(|found| !known.contains(&(found.path.clone(), found.message.clone())));
            problems.extend(of_team.map(|found| found.within(&place)));
        }
        problems
    }

    /// What the section comes to for each team.
    pub fn of<C, T>(&self, section: &C, make: impl Fn(&C) -> T) -> PerTeam<T>
    where
        S: TeamSettings<C>,
    {
        let own = self.0.iter().filter_map(|(team, own)| {
            let team = TeamId::parse(team.as_str()).ok()?;
            Some((team, make(&own.over(section))))
        });
        PerTeam::new(make(section), own.collect())
    }
}

impl<S: JsonSchema> JsonSchema for Teams<S> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Teams_of_{}", S::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        BTreeMap::<String, S>::json_schema(generator)
    }
}

/// Makes the type of what a team may set of a section: each key with its type and where it stands in the section.
///
/// ```
/// #[derive(Clone)]
/// struct Config { notes_chars: usize, nudges: Nudges }
/// #[derive(Clone)]
/// struct Nudges { memory_turns: u32 }
///
/// steward_runtime::team_settings! {
///     /// What a team may set of its own.
///     pub struct TeamConfig of Config {
///         /// Budget of notes.
///         notes_chars: usize => notes_chars,
///         /// Turns until a review of memory.
///         memory_turns: u32 => nudges.memory_turns,
///     }
/// }
///
/// use steward_runtime::config::TeamSettings;
/// let all = Config { notes_chars: 2_200, nudges: Nudges { memory_turns: 10 } };
/// let red = TeamConfig { memory_turns: Some(3), ..TeamConfig::default() };
/// assert_eq!((red.over(&all).notes_chars, red.over(&all).nudges.memory_turns), (2_200, 3));
/// ```
#[macro_export]
macro_rules! team_settings {
    (
        $(#[$about:meta])*
        $visibility:vis struct $name:ident of $section:ty {
            $( $(#[$documentation:meta])* $key:ident: $type:ty => $($place:ident).+, )+
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Default, PartialEq, Eq, ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        $visibility struct $name {
            $(
                $(#[$documentation])*
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $key: Option<$type>,
            )+
        }

        impl $crate::config::TeamSettings<$section> for $name {
            fn over(&self, section: &$section) -> $section {
                let mut own = section.clone();
                $(
                    if let Some(value) = &self.$key {
                        own.$($place).+ = value.clone();
                    }
                )+
                own
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::super::{Layers, Validate, load};
    use super::*;

    #[derive(Debug, Clone, Default, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Whole {
        memory: Section,
    }

    #[derive(Debug, Clone, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Section {
        notes_chars: usize,
        readers: u32,
        teams: Teams<Own>,
    }

    #[derive(Debug, Clone, Default, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Own {
        #[serde(skip_serializing_if = "Option::is_none")]
        notes_chars: Option<usize>,
    }

    impl Default for Section {
        fn default() -> Self {
            Self {
                notes_chars: 2_200,
                readers: 4,
                teams: Teams::default(),
            }
        }
    }

    impl TeamSettings<Section> for Own {
        fn over(&self, section: &Section) -> Section {
            let mut own = section.clone();
            if let Some(value) = self.notes_chars {
                own.notes_chars = value;
            }
            own
        }
    }

    fn judge(section: &Section) -> Vec<Problem> {
        let mut problems = Vec::new();
        if !(1..=100_000).contains(&section.notes_chars) {
            problems.push(Problem::new("notes_chars", "must be 1 to 100000"));
        }
        problems
    }

    impl Validate for Whole {
        fn validate(&self) -> Vec<Problem> {
            let mut problems = judge(&self.memory);
            problems.extend(self.memory.teams.validate(&self.memory, judge));
            problems.into_iter().map(|problem| problem.within("memory")).collect()
        }
    }

    fn from_file(text: &str) -> Result<super::super::Loaded<Whole>, Vec<Problem>> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        load(&Layers {
            file: Some(file.path().to_owned()),
            environment: vec![("STEWARD__MEMORY__TEAMS__BLUE__NOTES_CHARS".to_owned(), "900".to_owned())],
            flags: Vec::new(),
        })
    }

    fn wrong(text: &str) -> Vec<String> {
        let problems = from_file(text).expect_err("it is wrong");
        problems.into_iter().map(|problem| problem.path).collect()
    }

    #[test]
    fn a_team_has_what_it_sets_and_else_what_all_have() {
        let loaded =
            from_file("[memory]\nnotes_chars = 3000\n[memory.teams.red]\nnotes_chars = 4000\n[memory.teams.new]\n");
        let section = loaded.expect("it is right").config.memory;
        let budgets = section.teams.of(&section, |own| own.notes_chars);
        let of = |team: &str| *budgets.of(&TeamId::parse(team).unwrap());
        assert_eq!(
            (of("red"), of("blue"), of("new"), of("green")),
            (4_000, 900, 3_000, 3_000)
        );
    }

    #[test]
    fn the_effective_settings_name_each_team_and_where_its_value_came_from() {
        let dump = from_file("[memory.teams.red]\nnotes_chars = 4000\n")
            .expect("it is right")
            .dump();
        let line = |start: &str| {
            dump.lines()
                .find(|line| line.starts_with(start))
                .unwrap_or_default()
                .to_owned()
        };
        assert!(line("memory.teams.red.notes_chars = 4000  # /").contains('/'), "{dump}");
        assert_eq!(
            line("memory.teams.blue"),
            "memory.teams.blue.notes_chars = 900  # STEWARD__MEMORY__TEAMS__BLUE__NOTES_CHARS"
        );
    }

    #[test]
    fn a_key_that_no_team_may_set_and_a_bad_value_are_refused_by_name() {
        assert_eq!(wrong("[memory.teams.red]\nreaders = 2\n"), ["memory.teams.red.readers"]);
        assert_eq!(
            wrong("[memory.teams.red]\nnotes_chars = 0\n"),
            ["memory.teams.red.notes_chars"]
        );
        assert_eq!(
            wrong("[memory.teams.red]\nnotes_chars = \"x\"\n"),
            ["memory.teams.red.notes_chars"]
        );
        assert_eq!(wrong("[memory.teams.\"No Team\"]\n"), ["memory.teams.No Team"]);
        assert_eq!(
            wrong("[memory]\nnotes_chars = 0\n[memory.teams.red]\n"),
            ["memory.notes_chars"],
            "what is wrong for all is said once"
        );
    }
}
