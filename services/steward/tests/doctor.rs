//! `steward doctor` and `steward health` before the first start, while an installation runs, after it, and on each kind of
//! damage that they are there to find.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;

use std::fs::{OpenOptions, Permissions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use common::{Answer, Installation, run};
use serde_json::Value;
use steward_testkit::{ModelServer, Reply, TempDir};

/// States of the findings of an area, by what was looked at.
fn states(report: &Value, area: &str) -> Vec<(String, String)> {
    let findings = report["findings"].as_array().unwrap().iter();
    findings
        .filter(|finding| finding["area"] == area)
        .map(|finding| {
            let text = |field: &str| finding[field].as_str().unwrap().to_owned();
            (text("subject"), text("state"))
        })
        .collect()
}

fn problems(report: &Value) -> Vec<&Value> {
    let findings = report["findings"].as_array().unwrap().iter();
    findings.filter(|finding| finding["state"] == "problem").collect()
}

async fn offline(data: &str) -> Answer {
    run(["doctor", "--json", "--data-dir", data].map(str::to_owned).to_vec()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_installation_is_healthy_and_its_databases_are_left_alone() {
    let model = ModelServer::with_replies([Reply::text("hello")]).await;
    let installation = Installation::start(Some(model.base_url())).await;
    let settings = installation.join("steward.toml");
    std::fs::write(
        &settings,
        format!(
            "[agent.model]\nname = \"scripted\"\nbase_url = \"{}\"\n",
            model.base_url()
        ),
    )
    .unwrap();
    let chat = installation.run(&["chat", "--no-tools", "-m", "hello"]).await;
    assert_eq!(chat.code, Some(0), "{}", chat.stderr);
    let report = installation
        .json(&["doctor", "--config", settings.to_str().unwrap()])
        .await;
    assert_eq!(report["healthy"], true, "{report:#}");
    let stores = states(&report, "store");
    assert_eq!(stores.len(), 6, "five services and the audit log: {report:#}");
    let services = states(&report, "service");
    assert_eq!(services.len(), 6, "{report:#}");
    assert_eq!(
        states(&report, "index"),
        ["of every team", "teams/default"].map(|subject| (subject.to_owned(), "ok".to_owned()))
    );
    assert_eq!(states(&report, "model")[0].1, "ok", "{report:#}");
    // The chat's own request; whether something answers is found out without calling a model.
    assert_eq!(
        model
            .requests()
            .iter()
            .filter(|request| request.path.ends_with("completions"))
            .count(),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_server_the_files_are_looked_at() {
    let mut installation = Installation::start(None).await;
    installation.stop().await;
    let report = offline(&installation.data()).await.json();
    assert_eq!(report["healthy"], true, "{report:#}");
    for (store, state) in states(&report, "store") {
        assert_eq!(state, "ok", "{store}");
    }
    assert_eq!(states(&report, "store").len(), 5, "no team has talked yet");
    assert_eq!(states(&report, "token")[0].0, "owner");
    assert_eq!(states(&report, "clock")[0].1, "ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn before_the_first_start_nothing_is_wrong() {
    let folder = TempDir::new("nothing");
    let answer = offline(folder.join("data").to_str().unwrap()).await;
    assert_eq!(answer.code, Some(0), "{}", answer.stdout);
    assert!(!folder.join("data").exists(), "looking makes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_of_damage_is_named_and_hides_no_other() {
    let mut installation = Installation::start(None).await;
    installation.stop().await;
    let data = installation.data();
    let data = Path::new(&data);
    overwrite(&data.join("memory/memory.db"));
    std::fs::write(data.join("skills/skills.db"), b"not a database").unwrap();
    std::fs::set_permissions(data.join("agent/owner.token"), Permissions::from_mode(0o644)).unwrap();
    std::fs::write(data.join("agent/owner.token"), "no token").unwrap();
    let answer = offline(data.to_str().unwrap()).await;
    assert_eq!(answer.code, Some(1));
    let report = answer.json();
    let found: Vec<_> = problems(&report)
        .iter()
        .map(|finding| {
            format!(
                "{} {}",
                finding["area"].as_str().unwrap(),
                finding["subject"].as_str().unwrap()
            )
        })
        .collect();
    for expected in ["store memory/memory.db", "store skills/skills.db", "token yours"] {
        assert!(
            found.iter().any(|line| line == expected),
            "{expected} is not in {found:?}"
        );
    }
    assert!(found.iter().any(|line| line.ends_with("owner.token")), "{found:?}");
    assert!(states(&report, "store").contains(&("learning/learning.db".to_owned(), "ok".to_owned())));
    assert!(
        problems(&report)
            .iter()
            .all(|finding| finding["hint"] != "" || finding["area"] == "token")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_data_folder_is_a_problem_only_where_a_folder_in_it_is_open_too() {
    let mut installation = Installation::start(None).await;
    installation.stop().await;
    let data = installation.data();
    let open = |path: &Path| std::fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    open(Path::new(&data));
    assert_eq!(offline(&data).await.json()["healthy"], true);
    open(&Path::new(&data).join("memory"));
    let report = offline(&data).await.json();
    assert_eq!(problems(&report).len(), 1, "{report:#}");
    assert_eq!(problems(&report)[0]["hint"], format!("chmod 700 {data}"));
}

/// Spoils the pages of a database behind its first one.
fn overwrite(path: &Path) {
    let mut file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut head = [0; 18];
    file.read_exact(&mut head).unwrap();
    let page = u64::from(u16::from_be_bytes([head[16], head[17]]));
    let length = file.metadata().unwrap().len();
    file.seek(SeekFrom::Start(page)).unwrap();
    file.write_all(&vec![0xa5; usize::try_from(length - page).unwrap()])
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_elsewhere_and_a_server_of_another_kind_are_told_apart() {
    let installation = Installation::start(None).await;
    let elsewhere = run(["doctor", "--json", "--endpoint", "http://127.0.0.1:9", "--data-dir"]
        .map(str::to_owned)
        .into_iter()
        .chain([installation.data()])
        .collect())
    .await;
    assert_eq!(elsewhere.code, Some(1));
    let report = elsewhere.json();
    let detail = problems(&report)[0]["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("a server runs, but not here"), "{report:#}");
    let mapped = installation
        .run(&["doctor", "--json", "--service", "memory=http://127.0.0.1:9"])
        .await;
    let report = mapped.json();
    assert_eq!(
        problems(&report)[0]["subject"],
        "memory at http://127.0.0.1:9",
        "{report:#}"
    );
    assert_eq!(states(&report, "service").len(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_cannot_be_reached_or_refuses_the_key_is_a_problem() {
    let folder = TempDir::new("model");
    let settings = folder.join("steward.toml");
    let write = |provider: &str, url: &str| {
        let text = format!(
            "[agent.model]\nprovider = \"{provider}\"\nname = \"m\"\nbase_url = \"{url}\"\napi_key = \"sk-wrong\"\n"
        );
        std::fs::write(&settings, text).unwrap();
    };
    let examine = |more: &'static [&'static str]| {
        let data = folder.join("data").display().to_string();
        let mut arguments: Vec<String> = ["doctor", "--json", "--data-dir", &data, "--config"]
            .map(str::to_owned)
            .to_vec();
        arguments.push(settings.display().to_string());
        arguments.extend(more.iter().map(|argument| (*argument).to_owned()));
        run(arguments)
    };
    write("openai", "http://127.0.0.1:9/v1");
    let answer = examine(&[]).await;
    assert_eq!(answer.code, Some(1));
    assert_eq!(problems(&answer.json())[0]["area"], "model");
    assert!(!answer.stdout.contains("sk-wrong"));
    for (provider, header, value) in [
        ("openai", "authorization", "Bearer sk-wrong"),
        ("anthropic", "x-api-key", "sk-wrong"),
    ] {
        let model = ModelServer::with_replies([Reply::error(401, "{}")]).await;
        write(provider, &model.base_url());
        let answer = examine(&["--model"]).await;
        assert!(
            problems(&answer.json())[0]["detail"]
                .as_str()
                .unwrap()
                .contains("refuses the key"),
            "{}",
            answer.stdout
        );
        let request = &model.requests()[0];
        assert_eq!(
            (request.path.as_str(), request.header(header)),
            ("/v1/models", Some(value))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_settings_are_findings_too() {
    let folder = TempDir::new("settings");
    let settings = folder.join("steward.toml");
    std::fs::write(&settings, "[memory]\nno_such_setting = 1\n").unwrap();
    let mut arguments = ["doctor", "--json", "--data-dir"].map(str::to_owned).to_vec();
    arguments.extend([folder.join("data").display().to_string(), "--config".to_owned()]);
    arguments.push(settings.display().to_string());
    let answer = run(arguments).await;
    assert_eq!(answer.code, Some(1));
    assert_eq!(problems(&answer.json())[0]["area"], "settings");
}

#[tokio::test(flavor = "multi_thread")]
async fn health_needs_no_token_and_ends_with_1_when_nobody_serves() {
    let installation = Installation::start(None).await;
    let empty = TempDir::new("empty");
    let ask = |endpoint: &str| {
        let data = empty.path().display().to_string();
        run(["health", "--json", "--endpoint", endpoint, "--data-dir", &data]
            .map(str::to_owned)
            .to_vec())
    };
    let answer = ask(&installation.endpoint).await;
    assert_eq!(answer.code, Some(0), "{}{}", answer.stdout, answer.stderr);
    assert_eq!(answer.json()["servers"][0]["state"], "serving");
    let answer = ask("http://127.0.0.1:9").await;
    assert_eq!(answer.code, Some(1));
    assert_eq!(answer.json()["servers"][0]["state"], "unreachable");
}
