//! recall-service: configuration, gRPC and SQL around [`steward_recall_core`].
//!
//! [`build`] opens the folder of team files and wires the handlers; it listens on nothing and spawns nothing. What the
//! rules are stands in the core; what is here translates.
#![warn(missing_docs)]

mod config;
mod fts;
mod grpc;
mod sqlite;

use std::sync::Arc;

use steward_grpc::{Auth, Built, MAX_MESSAGE_BYTES};
use steward_proto::recall::v1::recall_service_server::RecallServiceServer;
use steward_proto::recall::v1::session_store_service_server::SessionStoreServiceServer;
use steward_recall_core::backups::Backups;
use steward_recall_core::{Search, SessionStore, Sessions};
use steward_runtime::{Boot, Policy, StartError};

pub use config::Config;
pub use fts::register_tokenizer;

/// The name under which the standard health service answers for the indexes of all teams: not serving while one of them is
/// known to be damaged. The service itself goes on serving, and says of each answer whether it is complete.
pub const INDEX_HEALTH: &str = "steward.recall.v1.Index";

/// What recall-service needs from outside: nothing but the keys that it verifies callers with. It calls nobody.
#[derive(Debug, Clone)]
pub struct Deps {
    /// Who may call.
    pub auth: Arc<Auth>,
}

/// Opens the team files below `boot.data_dir`, brings their schema up to date, and puts the service together.
pub async fn build(config: Config, deps: Deps, boot: &Boot) -> Result<Built, StartError> {
    StartError::check(config.validate())?;
    let folder = boot.service_dir("recall")?;
    let backups = config.backup_folder.clone().unwrap_or_else(|| folder.join("backups"));
    let store = sqlite::SqliteSessionStore::open(folder, backups, config.open_teams)
        .await
        .map_err(|error| StartError::new("open the session store", error))?;
    let store = Arc::new(store);
    let (closing, following, soundness) = (Arc::clone(&store), Arc::clone(&store), store.soundness());
    boot.tasks.at_end("recall/close", async move {
        closing.close().await;
        Ok(())
    });
    let backups: Arc<dyn Backups> = store.clone();
    let store: Arc<dyn SessionStore> = store;
    let search = Search::new(Arc::clone(&store));
    let sessions = Sessions::new(store, Arc::clone(&boot.clock), Arc::clone(&boot.ids), config.limits());
    let session_store = SessionStoreServiceServer::new(grpc::SessionStoreHandlers::new(
        sessions.clone(),
        backups,
        Arc::clone(&boot.clock),
    ))
    .max_decoding_message_size(MAX_MESSAGE_BYTES)
    .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let recall = RecallServiceServer::new(grpc::RecallHandlers::new(search, sessions))
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    Built::builder("recall-service", boot, deps.auth)
        .service(session_store)
        .service(recall)
        .background("recall/index", Policy::WORK, move |tasks| async move {
            following.follow(tasks).await;
            Ok(())
        })
        .health_of(INDEX_HEALTH, soundness)
        .build()
        .await
}
