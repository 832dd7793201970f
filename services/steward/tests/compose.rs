//! `docker-compose.yml` against the program that it starts: commands, ports, health checks, volumes. And the layout that
//! its volumes make, started here as five services that see of each other's files only what the containers see.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use steward::config::{Config, PeersConfig};
use steward::{Component, command, installation};
use steward_client::{Client, Credentials, Wire};
use steward_proto::access::v1::WhoAmIRequest;
use steward_proto::recall::v1::ListDueReviewsRequest;
use steward_runtime::Boot;
use steward_testkit::TempDir;

const SERVICES: [(&str, Component); 5] = [
    ("recall-service", Component::RecallService),
    ("memory-service", Component::MemoryService),
    ("skill-registry", Component::SkillRegistry),
    ("agent-orchestrator", Component::AgentOrchestrator),
    ("curator-worker", Component::CuratorWorker),
];

fn compose() -> Value {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../docker-compose.yml"]
        .iter()
        .collect();
    serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn words(list: &Value) -> Vec<&str> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|word| word.as_str().unwrap())
        .collect()
}

/// `--listen 0.0.0.0:7401` → 7401.
fn listen_port(service: &Value) -> u16 {
    let command = words(&service["command"]);
    let at = command.iter().position(|word| *word == "--listen").unwrap();
    command[at + 1].rsplit_once(':').unwrap().1.parse().unwrap()
}

#[test]
fn every_command_is_one_of_the_program() {
    let compose = compose();
    let services = compose["services"].as_object().unwrap();
    let names: BTreeSet<_> = services.keys().map(String::as_str).collect();
    let expected: BTreeSet<_> = SERVICES.iter().map(|(name, _)| *name).chain(["init"]).collect();
    assert_eq!(names, expected);
    for (name, service) in services {
        let arguments = words(&service["command"]);
        assert_eq!(arguments[0], name, "a service runs the command of its name");
        command::check(arguments).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(
            service["image"].is_string() && service["read_only"] == true,
            "{name} does not take the image's part"
        );
    }
}

#[test]
fn every_service_is_probed_and_published_where_it_listens() {
    let compose = compose();
    for (name, _) in SERVICES {
        let service = &compose["services"][name];
        let port = listen_port(service);
        let probe = words(&service["healthcheck"]["test"]);
        assert_eq!(probe[..2], ["CMD", "/usr/local/bin/steward"]);
        command::check(probe[2..].iter().copied()).unwrap();
        assert_eq!(probe.last().unwrap(), &format!("http://127.0.0.1:{port}"));
        assert_eq!(words(&service["ports"]), [format!("127.0.0.1:{port}:{port}")]);
    }
}

#[test]
fn the_default_peers_are_the_services_of_the_file() {
    let compose = compose();
    let peers = PeersConfig::default();
    for (name, peer) in [
        ("recall-service", peers.recall),
        ("memory-service", peers.memory),
        ("skill-registry", peers.skills),
        ("agent-orchestrator", peers.agent),
    ] {
        assert_eq!(
            peer,
            format!("http://{name}:{}", listen_port(&compose["services"][name]))
        );
    }
}

#[test]
fn only_the_orchestrator_sees_the_signing_key_and_each_volume_has_one_writer() {
    let compose = compose();
    let declared: BTreeSet<&str> = compose["volumes"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let mut writers: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, service) in compose["services"].as_object().unwrap() {
        for mount in words(&service["volumes"]) {
            let parts: Vec<_> = mount.split(':').collect();
            assert!(declared.contains(parts[0]), "{name} mounts an unknown volume {mount}");
            if parts.get(2) != Some(&"ro") {
                writers.entry(parts[0]).or_default().insert(name);
            }
            let may = ["init", "agent-orchestrator"].contains(&name.as_str());
            assert!(parts[0] != "agent" || may, "{name} sees the signing key");
        }
    }
    for (volume, mut writers) in writers {
        // It makes things once and ends before the others begin.
        writers.remove("init");
        assert!(writers.len() <= 1, "{volume} is written by {writers:?}");
    }
}

/// A process of the five, with a data folder of its own.
async fn start(root: &TempDir, component: Component, config: Config) -> (Boot, String) {
    let boot = Boot::new(root.join(component.name()));
    let ready = installation::start(component, config, &boot).await.unwrap();
    (boot, ready.endpoint)
}

fn settings(root: &TempDir) -> Config {
    let mut config = Config::default();
    "127.0.0.1:0".clone_into(&mut config.server.listen);
    config.auth.public_keys = Some(root.join("agent-orchestrator/agent/keys/public"));
    config
}

#[tokio::test(flavor = "multi_thread")]
async fn five_services_that_share_only_a_public_key_and_a_token_file_work_together() {
    steward_testkit::install_crypto();
    let root = TempDir::new("containers");
    let init = Boot::new(root.join("agent-orchestrator"));
    installation::init(settings(&root), &init).await.unwrap();
    init.tasks.shutdown(Duration::from_secs(10)).await;
    let worker_token = root.join("worker/token");
    std::fs::create_dir(root.join("worker")).unwrap();
    installation::hand_out_worker_token(&init.data_dir, &worker_token).unwrap();

    let (recall, recall_at) = start(&root, Component::RecallService, settings(&root)).await;
    let (memory, memory_at) = start(&root, Component::MemoryService, settings(&root)).await;
    let (skills, skills_at) = start(&root, Component::SkillRegistry, settings(&root)).await;
    let mut config = settings(&root);
    config.auth.public_keys = None;
    config.peers = PeersConfig {
        recall: recall_at.clone(),
        memory: memory_at.clone(),
        skills: skills_at,
        agent: "http://127.0.0.1:9".to_owned(),
    };
    let (agent, agent_at) = start(&root, Component::AgentOrchestrator, config.clone()).await;
    config.auth.public_keys = settings(&root).auth.public_keys;
    config.peers.agent.clone_from(&agent_at);
    config.learning.token_file = Some(worker_token.clone());
    let (worker, _) = start(&root, Component::CuratorWorker, config).await;
    assert!(installation::is_served(&agent.data_dir) && !installation::is_served(&worker.data_dir));

    let token = std::fs::read_to_string(agent.data_dir.join("agent/owner.token")).unwrap();
    let at = |endpoint: &str| {
        let credentials = Credentials::token(token.trim()).unwrap();
        Client::new(Wire::connect(endpoint).unwrap().with_credentials(credentials))
    };
    let me = at(&agent_at).access.who_am_i(WhoAmIRequest {}).await.unwrap();
    let snapshot = steward_proto::memory::v1::GetSnapshotRequest {
        user: me.user,
        ..Default::default()
    };
    at(&memory_at).memory.get_snapshot(snapshot).await.unwrap();
    // What the worker asks first, with the token that it was handed.
    let handed = std::fs::read_to_string(&worker_token).unwrap();
    let store = at(&recall_at)
        .store
        .with_credentials(Credentials::token(handed.trim()).unwrap());
    store.list_due_reviews(ListDueReviewsRequest::default()).await.unwrap();
    for boot in [worker, agent, skills, memory, recall] {
        assert!(!boot.tasks.shutdown(Duration::from_secs(20)).await.failed);
    }
}
