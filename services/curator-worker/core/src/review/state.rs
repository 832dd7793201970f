//! The state machine of a review.

use steward_base::Timestamp;

use super::{Due, Problem, Report, Review, ReviewState};
use crate::error::Error;
use crate::summary::{self, Detail};

/// How a run ended for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The reviewer did its work; whether there was anything to save follows from its writes.
    Finished,
    /// An error that a retry would not mend.
    Failed(Problem),
    /// Ended by a person, or because its turn or its user is gone.
    Cancelled(Problem),
    /// All tries were used up; the last one's problem.
    Dead(Problem),
}

/// Why a review waits again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Back {
    /// The try counts: it failed.
    Retry,
    /// The try does not count: it gave way, or its worker stopped.
    Released,
}

impl Review {
    /// A row for a review that became due.
    pub fn queued(due: Due) -> Self {
        Self {
            team: due.team,
            id: due.id,
            user: due.user,
            session: due.session,
            turn: due.turn,
            to_seq: due.to_seq,
            kinds: due.kinds,
            state: ReviewState::Queued,
            summary: String::new(),
            problem: None,
            attempts: 0,
            report: Report::default(),
            absorbed_by: None,
            created_at: due.created_at,
            ended_at: None,
            traceparent: due.traceparent,
        }
    }

    /// Takes over `older`, which waits: kinds are united and the upper message moves up (`R-2`). What the older one wrote
    /// before it gave way stays in its own row.
    pub fn absorb(&mut self, older: &mut Self, now: Timestamp) {
        self.kinds = self.kinds.united(older.kinds);
        self.to_seq = self.to_seq.max(older.to_seq);
        older.state = ReviewState::Absorbed;
        older.absorbed_by = Some(self.id.clone());
        older.summary = summary::render(&older.report.writes, Detail::On);
        older.ended_at = Some(now);
    }

    /// A worker begins a try; `attempt` counts from 1.
    pub fn begin(&mut self, attempt: u32) {
        self.state = ReviewState::Running;
        self.attempts = attempt;
    }

    /// It waits again; what was written so far is kept.
    pub fn go_back(&mut self, back: Back, report: Report) {
        self.state = ReviewState::Queued;
        self.report = report;
        if back == Back::Released {
            self.attempts = self.attempts.saturating_sub(1);
        }
    }

    /// It ends.
    pub fn end(&mut self, ending: Ending, report: Report, now: Timestamp) {
        self.summary = summary::render(&report.writes, Detail::On);
        let (state, problem) = match ending {
            Ending::Finished if summary::has_news(&report.writes) => (ReviewState::Succeeded, None),
            Ending::Finished => (ReviewState::NothingToSave, None),
            Ending::Failed(problem) => (ReviewState::Failed, Some(problem)),
            Ending::Cancelled(problem) => (ReviewState::Cancelled, Some(problem)),
            Ending::Dead(problem) => (ReviewState::Dead, Some(problem)),
        };
        self.state = state;
        self.problem = problem;
        self.report = report;
        self.ended_at = Some(now);
    }

    /// It gets a fresh start; its journal is kept, so that no write is done twice.
    pub fn retry(&mut self) -> Result<(), Error> {
        match self.state {
            ReviewState::Failed | ReviewState::Cancelled | ReviewState::Dead => {
                self.state = ReviewState::Queued;
                self.problem = None;
                self.summary = String::new();
                self.ended_at = None;
                self.attempts = 0;
                Ok(())
            }
            ReviewState::Queued
            | ReviewState::Running
            | ReviewState::Succeeded
            | ReviewState::NothingToSave
            | ReviewState::Absorbed => Err(Error::NotRetryable {
                review: self.name(),
                state: self.state,
            }),
        }
    }

    /// Whether it can still be cancelled.
    pub fn may_be_cancelled(&self) -> Result<(), Error> {
        if self.state.is_final() {
            Err(Error::Ended {
                review: self.name(),
                state: self.state,
            })
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::{Kinds, Write, WriteResult};
    use steward_base::names::{ReviewId, SessionId, TeamId, UserId};

    fn due(id: &str, to_seq: u64, kinds: Kinds) -> Due {
        Due {
            team: TeamId::parse("red").unwrap(),
            id: ReviewId::parse(id).unwrap(),
            name: format!("teams/red/sessions/s/dueReviews/{id}"),
            user: UserId::parse("ann").unwrap(),
            session: SessionId::parse("s").unwrap(),
            turn: "t".to_owned(),
            to_seq,
            kinds,
            created_at: Timestamp::from_secs(1),
            traceparent: String::new(),
        }
    }

    const MEMORY: Kinds = Kinds {
        memory: true,
        skills: false,
    };
    const SKILLS: Kinds = Kinds {
        memory: false,
        skills: true,
    };

    fn write(result: WriteResult) -> Write {
        Write {
            tool: "memory".to_owned(),
            action: "add".to_owned(),
            target: "teams/red/users/ann/memory/profile".to_owned(),
            result,
            reason: String::new(),
            gate: String::new(),
            preview: String::new(),
            revision: String::new(),
            evidence: None,
            why: String::new(),
            line: "Profile updated".to_owned(),
        }
    }

    #[test]
    fn a_newer_review_takes_over_kinds_and_upper_message() {
        let mut older = Review::queued(due("a", 8, MEMORY));
        let mut newer = Review::queued(due("b", 12, SKILLS));
        newer.absorb(&mut older, Timestamp::from_secs(9));
        assert_eq!(
            (newer.kinds, newer.to_seq),
            (
                Kinds {
                    memory: true,
                    skills: true
                },
                12
            )
        );
        assert_eq!(
            (older.state, older.absorbed_by.clone()),
            (ReviewState::Absorbed, Some(newer.id.clone()))
        );
        assert_eq!(older.ended_at, Some(Timestamp::from_secs(9)));
        assert!(older.may_be_cancelled().is_err());
    }

    #[test]
    fn nothing_to_save_is_an_ordinary_end_and_a_repeat_is_nothing() {
        let mut review = Review::queued(due("a", 8, MEMORY));
        review.begin(1);
        let report = Report {
            writes: vec![write(WriteResult::Unchanged)],
            ..Report::default()
        };
        review.end(Ending::Finished, report, Timestamp::from_secs(2));
        assert_eq!(
            (review.state, review.summary.as_str(), review.problem),
            (ReviewState::NothingToSave, "", None)
        );
    }

    #[test]
    fn a_proposal_is_a_success_and_a_refusal_is_not() {
        for (result, state) in [
            (WriteResult::Accepted, ReviewState::Succeeded),
            (WriteResult::Proposed, ReviewState::Succeeded),
            (WriteResult::Refused, ReviewState::NothingToSave),
        ] {
            let mut review = Review::queued(due("a", 8, MEMORY));
            let report = Report {
                writes: vec![write(result)],
                ..Report::default()
            };
            review.end(Ending::Finished, report, Timestamp::from_secs(2));
            assert_eq!(review.state, state);
        }
    }

    #[test]
    fn a_failed_review_can_be_retried_and_keeps_what_it_wrote() {
        let mut review = Review::queued(due("a", 8, MEMORY));
        assert!(review.retry().is_err(), "it waits already");
        review.begin(3);
        let report = Report {
            writes: vec![write(WriteResult::Accepted)],
            ..Report::default()
        };
        review.end(
            Ending::Dead(Problem::new("MODEL_UNAVAILABLE", "x")),
            report,
            Timestamp::from_secs(2),
        );
        assert_eq!(
            review.summary, "Profile updated",
            "what was written is told even when the review died"
        );
        review.retry().unwrap();
        assert_eq!(
            (review.state, review.attempts, review.problem.is_none()),
            (ReviewState::Queued, 0, true)
        );
        assert_eq!(review.report.writes.len(), 1);
    }

    #[test]
    fn giving_way_costs_no_try() {
        let mut review = Review::queued(due("a", 8, MEMORY));
        review.begin(1);
        review.go_back(Back::Released, Report::default());
        assert_eq!((review.state, review.attempts), (ReviewState::Queued, 0));
        review.begin(1);
        review.go_back(Back::Retry, Report::default());
        assert_eq!(review.attempts, 1);
    }

    #[test]
    fn every_state_has_a_name_of_its_own() {
        for state in ReviewState::ALL {
            assert_eq!(ReviewState::parse(state.as_str()), Some(state));
        }
        assert_eq!(ReviewState::parse("lost"), None);
    }
}
