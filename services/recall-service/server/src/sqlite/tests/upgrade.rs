//! Files that an earlier version wrote.

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};
use steward_recall_core::get_session::SessionRead;
use steward_recall_core::message::ToolResult;
use steward_recall_core::store::Visibility;

use super::*;

/// The third schema, with a row of everything.
const OLD_ROWS: &[&str] = &[
    "INSERT INTO session (team, id, user, source, title, root, project, model, skip_review, skip_memory,
         turns_since_memory, iterations_since_skill, user_turns, prefix_tools_sha256, prefix_system_sha256,
         prefix_messages_bytes, prefix_messages_sha256, planned_breaks, unplanned_breaks, requests, last_break_reason,
         last_seq, open_calls, lowest_integrity, open_turn, lease_fence, created, last_active, revision, client_tools,
         system_prompt, tools_json, stable_prompt_bytes, setup)
     VALUES ('red', 's1', 'ann', 'chat', 'On ducks', 's1', 'pond', 'm1', 0, 1, 2, 3, 4, 'a', 'b', 5, 'c', 6, 7, 8, 'model', 4,
         '[]', 2, 't1', 9, 1790000000000000, 1790000001000000, 10, '[{\"name\":\"edit\",\"integrity\":\"workspace\"}]',
         'be kind', '[1]', 2, x'0102')",
    "INSERT INTO exposure VALUES ('red', 's1', 0, 'a skill', '1', 'indexed', '', '', 0.5, 1790000000000000)",
    "INSERT INTO message (team, session, seq, doc, role, rewound, created, is_error, model, integrity, turn, said, spans,
         tool_calls, tool_text) VALUES ('red', 's1', 1, 11, 'user', 0, 1790000000000000, 0, 'm1', 3, 't1',
         'where do mergansers winter', '[]', '[]', '')",
    "INSERT INTO message (team, session, seq, doc, role, rewound, created, is_error, model, integrity, turn, said, spans,
         tool_calls, tool_text) VALUES ('red', 's1', 2, 12, 'assistant', 0, 1790000000000000, 0, 'm1', 3, 't1', '',
         '[]', '[{\"id\":\"c1\",\"name\":\"atlas\",\"arguments_json\":\"{}\"}]', 'atlas {}')",
    "INSERT INTO message (team, session, seq, doc, role, rewound, created, tool_call_id, tool_name, is_error, model, integrity,
         turn, said, spans, tool_calls, tool_text) VALUES ('red', 's1', 3, 13, 'tool', 0, 1790000000000000, 'c1', 'atlas', 1,
         'm1', 1, 't1', 'on lakes of the 沙鸭', '[]', '[]', 'on lakes of the 沙鸭')",
    "INSERT INTO message (team, session, seq, doc, role, rewound, created, is_error, model, integrity, turn, said, spans,
         tool_calls, tool_text, native_provider, native_model, native_blocks) VALUES ('red', 's1', 4, 14, 'assistant', 1,
         1790000000000000, 0, 'm1', 1, 't1', 'undone', '[]', '[]', '', 'anthropic', 'm1', '[]')",
    "INSERT INTO turn VALUES ('red', 's1', 't1', 'running', 1, 4, 2, 1, '', '', 1790000000000000, NULL)",
    "INSERT INTO due_review VALUES ('red', 's1', 'r1', 'ann', 1, 0, 4, 't1', '', 1790000000000000)",
    "INSERT INTO answered VALUES ('red', 'sessions/s1', 'q1', 'a hash', '{\"last_seq\":4,\"due_review\":null}',
         1790000000000000)",
    "INSERT INTO answered VALUES ('red', 'sessions', 'create-s1', 'create-s1', '\"s1\"', 1790000000000000)",
    "INSERT INTO meta VALUES ('tokenizer_version', '2')",
    "INSERT INTO message_index (message_index) VALUES ('rebuild')",
];

async fn write_old_file(folder: &TempDir) {
    let options = SqliteConnectOptions::new()
        .filename(folder.path().join("red.db"))
        .create_if_missing(true);
    let mut connection = options.connect().await.unwrap();
    crate::fts::register_to_migrate(&mut connection).await.unwrap();
    teams::MIGRATIONS
        .run_direct(Some(3), &mut connection, false)
        .await
        .unwrap();
    for statement in OLD_ROWS {
        sqlx::query(*statement).execute(&mut connection).await.unwrap();
    }
    connection.close().await.unwrap();
}

/// Nothing is lost, everything is found, and retries are still recognised.
#[tokio::test]
async fn a_file_of_an_earlier_version_keeps_everything() {
    let folder = TempDir::new("recall-upgrade");
    write_old_file(&folder).await;
    let store = open_store(&folder, 2).await.unwrap();
    let report = store.check_integrity(&team("red"), false).await.unwrap();
    assert_eq!((report.problems, report.messages), (Vec::new(), 4));

    let every = MessageRange {
        visibility: Visibility::All,
        ..MessageRange::in_context(1, u64::MAX, 10)
    };
    let read = SessionRead {
        turn: "t1".to_owned(),
        messages: Some(every),
    };
    let view = store.view(&team("red"), &session("s1"), &read).await.unwrap().unwrap();
    let frozen = &view.session.frozen;
    assert_eq!(
        (
            frozen.system_prompt.as_str(),
            frozen.tools_json.as_str(),
            frozen.client_tools[0].name.as_str()
        ),
        ("be kind", "[1]", "edit")
    );
    assert_eq!((frozen.stable_prompt_bytes, frozen.setup.as_slice()), (2, &[1, 2][..]));
    assert_eq!(
        (
            view.session.exposures.len(),
            view.session.lease.fence,
            view.session.revision
        ),
        (1, 9, 10)
    );
    assert_eq!(view.turn.unwrap().first_seq, 1);
    let messages = view.messages.messages;
    let result = ToolResult {
        call_id: "c1".to_owned(),
        tool_name: "atlas".to_owned(),
        is_error: true,
    };
    assert_eq!(
        (messages[2].body.text.as_str(), &messages[2].body.result),
        ("on lakes of the 沙鸭", &Some(result))
    );
    assert_eq!(messages[1].tool_text(), "atlas {}");
    assert!(messages[3].rewound && messages[3].body.native.is_some());

    for (word, seq) in [("mergansers", 1), ("atlas", 2), ("沙鸭", 3)] {
        let hits = store.hits(&hits_for("red", word)).await.unwrap();
        assert_eq!(hits.first().map(|hit| hit.seq), Some(seq), "{word}");
    }
    assert!(store.hits(&hits_for("red", "undone")).await.unwrap().is_empty());
    assert_eq!(store.due_reviews(None, 5).await.unwrap().len(), 1);

    let mut again = append("red", "s1", 9, 0, "x");
    again.request = RequestKey {
        id: "q1".to_owned(),
        hash: "a hash".to_owned(),
    };
    assert_eq!(store.append(again, at(1)).await.unwrap().last_seq, 4);
    create(&store, "red", "s1").await;
}
