//! `rpc`: `WhoAmI` over a real port: the smallest call that passes everything a call passes, from the bearer token to the
//! answer. The floor is a health check of a server that has nothing of ours around it.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use steward_proto::access::v1::WhoAmIRequest;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::arguments::{Arguments, Rpc};
use crate::measure::{Meter, Spread, Watch, number, rounded};
use crate::rig::Whole;

/// Calls before time is taken.
const WARM_UP: u32 = 50;
/// Rounds that the calls are spread over.
const ROUNDS: u32 = 5;

pub(crate) async fn run(options: &Rpc, arguments: &Arguments) -> anyhow::Result<Value> {
    let folder = arguments.fresh_folder()?;
    let whole = Whole::start(folder.path(), None).await?;
    let access = whole.client.access.clone();
    let ours = move || {
        let access = access.clone();
        async move {
            let answer = access.who_am_i(WhoAmIRequest {}).await?;
            ensure!(!answer.user.is_empty(), "the answer names nobody");
            Ok(())
        }
    };
    let (bare, server) = bare().await?;
    let floor = move || {
        let mut bare = bare.clone();
        async move {
            bare.check(HealthCheckRequest::default()).await?;
            Ok(())
        }
    };
    for _ in 0..WARM_UP {
        ours().await?;
        floor().await?;
    }
    // In turns, so that what else the machine does meets both.
    let (mut alone, mut floor_alone) = (Meter::default(), Meter::default());
    let (mut together, mut floor_together) = (Rounds::default(), Rounds::default());
    for _ in 0..ROUNDS {
        for _ in 0..options.calls.div_ceil(ROUNDS) {
            alone.time(ours()).await?;
            floor_alone.time(floor()).await?;
        }
        together.add(options, &ours).await?;
        floor_together.add(options, &floor).await?;
    }
    drop(server);
    whole.stop().await?;
    let (alone, floor_alone) = (alone.wall(), floor_alone.wall());
    Ok(json!({
        "calls": options.calls,
        "callers": options.callers,
        "rps": together.per_second(),
        "floor_rps": floor_together.per_second(),
        "p50_ms": alone.p50(),
        "p99_ms": alone.p99(),
        "floor_p50_ms": floor_alone.p50(),
        "floor_p99_ms": floor_alone.p99(),
        "cpu_ms_per_call": together.cpu_each(),
        "floor_cpu_ms_per_call": floor_together.cpu_each(),
    }))
}

/// Calls by all callers at the same time, several rounds of them.
#[derive(Debug, Default)]
struct Rounds {
    calls: usize,
    wall: Vec<Duration>,
    cpu: Vec<Duration>,
}

impl Rounds {
    /// One more round.
    async fn add<F, Fut>(&mut self, options: &Rpc, call: &F) -> anyhow::Result<()>
    where
        F: Fn() -> Fut + Clone + Send + 'static,
        Fut: Future<Output = anyhow::Result<()>> + Send,
    {
        let share = options.calls.div_ceil(ROUNDS * options.callers);
        self.calls = usize::try_from(share * options.callers)?;
        let watch = Watch::start();
        let mut callers = JoinSet::new();
        for _ in 0..options.callers {
            let call = call.clone();
            callers.spawn(async move {
                for _ in 0..share {
                    call().await?;
                }
                anyhow::Ok(())
            });
        }
        while let Some(caller) = callers.join_next().await {
            caller??;
        }
        self.wall.push(watch.wall());
        self.cpu.push(watch.cpu());
        Ok(())
    }

    /// Of the median round.
    fn per_second(&self) -> f64 {
        rounded(1_000.0 * number(self.calls) / Spread::new(self.wall.clone()).p50().max(1e-6))
    }

    /// CPU milliseconds of a call, of the median round.
    fn cpu_each(&self) -> f64 {
        rounded(Spread::new(self.cpu.clone()).p50() / number(self.calls).max(1.0))
    }
}

/// A gRPC server with a health service and nothing else; it ends with the set of tasks.
async fn bare() -> anyhow::Result<(HealthClient<Channel>, JoinSet<()>)> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("a free port")?;
    let endpoint = format!("http://{}", listener.local_addr()?);
    let (reporter, health) = tonic_health::server::health_reporter();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let _reporter = reporter;
        // It is dropped rather than asked to end.
        let _ = Server::builder()
            .add_service(health)
            .serve_with_incoming(TcpIncoming::from(listener).with_nodelay(Some(true)))
            .await;
    });
    let channel = Endpoint::from_shared(endpoint)?.tcp_nodelay(true).connect().await?;
    Ok((HealthClient::new(channel), tasks))
}
