//! Puts a history into recall-service, through its RPCs, as the service that runs turns does.

use anyhow::Context as _;
use steward_client::SessionStoreClient;
use steward_proto::recall::v1 as pb;

use crate::corpus::{Corpus, Message, Role, Session, Source};
use crate::rig::{PERSON, TEAM};

/// Most messages of one append when a history is loaded.
pub(crate) const BATCH: usize = 500;

/// Resource name of the conversation at `place`.
pub(crate) fn name(place: usize) -> String {
    format!("{TEAM}/sessions/{}", id(place))
}

/// Place of a conversation, from its resource name.
pub(crate) fn place(name: &str) -> Option<usize> {
    name.rsplit_once("/sessions/s")?.1.parse().ok()
}

fn id(place: usize) -> String {
    format!("s{place:07}")
}

/// Loads all of it, in large appends.
pub(crate) async fn load(store: &SessionStoreClient, corpus: &Corpus) -> anyhow::Result<()> {
    for (place, session) in corpus.sessions.iter().enumerate() {
        let fence = begin(store, place, session).await?;
        let mut last = 0;
        for batch in messages(session).chunks(BATCH) {
            last = append(store, place, fence, last, batch.to_vec()).await?;
        }
    }
    Ok(())
}

/// Creates a conversation and takes its lease; gives the fence.
pub(crate) async fn begin(store: &SessionStoreClient, place: usize, session: &Session) -> anyhow::Result<u64> {
    let lineage = match session.parent {
        Some(_) => pb::LineageReason::Compression,
        None => pb::LineageReason::Unspecified,
    };
    let source = match session.source {
        Source::Chat => pb::SessionSource::Chat,
        Source::Schedule => pb::SessionSource::Schedule,
        Source::Delegate => pb::SessionSource::Delegate,
        Source::Import => pb::SessionSource::Import,
    };
    let new = pb::Session {
        user: PERSON.to_owned(),
        source: source.into(),
        parent_session: session.parent.map(name).unwrap_or_default(),
        lineage_reason: lineage.into(),
        model: "bench".to_owned(),
        system_prompt: "You help a person whom nobody has met.".to_owned(),
        tools_json: "[]".to_owned(),
        ..pb::Session::default()
    };
    store
        .create_session(pb::CreateSessionRequest {
            parent: TEAM.to_owned(),
            session_id: id(place),
            session: Some(new),
            request_id: format!("create-{place}"),
        })
        .await
        .context("create a session")?;
    let lease = pb::AcquireTurnLeaseRequest {
        session: name(place),
        turn: "t1".to_owned(),
        holder: "bench".to_owned(),
        ttl: Some(prost_types::Duration { seconds: 300, nanos: 0 }),
    };
    Ok(store.acquire_turn_lease(lease).await.context("take the lease")?.fence)
}

/// Appends; gives the number of the last message.
pub(crate) async fn append(
    store: &SessionStoreClient,
    place: usize,
    fence: u64,
    last: u64,
    messages: Vec<pb::Message>,
) -> anyhow::Result<u64> {
    let request = pb::AppendMessagesRequest {
        session: name(place),
        fence,
        expected_seq: last,
        request_id: format!("append-{last}"),
        messages,
        ..pb::AppendMessagesRequest::default()
    };
    Ok(store
        .append_messages(request)
        .await
        .context("append messages")?
        .last_seq)
}

/// The messages of a conversation as the contract has them. A result answers the last call before it.
pub(crate) fn messages(session: &Session) -> Vec<pb::Message> {
    let mut last_call = "unknown".to_owned();
    session
        .messages
        .iter()
        .map(|message| {
            if let Some(call) = message.calls.last() {
                last_call.clone_from(&call.id);
            }
            message_to_pb(message, &last_call)
        })
        .collect()
}

fn message_to_pb(message: &Message, last_call: &str) -> pb::Message {
    let role = match message.role {
        Role::User => pb::MessageRole::User,
        Role::Assistant => pb::MessageRole::Assistant,
        Role::Tool => pb::MessageRole::Tool,
    };
    let is_result = message.role == Role::Tool;
    let calls = message.calls.iter().map(|call| pb::ToolCall {
        id: call.id.clone(),
        name: call.name.clone(),
        arguments_json: call.arguments.clone(),
        sent_arguments_json: None,
    });
    pb::Message {
        role: role.into(),
        text: message.text.clone(),
        tool_calls: calls.collect(),
        tool_call_id: if is_result { last_call.to_owned() } else { String::new() },
        tool_name: message.tool_name.clone().filter(|_| is_result).unwrap_or_default(),
        ..pb::Message::default()
    }
}
