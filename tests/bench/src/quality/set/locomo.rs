//! LoCoMo: two people who talk with each other over months, and questions about it with the turns that answer them.
//!
//! A list of `{"sample_id", "conversation": {"session_1": [{"speaker", "dia_id": "D1:1", "text", "blip_caption"?}],
//! "session_1_date_time": "1:56 pm on 8 May, 2023"}, "qa": [{"question", "evidence": ["D1:3"]}]}`. A sample is a person of ours;
//! both speakers count as people, and each message begins with who says it. Questions without evidence are left out.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::Value;
use steward_base::Timestamp;
use steward_proto::recall::v1 as pb;

use super::{Question, Set, Talk, at_noon, said};

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

#[derive(Debug, Deserialize)]
struct Sample {
    conversation: BTreeMap<String, Value>,
    qa: Vec<Asked>,
}

#[derive(Debug, Deserialize)]
struct Asked {
    question: String,
    #[serde(default)]
    evidence: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Turn {
    speaker: String,
    dia_id: String,
    #[serde(default)]
    text: String,
    blip_caption: Option<String>,
}

/// `None` where the file is something else.
pub(super) fn parse(name: &str, text: &str) -> anyhow::Result<Option<Set>> {
    let Ok(samples) = serde_json::from_str::<Vec<Sample>>(text) else {
        return Ok(None);
    };
    let (mut talks, mut questions) = (Vec::new(), Vec::new());
    for (number, sample) in samples.into_iter().enumerate() {
        let person = format!("p{number}");
        let mut places: BTreeMap<String, (String, u64)> = BTreeMap::new();
        for (key, value) in &sample.conversation {
            let Value::Array(_) = value else { continue };
            let turns: Vec<Turn> = Vec::deserialize(value).with_context(|| format!("{key} of sample {number}"))?;
            let id = format!("{number}/{key}");
            let held = sample
                .conversation
                .get(&format!("{key}_date_time"))
                .and_then(Value::as_str);
            let mut messages = Vec::with_capacity(turns.len());
            for (turn, seq) in turns.into_iter().zip(1..) {
                let caption = turn
                    .blip_caption
                    .map(|caption| format!(" [{caption}]"))
                    .unwrap_or_default();
                let text = format!("{}: {}{caption}", turn.speaker, turn.text);
                messages.push(said(pb::MessageRole::User, text));
                places.insert(turn.dia_id, (id.clone(), seq));
            }
            talks.push(Talk {
                id,
                person: person.clone(),
                time: held
                    .and_then(day)
                    .with_context(|| format!("the time of {key} of sample {number}"))?,
                messages,
            });
        }
        for asked in sample.qa {
            let evidence = asked.evidence.iter().flat_map(|list| list.split([';', ',', ' ']));
            let mut messages: Vec<(String, u64)> =
                evidence.filter_map(|turn| places.get(turn.trim()).cloned()).collect();
            messages.sort();
            messages.dedup();
            let mut sessions: Vec<String> = messages.iter().map(|(session, _)| session.clone()).collect();
            sessions.dedup();
            if !sessions.is_empty() {
                questions.push(Question {
                    person: person.clone(),
                    text: asked.question,
                    sessions,
                    messages,
                });
            }
        }
    }
    Set::new(name.to_owned(), talks, questions).map(Some)
}

/// `1:56 pm on 8 May, 2023`: the day is enough.
fn day(text: &str) -> Option<Timestamp> {
    let (_, day) = text.split_once(" on ")?;
    let mut parts = day.split([' ', ',']).filter(|part| !part.is_empty());
    let date = parts.next()?.parse().ok().filter(|date| (1..=31).contains(date))?;
    let month = parts.next()?.to_ascii_lowercase();
    let month = MONTHS.iter().zip(1..).find(|(name, _)| **name == month)?.1;
    Some(at_noon(parts.next()?.parse().ok()?, month, date))
}

#[cfg(test)]
mod tests {
    use super::super::noon;
    use super::*;

    const SAMPLES: &str = r#"[{"sample_id": "c", "qa": [
        {"question": "Which bird did Ann see?", "answer": "a heron", "evidence": ["D2:1; D2:2"], "category": 4},
        {"question": "Never?", "evidence": []}],
        "conversation": {"speaker_a": "Ann", "speaker_b": "Bo",
        "session_1_date_time": "1:56 pm on 8 May, 2023", "session_1": [{"speaker": "Bo", "dia_id": "D1:1", "text": "Hi"}],
        "session_2_date_time": "9:01 am on 1 February, 2024", "session_2": [
            {"speaker": "Ann", "dia_id": "D2:1", "text": "I saw a heron.", "blip_caption": "a grey bird"},
            {"speaker": "Bo", "dia_id": "D2:2", "text": "A heron!"}]}}]"#;

    #[test]
    fn turns_are_messages_and_evidence_is_where_the_answer_stands() {
        let set = parse("locomo10", SAMPLES).unwrap().unwrap();
        assert_eq!((set.talks.len(), set.questions.len()), (2, 1));
        assert_eq!(set.talks[1].messages[0].text, "Ann: I saw a heron. [a grey bird]");
        assert_eq!(set.talks[1].time, noon("2024-02-01").unwrap());
        assert_eq!(set.questions[0].sessions, ["0/session_2"]);
        assert_eq!(set.questions[0].messages.len(), 2);
    }

    #[test]
    fn other_files_are_no_samples() {
        assert!(parse("x", r#"{"a": 1}"#).unwrap().is_none());
        assert!(parse("x", "not JSON").unwrap().is_none());
    }
}
