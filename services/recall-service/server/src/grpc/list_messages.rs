//! `ListMessages`.

use steward_base::page;
use steward_grpc::caller;
use steward_proto::recall::v1 as pb;
use steward_recall_core::store::{MessageRange, Visibility};
use steward_recall_core::{Error, Sessions};
use tonic::{Request, Response, Status};

use super::access::{check_readable, session_of};
use super::convert::message_to_pb;
use super::fail;

pub(super) async fn list_messages(
    sessions: &Sessions,
    request: Request<pb::ListMessagesRequest>,
) -> Result<Response<pb::ListMessagesResponse>, Status> {
    let caller = caller(&request)?;
    let asked = request.get_ref();
    let (team, session) = session_of(caller, "session", &asked.session).map_err(fail)?;
    if !caller.is_service() {
        let session = sessions.get_session(&team, &session).await.map_err(fail)?;
        check_readable(caller, &session).map_err(fail)?;
    }
    let range = range_of(asked).map_err(fail)?;
    let page = sessions.list_messages(&team, &session, &range).await.map_err(fail)?;
    Ok(Response::new(pb::ListMessagesResponse {
        messages: page.messages.iter().map(message_to_pb).collect(),
        next_page_token: next_page_token(asked, page.next),
    }))
}

/// The token of the page that begins with the message `next`.
pub(super) fn next_page_token(asked: &pb::ListMessagesRequest, next: Option<u64>) -> String {
    next.map(|seq| with_arguments(asked, |arguments| page::encode(arguments, &seq.to_string())))
        .unwrap_or_default()
}

pub(super) fn range_of(asked: &pb::ListMessagesRequest) -> Result<MessageRange, Error> {
    let limit = page::size(asked.page_size, 200, 1_000)?;
    let cursor = with_arguments(asked, |arguments| page::decode(arguments, &asked.page_token))?;
    let from = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(asked.from_seq);
    let to = if asked.to_seq == 0 { u64::MAX } else { asked.to_seq };
    let visibility = if asked.include_hidden {
        Visibility::All
    } else {
        Visibility::InContext
    };
    Ok(MessageRange {
        visibility,
        ..MessageRange::in_context(from, to, limit)
    })
}

fn with_arguments<T>(asked: &pb::ListMessagesRequest, then: impl FnOnce(&[&str]) -> T) -> T {
    let bounds = format!("{}-{}-{}", asked.from_seq, asked.to_seq, asked.include_hidden);
    then(&[&asked.session, &bounds])
}
