//! What a call carries for the audit log, from its arrival to its one record.

use std::fmt;
use std::sync::Arc;

use steward_base::{Caller, Identity};
use steward_client::WireRequest;
use tonic::Code;

use crate::audit::{AuditPlace, AuditRecord, AuditSink, Peer, Seen, is_denied, is_recorded, named, watch};

pub(super) struct Audit {
    sink: Arc<dyn AuditSink>,
    principal: Option<Arc<Caller>>,
    peer: Peer,
    seen: Option<Arc<Seen>>,
    place: Option<AuditPlace>,
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Audit")
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

impl Audit {
    pub(super) fn new(sink: Arc<dyn AuditSink>, principal: Option<Arc<Caller>>, peer: Peer) -> Self {
        Self {
            sink,
            principal,
            peer,
            seen: None,
            place: None,
        }
    }

    /// Looks at the request as it is read, if it is one that may be recorded with what it names.
    pub(super) fn watch(&mut self, request: WireRequest) -> WireRequest {
        let for_a_person = self
            .principal
            .as_ref()
            .is_some_and(|caller| !matches!(caller.identity, Identity::Service { .. }));
        if !for_a_person {
            return request;
        }
        let (parts, body) = request.into_parts();
        let (body, seen) = watch(body);
        self.seen = Some(seen);
        WireRequest::from_parts(parts, body)
    }

    /// Whether the call may go on: it need not be recorded, or has a place for its record now.
    pub(super) async fn has_place(&mut self, path: &str) -> bool {
        let recorded = self.principal.as_ref().is_some_and(|caller| is_recorded(path, caller));
        if recorded {
            self.place = self.sink.reserve().await;
        }
        !recorded || self.place.is_some()
    }

    /// Records the call, if it is one to be recorded.
    pub(super) fn end(
        self,
        service: &'static str,
        method: &str,
        path: &str,
        request_id: Arc<str>,
        code: Code,
        reason: Option<&str>,
    ) {
        if self.place.is_none() && !is_denied(code) {
            return;
        }
        let record = AuditRecord {
            service,
            method: method.to_owned(),
            principal: self.principal,
            resources: self.seen.map(|seen| named(path, &seen.take())).unwrap_or_default(),
            request_id,
            peer: self.peer.to_string(),
            code,
            reason: reason.map(str::to_owned),
        };
        match self.place {
            Some(keep) => keep(record),
            None => self.sink.denied(record),
        }
    }
}
