//! What every store must do. Run it on each implementation; it panics with what is wrong.
#![expect(clippy::panic, clippy::expect_used, reason = "a test suite fails with a sentence")]

pub mod erase;
pub mod library;
pub mod revoked;
pub mod secrets;
pub mod shelf;

use std::future::Future;

use steward_base::names::{SkillId, TeamId, UserId};
use steward_base::{JobRef, Origin, Timestamp};

use super::{Change, CommitError, Purge, Reader, RequestKey, SkillStore, View};
use crate::gate::Provenance;
use crate::name::{Category, Scope};
use crate::path::SkillPath;
use crate::record::{
    Archival, Authorship, Evidence, Files, HeaderState, NewRevision, Revision, SkillRecord, State, Usage,
};

/// Runs the suite; `open` gives an empty store each time.
pub async fn check<S, F>(open: impl Fn() -> F)
where
    S: SkillStore,
    F: Future<Output = S>,
{
    what_was_written_is_read_back_whole(&open().await).await;
    a_change_rests_on_the_version_it_names(&open().await).await;
    names_and_folders_in_use_are_not_given_twice(&open().await).await;
    teams_and_users_do_not_meet(&open().await).await;
    a_stale_fence_cannot_write(&open().await).await;
    a_request_id_keeps_its_first_answer(&open().await).await;
    looks_are_counted_and_remembered(&open().await).await;
    revisions_are_listed_newest_first(&open().await).await;
    a_purge_leaves_nothing_behind(&open().await).await;
    what_is_hidden_is_hidden_from_the_right_people(&open().await).await;
    the_generation_follows_changes_and_no_uses(&open().await).await;
}

const UID_A: &str = "0198c00000007000800000000000000a";
const UID_B: &str = "0198c00000007000800000000000000b";
const UID_C: &str = "0198c00000007000800000000000000c";
const UID_D: &str = "0198c00000007000800000000000000d";

fn team(name: &str) -> TeamId {
    TeamId::parse(name).expect("a team id")
}

fn path(text: &str) -> SkillPath {
    SkillPath::parse(text).expect("a path")
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_secs(1_795_910_400 + seconds)
}

fn authorship() -> Authorship {
    Authorship {
        user: UserId::parse("ann").ok(),
        origin: Origin::Review,
        session: Some("s1".to_owned()),
        turn: None,
        job: Some(JobRef {
            id: "j1".to_owned(),
            fence: 2,
        }),
        reason: "it \"worked\"".to_owned(),
        evidence: vec![Evidence {
            session: "teams/red/sessions/s1".to_owned(),
            spans: vec!["s1".to_owned(), "s2.1".to_owned()],
            basis: "checked".to_owned(),
            integrity: steward_base::Integrity::from_level(3),
        }],
    }
}

fn user_scope(user: &str) -> Scope {
    Scope::User(UserId::parse(user).expect("a user id"))
}

fn new_skill(uid: &str, scope: Scope, category: &str, name: &str) -> Change {
    let files = Files::from([
        (SkillPath::skill_md(), format!("about {name}").into_bytes()),
        (path("assets/raw.bin"), vec![0, 159, 146, 150]),
    ]);
    let new = NewRevision {
        parent: None,
        action: "create",
        files: &files,
        by: authorship(),
        restored_from: None,
        created: at(0),
    };
    let revision = new.seal(uid);
    let record = SkillRecord {
        team: team("red"),
        uid: uid.to_owned(),
        scope,
        name: SkillId::parse(name).expect("a name"),
        category: Category::parse(category).expect("a category"),
        provenance: Provenance::AgentCreated,
        author: UserId::parse("ann").ok(),
        pinned: false,
        protected: false,
        state: State::Active,
        version: 1,
        revision: revision.id.clone(),
        number: 1,
        tree: revision.tree.clone(),
        header: HeaderState::Broken("no header".to_owned()),
        usage: Usage::default(),
        created: at(0),
        updated: at(0),
    };
    Change {
        record,
        expected: None,
        revision: Some((revision, files)),
        beneath: None,
        is_patch: false,
        reader: None,
        fence: None,
        answer: None,
        decides: None,
    }
}

/// The next revision of a record, with one file changed.
fn next(record: &SkillRecord, text: &str, seconds: i64) -> Change {
    let files = Files::from([(SkillPath::skill_md(), text.as_bytes().to_vec())]);
    let new = NewRevision {
        parent: Some(record),
        action: "patch",
        files: &files,
        by: authorship(),
        restored_from: Some(record.revision.clone()),
        created: at(seconds),
    };
    let revision = new.seal(&record.uid);
    let record = SkillRecord {
        version: record.version + 1,
        revision: revision.id.clone(),
        number: revision.number,
        tree: revision.tree.clone(),
        updated: at(seconds),
        ..record.clone()
    };
    Change {
        expected: Some(record.version - 1),
        record,
        revision: Some((revision, files)),
        beneath: None,
        is_patch: true,
        reader: None,
        fence: None,
        answer: None,
        decides: None,
    }
}

fn archived(record: &SkillRecord) -> Change {
    let archival = Archival {
        at: at(9),
        origin: Origin::Curation,
        deleted: true,
        absorbed_into: "other".to_owned(),
    };
    let record = SkillRecord {
        version: record.version + 1,
        state: State::Archived(archival),
        pinned: true,
        ..record.clone()
    };
    Change {
        expected: Some(record.version - 1),
        record,
        revision: None,
        beneath: None,
        is_patch: false,
        reader: None,
        fence: None,
        answer: None,
        decides: None,
    }
}

async fn put(store: &impl SkillStore, change: Change) -> SkillRecord {
    let record = change.record.clone();
    store
        .commit(change)
        .await
        .unwrap_or_else(|error| panic!("the change was refused: {error}"));
    record
}

async fn only(store: &impl SkillStore, name: &str, scopes: &[Scope]) -> Option<SkillRecord> {
    let name = SkillId::parse(name).expect("a name");
    let mut found = store.named(&team("red"), scopes, &name).await.expect("an answer");
    assert!(found.len() <= 1, "more than one {name}: {found:?}");
    found.pop().map(|found| found.expect("a readable record"))
}

async fn what_was_written_is_read_back_whole(store: &impl SkillStore) {
    let change = new_skill(UID_A, user_scope("ann"), "ops/db", "backup");
    let (revision, files) = change.revision.clone().expect("a revision");
    let record = put(store, change).await;
    assert_eq!(only(store, "backup", &[user_scope("ann")]).await, Some(record.clone()));
    assert_eq!(
        store
            .revision(&record.team, UID_A, &revision.id)
            .await
            .expect("an answer"),
        Some(revision.clone())
    );
    assert_eq!(store.files(&record.team, &revision).await.expect("files"), files);
    let record = put(store, archived(&record)).await;
    assert_eq!(only(store, "backup", &[user_scope("ann")]).await, Some(record.clone()));
    assert_eq!(
        store
            .list(&record.team, &[user_scope("ann")], true)
            .await
            .expect("a list"),
        [Ok(record.clone())]
    );
    assert_eq!(
        store
            .list(&record.team, &[user_scope("ann")], false)
            .await
            .expect("a list"),
        []
    );
}

async fn a_change_rests_on_the_version_it_names(store: &impl SkillStore) {
    let record = put(store, new_skill(UID_A, Scope::Team, "", "one")).await;
    let (first, second) = (next(&record, "first", 1), next(&record, "second", 2));
    let winner = put(store, first).await;
    assert!(
        matches!(store.commit(second).await, Err(CommitError::VersionMismatch)),
        "a stale change was applied"
    );
    let again = new_skill(UID_A, Scope::Team, "", "two");
    assert!(
        matches!(store.commit(again).await, Err(CommitError::VersionMismatch)),
        "a uid was given twice"
    );
    let found = only(store, "one", &[Scope::Team]).await.expect("the skill");
    assert_eq!((found.revision, found.version), (winner.revision, 2));
    assert_eq!(found.usage.patches, 1);
    assert_eq!(found.usage.last_patched, Some(at(1)));
}

async fn names_and_folders_in_use_are_not_given_twice(store: &impl SkillStore) {
    let first = put(store, new_skill(UID_A, Scope::Team, "data", "clean")).await;
    for (category, name) in [("", "data"), ("other", "clean"), ("data/clean", "x")] {
        match store.commit(new_skill(UID_B, Scope::Team, category, name)).await {
            Err(CommitError::InTheWay(names)) => assert_eq!(names, ["team/data/clean"]),
            other => panic!("{category}/{name} was answered with {other:?}"),
        }
    }
    let record = put(store, archived(&first)).await;
    put(store, new_skill(UID_B, Scope::Team, "", "clean")).await;
    let revived = SkillRecord {
        state: State::Active,
        version: record.version + 1,
        ..record.clone()
    };
    let restore = Change {
        expected: Some(record.version),
        record: revived,
        ..archived(&record)
    };
    assert!(
        matches!(store.commit(restore).await, Err(CommitError::InTheWay(_))),
        "two skills have one name"
    );
}

async fn teams_and_users_do_not_meet(store: &impl SkillStore) {
    let ann = put(store, new_skill(UID_A, user_scope("ann"), "", "same")).await;
    put(store, new_skill(UID_B, user_scope("bob"), "", "same")).await;
    let mut foreign = new_skill(UID_A, user_scope("ann"), "", "same");
    foreign.record.team = team("blue");
    put(store, foreign).await;
    assert_eq!(
        only(store, "same", &[user_scope("ann"), Scope::Team]).await,
        Some(ann.clone())
    );
    let listed = store
        .list(&team("red"), &[user_scope("ann")], false)
        .await
        .expect("a list");
    assert_eq!(listed, [Ok(ann)]);
}

async fn a_stale_fence_cannot_write(store: &impl SkillStore) {
    let job = |fence| {
        Some(JobRef {
            id: "j1".to_owned(),
            fence,
        })
    };
    let first = put(
        store,
        Change {
            fence: job(2),
            ..new_skill(UID_A, Scope::Team, "", "one")
        },
    )
    .await;
    let stale = Change {
        fence: job(1),
        ..next(&first, "stale", 1)
    };
    match store.commit(stale).await {
        Err(CommitError::StaleFence { current }) => assert_eq!(current, 2),
        other => panic!("a stale fence was answered with {other:?}"),
    }
    assert_eq!(
        only(store, "one", &[Scope::Team]).await.map(|record| record.version),
        Some(1)
    );
    put(
        store,
        Change {
            fence: job(3),
            ..next(&first, "newer", 2)
        },
    )
    .await;
}

async fn a_request_id_keeps_its_first_answer(store: &impl SkillStore) {
    let key = RequestKey {
        scope: "user/ann".to_owned(),
        id: "r1".to_owned(),
        hash: "h1".to_owned(),
    };
    let change = new_skill(UID_A, Scope::Team, "", "one");
    let record = put(
        store,
        Change {
            answer: Some((key.clone(), "made".to_owned())),
            ..change
        },
    )
    .await;
    let other = RequestKey {
        hash: "h2".to_owned(),
        ..key.clone()
    };
    match store
        .commit(Change {
            answer: Some((other, "again".to_owned())),
            ..next(&record, "x", 1)
        })
        .await
    {
        Err(CommitError::Answered(first)) => assert_eq!((first.hash.as_str(), first.answer.as_str()), ("h1", "made")),
        result => panic!("a used request id was answered with {result:?}"),
    }
    let first = store
        .first_answer(&team("red"), "user/ann", "r1")
        .await
        .expect("an answer");
    assert_eq!(first.map(|first| first.answer), Some("made".to_owned()));
    for (of_team, scope, id) in [
        ("blue", "user/ann", "r1"),
        ("red", "user/bob", "r1"),
        ("red", "user/ann", "r2"),
    ] {
        assert_eq!(
            store.first_answer(&team(of_team), scope, id).await.expect("an answer"),
            None
        );
    }
}

async fn looks_are_counted_and_remembered(store: &impl SkillStore) {
    let record = put(store, new_skill(UID_A, Scope::Team, "", "one")).await;
    let reader = Reader::Session("s1".to_owned());
    let view = |revision: &str, reader: Option<&Reader>, is_use| View {
        team: team("red"),
        uid: UID_A.to_owned(),
        revision: revision.to_owned(),
        reader: reader.cloned(),
        is_use,
        at: at(5),
    };
    assert_eq!(
        store.last_read(&team("red"), &reader, UID_A).await.expect("an answer"),
        None
    );
    store
        .record_view(view(&record.revision, Some(&reader), true))
        .await
        .expect("counted");
    store
        .record_view(view(&record.revision, None, true))
        .await
        .expect("counted");
    store
        .record_view(view(&record.revision, None, false))
        .await
        .expect("counted");
    let read = store.last_read(&team("red"), &reader, UID_A).await.expect("an answer");
    assert_eq!(read.as_ref(), Some(&record.revision));
    let other = Reader::Job("s1".to_owned());
    assert_eq!(
        store.last_read(&team("red"), &other, UID_A).await.expect("an answer"),
        None
    );
    let usage = only(store, "one", &[Scope::Team]).await.expect("the skill").usage;
    assert_eq!(
        (usage.views, usage.uses, usage.review_views, usage.last_used),
        (2, 2, 1, Some(at(5)))
    );
    // A look is no change: what was read before still fits.
    let changed = put(
        store,
        Change {
            reader: Some(reader.clone()),
            ..next(&record, "x", 6)
        },
    )
    .await;
    let read = store.last_read(&team("red"), &reader, UID_A).await.expect("an answer");
    assert_eq!(read, Some(changed.revision));
    let usage = only(store, "one", &[Scope::Team]).await.expect("the skill").usage;
    assert_eq!((usage.views, usage.patches), (2, 1));
}

async fn revisions_are_listed_newest_first(store: &impl SkillStore) {
    let mut record = put(store, new_skill(UID_A, Scope::Team, "", "one")).await;
    let mut ids = vec![record.revision.clone()];
    for step in 1..5 {
        record = put(store, next(&record, "same text", step)).await;
        ids.push(record.revision.clone());
    }
    ids.reverse();
    let newest = store.revisions(&record.team, UID_A, None, 2).await.expect("revisions");
    let older = store
        .revisions(&record.team, UID_A, newest.last().map(|last| last.number), 9)
        .await
        .expect("revisions");
    let listed = newest
        .iter()
        .chain(&older)
        .map(|revision| revision.id.clone())
        .collect::<Vec<_>>();
    assert_eq!(listed, ids);
    let parents = newest
        .iter()
        .chain(&older)
        .map(|revision| revision.parent.clone())
        .collect::<Vec<_>>();
    assert_eq!(
        parents,
        ids.iter().skip(1).cloned().map(Some).chain([None]).collect::<Vec<_>>()
    );
    let by: Option<&Revision> = newest.first();
    assert_eq!(by.map(|revision| &revision.by), Some(&authorship()));
    assert!(
        store
            .revision(&record.team, UID_A, "no such id")
            .await
            .expect("an answer")
            .is_none()
    );
}

async fn a_purge_leaves_nothing_behind(store: &impl SkillStore) {
    let keep = put(store, new_skill(UID_B, Scope::Team, "", "keep")).await;
    let key = RequestKey {
        scope: "user/ann".to_owned(),
        id: "r1".to_owned(),
        hash: "h".to_owned(),
    };
    let reader = Reader::Job("j".to_owned());
    let change = Change {
        answer: Some((key, "made".to_owned())),
        reader: Some(reader.clone()),
        ..new_skill(UID_A, Scope::Team, "", "gone")
    };
    let (revision, _) = change.revision.clone().expect("a revision");
    let record = put(store, change).await;
    let gone = put(store, archived(&record)).await;
    let purge = |record: &SkillRecord| Purge {
        record: record.clone(),
        by: "ann".to_owned(),
        at: at(20),
    };
    assert!(
        matches!(store.purge(purge(&record)).await, Err(CommitError::VersionMismatch)),
        "a stale purge was done"
    );
    assert_eq!(store.purge(purge(&gone)).await.expect("a purge"), 1);
    assert_eq!(only(store, "gone", &[Scope::Team]).await, None);
    assert_eq!(
        store.revisions(&gone.team, UID_A, None, 9).await.expect("an answer"),
        []
    );
    assert_eq!(
        store.last_read(&gone.team, &reader, UID_A).await.expect("an answer"),
        None
    );
    assert_eq!(
        store
            .first_answer(&gone.team, "user/ann", "r1")
            .await
            .expect("an answer"),
        None
    );
    assert!(
        store.files(&gone.team, &revision).await.is_err(),
        "a blob that nothing uses is still there"
    );
    let kept = store.revisions(&keep.team, UID_B, None, 1).await.expect("an answer");
    let kept = kept.first().expect("a revision");
    assert_eq!(
        store.files(&keep.team, kept).await.expect("files").len(),
        2,
        "a shared blob is gone"
    );
}

async fn what_is_hidden_is_hidden_from_the_right_people(store: &impl SkillStore) {
    for (uid, name) in [(UID_A, "one"), (UID_B, "two")] {
        put(store, new_skill(uid, Scope::Team, "", name)).await;
    }
    let (red, ann, bob) = (
        team("red"),
        UserId::parse("ann").expect("an id"),
        UserId::parse("bob").expect("an id"),
    );
    let hidden = async |user| {
        store
            .hidden(&red, user)
            .await
            .expect("an answer")
            .into_iter()
            .collect::<Vec<_>>()
    };
    store.set_hidden(&red, Some(&ann), UID_A, true).await.expect("hidden");
    store.set_hidden(&red, None, UID_B, true).await.expect("hidden");
    store.set_hidden(&red, None, UID_B, true).await.expect("hidden again");
    assert_eq!(hidden(Some(&ann)).await, [UID_A, UID_B]);
    assert_eq!(hidden(Some(&bob)).await, [UID_B]);
    assert_eq!(hidden(None).await, [UID_B]);
    assert!(
        store
            .hidden(&team("blue"), Some(&ann))
            .await
            .expect("an answer")
            .is_empty()
    );
    store.set_hidden(&red, None, UID_B, false).await.expect("shown");
    assert_eq!(
        hidden(Some(&ann)).await,
        [UID_A],
        "what the team shows again is not what the person hides"
    );
}

async fn the_generation_follows_changes_and_no_uses(store: &impl SkillStore) {
    let red = team("red");
    let mut last = store.generation(&red).await.expect("a number");
    let mut moved = async |what: &str, expected: bool| {
        let now = store.generation(&red).await.expect("a number");
        assert_eq!(now != last, expected, "{what}");
        last = now;
    };
    let made = put(store, new_skill(UID_A, Scope::Team, "", "one")).await;
    moved("a creation", true).await;
    let view = View {
        team: red.clone(),
        uid: UID_A.to_owned(),
        revision: made.revision.clone(),
        reader: None,
        is_use: true,
        at: at(5),
    };
    store.record_view(view).await.expect("a look");
    moved("a look", false).await;
    put(store, next(&made, "new", 6)).await;
    moved("a change", true).await;
    store.set_hidden(&red, None, UID_A, true).await.expect("hidden");
    moved("a hiding", true).await;
    store.set_hidden(&red, None, UID_A, false).await.expect("shown");
    moved("a showing", true).await;
}
