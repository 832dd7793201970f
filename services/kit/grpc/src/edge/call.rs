//! One call on its way through the layers, and the one line that says how it went.

use std::borrow::Cow;

use steward_base::{Caller, Identity};
use steward_client::ambient::Ambient;
use tokio::time::Instant;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;
use tracing::Span;

use super::metrics::{CallMetrics, NO_METHOD, method_name};
use crate::auth::claims::{ORCHESTRATOR, WORKER};

/// What one call carries with it.
pub(super) struct Call {
    pub(super) path: String,
    /// Domain of its errors.
    pub(super) domain: String,
    /// The service of ours that answers.
    pub(super) service: &'static str,
    /// The service of ours that asks, or `client`.
    caller: Cow<'static, str>,
    pub(super) ambient: Ambient,
    pub(super) span: Span,
    metrics: CallMetrics,
    begun: Instant,
    ended: bool,
}

impl Call {
    pub(super) fn new(
        path: String,
        domain: String,
        service: &'static str,
        ambient: Ambient,
        span: Span,
        metrics: CallMetrics,
    ) -> Self {
        Self {
            path,
            domain,
            service,
            caller: Cow::Borrowed("client"),
            ambient,
            span,
            metrics,
            begun: Instant::now(),
            ended: false,
        }
    }

    /// Notes who calls, as the credential proves.
    pub(super) fn identify(&mut self, caller: &Caller) {
        self.caller = service_behind(&caller.identity);
        self.span.record("caller.service", &*self.caller);
        self.span.record("caller.token", &*caller.token_id);
        if let Some(team) = &caller.team {
            self.span.record("caller.team", team.as_str());
        }
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
        let method = method_name(&self.path);
        if let Some(reason) = reason {
            self.span.record("error.reason", reason);
        }
        self.metrics.ended(method, code, reason, took);
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
fn service_behind(identity: &Identity) -> Cow<'static, str> {
    match identity {
        Identity::User => Cow::Borrowed("client"),
        Identity::Turn { .. } => Cow::Borrowed(ORCHESTRATOR),
        Identity::Job { .. } => Cow::Borrowed(WORKER),
        Identity::Service { name } => Cow::Owned(name.clone()),
    }
}
