//! A history from a seed: the same messages on every machine.

use super::lexicon::{Language, Lexicon};
use super::{Call, Corpus, Message, Role, Session, Source};
use crate::random::Random;

const TOOLS: &[&str] = &[
    "shell",
    "read_file",
    "fetch_page",
    "edit_table",
    "list_folder",
    "ask_store",
];

/// `messages` messages in `sessions` conversations.
pub(super) fn generate(seed: u64, messages: u32, sessions: u32) -> Corpus {
    let lexicon = Lexicon::new(seed);
    let mut random = Random::new(seed, "history");
    let counts = counts(&mut random, messages, sessions);
    let mut made: Vec<Session> = Vec::with_capacity(counts.len());
    for count in counts {
        let language = *random.pick(&[
            Language::English,
            Language::English,
            Language::English,
            Language::English,
            Language::Chinese,
            Language::Chinese,
            Language::Chinese,
            Language::Mixed,
            Language::Mixed,
            Language::Code,
        ]);
        let source = match random.below(20) {
            0 => Source::Delegate,
            1 | 2 => Source::Schedule,
            3 => Source::Import,
            _ => Source::Chat,
        };
        let before = made.len().checked_sub(1);
        let parent = before.filter(|_| random.chance(0.1));
        let messages = (0..count)
            .map(|number| message(&lexicon, &mut random, language, number))
            .collect();
        made.push(Session {
            source,
            parent,
            messages,
        });
    }
    Corpus { sessions: made }
}

/// How many messages each conversation has: many short ones, a few long ones, at least one in each.
fn counts(random: &mut Random, messages: u32, sessions: u32) -> Vec<u32> {
    let mut left = messages;
    (0..sessions)
        .map(|number| {
            let rest = sessions - number - 1;
            if rest == 0 {
                return std::mem::take(&mut left);
            }
            let mean = left / (rest + 1);
            let drawn = random.length(f64::from(mean.max(1)) * 0.7, 0.85, 1);
            let count = u32::try_from(drawn).unwrap_or(u32::MAX).clamp(1, left - rest);
            left -= count;
            count
        })
        .collect()
}

/// A person asks, the assistant calls a tool or answers, the tool returns, the assistant answers.
fn message(lexicon: &Lexicon, random: &mut Random, language: Language, number: u32) -> Message {
    let (role, words) = match number % 4 {
        0 => (Role::User, random.length(13.0, 0.6, 3)),
        1 => (Role::Assistant, random.length(8.0, 0.5, 2)),
        2 => (Role::Tool, random.length(50.0, 0.7, 5)),
        _ => (Role::Assistant, random.length(35.0, 0.6, 5)),
    };
    let spoken = match (role, language) {
        (Role::Tool, Language::Chinese | Language::Mixed) => Language::Code,
        (_, language) => language,
    };
    let text = lexicon.text(random, spoken, words);
    let calls = if number % 4 == 1 {
        vec![Call {
            id: format!("call-{number}"),
            name: (*random.pick(TOOLS)).to_owned(),
            arguments:
                serde_json::json!({"target": lexicon.identifier(random), "why": lexicon.text(random, language, 4)})
                    .to_string(),
        }]
    } else {
        Vec::new()
    };
    Message {
        role,
        text,
        tool_name: (role == Role::Tool).then(|| (*random.pick(TOOLS)).to_owned()),
        calls,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_the_same_history_and_exactly_what_was_asked_for() {
        let corpus = generate(7, 400, 8);
        assert_eq!((corpus.sessions.len(), corpus.message_count()), (8, 400));
        assert!(corpus.sessions.iter().all(|session| !session.messages.is_empty()));
        assert_eq!(corpus, generate(7, 400, 8));
        assert_ne!(corpus, generate(8, 400, 8));
    }
}
