//! How much the log takes, and what happens when it takes nothing.

use futures::FutureExt as _;
use steward_grpc::AuditSink as _;
use steward_runtime::Reconciler as _;

use super::*;
use crate::gate::Counted;
use crate::log::AuditLog;
use crate::retain::Retention;
use crate::store::{AuditStore, NO_TEAM, Query};

#[tokio::test]
async fn a_flood_without_credentials_is_a_few_records_that_say_how_many() {
    let rig = Rig::start().await;
    for _ in 0..100 {
        for wire in rig.shapes() {
            rig.call(&wire, Who::Nobody, READ, apply("x"), Code::Ok).await;
        }
        rig.call(&rig.local, Who::Stranger, WRITE, apply("x"), Code::Ok).await;
    }
    // Another caller is not crowded out.
    rig.call(
        &rig.local,
        Who::Person("red", "eve", Role::Viewer),
        WRITE,
        apply("x"),
        Code::Ok,
    )
    .await;
    let all = pb::ListAuditEventsRequest {
        include_unattributed: true,
        page_size: 500,
        ..of("home")
    };
    let events = rig.list(HOME, all).await.unwrap();
    assert_eq!(events.len(), 61);
    assert_eq!(events.iter().map(|event| event.count).sum::<u64>(), 300);
    assert_eq!(rig.list(ADMIN, of("red")).await.unwrap().len(), 1);
    rig.stop().await;
}

async fn store(folder: &tempfile::TempDir) -> AuditStore {
    AuditStore::open(folder.path().join("audit.db"), 1).await.unwrap()
}

fn rows(caller: Option<Caller>, clock: &MockClock, count: usize) -> Vec<Counted> {
    let record = AuditRecord {
        resources: vec!["name=teams/red/skills/x".repeat(8)],
        ..denied(caller)
    };
    vec![(record, clock.now(), 1); count]
}

async fn left(store: &AuditStore, team: &str) -> usize {
    let query = Query {
        team: team.to_owned(),
        from: i64::MIN,
        to: i64::MAX,
        after: (i64::MAX, i64::MAX),
        user: String::new(),
        method: String::new(),
        outcome: 0,
        limit: 100_000,
    };
    store.list(query).await.unwrap().len()
}

#[tokio::test]
async fn records_go_when_they_are_old_enough_and_not_before() {
    let folder = tempfile::tempdir().unwrap();
    let (store, clock) = (store(&folder).await, MockClock::default());
    let config = Config {
        keep_days: 10,
        ..Config::default()
    };
    let retention = Retention::new(store.clone(), &config, Arc::new(clock.clone()));
    store
        .add(rows(Some(person("red", "ann")), &clock, 6_000))
        .await
        .unwrap();
    clock.advance(Duration::from_hours(24 * 5));
    store.add(rows(Some(person("red", "ann")), &clock, 3)).await.unwrap();
    assert_eq!(retention.tick().await.unwrap().items, 0);
    clock.advance(Duration::from_hours(24 * 6));
    let mut removed = 0;
    loop {
        let report = retention.tick().await.unwrap();
        removed += report.items;
        if !report.more {
            break;
        }
    }
    assert_eq!((removed, left(&store, "red").await), (6_000, 3));
    store.close().await;
}

#[tokio::test]
async fn where_room_is_needed_records_without_a_team_go_first_and_then_the_oldest() {
    let folder = tempfile::tempdir().unwrap();
    let (store, clock) = (store(&folder).await, MockClock::default());
    let config = Config {
        max_mib: 2,
        ..Config::default()
    };
    let retention = Retention::new(store.clone(), &config, Arc::new(clock.clone()));
    store
        .add(rows(Some(person("red", "ann")), &clock, 1_000))
        .await
        .unwrap();
    store.add(rows(None, &clock, 20_000)).await.unwrap();
    while retention.tick().await.unwrap().more {}
    assert!(store.used_bytes().await.unwrap() <= 2 * 1024 * 1024);
    assert_eq!(left(&store, "red").await, 1_000);
    assert!(left(&store, NO_TEAM).await < 20_000);
    store
        .add(rows(Some(person("blue", "bob")), &clock, 10_000))
        .await
        .unwrap();
    while retention.tick().await.unwrap().more {}
    assert_eq!(
        (left(&store, "red").await, left(&store, NO_TEAM).await),
        (0, 0),
        "they were older"
    );
    store.close().await;
}

#[tokio::test]
async fn a_write_without_a_place_for_its_record_is_not_let_through() {
    let folder = tempfile::tempdir().unwrap();
    let clock = MockClock::default();
    // Nobody writes the queue, as if the disk took nothing.
    let (log, inbox) = AuditLog::new(store(&folder).await, &Config::default(), Arc::new(clock.clone()));
    let mut places = Vec::new();
    while let Some(Some(place)) = log.reserve().now_or_never() {
        places.push(place);
    }
    assert!(places.len() > 1_000);
    tokio::time::pause();
    assert!(log.reserve().await.is_none(), "after a while");
    tokio::time::resume();
    // Denied calls are counted then.
    log.denied(denied(Some(person("red", "ann"))));
    assert_eq!(log.counted(true).len(), 1);
    // One that was given up is free again.
    places.pop();
    assert!(log.reserve().await.is_some());
    drop(inbox);
    log.store().close().await;
}
