//! The reference external memory: `steward.memory.provider.v1` as somebody else would serve it, on a port of its own. It
//! remembers what it is told, recalls all of it that shares a word with the message, and can be told to be slow.

use std::sync::{Arc, Mutex};

use steward_proto::memory::provider::v1 as pb;
use steward_proto::memory::provider::v1::memory_provider_service_server::{
    MemoryProviderService, MemoryProviderServiceServer,
};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tonic::{Request, Response, Status};

use crate::stack::StackOptions;

/// What it keeps.
#[derive(Debug, Default)]
struct Kept {
    facts: Vec<String>,
    turns: Vec<Told>,
    events: Vec<Told>,
}

/// Something that it was told.
#[derive(Debug)]
struct Told {
    /// Person, session, and the name by which it is known again; the last may be empty.
    by: [String; 3],
    line: String,
}

impl Told {
    fn new(scope: Option<pb::Scope>, name: String, line: String) -> Self {
        let scope = scope.unwrap_or_default();
        Self {
            by: [format!("{}/{}", scope.team, scope.user), scope.session, name],
            line,
        }
    }

    /// Keeps it unless it is there already.
    fn keep(self, told: &mut Vec<Self>) {
        if self.by[2].is_empty() || told.iter().all(|one| one.by != self.by) {
            told.push(self);
        }
    }

    fn lines(told: &[Self]) -> Vec<String> {
        told.iter().map(|one| one.line.clone()).collect()
    }
}

/// A running reference memory; it stops with this value.
#[derive(Debug, Clone)]
pub struct ReferenceMemory {
    kept: Arc<Mutex<Kept>>,
    slow: watch::Sender<bool>,
    url: String,
    _serving: Arc<Serving>,
}

#[derive(Debug)]
struct Serving(tokio::task::JoinHandle<()>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ReferenceMemory {
    /// Starts one that knows these facts.
    pub async fn start(facts: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let kept = Arc::new(Mutex::new(Kept {
            facts: facts.iter().map(|fact| (*fact).to_owned()).collect(),
            ..Kept::default()
        }));
        let (slow, _) = watch::channel(false);
        let provider = Served {
            kept: Arc::clone(&kept),
            slow: slow.subscribe(),
        };
        #[expect(clippy::disallowed_methods, reason = "ends with the provider")]
        let serving = tokio::spawn(async move {
            let incoming = tokio_stream::wrappers::TcpListenerStream::new(listener);
            let server = tonic::transport::Server::builder().add_service(MemoryProviderServiceServer::new(provider));
            server.serve_with_incoming(incoming).await.expect("it serves");
        });
        Self {
            kept,
            slow,
            url,
            _serving: Arc::new(Serving(serving)),
        }
    }

    /// The setting that makes it the memory of the home team.
    pub fn setting(&self) -> String {
        setting(&self.url)
    }

    /// Makes it the memory of the home team, and waits for it however busy the machine is.
    pub fn beside(&self, options: StackOptions) -> StackOptions {
        options
            .set("MEMORY__PROVIDERS", self.setting())
            .set("MEMORY__PROVIDER_MS", 20_000)
            .set("AGENT__TURN__EXTERNAL_MEMORY_MS", 25_000)
    }

    /// From now on no call is answered, or all are again.
    pub fn be_slow(&self, slow: bool) {
        self.slow.send_replace(slow);
    }

    /// The turns that it took in, `{words} -> {answer}` each.
    pub fn turns(&self) -> Vec<String> {
        Told::lines(&self.kept.lock().unwrap().turns)
    }

    /// The events that it heard of.
    pub fn events(&self) -> Vec<String> {
        Told::lines(&self.kept.lock().unwrap().events)
    }
}

/// The setting that makes a memory at `url` that of the home team.
pub fn setting(url: &str) -> String {
    format!(r#"[{{ team = "default", kind = "grpc", url = "{url}" }}]"#)
}

#[derive(Debug)]
struct Served {
    kept: Arc<Mutex<Kept>>,
    slow: watch::Receiver<bool>,
}

impl Served {
    async fn answer(&self) {
        let mut slow = self.slow.clone();
        // Ends with an error when the test is over, and nobody waits then.
        let _over = slow.wait_for(|slow| !slow).await;
    }
}

#[tonic::async_trait]
impl MemoryProviderService for Served {
    async fn initialize(&self, _: Request<pb::InitializeRequest>) -> Result<Response<pb::InitializeResponse>, Status> {
        self.answer().await;
        let tool = r#"{"name":"archive_search","description":"Looks into the archive.","parameters":{"type":"object","properties":{"q":{"type":"string"}}}}"#;
        Ok(Response::new(pb::InitializeResponse {
            system_prompt_block: "An archive is at hand: archive_search.".to_owned(),
            tools_json: vec![tool.to_owned()],
        }))
    }

    async fn prefetch(&self, request: Request<pb::PrefetchRequest>) -> Result<Response<pb::PrefetchResponse>, Status> {
        self.answer().await;
        let query = request.into_inner().query.to_lowercase();
        let facts = self.kept.lock().unwrap().facts.clone();
        let shares = |fact: &String| {
            let fact = fact.to_lowercase();
            query
                .split_whitespace()
                .any(|word| word.len() > 3 && fact.contains(word))
        };
        Ok(Response::new(pb::PrefetchResponse {
            items: facts.into_iter().filter(shares).collect(),
        }))
    }

    async fn sync_turn(&self, request: Request<pb::SyncTurnRequest>) -> Result<Response<pb::SyncTurnResponse>, Status> {
        self.answer().await;
        let request = request.into_inner();
        let line = format!("{} -> {}", request.user_text, request.assistant_text);
        Told::new(request.scope, request.turn, line).keep(&mut self.kept.lock().unwrap().turns);
        Ok(Response::new(pb::SyncTurnResponse {}))
    }

    async fn call_tool(&self, request: Request<pb::CallToolRequest>) -> Result<Response<pb::CallToolResponse>, Status> {
        self.answer().await;
        Ok(Response::new(pb::CallToolResponse {
            content: format!("the archive has nothing on {}", request.into_inner().arguments_json),
            is_error: false,
        }))
    }

    async fn observe(&self, request: Request<pb::ObserveRequest>) -> Result<Response<pb::ObserveResponse>, Status> {
        self.answer().await;
        let request = request.into_inner();
        let line = format!("{:?}: {}", request.event(), request.detail);
        Told::new(request.scope, request.id, line).keep(&mut self.kept.lock().unwrap().events);
        Ok(Response::new(pb::ObserveResponse::default()))
    }

    async fn erase_person(
        &self,
        request: Request<pb::ErasePersonRequest>,
    ) -> Result<Response<pb::ErasePersonResponse>, Status> {
        self.answer().await;
        let request = request.into_inner();
        let person = format!("{}/{}", request.team, request.user);
        let mut kept = self.kept.lock().unwrap();
        kept.turns.retain(|one| one.by[0] != person);
        kept.events.retain(|one| one.by[0] != person);
        Ok(Response::new(pb::ErasePersonResponse {}))
    }

    async fn shutdown(&self, _: Request<pb::ShutdownRequest>) -> Result<Response<pb::ShutdownResponse>, Status> {
        Ok(Response::new(pb::ShutdownResponse {}))
    }
}
