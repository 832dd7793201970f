//! RPC tests: through the in-process client, with signed tokens, on a real store.

mod apply;
mod errors;
mod hostile;
mod inbox;
mod learning;
mod poison;
mod proposals;
mod reading;
mod upkeep;
mod user_memory;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use steward_base::names::{SessionId, TeamId, UserId};
use steward_base::{Clock as _, JobRef, Origin, Role, Timestamp};
use steward_client::{ClientError, Credentials, MemoryClient};
use steward_grpc::{Auth, Claims, Revocations, TokenSigner};
use steward_proto::common::v1 as common;
use steward_proto::memory::v1 as pb;
use steward_runtime::Boot;
use steward_testkit::{MockClock, SeqIds, TempDir};

use crate::{Config, Deps, build};

const ANN: &str = "teams/red/users/ann/memory/notes";
const TEAM: &str = "teams/red/memory/notes";

/// memory-service on a folder of its own, and tokens for whoever calls.
struct Rig {
    folder: TempDir,
    clock: Arc<MockClock>,
    signer: TokenSigner,
    boot: Boot,
    built: steward_grpc::Built,
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

    fn claims(&self, team: &str, user: &str, role: Role) -> Claims {
        let now = self.clock.now();
        let (team, user) = (TeamId::parse(team).unwrap(), UserId::parse(user).unwrap());
        Claims::user("token", team, user, role, now, now.plus(Duration::from_mins(10)))
    }

    fn client(&self, claims: &Claims) -> MemoryClient {
        let token = Credentials::token(&self.signer.sign(claims).unwrap()).unwrap();
        MemoryClient::new(self.built.local_client().with_credentials(token))
    }

    fn user(&self, team: &str, user: &str, role: Role) -> MemoryClient {
        self.client(&self.claims(team, user, role))
    }

    fn ann(&self) -> MemoryClient {
        self.user("red", "ann", Role::Member)
    }

    fn turn(&self, turn: &str) -> MemoryClient {
        let capabilities = BTreeSet::from(["memory".to_owned(), "memory_snapshot".to_owned()]);
        let session = SessionId::parse("s1").unwrap();
        self.client(
            &self
                .claims("red", "ann", Role::Member)
                .for_turn(session, turn, capabilities),
        )
    }

    fn review(&self, fence: u64) -> MemoryClient {
        let capabilities = BTreeSet::from(["memory".to_owned()]);
        let job = JobRef {
            id: "job1".to_owned(),
            fence,
        };
        let session = Some(SessionId::parse("s1").unwrap());
        let claims = self
            .claims("red", "ann", Role::Member)
            .for_job(job, Origin::Review, session, capabilities);
        self.client(&claims)
    }
}

async fn start(folder: &Path, clock: &Arc<MockClock>, signer: &TokenSigner, ids: u16) -> (Boot, steward_grpc::Built) {
    let boot = Boot::new(folder)
        .with_clock(clock.clone())
        .with_ids(Arc::new(SeqIds::for_source(ids)));
    let revocations = Revocations::open(folder.join("revocations.json"), clock.clone()).unwrap();
    let auth = Arc::new(Auth::new(signer.public_keys(), revocations, clock.clone()));
    let built = build(Config::default(), Deps { auth }, &boot).await.unwrap();
    (boot, built)
}

fn add(content: &str) -> pb::Operation {
    let add = pb::AddEntry {
        content: content.to_owned(),
    };
    pb::Operation {
        action: Some(pb::operation::Action::Add(add)),
    }
}

fn replace(old_text: &str, content: &str) -> pb::Operation {
    let replace = pb::ReplaceEntry {
        old_text: old_text.to_owned(),
        content: content.to_owned(),
    };
    pb::Operation {
        action: Some(pb::operation::Action::Replace(replace)),
    }
}

fn remove(old_text: &str) -> pb::Operation {
    let remove = pb::RemoveEntry {
        old_text: old_text.to_owned(),
    };
    pb::Operation {
        action: Some(pb::operation::Action::Remove(remove)),
    }
}

fn request(store: &str, request_id: &str, operations: Vec<pb::Operation>) -> pb::ApplyRequest {
    pb::ApplyRequest {
        store: store.to_owned(),
        operations,
        request_id: request_id.to_owned(),
        ..pb::ApplyRequest::default()
    }
}

fn cited(integrity: common::Integrity) -> common::Evidence {
    common::Evidence {
        session: "teams/red/sessions/s1".to_owned(),
        spans: vec!["s3".to_owned()],
        basis: common::Basis::Stated.into(),
        integrity: integrity.into(),
    }
}

async fn contents(client: &MemoryClient, store: &str) -> Vec<String> {
    let request = pb::ListEntriesRequest {
        parent: store.to_owned(),
        ..pb::ListEntriesRequest::default()
    };
    client
        .list_entries(request)
        .await
        .unwrap()
        .entries
        .into_iter()
        .map(|entry| entry.content)
        .collect()
}

fn tool_text(error: &ClientError) -> String {
    let found = error.metadata.iter().find(|(key, _)| *key == "toolText");
    found.map(|(_, text)| text.clone()).unwrap_or_default()
}
