//! Turns whose client did not come back in time, closed without anybody asking (`T-8`): each open call gets its cancelled
//! result, and the session can go on. A request that meets such a turn closes it itself; this is for those that none meets.

use steward_runtime::reconcile::{Reconciler, Report};
use steward_runtime::tasks::BoxError;

use crate::turns::Turns;

/// Turns that one pass looks at.
const BATCH: u32 = 500;

/// Closes what waited too long.
#[derive(Debug)]
pub(crate) struct ExpiredTurns {
    pub(crate) turns: Turns,
}

impl Reconciler for ExpiredTurns {
    fn name(&self) -> &'static str {
        "expired-turns"
    }

    async fn tick(&self) -> Result<Report, BoxError> {
        let items = self.turns.close_expired(BATCH).await?;
        Ok(Report {
            items,
            ..Report::default()
        })
    }
}
