//! The service as it is built: its first start, its access operations over the wire, and what a revocation does.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use steward_base::{Clock as _, ErrorKind, FieldViolation};
use steward_client::{Client, ClientError, Credentials, RevocationClient, Wire};
use steward_grpc::{Auth, Built, Revocations, TokenSigner};
use steward_proto::access::v1 as pb;
use steward_proto::common::v1 as common;
use steward_runtime::{Boot, Tasks};
use steward_testkit::{MockClock, PATIENCE, SeqIds, TempDir, wait_for};

use super::{Deps, build};
use crate::config::Config;

struct Installation {
    folder: TempDir,
    clock: MockClock,
    ids: SeqIds,
}

struct Running {
    built: Built,
    tasks: Tasks,
    /// A server that takes pushes, in place of the three others.
    peer: Arc<Auth>,
}

impl Installation {
    fn new() -> Self {
        Self {
            folder: TempDir::new("orchestrator"),
            clock: MockClock::default(),
            ids: SeqIds::new(),
        }
    }

    async fn start(&self) -> Running {
        let clock: Arc<dyn steward_base::Clock> = Arc::new(self.clock.clone());
        let boot = Boot::new(self.folder.path())
            .with_clock(Arc::clone(&clock))
            .with_ids(Arc::new(self.ids.clone()));
        let signer = TokenSigner::load_or_create(&self.folder.join("agent/keys")).unwrap();
        let auth = || {
            let revocations = Revocations::in_memory(Arc::clone(&clock));
            Arc::new(Auth::new(signer.public_keys(), revocations, Arc::clone(&clock)))
        };
        let peer = auth();
        let other = Built::builder("peer", &boot, Arc::clone(&peer)).build().await.unwrap();
        let deps = Deps {
            auth: auth(),
            recall: other.local_client(),
            memory: other.local_client(),
            skills: other.local_client(),
        };
        Running {
            built: build(Config::default(), deps, &boot).await.unwrap(),
            tasks: boot.tasks,
            peer,
        }
    }

    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.join(format!("agent/{name}"))).unwrap()
    }

    fn mode(&self, name: &str) -> u32 {
        std::fs::metadata(self.folder.join(format!("agent/{name}")))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    }
}

impl Running {
    fn wire(&self, token: &str) -> Wire {
        self.built
            .local_client()
            .with_credentials(Credentials::token(token.trim()).unwrap())
    }

    fn client(&self, token: &str) -> Client {
        Client::new(self.wire(token))
    }

    async fn stop(self) {
        self.tasks.shutdown(Duration::from_secs(30)).await;
    }
}

async fn make_user(owner: &Client, id: &str, role: common::Role) -> String {
    let request = pb::CreateUserRequest {
        parent: "teams/default".to_owned(),
        user_id: id.to_owned(),
        user: Some(pb::User {
            role: role.into(),
            ..pb::User::default()
        }),
        request_id: String::new(),
    };
    owner.access.create_user(request).await.unwrap();
    let token = pb::CreateTokenRequest {
        parent: format!("teams/default/users/{id}"),
        label: "test".to_owned(),
        ttl: None,
    };
    owner.access.create_token(token).await.unwrap().credential
}

fn fields(error: &ClientError) -> Vec<&str> {
    error
        .violations
        .iter()
        .map(|FieldViolation { field, .. }| field.as_str())
        .collect()
}

async fn who(client: &Client) -> Result<pb::WhoAmIResponse, ClientError> {
    client.access.who_am_i(pb::WhoAmIRequest {}).await
}

#[tokio::test]
async fn the_first_start_makes_an_owner_whom_only_the_owner_can_be() {
    let installation = Installation::new();
    let running = installation.start().await;
    let (owner, worker) = (
        installation.file("owner.token"),
        installation.file("curator-worker.token"),
    );
    for file in [
        "owner.token",
        "curator-worker.token",
        "keys/signing-key.pem",
        "access.db",
        "instance",
    ] {
        assert_eq!(installation.mode(file), 0o600, "{file}");
    }
    let me = who(&running.client(&owner)).await.unwrap();
    assert_eq!(
        (me.user.as_str(), me.role(), me.home_team),
        ("teams/default/users/owner", common::Role::Admin, true)
    );
    let ends = me.expire_time.unwrap().seconds - installation.clock.now().as_secs();
    assert_eq!(ends, 400 * 24 * 3600);
    let anonymous = Client::new(running.built.local_client());
    assert_eq!(who(&anonymous).await.unwrap_err().kind, ErrorKind::Unauthenticated);
    running.stop().await;

    let again = installation.start().await;
    assert_eq!(installation.file("owner.token"), owner, "a good credential is kept");
    assert_eq!(installation.file("curator-worker.token"), worker);
    who(&again.client(&owner)).await.unwrap();
    again.stop().await;
    installation.clock.advance(Duration::from_hours(371 * 24));
    let later = installation.start().await;
    assert_ne!(
        installation.file("owner.token"),
        owner,
        "one that is about to end is replaced"
    );
    who(&later.client(&installation.file("owner.token"))).await.unwrap();
    later.stop().await;
}

#[tokio::test]
async fn a_revoked_token_is_refused_at_once_here_and_soon_elsewhere() {
    let installation = Installation::new();
    let mut running = installation.start().await;
    running.built.start_background(&running.tasks);
    let owner = running.client(&installation.file("owner.token"));
    let credential = make_user(&owner, "ann", common::Role::Member).await;
    let ann = running.client(&credential);
    who(&ann).await.unwrap();
    let parent = "teams/default/users/ann".to_owned();
    let list = pb::ListTokensRequest {
        parent,
        ..pb::ListTokensRequest::default()
    };
    let name = ann.access.list_tokens(list).await.unwrap().tokens[0].name.clone();
    let revoked = ann.access.revoke_token(pb::RevokeTokenRequest { name }).await.unwrap();
    assert!(revoked.token.unwrap().revoke_time.is_some());
    let refused = who(&ann).await.unwrap_err();
    assert_eq!(refused.reason, "CREDENTIAL_INVALID");
    let peer = Arc::clone(&running.peer);
    wait_for("the push to arrive", PATIENCE, || {
        let refused = peer.caller(credential.trim()).is_err();
        async move { refused }
    })
    .await;
    running.stop().await;
}

#[tokio::test]
async fn a_disabled_user_is_nobody_until_enabled_again() {
    let installation = Installation::new();
    let running = installation.start().await;
    let owner = running.client(&installation.file("owner.token"));
    let ann = running.client(&make_user(&owner, "ann", common::Role::Maintainer).await);
    let worker = running.client(&installation.file("curator-worker.token"));
    let set = |disabled| pb::UpdateUserRequest {
        name: "teams/default/users/ann".to_owned(),
        role: common::Role::Unspecified.into(),
        disabled: Some(disabled),
    };
    owner.access.update_user(set(true)).await.unwrap();
    assert_eq!(who(&ann).await.unwrap_err().reason, "CREDENTIAL_INVALID");
    let exchange = pb::ExchangeJobTokenRequest {
        user: "teams/default/users/ann".to_owned(),
        job_id: "job".to_owned(),
        fence: 1,
        origin: common::Origin::Review.into(),
        session: String::new(),
        capabilities: vec!["memory".to_owned()],
        ttl: Some(prost_types::Duration { seconds: 60, nanos: 0 }),
    };
    let refused = worker.access.exchange_job_token(exchange.clone()).await.unwrap_err();
    assert_eq!((refused.kind, refused.reason), (ErrorKind::Forbidden, "USER_DISABLED"));
    let listed = worker
        .access
        .list_revocations(pb::ListRevocationsRequest {})
        .await
        .unwrap();
    assert_eq!(listed.revocations.len(), 1);
    owner.access.update_user(set(false)).await.unwrap();
    who(&ann).await.unwrap();
    worker.access.exchange_job_token(exchange).await.unwrap();
    running.stop().await;
}

#[tokio::test]
async fn a_lowered_role_ends_the_tokens_that_say_the_old_one() {
    let installation = Installation::new();
    let running = installation.start().await;
    let owner = running.client(&installation.file("owner.token"));
    let boss = running.client(&make_user(&owner, "boss", common::Role::Admin).await);
    let demote = |name: &str| pb::UpdateUserRequest {
        name: format!("teams/default/users/{name}"),
        role: common::Role::Member.into(),
        disabled: None,
    };
    boss.access.update_user(demote("owner")).await.unwrap();
    assert_eq!(who(&owner).await.unwrap_err().reason, "CREDENTIAL_INVALID");
    let last = boss.access.update_user(demote("boss")).await.unwrap_err();
    assert_eq!((last.kind, last.reason), (ErrorKind::Precondition, "LAST_ADMIN"));
    running.stop().await;

    let again = installation.start().await;
    let me = who(&again.client(&installation.file("owner.token"))).await.unwrap();
    assert_eq!(
        me.role(),
        common::Role::Member,
        "the file is made anew, with the present role"
    );
    again.stop().await;
}

#[tokio::test]
async fn only_services_reach_what_is_for_services() {
    let installation = Installation::new();
    let running = installation.start().await;
    let token = installation.file("owner.token");
    let owner = running.client(&token);
    let exchange = pb::ExchangeJobTokenRequest::default();
    let refused = owner.access.exchange_job_token(exchange.clone()).await.unwrap_err();
    assert_eq!((refused.kind, refused.reason), (ErrorKind::Forbidden, "METHOD_DENIED"));
    let push = RevocationClient::new(running.wire(&token));
    let refused = push
        .apply_revocations(pb::ApplyRevocationsRequest::default())
        .await
        .unwrap_err();
    assert_eq!(refused.reason, "METHOD_DENIED");
    let worker = running.client(&installation.file("curator-worker.token"));
    let invalid = worker.access.exchange_job_token(exchange).await.unwrap_err();
    assert_eq!((invalid.reason, fields(&invalid)), ("INVALID_REQUEST", vec!["user"]));
    assert_eq!(who(&worker).await.unwrap_err().reason, "METHOD_DENIED");
    running.stop().await;
}

#[tokio::test]
async fn teams_are_made_once_from_the_home_team() {
    let installation = Installation::new();
    let running = installation.start().await;
    let owner = running.client(&installation.file("owner.token"));
    let request = pb::CreateTeamRequest {
        team_id: "red".to_owned(),
        display_name: "Red".to_owned(),
        admin_user_id: "rob".to_owned(),
        request_id: "r1".to_owned(),
    };
    let made = owner.access.create_team(request.clone()).await.unwrap();
    assert_eq!(made, owner.access.create_team(request.clone()).await.unwrap());
    let reused = pb::CreateTeamRequest {
        team_id: "blue".to_owned(),
        ..request
    };
    assert_eq!(
        owner.access.create_team(reused).await.unwrap_err().reason,
        "REQUEST_ID_REUSED"
    );
    let bad = pb::CreateTeamRequest {
        team_id: "No".to_owned(),
        ..pb::CreateTeamRequest::default()
    };
    assert_eq!(
        fields(&owner.access.create_team(bad).await.unwrap_err()),
        ["team_id", "admin_user_id"]
    );

    let page = pb::ListTeamsRequest {
        page_size: 1,
        page_token: String::new(),
    };
    let first = owner.access.list_teams(page).await.unwrap();
    let next = pb::ListTeamsRequest {
        page_size: 1,
        page_token: first.next_page_token,
    };
    let second = owner.access.list_teams(next).await.unwrap();
    let names: Vec<&str> = first
        .teams
        .iter()
        .chain(&second.teams)
        .map(|team| team.name.as_str())
        .collect();
    assert_eq!(
        (names, second.next_page_token.as_str()),
        (vec!["teams/default", "teams/red"], "")
    );
    running.stop().await;
}

#[tokio::test]
async fn an_admin_of_one_team_finds_nobody_of_another() {
    let installation = Installation::new();
    let running = installation.start().await;
    let owner = running.client(&installation.file("owner.token"));
    let request = pb::CreateTeamRequest {
        team_id: "red".to_owned(),
        admin_user_id: "rob".to_owned(),
        ..pb::CreateTeamRequest::default()
    };
    owner.access.create_team(request).await.unwrap();
    let foreign = pb::CreateTokenRequest {
        parent: "teams/red/users/rob".to_owned(),
        ..pb::CreateTokenRequest::default()
    };
    assert_eq!(
        owner.access.create_token(foreign).await.unwrap_err().reason,
        "USER_NOT_FOUND"
    );
    let users = pb::ListUsersRequest {
        parent: "teams/red".to_owned(),
        ..pb::ListUsersRequest::default()
    };
    assert_eq!(
        owner.access.list_users(users).await.unwrap_err().reason,
        "TEAM_NOT_FOUND"
    );
    running.stop().await;
}
