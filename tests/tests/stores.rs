//! Who opens which file, which way the calls go, and that what was acknowledged is on disk.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use steward_proto::memory::v1 as memory;
use steward_testkit::ModelServer;
use steward_tests::person::fresh_id;
use steward_tests::{Shape, Stack, script};

#[tokio::test(flavor = "multi_thread")]
async fn in_five_processes_each_database_is_open_in_one_of_them_only() {
    let model = ModelServer::scripted(script::learner).await;
    let stack = Stack::start("owners", Shape::Split, common::reviews_after_each_turn(&model));
    let owner = stack.owner().await;
    let session = owner.session(Vec::new()).await;
    owner.say(&session, "Remember: one owner per store").await;
    owner.reviews_ended(1).await;

    let mut holders: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (name, process) in stack.processes() {
        for entry in std::fs::read_dir(format!("/proc/{}/fd", process.id())).unwrap() {
            let Ok(target) = std::fs::read_link(entry.unwrap().path()) else {
                continue;
            };
            if target.extension().is_some_and(|extension| extension == "db") && target.starts_with(stack.data()) {
                let file = target.strip_prefix(stack.data()).unwrap().display().to_string();
                holders.entry(file).or_default().insert(name);
            }
        }
    }
    let expected = [
        ("agent/access.db", "agent-orchestrator"),
        ("agent/audit/audit.db", "agent-orchestrator"),
        ("learning/audit/audit.db", "curator-worker"),
        ("learning/learning.db", "curator-worker"),
        ("memory/audit/audit.db", "memory-service"),
        ("memory/memory.db", "memory-service"),
        ("recall/audit/audit.db", "recall-service"),
        ("recall/default.db", "recall-service"),
        ("skills/audit/audit.db", "skill-registry"),
        ("skills/skills.db", "skill-registry"),
    ];
    let expected: BTreeMap<_, _> = expected
        .map(|(file, name)| (file.to_owned(), BTreeSet::from([name])))
        .into();
    assert_eq!(holders, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_calls_between_services_form_no_cycle() {
    let model = ModelServer::scripted(script::learner).await;
    let options = common::reviews_after_each_turn(&model).set("TELEMETRY__FORMAT", "json");
    let options = options.env("STEWARD_LOG", "info,steward::rpc=debug");
    let stack = Stack::start("cycle", Shape::Split, options);
    let owner = stack.owner().await;
    let session = owner.session(Vec::new()).await;
    owner.say(&session, "Remember: calls go one way").await;
    owner.reviews_ended(1).await;

    let mut calls: BTreeSet<(String, String)> = BTreeSet::new();
    for (_, process) in stack.processes() {
        for line in process.log_text().lines() {
            let Ok(entry) = serde_json::from_str::<serde_json::Value>(line) else {
                continue;
            };
            if entry["target"] != "steward::rpc" {
                continue;
            }
            let field = |name: &str| entry["fields"][name].as_str().unwrap_or_default().to_owned();
            calls.insert((field("caller"), field("service")));
        }
    }
    let between: BTreeSet<_> = calls
        .iter()
        .filter(|(caller, _)| steward_tests::SERVICES.contains(&caller.as_str()))
        .cloned()
        .collect();
    assert!(between.len() >= 5, "hardly any calls were seen: {calls:?}");
    let level = |service: &str| match service {
        "curator-worker" => 2,
        "agent-orchestrator" => 1,
        _ => 0,
    };
    for (caller, service) in &between {
        assert!(
            level(caller) > level(service),
            "{caller} calls {service}: calls go one way (ADR 0004)"
        );
    }
}

both_shapes!(what_was_acknowledged_survives_a_kill);

/// D-10: a memory entry and a skill, killed at once after the success answers.
async fn what_was_acknowledged_survives_a_kill(shape: Shape) {
    let model = ModelServer::scripted(script::learner).await;
    let mut stack = Stack::start("durable", shape, common::no_reviews(&model));
    let owner = stack.owner().await;
    owner.remember("acknowledged means durable").await.unwrap();
    owner
        .create_skill("durable", &script::skill_text("durable", "Stay."))
        .await
        .unwrap();
    stack.kill_all();
    stack.start_all();
    let owner = stack.owner().await;
    assert_eq!(owner.notes().await, ["acknowledged means durable"]);
    assert!(owner.view_skill("durable").await.unwrap().content.contains("Stay."));
}

both_shapes!(concurrent_writes_all_survive);

/// D-07: two clients, ten adds each, at the same time.
async fn concurrent_writes_all_survive(shape: Shape) {
    let model = ModelServer::scripted(script::learner).await;
    let mut stack = Stack::start("concurrent", shape, common::no_reviews(&model));
    let people = [stack.owner().await, stack.owner().await];
    let adds = people.iter().enumerate().flat_map(|(client, person)| {
        (0..10).map(move |number| async move { person.remember(&format!("fact {client}-{number}")).await })
    });
    for answer in futures::future::join_all(adds).await {
        answer.expect("there is room for all");
    }
    let before: BTreeSet<_> = people[0].notes().await.into_iter().collect();
    assert_eq!(before.len(), 20);
    stack.restart_all().await;
    let after: BTreeSet<_> = stack.owner().await.notes().await.into_iter().collect();
    assert_eq!(after, before);
}

both_shapes!(an_entry_is_read_back_exactly_as_one_entry);

/// D-08.
async fn an_entry_is_read_back_exactly_as_one_entry(shape: Shape) {
    let model = ModelServer::scripted(script::learner).await;
    let mut stack = Stack::start("separator", shape, common::no_reviews(&model));
    let owner = stack.owner().await;
    let entries = [
        "Release steps:\n§\ntag last",
        "Contract § 12 applies",
        "§\nfirst line is the sign",
    ];
    for entry in entries {
        owner.remember(entry).await.unwrap();
    }
    assert_eq!(owner.notes().await, entries);
    stack.restart_all().await;
    let owner = stack.owner().await;
    assert_eq!(owner.notes().await, entries);
    for entry in entries {
        let remove = memory::operation::Action::Remove(memory::RemoveEntry {
            old_text: entry.to_owned(),
        });
        let request = memory::ApplyRequest {
            store: format!("{}/memory/notes", owner.user),
            operations: vec![memory::Operation { action: Some(remove) }],
            request_id: fresh_id(),
            ..Default::default()
        };
        owner.client.memory.apply(request).await.unwrap();
    }
    assert!(owner.notes().await.is_empty());
}
