//! What every store must do. Run it on each implementation; it panics with what is wrong.
#![expect(clippy::panic, clippy::expect_used, reason = "a test suite fails with a sentence")]

mod publications;
mod withdrawals;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use steward_base::{Role, Timestamp};
use steward_skill_provenance::{Outcome, Provenance, Signature, Signed};
use steward_skill_scanner::{File, Options, Report, Scanner, Suppression, Tree};

use super::{Holder, HubStore, Install, Installed, Local, Placed};
use crate::audit::{self, Action, Event};
use crate::error::StoreError;
use crate::hub::Actor;
use crate::lock::Lock;
use crate::policy::Trust;
use crate::quarantine::{Arrival, Item, State};
use crate::source::{Pins, Resolved};

/// A store with its library, which a person changes past the hub.
#[async_trait::async_trait]
pub trait Bench: Send + Sync {
    /// The store.
    fn store(&self) -> Arc<dyn HubStore>;
    /// Gives a skill these files: the one that the hub installed if there is one, else one of the team's own.
    async fn write_by_hand(&self, team: &str, name: &str, tree: Tree);
    /// Takes the skill that the hub installed out of the library.
    async fn remove_by_hand(&self, team: &str, name: &str);
}

/// Runs the suite; `open` gives an empty store each time.
pub async fn check<B, F>(open: impl Fn() -> F)
where
    B: Bench,
    F: Future<Output = B>,
{
    an_item_is_read_back_whole(&open().await).await;
    items_are_listed_in_their_order_without_bytes(&open().await).await;
    an_item_changes_from_the_state_that_was_seen_only(&open().await).await;
    an_install_is_whole(&open().await).await;
    an_install_on_what_is_no_longer_so_does_nothing(&open().await).await;
    local_changes_are_kept_merged_or_given_up(&open().await).await;
    a_name_of_others_is_taken_on_demand_only(&open().await).await;
    a_removal_leaves_no_lock(&open().await).await;
    the_log_is_one_chain_per_team(&open().await).await;
    findings_are_accepted_once(&open().await).await;
    withdrawals::what_is_revoked_is_out_of_sight(&open().await).await;
    withdrawals::a_withdrawal_on_what_is_no_longer_so_does_nothing(&open().await).await;
    withdrawals::a_newer_revision_replaces_what_is_out_of_sight(&open().await).await;
    withdrawals::what_is_out_of_sight_can_be_removed(&open().await).await;
    publications::what_is_published_is_given_out_byte_for_byte(&open().await).await;
}

const RED: Actor<'static> = Actor {
    team: "red",
    user: "teams/red/users/ada",
    role: Role::Maintainer,
};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_secs(1_795_910_400 + seconds)
}

fn tree(name: &str, body: &str) -> Tree {
    let text = format!("---\nname: {name}\ndescription: Tidies.\n---\n# Tidy\n\n{body}\n");
    let mut tree: Tree = [("SKILL.md", text.into_bytes())].into_iter().collect();
    let script = File {
        executable: true,
        ..File::plain(b"#!/bin/sh\nls\n".to_vec())
    };
    tree.insert("scripts/list.sh", script);
    tree
}

fn scan(name: &str, tree: &Tree) -> Report {
    let options = Options {
        name: Some(name.to_owned()),
        ..Options::default()
    };
    Scanner::new().expect("rules").scan(tree, &options)
}

fn item(id: &str, name: &str, tree: Tree, seconds: i64) -> Item {
    let resolved = Resolved {
        source: "github".to_owned(),
        reference: format!("acme/skills/{name}"),
        name: name.to_owned(),
        revision: format!("revision of {id}"),
        pins: Pins {
            owner: Some("1".to_owned()),
            repository: None,
        },
        trust: Trust::Community,
        published_at: Some(at(-100)),
        warnings: vec!["reported twice".to_owned()],
        locator: String::new(),
    };
    let report = scan(name, &tree);
    let arrival = Arrival {
        id: id.to_owned(),
        asked_for: format!("github:acme/skills/{name}"),
        resolved,
        tree,
        provenance: provenance(),
        requested_by: RED.user.to_owned(),
        at: at(seconds),
        doubts: Vec::new(),
    };
    let item = Item::admit(arrival, Vec::new(), Some(report), None, None);
    assert_eq!(item.state, State::Approved, "{:?}", item.report);
    item
}

fn provenance() -> Provenance {
    let signature = Signature {
        file: "skill.oms.sig".to_owned(),
        outcome: Outcome::Verified {
            issuer: "https://issuer.example".to_owned(),
            subject: "somebody@acme.example".to_owned(),
            signed_at: at(-200),
            covers: vec!["SKILL.md".to_owned()],
        },
    };
    Provenance {
        signatures: vec![Signed {
            signature,
            by_publisher: true,
        }],
        required: true,
    }
}

fn event(action: Action, subject: &str) -> Event {
    Event {
        action,
        subject: subject.to_owned(),
        actor: RED.user.to_owned(),
        details: BTreeMap::from([("item".to_owned(), "one".to_owned())]),
    }
}

fn without_bytes(item: &Item) -> Item {
    Item {
        tree: Tree::new(),
        ..item.clone()
    }
}

async fn bring(store: &dyn HubStore, item: &Item) {
    let events = vec![event(Action::Fetch, &item.resolved.name)];
    let put = store.put_item("red", item, None, item.created_at, events).await;
    put.expect("an item is put in");
}

/// Installs an approved item.
async fn install(
    store: &dyn HubStore,
    item: &Item,
    before: Option<&Lock>,
    (replace, local): (bool, Local),
) -> Result<(Lock, Placed), StoreError> {
    let report = item.report.clone().expect("it was scanned");
    let lock = item.lock(&report, provenance(), RED.user, at(500));
    let lock = lock.expect("it is approved");
    let after = Item {
        state: State::Installed,
        ..item.clone()
    };
    let installed = Installed { lock, report };
    let install = Install {
        actor: RED,
        item: &after,
        installed: &installed,
        before,
        replace,
        local,
        at: at(500),
    };
    let events = vec![event(Action::Install, &item.resolved.name)];
    let placed = store.install(install, events).await?;
    Ok((installed.lock, placed))
}

async fn brought(bench: &dyn Bench, id: &str, name: &str, files: Tree) -> Item {
    let item = item(id, name, files, 0);
    bring(&*bench.store(), &item).await;
    item
}

/// Installs a skill for the team `red`, for tests of what a store does besides.
pub async fn install_one(bench: &dyn Bench, name: &str) {
    let item = brought(bench, "one", name, tree(name, "Sorts.")).await;
    install(&*bench.store(), &item, None, PLAIN).await.expect("installed");
}

const PLAIN: (bool, Local) = (false, Local::Keep);

async fn an_item_is_read_back_whole(bench: &dyn Bench) {
    let store = bench.store();
    let item = brought(bench, "one", "tidy", tree("tidy", "Sorts.")).await;
    assert_eq!(store.item("red", "one").await, Ok(Some(item)));
    assert_eq!(store.item("blue", "one").await, Ok(None), "another team has none of it");
    assert_eq!(store.item("red", "two").await, Ok(None));
}

async fn items_are_listed_in_their_order_without_bytes(bench: &dyn Bench) {
    let store = bench.store();
    let [late, early, same] = [("a", 5), ("b", 1), ("c", 5)].map(|(id, seconds)| {
        let name = format!("skill-{id}");
        item(id, &name, tree(&name, "Sorts."), seconds)
    });
    for item in [&late, &early, &same] {
        bring(&*store, item).await;
    }
    let all = store.items("red", None, 10).await.expect("a list");
    assert_eq!(all, [&early, &late, &same].map(without_bytes));
    let first = store.items("red", None, 2).await.expect("a page");
    assert_eq!(first, all[..2]);
    let second = store.items("red", Some(&first[1].place()), 2).await.expect("a page");
    assert_eq!(second, all[2..]);
    assert_eq!(store.open_items("red").await, Ok(3));
    assert_eq!(store.items("blue", None, 10).await, Ok(Vec::new()));
    assert_eq!(store.open_items("blue").await, Ok(0));
}

async fn an_item_changes_from_the_state_that_was_seen_only(bench: &dyn Bench) {
    let store = bench.store();
    let item = brought(bench, "one", "tidy", tree("tidy", "Sorts.")).await;
    for before in [None, Some(State::Blocked)] {
        let put = store.put_item("red", &item, before, at(1), vec![event(Action::Decision, "tidy")]);
        assert!(matches!(put.await, Err(StoreError::Conflict { .. })), "{before:?}");
    }
    let mut rejected = item.clone();
    rejected.reject().expect("it can be");
    let events = vec![event(Action::Decision, "tidy")];
    let put = store.put_item("red", &rejected, Some(State::Approved), at(1), events);
    put.await.expect("turned down");
    let found = store.item("red", "one").await.expect("read").expect("there");
    assert_eq!(
        found,
        without_bytes(&rejected),
        "what nobody can install keeps no bytes"
    );
    assert_eq!(store.open_items("red").await, Ok(0));
    let log = store.audit("red", 0, 10).await.expect("a log");
    assert_eq!(log.len(), 2, "what was refused is not on record");
}

async fn an_install_is_whole(bench: &dyn Bench) {
    let store = bench.store();
    let item = brought(bench, "one", "tidy", tree("tidy", "Sorts.")).await;
    assert_eq!(store.library("red", "tidy").await, Ok(None));
    assert_eq!(store.holder(RED, "tidy").await, Ok(Holder::Free));
    let (lock, placed) = install(&*store, &item, None, PLAIN).await.expect("installed");
    assert_eq!(placed, Placed::default());
    assert_eq!(store.library("red", "tidy").await, Ok(Some(item.tree.clone())));
    let installed = store.installed("red", "tidy").await.expect("read").expect("locked");
    assert_eq!(installed.lock, lock);
    assert_eq!(Some(&installed.report), item.report.as_ref());
    assert_eq!(store.all_installed("red").await, Ok(vec![installed]));
    assert_eq!(store.holder(RED, "tidy").await, Ok(Holder::Hub));
    let found = store.item("red", "one").await.expect("read").expect("there");
    assert_eq!((found.state, found.tree), (State::Installed, item.tree));
    let log = store.audit("red", 0, 10).await.expect("a log");
    let actions: Vec<Action> = log.iter().map(|entry| entry.action).collect();
    assert_eq!(actions, [Action::Fetch, Action::Install]);
    for team in [
        store.all_installed("blue").await.expect("a list").len(),
        store.audit("blue", 0, 10).await.expect("a log").len(),
    ] {
        assert_eq!(team, 0, "another team has none of it");
    }
    assert_eq!(store.library("blue", "tidy").await, Ok(None));
}

async fn an_install_on_what_is_no_longer_so_does_nothing(bench: &dyn Bench) {
    let store = bench.store();
    let first = brought(bench, "one", "tidy", tree("tidy", "Sorts.")).await;
    let second = brought(bench, "two", "tidy", tree("tidy", "Sorts better.")).await;
    let (lock, _) = install(&*store, &first, None, PLAIN).await.expect("installed");
    let log = store.audit("red", 0, 10).await.expect("a log");
    let blind = install(&*store, &second, None, PLAIN).await;
    assert!(matches!(blind, Err(StoreError::Conflict { .. })), "{blind:?}");
    let again = install(&*store, &first, Some(&lock), PLAIN).await;
    assert!(
        matches!(again, Err(StoreError::Conflict { .. })),
        "an item is installed once: {again:?}"
    );
    assert_eq!(store.library("red", "tidy").await, Ok(Some(first.tree)));
    assert_eq!(store.audit("red", 0, 10).await, Ok(log));
    let (newer, _) = install(&*store, &second, Some(&lock), PLAIN).await.expect("updated");
    assert_eq!(store.library("red", "tidy").await, Ok(Some(second.tree)));
    let installed = store.installed("red", "tidy").await.expect("read").expect("locked");
    assert_eq!(installed.lock, newer);
}

fn with(mut tree: Tree, path: &str, text: &str) -> Tree {
    tree.insert(path, File::plain(text.as_bytes().to_vec()));
    tree
}

fn text(tree: Option<Tree>, path: &str) -> String {
    let tree = tree.expect("it is in the library");
    let file = tree.get(path).unwrap_or_else(|| panic!("{path} is missing"));
    String::from_utf8(file.bytes.to_vec()).expect("text")
}

async fn local_changes_are_kept_merged_or_given_up(bench: &dyn Bench) {
    let store = bench.store();
    let base = with(tree("tidy", "Sorts."), "references/a.md", "a\n");
    let first = brought(bench, "one", "tidy", base.clone()).await;
    let (lock, _) = install(&*store, &first, None, PLAIN).await.expect("installed");
    bench
        .write_by_hand("red", "tidy", with(base.clone(), "references/a.md", "ours\n"))
        .await;
    let apart = brought(bench, "two", "tidy", with(base.clone(), "references/b.md", "b\n")).await;
    let kept = install(&*store, &apart, Some(&lock), PLAIN).await;
    assert!(matches!(kept, Err(StoreError::Conflict { .. })), "{kept:?}");
    let merge = (false, Local::Merge);
    let (lock, _) = install(&*store, &apart, Some(&lock), merge).await.expect("merged");
    let both = store.library("red", "tidy").await.expect("read");
    assert_eq!(text(both.clone(), "references/a.md"), "ours\n");
    assert_eq!(text(both, "references/b.md"), "b\n");
    // Merged once, it can be merged again: what was approved is the base, and not what stands there.
    let more = with(apart.tree.clone(), "references/c.md", "c\n");
    let more = brought(bench, "three", "tidy", more).await;
    let (lock, _) = install(&*store, &more, Some(&lock), merge).await.expect("merged again");
    assert_eq!(
        text(store.library("red", "tidy").await.expect("read"), "references/a.md"),
        "ours\n"
    );
    let theirs = with(more.tree.clone(), "references/a.md", "theirs\n");
    let meeting = brought(bench, "four", "tidy", theirs.clone()).await;
    let before = store.library("red", "tidy").await.expect("read");
    let conflict = install(&*store, &meeting, Some(&lock), merge).await;
    assert!(matches!(conflict, Err(StoreError::Refused(_))), "{conflict:?}");
    assert_eq!(store.library("red", "tidy").await.expect("read"), before);
    let given_up = install(&*store, &meeting, Some(&lock), (false, Local::GiveUp)).await;
    given_up.expect("theirs alone");
    assert_eq!(store.library("red", "tidy").await, Ok(Some(theirs)));
}

async fn a_name_of_others_is_taken_on_demand_only(bench: &dyn Bench) {
    let store = bench.store();
    bench.write_by_hand("red", "tidy", tree("tidy", "By hand.")).await;
    let item = brought(bench, "one", "tidy", tree("tidy", "Sorts.")).await;
    let holder = store.holder(RED, "tidy").await;
    assert!(matches!(holder, Ok(Holder::Other(_))), "{holder:?}");
    let refused = install(&*store, &item, None, PLAIN).await;
    assert!(matches!(refused, Err(StoreError::Refused(_))), "{refused:?}");
    let (_, placed) = install(&*store, &item, None, (true, Local::Keep))
        .await
        .expect("replaced");
    assert_eq!(placed.set_aside.len(), 1, "{placed:?}");
    assert_eq!(store.holder(RED, "tidy").await, Ok(Holder::Hub));
    assert_eq!(store.library("red", "tidy").await, Ok(Some(item.tree)));
}

async fn a_removal_leaves_no_lock(bench: &dyn Bench) {
    let store = bench.store();
    let item = brought(bench, "one", "tidy", tree("tidy", "Sorts.")).await;
    install(&*store, &item, None, PLAIN).await.expect("installed");
    let gone = store.remove(RED, "tidy", at(600), event(Action::Remove, "tidy"));
    gone.await.expect("removed");
    assert_eq!(store.installed("red", "tidy").await, Ok(None));
    assert_eq!(store.library("red", "tidy").await, Ok(None));
    assert_eq!(store.holder(RED, "tidy").await, Ok(Holder::Free));
    let again = brought(bench, "two", "tidy", tree("tidy", "Sorts.")).await;
    install(&*store, &again, None, PLAIN).await.expect("installed again");
    bench.remove_by_hand("red", "tidy").await;
    assert_eq!(store.library("red", "tidy").await, Ok(None));
    let gone = store.remove(RED, "tidy", at(601), event(Action::Remove, "tidy"));
    gone.await.expect("the record is cleaned");
    assert_eq!(store.all_installed("red").await, Ok(Vec::new()));
}

async fn the_log_is_one_chain_per_team(bench: &dyn Bench) {
    let store = bench.store();
    for number in 0..4 {
        for team in ["red", "blue"] {
            let event = event(Action::Refuse, &format!("{team}-{number}"));
            store.record(team, at(number), event).await.expect("recorded");
        }
    }
    let all = store.audit("red", 0, usize::MAX).await.expect("a log");
    assert_eq!(all.len(), 4);
    assert_eq!(audit::first_broken(&all), None);
    assert!(all.iter().all(|entry| entry.subject.starts_with("red")));
    assert_eq!(store.audit("red", 1, 2).await, Ok(all[1..3].to_vec()));
    assert_eq!(store.audit("red", 4, 2).await, Ok(Vec::new()));
}

async fn findings_are_accepted_once(bench: &dyn Bench) {
    let store = bench.store();
    for reason in ["first", "second"] {
        let suppression = Suppression {
            fingerprint: "f".to_owned(),
            reason: reason.to_owned(),
            by: RED.user.to_owned(),
        };
        let accepted = store.suppress("red", suppression, at(1), event(Action::Accept, "f"));
        accepted.await.expect("accepted");
    }
    let found = store.suppressions("red").await.expect("a list");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].reason, "second");
    assert_eq!(store.suppressions("blue").await, Ok(Vec::new()));
    assert_eq!(store.audit("red", 0, 10).await.expect("a log").len(), 2);
}
