//! Sets of conversations with questions, in whatever form they lie in a folder: our own lines of JSON, and those in which
//! public sets are published.

mod folder;
mod locomo;
mod madial;
mod memorybank;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, bail};
use serde::Deserialize;
use steward_base::Timestamp;
use steward_proto::recall::v1 as pb;

/// One file.
#[derive(Debug)]
pub(super) struct Set {
    pub(super) name: String,
    pub(super) talks: Vec<Talk>,
    pub(super) questions: Vec<Question>,
}

/// A conversation.
#[derive(Debug)]
pub(super) struct Talk {
    pub(super) id: String,
    pub(super) person: String,
    pub(super) time: Timestamp,
    pub(super) messages: Vec<pb::Message>,
}

/// A question and where its answer stands.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) person: String,
    pub(super) text: String,
    pub(super) sessions: Vec<String>,
    pub(super) messages: Vec<(String, u64)>,
}

pub(super) use folder::{Folder, read_folder};

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line {
    Session {
        id: String,
        #[serde(default)]
        person: String,
        /// Seconds since 1970.
        time: i64,
    },
    Message {
        session: String,
        role: String,
        text: String,
    },
    Question {
        #[serde(default)]
        person: String,
        text: String,
        sessions: Vec<String>,
        #[serde(default)]
        messages: Vec<(String, u64)>,
    },
}

fn parse(name: String, text: &str) -> anyhow::Result<Set> {
    let (mut talks, mut questions) = (Vec::<Talk>::new(), Vec::new());
    let (mut places, mut people) = (BTreeMap::new(), BTreeMap::new());
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let line: Line = serde_json::from_str(line).with_context(|| format!("line {}", at + 1))?;
        match line {
            Line::Session { id, person, time } => {
                let person = named(&mut people, person);
                places.insert(id.clone(), talks.len());
                talks.push(Talk {
                    id,
                    person,
                    time: Timestamp::from_secs(time),
                    messages: Vec::new(),
                });
            }
            Line::Message { session, role, text } => {
                let talk = places.get(&session).and_then(|place| talks.get_mut(*place));
                let talk = talk.with_context(|| format!("line {}: no session {session}", at + 1))?;
                let role = match role.as_str() {
                    "user" => pb::MessageRole::User,
                    "assistant" => pb::MessageRole::Assistant,
                    other => bail!("line {}: role {other:?} is neither user nor assistant", at + 1),
                };
                talk.messages.push(said(role, text));
            }
            Line::Question {
                person,
                text,
                sessions,
                messages,
            } => questions.push(Question {
                person: named(&mut people, person),
                text,
                sessions,
                messages,
            }),
        }
    }
    Set::new(name, talks, questions)
}

impl Set {
    /// The conversations in the order of their times, as they would have been held.
    fn new(name: String, mut talks: Vec<Talk>, questions: Vec<Question>) -> anyhow::Result<Self> {
        let known: BTreeSet<&str> = talks.iter().map(|talk| talk.id.as_str()).collect();
        let wanted = questions.iter().flat_map(|question| &question.sessions);
        if let Some(missing) = wanted.clone().find(|id| !known.contains(id.as_str())) {
            bail!("a question's answer stands in {missing:?}, which is no conversation of the set");
        }
        if questions.iter().any(|question| question.sessions.is_empty()) {
            bail!("a question says of no conversation that it holds the answer");
        }
        talks.sort_by_key(|talk| talk.time);
        Ok(Self { name, talks, questions })
    }
}

/// Something that a person or the model said.
fn said(role: pb::MessageRole, text: impl Into<String>) -> pb::Message {
    pb::Message {
        role: role.into(),
        text: text.into(),
        ..pb::Message::default()
    }
}

/// Noon of a day that is written as `2023-05-04`.
fn noon(day: &str) -> anyhow::Result<Timestamp> {
    let parts: Vec<i64> = day.split('-').map_while(|part| part.trim().parse().ok()).collect();
    let [year, month @ 1..=12, date @ 1..=31] = parts[..] else {
        bail!("{day:?} is no day");
    };
    Ok(at_noon(year, month, date))
}

/// Noon of a day in UTC. Years are counted from March, so that the leap day is the last.
fn at_noon(year: i64, month: i64, date: i64) -> Timestamp {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let of_year = (153 * month + 2) / 5 + date - 1;
    let days = 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year - 719_468;
    Timestamp::from_secs(days * 86_400 + 43_200)
}

/// An id for a person, whatever the file calls them.
fn named(people: &mut BTreeMap<String, String>, name: String) -> String {
    let next = format!("p{}", people.len());
    people.entry(name).or_insert(next).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_from_1970() {
        assert_eq!(noon("1970-01-01").unwrap(), Timestamp::from_secs(43_200));
        assert_eq!(noon("2024-02-29").unwrap(), Timestamp::from_secs(1_709_208_000));
        assert!(noon("2024-13-01").is_err() && noon("yesterday").is_err());
    }

    #[test]
    fn an_answer_in_no_conversation_of_the_set_is_a_mistake() {
        let gone = r#"{"type":"question","text":"which bird?","sessions":["gone"]}"#;
        assert!(parse("bad".to_owned(), gone).is_err());
        let nowhere = r#"{"type":"question","text":"which bird?","sessions":[]}"#;
        assert!(parse("bad".to_owned(), nowhere).is_err());
    }

    #[test]
    fn a_file_is_read_line_by_line_and_says_which_one_is_wrong() {
        let good = r#"{"type":"session","id":"a","person":"Ann Ö","time":1683201600}
{"type":"message","session":"a","role":"user","text":"a heron"}
{"type":"question","person":"Ann Ö","text":"which bird?","sessions":["a"],"messages":[["a",1]]}"#;
        let set = parse("birds".to_owned(), good).unwrap();
        assert_eq!(
            (set.talks[0].person.as_str(), set.questions[0].person.as_str()),
            ("p0", "p0")
        );
        assert_eq!(
            (set.talks[0].messages.len(), &set.questions[0].messages),
            (1, &vec![("a".to_owned(), 1)])
        );
        for bad in ["{", r#"{"type":"message","session":"gone","role":"user","text":"x"}"#] {
            let error = parse("bad".to_owned(), bad).unwrap_err();
            assert!(format!("{error:#}").contains("line 1"));
        }
    }
}
