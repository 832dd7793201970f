//! Curation: the run that ages a team's library (`C-1` to `C-4`, `C-10`), as the ledger keeps it.
//!
//! When a run is due is [`due`], what it changes is [`transitions`], how it is carried out is [`execute`], and what people
//! read of it is [`report`]. All of it is decided here; whether a change may happen is the registry's business.

pub mod due;
pub mod execute;
pub mod failure;
pub mod report;
pub mod transitions;

use std::fmt;

use steward_base::Timestamp;
use steward_base::names::{ReviewId, TeamId, UserId, team_name};

use crate::error::Error;
use crate::review::Problem;

/// Id of a run: the second of its making, and a draw that tells two of one second apart (`C-10`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(String);

impl RunId {
    /// Of a run that is made now; `drawn` is a fresh id.
    pub fn new(now: Timestamp, drawn: &str) -> Self {
        let second: String = now
            .to_string()
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .map(|letter| letter.to_ascii_lowercase())
            .collect();
        let at = drawn.len().saturating_sub(12);
        Self(format!("{second}-{}", drawn.get(at..).unwrap_or_default()))
    }

    /// Checks the syntax, which is that of every id.
    pub fn parse(text: &str) -> Option<Self> {
        ReviewId::parse(text).ok().map(|id| Self(id.to_string()))
    }

    /// The bare id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a run does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Ages skills.
    Curate,
    /// Says what a curation would do.
    DryRun,
    /// Undoes an earlier run.
    Rollback,
}

impl Kind {
    /// The stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Curate => "curate",
            Self::DryRun => "dry_run",
            Self::Rollback => "rollback",
        }
    }

    /// From its name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Curate, Self::DryRun, Self::Rollback]
            .into_iter()
            .find(|kind| kind.as_str() == name)
    }
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunState {
    /// Waits.
    Queued,
    /// Runs.
    Running,
    /// Ended well.
    Succeeded,
    /// Ended with an error.
    Failed,
}

impl RunState {
    /// The stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
        }
    }

    /// From its name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Queued, Self::Running, Self::Succeeded, Self::Failed]
            .into_iter()
            .find(|state| state.as_str() == name)
    }

    /// Whether it has not ended.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Queued | Self::Running)
    }
}

/// What a run came to, as a row shows it without its report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Result {
    /// Name of the snapshot; empty without one.
    pub snapshot: String,
    /// Skills that it changed, or would change.
    pub changes: u32,
    /// Skills that it meant to change and left alone.
    pub conflicts: u32,
    /// One line for people.
    pub summary: String,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The team.
    pub team: TeamId,
    /// Its id, that of its job and of its snapshot.
    pub id: RunId,
    /// What it does.
    pub kind: Kind,
    /// Who asked for it; nobody when it came due by itself.
    pub requester: Option<UserId>,
    /// In whose name it may run, the first of them who still has access.
    pub users: Vec<UserId>,
    /// The run that a roll-back undoes.
    pub undoes: Option<RunId>,
    /// Where it stands.
    pub state: RunState,
    /// Why it failed.
    pub problem: Option<Problem>,
    /// Tries begun so far.
    pub attempts: u32,
    /// What it came to.
    pub result: Result,
    /// When it was put into the queue.
    pub created_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

impl Run {
    /// `teams/{team}/curationRuns/{run}`.
    pub fn name(&self) -> String {
        run_name(&self.team, &self.id)
    }

    /// Whether it can be undone (`C-4`). A curation that failed can, since it may have failed half way; a roll-back that
    /// failed is asked for again instead and goes on where it stopped.
    pub fn may_be_undone(&self) -> std::result::Result<(), Error> {
        match (self.kind, self.state) {
            (Kind::Curate | Kind::Rollback, RunState::Succeeded) | (Kind::Curate, RunState::Failed) => return Ok(()),
            _ => {}
        }
        Err(Error::NotUndoable {
            run: self.name(),
            state: match self.kind {
                Kind::DryRun => Kind::DryRun.as_str(),
                Kind::Curate | Kind::Rollback => self.state.as_str(),
            },
        })
    }

    /// Whether it is known to have changed nothing: it has ended, and took no snapshot, which comes before any change.
    pub fn changed_nothing(&self) -> bool {
        let keeps_its_snapshot = self.state == RunState::Succeeded || self.kind == Kind::Curate;
        !self.state.is_open() && keeps_its_snapshot && self.result.snapshot.is_empty()
    }
}

/// `teams/{team}/curationRuns/{run}`.
pub fn run_name(team: &TeamId, id: &RunId) -> String {
    format!("{}/curationRuns/{id}", team_name(team))
}

/// What is kept of a team between runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamClock {
    /// From when the interval counts: first sight, or the latest run.
    pub since: Timestamp,
    /// Whether a maintainer paused it.
    pub paused: bool,
    /// Latest curation that ended well, and when.
    pub last_run: Option<(RunId, Timestamp)>,
    /// How many there were.
    pub runs: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(kind: Kind, state: RunState, snapshot: &str) -> Run {
        let now = Timestamp::from_secs(0);
        Run {
            team: TeamId::parse("red").unwrap(),
            id: RunId::new(now, "0198c00000007000800000000000000a"),
            kind,
            requester: None,
            users: Vec::new(),
            undoes: None,
            state,
            problem: None,
            attempts: 1,
            result: Result {
                snapshot: snapshot.to_owned(),
                ..Result::default()
            },
            created_at: now,
            ended_at: None,
        }
    }

    #[test]
    fn what_ended_and_may_have_changed_something_can_be_undone() {
        use Kind::{Curate, DryRun, Rollback};
        use RunState::{Failed, Queued, Running, Succeeded};
        for (kind, state, undoable) in [
            (Curate, Succeeded, true),
            (Curate, Failed, true),
            (Curate, Queued, false),
            (Curate, Running, false),
            (Rollback, Succeeded, true),
            (Rollback, Failed, false),
            (DryRun, Succeeded, false),
            (DryRun, Failed, false),
        ] {
            assert_eq!(
                run(kind, state, "s").may_be_undone().is_ok(),
                undoable,
                "{kind:?} {state:?}"
            );
        }
        for (kind, state, snapshot, nothing) in [
            (Curate, Succeeded, "", true),
            (Curate, Failed, "", true),
            (Curate, Failed, "s", false),
            (Curate, Running, "", false),
            (Rollback, Succeeded, "", true),
            (Rollback, Failed, "", false),
        ] {
            assert_eq!(
                run(kind, state, snapshot).changed_nothing(),
                nothing,
                "{kind:?} {state:?}"
            );
        }
    }

    #[test]
    fn two_runs_of_one_second_have_distinct_names() {
        let now = Timestamp::from_secs(1_795_910_400);
        let [one, two] = ["0198c00000007000800000000000000a", "0198c00000007000800000000000000b"]
            .map(|drawn| RunId::new(now, drawn));
        assert_ne!(one, two);
        assert_eq!(one.as_str(), "20261129t000000z-00000000000a");
        assert_eq!(RunId::parse(one.as_str()), Some(one));
        assert_eq!(RunId::parse("../x"), None);
    }
}
