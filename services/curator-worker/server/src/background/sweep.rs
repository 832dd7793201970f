//! Claims whose worker was not heard of, also when nobody claims anything.

use steward_runtime::reconcile::Report;
use steward_runtime::{BoxError, Reconciler};

use crate::sqlite::Ledger;

/// The reconciler.
#[derive(Debug)]
pub(crate) struct Sweeper {
    pub(crate) ledger: Ledger,
}

impl Reconciler for Sweeper {
    fn name(&self) -> &'static str {
        "learning/sweep"
    }

    async fn tick(&self) -> Result<Report, BoxError> {
        let items = self.ledger.sweep().await?;
        Ok(Report { items, more: false })
    }
}
