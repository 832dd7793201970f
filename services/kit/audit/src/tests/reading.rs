//! Who may read which records, in which order, and how they are picked.

use super::*;

async fn write(rig: &Rig, team: &'static str, user: &'static str, code: Code) {
    let who = Who::Person(team, user, Role::Member);
    rig.call(&rig.local, who, WRITE, apply("x"), code).await;
    rig.clock.advance(Duration::from_secs(1));
}

fn reason(status: &Status) -> String {
    use tonic_types::StatusExt as _;
    status
        .get_details_error_info()
        .map(|info| info.reason)
        .unwrap_or_default()
}

#[tokio::test]
async fn only_an_admin_sees_the_log_and_only_that_of_the_own_team() {
    let rig = Rig::start().await;
    write(&rig, "red", "ann", Code::Ok).await;
    write(&rig, "blue", "bob", Code::Ok).await;
    rig.call(&rig.local, Who::Nobody, WRITE, apply("x"), Code::Ok).await;

    let users = |events: Vec<pb::AuditEvent>| events.into_iter().map(|event| event.user).collect::<Vec<_>>();
    assert_eq!(
        users(rig.list(ADMIN, of("red")).await.unwrap()),
        ["teams/red/users/ann"]
    );
    let error = rig.list(ADMIN, of("blue")).await.unwrap_err();
    let missing = rig.list(ADMIN, of("green")).await.unwrap_err();
    assert_eq!(
        (error.code(), reason(&error)),
        (Code::NotFound, "TEAM_NOT_FOUND".to_owned())
    );
    assert_eq!(error.message().replace("blue", "green"), missing.message());
    for who in [
        Who::Person("red", "ann", Role::Maintainer),
        Who::Worker,
        Who::Turn("memory"),
        Who::Job("memory"),
        Who::Nobody,
    ] {
        assert!(rig.list(who, of("red")).await.is_err(), "{who:?}");
    }
    // Attempts to read it are in it.
    let denied = pb::ListAuditEventsRequest {
        outcome: pb::AuditOutcome::Denied.into(),
        ..of("red")
    };
    let methods: Vec<_> = rig
        .list(ADMIN, denied)
        .await
        .unwrap()
        .into_iter()
        .map(|event| event.method)
        .collect();
    assert_eq!(methods, ["steward.access.v1.AuditService/ListAuditEvents"; 3]);

    let all = |team| pb::ListAuditEventsRequest {
        include_unattributed: true,
        ..of(team)
    };
    let error = rig.list(ADMIN, all("red")).await.unwrap_err();
    assert_eq!(
        (error.code(), reason(&error)),
        (Code::PermissionDenied, "HOME_TEAM_REQUIRED".to_owned())
    );
    let home = rig.list(HOME, all("home")).await.unwrap();
    assert!(
        home.iter()
            .all(|event| event.name.starts_with("teams/-/") && event.user.is_empty())
    );
    assert_eq!(home.len(), 3, "the write, and two who asked for the log");
    rig.stop().await;
}

#[tokio::test]
async fn records_are_picked_by_time_person_method_and_outcome_and_come_in_pages() {
    let rig = Rig::start().await;
    let begun = rig.clock.now();
    for (user, code) in [
        ("ann", Code::Ok),
        ("bob", Code::Ok),
        ("ann", Code::NotFound),
        ("bob", Code::PermissionDenied),
    ] {
        write(&rig, "red", user, code).await;
    }
    let second = |number: u64| {
        let (seconds, nanos) = begun.plus(Duration::from_secs(number)).to_parts();
        Some(prost_types::Timestamp { seconds, nanos })
    };
    let pick = |change: &dyn Fn(&mut pb::ListAuditEventsRequest)| {
        let mut request = of("red");
        change(&mut request);
        request
    };
    for (request, expected) in [
        (of("red"), vec!["PERMISSION_DENIED", "NOT_FOUND", "OK", "OK"]),
        (
            pick(&|r| r.user = "teams/red/users/ann".to_owned()),
            vec!["NOT_FOUND", "OK"],
        ),
        (
            pick(&|r| r.outcome = pb::AuditOutcome::Failed.into()),
            vec!["NOT_FOUND"],
        ),
        (
            pick(&|r| (r.start_time, r.end_time) = (second(1), second(3))),
            vec!["NOT_FOUND", "OK"],
        ),
        (
            pick(&|r| r.method = WRITE.to_owned()),
            vec!["PERMISSION_DENIED", "NOT_FOUND", "OK", "OK"],
        ),
        (
            pick(&|r| r.method = "steward.memory.v1".to_owned()),
            vec!["PERMISSION_DENIED", "NOT_FOUND", "OK", "OK"],
        ),
        (pick(&|r| r.method = "steward.mem".to_owned()), vec![]),
        (pick(&|r| r.method = READ.to_owned()), vec![]),
    ] {
        let events = rig.list(ADMIN, request.clone()).await.unwrap();
        let codes: Vec<_> = events.iter().map(|event| event.code.as_str()).collect();
        assert_eq!(codes, expected, "{request:?}");
    }
    let mut client = AuditServiceClient::new(rig.remote.clone().with_credentials(rig.credentials(ADMIN)));
    let mut request = pick(&|r| r.page_size = 3);
    let first = client.list_audit_events(request.clone()).await.unwrap().into_inner();
    assert_eq!(first.audit_events.len(), 3);
    // What comes in between does not shift the pages.
    write(&rig, "red", "ann", Code::Ok).await;
    request.page_token.clone_from(&first.next_page_token);
    let second = client.list_audit_events(request.clone()).await.unwrap().into_inner();
    assert_eq!((second.audit_events.len(), second.next_page_token.as_str()), (1, ""));
    request.user = "teams/red/users/bob".to_owned();
    assert_eq!(
        client.list_audit_events(request).await.unwrap_err().code(),
        Code::InvalidArgument
    );
    rig.stop().await;
}

#[tokio::test]
async fn every_wrong_field_is_named() {
    use tonic_types::StatusExt as _;
    let rig = Rig::start().await;
    let request = pb::ListAuditEventsRequest {
        parent: "red".to_owned(),
        user: "ann".to_owned(),
        outcome: 99,
        page_size: -1,
        page_token: "x".to_owned(),
        start_time: Some(prost_types::Timestamp { seconds: 2, nanos: 0 }),
        end_time: Some(prost_types::Timestamp { seconds: 1, nanos: 0 }),
        ..Default::default()
    };
    let error = rig.list(ADMIN, request).await.unwrap_err();
    let details = error.get_error_details();
    let fields: Vec<_> = details
        .bad_request()
        .unwrap()
        .field_violations
        .iter()
        .map(|violation| violation.field.as_str())
        .collect();
    assert_eq!(
        fields,
        ["parent", "end_time", "user", "outcome", "page_size", "page_token"]
    );
    rig.stop().await;
}
