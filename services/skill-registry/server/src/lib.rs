//! skill-registry: configuration, gRPC and SQL around [`steward_skill_core`].
//!
//! [`build`] opens the store and wires the handlers; it listens on nothing and spawns nothing. What the rules are stands
//! in the core; what is here translates.
#![warn(missing_docs)]

mod config;
mod external;
mod grpc;
mod hub;
mod keyring;
mod serve;
mod sqlite;

use std::sync::Arc;

use steward_grpc::{Auth, Built};
use steward_proto::hub::v1::hub_service_server::HubServiceServer;
use steward_proto::skill::v1::bundle_service_server::BundleServiceServer;
use steward_proto::skill::v1::command_service_server::CommandServiceServer;
use steward_proto::skill::v1::exchange_service_server::ExchangeServiceServer;
use steward_proto::skill::v1::library_service_server::LibraryServiceServer;
use steward_proto::skill::v1::proposal_service_server::ProposalServiceServer;
use steward_proto::skill::v1::secret_service_server::SecretServiceServer;
use steward_proto::skill::v1::skill_service_server::SkillServiceServer;
use steward_runtime::reconcile::{Every, Nudge, Reconciler as _, Runner};
use steward_runtime::tasks::Policy;
use steward_runtime::{Boot, StartError};
use steward_skill_core::{Library, Skills};
use steward_skill_scanner::Scanner;

pub use config::{Config, External, HostToken, HubConfig, ServeConfig, TeamTrust};

use keyring::Keyring;

/// What skill-registry needs from outside: nothing but the keys that it verifies callers with. It calls nobody.
#[derive(Debug, Clone)]
pub struct Deps {
    /// Who may call.
    pub auth: Arc<Auth>,
}

/// The limits that every client has too.
macro_rules! message_limits {
    ($server:expr) => {
        $server
            .max_decoding_message_size(steward_grpc::MAX_MESSAGE_BYTES)
            .max_encoding_message_size(steward_grpc::MAX_MESSAGE_BYTES)
    };
}

/// The store, which is closed at the end.
async fn open_store(config: &Config, boot: &Boot) -> Result<sqlite::SqliteSkillStore, StartError> {
    let folder = boot.service_dir("skills")?;
    let keys = Keyring::open_for(config, &folder).map_err(|error| StartError::new("read the secrets' keys", error))?;
    let store = sqlite::SqliteSkillStore::open(&folder.join("skills.db"), config.readers)
        .await
        .map_err(|error| StartError::new("open the skill store", error))?
        .with_keys(keys);
    store
        .renew_secrets()
        .await
        .map_err(|error| StartError::new("seal the secrets with the newest key", error))?;
    let closing = store.clone();
    boot.tasks.at_end("skills/close", async move {
        closing.close().await;
        Ok(())
    });
    Ok(store)
}

/// Opens the store below `boot.data_dir`, brings its schema up to date, and puts the service together.
pub async fn build(config: Config, deps: Deps, boot: &Boot) -> Result<Built, StartError> {
    StartError::check(config.validate())?;
    let store = open_store(&config, boot).await?;
    let tables = store.clone();
    let store = Arc::new(store);
    let library = Library::new(Arc::<sqlite::SqliteSkillStore>::clone(&store), Arc::clone(&boot.clock))
        .with_prune_builtins(config.prune_builtins);
    let external = external::Folders::new(&config);
    external.look().await;
    let skills = Skills::new(store, Arc::clone(&boot.clock), Arc::clone(&boot.ids), config.settings());
    let skills = skills
        .with_scanner(Scanner::deferred())
        .with_external(Arc::new(external.clone()));
    let skills = Arc::new(skills);
    let hub = hub::build(&config, tables, Arc::clone(&skills), boot)?;
    let given_out = serve::Shelf::new(hub.hubs.clone(), Arc::clone(&deps.auth), config.serve.public);
    let serving = !config.serve.listen.is_empty();
    let outside = grpc::HubHandlers::new(hub.hubs, Arc::clone(&skills), serving, Arc::clone(&boot.clock));
    let exchange = grpc::ExchangeHandlers::new(Arc::clone(&skills));
    let commands = grpc::CommandHandlers::new(Arc::clone(&skills));
    let bundles = grpc::BundleHandlers::new(Arc::clone(&skills));
    let changes = grpc::Changes::new();
    let proposals = grpc::ProposalHandlers::new(Arc::clone(&skills), changes.clone());
    let secrets = grpc::SecretHandlers::new(Arc::clone(&skills));
    let library = grpc::LibraryHandlers::new(library, Arc::clone(&skills));
    let mut builder = Built::builder("skill-registry", boot, deps.auth)
        .service(message_limits!(SkillServiceServer::new(grpc::Handlers::new(
            skills, changes
        ))))
        .service(message_limits!(LibraryServiceServer::new(library)))
        .service(message_limits!(ExchangeServiceServer::new(exchange)))
        .service(message_limits!(CommandServiceServer::new(commands)))
        .service(message_limits!(BundleServiceServer::new(bundles)))
        .service(message_limits!(ProposalServiceServer::new(proposals)))
        .service(message_limits!(SecretServiceServer::new(secrets)))
        .service(message_limits!(HubServiceServer::new(outside)));
    let rescan = Runner::new(hub.rescan, hub::Rescan::every(), Nudge::new(), Arc::clone(&boot.clock));
    builder = builder.background("skills/hub-rescan", Policy::ESSENTIAL, |tasks| {
        rescan.run(tasks.stopping())
    });
    if let Some(standings) = hub.standings {
        let every = Every::new(config.hub.check_interval());
        let runner = Runner::new(standings, every, Nudge::new(), Arc::clone(&boot.clock));
        builder = builder.background("skills/hub-standing", Policy::ESSENTIAL, |tasks| {
            runner.run(tasks.stopping())
        });
    }
    if serving {
        let listen = config.serve.listen.clone();
        builder = builder.background("skills/serve", Policy::ESSENTIAL, |tasks| {
            serve::run(listen, given_out, tasks.stopping())
        });
    }
    if external.is_needed() {
        let (name, every) = (external.name(), Every::new(config.external_interval()));
        let runner = Runner::new(external, every, Nudge::new(), Arc::clone(&boot.clock));
        builder = builder.background(name, Policy::ESSENTIAL, |tasks| runner.run(tasks.stopping()));
    }
    builder.build().await
}
