//! Through the in-process client, as a curation's job.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use steward_base::names::{SessionId, TeamId, UserId};
use steward_base::{Clock as _, JobRef, Origin, Role};
use steward_client::{Credentials, LibraryClient, SkillClient};
use steward_grpc::{Auth, Built, Claims, Revocations, TokenSigner};
use steward_proto::common::v1 as common;
use steward_proto::skill::v1::manage_skill_request::Action;
use steward_proto::skill::v1::transition_result::Outcome;
use steward_runtime::Boot;
use steward_testkit::{MockClock, SeqIds, TempDir};

use super::*;
use crate::{Config, Deps, build};

struct Rig {
    built: Built,
    signer: TokenSigner,
    clock: MockClock,
    _folder: TempDir,
}

impl Rig {
    async fn new() -> Self {
        let (folder, clock) = (TempDir::new("skill-library"), MockClock::default());
        let signer = TokenSigner::generate().unwrap();
        let boot = Boot::new(folder.path())
            .with_clock(Arc::new(clock.clone()))
            .with_ids(Arc::new(SeqIds::new()));
        let revocations = Revocations::in_memory(Arc::new(clock.clone()));
        let auth = Arc::new(Auth::new(signer.public_keys(), revocations, Arc::new(clock.clone())));
        let built = build(Config::default(), Deps { auth }, &boot).await.unwrap();
        Self {
            built,
            signer,
            clock,
            _folder: folder,
        }
    }

    fn credentials(&self, job: Option<(&str, Origin, &[&str])>) -> Credentials {
        let now = self.clock.now();
        let (team, user) = (TeamId::parse("red").unwrap(), UserId::parse("ann").unwrap());
        let until = now.plus(Duration::from_mins(10));
        let mut claims = Claims::user("token", team, user, Role::Admin, now, until);
        if let Some((run, origin, capabilities)) = job {
            let job = JobRef {
                id: run.to_owned(),
                fence: 1,
            };
            let capabilities: BTreeSet<String> = capabilities.iter().map(|&name| name.to_owned()).collect();
            let session = SessionId::parse("s1").ok().filter(|_| origin == Origin::Review);
            claims = claims.for_job(job, origin, session, capabilities);
        }
        Credentials::token(&self.signer.sign(&claims).unwrap()).unwrap()
    }

    fn curation(&self, run: &str, capabilities: &[&str]) -> LibraryClient {
        let credentials = self.credentials(Some((run, Origin::Curation, capabilities)));
        LibraryClient::new(self.built.local_client()).with_credentials(credentials)
    }

    /// A skill that a review made.
    async fn add(&self, name: &str) {
        let review = self.credentials(Some((name, Origin::Review, &["skill_manage"])));
        let client = SkillClient::new(self.built.local_client()).with_credentials(review);
        let request = pb::ManageSkillRequest {
            parent: "teams/red/users/ann".to_owned(),
            skill: name.to_owned(),
            request_id: name.to_owned(),
            action: Some(Action::Create(pb::CreateSkill {
                content: format!("---\nname: {name}\ndescription: Do {name}\n---\n# {name}\n\nSteps.\n"),
                ..Default::default()
            })),
            evidence: Some(common::Evidence {
                session: "teams/red/sessions/s1".to_owned(),
                spans: vec!["s1".to_owned()],
                basis: common::Basis::Stated.into(),
                integrity: common::Integrity::Person.into(),
            }),
            ..Default::default()
        };
        client.manage_skill(request).await.unwrap();
    }
}

fn list(page_size: i32, page_token: &str) -> pb::ListRecordsRequest {
    pb::ListRecordsRequest {
        parent: "teams/red".to_owned(),
        page_size,
        page_token: page_token.to_owned(),
    }
}

#[tokio::test]
async fn a_run_archives_and_another_puts_back() {
    let rig = Rig::new().await;
    rig.add("one").await;
    rig.add("two").await;
    let both = ["library_read", "library_curate"];
    let run = rig.curation("run", &both);
    let first = run.list_records(list(1, "")).await.unwrap();
    let second = run.list_records(list(1, &first.next_page_token)).await.unwrap();
    let record = first.records[0].clone();
    assert_ne!(record.uid, second.records[0].uid);
    assert_eq!(record.age(), pb::SkillAge::Active);
    let (parent, id) = ("teams/red".to_owned(), "run".to_owned());
    let snapshot = pb::CreateSnapshotRequest {
        parent: parent.clone(),
        run: id.clone(),
    };
    let taken = run.create_snapshot(snapshot).await.unwrap().snapshot.unwrap();
    assert_eq!(
        (taken.name.as_str(), taken.skills >= 2),
        ("teams/red/librarySnapshots/run", true)
    );
    let apply = pb::ApplyTransitionsRequest {
        parent: parent.clone(),
        run: id.clone(),
        transitions: vec![pb::Transition {
            uid: record.uid.clone(),
            etag: record.etag,
            age: pb::SkillAge::Archived.into(),
        }],
    };
    let results = run.apply_transitions(apply).await.unwrap().results;
    assert_eq!(results[0].outcome(), Outcome::Applied);
    let after = run.list_records(list(0, "")).await.unwrap().records;
    let archived = after.iter().find(|found| found.uid == record.uid).unwrap();
    assert_eq!(archived.age(), pb::SkillAge::Archived);
    assert!(archived.name.contains("--"), "{}", archived.name);
    let undo = pb::RollbackRunRequest {
        parent,
        run: id,
        rollback: "undo".to_owned(),
    };
    let undone = rig.curation("undo", &both).rollback_run(undo).await.unwrap();
    assert_eq!(undone.snapshot.unwrap().name, "teams/red/librarySnapshots/undo");
    assert_eq!(
        (undone.results[0].outcome(), undone.results[0].to()),
        (Outcome::Applied, pb::SkillAge::Active)
    );
}

#[tokio::test]
async fn a_dry_runs_credential_reads_and_a_persons_reaches_nothing() {
    // D-25: read-only by mechanism.
    let rig = Rig::new().await;
    rig.add("one").await;
    let dry = rig.curation("run", &["library_read"]);
    assert_eq!(dry.list_records(list(0, "")).await.unwrap().records.len(), 1);
    let parent = "teams/red".to_owned();
    let run = "run".to_owned();
    let snapshot = pb::CreateSnapshotRequest {
        parent: parent.clone(),
        run: run.clone(),
    };
    let apply = pb::ApplyTransitionsRequest {
        parent: parent.clone(),
        run: run.clone(),
        transitions: Vec::new(),
    };
    let undo = pb::RollbackRunRequest {
        parent,
        run: "other".to_owned(),
        rollback: run,
    };
    let reasons = [
        dry.create_snapshot(snapshot).await.unwrap_err().reason,
        dry.apply_transitions(apply).await.unwrap_err().reason,
        dry.rollback_run(undo).await.unwrap_err().reason,
    ];
    assert_eq!(reasons, ["METHOD_DENIED"; 3]);
    let person = LibraryClient::new(rig.built.local_client()).with_credentials(rig.credentials(None));
    assert_eq!(
        person.list_records(list(0, "")).await.unwrap_err().reason,
        "METHOD_DENIED"
    );
}
