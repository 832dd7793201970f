//! Who may do what: tokens, teams, users, roles, fences, and origins that are claimed instead of proven.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;

use steward_base::names::{TeamId, UserId};
use steward_base::{Clock as _, ErrorKind, Role, SystemClock, Timestamp};
use steward_client::{Client, Credentials, Wire};
use steward_grpc::{Claims, TokenSigner};
use steward_proto::access::v1 as access;
use steward_proto::agent::v1 as agent;
use steward_proto::common::v1::Role as PbRole;
use steward_proto::memory::v1 as memory;
use steward_proto::recall::v1 as recall;
use steward_testkit::ModelServer;
use steward_tests::person::fresh_id;
use steward_tests::{Person, Shape, Stack, script};

both_shapes!(a_call_without_a_good_token_is_refused_by_every_service);

async fn a_call_without_a_good_token_is_refused_by_every_service(shape: Shape) {
    let model = ModelServer::scripted(script::learner).await;
    let stack = Stack::start("no-token", shape, common::no_reviews(&model));
    let signer = TokenSigner::load_or_create(&stack.data().join("agent/keys")).unwrap();
    let (team, user) = (TeamId::parse("default").unwrap(), UserId::parse("owner").unwrap());
    let now = SystemClock.now();
    let claims = |to| {
        Claims::user(
            "0".repeat(32),
            team.clone(),
            user.clone(),
            Role::Admin,
            Timestamp::from_secs(1_700_000_000),
            to,
        )
    };
    let expired = signer.sign(&claims(Timestamp::from_secs(1_700_000_100))).unwrap();
    let future = now.plus(std::time::Duration::from_hours(1));
    let forged = TokenSigner::generate().unwrap().sign(&claims(future)).unwrap();
    let genuine = signer.sign(&claims(future)).unwrap();
    let damaged = format!("{}x", &genuine[..genuine.len() - 1]);
    for (what, token) in [
        ("expired", expired),
        ("forged", forged),
        ("damaged", damaged),
        ("nonsense", "x".to_owned()),
    ] {
        refused(&stack.client(&token), what).await;
    }
    let anonymous = Wire::connect(&stack.endpoint("memory-service")).unwrap();
    let error = Client::new(anonymous)
        .memory
        .list_entries(memory::ListEntriesRequest::default())
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind, error.reason),
        (ErrorKind::Unauthenticated, "CREDENTIAL_MISSING")
    );
}

async fn refused(client: &Client, what: &str) {
    let store = "teams/default/users/owner/memory/notes".to_owned();
    let list = memory::ListEntriesRequest {
        parent: store,
        ..Default::default()
    };
    let errors = [
        client.memory.list_entries(list).await.unwrap_err(),
        client
            .recall
            .search(recall::SearchRequest::default())
            .await
            .unwrap_err(),
        client
            .skills
            .list_skills(steward_proto::skill::v1::ListSkillsRequest::default())
            .await
            .unwrap_err(),
        client.access.who_am_i(access::WhoAmIRequest {}).await.unwrap_err(),
        client
            .reviews
            .list_reviews(steward_proto::learning::v1::ListReviewsRequest::default())
            .await
            .unwrap_err(),
    ];
    for error in errors {
        assert_eq!(
            (error.kind, error.reason),
            (ErrorKind::Unauthenticated, "CREDENTIAL_INVALID"),
            "{what}"
        );
    }
}

/// A team with an admin who has a token.
async fn team(stack: &Stack, owner: &Person, id: &str) -> Person {
    let create = access::CreateTeamRequest {
        team_id: id.to_owned(),
        admin_user_id: "chief".to_owned(),
        request_id: fresh_id(),
        ..Default::default()
    };
    owner
        .client
        .access
        .create_team(create)
        .await
        .expect("the owner may make teams");
    let signer = TokenSigner::load_or_create(&stack.data().join("agent/keys")).unwrap();
    let now = SystemClock.now();
    let claims = Claims::user(
        fresh_id(),
        TeamId::parse(id).unwrap(),
        UserId::parse("chief").unwrap(),
        Role::Admin,
        now,
        now.plus(std::time::Duration::from_hours(1)),
    );
    stack.person(&signer.sign(&claims).unwrap()).await
}

/// A member of the owner's team, with a token.
async fn member(stack: &Stack, owner: &Person, id: &str) -> Person {
    let create = access::CreateUserRequest {
        parent: owner.team.clone(),
        user_id: id.to_owned(),
        user: Some(access::User {
            role: PbRole::Member.into(),
            ..Default::default()
        }),
        request_id: fresh_id(),
    };
    let user = owner
        .client
        .access
        .create_user(create)
        .await
        .unwrap()
        .user
        .unwrap()
        .name;
    let request = access::CreateTokenRequest {
        parent: user,
        label: "test".to_owned(),
        ttl: None,
    };
    let token = owner.client.access.create_token(request).await.unwrap().credential;
    stack.person(&token).await
}

both_shapes!(two_teams_never_see_each_other);

async fn two_teams_never_see_each_other(shape: Shape) {
    let model = ModelServer::scripted(script::learner).await;
    let stack = Stack::start("two-teams", shape, common::reviews_after_each_turn(&model));
    let owner = stack.owner().await;
    let other = team(&stack, &owner, "blue").await;
    let session = owner.session(Vec::new()).await;
    owner.say(&session, "Remember: the red secret").await;
    owner.reviews_ended(1).await;
    let theirs = other.session(Vec::new()).await;
    other.say(&theirs, "Remember: the blue secret").await;
    other.reviews_ended(1).await;

    assert_eq!(owner.notes().await, ["the red secret"]);
    assert_eq!(other.notes().await, ["the blue secret"]);
    assert!(other.search("\"red secret\"").await.conversations.is_empty());
    let prompt = other
        .session_with(agent::SessionSetup::default())
        .await
        .unwrap()
        .system_prompt;
    assert!(prompt.contains("the blue secret") && !prompt.contains("red secret"));
    assert_eq!(other.reviews().await.len(), 1);

    // A foreign resource answers like a missing one, whoever asks.
    let missing = other
        .say_as("teams/blue/sessions/none", "hi", &fresh_id())
        .await
        .unwrap_err();
    let foreign = other.say_as(&session, "hi", &fresh_id()).await.unwrap_err();
    assert_eq!((foreign.kind, foreign.reason), (missing.kind, missing.reason));
    let foreign_store = memory::ListEntriesRequest {
        parent: format!("{}/memory/notes", owner.user),
        ..Default::default()
    };
    let error = other.client.memory.list_entries(foreign_store).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
    let skill = format!("{}/skills/kept-lesson", owner.user);
    assert_eq!(other.view_skill(&skill).await.unwrap_err().kind, ErrorKind::NotFound);
}

both_shapes!(what_one_user_keeps_the_other_users_of_the_team_do_not_see);

/// D-38.
async fn what_one_user_keeps_the_other_users_of_the_team_do_not_see(shape: Shape) {
    let model = ModelServer::scripted(script::learner).await;
    let stack = Stack::start("two-users", shape, common::no_reviews(&model));
    let owner = stack.owner().await;
    let ann = member(&stack, &owner, "ann").await;
    let bob = member(&stack, &owner, "bob").await;
    ann.remember("A-ONLY-7").await.unwrap();
    let session = ann.session(Vec::new()).await;
    ann.say(&session, "A-ONLY-7 is mine").await;
    ann.create_skill("ann-way", &script::skill_text("ann-way", "A-ONLY-7"))
        .await
        .unwrap();

    assert!(bob.notes().await.is_empty());
    assert!(bob.search("A-ONLY-7").await.conversations.is_empty());
    assert!(!bob.skills().await.iter().any(|skill| skill.name.contains("ann")));
    let prompt = bob
        .session_with(agent::SessionSetup::default())
        .await
        .unwrap()
        .system_prompt;
    assert!(!prompt.contains("A-ONLY-7") && !prompt.contains("ann-way"));
    for person in [&bob, &owner] {
        let store = memory::ListEntriesRequest {
            parent: format!("{}/memory/notes", ann.user),
            ..Default::default()
        };
        assert!(
            person.client.memory.list_entries(store).await.is_err(),
            "{} reads ann's notes",
            person.user
        );
        assert!(
            person.say_as(&session, "hi", &fresh_id()).await.is_err(),
            "{} speaks in ann's session",
            person.user
        );
    }
}

both_shapes!(a_revoked_token_and_a_disabled_user_end_everywhere);

async fn a_revoked_token_and_a_disabled_user_end_everywhere(shape: Shape) {
    let model = ModelServer::scripted(script::learner).await;
    let stack = Stack::start("revoked", shape, common::no_reviews(&model));
    let owner = stack.owner().await;
    let ann = member(&stack, &owner, "ann").await;
    let bob = member(&stack, &owner, "bob").await;
    ann.remember("still here").await.unwrap();
    let tokens = access::ListTokensRequest {
        parent: ann.user.clone(),
        ..Default::default()
    };
    let token = owner.client.access.list_tokens(tokens).await.unwrap().tokens[0]
        .name
        .clone();
    owner
        .client
        .access
        .revoke_token(access::RevokeTokenRequest { name: token })
        .await
        .unwrap();
    let disable = access::UpdateUserRequest {
        name: bob.user.clone(),
        disabled: Some(true),
        ..Default::default()
    };
    owner.client.access.update_user(disable).await.unwrap();
    for person in [&ann, &bob] {
        assert!(
            person.client.access.who_am_i(access::WhoAmIRequest {}).await.is_err(),
            "{} at the signer",
            person.user
        );
        steward_testkit::wait_for("the revocation to arrive", steward_tests::person::SOON, || async {
            let store = memory::ListEntriesRequest {
                parent: format!("{}/memory/notes", person.user),
                ..Default::default()
            };
            person
                .client
                .memory
                .list_entries(store)
                .await
                .is_err_and(|error| error.kind == ErrorKind::Unauthenticated)
        })
        .await;
    }
}

both_shapes!(an_origin_claimed_in_metadata_changes_nothing);

async fn an_origin_claimed_in_metadata_changes_nothing(shape: Shape) {
    let model = ModelServer::scripted(script::learner).await;
    let stack = Stack::start("claimed", shape, common::no_reviews(&model));
    let token = std::fs::read_to_string(stack.data().join("agent/owner.token")).unwrap();
    let endpoint = tonic::transport::Endpoint::from_shared(stack.endpoint("memory-service")).unwrap();
    let mut client = memory::memory_service_client::MemoryServiceClient::new(endpoint.connect_lazy());
    let add = memory::operation::Action::Add(memory::AddEntry {
        content: "by a person".to_owned(),
    });
    let mut request = tonic::Request::new(memory::ApplyRequest {
        store: "teams/default/users/owner/memory/notes".to_owned(),
        operations: vec![memory::Operation { action: Some(add) }],
        request_id: fresh_id(),
        ..Default::default()
    });
    let metadata = request.metadata_mut();
    metadata.insert("authorization", format!("Bearer {}", token.trim()).parse().unwrap());
    for claim in ["origin", "x-origin", "steward-origin", "x-steward-origin"] {
        metadata.insert(claim, "review".parse().unwrap());
    }
    metadata.insert("x-steward-user", "teams/default/users/someone".parse().unwrap());
    client.apply(request).await.expect("the token is good");
    let owner = stack.owner().await;
    let list = memory::ListEntriesRequest {
        parent: format!("{}/memory/notes", owner.user),
        ..Default::default()
    };
    let entries = owner.client.memory.list_entries(list).await.unwrap().entries;
    let provenance = entries[0].provenance.clone().unwrap();
    assert_eq!(provenance.origin(), steward_proto::common::v1::Origin::Foreground);
    assert_eq!(provenance.author, owner.user);
}

both_shapes!(a_stale_fence_cannot_append);

async fn a_stale_fence_cannot_append(shape: Shape) {
    let model = ModelServer::scripted(script::learner).await;
    let stack = Stack::start("stale", shape, common::no_reviews(&model));
    let owner = stack.owner().await;
    let session = owner.session(Vec::new()).await;
    owner.say(&session, "one").await;
    let signer = TokenSigner::load_or_create(&stack.data().join("agent/keys")).unwrap();
    let now = SystemClock.now();
    let claims = Claims::service(
        fresh_id(),
        "agent-orchestrator",
        now,
        now.plus(std::time::Duration::from_mins(5)),
    )
    .on_behalf(
        TeamId::parse("default").unwrap(),
        UserId::parse("owner").unwrap(),
        Role::Admin,
    );
    let wire = Wire::connect(&stack.endpoint("recall-service"))
        .unwrap()
        .with_credentials(Credentials::token(&signer.sign(&claims).unwrap()).unwrap());
    let store = Client::new(wire).store;
    let lease = recall::AcquireTurnLeaseRequest {
        session: session.clone(),
        turn: fresh_id(),
        holder: "test".to_owned(),
        ttl: Some(prost_types::Duration { seconds: 30, nanos: 0 }),
    };
    let fence = store.acquire_turn_lease(lease).await.unwrap().fence;
    let append = recall::AppendMessagesRequest {
        session: session.clone(),
        fence: fence - 1,
        expected_seq: 2,
        request_id: fresh_id(),
        messages: vec![recall::Message {
            role: recall::MessageRole::User.into(),
            text: "from a stale holder".to_owned(),
            ..Default::default()
        }],
        ..Default::default()
    };
    let error = store.append_messages(append).await.unwrap_err();
    assert_eq!((error.kind, error.reason), (ErrorKind::Conflict, "STALE_FENCE"));
    assert_eq!(owner.messages(&session).await.len(), 2);
    // A person's own token does not reach the store of sessions at all.
    let denied = owner
        .client
        .store
        .list_due_reviews(recall::ListDueReviewsRequest::default())
        .await
        .unwrap_err();
    assert_eq!((denied.kind, denied.reason), (ErrorKind::Forbidden, "METHOD_DENIED"));
}

both_shapes!(reflection_lists_the_services);

async fn reflection_lists_the_services(shape: Shape) {
    let model = ModelServer::scripted(script::learner).await;
    let stack = Stack::start("reflection", shape, common::no_reviews(&model));
    for (service, expected) in [
        ("agent-orchestrator", "steward.agent.v1.AgentService"),
        ("agent-orchestrator", "steward.access.v1.AccessService"),
        ("agent-orchestrator", "steward.agent.v1.ModelService"),
        ("agent-orchestrator", "steward.agent.v1.SessionService"),
        ("skill-registry", "steward.skill.v1.SkillService"),
        ("skill-registry", "steward.skill.v1.LibraryService"),
        ("memory-service", "steward.memory.v1.MemoryService"),
        ("recall-service", "steward.recall.v1.RecallService"),
        ("recall-service", "steward.recall.v1.SessionStoreService"),
        ("curator-worker", "steward.learning.v1.ReviewService"),
        ("curator-worker", "steward.learning.v1.CuratorService"),
    ] {
        let listed = common::reflected(&stack.endpoint(service)).await;
        let in_every_process = ["steward.access.v1.AuditService", "steward.access.v1.RevocationService"];
        for expected in in_every_process.into_iter().chain([expected]) {
            assert!(
                listed.iter().any(|name| name == expected),
                "{service} does not list {expected}: {listed:?}"
            );
        }
    }
}
