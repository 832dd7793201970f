//! `MarkCompacted`.

use steward_base::FieldViolations;
use steward_base::names::{SessionId, TeamId};
use steward_grpc::{caller, request_hash};
use steward_proto::recall::v1 as pb;
use steward_recall_core::append_messages::RequestKey;
use steward_recall_core::mark_compacted::{Compaction, RebuiltPrompt};
use steward_recall_core::message::Replaced;
use steward_recall_core::{Error, Sessions};
use tonic::{Request, Response, Status};

use super::access::session_of;
use super::convert::{exposures_from_pb, message_from_pb, session_to_pb, usage_from_pb};
use super::fail;

pub(super) async fn mark_compacted(
    sessions: &Sessions,
    request: Request<pb::MarkCompactedRequest>,
) -> Result<Response<pb::MarkCompactedResponse>, Status> {
    let (team, session) = session_of(caller(&request)?, "session", &request.get_ref().session).map_err(fail)?;
    let compaction = compaction_of(team.clone(), session.clone(), request.into_inner()).map_err(fail)?;
    let appended = sessions.mark_compacted(compaction).await.map_err(fail)?;
    let changed = sessions.get_session(&team, &session).await.map_err(fail)?;
    Ok(Response::new(pb::MarkCompactedResponse {
        last_seq: appended.last_seq,
        session: Some(session_to_pb(&changed)),
    }))
}

fn compaction_of(team: TeamId, session: SessionId, mut request: pb::MarkCompactedRequest) -> Result<Compaction, Error> {
    // As with an append: a retry may come under another fence.
    let fence = std::mem::take(&mut request.fence);
    let hash = request_hash("MarkCompacted", &request);
    let mut violations = FieldViolations::new();
    let summary = message_from_pb(request.summary.unwrap_or_default(), "summary", &mut violations);
    violations.into_result()?;
    let summary = summary.ok_or_else(|| Error::field("summary", "must be given"))?;
    let range = request.range.unwrap_or_default();
    Ok(Compaction {
        team,
        session,
        fence,
        expected_seq: request.expected_seq,
        range: Replaced {
            from: range.from_seq,
            to: range.to_seq,
        },
        summary,
        prompt: request.prompt.map(|prompt| RebuiltPrompt {
            system_prompt: prompt.system_prompt,
            stable_prompt_bytes: prompt.stable_prompt_bytes,
            setup: prompt.setup.into(),
            exposures: exposures_from_pb(prompt.exposures),
        }),
        usage: request.usage.map(usage_from_pb),
        request: RequestKey {
            id: request.request_id,
            hash,
        },
    })
}
