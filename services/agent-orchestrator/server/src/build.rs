//! Putting the service together: keys, store, first start, peers, handlers. Opens no socket and spawns nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use steward_client::{MemoryClient, RecallClient, RevocationClient, SessionStoreClient, SkillClient, Wire};
use steward_grpc::{Auth, Built, TokenSigner};
use steward_orchestrator_core::access::{Access, Signer};
use steward_orchestrator_core::session::SessionStore;
use steward_proto::access::v1::access_service_server::AccessServiceServer;
use steward_proto::agent::v1::agent_service_server::AgentServiceServer;
use steward_proto::agent::v1::model_service_server::ModelServiceServer;
use steward_proto::agent::v1::session_service_server::SessionServiceServer;
use steward_runtime::reconcile::{Every, Nudge, Reconciler as _, Runner};
use steward_runtime::{Boot, Policy, StartError, data_dir};
use steward_tools::{BuiltinTools, Clients};

use crate::background::{CredentialFiles, Debts, ExpiredTurns, RevocationPush};
use crate::config::Config;
use crate::grpc::{AccessRpc, AgentRpc, ModelRpc, SessionRpc};
use crate::locks::SessionLocks;
use crate::model::Models;
use crate::owed::Owed;
use crate::peers::{RecallSessions, RemoteBeside, RemoteKnowledge};
use crate::sessions::Sessions;
use crate::signer::{KeySigner, Minter};
use crate::sqlite::SqliteAccessStore;
use crate::start;
use crate::turns::{KeptSessions, Limits, Parts, Turns};

/// The service's folder below the data folder.
const FOLDER: &str = "agent";
/// The folder of the signing key below the service's.
const KEYS: &str = "keys";
/// The file with the name under which this installation takes leases.
const INSTANCE_FILE: &str = "instance";

/// How often the credentials in files are looked at; they are renewed a month before they end.
const RENEW_EVERY: Duration = Duration::from_hours(24);

/// How often turns are looked for whose client did not come in time.
const EXPIRE_EVERY: Duration = Duration::from_mins(5);

/// How often external memories are told what they are still owed.
const TELL_EVERY: Duration = Duration::from_mins(1);

/// What the service needs from others. The wires carry no credentials; this service adds its own.
#[derive(Debug, Clone)]
pub struct Deps {
    /// How calls to this process are decided on; its keys include the public half of the key in
    /// `<data>/agent/keys` ([`steward_grpc::TokenSigner::load_or_create`]).
    pub auth: Arc<Auth>,
    /// To recall-service.
    pub recall: Wire,
    /// To memory-service.
    pub memory: Wire,
    /// To skill-registry.
    pub skills: Wire,
}

/// The largest message is the same in both directions and for all.
macro_rules! message_limits {
    ($server:expr) => {
        $server
            .max_decoding_message_size(steward_grpc::MAX_MESSAGE_BYTES)
            .max_encoding_message_size(steward_grpc::MAX_MESSAGE_BYTES)
    };
}

/// Opens the store, makes sure of the first start's files and wires everything. Nothing runs yet.
pub async fn build(config: Config, deps: Deps, boot: &Boot) -> Result<Built, StartError> {
    StartError::check(config.validate())?;
    let ground = ground(&config, &deps, boot).await?;
    let models = Models::from_config(&config.model, Arc::clone(&boot.clock))?;
    let (sessions, turns) = conversations(&config, &deps, boot, &ground, &models)?;
    let Ground {
        access,
        push,
        nudge,
        owing,
        folder,
        ..
    } = ground;
    let files = CredentialFiles {
        access: access.clone(),
        auth: Arc::clone(&deps.auth),
        clock: Arc::clone(&boot.clock),
        folder,
    };
    let push_every = Every::new(Duration::from_secs(config.revocation_push_seconds.into()));
    let expiry = ExpiredTurns { turns: turns.clone() };
    let debts = Debts { turns: turns.clone() };
    let (files_name, push_name, expiry_name) = (files.name(), push.name(), expiry.name());
    let debts_name = debts.name();
    let debts = Runner::new(debts, Every::new(TELL_EVERY), owing, Arc::clone(&boot.clock));
    let files = Runner::new(files, Every::new(RENEW_EVERY), Nudge::new(), Arc::clone(&boot.clock));
    let expiries = Runner::new(expiry, Every::new(EXPIRE_EVERY), Nudge::new(), Arc::clone(&boot.clock));
    let pushes = Runner::new(push.clone(), push_every, nudge, Arc::clone(&boot.clock));
    Built::builder("agent-orchestrator", boot, deps.auth)
        .service(AccessServiceServer::new(AccessRpc::new(access, push)))
        .service(message_limits!(SessionServiceServer::new(SessionRpc::new(sessions))))
        .service(message_limits!(AgentServiceServer::new(AgentRpc::new(turns))))
        .service(message_limits!(ModelServiceServer::new(ModelRpc::new(models))))
        .background(files_name, Policy::ESSENTIAL, |tasks| files.run(tasks.stopping()))
        .background(push_name, Policy::ESSENTIAL, |tasks| pushes.run(tasks.stopping()))
        .background(expiry_name, Policy::ESSENTIAL, |tasks| expiries.run(tasks.stopping()))
        .background(debts_name, Policy::ESSENTIAL, |tasks| debts.run(tasks.stopping()))
        .build()
        .await
}

/// What everything else stands on: who may do what, and the key.
struct Ground {
    folder: PathBuf,
    access: Access,
    minter: Minter,
    push: RevocationPush,
    nudge: Nudge,
    /// What external memories are owed, and what wakes up who tells them.
    owed: Arc<dyn Owed>,
    owing: Nudge,
}

async fn ground(config: &Config, deps: &Deps, boot: &Boot) -> Result<Ground, StartError> {
    let folder = boot.service_dir(FOLDER)?;
    let signer = TokenSigner::load_or_create(&folder.join(KEYS))
        .map_err(|error| StartError::new("load the signing key", error))?;
    let signer: Arc<dyn Signer> = Arc::new(KeySigner::new(signer));
    let store = SqliteAccessStore::open(folder.join("access.db"), config.readers)
        .await
        .map_err(|error| StartError::new("open the access store", error))?;
    let closing = store.clone();
    boot.tasks.at_end("agent/close", async move {
        closing.close().await;
        Ok(())
    });
    let (clock, ids) = (&boot.clock, &boot.ids);
    let owed: Arc<dyn Owed> = Arc::new(store.clone());
    let access = Access::new(Arc::new(store), Arc::clone(&signer), Arc::clone(clock), Arc::clone(ids));
    let minter = Minter::new(signer, Arc::clone(clock), Arc::clone(ids));
    let nudge = Nudge::new();
    let push = RevocationPush::new(
        access.clone(),
        Arc::clone(&deps.auth),
        peers(deps, &minter),
        nudge.clone(),
        Arc::clone(clock),
    );
    // What was revoked before is refused before anything is accepted.
    push.changed()
        .await
        .map_err(|error| StartError::new("load the revocations", error))?;
    start::prepare(&access, &deps.auth, clock, &folder).await?;
    Ok(Ground {
        folder,
        access,
        minter,
        push,
        nudge,
        owed,
        owing: Nudge::new(),
    })
}

fn conversations(
    config: &Config,
    deps: &Deps,
    boot: &Boot,
    ground: &Ground,
    models: &Models,
) -> Result<(Sessions, Turns), StartError> {
    let (clock, minter) = (&boot.clock, &ground.minter);
    let store: Arc<dyn SessionStore> = Arc::new(RecallSessions::new(
        SessionStoreClient::new(deps.recall.clone()).with_credentials(minter.service()),
    ));
    let memory = MemoryClient::new(deps.memory.clone());
    let skills = SkillClient::new(deps.skills.clone());
    let patience = config.external_memory();
    let knowledge = RemoteKnowledge::new(deps.memory.clone(), deps.skills.clone(), minter.clone(), patience);
    let beside = RemoteBeside::new(deps.memory.clone(), deps.skills.clone(), minter.clone(), patience);
    let tools = BuiltinTools::new(Clients {
        memory,
        skills,
        recall: RecallClient::new(deps.recall.clone()),
    });
    let (locks, kept) = (SessionLocks::default(), KeptSessions::default());
    let sessions = Sessions::new(
        Arc::clone(&store),
        (locks.clone(), kept.clone()),
        Arc::new(knowledge),
        models.clone(),
        Arc::clone(clock),
        (Arc::clone(&ground.owed), ground.owing.clone()),
    );
    let turns = Turns::new(Parts {
        sessions: store,
        locks,
        kept,
        models: models.clone(),
        tools: Arc::new(tools),
        beside: Arc::new(beside),
        owed: Arc::clone(&ground.owed),
        minter: minter.clone(),
        tasks: boot.tasks.clone(),
        clock: Arc::clone(clock),
        holder: instance(&ground.folder, boot)?,
        limits: limits(config),
        kept_turns: usize::try_from(config.turn.kept_turns).unwrap_or(usize::MAX),
    });
    Ok((sessions, turns))
}

fn peers(deps: &Deps, minter: &Minter) -> Vec<(&'static str, RevocationClient)> {
    [
        ("recall-service", &deps.recall),
        ("memory-service", &deps.memory),
        ("skill-registry", &deps.skills),
    ]
    .into_iter()
    .map(|(name, wire)| {
        (
            name,
            RevocationClient::new(wire.clone()).with_credentials(minter.service()),
        )
    })
    .collect()
}

fn limits(config: &Config) -> Limits {
    Limits {
        iterations: config.turn.iterations,
        lease: config.lease(),
        client_wait: Duration::from_hours(config.turn.client_hours.into()),
        nudges: config.nudges(),
    }
}

/// The name under which leases are taken. It outlives the process: only one process can have the access store open, so a
/// lease under this name belongs to this process or to one that is gone.
fn instance(folder: &Path, boot: &Boot) -> Result<String, StartError> {
    let path = folder.join(INSTANCE_FILE);
    if let Ok(name) = std::fs::read_to_string(&path)
        && !name.trim().is_empty()
    {
        return Ok(name.trim().to_owned());
    }
    let name = format!("agent-orchestrator-{}", boot.ids.new_id());
    data_dir::write_private(&path, name.as_bytes())
        .map_err(|error| StartError::new(format!("write {}", path.display()), error))?;
    Ok(name)
}

#[cfg(test)]
mod tests;
