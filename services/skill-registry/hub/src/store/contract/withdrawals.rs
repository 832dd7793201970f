//! What a store does when a tree is withdrawn.

use super::{Bench, PLAIN, RED, at, brought, event, install, tree};
use crate::audit::Action;
use crate::error::StoreError;
use crate::lock::Lock;
use crate::store::{HubStore, Withdraw};
use crate::withdrawal::{Cause, Standing, Withdrawal};

const TIDY: &str = "tidy";

fn withdrawal(digest: &str, standing: Standing) -> Withdrawal {
    Withdrawal {
        digest: digest.to_owned(),
        standing,
        cause: Cause::Person,
        by: RED.user.to_owned(),
        reason: "it phones home".to_owned(),
        at: at(5),
    }
}

async fn say(
    store: &dyn HubStore,
    digest: &str,
    before: Option<&Withdrawal>,
    after: Option<&Withdrawal>,
    skill: Option<&str>,
) -> Result<(), StoreError> {
    let withdraw = Withdraw {
        actor: RED,
        digest,
        before,
        after,
        skill,
        at: at(5),
    };
    store.withdraw(withdraw, vec![event(Action::Withdraw, TIDY)]).await
}

async fn put(bench: &dyn Bench, id: &str, body: &str, before: Option<&Lock>) -> Lock {
    let item = brought(bench, id, TIDY, tree(TIDY, body)).await;
    install(&*bench.store(), &item, before, PLAIN)
        .await
        .expect("installed")
        .0
}

async fn is_seen(store: &dyn HubStore) -> bool {
    store.library("red", TIDY).await.expect("read").is_some()
}

/// A revoked skill goes out of sight and comes back as it was; a yanked one stays.
pub(super) async fn what_is_revoked_is_out_of_sight(bench: &dyn Bench) {
    let store = bench.store();
    let store = store.as_ref();
    let lock = put(bench, "one", "Text.", None).await;
    let digest = lock.digest.as_str();
    let yanked = withdrawal(digest, Standing::Yanked);
    say(store, digest, None, Some(&yanked), Some(TIDY))
        .await
        .expect("yanked");
    assert!(is_seen(store).await, "what is yanked stays");
    assert_eq!(store.withdrawals("red").await.expect("read"), vec![yanked.clone()]);
    assert_eq!(store.withdrawals("blue").await.expect("read"), Vec::new());
    let revoked = withdrawal(digest, Standing::Revoked);
    say(store, digest, Some(&yanked), Some(&revoked), Some(TIDY))
        .await
        .expect("revoked");
    assert!(!is_seen(store).await, "what is revoked is out of sight");
    let installed = store
        .installed("red", TIDY)
        .await
        .expect("read")
        .expect("its lock stays");
    assert_eq!(installed.lock, lock);
    let reinstated = withdrawal(digest, Standing::Reinstated);
    say(store, digest, Some(&revoked), Some(&reinstated), Some(TIDY))
        .await
        .expect("reinstated");
    let back = store.library("red", TIDY).await.expect("read").expect("it is back");
    assert!(lock.verify(&back).is_none(), "it is what it was");
    say(store, digest, Some(&reinstated), None, Some(TIDY))
        .await
        .expect("ended");
    assert_eq!(store.withdrawal("red", digest).await.expect("read"), None);
    let log = store.audit("red", 0, 100).await.expect("read");
    assert_eq!(log.iter().filter(|entry| entry.action == Action::Withdraw).count(), 4);
}

/// Whoever decided on what is no longer so changes nothing, and nobody installs what was withdrawn meanwhile.
pub(super) async fn a_withdrawal_on_what_is_no_longer_so_does_nothing(bench: &dyn Bench) {
    let store = bench.store();
    let store = store.as_ref();
    let lock = put(bench, "one", "Text.", None).await;
    let digest = lock.digest.as_str();
    let revoked = withdrawal(digest, Standing::Revoked);
    for (before, skill) in [(Some(&revoked), Some(TIDY)), (None, None), (None, Some("other"))] {
        let refused = say(store, digest, before, Some(&revoked), skill).await;
        assert!(matches!(refused, Err(StoreError::Conflict { .. })), "{refused:?}");
    }
    assert!(is_seen(store).await);
    let next = brought(bench, "two", TIDY, tree(TIDY, "Next.")).await;
    let withdrawn = withdrawal(&next.tree.digest(), Standing::Yanked);
    say(store, &withdrawn.digest, None, Some(&withdrawn), None)
        .await
        .expect("yanked");
    let refused = install(store, &next, Some(&lock), PLAIN).await;
    assert!(matches!(refused, Err(StoreError::Conflict { .. })), "{refused:?}");
    let installed = store.installed("red", TIDY).await.expect("read").expect("a lock");
    assert_eq!(installed.lock, lock);
}

/// A newer revision takes the place of one that is out of sight.
pub(super) async fn a_newer_revision_replaces_what_is_out_of_sight(bench: &dyn Bench) {
    let store = bench.store();
    let store = store.as_ref();
    let lock = put(bench, "one", "Text.", None).await;
    let revoked = withdrawal(&lock.digest, Standing::Revoked);
    say(store, &lock.digest, None, Some(&revoked), Some(TIDY))
        .await
        .expect("revoked");
    let next = put(bench, "two", "Mended.", Some(&lock)).await;
    let seen = store.library("red", TIDY).await.expect("read").expect("in use");
    assert!(next.verify(&seen).is_none());
    let reinstated = withdrawal(&lock.digest, Standing::Reinstated);
    say(store, &lock.digest, Some(&revoked), Some(&reinstated), None)
        .await
        .expect("reinstated");
    let seen = store.library("red", TIDY).await.expect("read").expect("in use");
    assert!(next.verify(&seen).is_none(), "what is installed stays");
}

/// A skill that is out of sight can be uninstalled.
pub(super) async fn what_is_out_of_sight_can_be_removed(bench: &dyn Bench) {
    let store = bench.store();
    let store = store.as_ref();
    let lock = put(bench, "one", "Text.", None).await;
    let revoked = withdrawal(&lock.digest, Standing::Revoked);
    say(store, &lock.digest, None, Some(&revoked), Some(TIDY))
        .await
        .expect("revoked");
    store
        .remove(RED, TIDY, at(9), event(Action::Remove, TIDY))
        .await
        .expect("removed");
    assert!(store.installed("red", TIDY).await.expect("read").is_none());
    assert!(!is_seen(store).await);
}
