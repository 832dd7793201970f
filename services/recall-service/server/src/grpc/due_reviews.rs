//! `ListDueReviews`, `AcknowledgeDueReviews`.

use steward_base::names::{SessionId, TeamId, segments, session_name, user_name};
use steward_base::{FieldViolations, page};
use steward_grpc::{caller, team_of};
use steward_proto::recall::v1 as pb;
use steward_recall_core::sessions::DueReviewRef;
use steward_recall_core::turn::DueReview;
use steward_recall_core::{Error, Sessions};
use tonic::{Request, Response, Status};

use super::convert::time_to_pb;
use super::fail;

/// Most names of one acknowledgement.
const MAX_NAMES: usize = 500;

pub(super) async fn list(
    sessions: &Sessions,
    request: Request<pb::ListDueReviewsRequest>,
) -> Result<Response<pb::ListDueReviewsResponse>, Status> {
    let caller = caller(&request)?;
    let limit = page::size(request.get_ref().page_size, 100, 500).map_err(|error| fail(error.into()))?;
    let due = sessions
        .list_due_reviews(caller.team.as_ref(), limit)
        .await
        .map_err(fail)?;
    let due_reviews = due.into_iter().map(due_review_to_pb).collect();
    Ok(Response::new(pb::ListDueReviewsResponse { due_reviews }))
}

pub(super) async fn acknowledge(
    sessions: &Sessions,
    request: Request<pb::AcknowledgeDueReviewsRequest>,
) -> Result<Response<pb::AcknowledgeDueReviewsResponse>, Status> {
    let mut reviews = references(&request.get_ref().names).map_err(fail)?;
    let caller = caller(&request)?;
    // Another team's is as unknown as one that does not exist, and those are ignored.
    reviews.retain(|review| team_of(caller, review.team.clone(), || ()).is_ok());
    let acknowledged = sessions.acknowledge_due_reviews(reviews).await.map_err(fail)?;
    Ok(Response::new(pb::AcknowledgeDueReviewsResponse { acknowledged }))
}

fn references(names: &[String]) -> Result<Vec<DueReviewRef>, Error> {
    const PATTERN: &str = "teams/{team}/sessions/{session}/dueReviews/{id}";
    let mut violations = FieldViolations::new();
    if names.len() > MAX_NAMES {
        violations.add("names", format!("must be at most {MAX_NAMES}"));
    }
    let mut reviews = Vec::with_capacity(names.len());
    for (at, name) in names.iter().enumerate() {
        let parsed = segments(name, ["teams", "sessions", "dueReviews"], PATTERN).and_then(|[team, session, id]| {
            Ok(DueReviewRef {
                team: TeamId::parse(team)?,
                session: SessionId::parse(session)?,
                id: id.to_owned(),
            })
        });
        reviews.extend(violations.take(&format!("names[{at}]"), parsed));
    }
    violations.into_result()?;
    Ok(reviews)
}

fn due_review_to_pb(due: DueReview) -> pb::DueReview {
    pb::DueReview {
        name: due.name(),
        session: session_name(&due.team, &due.session),
        user: user_name(&due.team, &due.user),
        memory: due.review.memory,
        skills: due.review.skills,
        to_seq: due.to_seq,
        turn: due.review.turn,
        create_time: Some(time_to_pb(due.created)),
        traceparent: due.review.traceparent,
    }
}
