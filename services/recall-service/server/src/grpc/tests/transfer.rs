//! Handing sessions out and taking them in; backups as admins reach them.

use futures::stream;

use super::*;

const ANN: &str = "teams/red/users/ann";

async fn exported(client: &RecallClient, sessions: &[&str]) -> Result<Vec<u8>, ClientError> {
    let request = pb::ExportSessionsRequest {
        parent: ANN.to_owned(),
        sessions: sessions.iter().map(|name| (*name).to_owned()).collect(),
    };
    let mut chunks = client.export_sessions(request).await?;
    let mut file = Vec::new();
    while let Some(item) = chunks.message().await? {
        file.extend_from_slice(&item.chunk);
    }
    Ok(file)
}

/// In pieces of this size.
async fn imported(
    client: &RecallClient,
    parent: &str,
    file: &[u8],
    pieces: usize,
) -> Result<pb::ImportSessionsResponse, ClientError> {
    let mut items: Vec<pb::ImportSessionsRequest> = file
        .chunks(pieces)
        .map(|chunk| pb::ImportSessionsRequest {
            parent: String::new(),
            chunk: chunk.to_vec().into(),
        })
        .collect();
    if let Some(first) = items.first_mut() {
        parent.clone_into(&mut first.parent);
    }
    client.import_sessions(stream::iter(items)).await
}

/// A session with everything in it that a line can hold.
async fn rich(rig: &Rig) {
    let session = pb::Session {
        user: ANN.to_owned(),
        title: "Ducks, 鸭".to_owned(),
        project: "pond".to_owned(),
        model: "m1".to_owned(),
        system_prompt: "be kind\n\u{1}".to_owned(),
        stable_prompt_bytes: 2,
        tools_json: "[ {\"name\": \"x\"} ]".to_owned(),
        setup: vec![0, 255, 7].into(),
        skip_memory: true,
        exposures: vec![steward_proto::common::v1::Exposure {
            artifact: "teams/red/skills/x".to_owned(),
            propensity: Some(0.25),
            ..Default::default()
        }],
        ..Default::default()
    };
    rig.store().create_session(creation("s1", session)).await.unwrap();
    let fence = rig.lease(S1, "t1").await.unwrap().fence;
    let calling = pb::Message {
        role: pb::MessageRole::Assistant as i32,
        tool_calls: vec![pb::ToolCall {
            id: "c1".to_owned(),
            name: "terminal".to_owned(),
            arguments_json: "{\"a\": 1.0}".to_owned(),
            sent_arguments_json: Some("{}".to_owned()),
        }],
        usage: Some(steward_proto::common::v1::Usage {
            input_tokens: Some(u64::from(u32::MAX)),
            ..Default::default()
        }),
        native: Some(steward_proto::common::v1::NativeBlocks {
            provider: "v".to_owned(),
            model: "m".to_owned(),
            blocks_json: "[ 1 ]".to_owned(),
        }),
        ..Default::default()
    };
    let returned = pb::Message {
        role: pb::MessageRole::Tool as i32,
        text: "a goosander\u{2028}".to_owned(),
        tool_call_id: "c1".to_owned(),
        tool_name: "terminal".to_owned(),
        is_error: true,
        spans: vec![steward_proto::common::v1::Span {
            start: 0,
            end: 11,
            source: steward_proto::common::v1::SpanSource::External as i32,
            name: "https://pond.example".to_owned(),
            integrity: 1,
        }],
        ..Default::default()
    };
    let ended = pb::AppendMessagesRequest {
        turn: Some(pb::TurnUpdate {
            id: "t1".to_owned(),
            state: pb::TurnState::Failed as i32,
            iterations: 2,
            segments: 1,
            error_reason: "MODEL_QUOTA".to_owned(),
            error_message: "no more".to_owned(),
        }),
        release_lease: true,
        ..append(S1, fence, 0, vec![said("what is there?"), calling, returned])
    };
    rig.store().append_messages(ended).await.unwrap();
    rig.say(S1, "hunter2").await;
    let rewind = pb::RewindSessionRequest {
        name: S1.to_owned(),
        to_seq: 3,
        request_id: "r1".to_owned(),
        ..Default::default()
    };
    rig.store().rewind_session(rewind).await.unwrap();
    let compact = pb::MarkCompactedRequest {
        session: S1.to_owned(),
        expected_seq: 4,
        range: Some(pb::MessageRange { from_seq: 1, to_seq: 3 }),
        summary: Some(said("somebody looked at ducks")),
        request_id: "c1".to_owned(),
        ..Default::default()
    };
    rig.store().mark_compacted(compact).await.unwrap();
}

#[tokio::test]
async fn what_is_handed_out_and_taken_in_elsewhere_is_handed_out_the_same() {
    let here = Rig::new("recall-export").await;
    rich(&here).await;
    here.create("s2").await;
    let file = exported(&here.search(&here.person("red", "ann")), &[]).await.unwrap();
    assert_eq!(file.split(|byte| *byte == b'\n').count(), 3);
    let there = Rig::new("recall-import").await;
    let client = there.search(&there.person("red", "ann"));
    for (pieces, counts) in [(7, (2, 0)), (1_000_000, (0, 2))] {
        let answer = imported(&client, ANN, &file, pieces).await.unwrap();
        assert_eq!((answer.imported, answer.unchanged), counts);
        assert_eq!(answer.problems, Vec::new());
    }
    let again = exported(&client, &[]).await.unwrap();
    assert!(again == file, "the same bytes");
    let found = client.search(discover("goosander")).await.unwrap();
    assert_eq!(found.conversations.len(), 1);
    assert!(
        client
            .search(discover("hunter2"))
            .await
            .unwrap()
            .conversations
            .is_empty()
    );
    let one = exported(&client, &[S1]).await.unwrap();
    assert!(file.starts_with(&one) || file.ends_with(&one));
}

#[tokio::test]
async fn bad_lines_are_told_by_number_and_good_ones_land() {
    let rig = Rig::new("recall-bad-lines").await;
    rich(&rig).await;
    let good = exported(&rig.search(&rig.person("red", "ann")), &[]).await.unwrap();
    let good = String::from_utf8(good).unwrap();
    let with = |from: &str, to: &str| good.replacen(from, to, 1);
    let lines = [
        with("\"id\":\"s1\"", "\"id\":\"s3\""),
        "\n".to_owned(),
        "not json\n".to_owned(),
        with("\"steward-session/1\"", "\"steward-session/9\""),
        with("\"source\":\"chat\"", "\"source\":\"review\""),
        with("\"id\":\"s1\"", "\"id\":\"no good!\""),
        with("\"title\"", "\"tittle\""),
        with("\"seq\":2", "\"seq\":7"),
        with("\"id\":\"s1\"", "\"id\":\"s4\""),
    ];
    let client = rig.search(&rig.person("red", "ann"));
    let answer = imported(&client, ANN, lines.concat().as_bytes(), 100).await.unwrap();
    assert_eq!((answer.imported, answer.unchanged), (2, 0));
    let numbers: Vec<u64> = answer.problems.iter().map(|problem| problem.line).collect();
    assert_eq!(numbers, [3, 4, 5, 6, 7, 8], "{:?}", answer.problems);
    for id in ["s3", "s4"] {
        assert!(
            rig.store()
                .get_session(get(&format!("teams/red/sessions/{id}")))
                .await
                .is_ok()
        );
    }
}

#[tokio::test]
async fn nobody_hands_out_or_takes_in_for_somebody_else() {
    let rig = Rig::new("recall-others-file").await;
    rich(&rig).await;
    let file = exported(&rig.search(&rig.person("red", "ann")), &[S1]).await.unwrap();
    let bob = rig.search(&rig.person("red", "bob"));
    assert_eq!(exported(&bob, &[]).await.unwrap_err().reason, "INVALID_REQUEST");
    assert_eq!(
        imported(&bob, ANN, &file, 50).await.unwrap_err().reason,
        "INVALID_REQUEST"
    );
    let taken = imported(&bob, "teams/red/users/bob", &file, 50).await.unwrap();
    assert_eq!((taken.imported, taken.problems.len()), (0, 1));
    let own = pb::ExportSessionsRequest {
        parent: "teams/red/users/bob".to_owned(),
        sessions: vec![S1.to_owned()],
    };
    let mut others = bob.export_sessions(own).await.unwrap();
    assert_eq!(others.message().await.unwrap_err().reason, "SESSION_NOT_FOUND");
}

#[tokio::test]
async fn admins_back_a_team_up_and_put_it_back() {
    let rig = Rig::new("recall-backups").await;
    rig.create("s1").await;
    rig.say(S1, "a goosander").await;
    let now = rig.clock.now();
    let admin = Claims::user(
        "token",
        TeamId::parse("red").unwrap(),
        UserId::parse("eve").unwrap(),
        Role::Admin,
        now,
        now.plus(Duration::from_mins(10)),
    );
    let admin = SessionStoreClient::new(rig.wire(&admin));
    let parent = || "teams/red".to_owned();
    let made = admin
        .backup_team(pb::BackupTeamRequest { parent: parent() })
        .await
        .unwrap();
    let made = made.backup.unwrap();
    assert_eq!((made.sessions, made.messages), (1, 1));
    rig.say(S1, "a smew").await;
    admin
        .backup_team(pb::BackupTeamRequest { parent: parent() })
        .await
        .unwrap();
    let page = |page_token: String| pb::ListBackupsRequest {
        parent: parent(),
        page_size: 1,
        page_token,
    };
    let first = admin.list_backups(page(String::new())).await.unwrap();
    let second = admin.list_backups(page(first.next_page_token.clone())).await.unwrap();
    assert_eq!(
        (first.backups.len(), second.backups[0].name.as_str()),
        (1, made.name.as_str())
    );
    assert_eq!(second.next_page_token, "");
    let restore = |name: &str| pb::RestoreTeamRequest { name: name.to_owned() };
    let restored = admin.restore_team(restore(&made.name)).await.unwrap();
    assert_eq!((restored.sessions, restored.messages), (1, 1));
    assert!(restored.set_aside.starts_with("teams/red/backups/"));
    let theirs = made.name.replace("red", "blue");
    for missing in [theirs.as_str(), "teams/red/backups/none"] {
        assert_eq!(
            admin.restore_team(restore(missing)).await.unwrap_err().reason,
            "BACKUP_NOT_FOUND"
        );
    }
    let read = rig.store().get_session(get(S1)).await.unwrap().session.unwrap();
    assert_eq!(read.last_seq, 1);
}
