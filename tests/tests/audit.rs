//! The audit log (`A-5`) of an installation: what people, turns and jobs changed, and who was refused, in whichever process
//! it arrived.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;

use std::collections::BTreeSet;

use steward_client::{Credentials, Wire};
use steward_proto::access::v1 as access;
use steward_proto::access::v1::audit_service_client::AuditServiceClient;
use steward_proto::memory::v1 as memory;
use steward_testkit::ModelServer;
use steward_tests::person::fresh_id;
use steward_tests::{SERVICES, Shape, Stack, script};

/// All records of all processes that `token` may see.
async fn records(stack: &Stack, token: &str, unattributed: bool) -> Vec<access::AuditEvent> {
    let endpoints: BTreeSet<_> = SERVICES.iter().map(|service| stack.endpoint(service)).collect();
    let mut all = Vec::new();
    for endpoint in endpoints {
        let wire = Wire::connect(&endpoint).unwrap();
        let mut client = AuditServiceClient::new(wire.with_credentials(Credentials::token(token).unwrap()));
        let mut request = access::ListAuditEventsRequest {
            parent: "teams/default".to_owned(),
            include_unattributed: unattributed,
            page_size: 7,
            ..Default::default()
        };
        loop {
            let page = client.list_audit_events(request.clone()).await.unwrap().into_inner();
            all.extend(page.audit_events);
            if page.next_page_token.is_empty() {
                break;
            }
            request.page_token = page.next_page_token;
        }
    }
    all
}

fn owner_token(stack: &Stack) -> String {
    let token = std::fs::read_to_string(stack.data().join("agent/owner.token")).unwrap();
    token.trim().to_owned()
}

both_shapes!(what_was_changed_and_who_was_refused_can_be_read_wherever_it_arrived);

async fn what_was_changed_and_who_was_refused_can_be_read_wherever_it_arrived(shape: Shape) {
    use access::AuditOutcome::{Denied, Succeeded};
    use access::PrincipalKind as Kind;
    let model = ModelServer::scripted(script::learner).await;
    let mut stack = Stack::start("audit", shape, common::reviews_after_each_turn(&model));
    let owner = stack.owner().await;
    owner.remember("the secret of the log").await.unwrap();
    let session = owner.session(Vec::new()).await;
    owner.say(&session, "Remember: a word that nobody logs").await;
    owner.reviews_ended(1).await;
    let stranger = Wire::connect(&stack.endpoint("memory-service")).unwrap();
    let stranger = steward_client::MemoryClient::new(stranger);
    stranger.apply(memory::ApplyRequest::default()).await.unwrap_err();
    // A person may not do what services do among themselves.
    let lease = steward_proto::recall::v1::ReleaseTurnLeaseRequest::default();
    owner.client.store.release_turn_lease(lease).await.unwrap_err();

    let seen = records(&stack, &owner_token(&stack), true).await;
    let find = |service: &str, method: &str, kind: access::PrincipalKind| {
        seen.iter()
            .find(|event| event.service == service && event.method.ends_with(method) && event.principal_kind() == kind)
            .unwrap_or_else(|| panic!("no record of {method} by {kind:?}: {seen:#?}"))
    };
    let asked = find("agent-orchestrator", "ModelService/Generate", Kind::Job);
    assert_eq!(
        (asked.outcome(), asked.code.as_str()),
        (Succeeded, "OK"),
        "it was heard to its end"
    );
    let written = find("memory-service", "MemoryService/Apply", Kind::Person);
    assert_eq!(
        (written.outcome(), written.user.as_str()),
        (Succeeded, owner.user.as_str())
    );
    assert_eq!(written.resources, [format!("store={}/memory/notes", owner.user)]);
    let turn = find("agent-orchestrator", "AgentService/RunTurn", Kind::Person);
    assert_eq!(turn.outcome(), Succeeded);
    assert_eq!(turn.resources, [format!("session={session}")]);
    // The review wrote with the job's token, in the service that it changed.
    let learned = find("memory-service", "MemoryService/Apply", Kind::Job);
    assert_eq!(
        (learned.outcome(), learned.origin()),
        (Succeeded, steward_proto::common::v1::Origin::Review)
    );
    assert!(!learned.job_id.is_empty() && learned.fence > 0);
    let refused = find("memory-service", "MemoryService/Apply", Kind::Unspecified);
    assert_eq!(
        (refused.outcome(), refused.reason.as_str()),
        (Denied, "CREDENTIAL_MISSING")
    );
    assert!(refused.peer.starts_with("127.0.0.1:"), "{:?}", refused.peer);
    let refused = find("recall-service", "SessionStoreService/ReleaseTurnLease", Kind::Person);
    assert_eq!((refused.outcome(), refused.reason.as_str()), (Denied, "METHOD_DENIED"));
    // What services do by themselves is not in it, and no read is.
    assert!(
        seen.iter().all(|event| event.principal_kind() != Kind::Service),
        "{seen:#?}"
    );
    assert!(
        seen.iter()
            .all(|event| !event.method.contains("/List") && !event.method.contains("/Get"))
    );

    // It is kept, and the words are not in it.
    stack.restart_all().await;
    let again = records(&stack, &owner_token(&stack), true).await;
    assert!(again.len() >= seen.len());
    let log = std::fs::read(stack.data().join(match stack.shape() {
        Shape::One => "agent/audit/audit.db",
        Shape::Split => "memory/audit/audit.db",
    }));
    let log = String::from_utf8_lossy(&log.unwrap()).into_owned();
    assert!(log.contains("MemoryService/Apply") && !log.contains("secret of the log") && !log.contains("nobody logs"));
}

both_shapes!(a_team_sees_only_its_own_records);

async fn a_team_sees_only_its_own_records(shape: Shape) {
    let model = ModelServer::scripted(script::learner).await;
    let stack = Stack::start("audit-teams", shape, common::no_reviews(&model));
    let owner = stack.owner().await;
    let create = access::CreateTeamRequest {
        team_id: "blue".to_owned(),
        admin_user_id: "chief".to_owned(),
        request_id: fresh_id(),
        ..Default::default()
    };
    owner.client.access.create_team(create).await.unwrap();
    let signer = steward_grpc::TokenSigner::load_or_create(&stack.data().join("agent/keys")).unwrap();
    let now = steward_base::Clock::now(&steward_base::SystemClock);
    let claims = steward_grpc::Claims::user(
        fresh_id(),
        steward_base::names::TeamId::parse("blue").unwrap(),
        steward_base::names::UserId::parse("chief").unwrap(),
        steward_base::Role::Admin,
        now,
        now.plus(std::time::Duration::from_hours(1)),
    );
    let token = signer.sign(&claims).unwrap();
    stack.person(&token).await.remember("blue only").await.unwrap();

    let wire = Wire::connect(&stack.endpoint("memory-service")).unwrap();
    let mut theirs = AuditServiceClient::new(wire.with_credentials(Credentials::token(&token).unwrap()));
    let mut request = access::ListAuditEventsRequest {
        parent: "teams/blue".to_owned(),
        ..Default::default()
    };
    let events = theirs
        .list_audit_events(request.clone())
        .await
        .unwrap()
        .into_inner()
        .audit_events;
    assert!(!events.is_empty() && events.iter().all(|event| event.user == "teams/blue/users/chief"));
    request.include_unattributed = true;
    let error = theirs.list_audit_events(request.clone()).await.unwrap_err();
    assert_eq!(error.code(), tonic::Code::PermissionDenied);
    request = access::ListAuditEventsRequest {
        parent: "teams/default".to_owned(),
        ..Default::default()
    };
    assert_eq!(
        theirs.list_audit_events(request).await.unwrap_err().code(),
        tonic::Code::NotFound
    );
    let ours = records(&stack, &owner_token(&stack), true).await;
    assert!(ours.iter().all(|event| !event.user.contains("blue")));
}
