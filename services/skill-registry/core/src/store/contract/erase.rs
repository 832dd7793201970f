//! What a store must do about the erasure of a person.

use std::future::Future;

use steward_base::names::{SkillId, UserId};

use super::{UID_A, UID_B, UID_C, at, new_skill, put, team};
use crate::bundle::{Bundle, BundleKey};
use crate::name::Scope;
use crate::store::{Erased, Erasure, SkillStore};

/// Runs the suite; `open` gives an empty store each time.
pub async fn check<S, F>(open: impl Fn() -> F)
where
    S: SkillStore,
    F: Future<Output = S>,
{
    what_is_one_persons_alone_is_gone(&open().await).await;
    nobody_elses_is_touched(&open().await).await;
}

fn user(id: &str) -> UserId {
    UserId::parse(id).expect("a user id")
}

fn of(id: &str) -> Erasure {
    Erasure {
        team: team("red"),
        user: user(id),
        by: "max".to_owned(),
        at: at(9),
    }
}

fn bundle(owner: Option<&str>) -> Bundle {
    Bundle {
        key: BundleKey {
            team: team("red"),
            owner: owner.map(user),
            slug: SkillId::parse("mornings").expect("a slug"),
        },
        description: "Mornings".to_owned(),
        skills: vec!["one".to_owned()],
        instruction: String::new(),
        version: 1,
        created: at(1),
        updated: at(1),
    }
}

async fn what_is_one_persons_alone_is_gone(store: &impl SkillStore) {
    let own = Scope::User(user("ann"));
    put(store, new_skill(UID_A, own.clone(), "", "one")).await;
    put(store, new_skill(UID_B, Scope::Team, "", "two")).await;
    store.save_bundle(bundle(Some("ann"))).await.expect("a bundle");
    store
        .set_hidden(&team("red"), Some(&user("ann")), UID_B, true)
        .await
        .expect("a mark");
    let shared = store.revisions(&team("red"), UID_B, None, 1).await.expect("revisions");
    let before = store.generation(&team("red")).await.expect("a number");

    let erased = store.erase_person(of("ann")).await.expect("an answer");
    let expected = Erased {
        skills: 1,
        revisions: 1,
        others: 2,
        found_after: 0,
    };
    assert_eq!(erased, expected);
    let scopes = [own];
    for archived in [false, true] {
        let left = store.list(&team("red"), &scopes, archived).await.expect("a list");
        assert!(left.is_empty());
    }
    let revisions = store.revisions(&team("red"), UID_A, None, 9).await;
    assert!(revisions.expect("an answer").is_empty());
    let bundles = store.bundles(&team("red"), Some(&user("ann"))).await;
    assert!(bundles.expect("an answer").is_empty());
    let hidden = store.hidden(&team("red"), Some(&user("ann"))).await;
    assert!(hidden.expect("an answer").is_empty());
    // Bytes that another skill has as well stay readable.
    store.files(&team("red"), &shared[0]).await.expect("the team's files");
    assert_ne!(store.generation(&team("red")).await.expect("a number"), before);
    let again = store.erase_person(of("ann")).await.expect("an answer");
    assert_eq!(again, Erased::default(), "there is nothing left");
}

async fn nobody_elses_is_touched(store: &impl SkillStore) {
    put(store, new_skill(UID_A, Scope::User(user("ben")), "", "one")).await;
    put(store, new_skill(UID_C, Scope::Team, "", "two")).await;
    store.save_bundle(bundle(None)).await.expect("a bundle");
    assert_eq!(
        store.erase_person(of("ann")).await.expect("an answer"),
        Erased::default()
    );
    let mut elsewhere = of("ben");
    elsewhere.team = team("blue");
    assert_eq!(
        store.erase_person(elsewhere).await.expect("an answer"),
        Erased::default()
    );
    let scopes = [Scope::User(user("ben")), Scope::Team];
    let left = store.list(&team("red"), &scopes, false).await.expect("a list");
    assert_eq!(left.len(), 2);
    let bundles = store.bundles(&team("red"), None).await.expect("bundles");
    assert_eq!(bundles.len(), 1);
}
