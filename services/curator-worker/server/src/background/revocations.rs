//! What is revoked, pulled from the orchestrator: calls run towards it, so that it cannot push to the worker.

use std::sync::Arc;

use steward_client::AccessClient;
use steward_grpc::Auth;
use steward_grpc::auth::revocation_from_pb;
use steward_proto::access::v1 as pb;
use steward_runtime::reconcile::Report;
use steward_runtime::{BoxError, Reconciler};

use crate::peers::{AGENT, by};

/// The reconciler.
#[derive(Debug)]
pub(crate) struct RevocationPull {
    /// With the worker's own credential.
    pub(crate) access: AccessClient,
    pub(crate) auth: Arc<Auth>,
}

impl Reconciler for RevocationPull {
    fn name(&self) -> &'static str {
        "learning/revocations"
    }

    async fn tick(&self) -> Result<Report, BoxError> {
        let listed = self
            .access
            .list_revocations(pb::ListRevocationsRequest {})
            .await
            .map_err(by(AGENT))?;
        let entries = listed
            .revocations
            .into_iter()
            .map(revocation_from_pb)
            .collect::<Result<Vec<_>, _>>()?;
        let items = u64::try_from(entries.len()).unwrap_or(u64::MAX);
        self.auth.revocations().replace(listed.version, entries)?;
        Ok(Report { items, more: false })
    }
}
