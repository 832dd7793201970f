//! Conversations as a whole: deleted, rewound, gone on with in another one, handed out and taken in, backed up and restored.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;

use futures::stream;
use steward_proto::agent::v1 as agent;
use steward_proto::recall::v1 as recall;
use steward_testkit::{ModelServer, Reply};
use steward_tests::person::{Person, fresh_id};
use steward_tests::{Shape, Stack, script};

/// Repeats what was asked, so that each answer can be told from the others.
async fn echo() -> ModelServer {
    ModelServer::scripted(|request| Reply::text(format!("you said {}", script::asked(request)))).await
}

async fn said(person: &Person, session: &str) -> Vec<String> {
    let messages = person.messages(session).await;
    messages.into_iter().map(|message| message.text).collect()
}

async fn hits(person: &Person, query: &str) -> Vec<String> {
    let found = person.search(query).await;
    found.conversations.into_iter().map(|one| one.session).collect()
}

both_shapes!(a_deleted_conversation_is_gone_for_everybody);

async fn a_deleted_conversation_is_gone_for_everybody(shape: Shape) {
    let model = echo().await;
    let stack = Stack::start("sessions-delete", shape, common::no_reviews(&model));
    let owner = stack.owner().await;
    let session = owner.session(Vec::new()).await;
    owner.say(&session, "a goosander").await;
    assert_eq!(hits(&owner, "goosander").await, std::slice::from_ref(&session));
    let delete = agent::DeleteSessionRequest {
        name: session.clone(),
        etag: String::new(),
    };
    owner.client.sessions.delete_session(delete.clone()).await.unwrap();
    assert!(hits(&owner, "goosander").await.is_empty());
    let late = owner.say_as(&session, "are you there?", &fresh_id()).await.unwrap_err();
    assert_eq!(late.reason, "SESSION_NOT_FOUND");
    let again = owner.client.sessions.delete_session(delete).await.unwrap_err();
    assert_eq!(again.reason, "SESSION_NOT_FOUND");
}

both_shapes!(a_rewound_conversation_goes_on_as_if_nothing_had_been_said);

/// D-69: what was undone is in no history, no search and no request.
async fn a_rewound_conversation_goes_on_as_if_nothing_had_been_said(shape: Shape) {
    let model = echo().await;
    let stack = Stack::start("sessions-rewind", shape, common::no_reviews(&model));
    let owner = stack.owner().await;
    let session = owner.session(Vec::new()).await;
    owner.say(&session, "about teal").await;
    owner.say(&session, "about hunter2").await;
    let rewind = agent::RewindSessionRequest {
        name: session.clone(),
        to_seq: 2,
        request_id: fresh_id(),
        ..Default::default()
    };
    let rewound = owner.client.sessions.rewind_session(rewind.clone()).await.unwrap();
    assert_eq!(rewound.session.unwrap().last_prefix_break_reason, "rewind");
    owner.client.sessions.rewind_session(rewind).await.unwrap();
    assert_eq!(owner.say(&session, "about smew").await.answer(), "you said about smew");
    assert_eq!(
        said(&owner, &session).await,
        ["about teal", "you said about teal", "about smew", "you said about smew"]
    );
    assert!(hits(&owner, "hunter2").await.is_empty());
    let last = model.requests().pop().unwrap();
    assert!(
        !script::messages(&last)
            .iter()
            .any(|message| message.to_string().contains("hunter2"))
    );
    let kept = owner.read_session(&session).await;
    assert_eq!((kept.unplanned_prefix_breaks, kept.planned_prefix_breaks), (0, 1));
    let parted = agent::RewindSessionRequest {
        name: session,
        to_seq: 1,
        request_id: fresh_id(),
        ..Default::default()
    };
    let parted = owner.client.sessions.rewind_session(parted).await.unwrap_err();
    assert_eq!(
        (parted.reason, parted.violations[0].field.as_str()),
        ("INVALID_REQUEST", "to_seq")
    );
}

both_shapes!(a_fork_goes_its_own_way);

async fn a_fork_goes_its_own_way(shape: Shape) {
    let model = echo().await;
    let stack = Stack::start("sessions-fork", shape, common::no_reviews(&model));
    let owner = stack.owner().await;
    let session = owner.session(Vec::new()).await;
    owner.say(&session, "about teal").await;
    owner.say(&session, "about scoters").await;
    let fork = agent::ForkSessionRequest {
        name: session.clone(),
        through_seq: 2,
        title: "Another way".to_owned(),
        request_id: fresh_id(),
    };
    let forked = owner.client.sessions.fork_session(fork.clone()).await.unwrap();
    let forked = forked.session.unwrap();
    let again = owner.client.sessions.fork_session(fork).await.unwrap();
    assert_eq!(again.session.unwrap().name, forked.name);
    owner.say(&forked.name, "about smew").await;
    assert_eq!(
        said(&owner, &forked.name).await,
        ["about teal", "you said about teal", "about smew", "you said about smew"]
    );
    assert_eq!(said(&owner, &session).await.len(), 4);
    assert_eq!(hits(&owner, "teal").await.len(), 1, "one conversation");
    let original = owner.read_session(&session).await;
    assert_eq!(forked.system_prompt, original.system_prompt);
    let kept = owner.read_session(&forked.name).await;
    assert_eq!(kept.unplanned_prefix_breaks, 0);
}

both_shapes!(what_is_handed_out_can_be_taken_in_again);

async fn what_is_handed_out_can_be_taken_in_again(shape: Shape) {
    let model = echo().await;
    let stack = Stack::start("sessions-transfer", shape, common::no_reviews(&model));
    let owner = stack.owner().await;
    let session = owner.session(Vec::new()).await;
    owner.say(&session, "a goosander").await;
    let file = exported(&owner).await;
    let delete = agent::DeleteSessionRequest {
        name: session.clone(),
        etag: String::new(),
    };
    owner.client.sessions.delete_session(delete).await.unwrap();
    let broken = [b"{}\n".as_slice(), &file].concat();
    let answer = imported(&owner, &broken).await;
    assert_eq!((answer.imported, answer.problems[0].line), (1, 1));
    assert_eq!(imported(&owner, &file).await.unchanged, 1);
    assert!(exported(&owner).await == file, "the same bytes");
    assert_eq!(hits(&owner, "goosander").await, std::slice::from_ref(&session));
    assert_eq!(owner.say(&session, "and on").await.answer(), "you said and on");
}

async fn exported(person: &Person) -> Vec<u8> {
    let request = recall::ExportSessionsRequest {
        parent: person.user.clone(),
        sessions: Vec::new(),
    };
    let mut chunks = person.client.recall.export_sessions(request).await.unwrap();
    let mut file = Vec::new();
    while let Some(item) = chunks.message().await.unwrap() {
        file.extend_from_slice(&item.chunk);
    }
    file
}

async fn imported(person: &Person, file: &[u8]) -> recall::ImportSessionsResponse {
    let items = [
        (person.user.clone(), &file[..file.len() / 2]),
        (String::new(), &file[file.len() / 2..]),
    ]
    .map(|(parent, chunk)| recall::ImportSessionsRequest {
        parent,
        chunk: chunk.to_vec().into(),
    });
    person.client.recall.import_sessions(stream::iter(items)).await.unwrap()
}

both_shapes!(a_backup_brings_a_team_back);

async fn a_backup_brings_a_team_back(shape: Shape) {
    let model = echo().await;
    let stack = Stack::start("sessions-backup", shape, common::no_reviews(&model));
    let owner = stack.owner().await;
    let session = owner.session(Vec::new()).await;
    owner.say(&session, "a goosander").await;
    let store = &owner.client.store;
    let backup = recall::BackupTeamRequest {
        parent: owner.team.clone(),
    };
    let backup = store.backup_team(backup).await.unwrap().backup.unwrap();
    assert_eq!((backup.sessions, backup.messages), (1, 2));
    owner.say(&session, "a smew").await;
    let restored = store
        .restore_team(recall::RestoreTeamRequest { name: backup.name })
        .await
        .unwrap();
    assert_eq!(restored.messages, 2);
    assert!(hits(&owner, "smew").await.is_empty());
    assert_eq!(said(&owner, &session).await, ["a goosander", "you said a goosander"]);
    assert_eq!(owner.say(&session, "and on").await.answer(), "you said and on");
    let aside = recall::RestoreTeamRequest {
        name: restored.set_aside,
    };
    assert_eq!(store.restore_team(aside).await.unwrap().messages, 4);
    assert_eq!(hits(&owner, "smew").await, [session]);
}
