//! MemoryBank: fifteen people's talks of some days, questions about them, and which day answers each.
//!
//! `memory_bank_en.json` is `{person: {"history": {day: [{"query", "response"}]}}}`, `probing_questions_en.jsonl` a line
//! `{person: [question]}` each, `memorybank_labels.json` `{"en/person/0": [day]}` with the question's place. Chinese files end
//! in `cn`, their labels begin with `zh`. Names come with blanks around them in one file and without in another.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde::Deserialize;
use steward_proto::recall::v1 as pb;

use super::{Question, Set, Talk, noon, said};

pub(super) const TALKS: &str = "memory_bank_";
pub(super) const QUESTIONS: &str = "probing_questions_";
pub(super) const LABELS: &str = "memorybank_labels";

#[derive(Debug, Deserialize)]
struct Person {
    history: BTreeMap<String, Vec<Exchange>>,
}

#[derive(Debug, Deserialize)]
struct Exchange {
    query: String,
    response: String,
}

pub(super) fn parse(language: &str, talks: &str, questions: &str, labels: &str) -> anyhow::Result<Set> {
    let people: BTreeMap<String, Person> = serde_json::from_str(talks).context("the talks")?;
    let labels: BTreeMap<String, Vec<String>> = serde_json::from_str(labels).context("the labels")?;
    let prefix = if language == "cn" { "zh" } else { language };
    let days: BTreeMap<(String, String), Vec<String>> = labels
        .into_iter()
        .filter_map(|(key, days)| {
            let (of, rest) = key.split_once('/')?;
            let (person, place) = rest.rsplit_once('/')?;
            (of == prefix).then(|| ((person.trim().to_owned(), place.to_owned()), days))
        })
        .collect();
    let ids: BTreeMap<&str, String> = (0..)
        .zip(people.keys())
        .map(|(number, name)| (name.trim(), format!("p{number}")))
        .collect();
    let mut set = Vec::new();
    for (name, person) in &people {
        for (day, exchanges) in &person.history {
            let both = exchanges.iter().flat_map(|exchange| {
                [
                    said(pb::MessageRole::User, &exchange.query),
                    said(pb::MessageRole::Assistant, &exchange.response),
                ]
            });
            set.push(Talk {
                id: talk_id(name, day),
                person: ids[name.trim()].clone(),
                time: noon(day)?,
                messages: both.collect(),
            });
        }
    }
    let mut asked = Vec::new();
    for line in questions.lines().filter(|line| !line.trim().is_empty()) {
        let of_people: BTreeMap<String, Vec<String>> = serde_json::from_str(line).context("the questions")?;
        for (name, texts) in of_people {
            let name = name.trim();
            let person = ids.get(name).with_context(|| format!("nobody is called {name:?}"))?;
            for (place, text) in texts.into_iter().enumerate() {
                // Some questions have no label, since no single day answers them.
                if let Some(days) = days.get(&(name.to_owned(), place.to_string())) {
                    asked.push(Question {
                        person: person.clone(),
                        text,
                        sessions: days.iter().map(|day| talk_id(name, day)).collect(),
                        messages: Vec::new(),
                    });
                }
            }
        }
    }
    Set::new(format!("memorybank-{prefix}"), set, asked)
}

fn talk_id(name: &str, day: &str) -> String {
    format!("{}/{day}", name.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_same_with_blanks_around_it() {
        let talks = r#"{" Ann ":{"name":"Ann","history":{"2023-05-04":[{"query":"a heron","response":"a bird"}]}}}"#;
        let questions = "{\"Ann\": [\"which bird?\", \"unlabelled?\"]}\n";
        let labels = r#"{"zh/ Ann /0":["2023-05-04"],"en/Ann/0":["2023-05-09"]}"#;
        let set = parse("cn", talks, questions, labels).unwrap();
        assert_eq!(
            (set.name.as_str(), set.talks.len(), set.questions.len()),
            ("memorybank-zh", 1, 1)
        );
        assert_eq!(set.talks[0].messages.len(), 2);
        assert_eq!(set.questions[0].sessions, ["Ann/2023-05-04"]);
        assert_eq!(set.questions[0].person, set.talks[0].person);
        // A day that there is no talk of.
        assert!(parse("en", talks, questions, labels).is_err());
    }
}
