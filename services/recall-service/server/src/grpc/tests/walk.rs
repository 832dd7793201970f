//! Every RPC with every kind of credential, against a table of right answers (`A-1`).

use std::fmt::Write as _;

use pb::search_request::Shape;
use steward_proto::methods::METHODS;

use super::*;

/// What a call came to: `ok`, or the reason of its refusal with the field, if one was named.
fn outcome<T>(answer: Result<T, ClientError>) -> String {
    match answer {
        Ok(_) => "ok".to_owned(),
        Err(error) => match error.violations.first() {
            Some(violation) => format!("{}({})", error.reason, violation.field),
            None => error.reason.to_owned(),
        },
    }
}

/// The credentials, by what they are.
fn callers(rig: &Rig) -> Vec<(&'static str, Wire)> {
    let red = || TeamId::parse("red").unwrap();
    let ann = || UserId::parse("ann").unwrap();
    let session = |id: &str| SessionId::parse(id).unwrap();
    let all = || BTreeSet::from(["session_history".to_owned(), "session_search".to_owned()]);
    let role = |role: Role| {
        let now = rig.clock.now();
        Claims::user("token", red(), ann(), role, now, now.plus(Duration::from_mins(10)))
    };
    let turn = |of: &str, caps| rig.person("red", "ann").for_turn(session(of), "t1", caps);
    let service = |team: &str| {
        let (team, user) = (TeamId::parse(team).unwrap(), ann());
        rig.service().on_behalf(team, user, Role::Member)
    };
    let claims = [
        ("viewer", role(Role::Viewer)),
        ("member", role(Role::Member)),
        ("admin", role(Role::Admin)),
        ("other user", rig.person("red", "bob")),
        ("other team", rig.person("blue", "ann")),
        ("turn here", turn("s1", all())),
        ("turn elsewhere", turn("s2", all())),
        ("turn without tools", turn("s2", BTreeSet::new())),
        ("review here", rig.review_of("s1", "ann")),
        ("review elsewhere", rig.review_of("s2", "ann")),
        ("review of another", rig.review_of("s1", "bob")),
        ("service", rig.service()),
        ("service for ann", service("red")),
        ("service for blue", service("blue")),
    ];
    let with_token = claims.iter().map(|(who, claims)| (*who, rig.wire(claims)));
    std::iter::once(("nobody", rig.built.local_client()))
        .chain(with_token)
        .collect()
}

fn search_as(who: &str, shape: Shape) -> pb::SearchRequest {
    let parent = match who {
        "other user" | "review of another" => "teams/red/users/bob",
        "other team" | "service for blue" => "teams/blue/users/ann",
        _ => "teams/red/users/ann",
    };
    pb::SearchRequest {
        parent: parent.to_owned(),
        ..ask(shape)
    }
}

/// Requests that change a session as a whole, each with something wrong that is met last.
fn lifecycle(
    who: &str,
) -> (
    pb::DeleteSessionRequest,
    pb::RewindSessionRequest,
    pb::ForkSessionRequest,
    pb::MarkCompactedRequest,
) {
    let delete = pb::DeleteSessionRequest {
        name: S1.to_owned(),
        etag: "99".to_owned(),
    };
    let rewind = pb::RewindSessionRequest {
        name: S1.to_owned(),
        to_seq: 99,
        etag: String::new(),
        request_id: format!("rewind by {who}"),
    };
    let fork = pb::ForkSessionRequest {
        name: S1.to_owned(),
        through_seq: 99,
        request_id: format!("fork by {who}"),
        ..Default::default()
    };
    let compact = pb::MarkCompactedRequest {
        session: S1.to_owned(),
        fence: 99,
        expected_seq: 1,
        range: Some(pb::MessageRange { from_seq: 1, to_seq: 1 }),
        summary: Some(said("x")),
        request_id: format!("compact by {who}"),
        ..Default::default()
    };
    (delete, rewind, fork, compact)
}

/// Calls every RPC on session `s1` of ann in team red; the searches read it.
async fn walk(who: &str, wire: Wire) -> Vec<(&'static str, String)> {
    let search = RecallClient::new(wire.clone());
    let store = SessionStoreClient::new(wire);
    let session = || S1.to_owned();
    let read = Shape::Read(pb::Read {
        session: session(),
        ..Default::default()
    });
    let other_parent = pb::SearchRequest {
        parent: "teams/red/users/zoe".to_owned(),
        ..ask(Shape::Browse(pb::Browse::default()))
    };
    let new = pb::Session {
        user: "teams/red/users/ann".to_owned(),
        ..Default::default()
    };
    let create = pb::CreateSessionRequest {
        request_id: format!("create by {who}"),
        ..creation("", new)
    };
    let ttl = Some(prost_types::Duration { seconds: 60, nanos: 0 });
    let acquire = pb::AcquireTurnLeaseRequest {
        session: session(),
        turn: "t1".to_owned(),
        holder: "p1".to_owned(),
        ttl,
    };
    let names = vec![format!("{S1}/dueReviews/none")];
    let list = pb::ListSessionsRequest {
        parent: "teams/red".to_owned(),
        user: "teams/red/users/ann".to_owned(),
        ..Default::default()
    };
    let check = pb::CheckIntegrityRequest {
        parent: "teams/red".to_owned(),
        rebuild: false,
    };
    let messages = pb::ListMessagesRequest {
        session: session(),
        ..Default::default()
    };
    let turn = pb::GetTurnRequest {
        session: session(),
        turn: "turn-0".to_owned(),
    };
    let renew = pb::RenewTurnLeaseRequest {
        session: session(),
        fence: 99,
        ttl,
    };
    let release = pb::ReleaseTurnLeaseRequest {
        session: session(),
        fence: 99,
    };
    let update = pb::UpdateSessionRequest {
        session: Some(pb::Session {
            name: session(),
            title: "On hats".to_owned(),
            ..Default::default()
        }),
        update_mask: Some(prost_types::FieldMask {
            paths: vec!["title".to_owned()],
        }),
        request_id: format!("update by {who}"),
        ..Default::default()
    };
    let append = append(S1, 99, 1, vec![said("x")]);
    let (delete, rewind, fork, compact) = lifecycle(who);
    let ann = || "teams/red/users/ann".to_owned();
    let export = pb::ExportSessionsRequest {
        parent: ann(),
        sessions: Vec::new(),
    };
    let import = pb::ImportSessionsRequest {
        parent: ann(),
        ..Default::default()
    };
    let backup = pb::BackupTeamRequest {
        parent: "teams/red".to_owned(),
    };
    let backups = pb::ListBackupsRequest {
        parent: "teams/red".to_owned(),
        ..Default::default()
    };
    let restore = pb::RestoreTeamRequest {
        name: "teams/red/backups/none".to_owned(),
    };
    vec![
        ("Search", outcome(search.search(search_as(who, read)).await)),
        ("Search for zoe", outcome(search.search(other_parent).await)),
        ("GetSession", outcome(store.get_session(get(S1)).await)),
        ("UpdateSession", outcome(store.update_session(update).await)),
        ("DeleteSession", outcome(store.delete_session(delete).await)),
        ("RewindSession", outcome(store.rewind_session(rewind).await)),
        ("ForkSession", outcome(store.fork_session(fork).await)),
        ("MarkCompacted", outcome(store.mark_compacted(compact).await)),
        (
            "ListExpiredTurns",
            outcome(store.list_expired_turns(pb::ListExpiredTurnsRequest::default()).await),
        ),
        ("ListMessages", outcome(store.list_messages(messages).await)),
        ("GetTurn", outcome(store.get_turn(turn).await)),
        ("ListSessions", outcome(store.list_sessions(list).await)),
        ("CreateSession", outcome(store.create_session(create).await)),
        ("AcquireTurnLease", outcome(store.acquire_turn_lease(acquire).await)),
        ("RenewTurnLease", outcome(store.renew_turn_lease(renew).await)),
        ("ReleaseTurnLease", outcome(store.release_turn_lease(release).await)),
        ("AppendMessages", outcome(store.append_messages(append).await)),
        (
            "ListDueReviews",
            outcome(store.list_due_reviews(pb::ListDueReviewsRequest::default()).await),
        ),
        (
            "AcknowledgeDueReviews",
            outcome(
                store
                    .acknowledge_due_reviews(pb::AcknowledgeDueReviewsRequest { names })
                    .await,
            ),
        ),
        (
            "ListTeamActivity",
            outcome(store.list_team_activity(pb::ListTeamActivityRequest::default()).await),
        ),
        ("CheckIntegrity", outcome(store.check_integrity(check).await)),
        ("ExportSessions", outcome(search.export_sessions(export).await)),
        (
            "ImportSessions",
            outcome(search.import_sessions(futures::stream::iter([import])).await),
        ),
        ("BackupTeam", outcome(store.backup_team(backup).await)),
        ("ListBackups", outcome(store.list_backups(backups).await)),
        ("RestoreTeam", outcome(store.restore_team(restore).await)),
    ]
}

#[tokio::test]
async fn every_rpc_answers_every_credential_as_the_table_says() {
    let rig = Rig::new("recall-walk").await;
    for id in ["s1", "s2"] {
        rig.create(id).await;
    }
    rig.say(S1, "hello").await;
    // What is not in the table is METHOD_DENIED.
    let mut table = String::new();
    for (who, wire) in callers(&rig) {
        let answers = Box::pin(walk(who, wire)).await;
        let called: BTreeSet<&str> = answers
            .iter()
            .map(|(rpc, _)| rpc.split(' ').next().unwrap_or(rpc))
            .collect();
        let declared = METHODS
            .iter()
            .filter_map(|method| method.path.strip_prefix("/steward.recall.v1."));
        let declared: BTreeSet<&str> = declared.filter_map(|path| Some(path.split_once('/')?.1)).collect();
        assert_eq!(called, declared, "the walk leaves an RPC out");
        // RPCs with the same answer share a line.
        let mut lines: Vec<(String, Vec<&str>)> = Vec::new();
        for (rpc, answer) in answers {
            match lines.iter_mut().find(|(known, _)| *known == answer) {
                Some((_, rpcs)) => rpcs.push(rpc),
                None => lines.push((answer, vec![rpc])),
            }
        }
        for (answer, rpcs) in lines.into_iter().filter(|(answer, _)| answer != "METHOD_DENIED") {
            writeln!(table, "{who}: {answer}: {}", rpcs.join(" ")).unwrap();
        }
    }
    insta::assert_snapshot!(table, @r"
    nobody: CREDENTIAL_MISSING: Search Search for zoe GetSession UpdateSession DeleteSession RewindSession ForkSession MarkCompacted ListExpiredTurns ListMessages GetTurn ListSessions CreateSession AcquireTurnLease RenewTurnLease ReleaseTurnLease AppendMessages ListDueReviews AcknowledgeDueReviews ListTeamActivity CheckIntegrity ExportSessions ImportSessions BackupTeam ListBackups RestoreTeam
    viewer: ok: Search
    viewer: INVALID_REQUEST(parent): Search for zoe
    member: ok: Search ExportSessions ImportSessions
    member: INVALID_REQUEST(parent): Search for zoe
    admin: ok: Search CheckIntegrity ExportSessions ImportSessions BackupTeam ListBackups
    admin: INVALID_REQUEST(parent): Search for zoe
    admin: BACKUP_NOT_FOUND: RestoreTeam
    other user: SESSION_NOT_FOUND: Search
    other user: INVALID_REQUEST(parent): Search for zoe ExportSessions ImportSessions
    other team: SESSION_NOT_FOUND: Search
    other team: INVALID_REQUEST(parent): Search for zoe ExportSessions ImportSessions
    turn here: IN_CONTEXT: Search
    turn here: INVALID_REQUEST(parent): Search for zoe
    turn here: ok: GetSession ListMessages
    turn elsewhere: ok: Search
    turn elsewhere: INVALID_REQUEST(parent): Search for zoe
    turn elsewhere: SESSION_NOT_FOUND: GetSession ListMessages
    review here: IN_CONTEXT: Search
    review here: INVALID_REQUEST(parent): Search for zoe
    review here: ok: GetSession ListMessages
    review elsewhere: ok: Search
    review elsewhere: INVALID_REQUEST(parent): Search for zoe
    review elsewhere: SESSION_NOT_FOUND: GetSession ListMessages
    review of another: SESSION_NOT_FOUND: Search GetSession ListMessages
    review of another: INVALID_REQUEST(parent): Search for zoe
    service: ok: GetSession UpdateSession ListExpiredTurns ListMessages ListSessions CreateSession AcquireTurnLease ReleaseTurnLease ListDueReviews AcknowledgeDueReviews ListTeamActivity CheckIntegrity
    service: ETAG_MISMATCH: DeleteSession
    service: INVALID_REQUEST(to_seq): RewindSession
    service: MESSAGE_NOT_FOUND: ForkSession
    service: STALE_FENCE: MarkCompacted RenewTurnLease AppendMessages
    service: TURN_NOT_FOUND: GetTurn
    service for ann: ok: GetSession ListExpiredTurns ListMessages ListSessions CreateSession AcquireTurnLease ReleaseTurnLease ListDueReviews AcknowledgeDueReviews ListTeamActivity CheckIntegrity
    service for ann: TURN_RUNNING: UpdateSession DeleteSession RewindSession
    service for ann: MESSAGE_NOT_FOUND: ForkSession
    service for ann: STALE_FENCE: MarkCompacted RenewTurnLease AppendMessages
    service for ann: TURN_NOT_FOUND: GetTurn
    service for blue: SESSION_NOT_FOUND: GetSession UpdateSession DeleteSession RewindSession ForkSession MarkCompacted ListMessages GetTurn AcquireTurnLease RenewTurnLease ReleaseTurnLease AppendMessages
    service for blue: ok: ListExpiredTurns ListDueReviews AcknowledgeDueReviews ListTeamActivity
    service for blue: INVALID_REQUEST(parent): ListSessions CreateSession CheckIntegrity
    ");
}
