//! What the audit log is told of a call (`A-5`), and where it goes.
//!
//! The edge sees every call with its verified principal and its end; an [`AuditSink`] keeps what it is given. Not here:
//! where and how long records are kept, who may read them. That is `steward-audit`.

mod resources;
mod tee;

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use http::Extensions;
use steward_base::{Caller, Identity};
use steward_proto::methods::{self, Idempotency};
use tonic::Code;
use tonic::transport::server::{TcpConnectInfo, UdsConnectInfo};

pub(crate) use resources::named;
pub(crate) use tee::{Seen, watch};

/// One call that is to be recorded, at its end.
#[derive(Debug, Clone)]
pub struct AuditRecord {
    /// The service of ours that was asked.
    pub service: &'static str,
    /// `steward.memory.v1.MemoryService/Apply`; `_OTHER` for a method that does not exist.
    pub method: String,
    /// Who called; `None` without a valid credential.
    pub principal: Option<Arc<Caller>>,
    /// What the request names, each as `field=value`.
    pub resources: Vec<String>,
    /// Id of the request.
    pub request_id: Arc<str>,
    /// Where the call came from; empty for a call inside the process.
    pub peer: String,
    /// How it ended.
    pub code: Code,
    /// The reason that the error names.
    pub reason: Option<String>,
}

/// A place for one record. The call that it is for may happen now, since its record has somewhere to go.
pub type AuditPlace = Box<dyn FnOnce(AuditRecord) + Send + Sync>;

/// Keeps records. Both methods are called in the midst of calls and must be quick.
pub trait AuditSink: fmt::Debug + Send + Sync {
    /// A place for the record of a call that may change something, asked for before it does. `None` after a while in
    /// which there was no room: the call is refused then.
    fn reserve(&self) -> BoxFuture<'_, Option<AuditPlace>>;

    /// Takes the record of a denied call, or counts it where there are too many.
    fn denied(&self, record: AuditRecord);
}

/// Whether the call is recorded whatever comes of it: it may change something, and a person made it, or a turn or a job on
/// behalf of one. What services do by themselves follows from such calls.
pub(crate) fn is_recorded(path: &str, caller: &Caller) -> bool {
    let acts_for_a_person = !matches!(caller.identity, Identity::Service { .. });
    acts_for_a_person
        && methods::find(path).is_some_and(|method| match method.idempotency {
            Idempotency::NoSideEffects => false,
            Idempotency::Idempotent | Idempotency::Unknown => true,
        })
}

/// Whether a call that ended like this was denied.
pub(crate) const fn is_denied(code: Code) -> bool {
    matches!(code, Code::Unauthenticated | Code::PermissionDenied)
}

/// The other end of the connection that a call came over.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Peer {
    Inside,
    Tcp(std::net::SocketAddr),
    Unix,
}

impl Peer {
    pub(crate) fn of(extensions: &Extensions) -> Self {
        if let Some(address) = extensions.get::<TcpConnectInfo>().and_then(TcpConnectInfo::remote_addr) {
            Self::Tcp(address)
        } else if extensions.get::<UdsConnectInfo>().is_some() {
            Self::Unix
        } else {
            Self::Inside
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inside => Ok(()),
            Self::Tcp(address) => address.fmt(f),
            Self::Unix => f.write_str("unix"),
        }
    }
}
