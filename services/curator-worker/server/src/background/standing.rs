//! How the queue stands, for whoever reads the metrics. Asked by a timer, since instruments cannot wait for a database.

use steward_runtime::reconcile::Report;
use steward_runtime::{BoxError, Reconciler};

use crate::sqlite::Ledger;

/// The reconciler.
#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) ledger: Ledger,
}

impl Reconciler for Standing {
    fn name(&self) -> &'static str {
        "learning/standing"
    }

    async fn tick(&self) -> Result<Report, BoxError> {
        let standing = self.ledger.standing().await?;
        self.ledger.metrics().queue(&standing);
        Ok(Report::default())
    }
}
