//! What teams give out (`H-1` the other way round): a well-known index with digests that any client of such indexes installs
//! from, and the same skills for programs that speak the Model Context Protocol.
//!
//! Only what a maintainer published is here, as it was packed then, and nothing whose tree is withdrawn. The listener is off
//! unless it is set; it speaks plain HTTP and stands behind whatever ends TLS.

pub(crate) mod config;
mod mcp;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use serde_json::json;
use steward_base::hash::sha256_hex;
use steward_base::{Identity, error_chain};
use steward_grpc::Auth;
use steward_runtime::tasks::TaskResult;
use steward_skill_hub::error::Error;
use steward_skill_hub::publish::Publication;
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::hub::Hubs;

/// The form of the index.
const SCHEMA: &str = "https://schemas.agentskills.io/discovery/0.2.0/schema.json";
/// Largest request that is read, in bytes: a question of the protocol and little else.
const MAX_REQUEST: usize = 64 * 1024;

/// Longest time from a request's head to its answer, the reading of its body included.
const LONGEST: Duration = Duration::from_secs(30);

/// What is given out, and to whom.
#[derive(Debug, Clone)]
pub(crate) struct Shelf {
    hubs: Hubs,
    auth: Arc<Auth>,
    public: bool,
}

impl Shelf {
    pub(crate) const fn new(hubs: Hubs, auth: Arc<Auth>, public: bool) -> Self {
        Self { hubs, auth, public }
    }

    /// What the team gives out now. A team that is not there, or gives out nothing to everyone, answers like a missing page.
    async fn served(&self, team: &str, headers: &HeaderMap) -> Result<Vec<Publication>, Refused> {
        if !self.public {
            self.check(team, headers)?;
        }
        let served = self.hubs.of(team).served(team).await.map_err(Refused::failed)?;
        if served.is_empty() && self.public {
            return Err(Refused::Missing);
        }
        Ok(served)
    }

    /// Whether a person of the team asks.
    fn check(&self, team: &str, headers: &HeaderMap) -> Result<(), Refused> {
        // One value, so that what stands in front of this server looked at the same one.
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return Err(Refused::Unknown);
        };
        let (scheme, token) = value
            .to_str()
            .ok()
            .and_then(|value| value.split_once(' '))
            .ok_or(Refused::Unknown)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(Refused::Unknown);
        }
        let caller = self.auth.caller(token.trim()).map_err(|_| Refused::Unknown)?;
        let is_person = matches!(caller.identity, Identity::User);
        if is_person && caller.team.as_ref().is_some_and(|own| own.as_str() == team) {
            Ok(())
        } else {
            Err(Refused::Missing)
        }
    }
}

/// Why nothing is given out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refused {
    /// Nobody is known by this credential.
    Unknown,
    /// There is nothing here, or nothing for this caller.
    Missing,
    /// The store does not answer.
    Failed,
}

impl Refused {
    #[expect(clippy::needless_pass_by_value, reason = "made to be used with map_err")]
    fn failed(error: Error) -> Self {
        tracing::warn!(error = error_chain(&error), "a published skill could not be read");
        Self::Failed
    }

    fn answer(self) -> Response {
        match self {
            Self::Unknown => (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")]).into_response(),
            Self::Missing => StatusCode::NOT_FOUND.into_response(),
            Self::Failed => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        }
    }
}

/// The pages.
pub(crate) fn router(shelf: Shelf) -> Router {
    Router::new()
        .route("/teams/{team}/.well-known/agent-skills/index.json", get(index))
        .route("/teams/{team}/.well-known/agent-skills/{skill}/{file}", get(archive))
        .route("/teams/{team}/mcp", post(mcp::answer))
        .layer(DefaultBodyLimit::max(MAX_REQUEST))
        .layer(from_fn(|request, next: Next| in_time(next.run(request))))
        .with_state(shelf)
}

/// Who sends a body and does not end it, or asks for what takes too long, does not hold the connection for ever.
async fn in_time(answer: impl Future<Output = Response>) -> Response {
    match timeout(LONGEST, answer).await {
        Ok(answer) => answer,
        Err(_) => StatusCode::REQUEST_TIMEOUT.into_response(),
    }
}

/// Serves until the process stops.
pub(crate) async fn run(listen: String, shelf: Shelf, stopping: CancellationToken) -> TaskResult {
    let listener = TcpListener::bind(&listen).await?;
    let address = listener.local_addr()?;
    tracing::info!(%address, public = shelf.public, "published skills are served over HTTP");
    axum::serve(listener, router(shelf))
        .with_graceful_shutdown(stopping.cancelled_owned())
        .await?;
    Ok(())
}

async fn index(State(shelf): State<Shelf>, Path(team): Path<String>, headers: HeaderMap) -> Response {
    let served = match shelf.served(&team, &headers).await {
        Ok(served) => served,
        Err(refused) => return refused.answer(),
    };
    let rows = served.iter().map(|publication| {
        json!({
            "name": publication.name,
            "type": "archive",
            "description": publication.description.chars().take(1_024).collect::<String>(),
            "url": publication.file(),
            "digest": format!("sha256:{}", publication.archive),
        })
    });
    let body = json!({ "$schema": SCHEMA, "skills": rows.collect::<Vec<_>>() }).to_string();
    let digest = sha256_hex(body.as_bytes());
    given(&headers, &digest, "application/json", "no-cache", body.into())
}

async fn archive(
    State(shelf): State<Shelf>,
    Path((team, skill, file)): Path<(String, String, String)>,
    headers: HeaderMap,
) -> Response {
    let served = match shelf.served(&team, &headers).await {
        Ok(served) => served,
        Err(refused) => return refused.answer(),
    };
    let wanted = format!("{skill}/{file}");
    let Some(publication) = served.iter().find(|publication| publication.file() == wanted) else {
        return Refused::Missing.answer();
    };
    match shelf.hubs.of(&team).archive(&team, publication).await {
        Ok(Some(bytes)) => {
            let kept = if shelf.public {
                "public, max-age=31536000, immutable"
            } else {
                "private, max-age=31536000, immutable"
            };
            given(&headers, &publication.archive, "application/gzip", kept, bytes.into())
        }
        Ok(None) => Refused::Missing.answer(),
        Err(error) => Refused::failed(error).answer(),
    }
}

/// A page by its digest; nothing but that where the caller has it.
fn given(headers: &HeaderMap, digest: &str, kind: &'static str, kept: &'static str, body: Body) -> Response {
    let tag = format!("\"{digest}\"");
    let known = headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let mut known = known.flat_map(|value| value.split(',')).map(str::trim);
    let is_known = known.any(|value| value == "*" || value.trim_start_matches("W/") == tag);
    let head: [(HeaderName, String); 3] = [
        (ETAG, tag),
        (CACHE_CONTROL, kept.to_owned()),
        (HeaderName::from_static("x-content-type-options"), "nosniff".to_owned()),
    ];
    if is_known {
        return (StatusCode::NOT_MODIFIED, head).into_response();
    }
    (head, [(CONTENT_TYPE, kind)], body).into_response()
}

#[cfg(test)]
mod tests {
    use futures::future::pending;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_without_an_end_is_answered_in_time() {
        let begun = Instant::now();
        let answer = in_time(pending()).await;
        assert_eq!(answer.status(), StatusCode::REQUEST_TIMEOUT);
        assert_eq!(begun.elapsed(), LONGEST);
        let answer = in_time(async { StatusCode::NO_CONTENT.into_response() }).await;
        assert_eq!(answer.status(), StatusCode::NO_CONTENT);
    }

    /// Through the layers: a body whose end never comes.
    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_end_is_not_waited_for() {
        let router = Router::new()
            .route("/", post(|_: axum::body::Bytes| async { StatusCode::OK }))
            .layer(from_fn(|request, next: Next| in_time(next.run(request))));
        let body = Body::from_stream(futures::stream::pending::<Result<Vec<u8>, std::io::Error>>());
        let request = axum::http::Request::post("/").body(body).unwrap();
        let answer = tower::ServiceExt::oneshot(router, request).await.unwrap();
        assert_eq!(answer.status(), StatusCode::REQUEST_TIMEOUT);
    }
}
