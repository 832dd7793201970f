//! What every store of a library must do.

use super::{Future, JobRef, Provenance, Scope, UID_A, UID_B, UID_C, UID_D, at, new_skill, next, put, team};
use crate::library::{Age, AgeChange, LibraryRecord, LibraryStore, NewSnapshot, RunChange};
use crate::record::SkillRecord;
use crate::store::{Change, CommitError, View};

/// Runs the suite; `open` gives an empty store each time.
pub async fn check<S, F>(open: impl Fn() -> F)
where
    S: LibraryStore,
    F: Future<Output = S>,
{
    only_what_automatic_processes_made_is_listed(&open().await).await;
    a_use_and_a_patch_end_staleness_at_once(&open().await).await;
    a_change_rests_on_version_and_use(&open().await).await;
    a_run_has_one_snapshot_and_old_ones_go(&open().await).await;
    a_stale_claim_takes_no_snapshot(&open().await).await;
    what_a_schedule_names_is_known_until_it_names_another(&open().await).await;
}

fn snapshot(run: &str, keep: u32) -> NewSnapshot {
    NewSnapshot {
        team: team("red"),
        run: run.to_owned(),
        fence: None,
        now: at(100),
        keep,
        spare: None,
    }
}

async fn record(store: &impl LibraryStore, uid: &str) -> LibraryRecord {
    let found = store.library_record(&team("red"), uid).await.expect("an answer");
    found.expect("a skill").expect("a readable record")
}

fn stale(before: &LibraryRecord, run: &str) -> AgeChange {
    let record = SkillRecord {
        version: before.record.version + 1,
        ..before.record.clone()
    };
    AgeChange {
        log: RunChange {
            run: run.to_owned(),
            uid: record.uid.clone(),
            name: record.resource_name(),
            from: before.age(),
            to: Age::Stale,
            version: record.version,
        },
        uses: before.record.usage.uses,
        stale_since: Some(at(50)),
        change: Change::of(record, Some(before.record.version), None),
    }
}

async fn only_what_automatic_processes_made_is_listed(store: &impl LibraryStore) {
    let made = put(store, new_skill(UID_A, Scope::Team, "", "made")).await;
    let mut other = new_skill(UID_B, Scope::Team, "", "other");
    other.record.provenance = Provenance::UserMade;
    put(store, other).await;
    let mut builtin = new_skill(UID_C, Scope::Builtin, "", "shipped");
    builtin.record.provenance = Provenance::Builtin;
    put(store, builtin).await;
    let mut protected = new_skill(UID_D, Scope::Builtin, "", "needed");
    protected.record.provenance = Provenance::Builtin;
    protected.record.protected = true;
    put(store, protected).await;
    let with_builtins = store
        .library_records(&team("red"), None, 10, true)
        .await
        .expect("a list");
    let uids: Vec<_> = with_builtins
        .iter()
        .flatten()
        .map(|found| found.record.uid.as_str())
        .collect();
    assert_eq!(
        uids,
        [UID_A, UID_C],
        "`C-3`: builtins that are not protected, and only where they are asked for"
    );
    let listed = store
        .library_records(&team("red"), None, 10, false)
        .await
        .expect("a list");
    let expected = LibraryRecord {
        record: made,
        stale_since: None,
        last_change: at(0),
        referenced: false,
    };
    assert_eq!(listed, [Ok(expected)]);
    let behind = store
        .library_records(&team("red"), Some(UID_A), 10, false)
        .await
        .expect("a list");
    assert_eq!(behind, []);
    let foreign = store
        .library_records(&team("blue"), None, 10, true)
        .await
        .expect("a list");
    assert_eq!(foreign, []);
}

async fn a_use_and_a_patch_end_staleness_at_once(store: &impl LibraryStore) {
    put(store, new_skill(UID_A, Scope::Team, "", "one")).await;
    store.take_snapshot(snapshot("run", 10)).await.expect("a snapshot");
    let fresh = record(store, UID_A).await;
    store.change_age(stale(&fresh, "run")).await.expect("a change");
    let view = |is_use| View {
        team: team("red"),
        uid: UID_A.to_owned(),
        revision: fresh.record.revision.clone(),
        reader: None,
        is_use,
        at: at(60),
    };
    store.record_view(view(false)).await.expect("a look");
    assert_eq!(
        record(store, UID_A).await.age(),
        Age::Stale,
        "a review's look is no use"
    );
    store.record_view(view(true)).await.expect("a use");
    let used = record(store, UID_A).await;
    assert_eq!((used.age(), used.record.usage.last_used), (Age::Active, Some(at(60))));
    store.take_snapshot(snapshot("run-2", 10)).await.expect("a snapshot");
    store.change_age(stale(&used, "run-2")).await.expect("a change");
    let again = record(store, UID_A).await;
    put(store, next(&again.record, "new", 70)).await;
    let patched = record(store, UID_A).await;
    assert_eq!((patched.age(), patched.last_change), (Age::Active, at(70)));
}

async fn a_change_rests_on_version_and_use(store: &impl LibraryStore) {
    put(store, new_skill(UID_A, Scope::Team, "", "one")).await;
    store.take_snapshot(snapshot("run", 10)).await.expect("a snapshot");
    let before = record(store, UID_A).await;
    let used = AgeChange {
        uses: 7,
        ..stale(&before, "run")
    };
    let refused = store.change_age(used).await;
    assert!(
        matches!(refused, Err(CommitError::VersionMismatch)),
        "a use was overlooked"
    );
    assert_eq!(record(store, UID_A).await, before, "half a change was kept");
    let change = stale(&before, "run");
    store.change_age(change.clone()).await.expect("a change");
    let refused = store.change_age(change.clone()).await;
    assert!(
        matches!(refused, Err(CommitError::VersionMismatch)),
        "a change was overlooked"
    );
    let changes = store.run_changes(&team("red"), "run").await.expect("the changes");
    assert_eq!(changes, [change.log]);
}

async fn a_run_has_one_snapshot_and_old_ones_go(store: &impl LibraryStore) {
    put(store, new_skill(UID_A, Scope::Team, "", "one")).await;
    let first = store.take_snapshot(snapshot("run-1", 2)).await.expect("a snapshot");
    let before = record(store, UID_A).await;
    store.change_age(stale(&before, "run-1")).await.expect("a change");
    let again = store.take_snapshot(snapshot("run-1", 2)).await.expect("a snapshot");
    assert_eq!(again, first, "the second try took another snapshot");
    assert_eq!((first.skills.len(), first.skills[0].age()), (1, Age::Active));
    for run in ["run-2", "run-3"] {
        let new = NewSnapshot {
            spare: Some("run-1".to_owned()),
            ..snapshot(run, 2)
        };
        store.take_snapshot(new).await.expect("a snapshot");
    }
    let kept = store.snapshot(&team("red"), "run-1").await.expect("an answer");
    assert_eq!(kept.as_ref(), Some(&first), "a snapshot that is needed went");
    store.take_snapshot(snapshot("run-4", 2)).await.expect("a snapshot");
    for (run, is_kept) in [("run-1", false), ("run-2", false), ("run-3", true), ("run-4", true)] {
        let found = store.snapshot(&team("red"), run).await.expect("an answer");
        assert_eq!(found.is_some(), is_kept, "{run}");
        let was_dropped = store.was_dropped(&team("red"), run).await.expect("an answer");
        assert_eq!(was_dropped, !is_kept, "{run}");
    }
    assert!(!store.was_dropped(&team("red"), "never").await.expect("an answer"));
    assert!(!store.was_dropped(&team("blue"), "run-1").await.expect("an answer"));
    let changes = store.run_changes(&team("red"), "run-1").await.expect("the changes");
    assert_eq!(changes, []);
}

async fn a_stale_claim_takes_no_snapshot(store: &impl LibraryStore) {
    let claim = |run: &str, fence| NewSnapshot {
        fence: Some(JobRef {
            id: "job".to_owned(),
            fence,
        }),
        ..snapshot(run, 2)
    };
    store.take_snapshot(claim("run-1", 2)).await.expect("a snapshot");
    match store.take_snapshot(claim("run-2", 1)).await {
        Err(CommitError::StaleFence { current }) => assert_eq!(current, 2),
        other => panic!("a stale fence was answered with {other:?}"),
    }
}

async fn what_a_schedule_names_is_known_until_it_names_another(store: &impl LibraryStore) {
    for (uid, name) in [(UID_A, "one"), (UID_B, "two")] {
        put(store, new_skill(uid, Scope::Team, "", name)).await;
    }
    let red = team("red");
    let set = async |holder: &str, uids: &[&str]| {
        let uids: Vec<_> = uids.iter().map(|&uid| uid.to_owned()).collect();
        store.set_references(&red, holder, &uids).await.expect("references");
    };
    set("schedules/nightly", &[UID_A, UID_B]).await;
    set("schedules/weekly", &[UID_A]).await;
    assert!(record(store, UID_A).await.referenced && record(store, UID_B).await.referenced);
    assert!(!store.is_referenced(&team("blue"), UID_A).await.expect("an answer"));
    set("schedules/nightly", &[UID_B]).await;
    assert!(
        store.is_referenced(&red, UID_A).await.expect("an answer"),
        "another schedule names it"
    );
    set("schedules/weekly", &[]).await;
    set("schedules/nightly", &[]).await;
    for uid in [UID_A, UID_B] {
        assert!(!record(store, uid).await.referenced, "{uid}");
    }
}
