//! Many writers at once on one person's memory, each in a process of its own.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use steward_client::{Client, Credentials, Wire};
use steward_testkit::ModelServer;
use steward_tests::{Person, Shape, Stack};

/// Tells the test that plays a writer where the service is, which token it has and who it is.
const ENDPOINT: &str = "STEWARD_TEST_WRITER_ENDPOINT";
const TOKEN: &str = "STEWARD_TEST_WRITER_TOKEN";
const NUMBER: &str = "STEWARD_TEST_WRITER_NUMBER";
const WRITER: &str = "a_writer";

const WRITERS: usize = 8;
const EACH: usize = 50;

/// What writer `number` adds.
fn facts(number: usize) -> impl Iterator<Item = String> {
    (0..EACH).map(move |at| format!("writer {number} fact {at}"))
}

/// By itself it does nothing; with an endpoint it adds its facts all at once and says for each what came of it.
#[tokio::test(flavor = "multi_thread")]
#[expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "its parent tells it what to do and reads what it says"
)]
async fn a_writer() {
    let Ok(endpoint) = std::env::var(ENDPOINT) else { return };
    let token = Credentials::token(&std::env::var(TOKEN).unwrap()).unwrap();
    let number: usize = std::env::var(NUMBER).unwrap().parse().unwrap();
    // Who one is only the orchestrator tells; the name of the owner's store is enough here.
    let client = Client::new(Wire::connect(&endpoint).unwrap().with_credentials(token));
    let person = Person::arrive(client).await;
    let adds = facts(number).map(|fact| {
        let person = &person;
        async move {
            let answer = person.remember(&fact).await;
            (fact, answer)
        }
    });
    for (fact, answer) in futures::future::join_all(adds).await {
        match answer {
            Ok(applied) => {
                assert_eq!(applied.changes.len(), 1);
                println!("kept|{fact}");
            }
            Err(error) => println!("refused|{}|{fact}", error.reason),
        }
    }
}

/// Runs all writers at the same time; gives what each add came to: the fact, or the reason of its refusal.
async fn write_all(stack: &Stack) -> Vec<Result<String, String>> {
    let token = std::fs::read_to_string(stack.data().join("agent/owner.token")).unwrap();
    let program = std::env::current_exe().unwrap();
    let writers: Vec<_> = (0..WRITERS)
        .map(|number| {
            let mut command = Command::new(&program);
            command.args(["--exact", WRITER, "--nocapture"]);
            command.env(ENDPOINT, stack.endpoint("memory-service"));
            command.env(TOKEN, token.trim()).env(NUMBER, number.to_string());
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().unwrap()
        })
        .collect();
    let ended = tokio::task::spawn_blocking(move || -> Vec<_> {
        writers
            .into_iter()
            .map(|writer| writer.wait_with_output().unwrap())
            .collect()
    });
    let mut answers = Vec::new();
    for output in ended.await.unwrap() {
        let said = String::from_utf8(output.stdout).unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "a writer failed: {said}\n{error}");
        answers.extend(said.lines().filter_map(|line| {
            if let Some(fact) = line.strip_prefix("kept|") {
                return Some(Ok(fact.to_owned()));
            }
            let (reason, _) = line.strip_prefix("refused|")?.split_once('|')?;
            Some(Err(reason.to_owned()))
        }));
    }
    answers
}

fn everything() -> BTreeSet<String> {
    (0..WRITERS).flat_map(facts).collect()
}

/// D-07, `M-11`: with room for all there are 400 entries, each once, and after a restart as well.
#[tokio::test(flavor = "multi_thread")]
async fn four_hundred_adds_from_eight_processes_are_four_hundred_entries() {
    let model = ModelServer::scripted(steward_tests::script::learner).await;
    let options = common::no_reviews(&model).set("MEMORY__NOTES_CHARS", 100_000);
    let mut stack = Stack::start("writers", Shape::One, options);
    let answers = write_all(&stack).await;
    let kept: BTreeSet<String> = answers.iter().filter_map(|answer| answer.clone().ok()).collect();
    assert_eq!((answers.len(), kept.len()), (400, 400));
    assert_eq!(kept, everything());
    let owner = stack.owner().await;
    assert_eq!(owner.notes().await.into_iter().collect::<BTreeSet<_>>(), kept);
    stack.restart_all().await;
    let notes = stack.owner().await.notes().await;
    assert_eq!(notes.len(), 400);
    assert_eq!(notes.into_iter().collect::<BTreeSet<_>>(), kept);
}

/// D-07, `M-5`: without room for all each add is an entry or says that there was none, and the two agree to the entry.
#[tokio::test(flavor = "multi_thread")]
async fn of_four_hundred_adds_without_room_each_is_an_entry_or_a_typed_refusal() {
    let model = ModelServer::scripted(steward_tests::script::learner).await;
    let stack = Stack::start("full-writers", Shape::One, common::no_reviews(&model));
    let answers = write_all(&stack).await;
    assert_eq!(answers.len(), 400);
    let kept: BTreeSet<String> = answers.iter().filter_map(|answer| answer.clone().ok()).collect();
    let reasons: BTreeSet<String> = answers.iter().filter_map(|answer| answer.clone().err()).collect();
    assert_eq!(reasons, BTreeSet::from(["BUDGET_EXCEEDED".to_owned()]));
    let notes = stack.owner().await.notes().await;
    assert_eq!(notes.len(), kept.len(), "no entry that nobody was told of, none twice");
    assert_eq!(notes.iter().cloned().collect::<BTreeSet<_>>(), kept);
    let used: usize = notes.iter().map(|note| note.chars().count()).sum();
    assert!((1_500..=2_200).contains(&used), "{used} characters are used");
}
