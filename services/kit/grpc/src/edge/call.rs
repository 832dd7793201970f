//! One call on its way through the layers, and the one line that says how it went.

use std::borrow::Cow;

use steward_base::Identity;
use steward_client::ambient::Ambient;
use tokio::time::Instant;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;
use tracing::Span;

use super::audit::Audit;
use super::metrics::{CallMetrics, NO_METHOD};
use crate::auth::claims::{ORCHESTRATOR, WORKER};

/// What one call carries with it.
pub(super) struct Call {
    pub(super) path: String,
    /// The same for names of spans and metrics.
    method: &'static str,
    /// The service of ours that answers.
    pub(super) service: &'static str,
    /// The service of ours that asks, or `client`.
    caller: Cow<'static, str>,
    pub(super) ambient: Ambient,
    pub(super) span: Span,
    metrics: CallMetrics,
    /// Where the process keeps an audit log.
    pub(super) audit: Option<Audit>,
    begun: Instant,
    ended: bool,
}

impl Call {
    pub(super) fn new(
        path: String,
        method: &'static str,
        service: &'static str,
        caller: Cow<'static, str>,
        ambient: Ambient,
        span: Span,
        metrics: CallMetrics,
    ) -> Self {
        Self {
            path,
            method,
            service,
            caller,
            ambient,
            span,
            metrics,
            audit: None,
            begun: Instant::now(),
            ended: false,
        }
    }

    /// The domain of its errors: `memory.steward.dev` for `/steward.memory.v1.…`.
    pub(super) fn domain(&self) -> String {
        let package = self
            .path
            .trim_start_matches('/')
            .strip_prefix("steward.")
            .and_then(|rest| rest.split('.').next());
        package.map_or_else(|| "steward.dev".to_owned(), |package| format!("{package}.steward.dev"))
    }

    /// Notes how the call ended, with the reason that the status names.
    pub(super) fn end_with(&mut self, status: &Status) {
        if !self.ended {
            let info = status.get_details_error_info();
            self.end(status.code(), info.as_ref().map(|info| info.reason.as_str()));
        }
    }

    /// Notes how the call ended; the first word counts.
    pub(super) fn end(&mut self, code: Code, reason: Option<&str>) {
        if self.ended {
            return;
        }
        self.ended = true;
        let took = self.begun.elapsed();
        self.span.record("rpc.grpc.status_code", i32::from(code));
        if is_our_fault(code) {
            self.span.record("otel.status_code", "ERROR");
        }
        let method = self.method;
        if let Some(reason) = reason {
            self.span.record("error.reason", reason);
        }
        self.metrics.ended(method, code, reason, took);
        if let Some(audit) = self.audit.take() {
            let id = self.ambient.request_id.clone().unwrap_or_default();
            audit.end(self.service, method, &self.path, id, code, reason);
        }
        tracing::debug!(
            target: "steward::rpc",
            parent: &self.span,
            service = self.service,
            method = if method == NO_METHOD { NO_METHOD } else { &self.path },
            caller = &*self.caller,
            request_id = self.ambient.request_id.as_deref().unwrap_or_default(),
            duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            code = ?code,
            "call ended"
        );
    }
}

impl Drop for Call {
    /// Dropped without an end: the caller went away.
    fn drop(&mut self) {
        self.end(Code::Cancelled, None);
    }
}

/// Whether the server failed, rather than the caller.
const fn is_our_fault(code: Code) -> bool {
    matches!(
        code,
        Code::Unknown
            | Code::DeadlineExceeded
            | Code::Unimplemented
            | Code::Internal
            | Code::Unavailable
            | Code::DataLoss
    )
}

/// The service of ours behind a credential. A turn's credential never leaves the service that signs it, a job's never the
/// worker that it was signed for.
pub(super) fn service_behind(identity: &Identity) -> Cow<'static, str> {
    match identity {
        Identity::User => Cow::Borrowed("client"),
        Identity::Turn { .. } => Cow::Borrowed(ORCHESTRATOR),
        Identity::Job { .. } => Cow::Borrowed(WORKER),
        Identity::Service { name } => Cow::Owned(name.clone()),
    }
}
