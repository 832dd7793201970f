//! The credentials in private files, kept good for as long as the process runs: a worker that is started in a year finds
//! one that is accepted.

use std::path::PathBuf;
use std::sync::Arc;

use steward_base::Clock;
use steward_grpc::Auth;
use steward_orchestrator_core::access::Access;
use steward_runtime::reconcile::{Reconciler, Report};
use steward_runtime::tasks::BoxError;

use crate::start;

/// Makes sure of the files.
#[derive(Debug)]
pub(crate) struct CredentialFiles {
    pub(crate) access: Access,
    pub(crate) auth: Arc<Auth>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) folder: PathBuf,
}

impl Reconciler for CredentialFiles {
    fn name(&self) -> &'static str {
        "credential-files"
    }

    async fn tick(&self) -> Result<Report, BoxError> {
        start::prepare(&self.access, &self.auth, &self.clock, &self.folder).await?;
        Ok(Report::default())
    }
}
