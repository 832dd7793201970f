//! What every store of bundles and proposals must do.

use std::future::Future;

use super::{SkillStore, UID_A, UID_B, at, new_skill, put, team};
use crate::bundle::{Bundle, BundleKey};
use crate::name::{Category, Scope};
use crate::proposals::{self, Base, Decision, Proposal, ProposalState};
use crate::store::{Change, CommitError};
use steward_base::names::{SkillId, UserId};

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
        author: user(author),
        reason: "it \"works\"".to_owned(),
        state: ProposalState::Pending,
        decision: None,
        created: at(seconds),
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
    assert_eq!(store.add_proposal(first.clone()).await.expect("an answer"), None);
    assert_eq!(
        store.proposal(&team("red"), "p1").await.expect("an answer"),
        Some(first.clone())
    );
    assert_eq!(store.proposal(&team("blue"), "p1").await.expect("an answer"), None);
    let second = proposal("p2", UID_A, "ann", 2);
    assert_eq!(
        store.add_proposal(second.clone()).await.expect("an answer"),
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
        store.add_proposal(second).await.expect("an answer"),
        None,
        "the first one is decided"
    );
}

async fn a_decision_and_its_change_are_one(store: &impl SkillStore) {
    put(store, new_skill(UID_A, Scope::Team, "", "one")).await;
    let first = proposal("p1", UID_A, "ann", 1);
    store.add_proposal(first.clone()).await.expect("an answer");
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
        store.add_proposal(one.clone()).await.expect("an answer");
    }
    let red = team("red");
    let list = async |author: Option<&UserId>, after: Option<&str>, limit| {
        let found = store
            .proposals(&red, author, ProposalState::Pending, after, limit)
            .await
            .expect("a list");
        found.into_iter().map(|proposal| proposal.id).collect::<Vec<_>>()
    };
    assert_eq!(list(None, None, 10).await, ["p2", "p1"]);
    assert_eq!(list(None, None, 1).await, ["p2"]);
    assert_eq!(list(None, Some(&proposals::place(&old)), 10).await, ["p1"]);
    assert_eq!(list(Some(&user("bob")), None, 10).await, ["p1"]);
    let none = store
        .proposals(&red, None, ProposalState::Approved, None, 10)
        .await
        .expect("a list");
    assert_eq!(none, []);
}
