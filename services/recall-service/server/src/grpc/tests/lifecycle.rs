//! Deleting, rewinding, forking, compacting, and listing what waited too long, as services reach it.

use pb::search_request::Shape;
use steward_base::ErrorKind;

use super::*;

async fn texts(rig: &Rig, session: &str, include_hidden: bool) -> Vec<String> {
    let request = pb::ListMessagesRequest {
        session: session.to_owned(),
        include_hidden,
        ..Default::default()
    };
    let listed = rig.store().list_messages(request).await.unwrap();
    listed.messages.into_iter().map(|message| message.text).collect()
}

async fn hits(rig: &Rig, query: &str) -> Vec<String> {
    let answer = rig
        .search(&rig.person("red", "ann"))
        .search(discover(query))
        .await
        .unwrap();
    answer.conversations.into_iter().map(|found| found.session).collect()
}

fn rewind(to_seq: u64, etag: &str) -> pb::RewindSessionRequest {
    pb::RewindSessionRequest {
        name: S1.to_owned(),
        to_seq,
        etag: etag.to_owned(),
        request_id: format!("rewind-{to_seq}"),
    }
}

#[tokio::test]
async fn an_append_is_refused_when_the_session_changed_since_it_was_read() {
    let rig = Rig::new("recall-expected-etag").await;
    let read = rig.create("s1").await;
    rig.say(S1, "in between").await;
    let begin = pb::AppendMessagesRequest {
        expected_etag: read.etag,
        expected_seq: 1,
        acquire_lease: Some(pb::TurnLease {
            turn: "t1".to_owned(),
            holder: "p1".to_owned(),
            ttl: Some(prost_types::Duration { seconds: 60, nanos: 0 }),
        }),
        ..append(S1, 0, 1, vec![said("hello")])
    };
    let refused = rig.store().append_messages(begin.clone()).await.unwrap_err();
    assert_eq!((refused.kind, refused.reason), (ErrorKind::Conflict, "ETAG_MISMATCH"));
    let now = rig.store().get_session(get(S1)).await.unwrap().session.unwrap();
    let again = pb::AppendMessagesRequest {
        expected_etag: now.etag,
        ..begin
    };
    assert_eq!(rig.store().append_messages(again).await.unwrap().last_seq, 2);
}

#[tokio::test]
async fn a_deleted_session_stays_deleted_over_a_restart() {
    let rig = Rig::new("recall-delete").await;
    rig.create("s1").await;
    rig.say(S1, "a goosander").await;
    let fence = rig.lease(S1, "t1").await.unwrap().fence;
    let delete = |etag: &str| pb::DeleteSessionRequest {
        name: S1.to_owned(),
        etag: etag.to_owned(),
    };
    let busy = rig.store().delete_session(delete("")).await.unwrap_err();
    assert_eq!(busy.reason, "TURN_RUNNING");
    let release = pb::ReleaseTurnLeaseRequest {
        session: S1.to_owned(),
        fence,
    };
    rig.store().release_turn_lease(release).await.unwrap();
    let stale = rig.store().delete_session(delete("99")).await.unwrap_err();
    assert_eq!(stale.reason, "ETAG_MISMATCH");
    rig.store().delete_session(delete("")).await.unwrap();
    assert!(hits(&rig, "goosander").await.is_empty());

    let rig = rig.restart().await;
    let late = rig
        .store()
        .append_messages(append(S1, fence, 1, vec![said("late")]))
        .await;
    let late = late.unwrap_err();
    assert_eq!((late.kind, late.reason), (ErrorKind::NotFound, "SESSION_DELETED"));
    assert!(
        late.metadata
            .iter()
            .any(|(key, value)| *key == "session" && value == S1)
    );
    assert_eq!(
        rig.store().get_session(get(S1)).await.unwrap_err().reason,
        "SESSION_NOT_FOUND"
    );
    rig.store().delete_session(delete("")).await.unwrap();
    let never = pb::DeleteSessionRequest {
        name: "teams/red/sessions/never".to_owned(),
        etag: String::new(),
    };
    assert_eq!(
        rig.store().delete_session(never).await.unwrap_err().reason,
        "SESSION_NOT_FOUND"
    );
}

#[tokio::test]
async fn what_is_rewound_is_in_the_hidden_history_only() {
    let rig = Rig::new("recall-rewind").await;
    rig.create("s1").await;
    for text in ["about teal", "about scoters"] {
        rig.say(S1, text).await;
    }
    let rewound = rig
        .store()
        .rewind_session(rewind(1, ""))
        .await
        .unwrap()
        .session
        .unwrap();
    assert_eq!(rewound.prefix.unwrap().last_break_reason, "rewind");
    let rig = rig.restart().await;
    assert_eq!(texts(&rig, S1, false).await, ["about teal"]);
    assert_eq!(texts(&rig, S1, true).await, ["about teal", "about scoters"]);
    assert!(hits(&rig, "scoters").await.is_empty());
    let read = ask(Shape::Read(pb::Read {
        session: S1.to_owned(),
        ..Default::default()
    }));
    let read = rig.search(&rig.person("red", "ann")).search(read).await.unwrap();
    assert_eq!(read.messages.len(), 1);
    let stale = rig.store().rewind_session(rewind(0, "1")).await.unwrap_err();
    assert_eq!(stale.reason, "ETAG_MISMATCH");
    let past = rig.store().rewind_session(rewind(9, "")).await.unwrap_err();
    assert_eq!(
        (past.reason, past.violations[0].field.as_str()),
        ("INVALID_REQUEST", "to_seq")
    );
}

#[tokio::test]
async fn a_fork_goes_on_from_a_message() {
    let rig = Rig::new("recall-fork").await;
    rig.create("s1").await;
    for text in ["about teal", "about scoters"] {
        rig.say(S1, text).await;
    }
    let request = pb::ForkSessionRequest {
        name: S1.to_owned(),
        session_id: "s2".to_owned(),
        through_seq: 1,
        title: "another way".to_owned(),
        request_id: "fork-1".to_owned(),
    };
    let forked = rig
        .store()
        .fork_session(request.clone())
        .await
        .unwrap()
        .session
        .unwrap();
    assert_eq!(forked.parent_session, S1);
    assert_eq!(forked.lineage_reason(), pb::LineageReason::Branch);
    assert_eq!((forked.last_seq, forked.title.as_str()), (1, "another way"));
    assert_eq!(forked.system_prompt, "be kind");
    let rig = rig.restart().await;
    let again = rig
        .store()
        .fork_session(request.clone())
        .await
        .unwrap()
        .session
        .unwrap();
    assert_eq!(again, forked);
    let other = pb::ForkSessionRequest {
        through_seq: 2,
        ..request
    };
    assert_eq!(
        rig.store().fork_session(other).await.unwrap_err().reason,
        "REQUEST_ID_REUSED"
    );
    assert_eq!(texts(&rig, "teams/red/sessions/s2", false).await, ["about teal"]);
}

#[tokio::test]
async fn a_summary_is_read_in_the_place_of_what_it_replaces() {
    let rig = Rig::new("recall-compact").await;
    rig.create("s1").await;
    for text in ["about teal", "about scoters", "about smew"] {
        rig.say(S1, text).await;
    }
    let request = pb::MarkCompactedRequest {
        session: S1.to_owned(),
        expected_seq: 3,
        range: Some(pb::MessageRange { from_seq: 1, to_seq: 2 }),
        summary: Some(said("two ducks")),
        prompt: Some(pb::RebuiltPrompt {
            system_prompt: "be brief".to_owned(),
            ..Default::default()
        }),
        request_id: "compact-1".to_owned(),
        ..Default::default()
    };
    let answer = rig.store().mark_compacted(request.clone()).await.unwrap();
    assert_eq!(answer.last_seq, 4);
    assert_eq!(answer.session.unwrap().system_prompt, "be brief");
    let rig = rig.restart().await;
    assert_eq!(rig.store().mark_compacted(request).await.unwrap().last_seq, 4);
    assert_eq!(texts(&rig, S1, false).await, ["two ducks", "about smew"]);
    let whole = pb::ListMessagesRequest {
        session: S1.to_owned(),
        include_hidden: true,
        ..Default::default()
    };
    let whole = rig.store().list_messages(whole).await.unwrap().messages;
    assert_eq!(whole[3].replaces, Some(pb::MessageRange { from_seq: 1, to_seq: 2 }));
    assert_eq!(hits(&rig, "scoters").await, [S1]);
}

#[tokio::test]
async fn a_turn_that_waited_too_long_is_listed_after_a_restart_too() {
    let rig = Rig::new("recall-expired").await;
    rig.create("s1").await;
    let fence = rig.lease(S1, "t1").await.unwrap().fence;
    let call = pb::ToolCall {
        id: "c1".to_owned(),
        name: "terminal".to_owned(),
        arguments_json: "{}".to_owned(),
        ..Default::default()
    };
    let waits = pb::AppendMessagesRequest {
        open_calls: vec![pb::OpenCall {
            call: Some(call),
            turn: "t1".to_owned(),
            expire_time: None,
        }],
        release_lease: true,
        ..append(S1, fence, 0, vec![said("run it")])
    };
    rig.store().append_messages(waits).await.unwrap();
    let rig = rig.restart().await;
    let list = pb::ListExpiredTurnsRequest::default();
    assert!(rig.store().list_expired_turns(list).await.unwrap().turns.is_empty());
    rig.clock.advance(Duration::from_hours(25));
    let over = rig.store().list_expired_turns(list).await.unwrap().turns;
    assert_eq!(over.len(), 1);
    assert_eq!((over[0].session.as_str(), over[0].turn.as_str()), (S1, "t1"));
    assert_eq!(over[0].user, "teams/red/users/ann");
}
