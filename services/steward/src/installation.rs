//! Starting an installation, or one service of it, from one configuration.
//!
//! In one process the services are built in the order in which they are called, each handed the in-process client of those
//! below it; alone, a service is handed connections to the addresses under `peers`. Everything else is the same.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use steward_audit::Audit;
use steward_base::names::TeamId;
use steward_client::Wire;
use steward_grpc::{Auth, Built, Listener, TokenSigner, serve};
use steward_orchestrator_core::access::HOME_TEAM;
use steward_runtime::{Boot, StartError, data_dir};

use crate::Component;
use crate::config::Config;

/// A process that answers.
#[derive(Debug, Clone)]
pub struct Ready {
    /// Where it answers: `http://127.0.0.1:7400`.
    pub endpoint: String,
    /// Where it keeps its data.
    pub data_dir: PathBuf,
    /// Full names of the gRPC services that it serves.
    pub services: Vec<&'static str>,
    /// The model that turns use, where this process runs turns and one is configured.
    pub model: Option<String>,
}

/// Starts `component` and returns once it answers. Its tasks run in `boot.tasks`.
pub async fn start(component: Component, config: Config, boot: &Boot) -> Result<Ready, StartError> {
    let listener = Listener::bind(&config.server.listen).await?;
    let runs_turns = matches!(component, Component::All | Component::AgentOrchestrator);
    let model = config
        .agent
        .model
        .name
        .clone()
        .filter(|_| runs_turns && config.agent.model.base_url.is_some());
    // Everything that five services need to begin, kept out of whoever waits for it.
    let built = Box::pin(build(component, config, boot)).await?;
    let services = built.services().to_vec();
    let serving = serve(listener, built, &boot.tasks)?;
    Ok(Ready {
        endpoint: serving.endpoint,
        data_dir: boot.data_dir.clone(),
        services,
        model,
    })
}

/// Makes keys, the home team and the first tokens, so that services can start in any order.
pub async fn init(config: Config, boot: &Boot) -> Result<(), StartError> {
    // Nothing is asked of it, so that it records nothing.
    let auth = orchestrator_auth(&config, boot)?;
    orchestrator(config, Arc::new(auth), boot).await.map(drop)
}

/// Whether a running agent-orchestrator has this data folder.
pub fn is_served(data_dir: &Path) -> bool {
    crate::doctor::is_held(&data_dir.join("agent").join("access.db"))
}

/// Puts the worker's token, which the first start leaves in the orchestrator's folder, into a private file of its own.
pub fn hand_out_worker_token(data_dir: &Path, file: &Path) -> Result<(), StartError> {
    let kept = data_dir.join("agent").join("curator-worker.token");
    let failed = |path: &Path| format!("put the worker's token into {}", path.display());
    std::fs::read(&kept)
        .and_then(|token| data_dir::write_private(file, &token))
        .map_err(|error| StartError::new(failed(file), error))
}

/// The services of the process, with the audit log that all of their calls go to.
async fn build(component: Component, config: Config, boot: &Boot) -> Result<Built, StartError> {
    // In a folder of its own: recall-service has a file for each team in its own.
    let folder = boot.service_dir(component.folder())?.join("audit");
    let audit = Audit::open(&folder, config.audit.clone(), home_team()?, boot).await?;
    let auth = match component {
        Component::All | Component::AgentOrchestrator => orchestrator_auth(&config, boot)?,
        Component::SkillRegistry | Component::MemoryService | Component::RecallService | Component::CuratorWorker => {
            auth(&config, component, boot)?
        }
    };
    let auth = Arc::new(auth.with_audit(audit.sink()));
    let mut parts = if component == Component::All {
        all(config, &auth, boot).await?
    } else {
        vec![one(component, config, Arc::clone(&auth), boot).await?]
    };
    parts.push(audit.build(component.name(), auth, boot).await?);
    Built::join(component.name(), boot, parts).await
}

async fn one(component: Component, config: Config, auth: Arc<Auth>, boot: &Boot) -> Result<Built, StartError> {
    match component {
        Component::All | Component::AgentOrchestrator => orchestrator(config, auth, boot).await,
        Component::SkillRegistry => steward_skill::build(config.skills, steward_skill::Deps { auth }, boot).await,
        Component::MemoryService => steward_memory::build(config.memory, steward_memory::Deps { auth }, boot).await,
        Component::RecallService => steward_recall::build(config.recall, steward_recall::Deps { auth }, boot).await,
        Component::CuratorWorker => {
            let peers = &config.peers;
            let deps = steward_curator::Deps::new(
                auth,
                &connect("peers.recall", &peers.recall)?,
                &connect("peers.memory", &peers.memory)?,
                &connect("peers.skills", &peers.skills)?,
                &connect("peers.agent", &peers.agent)?,
            );
            steward_curator::build(config.learning, deps, boot).await
        }
    }
}

/// All services, those that are called before those that call.
async fn all(config: Config, auth: &Arc<Auth>, boot: &Boot) -> Result<Vec<Built>, StartError> {
    let auth = || Arc::clone(auth);
    let recall = steward_recall::build(config.recall, steward_recall::Deps { auth: auth() }, boot).await?;
    let memory = steward_memory::build(config.memory, steward_memory::Deps { auth: auth() }, boot).await?;
    let skills = steward_skill::build(config.skills, steward_skill::Deps { auth: auth() }, boot).await?;
    let deps = steward_orchestrator::Deps {
        auth: auth(),
        recall: recall.local_client(),
        memory: memory.local_client(),
        skills: skills.local_client(),
    };
    let agent = steward_orchestrator::build(config.agent, deps, boot).await?;
    let deps = steward_curator::Deps::new(
        auth(),
        &recall.local_client(),
        &memory.local_client(),
        &skills.local_client(),
        &agent.local_client(),
    );
    let worker = steward_curator::build(config.learning, deps, boot).await?;
    Ok(vec![recall, memory, skills, agent, worker])
}

/// The team that runs the installation.
fn home_team() -> Result<TeamId, StartError> {
    TeamId::parse(HOME_TEAM).map_err(|error| StartError::new("name the home team", error))
}

async fn orchestrator(config: Config, auth: Arc<Auth>, boot: &Boot) -> Result<Built, StartError> {
    let deps = steward_orchestrator::Deps {
        auth,
        recall: connect("peers.recall", &config.peers.recall)?,
        memory: connect("peers.memory", &config.peers.memory)?,
        skills: connect("peers.skills", &config.peers.skills)?,
    };
    steward_orchestrator::build(config.agent, deps, boot).await
}

fn connect(setting: &str, endpoint: &str) -> Result<Wire, StartError> {
    Wire::connect(endpoint).map_err(|error| StartError::new(format!("use {setting}"), error))
}

/// Where the signing key and, for the others to read, its public half lie.
fn keys_dir(boot: &Boot) -> Result<PathBuf, StartError> {
    Ok(boot.service_dir("agent")?.join("keys"))
}

/// For the process that signs: its key is made before anything is verified with it.
fn orchestrator_auth(config: &Config, boot: &Boot) -> Result<Auth, StartError> {
    let failed = |error| StartError::new("load the signing key", error);
    TokenSigner::load_or_create(&keys_dir(boot)?).map_err(failed)?;
    auth(config, Component::AgentOrchestrator, boot)
}

/// How a process decides on calls: by the orchestrator's public keys, and the revocations that it keeps in its own folder.
fn auth(config: &Config, component: Component, boot: &Boot) -> Result<Auth, StartError> {
    let folder = boot.service_dir(component.folder())?;
    let auth = config.auth.open(&boot.data_dir, &folder, Arc::clone(&boot.clock));
    auth.map_err(|error| StartError::new("load the keys that tokens are verified with", error))
}
