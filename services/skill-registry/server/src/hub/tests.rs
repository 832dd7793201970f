//! The hub's contract over this service's database.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use steward_base::names::{TeamId, UserId};
use steward_base::{Fault as _, Origin, Role};
use steward_skill_core::manage_skill::{Manage, ManageRequest};
use steward_skill_core::{Actor, Settings, Skills};
use steward_skill_hub::audit::Action;
use steward_skill_hub::store::contract::{self, Bench};
use steward_skill_hub::store::{HubStore, Withdraw};
use steward_skill_hub::withdrawal::{Cause, Standing, Withdrawal};
use steward_skill_scanner::Tree;
use steward_testkit::{MockClock, SeqIds, TempDir};

use super::library::{LibraryHubStore, files_of};
use crate::sqlite::SqliteSkillStore;

struct OnSqlite {
    skills: Arc<Skills>,
    store: Arc<LibraryHubStore>,
    tables: SqliteSkillStore,
    requests: AtomicU64,
    folder: TempDir,
}

impl OnSqlite {
    async fn open() -> Self {
        let folder = TempDir::new("hub-contract");
        let store = SqliteSkillStore::open(&folder.path().join("skills.db"), 2)
            .await
            .unwrap();
        let (clock, ids) = (Arc::new(MockClock::default()), Arc::new(SeqIds::new()));
        let skills = Arc::new(Skills::new(Arc::new(store.clone()), clock, ids, Settings::default()));
        Self {
            store: Arc::new(LibraryHubStore::new(store.clone(), Arc::clone(&skills))),
            tables: store,
            skills,
            requests: AtomicU64::new(0),
            folder,
        }
    }

    async fn manage(&self, team: &str, skill: &str, action: Manage) {
        let id = self.requests.fetch_add(1, Ordering::Relaxed).to_string();
        let request = ManageRequest {
            skill: skill.to_owned(),
            action,
            base_revision: String::new(),
            request_hash: id.clone(),
            request_id: id,
            evidence: None,
            reason: String::new(),
            validate_only: false,
        };
        self.skills.manage_skill(&maintainer(team), &request).await.unwrap();
    }
}

fn maintainer(team: &str) -> Actor {
    Actor {
        team: TeamId::parse(team).unwrap(),
        user: UserId::parse("ada").ok(),
        role: Role::Maintainer,
        origin: Origin::Foreground,
        session: None,
        turn: None,
        job: None,
        is_agent: false,
        token_id: "t".to_owned(),
    }
}

#[async_trait]
impl Bench for OnSqlite {
    fn store(&self) -> Arc<dyn HubStore> {
        Arc::<LibraryHubStore>::clone(&self.store)
    }

    async fn write_by_hand(&self, team: &str, name: &str, tree: Tree) {
        let there = self
            .skills
            .hub_files(&TeamId::parse(team).unwrap(), name)
            .await
            .unwrap();
        let mut files = files_of(&tree).unwrap();
        let skill = if there.is_some() {
            format!("hub/{name}")
        } else {
            let (path, content) = files.pop_first().unwrap();
            assert_eq!(path.as_str(), "SKILL.md");
            let action = Manage::Create {
                content: String::from_utf8(content).unwrap(),
                category: String::new(),
                in_team: true,
            };
            self.manage(team, name, action).await;
            format!("team/{name}")
        };
        let there = there.unwrap_or_default();
        for (path, content) in files {
            if there.get(&path) != Some(&content) {
                let action = Manage::WriteFile {
                    path: path.to_string(),
                    content: String::from_utf8(content).unwrap(),
                };
                self.manage(team, &skill, action).await;
            }
        }
    }

    async fn remove_by_hand(&self, team: &str, name: &str) {
        let resource = format!("teams/{team}/hub/skills/{name}");
        let archived = self.skills.archive_skill(&maintainer(team), &resource).await;
        if archived.is_err() {
            let resource = format!("hub/skills/{name}");
            self.skills.archive_skill(&maintainer(team), &resource).await.unwrap();
        }
    }
}

#[tokio::test]
async fn it_fulfils_the_contract() {
    contract::check(OnSqlite::open).await;
}

/// The library keeps no modes, and the digest of a tree counts them.
#[tokio::test]
async fn h_2_a_tree_with_an_executable_file_is_known_in_the_archive_by_what_the_hub_brought() {
    let bench = OnSqlite::open().await;
    contract::install_one(&bench, "tidy").await;
    let lock = bench.store.installed("red", "tidy").await.unwrap().unwrap().lock;
    let actor = steward_skill_hub::hub::Actor {
        team: "red",
        user: "teams/red/users/ada",
        role: Role::Maintainer,
    };
    let event = |action| steward_skill_hub::audit::Event {
        action,
        subject: "tidy".to_owned(),
        actor: actor.user.to_owned(),
        details: std::collections::BTreeMap::new(),
    };
    let at = steward_base::Timestamp::from_secs(1_795_910_400);
    bench
        .store
        .remove(actor, "tidy", at, event(Action::Remove))
        .await
        .unwrap();
    let revoked = Withdrawal {
        digest: lock.digest.clone(),
        standing: Standing::Revoked,
        cause: Cause::Person,
        by: actor.user.to_owned(),
        reason: "it phones home".to_owned(),
        at,
    };
    let withdraw = |before, after| Withdraw {
        actor,
        digest: &lock.digest,
        before,
        after,
        skill: None,
        at,
    };
    let done = bench
        .store
        .withdraw(withdraw(None, Some(&revoked)), vec![event(Action::Withdraw)]);
    done.await.unwrap();
    let ada = maintainer("red");
    let refused = bench.skills.restore_skill(&ada, "hub/skills/tidy").await.unwrap_err();
    assert_eq!(refused.reason(), "GATE_REFUSED");
    assert!(bench.skills.hub_files(&ada.team, "tidy").await.unwrap().is_none());
    let done = bench
        .store
        .withdraw(withdraw(Some(&revoked), None), vec![event(Action::Reinstate)]);
    done.await.unwrap();
    bench.skills.restore_skill(&ada, "hub/skills/tidy").await.unwrap();
}

#[tokio::test]
async fn h_7_the_log_cannot_be_changed_or_shortened_by_a_statement() {
    use sqlx::{ConnectOptions as _, Connection as _};
    let bench = OnSqlite::open().await;
    let event = steward_skill_hub::audit::Event {
        action: steward_skill_hub::audit::Action::Refuse,
        subject: "tidy".to_owned(),
        actor: "teams/red/users/ada".to_owned(),
        details: std::collections::BTreeMap::new(),
    };
    let at = steward_base::Timestamp::from_secs(1_795_910_400);
    bench.store.record("red", at, event).await.unwrap();
    let file = bench.folder.path().join("skills.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(file);
    let mut connection = options.connect().await.unwrap();
    for statement in ["UPDATE hub_log SET action = 'install'", "DELETE FROM hub_log"] {
        let refused = sqlx::query(statement).execute(&mut connection).await;
        assert!(refused.is_err(), "{statement}");
    }
    connection.close().await.unwrap();
    assert_eq!(bench.store.audit("red", 0, 9).await.unwrap().len(), 1);
}

#[tokio::test]
async fn h_6_a_team_is_to_be_scanned_anew_once_per_set_of_rules() {
    let bench = OnSqlite::open().await;
    let tables = &bench.tables;
    assert!(tables.hub_teams_to_rescan("one").await.unwrap().is_empty());
    contract::install_one(&bench, "tidy").await;
    assert_eq!(tables.hub_teams_to_rescan("one").await.unwrap(), ["red"]);
    tables.hub_rescanned("red".to_owned(), "one".to_owned()).await.unwrap();
    assert!(tables.hub_teams_to_rescan("one").await.unwrap().is_empty());
    assert_eq!(tables.hub_teams_to_rescan("two").await.unwrap(), ["red"]);
}
