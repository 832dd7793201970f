//! The audit log of a process (`A-5`): every write that a person, a turn or a job makes, and every denied call.
//!
//! The edge of each server hands over one record per call ([`steward_grpc::AuditSink`]); they are kept in an `audit.db` below
//! the service's own folder, listed by `steward.access.v1.AuditService`, and removed by age and size.
//!
//! # What is in it when
//!
//! A record is made when its call ends and is put into a queue in memory; the queue is written in batches, at the latest a
//! tenth of a second later, each batch durable as a whole. A write is only let through when there is a place in the queue
//! for its record, so that none is dropped while the process lives. What a crash of the process loses: the records of
//! calls that had not ended, and of those that ended within that tenth of a second (longer only while the disk takes no
//! writes). A soft stop loses none.
//!
//! Denied calls cannot fill the disk or push other records out: per caller, and for all callers without a credential
//! together, so many a minute are kept one by one and the rest is counted in one record; and where room is needed, records
//! without a team go first.
//!
//! Not here: which calls are recorded, and what a record may hold. That is the edge's.
#![warn(missing_docs)]

mod config;
mod gate;
mod log;
mod retain;
mod rpc;
mod store;
#[cfg(test)]
mod tests;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use steward_base::names::TeamId;
use steward_grpc::{Auth, Built, MAX_MESSAGE_BYTES};
use steward_proto::access::v1::audit_service_server::AuditServiceServer;
use steward_runtime::reconcile::{Every, Nudge, Runner};
use steward_runtime::{Boot, Policy, StartError};

pub use config::Config;
pub use log::AuditLog;

use retain::Retention;
use rpc::AuditRpc;
use store::AuditStore;

/// How often old records are looked for.
const RETAIN_EVERY: Duration = Duration::from_hours(1);

/// An audit log that is open: its sink goes to [`Auth::with_audit`], then [`Audit::build`] makes what lists and writes it.
#[derive(Debug)]
pub struct Audit {
    log: Arc<AuditLog>,
    inbox: writer::Inbox,
    config: Config,
    home: TeamId,
}

impl Audit {
    /// Opens `audit.db` in `folder`. Admins of the team `home` may see records without a team as well.
    pub async fn open(folder: &Path, config: Config, home: TeamId, boot: &Boot) -> Result<Self, StartError> {
        StartError::check(config.validate())?;
        let store = AuditStore::open(folder.join("audit.db"), config.readers)
            .await
            .map_err(|error| StartError::new("open the audit log", error))?;
        let (log, inbox) = AuditLog::new(store, &config, Arc::clone(&boot.clock));
        Ok(Self {
            log: Arc::new(log),
            inbox,
            config,
            home,
        })
    }

    /// Takes what the edges hand over.
    pub fn sink(&self) -> Arc<AuditLog> {
        Arc::clone(&self.log)
    }

    /// The service that lists the log, as part of the process `name`, with the work that writes and shortens it. `auth` is
    /// the process's own, which has the sink.
    pub async fn build(self, name: &'static str, auth: Arc<Auth>, boot: &Boot) -> Result<Built, StartError> {
        let Self {
            log,
            inbox,
            config,
            home,
        } = self;
        let server = AuditServiceServer::new(AuditRpc::new(Arc::clone(&log), home))
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        let nudge = Nudge::new();
        let retention = Retention::new(log.store().clone(), &config, Arc::clone(&boot.clock));
        let retain = Runner::new(
            retention,
            Every::new(RETAIN_EVERY),
            nudge.clone(),
            Arc::clone(&boot.clock),
        );
        let writer = Arc::new(writer::Writer::new(inbox, Arc::clone(&log), nudge));
        let rest = Arc::clone(&writer);
        boot.tasks.at_end("audit/close", async move {
            rest.finish().await;
            Ok(())
        });
        Built::builder(name, boot, auth)
            .service(server)
            .background("audit/write", Policy::WORK, move |tasks| async move {
                writer.run(&tasks).await;
                Ok(())
            })
            .background("audit/retain", Policy::WORK, move |tasks| retain.run(tasks.stopping()))
            .build()
            .await
    }
}
