//! Removes records by age, and the oldest when there are too many.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use steward_base::Clock;
use steward_runtime::reconcile::Report;
use steward_runtime::{BoxError, Reconciler};

use crate::config::Config;
use crate::store::AuditStore;

const DAY: Duration = Duration::from_hours(24);
const MIB: u64 = 1024 * 1024;

/// Keeps the log within its bounds.
pub(crate) struct Retention {
    store: AuditStore,
    keep: Duration,
    most_bytes: u64,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for Retention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retention")
            .field("keep", &self.keep)
            .finish_non_exhaustive()
    }
}

impl Retention {
    pub(crate) fn new(store: AuditStore, config: &Config, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            keep: DAY * config.keep_days,
            most_bytes: u64::from(config.max_mib) * MIB,
            clock,
        }
    }
}

impl Reconciler for Retention {
    fn name(&self) -> &'static str {
        "audit/retain"
    }

    async fn tick(&self) -> Result<Report, BoxError> {
        let outdated = self.store.remove_before(self.clock.now().minus(self.keep)).await?;
        let too_many = if self.store.used_bytes().await? > self.most_bytes {
            self.store.remove_oldest().await?
        } else {
            0
        };
        let removed = outdated + too_many;
        if removed > 0 {
            tracing::info!(outdated, too_many, "records were removed from the audit log");
        }
        Ok(Report {
            items: removed,
            more: removed > 0,
        })
    }
}
