//! A service that is built but not yet reachable, and the port that makes it so.
//!
//! `build` functions return a [`Built`]. In the single binary they are joined into one; in either shape [`serve`] mounts
//! the same layered service that [`Built::wire`] hands to the in-process client.

mod greeting;
mod listen;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use steward_base::IdGen;
use steward_client::{MAX_MESSAGE_BYTES, Wire, WireRequest, WireResponse};
use steward_proto::access::v1::revocation_service_server::RevocationServiceServer;
use steward_runtime::tasks::TaskResult;
use steward_runtime::{Boot, Policy, StartError, Tasks};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic::server::NamedService;
use tonic::service::RoutesBuilder;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};
use tower::Service;

use crate::auth::{Auth, RevocationRpc};
use crate::edge::{Edge, LocalService, Owners};

pub use listen::{Listener, Serving, serve};

type Mount = Arc<dyn Fn(&mut RoutesBuilder) + Send + Sync>;
type Start = Box<dyn FnOnce(Tasks) -> Pin<Box<dyn Future<Output = TaskResult> + Send>> + Send>;

/// Work that a service does by itself, not started yet.
pub struct Background {
    /// Its name in logs, for example `recall/checkpoint`.
    pub name: &'static str,
    /// How it is supervised.
    pub policy: Policy,
    start: Start,
}

impl fmt::Debug for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Background")
            .field("name", &self.name)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

/// Something whose health is told under a name of its own: whether it is well, from one moment to the next.
type Part = (&'static str, watch::Receiver<bool>);

/// A service with its stores open and its handlers behind the edge.
pub struct Built {
    name: &'static str,
    mounts: Vec<Mount>,
    services: Vec<&'static str>,
    owners: Vec<(&'static str, &'static str)>,
    background: Vec<Background>,
    parts: Vec<Part>,
    auth: Arc<Auth>,
    health: HealthReporter,
    edge: Edge,
}

impl fmt::Debug for Built {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Built")
            .field("name", &self.name)
            .field("services", &self.services)
            .field("background", &self.background)
            .finish_non_exhaustive()
    }
}

/// Collects what a service serves and does.
pub struct BuiltBuilder {
    name: &'static str,
    mounts: Vec<Mount>,
    services: Vec<&'static str>,
    owners: Vec<(&'static str, &'static str)>,
    background: Vec<Background>,
    parts: Vec<Part>,
    auth: Arc<Auth>,
    ids: Arc<dyn IdGen>,
    stopping: CancellationToken,
}

impl fmt::Debug for BuiltBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BuiltBuilder")
            .field("name", &self.name)
            .field("services", &self.services)
            .finish_non_exhaustive()
    }
}

impl BuiltBuilder {
    /// Mounts a generated server, for example `MemoryServiceServer::new(handlers)` with both of its message limits set to
    /// [`crate::MAX_MESSAGE_BYTES`]: what it comes with reads 4 MiB and writes anything.
    #[must_use]
    pub fn service<S>(mut self, service: S) -> Self
    where
        S: Service<WireRequest, Response = WireResponse, Error = std::convert::Infallible>
            + NamedService
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
    {
        self.services.push(S::NAME);
        self.owners.push((S::NAME, self.name));
        self.mounts.push(Arc::new(move |routes| {
            routes.add_service(service.clone());
        }));
        self
    }

    /// Adds work that starts when the service is served. It watches `tasks.stopping()`.
    #[must_use]
    pub fn background<F, Fut>(mut self, name: &'static str, policy: Policy, start: F) -> Self
    where
        F: FnOnce(Tasks) -> Fut + Send + 'static,
        Fut: Future<Output = TaskResult> + Send + 'static,
    {
        let start: Start = Box::new(move |tasks| Box::pin(start(tasks)));
        self.background.push(Background { name, policy, start });
        self
    }

    /// Has the standard health service answer for `part` as well, for example `steward.recall.v1.Index`: serving while
    /// `is_well`. The services themselves go on serving, so that an orchestrator restarts nothing because of it.
    #[must_use]
    pub fn health_of(mut self, part: &'static str, is_well: watch::Receiver<bool>) -> Self {
        self.parts.push((part, is_well));
        self
    }

    /// Puts the edge, health, reflection and the revocation service around what was collected.
    pub async fn build(self) -> Result<Built, StartError> {
        let Self {
            name,
            mounts,
            services,
            owners,
            background,
            parts,
            auth,
            ids,
            stopping,
        } = self;
        let health = HealthReporter::new();
        for service in &services {
            health.set_service_status(service, ServingStatus::Serving).await;
        }
        for (part, is_well) in &parts {
            health.set_service_status(part, status_of(*is_well.borrow())).await;
        }
        let mut routes = RoutesBuilder::default();
        for mount in &mounts {
            mount(&mut routes);
        }
        routes.add_service(HealthServer::new(HealthService::from_health_reporter(health.clone())));
        let revocations = RevocationRpc::new(Arc::clone(auth.revocations()));
        routes.add_service(
            RevocationServiceServer::new(revocations)
                .max_decoding_message_size(MAX_MESSAGE_BYTES)
                .max_encoding_message_size(MAX_MESSAGE_BYTES),
        );
        add_reflection(&mut routes, &services)?;
        let known = Owners {
            services: owners.clone(),
            rest: name,
        };
        let edge = Edge::new(routes.routes(), Arc::clone(&auth), ids, known, stopping);
        Ok(Built {
            name,
            mounts,
            services,
            owners,
            background,
            parts,
            auth,
            health,
            edge,
        })
    }
}

impl Built {
    /// Starts collecting for the service `name`, for example `memory-service`.
    pub fn builder(name: &'static str, boot: &Boot, auth: Arc<Auth>) -> BuiltBuilder {
        BuiltBuilder {
            name,
            mounts: Vec::new(),
            services: Vec::new(),
            owners: Vec::new(),
            background: Vec::new(),
            parts: Vec::new(),
            auth,
            ids: Arc::clone(&boot.ids),
            stopping: boot.tasks.stopping(),
        }
    }

    /// Joins services into one server for one port. All must share one [`Auth`], since one list of revocations is
    /// served; the first one's is used.
    pub async fn join(name: &'static str, boot: &Boot, parts: Vec<Self>) -> Result<Self, StartError> {
        let Some(auth) = parts.first().map(|part| Arc::clone(&part.auth)) else {
            return Err(StartError::new("join services", "there are none"));
        };
        let mut joined = Self::builder(name, boot, auth);
        for part in parts {
            if !Arc::ptr_eq(&part.auth, &joined.auth) {
                return Err(StartError::new(
                    "join services",
                    format!("{} decides on access by itself", part.name),
                ));
            }
            joined.mounts.extend(part.mounts);
            joined.services.extend(part.services);
            joined.owners.extend(part.owners);
            joined.background.extend(part.background);
            joined.parts.extend(part.parts);
        }
        joined.build().await
    }

    /// The service's name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Full names of the gRPC services, without health, reflection and revocation.
    pub fn services(&self) -> &[&'static str] {
        &self.services
    }

    /// The layered service, boxed.
    pub fn local_service(&self) -> LocalService {
        LocalService::new(self.edge.clone())
    }

    /// A client's way to this service in the same process. It has no credentials yet.
    pub fn local_client(&self) -> Wire {
        Wire::local(self.edge.clone())
    }

    /// Starts the background work. [`serve`] does so; a test that needs only handlers leaves it.
    pub fn start_background(&mut self, tasks: &Tasks) {
        for Background { name, policy, start } in self.background.drain(..) {
            tasks.spawn(name, policy, start(tasks.clone()));
        }
        for (part, is_well) in self.parts.drain(..) {
            let telling = tell(self.health.clone(), part, is_well);
            tasks.spawn(format!("{}/health", self.name), Policy::DISPOSABLE, telling);
        }
    }

    /// Names of the background work that was not started yet.
    pub fn pending_background(&self) -> impl Iterator<Item = &'static str> {
        self.background.iter().map(|background| background.name)
    }
}

const fn status_of(is_well: bool) -> ServingStatus {
    if is_well {
        ServingStatus::Serving
    } else {
        ServingStatus::NotServing
    }
}

/// Tells how a part is, until nobody says so any more.
async fn tell(health: HealthReporter, part: &'static str, mut is_well: watch::Receiver<bool>) -> TaskResult {
    loop {
        let now = *is_well.borrow_and_update();
        health.set_service_status(part, status_of(now)).await;
        if is_well.changed().await.is_err() {
            return Ok(());
        }
    }
}

fn add_reflection(routes: &mut RoutesBuilder, services: &[&'static str]) -> Result<(), StartError> {
    let mut builder = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(steward_proto::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .with_service_name("grpc.health.v1.Health")
        .with_service_name("grpc.reflection.v1.ServerReflection")
        .with_service_name("steward.access.v1.RevocationService");
    for service in services {
        builder = builder.with_service_name(*service);
    }
    let reflection = builder
        .build_v1()
        .map_err(|error| StartError::new("set up reflection", error))?;
    routes.add_service(reflection);
    Ok(())
}

/// What the port mounts.
impl Built {
    fn edge(&self) -> Edge {
        self.edge.clone()
    }

    fn health(&self) -> HealthReporter {
        self.health.clone()
    }
}
