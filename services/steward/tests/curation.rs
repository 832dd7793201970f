//! A library that ages under a clock that the test moves, curated and put back by the command line against all services
//! of one process (`C-1` to `C-4`, `C-10`, `C-11`).
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use steward::config::Config;
use steward::{Component, installation};
use steward_client::{Client, Credentials, Wire};
use steward_proto::access::v1 as access;
use steward_proto::agent::v1 as agent;
use steward_proto::common::v1 as wire;
use steward_proto::skill::v1 as skill;
use steward_proto::skill::v1::manage_skill_request::Action;
use steward_runtime::Boot;
use steward_testkit::{MockClock, PATIENCE, TempDir, wait_for_some};

const DAY: Duration = Duration::from_hours(24);

struct Rig {
    folder: TempDir,
    boot: Boot,
    clock: MockClock,
    endpoint: String,
    user: String,
}

impl Rig {
    /// Skills are stale after 2 days and set aside after 5, so that no credential runs out meanwhile.
    async fn new() -> Self {
        steward_testkit::install_crypto();
        let (folder, clock) = (TempDir::new("steward-curation"), MockClock::default());
        let boot = Boot::new(folder.join("data")).with_clock(Arc::new(clock.clone()));
        let mut config = Config::default();
        "127.0.0.1:0".clone_into(&mut config.server.listen);
        // Sessions can be made; nothing here asks the model.
        config.agent.model.name = Some("none".to_owned());
        config.agent.model.base_url = Some("http://127.0.0.1:9/v1".to_owned());
        config.learning.curation.stale_days = 2;
        config.learning.curation.archive_days = 5;
        config.learning.curation.check_seconds = 1;
        let ready = installation::start(Component::All, config, &boot).await.unwrap();
        let mut rig = Self {
            folder,
            boot,
            clock,
            endpoint: ready.endpoint,
            user: String::new(),
        };
        rig.user = rig
            .owner()
            .access
            .who_am_i(access::WhoAmIRequest {})
            .await
            .unwrap()
            .user;
        rig
    }

    fn client(&self, token: &str) -> Client {
        let credentials = Credentials::token(token.trim()).unwrap();
        Client::new(Wire::connect(&self.endpoint).unwrap().with_credentials(credentials))
    }

    fn owner(&self) -> Client {
        let file = steward_cli::connect::owner_token_file(&self.folder.join("data"));
        self.client(&std::fs::read_to_string(file).unwrap())
    }

    fn team(&self) -> &str {
        self.user.split("/users/").next().unwrap()
    }

    /// A skill as a review makes it.
    async fn made_by_a_review(&self, name: &str) {
        let worker = std::fs::read_to_string(self.folder.join("data/agent/curator-worker.token")).unwrap();
        let mut exchange = access::ExchangeJobTokenRequest {
            user: self.user.clone(),
            job_id: name.to_owned(),
            fence: 1,
            origin: wire::Origin::Review.into(),
            session: format!("{}/sessions/s1", self.team()),
            capabilities: vec!["skill_manage".to_owned()],
            ..Default::default()
        };
        exchange.ttl.get_or_insert_default().seconds = 60;
        let token = self.client(&worker).access.exchange_job_token(exchange).await.unwrap();
        let mut request = create(&self.user, name);
        request.evidence = Some(wire::Evidence {
            session: format!("{}/sessions/s1", self.team()),
            spans: vec!["s1".to_owned()],
            basis: wire::Basis::Stated.into(),
            integrity: wire::Integrity::Person.into(),
        });
        self.client(&token.credential)
            .skills
            .manage_skill(request)
            .await
            .unwrap();
    }

    async fn curator(&self, arguments: &[&str]) -> Value {
        let answer = self.answer(arguments).await;
        assert_eq!(
            answer.code,
            Some(0),
            "{arguments:?}: {}{}",
            answer.stdout,
            answer.stderr
        );
        answer.json()
    }

    async fn answer(&self, arguments: &[&str]) -> common::Answer {
        let data = self.folder.join("data").display().to_string();
        let mut all: Vec<String> = ["curator"]
            .iter()
            .chain(arguments)
            .map(|&argument| argument.to_owned())
            .collect();
        all.extend(["--json", "--endpoint", &self.endpoint, "--data-dir", &data].map(str::to_owned));
        common::run(all).await
    }

    /// The answer of a verb that waits for a run, and its `run.json`.
    async fn run(&self, arguments: &[&str]) -> (Value, Value) {
        let answer = self.curator(arguments).await;
        let report = serde_json::from_str(answer["runJson"].as_str().unwrap()).unwrap();
        (answer, report)
    }

    async fn archived(&self) -> Vec<String> {
        let request = skill::ListSkillsRequest {
            parent: self.user.clone(),
            archived: true,
            ..Default::default()
        };
        let listed = self.owner().skills.list_skills(request).await.unwrap();
        listed.skills.into_iter().map(|skill| skill.name).collect()
    }

    async fn stop(self) {
        let stopped = self.boot.tasks.shutdown(Duration::from_secs(20)).await;
        assert!(!stopped.failed, "a task failed");
    }
}

fn create(parent: &str, name: &str) -> skill::ManageSkillRequest {
    skill::ManageSkillRequest {
        parent: parent.to_owned(),
        skill: name.to_owned(),
        request_id: name.to_owned(),
        action: Some(Action::Create(skill::CreateSkill {
            content: format!("---\nname: {name}\ndescription: Do {name}\n---\n# {name}\n\nSteps.\n"),
            ..Default::default()
        })),
        ..Default::default()
    }
}

fn told(report: &Value) -> Vec<[&str; 3]> {
    let changes = report["changes"].as_array().unwrap();
    changes
        .iter()
        .map(|told| ["from", "to", "outcome"].map(|field| told[field].as_str().unwrap()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_library_ages_is_set_aside_and_put_back() {
    let rig = Rig::new().await;
    rig.made_by_a_review("deploys").await;
    // D-65: what a person made is no candidate.
    let own = create(&rig.user, "by-hand");
    rig.owner().skills.manage_skill(own).await.unwrap();

    // First sight: their days begin to count.
    let (_, report) = rig.run(&["run"]).await;
    assert_eq!(report["kept"]["first_sight"].as_array().unwrap().len(), 1);
    rig.clock.advance(3 * DAY);
    let (dry, report) = rig.run(&["run", "--dry-run"]).await;
    assert_eq!(told(&report), [["active", "stale", "planned"]]);
    assert_eq!(dry["run"]["snapshot"], "");
    let before = rig.curator(&["status"]).await;
    assert_eq!(before["status"]["runs"], 1, "a dry run was counted");
    let (_, report) = rig.run(&["run"]).await;
    assert_eq!(told(&report), [["active", "stale", "applied"]]);
    rig.clock.advance(3 * DAY);
    let (run, report) = rig.run(&["run"]).await;
    assert_eq!(told(&report), [["stale", "archived", "applied"]]);
    assert_eq!(rig.archived().await.len(), 1);
    assert!(run["reportMarkdown"].as_str().unwrap().starts_with("# Curation\n"));

    let name = run["run"]["name"].as_str().unwrap();
    let (undone, report) = rig.run(&["rollback", name]).await;
    assert_eq!(told(&report), [["archived", "stale", "applied"]]);
    assert_eq!(undone["run"]["undoes"], name);
    assert_eq!(rig.archived().await, Vec::<String>::new());
    let again = rig.answer(&["rollback", name]).await;
    assert_eq!(again.code, Some(0), "{}", again.stdout);
    let dry = dry["run"]["name"].as_str().unwrap();
    let refused = rig.answer(&["rollback", dry]).await;
    assert_eq!(refused.json()["error"]["reason"], "CURATION_NOT_UNDOABLE");

    let history = rig.curator(&["history"]).await;
    let kinds: Vec<&str> = history["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds.len(), 6);
    assert_eq!(
        kinds.iter().filter(|kind| **kind == "CURATION_KIND_ROLLBACK").count(),
        2
    );
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_team_is_curated_after_the_interval_and_not_while_paused() {
    let rig = Rig::new().await;
    let session = agent::CreateSessionRequest {
        parent: rig.user.clone(),
        request_id: "s".to_owned(),
        ..Default::default()
    };
    rig.owner().sessions.create_session(session).await.unwrap();
    // First sight of the team seeds its clock and runs nothing (D-26).
    let seeded = wait_for_some("the team to be seen", PATIENCE, || async {
        let status = rig.curator(&["status"]).await["status"].clone();
        status["dueTime"].is_string().then_some(status)
    })
    .await;
    assert_eq!(seeded["runs"], 0);
    assert_eq!(rig.curator(&["pause"]).await["status"]["paused"], true);
    rig.clock.advance(8 * DAY);
    let (_, report) = rig.run(&["run", "--dry-run"]).await;
    assert_eq!(told(&report), Vec::<[&str; 3]>::new());
    assert_eq!(rig.curator(&["history"]).await["runs"].as_array().unwrap().len(), 1);
    rig.curator(&["resume"]).await;
    let run = wait_for_some("a run by itself", PATIENCE, || async {
        let runs = rig.curator(&["history"]).await["runs"].clone();
        let found = runs
            .as_array()
            .unwrap()
            .iter()
            .find(|run| run["requester"] == "")
            .cloned();
        found.filter(|run| run["state"] == "CURATION_STATE_SUCCEEDED")
    })
    .await;
    assert_eq!(run["kind"], "CURATION_KIND_CURATE");
    rig.stop().await;
}
