//! What every store of bundles and proposals must do.

use std::future::Future;

use super::{SkillStore, UID_A, UID_B, at, new_skill, put, team};
use crate::bundle::{Bundle, BundleKey};
use crate::manage_skill::Manage;
use crate::name::{Category, Scope};
use crate::proposals::{self, Base, Decision, Proposal, ProposalState, Seen, Staged};
use crate::record::Authorship;
use crate::store::{Change, CommitError, Purge};
use steward_base::names::{SkillId, UserId};
use steward_base::{JobRef, Origin};

/// Runs the suite; `open` gives an empty store each time.
pub async fn check<S, F>(open: impl Fn() -> F)
where
    S: SkillStore,
    F: Future<Output = S>,
{
    a_bundle_is_read_back_whole_and_changed_by_version(&open().await).await;
    a_proposal_is_read_back_whole_and_decided_once(&open().await).await;
    a_decision_and_its_change_are_one(&open().await).await;
    proposals_are_listed_oldest_first(&open().await).await;
    a_waiting_write_is_its_persons_alone_and_waits_once(&open().await).await;
    an_expired_write_gives_way_and_a_rejected_one_is_remembered(&open().await).await;
    a_purge_takes_the_writes_that_waited_with_it(&open().await).await;
}

fn user(id: &str) -> UserId {
    UserId::parse(id).expect("an id")
}

fn slug(text: &str) -> SkillId {
    SkillId::parse(text).expect("a slug")
}

fn bundle(owner: Option<&str>, name: &str, version: u64) -> Bundle {
    Bundle {
        key: BundleKey {
            team: team("red"),
            owner: owner.map(user),
            slug: slug(name),
        },
        description: "about \"it\"".to_owned(),
        skills: vec!["one".to_owned(), "team/ops/two".to_owned()],
        instruction: "line\nline".to_owned(),
        version,
        created: at(0),
        updated: at(i64::try_from(version).unwrap_or(0)),
    }
}

async fn a_bundle_is_read_back_whole_and_changed_by_version(store: &impl SkillStore) {
    let (own, shared) = (bundle(Some("ann"), "morning", 1), bundle(None, "morning", 1));
    for new in [&own, &shared, &bundle(None, "evening", 1)] {
        store.save_bundle(new.clone()).await.expect("a bundle");
    }
    assert_eq!(store.bundle(&own.key).await.expect("an answer"), Some(own.clone()));
    let listed = store.bundles(&team("red"), None).await.expect("a list");
    let slugs = listed.iter().map(|bundle| bundle.key.slug.as_str()).collect::<Vec<_>>();
    assert_eq!(slugs, ["evening", "morning"]);
    assert_eq!(
        store.bundles(&team("red"), Some(&user("bob"))).await.expect("a list"),
        []
    );
    assert_eq!(store.bundles(&team("blue"), None).await.expect("a list"), []);
    for stale in [1, 3] {
        let refused = store.save_bundle(bundle(Some("ann"), "morning", stale)).await;
        assert!(matches!(refused, Err(CommitError::VersionMismatch)), "version {stale}");
    }
    let next = bundle(Some("ann"), "morning", 2);
    store.save_bundle(next.clone()).await.expect("a change");
    assert_eq!(store.bundle(&own.key).await.expect("an answer"), Some(next));
    assert!(store.delete_bundle(&own.key).await.expect("an answer"));
    assert!(!store.delete_bundle(&own.key).await.expect("an answer"), "it was gone");
    assert!(store.bundle(&shared.key).await.expect("an answer").is_some());
}

fn proposal(id: &str, uid: &str, author: &str, seconds: i64) -> Proposal {
    Proposal {
        id: id.to_owned(),
        team: team("red"),
        uid: uid.to_owned(),
        skill: "teams/red/users/ann/skills/one".to_owned(),
        revision: "r".repeat(64),
        name: slug("one"),
        category: Category::parse("ops/web").expect("a category"),
        base: Some(Base {
            uid: UID_B.to_owned(),
            revision: "b".repeat(64),
        }),
        author: Some(user(author)),
        reason: "it \"works\"".to_owned(),
        state: ProposalState::Pending,
        decision: None,
        created: at(seconds),
        scope: Scope::Team,
        expires: Some(at(100)),
        staged: None,
    }
}

fn decided(proposal: &Proposal, state: ProposalState) -> Proposal {
    Proposal {
        state,
        decision: Some(Decision {
            by: Some(user("max")),
            at: at(9),
            reason: "good".to_owned(),
        }),
        ..proposal.clone()
    }
}

async fn a_proposal_is_read_back_whole_and_decided_once(store: &impl SkillStore) {
    put(store, new_skill(UID_A, Scope::Team, "", "one")).await;
    let first = proposal("p1", UID_A, "ann", 1);
    assert_eq!(store.add_proposal(first.clone(), None).await.expect("an answer"), None);
    assert_eq!(
        store.proposal(&team("red"), "p1").await.expect("an answer"),
        Some(first.clone())
    );
    assert_eq!(store.proposal(&team("blue"), "p1").await.expect("an answer"), None);
    let second = proposal("p2", UID_A, "ann", 2);
    assert_eq!(
        store.add_proposal(second.clone(), None).await.expect("an answer"),
        Some(first.clone()),
        "one is pending"
    );
    let rejected = decided(&first, ProposalState::Rejected);
    assert!(store.decide(rejected.clone()).await.expect("an answer"));
    assert!(
        !store
            .decide(decided(&first, ProposalState::Approved))
            .await
            .expect("an answer")
    );
    assert_eq!(
        store.proposal(&team("red"), "p1").await.expect("an answer"),
        Some(rejected)
    );
    assert_eq!(
        store.add_proposal(second, None).await.expect("an answer"),
        None,
        "the first one is decided"
    );
}

async fn a_decision_and_its_change_are_one(store: &impl SkillStore) {
    put(store, new_skill(UID_A, Scope::Team, "", "one")).await;
    let first = proposal("p1", UID_A, "ann", 1);
    store.add_proposal(first.clone(), None).await.expect("an answer");
    let approving = |uid: &str, name: &str| Change {
        decides: Some(decided(&first, ProposalState::Approved)),
        ..new_skill(uid, Scope::Team, "", name)
    };
    let in_the_way = store.commit(approving(UID_B, "one")).await;
    assert!(matches!(in_the_way, Err(CommitError::InTheWay(_))), "{in_the_way:?}");
    let state = async || {
        store
            .proposal(&team("red"), "p1")
            .await
            .expect("an answer")
            .expect("it")
            .state
    };
    assert_eq!(state().await, ProposalState::Pending, "half of it was kept");
    store.commit(approving(UID_B, "two")).await.expect("a change");
    assert_eq!(state().await, ProposalState::Approved);
    let again = store.commit(approving(super::UID_C, "three")).await;
    assert!(matches!(again, Err(CommitError::VersionMismatch)), "{again:?}");
    let found = store
        .named(&team("red"), &[Scope::Team], &slug("three"))
        .await
        .expect("an answer");
    assert!(found.is_empty(), "a decided proposal changed something");
}

async fn proposals_are_listed_oldest_first(store: &impl SkillStore) {
    for (uid, name) in [(UID_A, "one"), (UID_B, "two")] {
        put(store, new_skill(uid, Scope::Team, "", name)).await;
    }
    let (old, new) = (proposal("p2", UID_A, "ann", 1), proposal("p1", UID_B, "bob", 5));
    for one in [&new, &old] {
        store.add_proposal(one.clone(), None).await.expect("an answer");
    }
    let red = team("red");
    let list = async |seen: &Seen, after: Option<&str>, limit| {
        let found = store
            .proposals(&red, seen, (ProposalState::Pending, at(9)), after, limit)
            .await
            .expect("a list");
        found.into_iter().map(|proposal| proposal.id).collect::<Vec<_>>()
    };
    let all = seen("max", true);
    assert_eq!(list(&all, None, 10).await, ["p2", "p1"]);
    assert_eq!(list(&all, None, 1).await, ["p2"]);
    assert_eq!(list(&all, Some(&proposals::place(&old)), 10).await, ["p1"]);
    assert_eq!(list(&seen("bob", false), None, 10).await, ["p1"]);
    let none = store
        .proposals(&red, &all, (ProposalState::Approved, at(9)), None, 10)
        .await
        .expect("a list");
    assert_eq!(none, []);
}

fn seen(who: &str, team: bool) -> Seen {
    Seen {
        user: Some(user(who)),
        team,
    }
}

/// A write of a review for Ann's own skills.
fn staged(id: &str, fingerprint: &str, seconds: i64) -> Proposal {
    let by = Authorship {
        user: Some(user("ann")),
        origin: Origin::Review,
        session: Some("s1".to_owned()),
        turn: None,
        job: None,
        reason: "why".to_owned(),
        evidence: Vec::new(),
    };
    let staged = Staged {
        action: Manage::RemoveFile {
            path: "references/ü.md".to_owned(),
        },
        by,
        fingerprint: fingerprint.to_owned(),
        request_hash: "h".to_owned(),
        answer: "{}".to_owned(),
        edited: Some(Manage::Delete { absorbed_into: None }),
    };
    Proposal {
        scope: Scope::User(user("ann")),
        staged: Some(Box::new(staged)),
        ..proposal(id, UID_A, "ann", seconds)
    }
}

async fn a_waiting_write_is_its_persons_alone_and_waits_once(store: &impl SkillStore) {
    put(store, new_skill(UID_A, Scope::User(user("ann")), "", "one")).await;
    let red = team("red");
    let job = |fence| {
        Some(JobRef {
            id: "j".to_owned(),
            fence,
        })
    };
    let first = staged("w1", "same", 1);
    assert_eq!(
        store.add_proposal(first.clone(), job(2)).await.expect("an answer"),
        None
    );
    let again = store.add_proposal(staged("w2", "same", 2), job(2)).await;
    assert_eq!(again.expect("an answer"), Some(first.clone()), "it waits already");
    let stale = store.add_proposal(staged("w3", "other", 3), job(1)).await;
    assert!(
        matches!(stale, Err(CommitError::StaleFence { current: 2 })),
        "{stale:?}"
    );
    // Another write to the same skill, and the skill itself, are other matters.
    assert_eq!(
        store
            .add_proposal(staged("w4", "other", 4), None)
            .await
            .expect("an answer"),
        None
    );
    let promoted = proposal("p1", UID_A, "ann", 5);
    assert_eq!(store.add_proposal(promoted, None).await.expect("an answer"), None);
    let count = async |seen: Seen, seconds| store.waiting(&red, &seen, at(seconds)).await.expect("a count");
    assert_eq!(count(seen("ann", false), 9).await, (3, Some(at(1))));
    assert_eq!(
        count(seen("max", true), 9).await,
        (1, Some(at(5))),
        "not what is Ann's alone"
    );
    assert_eq!(count(seen("bob", false), 9).await, (0, None));
    assert_eq!(count(seen("ann", false), 100).await, (0, None), "they have expired");
}

async fn an_expired_write_gives_way_and_a_rejected_one_is_remembered(store: &impl SkillStore) {
    put(store, new_skill(UID_A, Scope::User(user("ann")), "", "one")).await;
    let red = team("red");
    for (id, seconds) in [("w1", 1), ("w2", 100)] {
        let new = Proposal {
            expires: Some(at(seconds + 50)),
            ..staged(id, "same", seconds)
        };
        assert_eq!(store.add_proposal(new, None).await.expect("an answer"), None, "{id}");
    }
    let ids = async |state, seconds| {
        let found = store
            .proposals(&red, &seen("ann", false), (state, at(seconds)), None, 9)
            .await
            .expect("a list");
        found.into_iter().map(|proposal| proposal.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(ProposalState::Pending, 101).await, ["w2"]);
    assert_eq!(ids(ProposalState::Expired, 101).await, ["w1"]);
    assert_eq!(ids(ProposalState::Expired, 150).await, ["w1", "w2"]);
    let second = store.proposal(&red, "w2").await.expect("an answer").expect("it");
    let rejected = decided(&second, ProposalState::Rejected);
    assert!(store.decide(rejected.clone()).await.expect("an answer"));
    let since = async |print: &str, seconds| store.rejected(&red, print, at(seconds)).await.expect("an answer");
    assert_eq!(since("same", 8).await, Some(rejected));
    assert_eq!(since("same", 9).await, None, "long ago");
    assert_eq!(since("other", 8).await, None);
    assert_eq!(
        store.rejected(&team("blue"), "same", at(8)).await.expect("an answer"),
        None
    );
}

/// A purged skill leaves no text of its own behind, in no proposal either.
async fn a_purge_takes_the_writes_that_waited_with_it(store: &impl SkillStore) {
    let made = put(store, new_skill(UID_A, Scope::User(user("ann")), "", "one")).await;
    store
        .add_proposal(staged("w1", "one", 1), None)
        .await
        .expect("an answer");
    store
        .add_proposal(proposal("p1", UID_A, "ann", 2), None)
        .await
        .expect("an answer");
    let purge = Purge {
        record: made,
        by: "ann".to_owned(),
        at: at(3),
    };
    store.purge(purge).await.expect("a purge");
    assert_eq!(store.proposal(&team("red"), "w1").await.expect("an answer"), None);
    assert!(store.proposal(&team("red"), "p1").await.expect("an answer").is_some());
}
