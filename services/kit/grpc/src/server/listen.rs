//! The port: bound before anything is built, served when everything is, and left without dropping a call.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use steward_runtime::tasks::TaskResult;
use steward_runtime::{Policy, StartError, Tasks};
use tokio::net::{TcpListener, UnixListener};
use tokio_stream::wrappers::UnixListenerStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use super::Built;
use super::greeting::Greeting;
use crate::edge::Edge;

/// Streams that one connection may have open.
const MAX_STREAMS: u32 = 1024;

/// Largest header list, in bytes: a token, a trace context and little else.
const MAX_HEADER_BYTES: u32 = 16 * 1024;

const KEEPALIVE: Duration = Duration::from_secs(30);

/// Wait after a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A bound address. Connections that come before [`serve`] wait.
#[derive(Debug)]
pub enum Listener {
    /// `127.0.0.1:7400`.
    Tcp(TcpListener),
    /// `unix:/run/steward.sock`, for the owner only.
    Unix(UnixListener, PathBuf),
}

impl Listener {
    /// Binds `host:port` (port 0 takes a free one) or `unix:/path`.
    pub async fn bind(address: &str) -> Result<Self, StartError> {
        let failed = |error: io::Error| StartError::new(format!("listen on {address}"), error);
        match address.strip_prefix("unix:") {
            Some(path) => bind_unix(Path::new(path)).map_err(failed),
            None => Ok(Self::Tcp(TcpListener::bind(address).await.map_err(failed)?)),
        }
    }

    /// What a client connects to: `http://127.0.0.1:7400` or `unix:/run/steward.sock`.
    pub fn endpoint(&self) -> Result<String, StartError> {
        match self {
            Self::Tcp(listener) => {
                let address = listener.local_addr();
                let address = address.map_err(|error| StartError::new("read the address that was bound", error))?;
                Ok(format!("http://{}", reachable(address)))
            }
            Self::Unix(_, path) => Ok(format!("unix:{}", path.display())),
        }
    }
}

/// "All addresses" cannot be connected to; the loopback one of the same family can.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        let loopback: std::net::IpAddr = match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        };
        address.set_ip(loopback);
    }
    address
}

fn bind_unix(path: &Path) -> io::Result<Listener> {
    // A socket that a killed process left behind; anything else at this path is not ours to remove.
    if std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(io::Error::new(
                io::ErrorKind::AddrInUse,
                "another process listens there",
            ));
        }
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(Listener::Unix(listener, path.to_owned()))
}

/// A server that is up.
#[derive(Debug, Clone)]
pub struct Serving {
    /// What a client connects to.
    pub endpoint: String,
}

/// Serves `built` on `listener` as a task, with its background work, until the tasks stop: then health says so, no
/// connection is accepted any more, and the calls that run are finished.
pub fn serve(listener: Listener, mut built: Built, tasks: &Tasks) -> Result<Serving, StartError> {
    let endpoint = listener.endpoint()?;
    built.start_background(tasks);
    let (edge, health, services) = (built.edge(), built.health(), built.services().to_vec());
    let stopping = tasks.stopping();
    tasks.spawn(format!("{}/serve", built.name()), Policy::ESSENTIAL, async move {
        let stop = until_stopped(stopping.clone(), health, services);
        run(listener, edge, &stopping, stop).await
    });
    Ok(Serving { endpoint })
}

async fn until_stopped(stopping: CancellationToken, health: HealthReporter, services: Vec<&'static str>) {
    stopping.cancelled().await;
    for service in services.into_iter().chain([""]) {
        health.set_service_status(service, ServingStatus::NotServing).await;
    }
}

/// The connections of a listener, each of which has to say something.
fn accepted<S, C>(incoming: S, stopping: &CancellationToken) -> impl Stream<Item = io::Result<Greeting<C>>>
where
    S: Stream<Item = io::Result<C>>,
{
    incoming.then(async move |accepted| match accepted {
        Ok(connection) => Ok(Greeting::new(connection, stopping)),
        Err(error) => {
            // Most often there are no file handles left, and asking again at once would burn a processor.
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            Err(error)
        }
    })
}

async fn run(
    listener: Listener,
    edge: Edge,
    stopping: &CancellationToken,
    stop: impl Future<Output = ()>,
) -> TaskResult {
    let server = Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE))
        .max_concurrent_streams(MAX_STREAMS)
        .http2_max_header_list_size(MAX_HEADER_BYTES);
    match listener {
        Listener::Tcp(listener) => {
            let incoming = TcpIncoming::from(listener)
                .with_nodelay(Some(true))
                .with_keepalive(Some(KEEPALIVE));
            let incoming = accepted(incoming, stopping);
            server.serve_with_incoming_shutdown(edge, incoming, stop).await?;
        }
        Listener::Unix(listener, path) => {
            let incoming = accepted(UnixListenerStream::new(listener), stopping);
            server.serve_with_incoming_shutdown(edge, incoming, stop).await?;
            // The next start would remove it as well; leaving nothing behind is kinder.
            let _ = std::fs::remove_file(path);
        }
    }
    Ok(())
}
