//! The binary as a person meets it: the ready line, the verbs against a running installation, chat, settings, the demo.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use steward_testkit::{ModelServer, Reply, TempDir};
use steward_tests::process::{binary, run};
use steward_tests::{Shape, Stack, StackOptions, script};

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn problems(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs a verb against a stack, on a thread of its own since the stack's model answers on this runtime.
async fn verb(stack: &Stack, arguments: &[&str]) -> Output {
    let mut all: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    all.extend(["--data-dir".to_owned(), stack.data().display().to_string()]);
    all.extend(stack.endpoint_arguments());
    tokio::task::spawn_blocking(move || run(&all))
        .await
        .expect("the verb ran")
}

/// Begins a verb that goes on beside the test.
fn begin(stack: &Stack, arguments: &[&str]) -> Child {
    Command::new(binary())
        .args(arguments)
        .args(["--data-dir", &stack.data().display().to_string()])
        .args(stack.endpoint_arguments())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary under test starts")
}

async fn json(stack: &Stack, arguments: &[&str]) -> Value {
    let mut arguments = arguments.to_vec();
    arguments.push("--json");
    let output = verb(stack, &arguments).await;
    assert!(
        output.status.success(),
        "{arguments:?}: {}{}",
        text(&output),
        problems(&output)
    );
    serde_json::from_str(&text(&output)).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {}", text(&output)))
}

both_shapes!(chat_streams_the_answer_and_says_what_was_kept);

async fn chat_streams_the_answer_and_says_what_was_kept(shape: Shape) {
    let model = ModelServer::scripted(script::learner).await;
    let stack = Stack::start("chat", shape, common::reviews_after_each_turn(&model));
    let output = verb(&stack, &["chat", "--no-tools", "-m", "Remember: lunch is at noon"]).await;
    assert!(output.status.success(), "{}", problems(&output));
    let said = text(&output);
    assert!(said.contains("You said: Remember: lunch is at noon"), "{said}");
    assert!(said.contains("review of memory, skills succeeded"), "{said}");

    let memory = json(&stack, &["memory", "list"]).await;
    assert_eq!(memory["entries"][0]["content"], "lunch is at noon");
    let skills = json(&stack, &["skills", "list"]).await;
    let named = |name: &str| {
        skills["skills"]
            .as_array()
            .unwrap()
            .iter()
            .any(|skill| skill["name"].as_str().unwrap().ends_with(name))
    };
    assert!(named("/skills/kept-lesson"), "{skills}");
    let found = json(&stack, &["recall", "search", "lunch"]).await;
    assert_eq!(found["conversations"].as_array().unwrap().len(), 1);
    let reviews = json(&stack, &["reviews", "list"]).await;
    assert_eq!(reviews["reviews"][0]["state"], "REVIEW_STATE_SUCCEEDED");
    let sessions = json(&stack, &["sessions", "list"]).await;
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(
        json(&stack, &["access", "whoami"]).await["user"],
        "teams/default/users/owner"
    );
}

both_shapes!(a_session_goes_on_with_another_title_and_another_model);

async fn a_session_goes_on_with_another_title_and_another_model(shape: Shape) {
    let model = ModelServer::scripted(script::learner).await;
    let options = common::no_reviews(&model).set("AGENT__MODEL__OTHERS", r#"["scripted-too"]"#);
    let stack = Stack::start("other-model", shape, options);
    let route = json(&stack, &["models", "list"]).await;
    assert_eq!(route["models"], serde_json::json!(["scripted", "scripted-too"]));
    let said = verb(&stack, &["chat", "--no-tools", "-m", "hello"]).await;
    assert!(said.status.success(), "{}", problems(&said));
    let sessions = json(&stack, &["sessions", "list"]).await;
    let session = sessions["sessions"][0]["name"].as_str().unwrap().to_owned();

    let change = [
        "sessions",
        "update",
        &session,
        "--title",
        "Harbour",
        "--model",
        "scripted-too",
    ];
    let changed = json(&stack, &change).await;
    assert_eq!(changed["session"]["title"], "Harbour");
    let again = ["chat", "--no-tools", "--session", &session, "-m", "and now?"];
    let said = verb(&stack, &again).await;
    assert!(said.status.success(), "{}", problems(&said));
    assert_eq!(model.requests().last().unwrap().json()["model"], "scripted-too");
    let shown = json(&stack, &["sessions", "show", &session]).await;
    assert_eq!(shown["session"]["plannedPrefixBreaks"], 1);
    assert_eq!(shown["session"]["lastPrefixBreakReason"], "model");
    assert_eq!(shown["session"]["unplannedPrefixBreaks"], 0);
    let read = text(&verb(&stack, &["sessions", "show", &session]).await);
    assert!(
        read.contains("1 planned, the last for another model; 0 unplanned"),
        "{read}"
    );
}

both_shapes!(a_turn_that_runs_is_steered_from_beside_it);

async fn a_turn_that_runs_is_steered_from_beside_it(shape: Shape) {
    let model = ModelServer::scripted(|request| {
        if request.text().contains("turn north") {
            Reply::text("north, then")
        } else {
            Reply::call("memory", r#"{"action":"add","target":"notes","content":"sails south"}"#).hang_after(0)
        }
    })
    .await;
    let stack = Stack::start("steered", shape, common::no_reviews(&model));
    let chat = begin(&stack, &["chat", "--no-tools", "-m", "sail"]);
    model.wait_for_requests(1).await;
    let sessions = json(&stack, &["sessions", "list"]).await;
    let session = sessions["sessions"][0]["name"].as_str().unwrap().to_owned();
    let mut steer = begin(&stack, &["sessions", "steer", &session, "turn north"]);
    let mut told = String::new();
    BufReader::new(steer.stderr.take().unwrap())
        .read_line(&mut told)
        .unwrap();
    assert!(told.contains("said;"), "{told}");
    model.release();
    assert!(steer.wait_with_output().unwrap().status.success());
    let chat = chat.wait_with_output().unwrap();
    assert!(
        text(&chat).contains("north, then"),
        "{}{}",
        text(&chat),
        problems(&chat)
    );
}

both_shapes!(the_audit_of_all_processes_is_one_list_and_hides_no_failure);

async fn the_audit_of_all_processes_is_one_list_and_hides_no_failure(shape: Shape) {
    let mut stack = Stack::start("audit-list", shape, StackOptions::default());
    json(&stack, &["memory", "add", "the harbour opens at noon"]).await;
    json(&stack, &["access", "create-user", "bob"]).await;
    let listed = json(&stack, &["audit", "list", "--since", "1d"]).await;
    let calls: Vec<_> = listed["auditEvents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| {
            let word = |key: &str| event[key].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
            (word("service"), word("method"), word("user"))
        })
        .collect();
    let call = |service: &str, method: &str| (service.to_owned(), method.to_owned(), "owner".to_owned());
    let created = calls
        .iter()
        .position(|seen| *seen == call("agent-orchestrator", "CreateUser"));
    let added = calls.iter().position(|seen| *seen == call("memory-service", "Apply"));
    assert!(
        created.unwrap() < added.unwrap(),
        "newest first, over all processes: {calls:?}"
    );
    assert_eq!(listed["failed"], serde_json::json!([]));
    let only = json(&stack, &["audit", "list", "--user", "bob"]).await;
    assert_eq!(only["auditEvents"], serde_json::json!([]), "bob did nothing");

    if shape == Shape::Split {
        stack.kill("memory-service");
        let output = verb(&stack, &["audit", "list", "--json"]).await;
        assert_eq!(output.status.code(), Some(1));
        let listed: Value = serde_json::from_str(&text(&output)).unwrap();
        assert_eq!(listed["failed"][0]["endpoint"], stack.endpoint("memory-service"));
        let methods = listed["auditEvents"].to_string();
        assert!(methods.contains("CreateUser"), "the others are still told: {methods}");
    }
}

both_shapes!(a_skill_goes_out_and_comes_in_byte_for_byte_and_knows_who_wrote_what);

async fn a_skill_goes_out_and_comes_in_byte_for_byte_and_knows_who_wrote_what(shape: Shape) {
    let stack = Stack::start("skill-files", shape, StackOptions::default());
    let folder = TempDir::new("skills");
    let files = [
        (
            "nightly/SKILL.md",
            b"---\r\nname: nightly\r\ndescription: Use at night.\r\n---\r\n\r\nBack it up.\r\n".as_slice(),
        ),
        ("nightly/assets/seal.bin", &[0xff, 0, 0xfe]),
    ];
    for (path, content) in files {
        let path = folder.join("in").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let (inward, out) = (folder.join("in"), folder.join("out"));
    let imported = json(&stack, &["skills", "import", inward.to_str().unwrap()]).await;
    assert_eq!(imported["skills"][0]["outcome"], "created", "{imported}");
    json(&stack, &["skills", "export", "nightly", "--dir", out.to_str().unwrap()]).await;
    for (path, content) in files {
        assert_eq!(std::fs::read(out.join(path)).unwrap(), content, "{path}");
    }
    json(
        &stack,
        &["skills", "patch", "nightly", "Back it up.", "Back it up twice."],
    )
    .await;
    let blame = json(&stack, &["skills", "blame", "nightly"]).await;
    let actions: Vec<_> = blame["lines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|lines| {
            let revision = usize::try_from(lines["revision"].as_u64().unwrap()).unwrap();
            blame["revisions"][revision]["action"].as_str().unwrap()
        })
        .collect();
    assert_eq!(actions, ["import", "patch"], "{blame}");
    // What was changed here is kept: the source says nothing new. When it does, both changes stand.
    let again = ["skills", "import", inward.to_str().unwrap(), "--update"];
    assert_eq!(json(&stack, &again).await["skills"][0]["outcome"], "unchanged");
    std::fs::write(inward.join("nightly/assets/seal.bin"), [0xfe, 0xff]).unwrap();
    assert_eq!(json(&stack, &again).await["skills"][0]["outcome"], "updated");
    let both = folder.join("both");
    json(
        &stack,
        &["skills", "export", "nightly", "--dir", both.to_str().unwrap()],
    )
    .await;
    let text = std::fs::read_to_string(both.join("nightly/SKILL.md")).unwrap();
    assert!(text.ends_with("Back it up twice.\r\n"), "{text:?}");
    assert_eq!(
        std::fs::read(both.join("nightly/assets/seal.bin")).unwrap(),
        [0xfe, 0xff]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn chat_without_a_terminal_declines_tools_of_this_machine() {
    let model = ModelServer::scripted(|request| match script::since_user(request).last() {
        None => Reply::call("shell", r#"{"command":"touch touched"}"#),
        Some(result) => Reply::text(result["content"].as_str().unwrap_or_default()),
    })
    .await;
    let stack = Stack::start("declines", Shape::One, common::no_reviews(&model));
    let folder = TempDir::new("work");
    let output = verb(
        &stack,
        &["chat", "--dir", folder.path().to_str().unwrap(), "-m", "touch it"],
    )
    .await;
    assert!(
        text(&output).contains("declined"),
        "{}{}",
        text(&output),
        problems(&output)
    );
    assert!(!folder.join("touched").exists());
}

/// `S-18`, `M-10`: what a conversation opens at its start, and which memory does not hold in this workspace.
#[tokio::test(flavor = "multi_thread")]
async fn a_chat_opens_skills_at_its_start_and_leaves_out_what_does_not_hold_here() {
    let model = ModelServer::scripted(|_| Reply::text("fine")).await;
    let stack = Stack::start("chat-opens", Shape::One, common::no_reviews(&model));
    let owner = stack.owner().await;
    let skill = script::skill_text("moor-ship", "Tie the bow line first.");
    owner.create_skill("moor-ship", &skill).await.unwrap();
    let check = "exists:ship.log";
    let added = verb(&stack, &["memory", "add", "The log lies in ship.log", "--while", check]).await;
    assert!(added.status.success(), "{}", problems(&added));
    for (flags, opened, remembered) in [
        (vec![], false, true),
        (vec!["--preload", "moor-ship", "--failed-check", check], true, false),
    ] {
        let mut arguments = vec!["chat", "--no-tools", "-m", "hello"];
        arguments.extend(flags);
        let said = verb(&stack, &arguments).await;
        assert!(said.status.success(), "{}", problems(&said));
        let requests = model.requests();
        let system = requests.last().unwrap().system();
        assert_eq!(system.contains("Tie the bow line first."), opened);
        assert_eq!(system.contains("The log lies in ship.log"), remembered);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_model_chat_says_in_one_line_how_to_set_one() {
    let stack = Stack::start("chat-no-model", Shape::One, StackOptions::default());
    let output = verb(&stack, &["chat", "-m", "hello"]).await;
    assert!(!output.status.success());
    let said = problems(&output);
    assert!(said.contains("STEWARD__AGENT__MODEL__BASE_URL="), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verb_without_a_server_says_where_it_looked() {
    let folder = TempDir::new("nowhere");
    std::fs::create_dir_all(folder.join("agent")).unwrap();
    std::fs::write(folder.join("agent/owner.token"), "x.y.z").unwrap();
    let data = folder.path().display().to_string();
    let output = run(&[
        "memory",
        "list",
        "--endpoint",
        "http://127.0.0.1:9",
        "--data-dir",
        &data,
    ]
    .map(str::to_owned));
    assert_eq!(output.status.code(), Some(1));
    assert!(
        problems(&output).contains("no Steward answers at http://127.0.0.1:9"),
        "{}",
        problems(&output)
    );
}

#[test]
fn wrong_settings_are_all_named_and_end_with_64() {
    let folder = TempDir::new("settings");
    let file = folder.join("steward.toml");
    std::fs::write(
        &file,
        "[server]\nlisten = \"nowhere\"\nstop_seconds = 0\n[memory]\nno_such_setting = 1\n",
    )
    .unwrap();
    let output = run(&["config", "check", "--config", file.to_str().unwrap()].map(str::to_owned));
    assert_eq!(output.status.code(), Some(64));
    let said = problems(&output);
    for expected in ["server.listen", "server.stop_seconds", "no_such_setting"] {
        assert!(said.contains(expected), "{expected} is missing in {said}");
    }
}

#[test]
fn the_settings_are_dumped_with_their_origin_and_without_secrets() {
    let folder = TempDir::new("dump");
    let file = folder.join("steward.toml");
    std::fs::write(
        &file,
        "[agent.model]\nname = \"m\"\nbase_url = \"http://127.0.0.1:1/v1\"\napi_key = \"sk-very-secret\"\n",
    )
    .unwrap();
    let output = run(&["config", "dump", "--config", file.to_str().unwrap()].map(str::to_owned));
    assert!(output.status.success(), "{}", problems(&output));
    let said = text(&output);
    assert!(
        said.contains("agent.model.name = \"m\"") && said.contains("steward.toml"),
        "{said}"
    );
    assert!(!said.contains("sk-very-secret"), "{said}");
}

#[test]
fn the_demo_learns_another_lesson_for_another_seed() {
    let seven = run(&["demo", "--seed", "7"].map(str::to_owned));
    let eight = run(&["demo", "--seed", "8"].map(str::to_owned));
    for (output, what) in [(&seven, "seed 7"), (&eight, "seed 8")] {
        assert!(output.status.success(), "{what}: {}{}", text(output), problems(output));
        assert!(text(output).contains("session 2 succeeded"), "{what}: {}", text(output));
    }
    let code = |output: &Output| {
        text(output)
            .lines()
            .find_map(|line| line.split("known to the release desk only: ").nth(1).map(str::to_owned))
    };
    assert!(code(&seven).is_some());
    assert_ne!(code(&seven), code(&eight));
}

#[test]
fn the_demo_fails_visibly_when_what_was_learned_is_erased() {
    let output = run(&["demo", "--seed", "7", "--forget"].map(str::to_owned));
    assert!(output.status.success(), "{}{}", text(&output), problems(&output));
    assert!(
        text(&output).contains("session 2 failed, as it must"),
        "{}",
        text(&output)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_cannot_open_the_same_data() {
    let model = ModelServer::scripted(script::learner).await;
    let stack = Stack::start("second", Shape::One, common::no_reviews(&model));
    let data = stack.data().display().to_string();
    let arguments = ["--data-dir", &data, "--listen", "127.0.0.1:0"].map(str::to_owned);
    let output = tokio::task::spawn_blocking(move || run(&arguments)).await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        problems(&output).contains("only one process may open it"),
        "{}",
        problems(&output)
    );
}
