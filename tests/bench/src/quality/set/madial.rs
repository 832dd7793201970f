//! MADial-Bench: what an assistant should be reminded of while it talks. Each memory is a conversation of one message; the
//! question is the talk up to the turn that ought to bring a memory up.
//!
//! `MADial-Bench-en-memory.json` has a line `{"1": {"time": day, "scene", "emotion", "event", "user-id"?}}` each,
//! `MADial-Bench-en-dialogue.json` a line `{"dialogue": [turn], "test-turn": [place], "relevant-id": [memory], "user-id"}`.
//! Where memories say whose they are, only their owner's are searched.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde::Deserialize;
use steward_proto::recall::v1 as pb;

use super::{Question, Set, Talk, noon, said};

const PREFIX: &str = "MADial-Bench-";
const DIALOGUE: &str = "-dialogue";
const MEMORY: &str = "-memory";
/// Longest query that search takes, in characters; what was said last counts.
const LONGEST: usize = 1_000;
/// Stands before the first turn.
const BEGIN: &str = "<BOD>";

#[derive(Debug, Deserialize)]
struct Memory {
    time: String,
    scene: String,
    emotion: String,
    event: String,
    #[serde(rename = "user-id")]
    user: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Dialogue {
    #[serde(rename = "dialogue")]
    turns: Vec<String>,
    test_turn: Vec<usize>,
    relevant_id: Vec<u32>,
    user_id: u32,
}

pub(super) fn is_memory(stem: &str) -> bool {
    stem.starts_with(PREFIX) && stem.ends_with(MEMORY)
}

/// The file of memories that belongs to a file of dialogues.
pub(super) fn memory_of(stem: &str) -> Option<String> {
    let language = stem.strip_prefix(PREFIX)?.strip_suffix(DIALOGUE)?;
    Some(format!("{PREFIX}{language}{MEMORY}"))
}

pub(super) fn parse(stem: &str, dialogues: &str, memories: &str) -> anyhow::Result<Set> {
    let name = stem.trim_start_matches(PREFIX).trim_end_matches(DIALOGUE);
    let mut talks = Vec::new();
    let mut owned = false;
    for line in memories.lines().filter(|line| !line.trim().is_empty()) {
        let memories: BTreeMap<String, Memory> = serde_json::from_str(line).context("the memories")?;
        for (id, memory) in memories {
            owned |= memory.user.is_some();
            let text = [memory.time.as_str(), &memory.scene, &memory.emotion, &memory.event].join(" ");
            talks.push(Talk {
                id,
                person: person(memory.user),
                time: noon(&memory.time)?,
                messages: vec![said(pb::MessageRole::User, text)],
            });
        }
    }
    let mut questions = Vec::new();
    for line in dialogues.lines().filter(|line| !line.trim().is_empty()) {
        let asked: Dialogue = serde_json::from_str(line).context("the dialogues")?;
        let turn = *asked.test_turn.first().context("a dialogue without a turn to test")?;
        let before = asked.turns.get(..turn).context("a dialogue ends before its turn")?;
        let said: Vec<&str> = before
            .iter()
            .map(|line| line.trim())
            .filter(|line| *line != BEGIN)
            .collect();
        let text = said.into_iter().map(words).collect::<Vec<_>>().join("\n");
        let surplus = text.chars().count().saturating_sub(LONGEST);
        questions.push(Question {
            person: person(owned.then_some(asked.user_id)),
            text: text.chars().skip(surplus).collect(),
            sessions: asked.relevant_id.iter().map(u32::to_string).collect(),
            messages: Vec::new(),
        });
    }
    Set::new(format!("madial-{name}"), talks, questions)
}

fn person(user: Option<u32>) -> String {
    user.map_or_else(|| "p".to_owned(), |user| format!("p{user}"))
}

/// What was said, without who said it and the quotes around it.
fn words(line: &str) -> &str {
    let said = match line.split_once('>') {
        Some((name, rest)) if name.starts_with('<') && !rest.is_empty() => rest.trim_start_matches(':'),
        _ => line,
    };
    said.trim().trim_matches('"').trim_matches(['<', '>'])
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORIES: &str = concat!(
        r#"{"7": {"time": "2023-12-25", "scene": "Activity", "emotion": "Happy", "event": "Ann saw a heron."}}"#,
        "\n",
        r#"{"8": {"time": "2023-12-24", "scene": "Activity", "emotion": "Sad", "event": "Ann lost a kite."}}"#,
    );
    const DIALOGUE: &str = r#"{"dialogue": ["<BOD>\n", "<Ann>: \"What a bird!\"\n", " <Assistant>:\"Which one?\"\n", "<Ann>: \"Grey.\"\n", "<Assistant>: \"Like the heron?\"\n"], "test-turn": [4, 5], "relevant-id": [7], "user-id": 1}"#;

    #[test]
    fn the_question_is_the_talk_before_the_first_turn_that_is_tested() {
        let set = parse("MADial-Bench-en-dialogue", DIALOGUE, MEMORIES).unwrap();
        assert_eq!(set.name, "madial-en");
        assert_eq!(set.questions[0].text, "What a bird!\nWhich one?\nGrey.");
        assert_eq!((set.questions[0].person.as_str(), set.talks[0].id.as_str()), ("p", "8"));
        assert_eq!(
            set.talks[1].messages[0].text,
            "2023-12-25 Activity Happy Ann saw a heron."
        );
        let owned = MEMORIES.replace("heron.\"", "heron.\", \"user-id\": 1");
        let set = parse("MADial-Bench-en-dialogue", DIALOGUE, &owned).unwrap();
        assert_eq!(
            (set.questions[0].person.as_str(), set.talks[1].person.as_str()),
            ("p1", "p1")
        );
    }

    #[test]
    fn files_that_belong_together_are_known_by_their_names() {
        assert_eq!(
            memory_of("MADial-Bench-zh-dialogue").as_deref(),
            Some("MADial-Bench-zh-memory")
        );
        assert!(is_memory("MADial-Bench-zh-memory") && !is_memory("garden-memory"));
    }
}
