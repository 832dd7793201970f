//! Through the in-process client: what the wire adds to the rules.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use steward_base::names::{SessionId, TeamId, UserId};
use steward_base::{Clock as _, ErrorKind, JobRef, Origin, Role};
use steward_client::{ClientError, Credentials, SkillClient};
use steward_grpc::{Auth, Built, Claims, Revocations, TokenSigner};
use steward_proto::common::v1 as common;
use steward_proto::skill::v1 as pb;
use steward_proto::skill::v1::manage_skill_request::Action;
use steward_runtime::Boot;
use steward_testkit::{MockClock, SeqIds, TempDir};

use crate::{Config, Deps, build};

mod gates;
mod hostile;
mod speed;

pub(super) struct Rig {
    pub(super) built: Built,
    boot: Boot,
    pub(super) signer: TokenSigner,
    clock: MockClock,
    folder: TempDir,
}

pub(super) async fn rig() -> Rig {
    let (folder, clock) = (TempDir::new("skill-rpc"), MockClock::default());
    let signer = TokenSigner::generate().unwrap();
    let (boot, built) = start(folder.path(), &clock, &signer, 0).await;
    Rig {
        built,
        boot,
        signer,
        clock,
        folder,
    }
}

async fn start(folder: &std::path::Path, clock: &MockClock, signer: &TokenSigner, ids: u16) -> (Boot, Built) {
    let boot = Boot::new(folder)
        .with_clock(Arc::new(clock.clone()))
        .with_ids(Arc::new(SeqIds::for_source(ids)));
    let revocations = Revocations::in_memory(Arc::new(clock.clone()));
    let auth = Arc::new(Auth::new(signer.public_keys(), revocations, Arc::new(clock.clone())));
    let built = build(Config::default(), Deps { auth }, &boot).await.unwrap();
    (boot, built)
}

impl Rig {
    /// The data folder.
    pub(super) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Stops the service, changes its file as an operator could, and starts it again.
    pub(super) async fn edited_by_hand(self, statements: &[&'static str]) -> Self {
        drop(self.built);
        self.boot.tasks.shutdown(Duration::from_secs(30)).await;
        crate::sqlite::by_hand(&self.folder.path().join("skills/skills.db"), statements).await;
        let (boot, built) = start(self.folder.path(), &self.clock, &self.signer, 1).await;
        Self { built, boot, ..self }
    }

    pub(super) fn client(&self, claims: &Claims) -> SkillClient {
        let token = self.signer.sign(claims).unwrap();
        SkillClient::new(self.built.local_client()).with_credentials(Credentials::token(&token).unwrap())
    }

    pub(super) fn claims(&self, team: &str, user: &str, role: Role) -> Claims {
        let (team, user) = (TeamId::parse(team).unwrap(), UserId::parse(user).unwrap());
        let now = self.clock.now();
        Claims::user(
            format!("token-{user}"),
            team,
            user,
            role,
            now,
            now.plus(Duration::from_mins(10)),
        )
    }

    pub(super) fn person(&self, team: &str, user: &str) -> SkillClient {
        self.client(&self.claims(team, user, Role::Member))
    }

    fn turn(&self, session: &str, capabilities: &[&str]) -> SkillClient {
        let session = SessionId::parse(session).unwrap();
        self.client(
            &self
                .claims("red", "ann", Role::Member)
                .for_turn(session, "t1", caps(capabilities)),
        )
    }

    /// The hub, in the name of a maintainer.
    pub(super) fn hub(&self) -> Claims {
        let (team, user) = (TeamId::parse("red").unwrap(), UserId::parse("ann").unwrap());
        let now = self.clock.now();
        Claims::service("token-hub", "skill-hub", now, now.plus(Duration::from_mins(10))).on_behalf(
            team,
            user,
            Role::Maintainer,
        )
    }

    /// A curation's job.
    pub(super) fn curation_claims(&self, run: &str) -> Claims {
        let job = JobRef {
            id: run.to_owned(),
            fence: 1,
        };
        let tools = caps(&["library_read", "library_curate"]);
        self.claims("red", "ann", Role::Admin)
            .for_job(job, Origin::Curation, None, tools)
    }

    fn review(&self, fence: u64) -> SkillClient {
        self.job(Origin::Review, fence)
    }

    fn job(&self, origin: Origin, fence: u64) -> SkillClient {
        let job = JobRef {
            id: "j1".to_owned(),
            fence,
        };
        let session = SessionId::parse("s1").ok();
        let tools = caps(&["skill_view", "skill_manage", "skills_list"]);
        let claims = self.claims("red", "ann", Role::Admin);
        self.client(&claims.for_job(job, origin, session, tools))
    }
}

pub(super) fn caps(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

pub(super) const ANN: &str = "teams/red/users/ann";

fn skill_md(name: &str) -> String {
    format!("---\nname: {name}\ndescription: Do {name}\n---\n# {name}\n\nSteps.\n")
}

pub(super) fn manage(parent: &str, skill: &str, id: &str, action: Action) -> pb::ManageSkillRequest {
    pb::ManageSkillRequest {
        parent: parent.to_owned(),
        skill: skill.to_owned(),
        request_id: id.to_owned(),
        action: Some(action),
        ..pb::ManageSkillRequest::default()
    }
}

pub(super) fn create(name: &str) -> Action {
    Action::Create(pb::CreateSkill {
        content: skill_md(name),
        ..pb::CreateSkill::default()
    })
}

pub(super) fn patch(old: &str, new: &str) -> Action {
    Action::Patch(pb::PatchSkill {
        old_text: old.to_owned(),
        new_text: new.to_owned(),
        ..pb::PatchSkill::default()
    })
}

fn with_evidence(request: pb::ManageSkillRequest) -> pb::ManageSkillRequest {
    let evidence = common::Evidence {
        session: "teams/red/sessions/s1".to_owned(),
        spans: vec!["s1".to_owned()],
        basis: common::Basis::Stated.into(),
        integrity: common::Integrity::Person.into(),
    };
    pb::ManageSkillRequest {
        evidence: Some(evidence),
        ..request
    }
}

pub(super) async fn view(
    client: &SkillClient,
    parent: &str,
    skill: &str,
) -> Result<pb::ViewSkillResponse, ClientError> {
    let request = pb::ViewSkillRequest {
        parent: parent.to_owned(),
        skill: skill.to_owned(),
        ..pb::ViewSkillRequest::default()
    };
    client.view_skill(request).await
}

pub(super) fn reason(error: &ClientError) -> &str {
    steward_base::Fault::reason(error)
}

#[tokio::test]
async fn whose_write_it_is_follows_from_the_credential_alone() {
    let rig = rig().await;
    let person = rig.person("red", "ann");
    person
        .manage_skill(manage(ANN, "mine", "r1", create("mine")))
        .await
        .unwrap();
    let review = rig.review(1);
    view(&review, ANN, "mine").await.unwrap();
    let refused = with_evidence(manage(ANN, "mine", "j1/1/0", patch("Steps.", "x")));
    let error = review.manage_skill(refused).await.unwrap_err();
    assert_eq!((error.kind, reason(&error)), (ErrorKind::Forbidden, "GATE_REFUSED"));
    let tool_text = error
        .metadata
        .iter()
        .find(|(key, _)| *key == "toolText")
        .map_or("", |(_, text)| text.as_str());
    assert!(
        tool_text.contains("user_made") && tool_text.contains("review"),
        "{tool_text}"
    );

    let made = review
        .manage_skill(with_evidence(manage(ANN, "learned", "j1/1/1", create("learned"))))
        .await
        .unwrap();
    assert_eq!(made.skill.unwrap().provenance(), pb::SkillProvenance::Agent);
    let history = pb::ListRevisionsRequest {
        parent: "teams/red/users/ann/skills/learned".to_owned(),
        ..pb::ListRevisionsRequest::default()
    };
    let history = person.list_revisions(history).await.unwrap().revisions;
    assert_eq!(history.len(), 1);
    assert_eq!(history[0].origin(), common::Origin::Review);
    assert_eq!(
        (history[0].job.as_str(), history[0].session.as_str()),
        ("j1", "teams/red/sessions/s1")
    );
    assert_eq!(
        history[0].evidence.as_ref().map(common::Evidence::integrity),
        Some(common::Integrity::Person)
    );
}

#[tokio::test]
async fn an_origin_claimed_beside_the_credential_changes_nothing() {
    let rig = rig().await;
    let claims = rig.claims("red", "ann", Role::Member);
    let token = rig.signer.sign(&claims).unwrap();
    let wire = rig.built.local_client();
    let mut client = steward_proto::skill::v1::skill_service_client::SkillServiceClient::new(wire);
    let mut request = tonic::Request::new(manage(ANN, "mine", "r1", create("mine")));
    for (key, value) in [
        ("authorization", format!("Bearer {token}")),
        ("origin", "review".to_owned()),
    ] {
        request.metadata_mut().insert(key, value.parse().unwrap());
    }
    request
        .metadata_mut()
        .insert("x-steward-origin", "review".parse().unwrap());
    let skill = client.manage_skill(request).await.unwrap().into_inner().skill.unwrap();
    assert_eq!(skill.provenance(), pb::SkillProvenance::User);
}

#[tokio::test]
async fn another_persons_skill_and_another_teams_are_as_if_they_did_not_exist() {
    let rig = rig().await;
    let ann = rig.person("red", "ann");
    ann.manage_skill(manage(ANN, "mine", "r1", create("mine")))
        .await
        .unwrap();
    let name = "teams/red/users/ann/skills/mine";
    let (bob, eve) = (rig.person("red", "bob"), rig.person("blue", "ann"));
    for (client, parent) in [(&bob, "teams/red/users/bob"), (&eve, "teams/blue/users/ann")] {
        let theirs = client
            .get_skill(pb::GetSkillRequest { name: name.to_owned() })
            .await
            .unwrap_err();
        let missing = name.replace("mine", "none");
        let none = client
            .get_skill(pb::GetSkillRequest { name: missing })
            .await
            .unwrap_err();
        assert_eq!((theirs.kind, reason(&theirs)), (ErrorKind::NotFound, "SKILL_NOT_FOUND"));
        assert_eq!(theirs.message.replace("mine", "none"), none.message);
        assert!(
            theirs.message.contains(name),
            "it names what was asked for: {}",
            theirs.message
        );
        for skill in ["mine", "user/mine", name] {
            assert_eq!(
                view(client, parent, skill).await.unwrap_err().kind,
                ErrorKind::NotFound,
                "{skill}"
            );
        }
        assert_eq!(view(client, ANN, "mine").await.unwrap_err().kind, ErrorKind::NotFound);
        let list = pb::ListSkillsRequest {
            parent: parent.to_owned(),
            ..pb::ListSkillsRequest::default()
        };
        assert!(
            client
                .list_skills(list)
                .await
                .unwrap()
                .skills
                .iter()
                .all(|skill| !skill.name.contains("mine"))
        );
    }
}

#[tokio::test]
async fn stale_revisions_fences_and_reused_requests_are_told_apart() {
    let rig = rig().await;
    let person = rig.person("red", "ann");
    let request = manage(ANN, "mine", "r1", create("mine"));
    let first = person.manage_skill(request.clone()).await.unwrap();
    assert_eq!(person.manage_skill(request.clone()).await.unwrap(), first);
    let reused = pb::ManageSkillRequest {
        reason: "other".to_owned(),
        ..request
    };
    let error = person.manage_skill(reused).await.unwrap_err();
    assert_eq!(
        (error.kind, reason(&error)),
        (ErrorKind::InvalidInput, "REQUEST_ID_REUSED")
    );

    let base = first.skill.unwrap().revision;
    person
        .manage_skill(manage(ANN, "mine", "r2", patch("Steps.", "Two.")))
        .await
        .unwrap();
    let stale = pb::ManageSkillRequest {
        base_revision: base,
        ..manage(ANN, "mine", "r3", patch("Two.", "x"))
    };
    let error = person.manage_skill(stale).await.unwrap_err();
    assert_eq!((error.kind, reason(&error)), (ErrorKind::Conflict, "STALE_REVISION"));

    rig.review(2)
        .manage_skill(with_evidence(manage(ANN, "learned", "k1", create("learned"))))
        .await
        .unwrap();
    let stale = with_evidence(manage(ANN, "late", "k2", create("late")));
    let error = rig.review(1).manage_skill(stale).await.unwrap_err();
    assert_eq!((error.kind, reason(&error)), (ErrorKind::Conflict, "STALE_FENCE"));
}

#[tokio::test]
async fn a_turn_reaches_what_its_session_offers_and_looks_before_it_writes() {
    let rig = rig().await;
    rig.person("red", "ann")
        .manage_skill(manage(ANN, "mine", "r1", create("mine")))
        .await
        .unwrap();
    let reads_only = rig.turn("s1", &["skill_view"]);
    let denied = reads_only
        .manage_skill(manage(ANN, "mine", "r2", patch("Steps.", "x")))
        .await
        .unwrap_err();
    assert_eq!((denied.kind, reason(&denied)), (ErrorKind::Forbidden, "METHOD_DENIED"));
    let turn = rig.turn("s1", &["skill_view", "skill_manage"]);
    let unread = turn
        .manage_skill(manage(ANN, "mine", "s1/t1/0", patch("Steps.", "x")))
        .await
        .unwrap_err();
    assert_eq!((unread.kind, reason(&unread)), (ErrorKind::Precondition, "NOT_READ"));
    let viewed = view(&turn, ANN, "mine").await.unwrap();
    assert_eq!(viewed.content, skill_md("mine"));
    assert!(viewed.tool_text.ends_with(&skill_md("mine")), "{}", viewed.tool_text);
    turn.manage_skill(manage(ANN, "mine", "s1/t1/1", patch("Steps.", "x")))
        .await
        .unwrap();
    let purge = pb::PurgeSkillRequest {
        name: "teams/red/users/ann/skills/mine".to_owned(),
    };
    assert_eq!(turn.purge_skill(purge).await.unwrap_err().kind, ErrorKind::Forbidden);
}

#[tokio::test]
async fn all_wrong_fields_are_named_at_once() {
    let rig = rig().await;
    let action = Action::WriteFile(pb::WriteSkillFile {
        path: "../x".to_owned(),
        content: String::new(),
    });
    let error = rig
        .person("red", "ann")
        .manage_skill(manage(ANN, "", "", action))
        .await
        .unwrap_err();
    let fields = error
        .violations
        .iter()
        .map(|violation| violation.field.as_str())
        .collect::<Vec<_>>();
    assert_eq!(fields, ["request_id", "skill", "write_file.path", "write_file.content"]);
    let no_action = pb::ManageSkillRequest {
        parent: ANN.to_owned(),
        ..pb::ManageSkillRequest::default()
    };
    let error = rig.person("red", "ann").manage_skill(no_action).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidInput);
}

#[tokio::test]
async fn the_index_shows_what_can_be_opened_and_names_the_revisions() {
    let rig = rig().await;
    let person = rig.person("red", "ann");
    person
        .manage_skill(manage(ANN, "mine", "r1", create("mine")))
        .await
        .unwrap();
    let request = || pb::GetIndexRequest {
        user: ANN.to_owned(),
        ..pb::GetIndexRequest::default()
    };
    let turn = rig.turn("s1", &["skill_index", "skill_view"]);
    let index = turn.get_index(request()).await.unwrap();
    assert_eq!(index.text.matches("- mine: Do mine\n").count(), 1, "{}", index.text);
    assert!(index.text.contains("- plan: "), "{}", index.text);
    for exposure in &index.exposures {
        assert_eq!((exposure.stage.as_str(), exposure.revision.len()), ("indexed", 64));
        assert_eq!(
            view(&turn, ANN, &exposure.artifact)
                .await
                .unwrap()
                .skill
                .unwrap()
                .revision,
            exposure.revision
        );
    }
    // Looking at skills changes nothing in the index.
    assert_eq!(person.get_index(request()).await.unwrap(), index);
}

#[tokio::test]
async fn an_archived_skill_is_restored_by_its_listed_name() {
    let rig = rig().await;
    let person = rig.person("red", "ann");
    let delete = || Action::Delete(pb::DeleteSkill { absorbed_into: None });
    for round in 0..2 {
        person
            .manage_skill(manage(ANN, "mine", &format!("c{round}"), create("mine")))
            .await
            .unwrap();
        person
            .manage_skill(manage(ANN, "mine", &format!("d{round}"), delete()))
            .await
            .unwrap();
    }
    let list = pb::ListSkillsRequest {
        parent: ANN.to_owned(),
        archived: true,
        ..pb::ListSkillsRequest::default()
    };
    let archived = person.list_skills(list).await.unwrap().skills;
    assert_eq!(archived.len(), 2);
    let restored = person
        .restore_skill(pb::RestoreSkillRequest {
            name: archived[0].name.clone(),
        })
        .await
        .unwrap();
    assert_eq!(restored.skill.unwrap().name, "teams/red/users/ann/skills/mine");
    let taken = person
        .restore_skill(pb::RestoreSkillRequest {
            name: archived[1].name.clone(),
        })
        .await
        .unwrap_err();
    assert_eq!((taken.kind, reason(&taken)), (ErrorKind::AlreadyExists, "SKILL_EXISTS"));
    let maintainer = rig.client(&rig.claims("red", "ann", Role::Maintainer));
    let purged = maintainer
        .purge_skill(pb::PurgeSkillRequest {
            name: archived[1].name.clone(),
        })
        .await
        .unwrap();
    assert_eq!(purged.revisions, 2);
}
