//! Whatever an external memory was not told when it happened, told later: after a restart, and once the memory is there again.

use steward_runtime::reconcile::{Reconciler, Report};
use steward_runtime::tasks::BoxError;

use crate::turns::Turns;

/// Sessions that one pass looks at.
const BATCH: u32 = 200;

/// Tells what is owed.
#[derive(Debug)]
pub(crate) struct Debts {
    pub(crate) turns: Turns,
}

impl Reconciler for Debts {
    fn name(&self) -> &'static str {
        "external-memory-debts"
    }

    async fn tick(&self) -> Result<Report, BoxError> {
        let items = self.turns.pay_all(BATCH).await?;
        Ok(Report {
            items,
            ..Report::default()
        })
    }
}
