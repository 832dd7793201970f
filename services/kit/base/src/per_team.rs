//! A value that some teams have of their own and all others share: what a setting per team becomes at the start.

use std::collections::BTreeMap;

use crate::names::TeamId;

/// A value for each team.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PerTeam<T> {
    default: T,
    own: BTreeMap<TeamId, T>,
}

impl<T> PerTeam<T> {
    /// `own` for the teams in it, `default` for all others, those that do not exist yet included.
    pub const fn new(default: T, own: BTreeMap<TeamId, T>) -> Self {
        Self { default, own }
    }

    /// The value of `team`.
    pub fn of(&self, team: &TeamId) -> &T {
        self.own.get(team).unwrap_or(&self.default)
    }

    /// The value of teams that have none of their own.
    pub const fn default(&self) -> &T {
        &self.default
    }

    /// The value of all others first, then those that teams have of their own.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.default).chain(self.own.values())
    }

    /// The same with each value made into another.
    pub fn map<U>(&self, mut make: impl FnMut(&T) -> U) -> PerTeam<U> {
        PerTeam {
            default: make(&self.default),
            own: self
                .own
                .iter()
                .map(|(team, value)| (team.clone(), make(value)))
                .collect(),
        }
    }
}

impl<T> From<T> for PerTeam<T> {
    /// The same for every team.
    fn from(default: T) -> Self {
        Self {
            default,
            own: BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_team_has_its_own_value_or_the_one_of_all() {
        let red = TeamId::parse("red").unwrap();
        let limits = PerTeam::new(1, BTreeMap::from([(red.clone(), 2)])).map(|limit| limit * 10);
        assert_eq!((*limits.of(&red), *limits.default()), (20, 10));
        assert_eq!(*limits.of(&TeamId::parse("blue").unwrap()), 10);
        assert_eq!(limits.values().copied().collect::<Vec<_>>(), [10, 20]);
        assert_eq!(PerTeam::from(7).of(&red), &7);
    }
}
