//! Who gets in.

use std::collections::BTreeSet;
use std::time::Duration;

use prost::Message as _;
use steward_base::names::{SessionId, UserId};
use steward_base::{ErrorKind, JobRef, Origin, Role};
use steward_client::{ClientError, Credentials, MemoryClient, RevocationClient, Wire};
use steward_grpc::auth::policy;
use steward_grpc::{AuthConfig, TokenSigner};
use steward_proto::access::v1 as access;
use steward_proto::agent::v1::{GenerateRequest, GetModelRouteRequest};
use steward_proto::memory::v1::{ApplyRequest, GetEntryRequest};
use steward_proto::recall::v1::recall_service_client::RecallServiceClient;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;

use crate::fixture::{Stack, model, recall, search};

async fn refused(wire: Wire, credentials: Credentials) -> ClientError {
    recall(wire, credentials)
        .search(search("whoami"))
        .await
        .expect_err("must be refused")
}

fn revoke(version: u64, subject: access::revocation::Subject) -> access::ApplyRevocationsRequest {
    access::ApplyRevocationsRequest {
        version,
        revocations: vec![access::Revocation {
            subject: Some(subject),
            expire_time: None,
        }],
    }
}

#[tokio::test]
async fn without_a_good_credential_nothing_is_reached() {
    let stack = Stack::start().await;
    let stranger = TokenSigner::generate()
        .unwrap()
        .sign(&stack.user_claims(Role::Admin))
        .unwrap();
    for wire in stack.shapes() {
        let error = refused(wire.clone(), Credentials::anonymous()).await;
        assert_eq!(
            (error.kind, error.reason),
            (ErrorKind::Unauthenticated, "CREDENTIAL_MISSING")
        );
        for token in [stranger.as_str(), "eyJhbGciOiJub25lIn0.e30.", "garbage"] {
            let error = refused(wire.clone(), Credentials::token(token).unwrap()).await;
            assert_eq!(
                (error.kind, error.reason),
                (ErrorKind::Unauthenticated, "CREDENTIAL_INVALID"),
                "{token}"
            );
            assert_eq!(error.message, "a valid credential is required");
        }
    }
    stack.stop().await;
}

#[tokio::test]
async fn an_expired_token_is_refused_also_after_it_was_good() {
    let stack = Stack::start().await;
    let credentials = stack.user(Role::Member);
    for wire in stack.shapes() {
        recall(wire, credentials.clone())
            .search(search("whoami"))
            .await
            .unwrap();
    }
    stack.clock.advance(Duration::from_hours(2));
    for wire in stack.shapes() {
        assert_eq!(refused(wire, credentials.clone()).await.reason, "CREDENTIAL_INVALID");
    }
    stack.stop().await;
}

#[tokio::test]
async fn a_credential_opens_only_what_its_policy_names() {
    let stack = Stack::start().await;
    let session = SessionId::parse("s1").unwrap();
    let turn = |caps: &[&str]| {
        let caps: BTreeSet<_> = caps.iter().map(|cap| (*cap).to_owned()).collect();
        stack.sign(&stack.user_claims(Role::Admin).for_turn(session.clone(), "t1", caps))
    };
    for wire in stack.shapes() {
        // Search: persons from viewer on, and turns with the capability; no services.
        assert!(
            recall(wire.clone(), stack.user(Role::Viewer))
                .search(search("x"))
                .await
                .is_ok()
        );
        assert!(
            recall(wire.clone(), turn(&["session_search"]))
                .search(search("x"))
                .await
                .is_ok()
        );
        for other in [turn(&["memory"]), turn(&[]), stack.service()] {
            let error = refused(wire.clone(), other).await;
            assert_eq!((error.kind, error.reason), (ErrorKind::Forbidden, "METHOD_DENIED"));
            assert_eq!(
                error.metadata,
                [("method", "/steward.recall.v1.RecallService/Search".to_owned())]
            );
        }
        // A turn can no more than its person: a viewer's may not write, whatever capability it was given.
        let viewer =
            stack
                .user_claims(Role::Viewer)
                .for_turn(session.clone(), "t1", BTreeSet::from(["memory".to_owned()]));
        let memory = MemoryClient::new(wire.clone()).with_credentials(stack.sign(&viewer));
        assert_eq!(
            memory.apply(ApplyRequest::default()).await.unwrap_err().reason,
            "METHOD_DENIED"
        );
        // Generate: services and jobs with the capability; no person, whatever the role.
        assert!(
            model(wire.clone(), stack.service())
                .generate(GenerateRequest::default())
                .await
                .is_ok()
        );
        let error = model(wire, stack.user(Role::Admin))
            .generate(GenerateRequest::default())
            .await
            .unwrap_err();
        assert_eq!(error.reason, "METHOD_DENIED");
    }
    stack.stop().await;
}

#[tokio::test]
async fn an_origin_claimed_in_metadata_changes_nothing() {
    let stack = Stack::start().await;
    let job = JobRef {
        id: "job-1".to_owned(),
        fence: 1,
    };
    let caps = BTreeSet::from(["session_search".to_owned()]);
    let job = stack.user_claims(Role::Member).for_job(job, Origin::Review, None, caps);
    for wire in stack.shapes() {
        for (claims, expected) in [
            (stack.user_claims(Role::Viewer), "red foreground Viewer"),
            (job.clone(), "red review Member"),
        ] {
            let mut client = RecallServiceClient::new(wire.clone().with_credentials(stack.sign(&claims)));
            let mut request = tonic::Request::new(search("whoami"));
            for (key, value) in [
                ("origin", "curation"),
                ("x-steward-origin", "hub"),
                ("team", "blue"),
                ("role", "admin"),
            ] {
                request.metadata_mut().insert(key, value.parse().unwrap());
            }
            assert_eq!(client.search(request).await.unwrap().into_inner().expression, expected);
        }
    }
    stack.stop().await;
}

#[tokio::test]
async fn a_revoked_token_and_a_disabled_user_are_refused_at_once_and_after_a_restart() {
    use access::revocation::Subject;
    let stack = Stack::start().await;
    let subjects = [
        Subject::TokenId("token-ann".to_owned()),
        Subject::User("teams/red/users/ann".to_owned()),
    ];
    for (round, (wire, subject)) in (1..).zip(stack.shapes().into_iter().zip(subjects)) {
        let revocations = RevocationClient::new(wire.clone()).with_credentials(stack.orchestrator());
        let version = 2 * round;
        let answer = revocations.apply_revocations(revoke(version, subject)).await.unwrap();
        assert_eq!(answer.version, version);
        // One that was sent before and arrives now.
        let late = access::ApplyRevocationsRequest {
            version: version - 1,
            ..Default::default()
        };
        assert_eq!(revocations.apply_revocations(late).await.unwrap().version, version);
        for wire in stack.shapes() {
            assert_eq!(
                refused(wire, stack.user(Role::Admin)).await.reason,
                "CREDENTIAL_INVALID"
            );
        }
        let kept = std::fs::read_to_string(stack.folder.path().join("revocations.json")).unwrap();
        assert!(kept.contains("ann"), "{kept}");
        let none = access::ApplyRevocationsRequest {
            version: version + 1,
            ..Default::default()
        };
        revocations.apply_revocations(none).await.unwrap();
        recall(wire, stack.user(Role::Admin)).search(search("x")).await.unwrap();
    }
    stack.stop().await;
}

#[tokio::test]
async fn only_the_service_that_revokes_may_push_revocations_and_all_wrong_entries_are_named() {
    use access::revocation::Subject;
    let stack = Stack::start().await;
    for wire in stack.shapes() {
        for other in [stack.user(Role::Admin), stack.service()] {
            let client = RevocationClient::new(wire.clone()).with_credentials(other);
            let error = client
                .apply_revocations(access::ApplyRevocationsRequest::default())
                .await
                .unwrap_err();
            assert_eq!(error.reason, "METHOD_DENIED");
        }
        let service = RevocationClient::new(wire).with_credentials(stack.orchestrator());
        let mut request = revoke(0, Subject::User("ann".to_owned()));
        request.revocations.push(access::Revocation::default());
        let error = service.apply_revocations(request).await.unwrap_err();
        let fields: Vec<_> = error
            .violations
            .iter()
            .map(|violation| violation.field.as_str())
            .collect();
        assert_eq!(fields, ["version", "revocations[0].subject", "revocations[1].subject"]);
    }
    stack.stop().await;
}

#[tokio::test]
async fn health_needs_no_credential_and_an_unknown_method_is_denied() {
    let stack = Stack::start().await;
    for wire in stack.shapes() {
        for service in ["", "steward.recall.v1.RecallService"] {
            let request = HealthCheckRequest {
                service: service.to_owned(),
            };
            let answer = HealthClient::new(wire.clone()).check(request).await.unwrap();
            assert_eq!(answer.into_inner().status, 1, "serving");
        }
        // In the contract, but not on this server: permitted, and nobody there.
        let memory = MemoryClient::new(wire).with_credentials(stack.user(Role::Admin));
        let error = memory.get_entry(GetEntryRequest::default()).await.unwrap_err();
        assert_eq!(error.reason, "UNIMPLEMENTED");
    }
    stack.stop().await;
}

#[tokio::test]
async fn a_disabled_user_is_refused_whoever_acts_for_it() {
    use access::revocation::Subject;
    let stack = Stack::start().await;
    let caps = BTreeSet::from(["session_search".to_owned(), "generate".to_owned()]);
    let job = JobRef {
        id: "job-1".to_owned(),
        fence: 1,
    };
    let ann = stack.user_claims(Role::Member);
    let (team, user) = (ann.team.clone().unwrap(), ann.user.clone().unwrap());
    let mut all = vec![
        ann.clone()
            .for_turn(SessionId::parse("s1").unwrap(), "t1", caps.clone()),
        ann.clone().for_job(job, Origin::Review, None, caps),
        stack
            .service_claims("curator-worker")
            .on_behalf(team, user, Role::Member),
        ann,
    ];
    for (index, claims) in all.iter_mut().enumerate() {
        claims.jti = format!("token-{index}");
    }
    let subject = Subject::User("teams/red/users/ann".to_owned());
    let revocations = RevocationClient::new(stack.local.clone()).with_credentials(stack.orchestrator());
    revocations.apply_revocations(revoke(1, subject)).await.unwrap();
    for wire in stack.shapes() {
        for claims in &all {
            assert_eq!(
                refused(wire.clone(), stack.sign(claims)).await.reason,
                "CREDENTIAL_INVALID"
            );
        }
        // Others of the team, and services that act for nobody, go on.
        let mut bob = stack.user_claims(Role::Member);
        bob.user = Some(UserId::parse("bob").unwrap());
        recall(wire.clone(), stack.sign(&bob))
            .search(search("x"))
            .await
            .unwrap();
        model(wire, stack.service())
            .get_model_route(GetModelRouteRequest::default())
            .await
            .unwrap();
    }
    stack.stop().await;
}

#[tokio::test]
async fn two_credentials_are_none() {
    let stack = Stack::start().await;
    let claims = stack.user_claims(Role::Member);
    let good = format!("Bearer {}", stack.signer.sign(&claims).unwrap());
    for wire in stack.shapes() {
        for second in [good.as_str(), "Bearer garbage"] {
            let mut request = tonic::Request::new(search("whoami"));
            for value in [good.as_str(), second] {
                request.metadata_mut().append("authorization", value.parse().unwrap());
            }
            let mut client = RecallServiceClient::new(wire.clone());
            let error = ClientError::from(client.search(request).await.unwrap_err());
            assert_eq!(error.reason, "CREDENTIAL_INVALID");
        }
    }
    stack.stop().await;
}

#[tokio::test]
async fn a_server_may_ask_for_a_credential_for_health_and_reflection_too() {
    let config = AuthConfig {
        open_health: false,
        open_reflection: false,
        ..AuthConfig::default()
    };
    let stack = Stack::start_with("127.0.0.1:0", config).await;
    let turn = stack
        .user_claims(Role::Admin)
        .for_turn(SessionId::parse("s1").unwrap(), "t1", BTreeSet::new());
    for wire in stack.shapes() {
        for (credentials, welcome) in [
            (Credentials::anonymous(), false),
            (Credentials::token("garbage").unwrap(), false),
            (stack.sign(&turn), false),
            (stack.user(Role::Viewer), true),
            (stack.service(), true),
        ] {
            let wire = wire.clone().with_credentials(credentials);
            let health = HealthClient::new(wire.clone())
                .check(HealthCheckRequest::default())
                .await;
            assert_eq!(health.is_ok(), welcome, "{wire:?}: {health:?}");
            let requests = futures::stream::empty::<ServerReflectionRequest>();
            let reflection = ServerReflectionClient::new(wire).server_reflection_info(requests).await;
            assert_eq!(reflection.is_ok(), welcome);
        }
    }
    stack.stop().await;
}

#[test]
fn every_method_of_every_descriptor_has_a_policy() {
    let set = prost_types::FileDescriptorSet::decode(steward_proto::FILE_DESCRIPTOR_SET).unwrap();
    let mut seen = 0;
    for file in set.file.iter().filter(|file| file.package().starts_with("steward.")) {
        for service in &file.service {
            for method in &service.method {
                let path = format!("/{}.{}/{}", file.package(), service.name(), method.name());
                assert!(policy::find(&path).is_some(), "{path} would be denied to everyone");
                seen += 1;
            }
        }
    }
    assert!(seen > 40, "only {seen} methods were found");
}
