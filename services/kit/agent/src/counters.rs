//! When a review becomes due: two counters per session and the rule that moves them (`T-3`, `T-4`, `T-5`). A pure
//! function, so that the counters live where the session lives and nowhere else.

use serde::{Deserialize, Serialize};
use steward_model::Message;

/// The counters as they are stored with the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counters {
    /// User turns since the last memory review or foreground use of the memory tool.
    pub turns_since_memory: u32,
    /// Model calls since the last skill review or foreground use of `skill_manage`.
    pub iterations_since_skill: u32,
}

/// Thresholds; 0 turns a kind of review off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NudgeSettings {
    /// User turns until a memory review is due.
    pub memory_turns: u32,
    /// Model calls until a skill review is due.
    pub skill_iterations: u32,
}

impl Default for NudgeSettings {
    fn default() -> Self {
        Self {
            memory_turns: 10,
            skill_iterations: 10,
        }
    }
}

/// What happened in one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TurnFacts {
    /// Model calls of the turn, the final text-only one included.
    pub iterations: u32,
    /// Whether the memory tool was called.
    pub used_memory: bool,
    /// Model calls after the last one that called `skill_manage`; `None` when none did.
    pub iterations_after_skill_use: Option<u32>,
    /// Whether this turn may make a review due at all ([`may_be_reviewed`]).
    pub reviewable: bool,
    /// Whether a correction by the person was staged in it, which waits for a review to be decided.
    pub corrected: bool,
}

impl TurnFacts {
    /// Reads the facts off a turn's messages, its user message first.
    pub fn of_turn(turn: &[Message], reviewable: bool) -> Self {
        let mut facts = Self {
            reviewable,
            ..Self::default()
        };
        for message in turn {
            let Message::Assistant { tool_calls, .. } = message else {
                continue;
            };
            facts.iterations += 1;
            facts.used_memory |= tool_calls.iter().any(|call| call.name == "memory");
            facts.iterations_after_skill_use = if tool_calls.iter().any(|call| call.name == "skill_manage") {
                Some(0)
            } else {
                facts.iterations_after_skill_use.map(|since| since + 1)
            };
        }
        facts
    }
}

/// Which reviews are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Due {
    /// A memory review.
    pub memory: bool,
    /// A skill review.
    pub skills: bool,
}

impl Due {
    /// Whether anything is.
    pub fn any(self) -> bool {
        self.memory || self.skills
    }
}

/// How a turn ended, as far as reviews care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnEnd {
    /// The person has a whole answer.
    Delivered,
    /// It was interrupted.
    Interrupted,
    /// It ended without an answer.
    Unanswered,
}

/// What kind of session a turn belongs to, as far as reviews care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionKind {
    /// A person's own session.
    Foreground,
    /// A person's own session that asked not to be reviewed.
    SkipsReview,
    /// A review, a curation, a delegate's or a scheduled session.
    Automatic,
}

/// Whether a turn may make a review due: delivered, and in a person's own session that permits it (`T-5`).
pub fn may_be_reviewed(end: TurnEnd, session: SessionKind) -> bool {
    end == TurnEnd::Delivered && session == SessionKind::Foreground
}

/// The counters after a turn, and what became due. A correction waits for no counter: the next session is to know of it.
/// A turn that cannot be reviewed still counts, so that the next one that
/// can be is reviewed in its place.
pub fn after_turn(counters: Counters, facts: TurnFacts, settings: NudgeSettings) -> (Counters, Due) {
    let turns = if facts.used_memory {
        0
    } else {
        counters.turns_since_memory.saturating_add(1)
    };
    let iterations = match facts.iterations_after_skill_use {
        Some(since) => since,
        None => counters.iterations_since_skill.saturating_add(facts.iterations),
    };
    let reached = |count: u32, threshold: u32| facts.reviewable && threshold > 0 && count >= threshold;
    let due = Due {
        memory: reached(turns, settings.memory_turns)
            || (facts.corrected && facts.reviewable && settings.memory_turns > 0),
        skills: reached(iterations, settings.skill_iterations),
    };
    let next = Counters {
        turns_since_memory: if due.memory { 0 } else { turns },
        iterations_since_skill: if due.skills { 0 } else { iterations },
    };
    (next, due)
}

/// Counters for a history that comes without any (`T-4`).
pub fn for_imported(user_turns: u32, settings: NudgeSettings) -> Counters {
    let turns_since_memory = user_turns.checked_rem(settings.memory_turns).unwrap_or(0);
    Counters {
        turns_since_memory,
        iterations_since_skill: 0,
    }
}

#[cfg(test)]
mod tests {
    use steward_model::ToolCall;

    use super::*;

    fn turn(iterations: u32) -> TurnFacts {
        TurnFacts {
            iterations,
            reviewable: true,
            ..TurnFacts::default()
        }
    }

    fn calling(name: &str) -> Message {
        let call = ToolCall {
            id: "c".to_owned(),
            name: name.to_owned(),
            arguments: "{}".to_owned(),
        };
        Message::Assistant {
            content: String::new(),
            tool_calls: vec![call],
        }
    }

    #[test]
    fn exactly_one_memory_review_starts_after_the_fourth_turn() {
        let settings = NudgeSettings {
            memory_turns: 4,
            skill_iterations: 0,
        };
        let (mut counters, mut dues) = (Counters::default(), Vec::new());
        for _ in 0..5 {
            let (next, due) = after_turn(counters, turn(3), settings);
            counters = next;
            dues.push(due.memory);
            assert!(!due.skills, "zero turns a kind off");
        }
        assert_eq!(dues, [false, false, false, true, false]);
        assert_eq!(counters.turns_since_memory, 1);
    }

    /// D-41.
    #[test]
    fn using_a_tool_resets_its_own_counter_only() {
        let settings = NudgeSettings {
            memory_turns: 2,
            skill_iterations: 100,
        };
        let before = Counters {
            turns_since_memory: 1,
            iterations_since_skill: 7,
        };
        let (after, due) = after_turn(
            before,
            TurnFacts {
                used_memory: true,
                ..turn(2)
            },
            settings,
        );
        assert_eq!(
            (after.turns_since_memory, after.iterations_since_skill, due.any()),
            (0, 9, false)
        );
        let used = TurnFacts {
            iterations_after_skill_use: Some(2),
            ..turn(5)
        };
        assert_eq!(after_turn(before, used, settings).0.iterations_since_skill, 2);
    }

    #[test]
    fn a_turn_that_cannot_be_reviewed_leaves_its_due_to_the_next() {
        let settings = NudgeSettings::default();
        let before = Counters {
            turns_since_memory: 9,
            iterations_since_skill: 9,
        };
        let (held, due) = after_turn(
            before,
            TurnFacts {
                reviewable: false,
                ..turn(1)
            },
            settings,
        );
        assert!(!due.any());
        assert_eq!(
            after_turn(held, turn(1), settings).1,
            Due {
                memory: true,
                skills: true
            }
        );
        assert!(may_be_reviewed(TurnEnd::Delivered, SessionKind::Foreground));
        for (end, session) in [
            (TurnEnd::Interrupted, SessionKind::Foreground),
            (TurnEnd::Unanswered, SessionKind::Foreground),
            (TurnEnd::Delivered, SessionKind::SkipsReview),
            (TurnEnd::Delivered, SessionKind::Automatic),
        ] {
            assert!(!may_be_reviewed(end, session));
        }
    }

    #[test]
    fn facts_are_read_off_the_turn() {
        let messages = [
            Message::user("do it"),
            calling("memory"),
            calling("skill_manage"),
            calling("shell"),
            Message::assistant("done"),
        ];
        let facts = TurnFacts::of_turn(&messages, true);
        assert_eq!(
            (facts.iterations, facts.used_memory, facts.iterations_after_skill_use),
            (4, true, Some(2))
        );
        assert_eq!(
            TurnFacts::of_turn(&messages[..2], true).iterations_after_skill_use,
            None
        );
    }

    #[test]
    fn an_imported_history_starts_at_the_remainder() {
        assert_eq!(for_imported(23, NudgeSettings::default()).turns_since_memory, 3);
        assert_eq!(
            for_imported(
                23,
                NudgeSettings {
                    memory_turns: 0,
                    skill_iterations: 0
                }
            )
            .turns_since_memory,
            0
        );
    }

    #[test]
    fn a_correction_waits_for_no_counter_and_a_review_that_is_off_stays_off() {
        let corrected = TurnFacts {
            corrected: true,
            ..turn(1)
        };
        let (after, due) = after_turn(Counters::default(), corrected, NudgeSettings::default());
        assert_eq!((after.turns_since_memory, due.memory, due.skills), (0, true, false));
        let off = NudgeSettings {
            memory_turns: 0,
            ..NudgeSettings::default()
        };
        assert!(!after_turn(Counters::default(), corrected, off).1.any());
        let interrupted = TurnFacts {
            reviewable: false,
            ..corrected
        };
        assert!(
            !after_turn(Counters::default(), interrupted, NudgeSettings::default())
                .1
                .any()
        );
    }
}
