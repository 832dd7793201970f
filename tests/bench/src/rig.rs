//! Real services to measure: one of them in this process, or a whole installation behind a real port.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use steward::config::Config;
use steward::{Component, installation};
use steward_base::names::{TeamId, UserId};
use steward_base::{Clock, Role};
use steward_client::{Client, Credentials, Wire};
use steward_grpc::{Auth, Claims, Revocations, TokenSigner};
use steward_proto::access::v1::WhoAmIRequest;
use steward_runtime::Boot;

/// The team of everything that is measured.
pub(crate) const TEAM: &str = "teams/bench";
/// Its one person.
pub(crate) const PERSON: &str = "teams/bench/users/ann";

/// How long a stop may take.
const PATIENCE: Duration = Duration::from_mins(1);
/// Longer than any run.
const TOKEN_LIFE: Duration = Duration::from_hours(24 * 30);

/// The surroundings of one service, with tokens for whoever calls it.
#[derive(Debug)]
pub(crate) struct Rig {
    pub(crate) boot: Boot,
    pub(crate) auth: Arc<Auth>,
    signer: TokenSigner,
}

impl Rig {
    /// On a folder of its own, with the machine's clock.
    pub(crate) fn new(folder: &Path) -> anyhow::Result<Self> {
        Self::of(Boot::new(folder))
    }

    /// With another clock.
    pub(crate) fn with_clock(folder: &Path, clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        Self::of(Boot::new(folder).with_clock(clock))
    }

    fn of(boot: Boot) -> anyhow::Result<Self> {
        let signer = TokenSigner::generate()?;
        let revocations = Revocations::in_memory(Arc::clone(&boot.clock));
        let auth = Arc::new(Auth::new(signer.public_keys(), revocations, Arc::clone(&boot.clock)));
        Ok(Self { boot, auth, signer })
    }

    /// A token of the person.
    pub(crate) fn person(&self) -> anyhow::Result<Credentials> {
        self.person_named("ann")
    }

    /// A token of somebody else in the team.
    pub(crate) fn person_named(&self, id: &str) -> anyhow::Result<Credentials> {
        self.person_in("bench", id)
    }

    /// A token of somebody in another team.
    pub(crate) fn person_in(&self, team: &str, id: &str) -> anyhow::Result<Credentials> {
        let now = self.boot.clock.now();
        let (team, user) = (TeamId::parse(team)?, UserId::parse(id)?);
        self.token(&Claims::user(
            "bench-person",
            team,
            user,
            Role::Admin,
            now,
            now.plus(TOKEN_LIFE),
        ))
    }

    /// A token of the service that runs turns.
    pub(crate) fn orchestrator(&self) -> anyhow::Result<Credentials> {
        let now = self.boot.clock.now();
        let name = steward_grpc::auth::claims::ORCHESTRATOR;
        self.token(&Claims::service("bench-service", name, now, now.plus(TOKEN_LIFE)))
    }

    fn token(&self, claims: &Claims) -> anyhow::Result<Credentials> {
        Ok(Credentials::token(&self.signer.sign(claims)?)?)
    }

    /// Closes the stores, with their logs written back.
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        stop(&self.boot).await
    }
}

/// A whole installation in this process, reached over a port on 127.0.0.1 as its owner.
#[derive(Debug)]
pub(crate) struct Whole {
    boot: Boot,
    pub(crate) client: Client,
    /// Resource name of the owner.
    pub(crate) owner: String,
}

impl Whole {
    /// Starts it in `folder`, with a model server where turns are to run.
    pub(crate) async fn start(folder: &Path, model: Option<&str>) -> anyhow::Result<Self> {
        let boot = Boot::new(folder);
        let mut config = Config::default();
        "127.0.0.1:0".clone_into(&mut config.server.listen);
        config.agent.model.base_url = model.map(str::to_owned);
        config.agent.model.name = model.map(|_| crate::model::NAME.to_owned());
        let ready = installation::start(Component::All, config, &boot).await?;
        let file = folder.join("agent/owner.token");
        let token = std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        let wire = Wire::connect(&ready.endpoint)?.with_credentials(Credentials::token(token.trim())?);
        let client = Client::new(wire);
        let owner = client.access.who_am_i(WhoAmIRequest {}).await?.user;
        Ok(Self { boot, client, owner })
    }

    /// Ends it and waits for its end.
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        stop(&self.boot).await
    }
}

async fn stop(boot: &Boot) -> anyhow::Result<()> {
    let stopped = boot.tasks.shutdown(PATIENCE).await;
    ensure!(
        !stopped.failed,
        "something essential failed; the figures would say nothing"
    );
    Ok(())
}
