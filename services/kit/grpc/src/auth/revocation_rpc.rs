//! `RevocationService`, which every server has. The method's policy lets services in; of those, only the one that revokes
//! may say what is revoked: the list is replaced as a whole, so another one's token could lift every revocation.

use std::io;
use std::sync::Arc;

use steward_base::names::{parse_user, user_name};
use steward_base::{ErrorKind, Fault, FieldViolations, Identity, Timestamp};
use steward_proto::access::v1 as pb;
use steward_proto::access::v1::revocation::Subject;
use steward_proto::access::v1::revocation_service_server::RevocationService;
use tonic::{Request, Response, Status};

use super::claims::ORCHESTRATOR;
use super::error::AccessError;
use super::revocation::{Revocation, Revocations, Revoked};
use crate::handler::caller;
use crate::status::status;

const DOMAIN: &str = "access.steward.dev";

/// Takes what the orchestrator pushes.
#[derive(Debug, Clone)]
pub struct RevocationRpc {
    revocations: Arc<Revocations>,
}

impl RevocationRpc {
    /// Over the server's list.
    pub fn new(revocations: Arc<Revocations>) -> Self {
        Self { revocations }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the revocations could not be stored")]
struct NotStored(#[source] io::Error);

impl Fault for NotStored {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Internal
    }

    fn reason(&self) -> &'static str {
        "INTERNAL"
    }
}

#[tonic::async_trait]
impl RevocationService for RevocationRpc {
    async fn apply_revocations(
        &self,
        request: Request<pb::ApplyRevocationsRequest>,
    ) -> Result<Response<pb::ApplyRevocationsResponse>, Status> {
        let pusher = &caller(&request)?.identity;
        if !matches!(pusher, Identity::Service { name } if name == ORCHESTRATOR) {
            let method = "/steward.access.v1.RevocationService/ApplyRevocations".to_owned();
            return Err(status(&AccessError::MethodDenied { method }, DOMAIN));
        }
        let mut violations = FieldViolations::new();
        let mut entries = Vec::new();
        let request = request.into_inner();
        let version = request.version;
        if version == 0 {
            violations.add("version", "must be at least 1");
        }
        for (index, entry) in request.revocations.into_iter().enumerate() {
            let field = format!("revocations[{index}].subject");
            entries.extend(violations.take(&field, revocation_from_pb(entry)));
        }
        violations.into_result().map_err(|fault| status(&fault, DOMAIN))?;
        let revocations = Arc::clone(&self.revocations);
        // The file is flushed to disk, which may take a while.
        let stored = tokio::task::spawn_blocking(move || revocations.replace(version, entries)).await;
        let stored = stored.unwrap_or_else(|error| Err(io::Error::other(error)));
        let version = stored.map_err(|error| status(&NotStored(error), DOMAIN))?;
        Ok(Response::new(pb::ApplyRevocationsResponse { version }))
    }
}

/// From the wire; the error says what is wrong with the subject.
pub fn revocation_from_pb(entry: pb::Revocation) -> Result<Revocation, String> {
    let subject = match entry.subject {
        Some(Subject::TokenId(id)) if !id.is_empty() => Revoked::Token(id),
        Some(Subject::User(name)) => {
            let (team, user) = parse_user(&name).map_err(|error| error.to_string())?;
            Revoked::User(team, user)
        }
        _ => return Err("must name a token or a user".to_owned()),
    };
    let expires = entry.expire_time.map(|at| Timestamp::from_parts(at.seconds, at.nanos));
    Ok(Revocation { subject, expires })
}

/// To the wire.
pub fn revocation_to_pb(entry: &Revocation) -> pb::Revocation {
    let subject = match &entry.subject {
        Revoked::Token(id) => Subject::TokenId(id.clone()),
        Revoked::User(team, user) => Subject::User(user_name(team, user)),
    };
    let expire_time = entry.expires.map(|at| {
        let (seconds, nanos) = at.to_parts();
        prost_types::Timestamp { seconds, nanos }
    });
    pb::Revocation {
        subject: Some(subject),
        expire_time,
    }
}
