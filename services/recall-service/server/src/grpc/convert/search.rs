//! Answers of the search.

use steward_base::names::session_name;
use steward_proto::recall::v1 as pb;
use steward_recall_core::search::{Answer, Conversation, RecalledMessage};

use super::{integrity_to_pb, role_to_pb, source_to_pb, time_to_pb};

pub(in crate::grpc) fn answer_to_pb(answer: Answer) -> pb::SearchResponse {
    pb::SearchResponse {
        conversations: answer.conversations.into_iter().map(conversation_to_pb).collect(),
        messages: recalled_to_pb(answer.messages),
        widened: answer.widened,
        expression: answer.expression,
        truncated: answer.truncated,
        next_seq: answer.next_seq,
        incomplete: String::new(),
    }
}

fn conversation_to_pb(conversation: Conversation) -> pb::Conversation {
    let session = conversation.session;
    pb::Conversation {
        session: session.name(),
        root_session: session_name(&session.team, &session.root),
        title: session.title,
        source: source_to_pb(session.source) as i32,
        last_active_time: Some(time_to_pb(session.last_active)),
        hit: conversation.hit.map(|hit| pb::Hit {
            seq: hit.seq,
            snippet: hit.snippet,
            score: hit.score,
            integrity: integrity_to_pb(hit.integrity),
        }),
        around: recalled_to_pb(conversation.around),
        opening: recalled_to_pb(conversation.opening),
        closing: recalled_to_pb(conversation.closing),
    }
}

fn recalled_to_pb(messages: Vec<RecalledMessage>) -> Vec<pb::RecalledMessage> {
    let each = messages.into_iter().map(|message| pb::RecalledMessage {
        seq: message.seq,
        role: role_to_pb(message.role) as i32,
        text: message.text,
        text_chars: message.text_chars,
        tools: message.tools,
        create_time: Some(time_to_pb(message.created)),
        integrity: integrity_to_pb(message.integrity),
    });
    each.collect()
}
