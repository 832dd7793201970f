//! Talking, and what becomes of what was said.

use serde_json::Value;

use super::{Walk, name};

pub(super) async fn conversations(walk: &mut Walk) {
    walk.saw(&["chat"]);
    let chat = walk
        .installation
        .run(&["chat", "--no-tools", "-m", "When?", "--json"])
        .await;
    assert_eq!(chat.code, Some(0), "{}", chat.stderr);
    let events: Vec<Value> = chat
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(
        events.iter().any(|event| !event["completed"].is_null()),
        "{}",
        chat.stdout
    );

    let turn = events[0]["turn"].as_str().unwrap();

    let sessions = walk.ok(&["sessions", "list"]).await;
    let session = name(&sessions["sessions"][0]);
    let id = session.rsplit('/').next().unwrap().to_owned();
    assert_eq!(name(&walk.ok(&["sessions", "show", &id]).await["session"]), session);
    let messages = walk.ok(&["sessions", "messages", &id]).await;
    assert_eq!(messages["messages"].as_array().unwrap().len(), 2);
    let named = ["sessions", "update", &id, "--title", "Harbour", "--model", "scripted"];
    assert_eq!(walk.ok(&named).await["session"]["title"], "Harbour");
    walk.refused("CLIENT", &["sessions", "update", &id]).await;
    walk.refused("MODEL_UNKNOWN", &["sessions", "update", &id, "--model", "none"])
        .await;
    walk.saw(&["sessions", "watch"]);
    let watched = ["sessions", "watch", &id, "--turn", turn, "--json"];
    let watched = walk.installation.run(&watched).await;
    assert_eq!(watched.code, Some(0), "{}", watched.stderr);
    assert!(watched.stdout.contains("\"completed\":{"), "{}", watched.stdout);
    assert_eq!(walk.ok(&["models", "list"]).await["models"][0], "scripted");
    walk.ok(&["sessions", "pending"]).await;
    assert_eq!(walk.ok(&["sessions", "stop", &id]).await["turn"], "");
    walk.refused("SESSION_NOT_FOUND", &["sessions", "show", "nowhere"])
        .await;

    let found = walk.ok(&["recall", "search", "harbour"]).await;
    assert_eq!(found["conversations"][0]["session"], session.as_str());
    walk.ok(&["recall", "read", &id]).await;
    walk.ok(&["recall", "around", &id, "1"]).await;
    walk.ok(&["recall", "browse"]).await;
    assert_eq!(walk.ok(&["recall", "check", "--rebuild"]).await["consistent"], true);
    conversations_as_a_whole(walk, &id).await;
    walk.ok(&["reviews", "list"]).await;
    for verb in ["show", "retry", "cancel"] {
        walk.refused(
            "REVIEW_NOT_FOUND",
            &["reviews", verb, "0190f3b6a4c07d5e8f00112233445566"],
        )
        .await;
    }
}

/// Rewound, forked, handed out, deleted, taken in again, backed up and restored.
async fn conversations_as_a_whole(walk: &mut Walk, id: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sessions.jsonl").display().to_string();
    let forked = walk
        .ok(&["sessions", "fork", id, "--through", "2", "--title", "Another way"])
        .await;
    let forked = name(&forked["session"]);
    let rewound = walk.ok(&["sessions", "rewind", &forked, "--to", "0"]).await;
    assert_eq!(rewound["session"]["lastPrefixBreakReason"], "rewind");
    let backup = walk.ok(&["recall", "backup"]).await;
    let backup = name(&backup["backup"]);
    assert_eq!(name(&walk.ok(&["recall", "backups"]).await["backups"][0]), backup);

    assert_eq!(
        walk.ok(&["sessions", "export", id, "--output", &file]).await["sessions"],
        1
    );
    walk.refused("CLIENT", &["sessions", "delete", id]).await;
    walk.ok(&["sessions", "delete", id, "--yes"]).await;
    walk.refused("SESSION_NOT_FOUND", &["sessions", "show", id]).await;
    assert_eq!(walk.ok(&["sessions", "import", &file]).await["imported"], 1);
    assert_eq!(walk.ok(&["sessions", "import", &file]).await["unchanged"], 1);
    assert!(name(&walk.ok(&["sessions", "show", id]).await["session"]).ends_with(id));

    walk.ok(&["sessions", "delete", &forked, "--yes"]).await;
    let restored = walk.ok(&["recall", "restore", &backup, "--yes"]).await;
    assert_ne!(restored["setAside"], "");
    assert_eq!(name(&walk.ok(&["sessions", "show", &forked]).await["session"]), forked);
    walk.refused("BACKUP_NOT_FOUND", &["recall", "restore", "none", "--yes"])
        .await;
}
