//! Broken input of every kind: a few thousand pieces with each run of the tests, and as long as one likes on request.
//! `cargo test -p steward-recall-exchange --test fuzz -- --ignored` runs ten minutes; `steward_testkit::fuzz` says how long a
//! run lasts and how one is repeated.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use steward_recall_exchange::hermes::{MessageRow, SessionRow};
use steward_recall_exchange::{LineSplitter, SessionLine, claude_code, hermes};
use steward_testkit::fuzz::{Bytes, Source, long_run, short_run};

const SEEDS: [&str; 5] = [
    r#"{"type":"user","sessionId":"abc","timestamp":"2026-03-01T10:00:00.250Z","message":{"role":"user","content":"what?"}}"#,
    r#"{"type":"assistant","message":{"id":"m1","model":"x","content":[{"type":"tool_use","id":"c1","name":"Bash","input":{"n":1}}],"usage":{"input_tokens":18446744073709551615,"cache_read_input_tokens":9}}}"#,
    r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"ok"}]}]}}"#,
    r#"{"format":"steward-session/1","id":"s1","source":"chat","lowest_integrity":"person","created":1,"last_active":2,"messages":[{"seq":1,"role":"user","text":"hi","integrity":"person","created":1}]}"#,
    r#"[{"id":"c1","type":"function","function":{"name":"terminal","arguments":"{}"}}]"#,
];
const PIECES: [&str; 18] = [
    "\n",
    "\r\n",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\u0000",
    "\\ud800",
    "null",
    "-1",
    "1e999",
    "\u{0}json:",
    "\u{feff}",
    "\u{202e}",
    "T::Z",
    "99999999999999999999",
    "👨‍👩‍👧",
];

/// A few good lines, with pieces put in, taken out and doubled.
fn broken(source: &mut Source) -> Bytes {
    let mut text: Vec<u8> = Vec::new();
    for _ in 0..=source.below(4) {
        text.extend_from_slice(source.one_of(&SEEDS).as_bytes());
        text.push(b'\n');
    }
    for _ in 0..source.below(12) {
        let at = source.below(text.len());
        match source.below(4) {
            0 => drop(text.splice(at..at, source.one_of(&PIECES).bytes())),
            1 => {
                let end = (at + source.below(20)).min(text.len());
                text.drain(at..end);
            }
            2 => text[at] = source.byte(),
            _ => {
                let end = (at + source.below(60)).min(text.len());
                let copy = text[at..end].to_vec();
                text.splice(at..at, copy);
            }
        }
        if text.is_empty() {
            break;
        }
    }
    Bytes(text)
}

/// Reads the input as everything that it could be; what comes out can be written and read again.
fn read_as_everything(input: &[u8]) {
    let mut splitter = LineSplitter::new(4_096);
    let mut lines = splitter.push(input);
    lines.extend(splitter.finish());
    for line in lines.iter().filter_map(|line| line.bytes.as_deref()) {
        if let Ok(session) = SessionLine::parse(line) {
            again(&session);
        }
    }
    let text = String::from_utf8_lossy(input).into_owned();
    for session in &claude_code::convert("ann", "file", input).sessions {
        again(session);
    }
    let session = SessionRow {
        id: "a".to_owned(),
        title: text.clone(),
        parent: text.clone(),
        started_at: f64::NAN,
        ..SessionRow::default()
    };
    let row = |role: &str| MessageRow {
        session: "a".to_owned(),
        role: role.to_owned(),
        content: format!("\u{0}json:{text}"),
        tool_calls: text.clone(),
        tool_call_id: "c1".to_owned(),
        timestamp: f64::INFINITY,
        ..MessageRow::default()
    };
    let rows = [row("user"), row("assistant"), row("tool"), row(&text)];
    for session in &hermes::convert("ann", &[session], &rows).sessions {
        again(session);
    }
}

fn again(session: &SessionLine) {
    let written = session.write().unwrap();
    assert!(!written.contains(&b'\n'), "a session is one line");
    let read = SessionLine::parse(&written).expect("what was written can be read");
    assert_eq!(&read, session);
    for (at, message) in session.messages.iter().enumerate() {
        assert!(session.source != "import" || message.seq == at as u64 + 1);
    }
}

#[test]
fn broken_input_is_an_answer_and_never_a_panic() {
    short_run(3_000, broken, |input| read_as_everything(input));
}

proptest! {
    #[test]
    fn any_bytes_are_read_as_something(input in prop::collection::vec(any::<u8>(), 0..400)) {
        read_as_everything(&input);
    }
}

#[test]
#[ignore = "runs for minutes"]
fn long_runs_find_nothing() {
    long_run(broken, |input| read_as_everything(input));
}
