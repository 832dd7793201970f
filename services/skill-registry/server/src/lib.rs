//! skill-registry: configuration, gRPC and SQL around [`steward_skill_core`].
//!
//! [`build`] opens the store and wires the handlers; it listens on nothing and spawns nothing. What the rules are stands
//! in the core; what is here translates.
#![warn(missing_docs)]

mod config;
mod grpc;
mod sqlite;

use std::sync::Arc;

use steward_grpc::{Auth, Built};
use steward_proto::skill::v1::library_service_server::LibraryServiceServer;
use steward_proto::skill::v1::skill_service_server::SkillServiceServer;
use steward_runtime::{Boot, StartError};
use steward_skill_core::{Library, Skills};

pub use config::Config;

/// What skill-registry needs from outside: nothing but the keys that it verifies callers with. It calls nobody.
#[derive(Debug, Clone)]
pub struct Deps {
    /// Who may call.
    pub auth: Arc<Auth>,
}

/// Opens the store below `boot.data_dir`, brings its schema up to date, and puts the service together.
pub async fn build(config: Config, deps: Deps, boot: &Boot) -> Result<Built, StartError> {
    StartError::check(config.validate())?;
    let folder = boot.service_dir("skills")?;
    let store = sqlite::SqliteSkillStore::open(&folder.join("skills.db"), config.readers)
        .await
        .map_err(|error| StartError::new("open the skill store", error))?;
    let closing = store.clone();
    boot.tasks.at_end("skills/close", async move {
        closing.close().await;
        Ok(())
    });
    let store = Arc::new(store);
    let library = Library::new(Arc::<sqlite::SqliteSkillStore>::clone(&store), Arc::clone(&boot.clock));
    let skills = Skills::new(store, Arc::clone(&boot.clock), Arc::clone(&boot.ids), config.settings());
    let server = SkillServiceServer::new(grpc::Handlers::new(skills))
        .max_decoding_message_size(steward_grpc::MAX_MESSAGE_BYTES)
        .max_encoding_message_size(steward_grpc::MAX_MESSAGE_BYTES);
    let library = LibraryServiceServer::new(grpc::LibraryHandlers::new(library))
        .max_decoding_message_size(steward_grpc::MAX_MESSAGE_BYTES)
        .max_encoding_message_size(steward_grpc::MAX_MESSAGE_BYTES);
    Built::builder("skill-registry", boot, deps.auth)
        .service(server)
        .service(library)
        .build()
        .await
}
