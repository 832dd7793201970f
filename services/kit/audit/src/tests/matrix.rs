//! Who calls what, how it ends, and what the log says then.

use super::*;

/// A line of the table: who, what, what the handler would answer, what the caller gets, and the record if there is one.
type Line = (
    Who,
    &'static str,
    Code,
    Code,
    Option<(pb::PrincipalKind, pb::AuditOutcome, &'static str)>,
);

fn table() -> Vec<Line> {
    use pb::AuditOutcome::{Denied, Failed, Succeeded};
    use pb::PrincipalKind as Kind;
    let member = Who::Person("red", "ann", Role::Member);
    let viewer = Who::Person("red", "eve", Role::Viewer);
    vec![
        // Writes, whatever comes of them.
        (member, WRITE, Code::Ok, Code::Ok, Some((Kind::Person, Succeeded, ""))),
        (
            member,
            WRITE,
            Code::NotFound,
            Code::NotFound,
            Some((Kind::Person, Failed, "")),
        ),
        (
            member,
            WRITE,
            Code::PermissionDenied,
            Code::PermissionDenied,
            Some((Kind::Person, Denied, "")),
        ),
        (
            Who::Turn("memory"),
            WRITE,
            Code::Ok,
            Code::Ok,
            Some((Kind::Turn, Succeeded, "")),
        ),
        (
            Who::Job("memory"),
            WRITE,
            Code::Ok,
            Code::Ok,
            Some((Kind::Job, Succeeded, "")),
        ),
        (
            Who::Job("memory"),
            WRITE,
            Code::PermissionDenied,
            Code::PermissionDenied,
            Some((Kind::Job, Denied, "")),
        ),
        // Denied, whoever asks for whatever.
        (
            Who::Nobody,
            WRITE,
            Code::Ok,
            Code::Unauthenticated,
            Some((Kind::Unspecified, Denied, "CREDENTIAL_MISSING")),
        ),
        (
            Who::Nobody,
            READ,
            Code::Ok,
            Code::Unauthenticated,
            Some((Kind::Unspecified, Denied, "CREDENTIAL_MISSING")),
        ),
        (
            Who::Stranger,
            READ,
            Code::Ok,
            Code::Unauthenticated,
            Some((Kind::Unspecified, Denied, "CREDENTIAL_INVALID")),
        ),
        (
            viewer,
            WRITE,
            Code::Ok,
            Code::PermissionDenied,
            Some((Kind::Person, Denied, "METHOD_DENIED")),
        ),
        (
            Who::Turn("skills_list"),
            WRITE,
            Code::Ok,
            Code::PermissionDenied,
            Some((Kind::Turn, Denied, "METHOD_DENIED")),
        ),
        (
            Who::Worker,
            WRITE,
            Code::Ok,
            Code::PermissionDenied,
            Some((Kind::Service, Denied, "METHOD_DENIED")),
        ),
        (
            member,
            READ,
            Code::PermissionDenied,
            Code::PermissionDenied,
            Some((Kind::Person, Denied, "")),
        ),
        (
            member,
            "steward.memory.v1.MemoryService/Nothing",
            Code::Ok,
            Code::PermissionDenied,
            Some((Kind::Person, Denied, "METHOD_DENIED")),
        ),
        // Reads, and what is open to anyone.
        (member, READ, Code::Ok, Code::Ok, None),
        (member, READ, Code::NotFound, Code::NotFound, None),
        (
            Who::Nobody,
            "grpc.health.v1.Health/Check",
            Code::NotFound,
            Code::NotFound,
            None,
        ),
    ]
}

#[tokio::test]
async fn writes_and_denied_calls_are_recorded_and_reads_are_not() {
    let rig = Rig::start().await;
    for wire in rig.shapes() {
        for (who, method, scripted, expected, record) in table() {
            let from = rig.clock.advance(Duration::from_secs(61));
            let code = rig.call(&wire, who, method, apply("x"), scripted).await;
            assert_eq!(code, expected, "{who:?} {method}");
            let since = pb::ListAuditEventsRequest {
                start_time: Some(prost_types::Timestamp {
                    seconds: from.as_secs(),
                    nanos: 0,
                }),
                ..of("red")
            };
            let mut events = rig.list(ADMIN, since.clone()).await.unwrap();
            let without_team = pb::ListAuditEventsRequest {
                include_unattributed: true,
                parent: "teams/home".to_owned(),
                ..since
            };
            events.extend(rig.list(HOME, without_team).await.unwrap());
            let found: Vec<_> = events
                .iter()
                .map(|event| (event.principal_kind(), event.outcome(), event.reason.as_str()))
                .collect();
            assert_eq!(
                found,
                record.into_iter().collect::<Vec<_>>(),
                "{who:?} {method} {scripted:?}"
            );
            if let Some(event) = events.first() {
                let known = !method.ends_with("Nothing");
                assert_eq!(event.method, if known { method } else { "_OTHER" });
                assert_eq!((event.request_id.as_str(), event.count), ("req-1", 1));
                assert_eq!(event.service, "memory-service");
            }
        }
    }
    rig.stop().await;
}

#[tokio::test]
async fn a_record_says_who_what_and_from_where() {
    let rig = Rig::start().await;
    for (wire, far) in rig.shapes().iter().zip([false, true]) {
        rig.clock.advance(Duration::from_secs(1));
        rig.call(wire, Who::Job("memory"), WRITE, apply("x"), Code::Ok).await;
        let event = rig.list(ADMIN, of("red")).await.unwrap().remove(0);
        assert_eq!(event.user, "teams/red/users/ann");
        assert_eq!(
            (event.job_id.as_str(), event.fence, event.session_id.as_str()),
            ("job-1", 7, "s1")
        );
        assert_eq!(event.origin(), steward_proto::common::v1::Origin::Review);
        assert_eq!(event.role(), steward_proto::common::v1::Role::Member);
        assert_eq!(event.token_id, "token-ann");
        assert_eq!(event.resources, ["store=teams/red/users/ann/memory/notes"]);
        assert_eq!(event.code, "OK");
        assert_eq!(event.peer.starts_with("127.0.0.1:"), far, "{:?}", event.peer);
        assert!(event.name.starts_with("teams/red/auditEvents/"), "{}", event.name);
    }
    rig.stop().await;
}

#[tokio::test]
async fn no_word_of_a_request_and_no_credential_gets_into_the_log() {
    let rig = Rig::start().await;
    let secret = "the-door-code-is-1234";
    let mut request = apply(&format!("remember: {secret}"));
    request.reason = secret.to_owned();
    request.store = format!("remember {secret}");
    let member = Who::Person("red", "ann", Role::Member);
    for wire in rig.shapes() {
        for who in [member, Who::Job("memory"), Who::Stranger, Who::Nobody] {
            for code in [Code::Ok, Code::PermissionDenied] {
                rig.call(&wire, who, WRITE, request.clone(), code).await;
            }
        }
    }
    assert!(!rig.list(ADMIN, of("red")).await.unwrap().is_empty());
    let tokens = [member, Who::Job("memory")].map(|who| rig.token(who).unwrap());
    let folder = rig.stop().await;
    let bytes = std::fs::read(folder.path().join("audit.db")).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains("token-ann") && !text.contains(secret));
    for token in tokens {
        let signature = token.rsplit('.').next().unwrap();
        assert!(!text.contains(signature));
    }
}

#[tokio::test]
async fn a_soft_stop_loses_nothing_and_the_next_start_has_it() {
    let rig = Rig::start().await;
    for _ in 0..20 {
        let who = Who::Person("red", "ann", Role::Member);
        rig.call(&rig.local, who, WRITE, apply("x"), Code::Ok).await;
        rig.call(&rig.remote, Who::Nobody, WRITE, apply("x"), Code::Ok).await;
    }
    let folder = rig.stop().await;
    let rig = Rig::start_in(folder, Config::default()).await;
    assert_eq!(rig.list(ADMIN, of("red")).await.unwrap().len(), 20);
    let all = pb::ListAuditEventsRequest {
        include_unattributed: true,
        ..of("home")
    };
    assert_eq!(rig.list(HOME, all).await.unwrap().len(), 20);
    rig.stop().await;
}
