use std::sync::Arc;

use steward_base::names::TeamId;
use steward_skill_core::manage_skill::{Manage, ManageRequest};
use steward_skill_core::store::contract;
use steward_skill_core::{Actor, Settings, Skills};
use steward_skill_hub::withdrawal::{Cause, Standing, Withdrawal};
use steward_skill_scanner::Tree;
use steward_testkit::{MockClock, SeqIds, TempDir};

use super::*;

async fn open(folder: &TempDir, name: &str) -> SqliteSkillStore {
    let keys = Keyring::open(folder.path().join("secrets.key"), true).unwrap();
    let store = SqliteSkillStore::open(&folder.path().join(name), 2).await.unwrap();
    store.with_keys(keys)
}

#[tokio::test]
async fn it_fulfils_the_contract() {
    let folder = TempDir::new("skill-contract");
    let next = std::cell::Cell::new(0);
    let open = || {
        next.set(next.get() + 1);
        let name = format!("skills-{}.db", next.get());
        let folder = &folder;
        async move { open(folder, &name).await }
    };
    contract::check(open).await;
    contract::erase::check(open).await;
    contract::library::check(open).await;
    contract::revoked::check(open, |store, team, files, revoked| {
        set_revoked(store.clone(), team, plain(files), revoked)
    })
    .await;
    contract::shelf::check(open).await;
    contract::secrets::check(open).await;
}

fn plain(files: Files) -> Tree {
    files
        .into_iter()
        .map(|(path, bytes)| (path.to_string(), bytes))
        .collect()
}

/// The row alone: what is in use with the tree stays there, as if it had got there while the row was written.
async fn set_revoked(store: SqliteSkillStore, team: TeamId, tree: Tree, revoked: bool) {
    let digest = tree.digest();
    let withdrawal = Withdrawal {
        digest: digest.clone(),
        standing: Standing::Revoked,
        cause: Cause::Person,
        by: "teams/red/users/ann".to_owned(),
        reason: "it phones home".to_owned(),
        at: steward_base::Timestamp::from_secs(1_795_910_400),
    };
    let content = serde_json::to_string(&withdrawal).unwrap();
    let set = store.sqlite.update(move |db| {
        if revoked {
            db.execute(
                "INSERT INTO hub_withdrawals (team, digest, force, content) VALUES (?, ?, 1, ?)",
                [team.as_str(), &digest, &content],
            )
        } else {
            db.execute(
                "DELETE FROM hub_withdrawals WHERE team = ? AND digest = ?",
                [team.as_str(), &digest],
            )
        }
    });
    let set: Result<usize, StoreError> = set.await;
    assert_eq!(set.unwrap(), 1);
}

fn person() -> Actor {
    Actor {
        team: TeamId::parse("red").unwrap(),
        user: steward_base::names::UserId::parse("ann").ok(),
        role: steward_base::Role::Member,
        origin: steward_base::Origin::Foreground,
        session: None,
        turn: None,
        job: None,
        is_agent: false,
        token_id: "t".to_owned(),
    }
}

fn skills(store: &SqliteSkillStore) -> Arc<Skills> {
    let clock = Arc::new(MockClock::default());
    Arc::new(Skills::new(
        Arc::new(store.clone()),
        clock,
        Arc::new(SeqIds::new()),
        Settings::default(),
    ))
}

fn request(id: &str, skill: &str, action: Manage) -> ManageRequest {
    ManageRequest {
        skill: skill.to_owned(),
        action,
        base_revision: String::new(),
        request_id: id.to_owned(),
        request_hash: id.to_owned(),
        evidence: None,
        reason: String::new(),
        validate_only: false,
    }
}

fn create(name: &str) -> Manage {
    let content = format!("---\nname: {name}\ndescription: Do {name}\n---\nSteps.\n");
    Manage::Create {
        content,
        category: String::new(),
        in_team: false,
    }
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_restart() {
    let folder = TempDir::new("skill-restart");
    let store = open(&folder, "skills.db").await;
    let made = skills(&store)
        .manage_skill(&person(), &request("r1", "one", create("one")))
        .await
        .unwrap();
    store.close().await;
    let store = open(&folder, "skills.db").await;
    let again = skills(&store);
    assert_eq!(
        again
            .manage_skill(&person(), &request("r1", "one", create("one")))
            .await
            .unwrap(),
        made
    );
    assert_eq!(
        again
            .view_skill(&person(), "one", "")
            .await
            .unwrap()
            .content
            .lines()
            .last(),
        Some("Steps.")
    );
}

#[tokio::test]
async fn concurrent_changes_of_one_skill_all_survive() {
    let folder = TempDir::new("skill-concurrent");
    let store = open(&folder, "skills.db").await;
    let skills = skills(&store);
    skills
        .manage_skill(&person(), &request("r0", "one", create("one")))
        .await
        .unwrap();
    let writes = (0..20).map(|index| {
        let skills = Arc::clone(&skills);
        async move {
            let path = format!("references/{index}.md");
            let write = request(
                &path,
                "one",
                Manage::WriteFile {
                    path: path.clone(),
                    content: path.clone(),
                },
            );
            let mut outcome = skills.manage_skill(&person(), &write).await;
            // The rules give up after a few rounds in which others were quicker; that is an answer to act on.
            while let Err(steward_skill_core::Error::StaleRevision { .. }) = outcome {
                outcome = skills.manage_skill(&person(), &write).await;
            }
            outcome.unwrap()
        }
    });
    futures::future::join_all(writes).await;
    assert_eq!(skills.view_skill(&person(), "one", "").await.unwrap().files.len(), 21);
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_broken_and_hides_nothing() {
    let folder = TempDir::new("skill-broken");
    let store = open(&folder, "skills.db").await;
    let skills = skills(&store);
    for name in ["one", "two", "three"] {
        skills
            .manage_skill(&person(), &request(name, name, create(name)))
            .await
            .unwrap();
    }
    let damaged = store.sqlite.update(|db| {
        db.execute("UPDATE skills SET provenance = 'alien' WHERE name = 'two'", ())?;
        db.execute(
            "UPDATE skills SET header = '{\"broken\":\"has no line\"}' WHERE name = 'three'",
            (),
        )
    });
    let damaged: Result<usize, StoreError> = damaged.await;
    damaged.unwrap();
    let listed = skills
        .list_skills(&person(), &steward_skill_core::list_skills::ListRequest::default())
        .await
        .unwrap();
    assert!(listed.skills.iter().any(|skill| skill.name.as_str() == "one"));
    assert_eq!(listed.broken.len(), 2, "{}", listed.tool_text);
    let index = skills
        .get_index(&person(), &steward_skill_core::index::Filter::default())
        .await
        .unwrap();
    assert!(
        index.text.contains("- one: ") && !index.text.contains("- two: "),
        "{}",
        index.text
    );
    let refused = request("r9", "two", Manage::Delete { absorbed_into: None });
    let error = skills.manage_skill(&person(), &refused).await.unwrap_err();
    assert!(
        matches!(error, steward_skill_core::Error::RecordDamaged { .. }),
        "{error}"
    );
}

/// D-10: a full disk refuses what is new and shows what is there.
#[tokio::test]
async fn a_full_disk_refuses_writes_and_still_shows_skills() {
    let folder = TempDir::new("skill-full");
    let store = open(&folder, "skills.db").await;
    let all = skills(&store);
    all.manage_skill(&person(), &request("r1", "one", create("one")))
        .await
        .unwrap();
    // SQLite never sets it below the present size, which is what a full disk is.
    let limited = store.sqlite.update(|db| db.value("PRAGMA max_page_count = 1", ()));
    let limited: Result<i64, StoreError> = limited.await;
    limited.unwrap();
    let large = Manage::WriteFile {
        path: "references/large.md".to_owned(),
        content: "x".repeat(500_000),
    };
    let error = all
        .manage_skill(&person(), &request("r2", "one", large))
        .await
        .unwrap_err();
    let is_full = matches!(error, steward_skill_core::Error::Store(StoreFault::Full));
    assert!(is_full, "{error}");
    // Looks of ever new sessions need room as well, and there is none for them.
    for session in 0..200 {
        let actor = Actor {
            session: Some(format!("{}{session}", "s".repeat(200))),
            is_agent: true,
            ..person()
        };
        let viewed = all.view_skill(&actor, "one", "").await.unwrap();
        assert!(viewed.content.ends_with("Steps.\n"));
    }
    let other = Actor {
        team: TeamId::parse("blue").unwrap(),
        ..person()
    };
    let index = all
        .get_index(&other, &steward_skill_core::index::Filter::default())
        .await;
    assert!(index.is_ok(), "{index:?}");
}

/// `T-9`: a first answer lives longer than anyone repeats a request, and no longer than that.
#[tokio::test]
async fn first_answers_do_not_pile_up_for_ever() {
    let folder = TempDir::new("skill-answers");
    let store = open(&folder, "skills.db").await;
    let clock = Arc::new(MockClock::default());
    let ids = Arc::new(SeqIds::new());
    let all = Skills::new(
        Arc::new(store.clone()),
        Arc::clone(&clock) as _,
        ids,
        Settings::default(),
    );
    let team = TeamId::parse("red").unwrap();
    let kept = async |id: &str| store.first_answer(&team, "user/ann", id).await.unwrap().is_some();
    all.manage_skill(&person(), &request("r1", "one", create("one")))
        .await
        .unwrap();
    clock.advance(std::time::Duration::from_hours(29 * 24));
    all.manage_skill(&person(), &request("r2", "two", create("two")))
        .await
        .unwrap();
    assert!(kept("r1").await && kept("r2").await);
    clock.advance(std::time::Duration::from_hours(2 * 24));
    all.manage_skill(&person(), &request("r3", "three", create("three")))
        .await
        .unwrap();
    assert!(!kept("r1").await && kept("r2").await && kept("r3").await);
}

/// `H-2`.
#[tokio::test]
async fn a_withdrawal_that_cannot_be_read_revokes_its_own_tree_and_no_other() {
    let folder = TempDir::new("skill-revoked");
    let store = open(&folder, "skills.db").await;
    let ann = person();
    let made = |store: SqliteSkillStore, id: &'static str, name: &'static str| {
        let ann = &ann;
        async move { skills(&store).manage_skill(ann, &request(id, name, create(name))).await }
    };
    for name in ["one", "two"] {
        let content = format!("---\nname: {name}\ndescription: Do {name}\n---\nSteps.\n");
        let tree: Tree = [("SKILL.md", content.into_bytes())].into_iter().collect();
        set_revoked(store.clone(), ann.team.clone(), tree, true).await;
    }
    store.close().await;
    let file = folder.path().join("skills.db");
    by_hand(&file, &["UPDATE hub_withdrawals SET content = '{}'"]).await;
    let store = open(&folder, "skills.db").await;
    let refused = made(store.clone(), "r1", "one").await.unwrap_err();
    assert_eq!(steward_base::Fault::reason(&refused), "GATE_REFUSED");
    made(store, "r2", "three").await.unwrap();
}
