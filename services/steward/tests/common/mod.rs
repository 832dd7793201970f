//! What the tests of the command line share: an installation in this process, and the binary run against it.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::io::Write as _;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use steward::config::Config;
use steward::{Component, installation};
use steward_runtime::Boot;
use steward_testkit::{Site, TempDir};

/// All services in this process, with data in a folder of their own.
pub(crate) struct Installation {
    folder: TempDir,
    boot: Boot,
    pub(crate) endpoint: String,
    /// All that the hub may ask.
    pub(crate) site: Site,
}

/// What the binary answered.
pub(crate) struct Answer {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Answer {
    /// The one JSON document on standard output.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("no JSON document ({error}): {}{}", self.stdout, self.stderr))
    }
}

impl From<Output> for Answer {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Installation {
    /// Starts one, with the model at this address.
    pub(crate) async fn start(model: Option<String>) -> Self {
        let folder = TempDir::new("steward");
        let site = Site::start().await;
        let (boot, endpoint) = serve(&folder, model, &site.base()).await;
        Self {
            folder,
            boot,
            endpoint,
            site,
        }
    }

    /// A file or folder beside the data.
    pub(crate) fn join(&self, name: &str) -> std::path::PathBuf {
        self.folder.join(name)
    }

    /// The data folder.
    pub(crate) fn data(&self) -> String {
        self.folder.join("data").display().to_string()
    }

    /// Runs a verb against it.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Answer {
        let (endpoint, data) = (self.endpoint.clone(), self.data());
        let mut all: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        all.extend(["--endpoint".to_owned(), endpoint, "--data-dir".to_owned(), data]);
        run(all).await
    }

    /// Runs a verb with something on its standard input.
    pub(crate) async fn run_with(&self, arguments: &[&str], input: &str) -> Answer {
        let mut all: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        all.extend([
            "--endpoint".to_owned(),
            self.endpoint.clone(),
            "--data-dir".to_owned(),
            self.data(),
        ]);
        fed(all, input.to_owned()).await
    }

    /// Runs a verb that runs a command itself, with what belongs to the command behind `--`.
    pub(crate) async fn run_before(&self, arguments: &[&str], command: &[&str]) -> Answer {
        let mut all: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        all.extend([
            "--endpoint".to_owned(),
            self.endpoint.clone(),
            "--data-dir".to_owned(),
            self.data(),
        ]);
        all.push("--".to_owned());
        all.extend(command.iter().map(|argument| (*argument).to_owned()));
        run(all).await
    }

    /// Runs a verb that must succeed and answer with JSON.
    pub(crate) async fn json(&self, arguments: &[&str]) -> Value {
        let mut with = arguments.to_vec();
        with.push("--json");
        let answer = self.run(&with).await;
        assert_eq!(
            answer.code,
            Some(0),
            "{arguments:?}: {}{}",
            answer.stdout,
            answer.stderr
        );
        answer.json()
    }

    /// Stops it; the folder stays.
    pub(crate) async fn stop(&mut self) {
        let stopped = self.boot.tasks.shutdown(Duration::from_secs(20)).await;
        assert!(!stopped.failed, "a task failed");
    }
}

async fn serve(folder: &TempDir, model: Option<String>, site: &str) -> (Boot, String) {
    steward_testkit::install_crypto();
    let boot = Boot::new(folder.join("data"));
    let mut config = Config::default();
    "127.0.0.1:0".clone_into(&mut config.server.listen);
    config.agent.model.name = model.is_some().then(|| "scripted".to_owned());
    config.agent.model.base_url = model;
    config.agent.nudges.memory_turns = 0;
    config.agent.nudges.skill_iterations = 0;
    let hub = &mut config.skills.hub;
    for address in [
        &mut hub.github_api,
        &mut hub.skills_sh,
        &mut hub.clawhub,
        &mut hub.lobehub,
        &mut hub.browse_sh,
    ] {
        site.clone_into(address);
    }
    hub.skills_sh_audit.clear();
    hub.repositories.clear();
    hub.marketplaces.clear();
    hub.permitted_origins = vec![site.to_owned()];
    let ready = installation::start(Component::All, config, &boot).await.unwrap();
    (boot, ready.endpoint)
}

/// Runs the binary as it is, without anything of this process's surroundings that concerns Steward.
pub(crate) async fn run(arguments: Vec<String>) -> Answer {
    fed(arguments, String::new()).await
}

/// The same with something on its standard input.
async fn fed(arguments: Vec<String>, input: String) -> Answer {
    let run = move || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steward"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("STEWARD") {
                command.env_remove(name);
            }
        }
        let command = command.args(&arguments).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // One that reads nothing may be gone already.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap().into()
    };
    tokio::task::spawn_blocking(run).await.unwrap()
}
