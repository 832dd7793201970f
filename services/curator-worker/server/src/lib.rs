//! curator-worker: configuration, gRPC, SQL and background work around [`steward_curator_core`].
//!
//! It owns the queue of reviews and the ledger of what became of them, in `learning/learning.db`. It calls recall, the
//! orchestrator, memory and skills; nobody calls it but people who look at their reviews. [`build`] listens on nothing and
//! spawns nothing.
#![warn(missing_docs)]

mod background;
mod config;
mod grpc;
mod identity;
mod metrics;
mod peers;
mod sqlite;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use steward_client::{
    AccessClient, ExchangeClient, LibraryClient, MemoryClient, ModelClient, RecallClient, SessionStoreClient,
    SkillClient, Wire,
};
use steward_grpc::{Auth, Built, BuiltBuilder};
use steward_proto::learning::v1::curator_service_server::CuratorServiceServer;
use steward_proto::learning::v1::person_service_server::PersonServiceServer;
use steward_proto::learning::v1::review_service_server::ReviewServiceServer;
use steward_runtime::reconcile::{Every, Runner};
use steward_runtime::{Boot, Nudge, Policy, Reconciler, StartError};

pub use config::{Config, CurationConfig};

use background::{CurationDue, Curator, NoSchedules, Outbox, Reviewer, RevocationPull, Standing, Sweeper};
use config::seconds;
use peers::PeerClients;
use peers::people::People;
use sqlite::Ledger;

/// The worker's own token, below the data folder, unless set otherwise.
const TOKEN_FILE: &str = "agent/curator-worker.token";

/// What curator-worker needs from outside. Credentials of the clients are not used: the worker adds its own, or the job's.
#[derive(Debug, Clone)]
pub struct Deps {
    /// Who may call; its revocations are pulled from the orchestrator.
    pub auth: Arc<Auth>,
    /// recall-service: due reviews and sessions.
    pub sessions: SessionStoreClient,
    /// recall-service: search.
    pub recall: RecallClient,
    /// memory-service.
    pub memory: MemoryClient,
    /// skill-registry.
    pub skills: SkillClient,
    /// skill-registry: the library, for curations.
    pub library: LibraryClient,
    /// skill-registry: the files of a person's own skills.
    pub exchange: ExchangeClient,
    /// agent-orchestrator: model calls.
    pub model: ModelClient,
    /// agent-orchestrator: tokens of jobs, and revocations.
    pub access: AccessClient,
}

impl Deps {
    /// From a wire per service.
    pub fn new(auth: Arc<Auth>, recall: &Wire, memory: &Wire, skills: &Wire, agent: &Wire) -> Self {
        Self {
            auth,
            sessions: SessionStoreClient::new(recall.clone()),
            recall: RecallClient::new(recall.clone()),
            memory: MemoryClient::new(memory.clone()),
            skills: SkillClient::new(skills.clone()),
            library: LibraryClient::new(skills.clone()),
            exchange: ExchangeClient::new(skills.clone()),
            model: ModelClient::new(agent.clone()),
            access: AccessClient::new(agent.clone()),
        }
    }
}

/// Time between two looks at how the queue stands.
const STANDING_EVERY: Duration = Duration::from_secs(10);

/// Opens the store below `boot.data_dir`, brings its schema up to date, and puts the service together.
pub async fn build(config: Config, deps: Deps, boot: &Boot) -> Result<Built, StartError> {
    StartError::check(config.validate())?;
    let path = boot.service_dir("learning")?.join("learning.db");
    let ledger = Ledger::open(path, config.readers, config.queue(), Arc::clone(&boot.clock))
        .await
        .map_err(|error| StartError::new("open the learning store", error))?;
    let closing = ledger.clone();
    boot.tasks.at_end("learning/close", async move {
        closing.close().await;
        Ok(())
    });
    let handlers = grpc::Handlers::new(ledger.clone(), config.review_line.into());
    let server = ReviewServiceServer::new(handlers)
        .max_decoding_message_size(steward_grpc::MAX_MESSAGE_BYTES)
        .max_encoding_message_size(steward_grpc::MAX_MESSAGE_BYTES);
    let rhythm = config.curation.rhythm();
    let curator = grpc::CuratorHandlers::new(ledger.clone(), rhythm, Arc::clone(&boot.clock), Arc::clone(&boot.ids));
    let curator = CuratorServiceServer::new(curator)
        .max_decoding_message_size(steward_grpc::MAX_MESSAGE_BYTES)
        .max_encoding_message_size(steward_grpc::MAX_MESSAGE_BYTES);
    let people = people(&config, &deps, &ledger, boot);
    let people = PersonServiceServer::new(grpc::PersonHandlers(people))
        .max_decoding_message_size(steward_grpc::MAX_MESSAGE_BYTES)
        .max_encoding_message_size(steward_grpc::MAX_MESSAGE_BYTES);
    let builder = Built::builder("curator-worker", boot, Arc::clone(&deps.auth))
        .service(server)
        .service(curator)
        .service(people);
    work(builder, config, deps, &ledger, boot).build().await
}

/// Clients that carry the worker's own credential.
struct Own {
    sessions: SessionStoreClient,
    access: AccessClient,
}

/// Where the worker's own token is.
fn token_file(config: &Config, boot: &Boot) -> PathBuf {
    let file = config.token_file.clone();
    file.unwrap_or_else(|| boot.data_dir.join(PathBuf::from(TOKEN_FILE)))
}

fn people(config: &Config, deps: &Deps, ledger: &Ledger, boot: &Boot) -> People {
    let own = identity::own(token_file(config, boot));
    People {
        ledger: ledger.clone(),
        sessions: deps.sessions.clone().with_credentials(own),
        memory: deps.memory.clone(),
        skills: deps.skills.clone(),
        libraries: deps.library.clone(),
        exchange: deps.exchange.clone(),
    }
}

/// Adds what the worker does by itself.
fn work(builder: BuiltBuilder, config: Config, deps: Deps, ledger: &Ledger, boot: &Boot) -> BuiltBuilder {
    let own = identity::own(token_file(&config, boot));
    let access = deps.access.with_credentials(own.clone());
    let as_itself = Own {
        sessions: deps.sessions.clone().with_credentials(own),
        access: access.clone(),
    };
    let outbox = Outbox {
        ledger: ledger.clone(),
        sessions: as_itself.sessions.clone(),
    };
    let pull = RevocationPull {
        access: access.clone(),
        auth: deps.auth,
    };
    let sweeper = Sweeper { ledger: ledger.clone() };
    let outbox_every = Duration::from_millis(u64::from(config.outbox_milliseconds));
    let mut builder = builder;
    builder = reconciler(builder, "learning/outbox", outbox, outbox_every, boot);
    builder = reconciler(
        builder,
        "learning/revocations",
        pull,
        seconds(config.revocation_seconds),
        boot,
    );
    builder = reconciler(builder, "learning/sweep", sweeper, config.lease() / 2, boot);
    let standing = Standing { ledger: ledger.clone() };
    builder = reconciler(builder, "learning/standing", standing, STANDING_EVERY, boot);
    let clients = PeerClients {
        sessions: deps.sessions,
        recall: deps.recall,
        memory: deps.memory,
        skills: deps.skills,
        model: deps.model,
    };
    let config = Arc::new(config);
    builder = curation(builder, &config, as_itself, deps.library, ledger, boot);
    for number in 1..=config.reviewers {
        let reviewer = Reviewer {
            name: format!("reviewer-{number}"),
            config: Arc::clone(&config),
            ledger: ledger.clone(),
            clients: clients.clone(),
            access: access.clone(),
        };
        builder = builder.background("learning/reviewer", Policy::ESSENTIAL, move |tasks| reviewer.run(tasks));
    }
    builder
}

/// Adds what ages libraries: the look at which are due, and the worker that curates them.
fn curation(
    builder: BuiltBuilder,
    config: &Arc<Config>,
    own: Own,
    library: LibraryClient,
    ledger: &Ledger,
    boot: &Boot,
) -> BuiltBuilder {
    let Own { sessions, access } = own;
    let due = CurationDue {
        ledger: ledger.clone(),
        sessions,
        rhythm: config.curation.rhythm(),
        clock: Arc::clone(&boot.clock),
        ids: Arc::clone(&boot.ids),
    };
    let every = seconds(config.curation.check_seconds);
    let builder = reconciler(builder, "learning/curation-due", due, every, boot);
    let curator = Curator {
        config: Arc::clone(config),
        ledger: ledger.clone(),
        library,
        access,
        schedules: Arc::new(NoSchedules),
        clock: Arc::clone(&boot.clock),
    };
    builder.background("learning/curator", Policy::ESSENTIAL, move |tasks| curator.run(tasks))
}

fn reconciler<R: Reconciler>(
    builder: BuiltBuilder,
    name: &'static str,
    reconciler: R,
    every: Duration,
    boot: &Boot,
) -> BuiltBuilder {
    let runner = Runner::new(reconciler, Every::new(every), Nudge::new(), Arc::clone(&boot.clock));
    builder.background(name, Policy::ESSENTIAL, move |tasks| runner.run(tasks.stopping()))
}
