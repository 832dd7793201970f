//! memory-service: configuration, gRPC and SQL around [`steward_memory_core`].
//!
//! [`build`] opens the store and wires the handlers; it listens on nothing and spawns nothing. What the rules are stands
//! in the core; what is here translates.
#![warn(missing_docs)]

mod config;
mod grpc;
mod providers;
mod sqlite;

use std::sync::Arc;
use std::time::Duration;

use steward_base::names::TeamId;
use steward_grpc::{Auth, Built};
use steward_memory_core::Memory;
use steward_memory_core::provider::Providers;
use steward_proto::memory::v1::memory_service_server::MemoryServiceServer;
use steward_proto::memory::v1::provider_service_server::ProviderServiceServer;
use steward_runtime::{Boot, Problem, StartError};

use self::providers::Desk;

pub use config::{Config, ProviderConfig, ProviderKind, TeamConfig};

/// What memory-service needs from outside: nothing but the keys that it verifies callers with. It calls no other service.
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
    let patience = Duration::from_millis(config.provider_ms.into());
    let desk = Desk::new(registered(&config)?, patience, &boot.clock);
    let draining = desk.clone();
    boot.tasks.at_end("memory/providers", async move {
        draining.drain().await;
        Ok(())
    });
    let memory = Memory::new(
        Arc::new(store),
        Arc::clone(&boot.clock),
        Arc::clone(&boot.ids),
        config.limits(),
    );
    let server = MemoryServiceServer::new(grpc::Handlers::new(memory, desk.clone()))
        .max_decoding_message_size(steward_grpc::MAX_MESSAGE_BYTES)
        .max_encoding_message_size(steward_grpc::MAX_MESSAGE_BYTES);
    let providers = ProviderServiceServer::new(grpc::ProviderHandlers::new(desk))
        .max_decoding_message_size(steward_grpc::MAX_MESSAGE_BYTES)
        .max_encoding_message_size(steward_grpc::MAX_MESSAGE_BYTES);
    Built::builder("memory-service", boot, deps.auth)
        .service(server)
        .service(providers)
        .build()
        .await
}

/// The external memories that the settings name.
fn registered(config: &Config) -> Result<Providers, StartError> {
    let mut providers = Providers::default();
    for (index, settings) in config.providers.iter().enumerate() {
        let path = format!("providers[{index}]");
        let problem = |text: String| StartError::check(vec![Problem::new(path.clone(), text)]);
        let Ok(team) = TeamId::parse(settings.team.as_str()) else {
            continue;
        };
        let added = providers::from_config(settings)
            .and_then(|provider| providers.register(team, provider).map_err(|second| second.to_string()));
        added.or_else(problem)?;
    }
    Ok(providers)
}
