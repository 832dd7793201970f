//! RPC tests: through the in-process client, with signed tokens, on a real store.

mod access;
mod activity;
mod errors;
mod lifecycle;
mod replicas;
mod search;
mod sessions;
mod transfer;
mod updates;
mod walk;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use steward_base::names::{SessionId, TeamId, UserId};
use steward_base::{Clock as _, JobRef, Origin, Role, Timestamp};
use steward_client::{ClientError, Credentials, RecallClient, SessionStoreClient, Wire};
use steward_grpc::{Auth, Built, Claims, Revocations, TokenSigner};
use steward_proto::recall::v1 as pb;
use steward_runtime::Boot;
use steward_testkit::{MockClock, SeqIds, TempDir};

use crate::{Config, Deps, build};

const S1: &str = "teams/red/sessions/s1";

/// recall-service on a folder of its own, and tokens for whoever calls.
struct Rig {
    folder: TempDir,
    clock: Arc<MockClock>,
    signer: TokenSigner,
    boot: Boot,
    built: Built,
}

impl Rig {
    async fn new(name: &str) -> Self {
        let folder = TempDir::new(name);
        let clock = Arc::new(MockClock::at(Timestamp::from_secs(1_795_910_400)));
        let signer = TokenSigner::generate().unwrap();
        let (boot, built) = start(folder.path(), &clock, &signer, 0).await;
        Self {
            folder,
            clock,
            signer,
            boot,
            built,
        }
    }

    /// Stops the service and starts it again on the same folder.
    async fn restart(self) -> Self {
        let Self {
            folder,
            clock,
            signer,
            boot,
            built,
        } = self;
        drop(built);
        boot.tasks.shutdown(Duration::from_secs(30)).await;
        let (boot, built) = start(folder.path(), &clock, &signer, 1).await;
        Self {
            folder,
            clock,
            signer,
            boot,
            built,
        }
    }

    fn wire(&self, claims: &Claims) -> Wire {
        let token = Credentials::token(&self.signer.sign(claims).unwrap()).unwrap();
        self.built.local_client().with_credentials(token)
    }

    fn person(&self, team: &str, user: &str) -> Claims {
        let now = self.clock.now();
        let (team, user) = (TeamId::parse(team).unwrap(), UserId::parse(user).unwrap());
        Claims::user(
            "token",
            team,
            user,
            Role::Member,
            now,
            now.plus(Duration::from_mins(10)),
        )
    }

    fn service(&self) -> Claims {
        let now = self.clock.now();
        Claims::service("token", "agent-orchestrator", now, now.plus(Duration::from_mins(10)))
    }

    fn review_of(&self, session: &str, user: &str) -> Claims {
        let capabilities = BTreeSet::from(["session_history".to_owned(), "session_search".to_owned()]);
        let job = JobRef {
            id: "job1".to_owned(),
            fence: 1,
        };
        let session = Some(SessionId::parse(session).unwrap());
        self.person("red", user)
            .for_job(job, Origin::Review, session, capabilities)
    }

    /// The store as the orchestrator reaches it.
    fn store(&self) -> SessionStoreClient {
        SessionStoreClient::new(self.wire(&self.service()))
    }

    fn search(&self, claims: &Claims) -> RecallClient {
        RecallClient::new(self.wire(claims))
    }

    async fn create(&self, id: &str) -> pb::Session {
        let session = pb::Session {
            user: "teams/red/users/ann".to_owned(),
            model: "m1".to_owned(),
            system_prompt: "be kind".to_owned(),
            tools_json: "[]".to_owned(),
            ..Default::default()
        };
        self.store()
            .create_session(creation(id, session))
            .await
            .unwrap()
            .session
            .unwrap()
    }

    /// Says one thing in a turn of its own.
    async fn say(&self, session: &str, text: &str) -> pb::AppendMessagesResponse {
        let store = self.store();
        let last = store.get_session(get(session)).await.unwrap();
        let last = last.session.unwrap().last_seq;
        let fence = self.lease(session, &format!("turn-{last}")).await.unwrap().fence;
        let append = append(session, fence, last, vec![said(text)]);
        let appended = store.append_messages(append).await.unwrap();
        store
            .release_turn_lease(pb::ReleaseTurnLeaseRequest {
                session: session.to_owned(),
                fence,
            })
            .await
            .unwrap();
        appended
    }

    async fn lease(&self, session: &str, turn: &str) -> Result<pb::AcquireTurnLeaseResponse, ClientError> {
        let request = pb::AcquireTurnLeaseRequest {
            session: session.to_owned(),
            turn: turn.to_owned(),
            holder: "p1".to_owned(),
            ttl: Some(prost_types::Duration { seconds: 60, nanos: 0 }),
        };
        self.store().acquire_turn_lease(request).await
    }
}

async fn start(folder: &Path, clock: &Arc<MockClock>, signer: &TokenSigner, ids: u16) -> (Boot, Built) {
    let boot = Boot::new(folder)
        .with_clock(clock.clone())
        .with_ids(Arc::new(SeqIds::for_source(ids)));
    let revocations = Revocations::open(folder.join("revocations.json"), clock.clone()).unwrap();
    let auth = Arc::new(Auth::new(signer.public_keys(), revocations, clock.clone()));
    let built = build(Config::default(), Deps { auth }, &boot).await.unwrap();
    (boot, built)
}

fn creation(id: &str, session: pb::Session) -> pb::CreateSessionRequest {
    pb::CreateSessionRequest {
        parent: "teams/red".to_owned(),
        session_id: id.to_owned(),
        session: Some(session),
        request_id: format!("create-{id}"),
    }
}

fn append(session: &str, fence: u64, expected_seq: u64, messages: Vec<pb::Message>) -> pb::AppendMessagesRequest {
    pb::AppendMessagesRequest {
        session: session.to_owned(),
        fence,
        expected_seq,
        request_id: format!("append-{fence}-{expected_seq}"),
        messages,
        ..Default::default()
    }
}

fn get(session: &str) -> pb::GetSessionRequest {
    pb::GetSessionRequest {
        name: session.to_owned(),
        ..Default::default()
    }
}

fn said(text: &str) -> pb::Message {
    pb::Message {
        role: pb::MessageRole::User as i32,
        text: text.to_owned(),
        ..Default::default()
    }
}

fn discover(query: &str) -> pb::SearchRequest {
    let discover = pb::Discover {
        query: query.to_owned(),
        ..Default::default()
    };
    ask(pb::search_request::Shape::Discover(discover))
}

fn ask(shape: pb::search_request::Shape) -> pb::SearchRequest {
    pb::SearchRequest {
        parent: "teams/red/users/ann".to_owned(),
        shape: Some(shape),
        current_session: String::new(),
    }
}
