//! A model server for tests: real HTTP on 127.0.0.1, OpenAI chat completions or Anthropic messages on the wire (whichever
//! a request's path asks for), answers by script.
//!
//! The connection is handled by hand rather than by a framework, because the interesting cases are the ones that a
//! framework prevents: a connection closed before the first byte, a chunk border inside a character, a body that ends in
//! the middle of a tool call. It serves one request per connection and understands what HTTP/1.1 clients send; it is not
//! a server for anything else.

mod chat_completions;
mod connection;
mod messages;
mod reply;
mod request;

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::wait::{PATIENCE, wait_for};

pub use reply::{Reply, ScriptedBlock, ScriptedCall, ScriptedUsage};
pub use request::RecordedRequest;

type Script = dyn Fn(&RecordedRequest) -> Reply + Send + Sync;

/// The running server. Dropping it closes the port and all connections.
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

struct Shared {
    script: Option<Box<Script>>,
    queue: Mutex<VecDeque<Reply>>,
    requests: Mutex<Vec<RecordedRequest>>,
    releases: Semaphore,
}

impl ModelServer {
    /// Answers each request by a pure function of what was received.
    pub async fn scripted(script: impl Fn(&RecordedRequest) -> Reply + Send + Sync + 'static) -> Self {
        Self::start(Some(Box::new(script)), VecDeque::new()).await
    }

    /// Answers with `replies` in order. A request beyond the last one gets status 418, which no client retries.
    pub async fn with_replies(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::start(None, replies.into_iter().collect()).await
    }

    async fn start(script: Option<Box<Script>>, queue: VecDeque<Reply>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("a free port on 127.0.0.1");
        let address = listener.local_addr().expect("a bound listener has an address");
        let shared = Arc::new(Shared {
            script,
            queue: Mutex::new(queue),
            requests: Mutex::default(),
            releases: Semaphore::new(0),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::clone(&shared)));
        Self {
            address,
            shared,
            _tasks: tasks,
        }
    }

    /// The base URL to configure, for example `http://127.0.0.1:40123/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Appends a reply to the queue of [`ModelServer::with_replies`].
    pub fn push(&self, reply: Reply) {
        self.shared
            .queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_back(reply);
    }

    /// All requests so far, in the order of arrival.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.shared
            .requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The raw bodies of all requests so far.
    pub fn bodies(&self) -> Vec<Bytes> {
        self.requests().into_iter().map(|request| request.body).collect()
    }

    /// Lets one hanging reply go on: the one that waits, or the next one that will.
    pub fn release(&self) {
        self.shared.releases.add_permits(1);
    }

    /// Waits until at least `count` requests have arrived.
    pub async fn wait_for_requests(&self, count: usize) {
        wait_for(&format!("{count} requests at the model server"), PATIENCE, || {
            let arrived = self.requests().len();
            async move { arrived >= count }
        })
        .await;
    }
}

impl fmt::Debug for ModelServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelServer")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Shared {
    fn record(&self, mut request: RecordedRequest) -> RecordedRequest {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        request.index = requests.len();
        requests.push(request.clone());
        request
    }

    fn answer(&self, request: &RecordedRequest) -> Reply {
        if let Some(script) = &self.script {
            return script(request);
        }
        let next = self.queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        next.unwrap_or_else(|| Reply::error(418, r#"{"error":{"message":"the script has no further reply"}}"#))
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _peer)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        connections.spawn(connection::serve(stream, Arc::clone(&shared)));
    }
}

#[cfg(test)]
mod tests;
