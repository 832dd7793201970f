//! How a review is to be run, decided anew when it is started: the start-by rule (`R-2`, `R-3`, `R-5`).
//!
//! Within the start-by time the provider most likely still holds the conversation in its prefix cache, and replaying it
//! is the cheapest way to give it. Later the whole history would be paid for once more, so a long one is folded.

use std::time::Duration;

use steward_base::Timestamp;

/// How long after it became due a review counts as early: the common lifetime of a provider's prefix cache.
pub const START_WITHIN: Duration = Duration::from_mins(5);

/// Largest input of a review in tokens, whatever the model takes (`R-5`).
pub const MAX_INPUT_TOKENS: u64 = 600_000;

/// Above this many tokens of history a late review gets a digest.
pub const LATE_REPLAY_TOKENS: u64 = 100_000;

/// What the decision rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanFacts {
    /// Whether the review is run by the model that the session was run by.
    pub same_model: bool,
    /// Whether the start-by time has passed.
    pub late: bool,
    /// Estimated size of the history with prompt and tools, in tokens.
    pub history_tokens: u64,
    /// The model's window in tokens; 0 when unknown.
    pub context_window: u64,
}

/// How the history is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// Whole; text from outside is hidden where there is any.
    Whole,
    /// Folded.
    Digest,
}

/// When the start-by time of a review ends.
pub fn start_by(created_at: Timestamp) -> Timestamp {
    created_at.plus(START_WITHIN)
}

/// The input budget: 600,000 tokens or three quarters of the window (`R-5`).
pub fn input_budget(context_window: u64) -> u64 {
    if context_window == 0 {
        MAX_INPUT_TOKENS
    } else {
        MAX_INPUT_TOKENS.min(context_window / 4 * 3)
    }
}

/// Decides how the history is given.
pub fn decide(facts: PlanFacts) -> Plan {
    let too_large = facts.history_tokens > input_budget(facts.context_window);
    let too_dear = facts.late && facts.history_tokens > LATE_REPLAY_TOKENS;
    if !facts.same_model || too_large || too_dear {
        Plan::Digest
    } else {
        Plan::Whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EARLY: PlanFacts = PlanFacts {
        same_model: true,
        late: false,
        history_tokens: 150_000,
        context_window: 1_000_000,
    };

    #[test]
    fn an_early_review_replays_what_fits() {
        assert_eq!(decide(EARLY), Plan::Whole);
        assert_eq!(
            decide(PlanFacts {
                history_tokens: 600_001,
                ..EARLY
            }),
            Plan::Digest
        );
        assert_eq!(
            decide(PlanFacts {
                context_window: 128_000,
                ..EARLY
            }),
            Plan::Digest
        );
        assert_eq!(
            decide(PlanFacts {
                context_window: 0,
                ..EARLY
            }),
            Plan::Whole,
            "an unknown window is no limit"
        );
    }

    #[test]
    fn a_late_review_decides_anew() {
        assert_eq!(decide(PlanFacts { late: true, ..EARLY }), Plan::Digest);
        assert_eq!(
            decide(PlanFacts {
                late: true,
                history_tokens: 20_000,
                ..EARLY
            }),
            Plan::Whole
        );
        let due = Timestamp::from_secs(1_000);
        assert_eq!(start_by(due), Timestamp::from_secs(1_300));
    }

    #[test]
    fn another_model_gets_a_digest() {
        assert_eq!(
            decide(PlanFacts {
                same_model: false,
                history_tokens: 10,
                ..EARLY
            }),
            Plan::Digest
        );
    }
}
