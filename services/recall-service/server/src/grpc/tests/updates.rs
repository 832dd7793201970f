//! Changes between turns, turns that begin and end with an append, and a session read with what belongs to it.

use steward_proto::common::v1 as common;

use super::*;

fn update(session: pb::Session, paths: &[&str], request_id: &str) -> pb::UpdateSessionRequest {
    pb::UpdateSessionRequest {
        session: Some(pb::Session {
            name: S1.to_owned(),
            ..session
        }),
        update_mask: Some(prost_types::FieldMask {
            paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        }),
        break_reason: "model".to_owned(),
        request_id: request_id.to_owned(),
    }
}

fn lease_for(turn: &str) -> pb::TurnLease {
    pb::TurnLease {
        turn: turn.to_owned(),
        holder: "p1".to_owned(),
        ttl: Some(prost_types::Duration { seconds: 60, nanos: 0 }),
    }
}

/// An append that takes the lease itself.
fn begin(turn: &str, last: u64, messages: Vec<pb::Message>) -> pb::AppendMessagesRequest {
    pb::AppendMessagesRequest {
        acquire_lease: Some(lease_for(turn)),
        request_id: format!("begin-{turn}"),
        turn: Some(pb::TurnUpdate {
            id: turn.to_owned(),
            state: pb::TurnState::Running as i32,
            iterations: 0,
            segments: 1,
            ..Default::default()
        }),
        ..append(S1, 0, last, messages)
    }
}

#[tokio::test]
async fn a_session_takes_another_model_between_two_turns() {
    let rig = Rig::new("recall-update").await;
    rig.create("s1").await;
    let store = rig.store();
    let begun = store
        .append_messages(begin("t1", 0, vec![said("hello")]))
        .await
        .unwrap();
    let wanted = pb::Session {
        model: "m2".to_owned(),
        system_prompt: "be brief, 简短".to_owned(),
        stable_prompt_bytes: 9,
        setup: vec![7; 3].into(),
        title: "not asked for".to_owned(),
        ..Default::default()
    };
    let paths = ["model", "system_prompt", "stable_prompt_bytes", "setup"];
    let early = store
        .update_session(update(wanted.clone(), &paths, "u1"))
        .await
        .unwrap_err();
    assert_eq!(
        (early.kind, early.reason),
        (steward_base::ErrorKind::Conflict, "TURN_RUNNING")
    );
    let end = pb::AppendMessagesRequest {
        release_lease: true,
        turn: Some(pb::TurnUpdate {
            id: "t1".to_owned(),
            state: pb::TurnState::Completed as i32,
            iterations: 1,
            segments: 1,
            ..Default::default()
        }),
        ..append(S1, begun.fence, 1, Vec::new())
    };
    store.append_messages(end).await.unwrap();
    let changed = store
        .update_session(update(wanted.clone(), &paths, "u1"))
        .await
        .unwrap();
    let changed = changed.session.unwrap();
    assert_eq!(
        (
            changed.model.as_str(),
            changed.system_prompt.as_str(),
            changed.title.as_str()
        ),
        ("m2", "be brief, 简短", "")
    );
    assert_eq!((changed.stable_prompt_bytes, changed.setup.to_vec()), (9, vec![7; 3]));
    let prefix = changed.prefix.clone().unwrap();
    assert_eq!((prefix.planned_breaks, prefix.last_break_reason.as_str()), (1, "model"));
    let rig = rig.restart().await;
    let again = rig.store().update_session(update(wanted, &paths, "u1")).await.unwrap();
    assert_eq!(again.session.unwrap(), changed);
    let read = rig.store().get_session(get(S1)).await.unwrap().session.unwrap();
    assert_eq!(read, changed);
    let list = pb::ListSessionsRequest {
        parent: "teams/red".to_owned(),
        user: "teams/red/users/ann".to_owned(),
        ..Default::default()
    };
    let listed = rig.store().list_sessions(list).await.unwrap().sessions;
    assert_eq!((listed[0].setup.len(), listed[0].stable_prompt_bytes), (0, 0));
}

#[tokio::test]
async fn a_wrong_change_is_refused_with_its_reason() {
    let rig = Rig::new("recall-update-wrong").await;
    let created = rig.create("s1").await;
    let titled = pb::Session {
        title: "On hats".to_owned(),
        etag: created.etag.clone(),
        ..Default::default()
    };
    let outcome = async |request| match rig.store().update_session(request).await {
        Ok(_) => "ok".to_owned(),
        Err(error) => {
            let field = error.violations.first().map(|violation| violation.field.clone());
            format!("{} {}", error.reason, field.unwrap_or_default())
        }
    };
    let wrong = update(titled.clone(), &["title", "prefix"], "u1");
    assert_eq!(outcome(wrong).await, "INVALID_REQUEST update_mask.paths[1]");
    let nothing = update(titled.clone(), &[], "u1");
    assert_eq!(outcome(nothing).await, "INVALID_REQUEST update_mask");
    let nameless = pb::UpdateSessionRequest {
        session: None,
        ..update(titled.clone(), &["title"], "u1")
    };
    assert_eq!(outcome(nameless).await, "INVALID_REQUEST session.name");
    assert_eq!(outcome(update(titled.clone(), &["title"], "u1")).await, "ok");
    assert_eq!(
        outcome(update(titled.clone(), &["title"], "u2")).await,
        "ETAG_MISMATCH "
    );
    assert_eq!(
        outcome(update(titled, &["title", "title"], "u1")).await,
        "REQUEST_ID_REUSED request_id"
    );
}

#[tokio::test]
async fn a_session_is_read_with_a_turn_and_its_messages_in_their_providers_form() {
    let rig = Rig::new("recall-view").await;
    rig.create("s1").await;
    let native = common::NativeBlocks {
        provider: "anthropic".to_owned(),
        model: "m1".to_owned(),
        blocks_json: "[ {\"type\":\"thinking\",\"signature\":\"==\"} ]".to_owned(),
    };
    let thought = pb::Message {
        role: pb::MessageRole::Assistant as i32,
        text: "a heron".to_owned(),
        native: Some(native.clone()),
        ..Default::default()
    };
    let mut messages = vec![said("which bird?"), thought];
    messages.extend((0..200).map(|_| said("more")));
    rig.store().append_messages(begin("t1", 0, messages)).await.unwrap();
    let whole = pb::GetSessionRequest {
        turn: "t1".to_owned(),
        include_messages: true,
        ..get(S1)
    };
    let whole = rig.store().get_session(whole).await.unwrap();
    assert_eq!(whole.turn.unwrap().state(), pb::TurnState::Running);
    assert_eq!(whole.messages.len(), 200);
    assert_eq!(whole.messages[1].native, Some(native));
    let rest = pb::ListMessagesRequest {
        session: S1.to_owned(),
        page_token: whole.next_page_token,
        ..Default::default()
    };
    let rest = rig.store().list_messages(rest).await.unwrap();
    let numbers: Vec<u64> = rest.messages.iter().map(|message| message.seq).collect();
    assert_eq!(numbers, [201, 202]);
    let alone = pb::GetSessionRequest {
        turn: "gone".to_owned(),
        ..get(S1)
    };
    let alone = rig.store().get_session(alone).await.unwrap();
    assert_eq!((alone.turn, alone.messages.len()), (None, 0));
    let found = rig
        .search(&rig.person("red", "ann"))
        .search(discover("thinking"))
        .await
        .unwrap();
    assert!(found.conversations.is_empty());
}

#[tokio::test]
async fn two_turns_that_begin_at_once_end_in_one() {
    let rig = Rig::new("recall-begin").await;
    rig.create("s1").await;
    let store = rig.store();
    let (one, two) = tokio::join!(
        store.append_messages(begin("t1", 0, vec![said("one")])),
        store.append_messages(begin("t2", 0, vec![said("two")])),
    );
    let refused: Vec<&str> = [&one, &two]
        .into_iter()
        .filter_map(|answer| Some(answer.as_ref().err()?.reason))
        .collect();
    assert_eq!(refused, ["TURN_RUNNING"]);
    let fence = one.or(two).unwrap().fence;
    let session = store.get_session(get(S1)).await.unwrap().session.unwrap();
    assert_eq!(session.last_seq, 1);
    let held = store
        .append_messages(append(S1, fence, 1, vec![said("on")]))
        .await
        .unwrap();
    assert_eq!((held.last_seq, held.fence), (2, fence));
}
