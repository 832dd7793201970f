//! What the command line says when something is wrong: the exit code for scripts, the reason for programs, the sentence for
//! people; and that "nothing" is never said where nobody knows.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;

use std::path::Path;
use std::process::Output;

use serde_json::Value;
use steward_testkit::{Site, TempDir};
use steward_tests::process::run;
use steward_tests::{Shape, Stack, StackOptions};

/// Runs a verb against a stack, on a thread of its own since sites answer on this runtime.
async fn verb(stack: &Stack, arguments: &[&str]) -> Output {
    let mut all: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    all.extend(["--data-dir".to_owned(), stack.data().display().to_string()]);
    all.extend(stack.endpoint_arguments());
    tokio::task::spawn_blocking(move || run(&all))
        .await
        .expect("the verb ran")
}

/// The exit code and the document.
async fn json(stack: &Stack, arguments: &[&str]) -> (Option<i32>, Value) {
    let output = verb(stack, &[arguments, &["--json"]].concat()).await;
    let text = String::from_utf8_lossy(&output.stdout);
    let document = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"));
    (output.status.code(), document)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn write(root: &Path, path: &str, content: &[u8]) -> String {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, content).unwrap();
    path.display().to_string()
}

/// Two sources that search by words; those for addresses and the operator's own folder, which is empty, stay.
fn two_sources(site: &Site) -> StackOptions {
    let base = site.base();
    StackOptions::default()
        .set("SKILLS__HUB__SKILLS_SH", &base)
        .set("SKILLS__HUB__BROWSE_SH", &base)
        .set(
            "SKILLS__HUB__DISABLED",
            r#"["index", "github", "claude-marketplace", "clawhub", "lobehub"]"#,
        )
        .set("SKILLS__HUB__PERMITTED_ORIGINS", format!("[\"{base}\"]"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_that_no_source_answered_failed_and_one_that_some_answered_found_nothing() {
    let site = Site::start().await;
    let stack = Stack::start("silent-hub", Shape::One, two_sources(&site));
    let (code, answer) = json(&stack, &["hub", "search", "tidy", "--limit", "3"]).await;
    assert_eq!(
        (code, answer["error"]["reason"].as_str()),
        (Some(1), Some("DEPENDENCY_UNAVAILABLE")),
        "{answer}"
    );
    let message = answer["error"]["message"].as_str().unwrap();
    for source in ["skills.sh: ", "browse.sh: "] {
        assert!(message.contains(source), "{message}");
    }

    site.page("/api/search?q=tidy&limit=3", r#"{"skills": []}"#);
    let output = verb(&stack, &["hub", "search", "tidy", "--limit", "3"]).await;
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("Nothing found."));
    assert!(said(&output).contains("browse.sh did not answer"), "{}", said(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_kept_a_skill_from_coming_is_said_to_people_and_not_only_as_a_reason() {
    let site = Site::start().await;
    let stack = Stack::start("no-delivery", Shape::One, two_sources(&site));
    let reference = format!("url:{}/nowhere/SKILL.md", site.base());
    for verb_of_hub in ["install", "inspect"] {
        let output = verb(&stack, &["hub", verb_of_hub, &reference]).await;
        assert_eq!(output.status.code(), Some(1));
        let first = said(&output).lines().next().unwrap().to_owned();
        assert!(first.contains("did not deliver: "), "{}", said(&output));
        assert!(said(&output).contains("reason HUB_GONE_UPSTREAM"), "{}", said(&output));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_is_not_done_while_something_of_it_is_missing() {
    let stack = Stack::start("missing-parts", Shape::One, StackOptions::default());
    let folder = TempDir::new("parts");
    let bytes = write(folder.path(), "bytes.txt", &[b'a', 0xff, b'b']);
    let output = verb(&stack, &["memory", "import", &bytes]).await;
    assert_eq!(output.status.code(), Some(1), "what is held is not remembered");
    assert!(
        said(&output).contains("1 entry, 1 held, 0 refused; what is held or refused is not remembered"),
        "{}",
        said(&output)
    );
    let text = write(folder.path(), "text.txt", b"the cat is called Miso");
    let output = verb(&stack, &["memory", "import", &text]).await;
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));

    let foreign = write(folder.path(), "talk.jsonl", b"no JSON\n");
    let output = verb(&stack, &["sessions", "import", "--from", "claude-code", &foreign]).await;
    assert_eq!(output.status.code(), Some(1), "a line was not taken in");
    assert!(said(&output).contains("line 1: is no JSON"), "{}", said(&output));

    let content = b"---\nname: tidy\ndescription: Use when tidying.\n---\n\n# tidy\n\nSort.\n";
    let skill = write(folder.path(), "skills/tidy/SKILL.md", content);
    let link = folder.join("skills/tidy/linked.md");
    std::os::unix::fs::symlink(&skill, &link).unwrap();
    let library = folder.join("skills").display().to_string();
    let (dry, first, again) = (
        json(&stack, &["skills", "import", &library, "--dry-run"]).await,
        json(&stack, &["skills", "import", &library]).await,
        json(&stack, &["skills", "import", &library]).await,
    );
    for (code, answer) in [dry, first, again] {
        let row = &answer["skills"][0];
        assert_eq!((code, &row["outcome"]), (Some(1), &"incomplete".into()), "{answer}");
        assert!(row["notes"].to_string().contains("linked.md"), "{answer}");
    }
    std::fs::remove_file(link).unwrap();
    let (code, answer) = json(&stack, &["skills", "import", &library]).await;
    assert_eq!(
        (code, &answer["skills"][0]["outcome"]),
        (Some(0), &"unchanged".into()),
        "{answer}"
    );
}

/// Found before a server or a token is looked for.
#[test]
fn an_argument_that_cannot_be_meant_is_wrong_usage_and_is_named() {
    for (arguments, named) in [
        (&["memory", "list", "--endpoint", "nonsense"][..], "--endpoint"),
        (&["health", "--endpoint", "nonsense"], "--endpoint"),
        (&["audit", "list", "--endpoint", "127.0.0.1:7400"], "--endpoint"),
        (&["memory", "list", "--service", "memory=nonsense"], "--service memory"),
        (&["hub", "search", "tidy", "--limit", "0"], "--limit"),
        (&["hub", "items", "--limit", "0"], "--limit"),
        (&["hub", "audit", "--limit", "0"], "--limit"),
        (&["recall", "search", "tidy", "--limit", "0"], "--limit"),
        (&["recall", "browse", "--limit=-1"], "--limit"),
        (&["recall", "read", "s", "--limit", "0"], "--limit"),
        (&["sessions", "list", "--limit", "0"], "--limit"),
    ] {
        let all: Vec<String> = arguments
            .iter()
            .chain(&["--json"])
            .map(|&word| word.to_owned())
            .collect();
        let output = run(&all);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["error"]["reason"], "USAGE", "{arguments:?}: {answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(named), "{arguments:?}: {message}");
    }
}
