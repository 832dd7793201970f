//! Sets of conversations with questions, as files of JSON lines.

use std::collections::BTreeMap;
use std::path::Path;

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

/// Every `*.jsonl` of the folder, by name.
pub(super) fn read_folder(folder: &Path) -> anyhow::Result<Vec<Set>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            files.push(path);
        }
    }
    files.sort();
    files.iter().map(|file| read(file)).collect()
}

fn read(file: &Path) -> anyhow::Result<Set> {
    let text = std::fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    parse(name, &text).with_context(|| format!("read {}", file.display()))
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
                talk.messages.push(pb::Message {
                    role: role.into(),
                    text,
                    ..pb::Message::default()
                });
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
    Ok(Set { name, talks, questions })
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
