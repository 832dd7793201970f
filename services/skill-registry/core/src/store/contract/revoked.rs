//! What every store must do about trees that a team revoked (`H-2`): whoever brings one, it does not get into use.

use super::{Future, Scope, SkillStore, TeamId, UID_A, UID_B, UID_C, archived, at, new_skill, next, only, put, team};
use crate::library::{Age, AgeChange, LibraryStore, NewSnapshot, RunChange};
use crate::path::SkillPath;
use crate::record::{Files, SkillRecord, State};
use crate::store::{Change, CommitError};

/// Runs the suite; `open` gives an empty store each time, `set` revokes a tree for a team or lifts that.
pub async fn check<S, F, G>(open: impl Fn() -> F, set: impl Fn(&S, TeamId, Files, bool) -> G)
where
    S: LibraryStore,
    F: Future<Output = S>,
    G: Future<Output = ()>,
{
    no_revision_brings_a_revoked_tree_into_use(&open().await, &set).await;
    nothing_comes_back_from_the_archive_revoked(&open().await, &set).await;
    what_is_in_use_can_still_be_kept_and_set_aside(&open().await, &set).await;
}

fn text(text: &str) -> Files {
    Files::from([(SkillPath::skill_md(), text.as_bytes().to_vec())])
}

fn files_of(change: &Change) -> Files {
    change.revision.as_ref().expect("a revision").1.clone()
}

fn back(record: &SkillRecord) -> Change {
    let record = SkillRecord {
        version: record.version + 1,
        state: State::Active,
        ..record.clone()
    };
    Change::of(record.clone(), Some(record.version - 1), None)
}

async fn refused(store: &impl SkillStore, change: Change) {
    let answer = store.commit(change).await;
    assert!(matches!(answer, Err(CommitError::Revoked)), "{answer:?}");
}

async fn no_revision_brings_a_revoked_tree_into_use<S, G>(store: &S, set: &impl Fn(&S, TeamId, Files, bool) -> G)
where
    S: LibraryStore,
    G: Future<Output = ()>,
{
    let first = put(store, new_skill(UID_A, Scope::Team, "", "one")).await;
    let bad = put(store, next(&first, "bad", 1)).await;
    let good = put(store, next(&bad, "good", 2)).await;
    set(store, team("red"), text("bad"), true).await;
    refused(store, next(&good, "bad", 3)).await;
    assert_eq!(
        only(store, "one", &[Scope::Team]).await.map(|found| found.tree),
        Some(good.tree.clone()),
        "what is refused changes nothing"
    );
    let better = put(store, next(&good, "better", 4)).await;
    let new = new_skill(UID_B, Scope::Hub, "", "two");
    set(store, team("red"), files_of(&new), true).await;
    refused(store, new.clone()).await;
    assert_eq!(only(store, "two", &[Scope::Hub]).await, None);
    let mut foreign = new.clone();
    foreign.record.team = team("blue");
    put(store, foreign).await;
    set(store, team("red"), files_of(&new), false).await;
    put(store, new).await;
    set(store, team("red"), text("bad"), false).await;
    put(store, next(&better, "bad", 5)).await;
}

async fn nothing_comes_back_from_the_archive_revoked<S, G>(store: &S, set: &impl Fn(&S, TeamId, Files, bool) -> G)
where
    S: LibraryStore,
    G: Future<Output = ()>,
{
    let new = new_skill(UID_A, Scope::Team, "", "one");
    let files = files_of(&new);
    let record = put(store, new).await;
    let record = put(store, archived(&record)).await;
    set(store, team("red"), files.clone(), true).await;
    refused(store, back(&record)).await;
    let snapshot = NewSnapshot {
        team: team("red"),
        run: "run".to_owned(),
        fence: None,
        now: at(10),
        keep: 9,
        spare: None,
    };
    store.take_snapshot(snapshot).await.expect("a snapshot");
    let by_run = AgeChange {
        log: RunChange {
            run: "run".to_owned(),
            uid: record.uid.clone(),
            name: record.resource_name(),
            from: Age::Archived,
            to: Age::Active,
            version: record.version + 1,
        },
        uses: record.usage.uses,
        stale_since: None,
        change: back(&record),
    };
    let answer = store.change_age(by_run.clone()).await;
    assert!(matches!(answer, Err(CommitError::Revoked)), "{answer:?}");
    let changes = store.run_changes(&team("red"), "run").await.expect("an answer");
    assert!(changes.is_empty(), "a refused change leaves no line: {changes:?}");
    set(store, team("red"), files, false).await;
    store.change_age(by_run).await.expect("it is revoked no more");
}

async fn what_is_in_use_can_still_be_kept_and_set_aside<S, G>(store: &S, set: &impl Fn(&S, TeamId, Files, bool) -> G)
where
    S: LibraryStore,
    G: Future<Output = ()>,
{
    let new = new_skill(UID_C, Scope::Team, "", "one");
    let files = files_of(&new);
    let record = put(store, new).await;
    set(store, team("red"), files, true).await;
    let pinned = SkillRecord {
        pinned: true,
        ..back(&record).record
    };
    let record = put(store, Change::of(pinned, Some(record.version), None)).await;
    let record = put(store, next(&record, "mended", 3)).await;
    put(store, archived(&record)).await;
}
