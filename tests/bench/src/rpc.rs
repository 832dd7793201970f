//! `rpc`: `WhoAmI` over a real port: the smallest call that passes everything a call passes, from the bearer token to the
//! answer. The floor is a health check of a server that has nothing of ours around it.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use steward_proto::access::v1::WhoAmIRequest;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Channel, Endpoint, Server};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::arguments::{Arguments, Rpc};
use crate::measure::{Meter, Spread, Watch, millis_each, per_second};
use crate::rig::Whole;

/// Calls before time is taken.
const WARM_UP: u32 = 50;

pub(crate) async fn run(options: &Rpc, arguments: &Arguments) -> anyhow::Result<Value> {
    let folder = arguments.fresh_folder()?;
    let whole = Whole::start(folder.path(), None).await?;
    let access = whole.client.access.clone();
    let call = move || {
        let access = access.clone();
        async move {
            let answer = access.who_am_i(WhoAmIRequest {}).await?;
            ensure!(!answer.user.is_empty(), "the answer names nobody");
            Ok(())
        }
    };
    let ours = measure(options, call).await?;
    whole.stop().await?;

    let (bare, server) = bare().await?;
    let call = move || {
        let mut bare = bare.clone();
        async move {
            bare.check(HealthCheckRequest::default()).await?;
            Ok(())
        }
    };
    let floor = measure(options, call).await?;
    drop(server);
    let calls = usize::try_from(options.calls)?;
    Ok(json!({
        "calls": options.calls,
        "callers": options.callers,
        "rps": per_second(calls, ours.together),
        "floor_rps": per_second(calls, floor.together),
        "p50_ms": ours.alone.p50(),
        "p99_ms": ours.alone.p99(),
        "floor_p50_ms": floor.alone.p50(),
        "floor_p99_ms": floor.alone.p99(),
        "cpu_ms_per_call": millis_each(ours.together_cpu, calls),
        "floor_cpu_ms_per_call": millis_each(floor.together_cpu, calls),
    }))
}

struct Measured {
    /// One caller, one call after the other.
    alone: Spread,
    /// The same number of calls by all callers.
    together: Duration,
    together_cpu: Duration,
}

async fn measure<F, Fut>(options: &Rpc, call: F) -> anyhow::Result<Measured>
where
    F: Fn() -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = anyhow::Result<()>> + Send,
{
    for _ in 0..WARM_UP {
        call().await?;
    }
    let mut alone = Meter::default();
    for _ in 0..options.calls {
        alone.time(call()).await?;
    }
    let watch = Watch::start();
    let mut callers = JoinSet::new();
    for caller in 0..options.callers {
        let share = (caller..options.calls).step_by(usize::try_from(options.callers)?).len();
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
    Ok(Measured {
        alone: alone.wall(),
        together: watch.wall(),
        together_cpu: watch.cpu(),
    })
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
            .tcp_nodelay(true)
            .add_service(health)
            .serve_with_incoming(TcpListenerStream::new(listener))
            .await;
    });
    let channel = Endpoint::from_shared(endpoint)?.tcp_nodelay(true).connect().await?;
    Ok((HealthClient::new(channel), tasks))
}
