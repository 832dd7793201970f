//! The session store as services use it.

use steward_proto::common::v1 as common;

use super::*;

fn usage() -> common::Usage {
    common::Usage {
        input_tokens: Some(7),
        cached_input_tokens: Some(0),
        ..Default::default()
    }
}

fn fetch_call() -> pb::ToolCall {
    pb::ToolCall {
        id: "c1".to_owned(),
        name: "fetch".to_owned(),
        arguments_json: "{\"z\":9007199254740993, \"a\":1}".to_owned(),
        sent_arguments_json: None,
    }
}

/// A person's message, a call, and its result from outside.
fn a_turns_messages() -> Vec<pb::Message> {
    let span = common::Span {
        start: 0,
        end: 3,
        source: common::SpanSource::External as i32,
        name: "https://example.org".to_owned(),
        integrity: common::Integrity::External as i32,
    };
    let asked = pb::Message {
        sent_text: Some("said, sent".to_owned()),
        ..said("said")
    };
    let calling = pb::Message {
        role: pb::MessageRole::Assistant as i32,
        tool_calls: vec![fetch_call()],
        usage: Some(usage()),
        ..Default::default()
    };
    let returned = pb::Message {
        role: pb::MessageRole::Tool as i32,
        text: "页面".to_owned(),
        tool_call_id: "c1".to_owned(),
        tool_name: "fetch".to_owned(),
        is_error: true,
        spans: vec![span],
        ..Default::default()
    };
    vec![asked, calling, returned]
}

/// Everything that an append can carry.
fn full_append(fence: u64) -> pb::AppendMessagesRequest {
    let exposure = common::Exposure {
        artifact: "teams/red/skills/a".to_owned(),
        ..Default::default()
    };
    pb::AppendMessagesRequest {
        turn: Some(pb::TurnUpdate {
            id: "t1".to_owned(),
            state: pb::TurnState::RequiresAction as i32,
            iterations: 1,
            segments: 1,
            ..Default::default()
        }),
        counters: Some(pb::Counters {
            turns_since_memory: 1,
            iterations_since_skill: 2,
            user_turns: 1,
        }),
        prefix: Some(pb::PrefixState {
            requests: 1,
            messages_bytes: 12,
            ..Default::default()
        }),
        usage: Some(usage()),
        open_calls: vec![pb::OpenCall {
            call: Some(fetch_call()),
            turn: "t1".to_owned(),
            expire_time: None,
        }],
        replace_open_calls: true,
        due_review: Some(pb::DueReview {
            memory: true,
            turn: "t1".to_owned(),
            ..Default::default()
        }),
        title: "A page".to_owned(),
        exposures: vec![exposure],
        ..append(S1, fence, 0, a_turns_messages())
    }
}

#[tokio::test]
async fn a_turn_is_stored_whole_and_survives_a_restart() {
    let rig = Rig::new("recall-turn").await;
    rig.create("s1").await;
    let fence = rig.lease(S1, "t1").await.unwrap().fence;
    let request = full_append(fence);
    let appended = rig.store().append_messages(request.clone()).await.unwrap();
    assert_eq!(appended.last_seq, 3);
    let rig = rig.restart().await;
    let retry = pb::AppendMessagesRequest {
        fence: fence + 7,
        ..request
    };
    assert_eq!(rig.store().append_messages(retry).await.unwrap(), appended);

    let session = rig.store().get_session(get(S1)).await.unwrap();
    let session = session.session.unwrap();
    assert_eq!(
        (session.title.as_str(), session.open_turn.as_str(), session.last_seq),
        ("A page", "t1", 3)
    );
    assert_eq!((session.usage, session.exposures.len()), (Some(usage()), 1));
    let expires = session.open_calls[0].expire_time.unwrap();
    assert_eq!(expires.seconds, 1_795_910_400 + 24 * 3_600);
    let list = pb::ListMessagesRequest {
        session: S1.to_owned(),
        ..Default::default()
    };
    let listed = rig.store().list_messages(list).await.unwrap().messages;
    for (seq, (stored, sent)) in (1..).zip(listed.into_iter().zip(a_turns_messages())) {
        let create_time = stored.create_time;
        assert_eq!(
            stored,
            pb::Message {
                seq,
                turn: "t1".to_owned(),
                create_time,
                ..sent
            }
        );
    }
    let turn = pb::GetTurnRequest {
        session: S1.to_owned(),
        turn: "t1".to_owned(),
    };
    let turn = rig.store().get_turn(turn).await.unwrap().turn.unwrap();
    assert_eq!(
        (turn.state(), turn.first_seq, turn.last_seq),
        (pb::TurnState::RequiresAction, 1, 3)
    );
}

#[tokio::test]
async fn due_reviews_are_found_by_the_next_process() {
    let rig = Rig::new("recall-due").await;
    rig.create("s1").await;
    let fence = rig.lease(S1, "t1").await.unwrap().fence;
    let appended = rig.store().append_messages(full_append(fence)).await.unwrap();
    let rig = rig.restart().await;
    let list = pb::ListDueReviewsRequest::default();
    let due = rig.store().list_due_reviews(list).await.unwrap().due_reviews;
    assert_eq!((due[0].name.as_str(), due[0].to_seq), (appended.due_review.as_str(), 3));
    assert_eq!(
        (due[0].user.as_str(), due[0].session.as_str()),
        ("teams/red/users/ann", S1)
    );
    let names = pb::AcknowledgeDueReviewsRequest {
        names: vec![due[0].name.clone()],
    };
    assert_eq!(
        rig.store().acknowledge_due_reviews(names).await.unwrap().acknowledged,
        1
    );
    let rig = rig.restart().await;
    assert!(rig.store().list_due_reviews(list).await.unwrap().due_reviews.is_empty());
}

#[tokio::test]
async fn the_server_draws_an_id_once() {
    let rig = Rig::new("recall-create").await;
    let session = pb::Session {
        user: "teams/red/users/ann".to_owned(),
        ..Default::default()
    };
    let request = pb::CreateSessionRequest {
        request_id: "r1".to_owned(),
        ..creation("", session)
    };
    let first = rig
        .store()
        .create_session(request.clone())
        .await
        .unwrap()
        .session
        .unwrap();
    assert_eq!(
        (first.source(), first.root_session.clone()),
        (pb::SessionSource::Chat, first.name.clone())
    );
    assert_eq!(
        rig.store().create_session(request).await.unwrap().session.unwrap(),
        first
    );
}

#[tokio::test]
async fn lists_go_page_by_page() {
    let rig = Rig::new("recall-pages").await;
    for number in 0..5 {
        rig.clock.advance(Duration::from_secs(1));
        rig.create(&format!("n{number}")).await;
    }
    let mut request = pb::ListSessionsRequest {
        parent: "teams/red".to_owned(),
        user: "teams/red/users/ann".to_owned(),
        page_size: 2,
        ..Default::default()
    };
    let mut names = Vec::new();
    loop {
        let page = rig.store().list_sessions(request.clone()).await.unwrap();
        names.extend(page.sessions.iter().map(|session| session.name.clone()));
        assert!(page.sessions.iter().all(|session| session.system_prompt.is_empty()));
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            break;
        }
    }
    assert_eq!(
        names,
        [4, 3, 2, 1, 0].map(|number| format!("teams/red/sessions/n{number}"))
    );

    for text in ["one", "two", "three"] {
        rig.say("teams/red/sessions/n0", text).await;
    }
    let mut request = pb::ListMessagesRequest {
        session: "teams/red/sessions/n0".to_owned(),
        page_size: 2,
        ..Default::default()
    };
    let first = rig.store().list_messages(request.clone()).await.unwrap();
    request.page_token = first.next_page_token;
    let second = rig.store().list_messages(request.clone()).await.unwrap();
    assert_eq!(
        (
            first.messages.len(),
            second.messages.len(),
            second.next_page_token.as_str()
        ),
        (2, 1, "")
    );
    request.include_hidden = true;
    let foreign = rig.store().list_messages(request).await.unwrap_err();
    assert_eq!(foreign.violations[0].field, "page_token");
}

#[tokio::test]
async fn two_turns_at_once_end_in_one_turn() {
    let rig = Rig::new("recall-lease").await;
    rig.create("s1").await;
    let (one, two) = tokio::join!(rig.lease(S1, "t1"), rig.lease(S1, "t2"));
    let refused = [&one, &two]
        .into_iter()
        .filter_map(|answer| answer.as_ref().err())
        .collect::<Vec<_>>();
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].reason, "TURN_RUNNING");
    let fence = one.or(two).unwrap().fence;
    rig.clock.advance(Duration::from_secs(61));
    let next = rig.lease(S1, "t3").await.unwrap();
    assert_eq!(next.fence, fence + 1);
    let stale = rig
        .store()
        .append_messages(append(S1, fence, 0, vec![said("late")]))
        .await
        .unwrap_err();
    assert_eq!(stale.reason, "STALE_FENCE");
    let ttl = Some(prost_types::Duration { seconds: 30, nanos: 0 });
    let renewal = pb::RenewTurnLeaseRequest {
        session: S1.to_owned(),
        fence: next.fence,
        ttl,
    };
    assert!(
        rig.store()
            .renew_turn_lease(renewal)
            .await
            .unwrap()
            .expire_time
            .is_some()
    );
}

#[tokio::test]
async fn an_index_can_be_checked_and_rebuilt() {
    let rig = Rig::new("recall-check").await;
    rig.create("s1").await;
    rig.say(S1, "kingfisher").await;
    let request = pb::CheckIntegrityRequest {
        parent: "teams/red".to_owned(),
        rebuild: true,
    };
    let report = rig.store().check_integrity(request).await.unwrap();
    assert!(report.consistent && report.messages == 1 && report.tokenizer_version > 0);
}
