//! `steward.learning.v1.ReviewService`, and [`curator`] beside it: one file per RPC, which decodes, reads or changes the ledger, and encodes.

mod cancel_review;
mod convert;
mod curator;
mod get_review;
mod list_reviews;
mod person;
mod retry_review;
#[cfg(test)]
mod tests;
mod watch_reviews;

use std::pin::Pin;

use futures::Stream;
use steward_base::names::{ReviewId, SessionId, TeamId, UserId, parse_session, parse_user, segments};
use steward_base::{Caller, FieldViolations};
use steward_curator_core::Error;
use steward_curator_core::review::Review;
use steward_curator_core::summary::Detail;
use steward_proto::learning::v1 as pb;
use steward_proto::learning::v1::review_service_server::ReviewService;
use tonic::{Request, Response, Status};

use crate::sqlite::{Ledger, Whose};

pub(crate) use curator::CuratorHandlers;
pub(crate) use person::PersonHandlers;

/// `ErrorInfo.domain` of this service.
const DOMAIN: &str = "learning.steward.dev";

/// The stream of WatchReviews.
type ReviewStream = Pin<Box<dyn Stream<Item = Result<pb::WatchReviewsResponse, Status>> + Send>>;

/// The RPCs of curator-worker.
#[derive(Debug, Clone)]
pub(crate) struct Handlers {
    ledger: Ledger,
    /// How much is told to those who do not say how much they want.
    detail: Detail,
}

impl Handlers {
    pub(crate) const fn new(ledger: Ledger, detail: Detail) -> Self {
        Self { ledger, detail }
    }

    /// The caller's own review with this name. Anyone else's does not exist.
    async fn own(&self, caller: &Caller, name: &str) -> Result<Review, Error> {
        let (team, id) = parse_review(name)?;
        let missing = || Error::ReviewNotFound {
            review: name.to_owned(),
        };
        let team = steward_grpc::team_of(caller, team, missing)?;
        let user = caller.user.as_ref().ok_or_else(missing)?;
        self.ledger.get(&team, user, &id).await
    }
}

/// The one way from an error to a status.
#[expect(clippy::needless_pass_by_value, reason = "made to be used with map_err")]
fn fail(error: Error) -> Status {
    steward_grpc::status(&error, DOMAIN)
}

/// `teams/{team}/reviews/{review}`.
fn parse_review(name: &str) -> Result<(TeamId, ReviewId), FieldViolations> {
    let mut violations = FieldViolations::new();
    let parsed = segments(name, ["teams", "reviews"], "teams/{team}/reviews/{review}")
        .and_then(|[team, id]| Ok((TeamId::parse(team)?, ReviewId::parse(id)?)));
    violations.take("name", parsed).ok_or(violations)
}

/// Whose reviews are asked for: the caller's, and nobody else's, whatever the request says.
fn whose(caller: &Caller, parent: &str, session: &str) -> Result<Whose, FieldViolations> {
    let mut violations = FieldViolations::new();
    let named = violations.take("parent", parse_user(parent));
    let own = caller.team.clone().zip(caller.user.clone());
    if named.is_some() && named != own {
        violations.add("parent", "must be the caller");
    }
    let session = if session.is_empty() {
        None
    } else {
        Some(own_session(own.as_ref(), session, &mut violations))
    };
    match (own, session) {
        (Some((team, user)), None) if violations.is_empty() => Ok(Whose {
            team,
            user,
            session: None,
        }),
        (Some((team, user)), Some(Some(session))) if violations.is_empty() => Ok(Whose {
            team,
            user,
            session: Some(session),
        }),
        _ => Err(violations),
    }
}

fn own_session(own: Option<&(TeamId, UserId)>, name: &str, violations: &mut FieldViolations) -> Option<SessionId> {
    let (team, session) = violations.take("session", parse_session(name))?;
    if own.is_some_and(|(own, _)| *own == team) {
        return Some(session);
    }
    violations.add("session", "must be a session of the caller's team");
    None
}

#[tonic::async_trait]
impl ReviewService for Handlers {
    async fn list_reviews(
        &self,
        request: Request<pb::ListReviewsRequest>,
    ) -> Result<Response<pb::ListReviewsResponse>, Status> {
        list_reviews::list_reviews(self, request).await
    }

    async fn get_review(
        &self,
        request: Request<pb::GetReviewRequest>,
    ) -> Result<Response<pb::GetReviewResponse>, Status> {
        get_review::get_review(self, request).await
    }

    type WatchReviewsStream = ReviewStream;

    async fn watch_reviews(
        &self,
        request: Request<pb::WatchReviewsRequest>,
    ) -> Result<Response<Self::WatchReviewsStream>, Status> {
        watch_reviews::watch_reviews(self, &request)
    }

    async fn retry_review(
        &self,
        request: Request<pb::RetryReviewRequest>,
    ) -> Result<Response<pb::RetryReviewResponse>, Status> {
        retry_review::retry_review(self, request).await
    }

    async fn cancel_review(
        &self,
        request: Request<pb::CancelReviewRequest>,
    ) -> Result<Response<pb::CancelReviewResponse>, Status> {
        cancel_review::cancel_review(self, request).await
    }
}
