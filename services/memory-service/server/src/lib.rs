//! memory-service: configuration, gRPC and SQL around [`steward_memory_core`].
//!
//! [`build`] opens the store and wires the handlers; it listens on nothing and spawns nothing. What the rules are stands
//! in the core; what is here translates.
#![warn(missing_docs)]

mod config;
mod grpc;
mod sqlite;

use std::sync::Arc;

use steward_grpc::{Auth, Built};
use steward_memory_core::Memory;
use steward_proto::memory::v1::memory_service_server::MemoryServiceServer;
use steward_runtime::{Boot, StartError};

pub use config::Config;

/// What memory-service needs from outside: nothing but the keys that it verifies callers with. It calls nobody.
#[derive(Debug, Clone)]
pub struct Deps {
    /// Who may call.
    pub auth: Arc<Auth>,
}

/// Opens the store below `boot.data_dir`, brings its schema up to date, and puts the service together.
pub async fn build(config: Config, deps: Deps, boot: &Boot) -> Result<Built, StartError> {
    StartError::check(config.validate())?;
    let folder = boot.service_dir("memory")?;
    let store = sqlite::SqliteMemoryStore::open(folder.join("memory.db"), config.readers)
        .await
        .map_err(|error| StartError::new("open the memory store", error))?;
    let closing = store.clone();
    boot.tasks.at_end("memory/close", async move {
        closing.close().await;
        Ok(())
    });
    let memory = Memory::new(
        Arc::new(store),
        Arc::clone(&boot.clock),
        Arc::clone(&boot.ids),
        config.limits(),
    );
    let server = MemoryServiceServer::new(grpc::Handlers::new(memory))
        .max_decoding_message_size(steward_grpc::MAX_MESSAGE_BYTES)
        .max_encoding_message_size(steward_grpc::MAX_MESSAGE_BYTES);
    Built::builder("memory-service", boot, deps.auth)
        .service(server)
        .build()
        .await
}
