//! Who may do what to teams, users and tokens.

use std::sync::Arc;
use std::time::Duration;

use steward_base::names::{TeamId, TokenId, UserId};
use steward_base::{Caller, Fault as _, Identity, JobRef, Origin, Role};
use steward_testkit::{MockClock, SeqIds};

use super::*;

/// "Signs" by writing the claims down.
#[derive(Debug)]
struct PlainSigner;

impl Signer for PlainSigner {
    fn sign(&self, claims: &Claims) -> Result<Credential, SigningError> {
        Ok(Credential::new(format!("{claims:?}")))
    }
}

struct Rig {
    access: Access,
    clock: MockClock,
}

async fn rig() -> Rig {
    let clock = MockClock::default();
    let store = Arc::new(InMemoryAccessStore::new());
    let access = Access::new(
        store,
        Arc::new(PlainSigner),
        Arc::new(clock.clone()),
        Arc::new(SeqIds::new()),
    );
    assert!(access.ensure_home().await.unwrap());
    Rig { access, clock }
}

fn team(id: &str) -> TeamId {
    TeamId::parse(id).unwrap()
}

fn user(id: &str) -> UserId {
    UserId::parse(id).unwrap()
}

fn caller(in_team: &str, id: &str, role: Role) -> Caller {
    Caller {
        team: Some(team(in_team)),
        user: Some(user(id)),
        role,
        origin: Origin::Foreground,
        identity: Identity::User,
        token_id: "t".to_owned(),
    }
}

fn owner() -> Caller {
    caller(HOME_TEAM, OWNER, Role::Admin)
}

impl Rig {
    async fn add(&self, by: &Caller, id: &str, role: Role) -> User {
        let new = NewUser {
            team: by.team.clone().unwrap(),
            user: user(id),
            display_name: String::new(),
            role,
            request_id: String::new(),
        };
        self.access.create_user(by, new).await.unwrap()
    }

    async fn token(&self, by: &Caller, of: &str) -> Result<IssuedToken, Error> {
        let new = NewToken {
            team: by.team.clone().unwrap(),
            user: user(of),
            label: "cli".to_owned(),
            ttl: None,
        };
        self.access.create_token(by, new).await
    }
}

fn new_team(id: &str) -> NewTeam {
    NewTeam {
        team: team(id),
        display_name: String::new(),
        admin: user("boss"),
        request_id: "r1".to_owned(),
    }
}

fn job(fence: u64, origin: Origin, capability: &str, ttl: u64) -> JobTokenRequest {
    JobTokenRequest {
        team: team(HOME_TEAM),
        user: user(OWNER),
        job: JobRef {
            id: "job".to_owned(),
            fence,
        },
        origin,
        session: None,
        capabilities: vec![capability.to_owned()],
        ttl: Duration::from_secs(ttl),
    }
}

#[tokio::test]
async fn the_in_memory_store_keeps_the_contract() {
    contract::suite(&InMemoryAccessStore::new()).await.unwrap();
}

#[tokio::test]
async fn the_first_start_happens_once_and_makes_an_admin() {
    let rig = rig().await;
    assert!(!rig.access.ensure_home().await.unwrap());
    let issued = rig.access.issue_owner_token().await.unwrap().unwrap();
    assert!(issued.credential.reveal().contains("role: Admin"));
    assert!(
        !format!("{issued:?}").contains("role: Admin"),
        "a credential does not show itself"
    );
    assert!(rig.access.who_am_i(&owner()).await.unwrap().home_team);
}

#[tokio::test]
async fn only_the_home_teams_admin_makes_teams_and_sees_them_all() {
    let rig = rig().await;
    let (red, boss) = rig.access.create_team(&owner(), new_team("red")).await.unwrap();
    assert_eq!((red.id, boss.role), (team("red"), Role::Admin));
    let again = rig.access.create_team(&owner(), new_team("red")).await.unwrap();
    assert_eq!(again.0.id, team("red"), "the same request id gets the first answer");
    let other_request = rig
        .access
        .create_team(
            &owner(),
            NewTeam {
                admin: user("x"),
                ..new_team("red")
            },
        )
        .await
        .unwrap_err();
    assert_eq!(other_request.reason(), "REQUEST_ID_REUSED");
    let taken = NewTeam {
        request_id: "r2".to_owned(),
        ..new_team("red")
    };
    assert_eq!(
        rig.access.create_team(&owner(), taken).await.unwrap_err().reason(),
        "TEAM_EXISTS"
    );

    let foreign_admin = caller("red", "boss", Role::Admin);
    let refused = rig
        .access
        .create_team(&foreign_admin, new_team("blue"))
        .await
        .unwrap_err();
    assert_eq!(refused.reason(), "HOME_TEAM_REQUIRED");
    assert_eq!(rig.access.list_teams(&owner(), None, 50).await.unwrap().items.len(), 2);
    let own = rig.access.list_teams(&foreign_admin, None, 50).await.unwrap();
    assert_eq!(
        own.items.iter().map(|team| team.id.as_str()).collect::<Vec<_>>(),
        ["red"]
    );
}

#[tokio::test]
async fn another_teams_users_do_not_exist() {
    let rig = rig().await;
    rig.access.create_team(&owner(), new_team("red")).await.unwrap();
    let boss = caller("red", "boss", Role::Admin);
    let (home, owner_id) = (team(HOME_TEAM), user(OWNER));
    let disable = UserChange {
        role: None,
        disabled: Some(true),
    };
    let reasons = [
        rig.access.list_users(&boss, &home, None, 5).await.unwrap_err().reason(),
        rig.access
            .update_user(&boss, &home, &owner_id, disable)
            .await
            .unwrap_err()
            .reason(),
        rig.access
            .list_tokens(&boss, &TokenList::User(home.clone(), owner_id), None, 5)
            .await
            .unwrap_err()
            .reason(),
        rig.access
            .list_tokens(&boss, &TokenList::Team(home), None, 5)
            .await
            .unwrap_err()
            .reason(),
    ];
    assert_eq!(
        reasons,
        ["TEAM_NOT_FOUND", "USER_NOT_FOUND", "USER_NOT_FOUND", "TEAM_NOT_FOUND"]
    );
}

#[tokio::test]
async fn a_team_never_loses_its_last_admin() {
    let rig = rig().await;
    let (home, owner_id) = (team(HOME_TEAM), user(OWNER));
    for change in [
        UserChange {
            role: Some(Role::Maintainer),
            disabled: None,
        },
        UserChange {
            role: None,
            disabled: Some(true),
        },
    ] {
        let refused = rig
            .access
            .update_user(&owner(), &home, &owner_id, change)
            .await
            .unwrap_err();
        assert_eq!(refused.reason(), "LAST_ADMIN");
    }
    rig.add(&owner(), "ann", Role::Admin).await;
    let change = UserChange {
        role: Some(Role::Member),
        disabled: None,
    };
    assert_eq!(
        rig.access
            .update_user(&owner(), &home, &owner_id, change)
            .await
            .unwrap()
            .role,
        Role::Member
    );
    let nothing = UserChange {
        role: None,
        disabled: None,
    };
    let refused = rig
        .access
        .update_user(&owner(), &home, &owner_id, nothing)
        .await
        .unwrap_err();
    assert_eq!(refused.reason(), "INVALID_REQUEST");
}

#[tokio::test]
async fn members_handle_their_own_tokens_and_admins_everyones() {
    let rig = rig().await;
    rig.add(&owner(), "ann", Role::Member).await;
    rig.add(&owner(), "ben", Role::Member).await;
    let (ann, ben) = (
        caller(HOME_TEAM, "ann", Role::Member),
        caller(HOME_TEAM, "ben", Role::Member),
    );
    rig.token(&ann, "ann").await.unwrap();
    assert_eq!(rig.token(&ben, "ann").await.unwrap_err().reason(), "NOT_YOUR_TOKEN");
    rig.token(&owner(), "ann").await.unwrap();
    assert_eq!(
        rig.token(&owner(), "nobody").await.unwrap_err().reason(),
        "USER_NOT_FOUND"
    );

    let (home, ann_id) = (team(HOME_TEAM), user("ann"));
    let of_ann = TokenList::User(home.clone(), ann_id.clone());
    assert_eq!(
        rig.access
            .list_tokens(&ben, &of_ann, None, 9)
            .await
            .unwrap_err()
            .reason(),
        "NOT_YOUR_TOKEN"
    );
    assert_eq!(
        rig.access
            .list_tokens(&ann, &of_ann, None, 9)
            .await
            .unwrap()
            .items
            .len(),
        2
    );
    let all = TokenList::Team(home.clone());
    assert_eq!(rig.access.list_tokens(&ben, &all, None, 9).await.unwrap().items, []);
    assert_eq!(
        rig.access
            .list_tokens(&owner(), &all, None, 9)
            .await
            .unwrap()
            .items
            .len(),
        2
    );
}

#[tokio::test]
async fn a_token_is_revoked_by_its_owner_and_unknown_to_others() {
    let rig = rig().await;
    rig.add(&owner(), "ann", Role::Member).await;
    rig.add(&owner(), "ben", Role::Member).await;
    let (ann, ben) = (
        caller(HOME_TEAM, "ann", Role::Member),
        caller(HOME_TEAM, "ben", Role::Member),
    );
    let (home, ann_id) = (team(HOME_TEAM), user("ann"));
    let anns = rig.token(&ann, "ann").await.unwrap().token;
    let hidden = rig
        .access
        .revoke_token(&ben, &home, &ann_id, &anns.id)
        .await
        .unwrap_err();
    assert_eq!(hidden.reason(), "TOKEN_NOT_FOUND");
    let unknown = TokenId::parse("nope").unwrap();
    let missing = rig
        .access
        .revoke_token(&ann, &home, &ann_id, &unknown)
        .await
        .unwrap_err();
    assert_eq!(missing.reason(), "TOKEN_NOT_FOUND");
    assert!(
        rig.access
            .revoke_token(&ann, &home, &ann_id, &anns.id)
            .await
            .unwrap()
            .revoked
            .is_some()
    );
    assert_eq!(rig.access.list_revocations().await.unwrap().len(), 1);
    rig.clock.advance(Duration::from_hours(91 * 24));
    assert_eq!(rig.access.list_revocations().await.unwrap(), []);
}

#[tokio::test]
async fn a_token_never_says_more_than_the_one_it_was_made_with() {
    let rig = rig().await;
    let weak = Caller {
        role: Role::Viewer,
        ..owner()
    };
    let issued = rig.token(&weak, OWNER).await.unwrap();
    assert!(issued.credential.reveal().contains("role: Viewer"));
    for ttl in [Duration::from_secs(59), Duration::from_hours(401 * 24)] {
        let new = NewToken {
            team: team(HOME_TEAM),
            user: user(OWNER),
            label: String::new(),
            ttl: Some(ttl),
        };
        assert_eq!(
            rig.access.create_token(&owner(), new).await.unwrap_err().reason(),
            "INVALID_REQUEST"
        );
    }
}

#[tokio::test]
async fn a_claim_is_exchanged_only_while_the_user_has_access() {
    let rig = rig().await;
    let good = job(3, Origin::Review, "memory", 60);
    let token = rig.access.exchange_job_token(good.clone()).await.unwrap();
    let said = token.credential.reveal();
    assert!(said.contains("fence: 3") && said.contains("origin: Review") && said.contains("{\"memory\"}"));
    assert_eq!(token.expires, rig.clock.now().plus(Duration::from_mins(1)));

    let bad = JobTokenRequest {
        job: JobRef {
            id: String::new(),
            fence: 0,
        },
        ..job(0, Origin::Foreground, "root", 601)
    };
    let refused = rig.access.exchange_job_token(bad).await.unwrap_err();
    let fields: Vec<_> = refused
        .violations()
        .iter()
        .map(|violation| violation.field.as_str())
        .collect();
    assert_eq!(fields, ["job_id", "fence", "origin", "capabilities[0]", "ttl"]);

    rig.add(&owner(), "ann", Role::Admin).await;
    let change = UserChange {
        role: None,
        disabled: Some(true),
    };
    rig.access
        .update_user(&owner(), &team(HOME_TEAM), &user(OWNER), change)
        .await
        .unwrap();
    assert_eq!(
        rig.access.exchange_job_token(good.clone()).await.unwrap_err().reason(),
        "USER_DISABLED"
    );
    assert_eq!(rig.access.issue_owner_token().await.unwrap(), None);
    let ann = caller(HOME_TEAM, "ann", Role::Admin);
    assert_eq!(rig.token(&ann, OWNER).await.unwrap_err().reason(), "USER_DISABLED");
    let unknown = JobTokenRequest {
        user: user("nobody"),
        ..good
    };
    assert_eq!(
        rig.access.exchange_job_token(unknown).await.unwrap_err().reason(),
        "USER_NOT_FOUND"
    );
}
