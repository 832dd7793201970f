//! D-12: a secret on its way through a turn. What a provider says of a refused key goes no further; what a tool needs reaches
//! it unchanged; what a skill needs is asked of the person while the turn goes on (`S-8`).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;

use std::fmt::Write as _;
use std::path::Path;

use steward_proto::agent::v1 as agent;
use steward_proto::agent::v1::turn_event::Event;
use steward_proto::skill::v1 as skill;
use steward_testkit::{ModelServer, Reply, ScriptedCall};
use steward_tests::person::{client_tool, fresh_id, result};
use steward_tests::terminal::Terminal;
use steward_tests::{Ended, Shape, Stack, script};

/// A made-up token of a known shape, put together here so that no scanner of sources takes it for one.
fn token() -> String {
    format!("sk-proj-{}", "Zq9xT4vLm2Rb7Wd1".repeat(3))
}

/// The files below `folder` that hold `text`.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if let Ok(bytes) = std::fs::read(&path)
            && bytes.windows(text.len()).any(|window| window == text.as_bytes())
        {
            found.push(path.display().to_string());
        }
    }
    found
}

both_shapes!(a_provider_that_repeats_a_refused_key_is_quoted_nowhere);

/// D-12 (2): the stored error, the logs and the reply hold no token.
async fn a_provider_that_repeats_a_refused_key_is_quoted_nowhere(shape: Shape) {
    let model = ModelServer::scripted(|_| {
        Reply::failure(
            401,
            "invalid_request_error",
            &format!("Incorrect API key provided: {}", token()),
        )
    })
    .await;
    let options = common::no_reviews(&model).env("STEWARD_LOG", "debug");
    let stack = Stack::start("refused-key", shape, options);
    let owner = stack.owner().await;
    let session = owner.session(Vec::new()).await;
    let turn = fresh_id();
    let segment = owner.say_as(&session, "hello", &turn).await.unwrap();
    let Ended::Failed(failed) = &segment.ended else {
        panic!("a refused key is no answer: {segment:?}")
    };
    assert_eq!((failed.reason.as_str(), failed.retryable), ("MODEL_REFUSED", false));
    assert!(!format!("{segment:?}").contains(&token()));
    // From the store, as another process would tell it.
    let request = agent::WatchTurnRequest {
        session: session.clone(),
        turn,
        after_event: 0,
    };
    let mut stream = owner.client.agent.watch_turn(request).await.unwrap();
    let mut watched = String::new();
    while let Some(item) = stream.message().await.unwrap() {
        write!(watched, "{item:?}").unwrap();
    }
    assert!(
        watched.contains("MODEL_REFUSED") && !watched.contains(&token()),
        "{watched}"
    );
    for (name, process) in stack.processes() {
        assert!(!process.log_text().contains(&token()), "the log of {name}");
    }
    assert_eq!(files_with(&stack.data(), &token()), Vec::<String>::new());
}

both_shapes!(a_tool_gets_the_secret_that_it_needs_unchanged);

/// D-12 (3): nothing masks what a tool is called with.
async fn a_tool_gets_the_secret_that_it_needs_unchanged(shape: Shape) {
    let arguments = format!(r#"{{ "what":"{}", "n":1.0 }}"#, token());
    let given = arguments.clone();
    let model = ModelServer::scripted(move |request| match script::since_user(request).len() {
        0 => Reply::calls([ScriptedCall::new("login", "look", given.clone())]),
        _ => Reply::text("done"),
    })
    .await;
    let stack = Stack::start("tool-secret", shape, common::no_reviews(&model));
    let owner = stack.owner().await;
    let session = owner.session(vec![client_tool("look")]).await;
    let calls = owner.say(&session, "log in").await.calls().to_vec();
    assert_eq!(calls[0].arguments_json, arguments);
    let ended = owner.answer_calls(&session, vec![result(&calls[0], "logged in")]).await;
    assert_eq!(ended.answer(), "done");
    let sent = model.requests()[1].messages();
    let called = &sent[sent.len() - 2]["tool_calls"][0]["function"]["arguments"];
    assert_eq!(called.as_str(), Some(arguments.as_str()), "and goes back as it was");
    for (name, process) in stack.processes() {
        assert!(!process.log_text().contains(&token()), "the log of {name}");
    }
}

both_shapes!(what_a_skill_needs_is_asked_of_the_person_and_its_value_is_nowhere);

/// `S-8`: a turn opens a skill that needs a value; the client hears of it while the turn goes on, sets it, and the next turn
/// finds nothing missing. The value is in no prompt, log or stored row; a client that does not tell what is set is asked nothing.
async fn what_a_skill_needs_is_asked_of_the_person_and_its_value_is_nowhere(shape: Shape) {
    let model = ModelServer::scripted(|request| match script::since_user(request).len() {
        0 => Reply::calls([ScriptedCall::new("open", "skill_view", r#"{"name":"call"}"#)]),
        _ => Reply::text("done"),
    })
    .await;
    let options = common::no_reviews(&model).env("STEWARD_LOG", "debug");
    let stack = Stack::start("asked-secret", shape, options);
    let owner = stack.owner().await;
    let content = "---\nname: call\ndescription: Call the API\nrequired_environment_variables:\n  - name: API_TOKEN\n    \
                   prompt: The token of the API\n---\n# Call\n\nCall it.\n";
    let create = skill::ManageSkillRequest {
        parent: owner.user.clone(),
        skill: "call".to_owned(),
        request_id: fresh_id(),
        action: Some(skill::manage_skill_request::Action::Create(skill::CreateSkill {
            content: content.to_owned(),
            scope: skill::SkillScope::Team.into(),
            ..skill::CreateSkill::default()
        })),
        ..skill::ManageSkillRequest::default()
    };
    owner.client.skills.manage_skill(create).await.unwrap();
    let begin = async |known: bool| {
        let setup = agent::SessionSetup {
            client_tools: vec![client_tool("look")],
            environment: Some(agent::Environment {
                variables: vec!["HOME".to_owned()],
                variables_known: known,
                ..agent::Environment::default()
            }),
            ..agent::SessionSetup::default()
        };
        owner.session_with(setup).await.unwrap()
    };
    let asked = |segment: &steward_tests::Segment| {
        let requests = segment.events.iter().filter_map(|event| match &event.event {
            Some(Event::SecretRequest(request)) => Some(request.clone()),
            _ => None,
        });
        requests.collect::<Vec<_>>()
    };
    let session = begin(true).await;
    assert!(!session.system_prompt.contains("API_TOKEN"));
    let first = owner.say(&session.name, "call the api").await;
    assert_eq!(first.answer(), "done", "the turn waits for nobody");
    let request = asked(&first).remove(0);
    assert!(
        request.team_store && request.skill.ends_with("/skills/call"),
        "{request:?}"
    );
    assert_eq!(
        (request.variables[0].name.as_str(), request.variables[0].prompt.as_str()),
        ("API_TOKEN", "The token of the API")
    );
    let told = model.requests()[1].tool_results().remove(0).1;
    assert!(told.contains("setup needed: API_TOKEN is not set"), "{told}");
    let set = skill::SetSecretRequest {
        parent: owner.user.clone(),
        secret: "API_TOKEN".to_owned(),
        value: token(),
    };
    owner.client.secrets.set_secret(set).await.unwrap();
    let second = owner.say(&session.name, "call it again").await;
    assert_eq!(asked(&second), [], "the team has it now");
    let deliver = skill::DeliverSecretsRequest {
        parent: owner.user.clone(),
        skill: "call".to_owned(),
    };
    let delivered = owner.client.secrets.deliver_secrets(deliver).await.unwrap();
    assert_eq!(delivered.secrets[0].value, token());
    let silent = begin(false).await;
    assert_eq!(asked(&owner.say(&silent.name, "call the api").await), []);
    for request in model.requests() {
        assert!(
            !String::from_utf8_lossy(&request.body).contains(&token()),
            "a prompt holds the value"
        );
    }
    assert!(
        owner.search(&token()).await.conversations.is_empty(),
        "the past holds the value"
    );
    for (name, process) in stack.processes() {
        assert!(!process.log_text().contains(&token()), "the log of {name}");
    }
    assert_eq!(files_with(&stack.data(), &token()), Vec::<String>::new());
}

/// The hidden prompt of `secrets set` and `secrets fill`, at a real terminal: the value reaches the command that needs it, and
/// the screen never has it. A terminal that would show it is refused before anything is typed.
#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_is_typed_is_kept_and_never_shown() {
    let model = ModelServer::scripted(|_| Reply::text("done")).await;
    let stack = Stack::start("typed-secret", Shape::One, common::no_reviews(&model));
    let owner = stack.owner().await;
    let content = "---\nname: call\ndescription: Call\nrequired_environment_variables: [API_TOKEN, API_USER]\n---\n# Call\n\nCall.\n";
    let create = skill::ManageSkillRequest {
        parent: owner.user.clone(),
        skill: "call".to_owned(),
        request_id: fresh_id(),
        action: Some(skill::manage_skill_request::Action::Create(skill::CreateSkill {
            content: content.to_owned(),
            scope: skill::SkillScope::Team.into(),
            ..skill::CreateSkill::default()
        })),
        ..skill::ManageSkillRequest::default()
    };
    owner.client.skills.manage_skill(create).await.unwrap();
    let arguments = |verb: &[&str]| {
        let mut all: Vec<String> = verb.iter().map(|word| (*word).to_owned()).collect();
        all.extend(["--data-dir".to_owned(), stack.data().display().to_string()]);
        all.extend(stack.endpoint_arguments());
        all
    };
    let typed = async |verb: &[&str], answers: &[(&'static str, &'static str)]| {
        let (arguments, answers) = (arguments(verb), answers.to_vec());
        let at_the_terminal = move || {
            let mut terminal = Terminal::start(&arguments, "xterm");
            for (prompt, keys) in answers {
                terminal.wait_for(prompt);
                terminal.type_in(keys);
            }
            terminal.end()
        };
        let (status, screen) = tokio::task::spawn_blocking(at_the_terminal).await.unwrap();
        assert!(status.success(), "{screen}");
        screen
    };
    // With a slip of the finger that is taken back.
    let set = typed(
        &["secrets", "set", "API_TOKEN"],
        &[("API_TOKEN (not shown): ", "v-4719\u{7f}1\r")],
    )
    .await;
    let filled = typed(&["secrets", "fill", "call"], &[("API_USER (not shown): ", "u-0815\r")]).await;
    assert!(set.contains("API_TOKEN is set."), "{set}");
    assert!(filled.contains("Set: API_USER."), "{filled}");
    for part in ["v-4", "471", "u-0", "815"] {
        assert!(
            !format!("{set}{filled}").contains(part),
            "the screen shows {part}: {set}{filled}"
        );
    }
    let mut run = arguments(&["secrets", "run", "call"]);
    let check = "test \"$API_TOKEN $API_USER\" = 'v-4711 u-0815'";
    run.extend(["--", "sh", "-c", check].map(str::to_owned));
    let ran = tokio::task::spawn_blocking(move || steward_tests::process::run(&run))
        .await
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));

    let arguments = arguments(&["secrets", "set", "API_TOKEN"]);
    let plain = tokio::task::spawn_blocking(move || Terminal::start(&arguments, "dumb").end());
    let (status, screen) = plain.await.unwrap();
    assert_eq!(status.code(), Some(1), "{screen}");
    assert!(screen.contains("would show the value"), "{screen}");
}
