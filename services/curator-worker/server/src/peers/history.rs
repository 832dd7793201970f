//! The session as it was at the review's upper message (`R-1`): whatever was compacted or rewound since is read as it
//! then was; only if the upper message itself is gone, there is nothing to look at.

use std::collections::BTreeMap;

use steward_agent::review::ReviewMessage;
use steward_base::names::session_name;
use steward_base::{Integrity, Span, SpanOrigin};
use steward_client::SessionStoreClient;
use steward_curator_core::Error;
use steward_curator_core::ports::SessionView;
use steward_curator_core::review::Review;
use steward_model::{Message, NativeBlocks, ToolCall};
use steward_proto::recall::v1 as pb;

use super::{RECALL, convert};

/// Messages of one page; the service ends a page at 8 MiB anyway.
const PAGE: i32 = 500;

/// All messages up to the upper one.
pub(super) async fn load(client: &SessionStoreClient, review: &Review) -> Result<Vec<pb::Message>, Error> {
    let mut messages = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = pb::ListMessagesRequest {
            session: session_name(&review.team, &review.session),
            from_seq: 0,
            to_seq: review.to_seq,
            include_hidden: true,
            page_size: PAGE,
            page_token,
        };
        let page = client
            .list_messages(request)
            .await
            .map_err(|error| Error::peer(RECALL, error))?;
        messages.extend(page.messages);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return Ok(messages);
        }
    }
}

pub(super) fn view(session: pb::Session, messages: Vec<pb::Message>, review: &Review) -> Result<SessionView, Error> {
    let upper = messages.last().filter(|message| message.seq == review.to_seq);
    let undone = upper.is_none_or(|message| message.rewound);
    let natives = natives(&messages);
    let messages = messages
        .into_iter()
        .map(|message| one(message, review))
        .collect::<Result<_, _>>()?;
    Ok(SessionView {
        model: session.model,
        stable_len: usize::try_from(session.stable_prompt_bytes)
            .ok()
            .filter(|length| *length > 0 && session.system_prompt.is_char_boundary(*length)),
        system: session.system_prompt.into(),
        tools_json: session.tools_json.into(),
        messages,
        natives,
        undone,
        memory_on: !session.skip_memory,
    })
}

/// What the provider wants back of its own messages, by position.
fn natives(messages: &[pb::Message]) -> BTreeMap<usize, NativeBlocks> {
    let kept = messages.iter().enumerate().filter_map(|(at, message)| {
        let native = message.native.clone()?;
        Some((at, convert::native(native)))
    });
    kept.collect()
}

fn one(message: pb::Message, review: &Review) -> Result<ReviewMessage, Error> {
    let role = message.role();
    let said = message.text;
    let content = message.sent_text.unwrap_or_else(|| said.clone());
    let mut spans: Vec<Span> = message.spans.iter().map(convert::span).collect();
    let sent = match role {
        pb::MessageRole::User => {
            if spans.is_empty() {
                spans.push(whole(&said, SpanOrigin::User(review.user.to_string())));
            }
            Message::User { content }
        }
        pb::MessageRole::Assistant => Message::Assistant {
            content,
            tool_calls: message.tool_calls.into_iter().map(call).collect(),
        },
        pb::MessageRole::Tool => Message::Tool {
            call_id: message.tool_call_id,
            name: message.tool_name,
            content,
        },
        pb::MessageRole::Unspecified => {
            return Err(Error::unreadable(
                "a message of the session",
                format!("message {} has no role", message.seq),
            ));
        }
    };
    Ok(ReviewMessage {
        id: message.seq.to_string(),
        sent,
        said,
        spans,
    })
}

fn whole(text: &str, origin: SpanOrigin) -> Span {
    Span {
        start: 0,
        end: u32::try_from(text.len()).unwrap_or(u32::MAX),
        origin,
        integrity: Integrity::Person,
    }
}

/// What was sent, which is what was received unless that was no JSON.
fn call(call: pb::ToolCall) -> ToolCall {
    ToolCall {
        id: call.id,
        name: call.name,
        arguments: call.sent_arguments_json.unwrap_or(call.arguments_json),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steward_base::Timestamp;
    use steward_base::names::{ReviewId, SessionId, TeamId, UserId};
    use steward_curator_core::review::{Due, Kinds};
    use steward_proto::common::v1::NativeBlocks as NativeBlocksPb;

    fn review() -> Review {
        Review::queued(Due {
            team: TeamId::parse("red").unwrap(),
            id: ReviewId::parse("r").unwrap(),
            name: String::new(),
            user: UserId::parse("ann").unwrap(),
            session: SessionId::parse("s").unwrap(),
            turn: "t".to_owned(),
            to_seq: 2,
            kinds: Kinds {
                memory: true,
                skills: false,
            },
            created_at: Timestamp::from_secs(0),
            traceparent: String::new(),
        })
    }

    fn message(seq: u64, role: pb::MessageRole) -> pb::Message {
        pb::Message {
            seq,
            role: role.into(),
            text: "said".to_owned(),
            ..Default::default()
        }
    }

    #[test]
    fn the_history_is_what_was_sent_and_spans_speak_of_what_was_said() {
        let mut user = message(1, pb::MessageRole::User);
        user.sent_text = Some("said, with more around it".to_owned());
        let mut assistant = message(2, pb::MessageRole::Assistant);
        assistant.compacted = true;
        assistant.tool_calls.push(pb::ToolCall {
            id: "c".to_owned(),
            name: "t".to_owned(),
            arguments_json: "{oops".to_owned(),
            sent_arguments_json: Some("{}".to_owned()),
        });
        assistant.native = Some(NativeBlocksPb {
            provider: "vendor".to_owned(),
            model: "m".to_owned(),
            blocks_json: "[1]".to_owned(),
        });
        let session = pb::Session {
            system_prompt: "stable and more".to_owned(),
            stable_prompt_bytes: 6,
            ..pb::Session::default()
        };
        let view = view(session, vec![user, assistant], &review()).unwrap();
        assert!(!view.undone && view.memory_on);
        assert_eq!((view.stable_len, view.natives[&1].blocks.as_str()), (Some(6), "[1]"));
        assert_eq!(view.messages[0].sent.content(), "said, with more around it");
        assert_eq!(view.messages[0].spans[0].origin, SpanOrigin::User("ann".to_owned()));
        assert_eq!(
            (view.messages[0].said.as_str(), view.messages[0].spans[0].end),
            ("said", 4)
        );
        let Message::Assistant { tool_calls, .. } = &view.messages[1].sent else {
            panic!("it is the assistant's")
        };
        assert_eq!(tool_calls[0].arguments, "{}");
    }

    #[test]
    fn a_rewound_or_missing_upper_message_means_undone() {
        let mut last = message(2, pb::MessageRole::Assistant);
        last.rewound = true;
        assert!(view(pb::Session::default(), vec![last], &review()).unwrap().undone);
        assert!(
            view(
                pb::Session::default(),
                vec![message(1, pb::MessageRole::User)],
                &review()
            )
            .unwrap()
            .undone
        );
    }
}
