//! Through the in-process client: who gets at a team's secrets, and where their values are (`S-8`).

use std::path::Path;

use steward_base::{ErrorKind, Role};
use steward_client::{Credentials, SecretClient};
use steward_grpc::Claims;
use steward_proto::skill::v1 as pb;
use steward_proto::skill::v1::manage_skill_request::Action;

use super::super::tests::{ANN, Rig, caps, manage, reason, rig, view};

const VALUE: &str = "v-4711-never-shown";

fn secrets(rig: &Rig, claims: &Claims) -> SecretClient {
    let token = rig.signer.sign(claims).unwrap();
    SecretClient::new(rig.built.local_client()).with_credentials(Credentials::token(&token).unwrap())
}

fn set(parent: &str, name: &str, value: &str) -> pb::SetSecretRequest {
    pb::SetSecretRequest {
        parent: parent.to_owned(),
        secret: name.to_owned(),
        value: value.to_owned(),
    }
}

fn deliver(skill: &str) -> pb::DeliverSecretsRequest {
    pb::DeliverSecretsRequest {
        parent: ANN.to_owned(),
        skill: skill.to_owned(),
    }
}

/// The team's skill `call`, which declares two variables.
async fn with_skill(rig: &Rig) {
    let maintainer = rig.client(&rig.claims("red", "ann", Role::Maintainer));
    let create = Action::Create(pb::CreateSkill {
        content: "---\nname: call\ndescription: Call the API\nrequired_environment_variables: [API_TOKEN, API_BASE]\n---\n# X\n\nCall it.\n".to_owned(),
        scope: pb::SkillScope::Team.into(),
        ..pb::CreateSkill::default()
    });
    maintainer
        .manage_skill(manage(ANN, "call", "c1", create))
        .await
        .unwrap();
}

fn holds(folder: &Path, needle: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(holds(&entry.path(), needle));
        } else if std::fs::read(entry.path())
            .unwrap()
            .windows(needle.len())
            .any(|window| window == needle)
        {
            found.push(entry.path().display().to_string());
        }
    }
    found
}

/// `S-8`: encrypted on disk, listed by name, delivered to a person's program for a skill of the team that declares it.
#[tokio::test]
async fn a_secret_is_set_listed_delivered_and_deleted_and_stands_on_no_disk() {
    let rig = rig().await;
    with_skill(&rig).await;
    let boss = secrets(&rig, &rig.claims("red", "ann", Role::Maintainer));
    let member = secrets(&rig, &rig.claims("red", "ann", Role::Member));
    let kept = boss.set_secret(set(ANN, "API_TOKEN", VALUE)).await.unwrap();
    let kept = kept.secret.unwrap();
    assert_eq!(
        (kept.name.as_str(), kept.author.as_str()),
        ("teams/red/secrets/API_TOKEN", ANN)
    );
    let list = pb::ListSecretsRequest { parent: ANN.to_owned() };
    let listed = member.list_secrets(list.clone()).await.unwrap().secrets;
    assert_eq!(listed, std::slice::from_ref(&kept));
    assert!(listed[0].readable);

    let delivered = member.deliver_secrets(deliver("call")).await.unwrap();
    assert_eq!(delivered.skill, "teams/red/skills/call");
    let values = delivered
        .secrets
        .iter()
        .map(|one| (one.variable.as_str(), one.value.as_str()));
    assert_eq!(values.collect::<Vec<_>>(), [("API_TOKEN", VALUE)]);
    assert_eq!(delivered.missing.len(), 1);

    let found = holds(rig.folder(), VALUE.as_bytes());
    assert!(found.is_empty(), "in clear text in {found:?}");
    let key = rig.folder().join("skills/secrets.key");
    assert!(key.exists(), "the key was made beside the database");

    let delete = pb::DeleteSecretRequest { name: kept.name };
    assert!(boss.delete_secret(delete.clone()).await.unwrap().deleted);
    assert!(!boss.delete_secret(delete).await.unwrap().deleted);
    assert!(member.list_secrets(list).await.unwrap().secrets.is_empty());
}

/// `S-8`: neither a turn nor a job, neither another team nor a lower role gets one.
#[tokio::test]
async fn no_agent_no_job_no_other_team_and_no_member_sets_or_gets_a_secret() {
    let rig = rig().await;
    with_skill(&rig).await;
    let boss_claims = rig.claims("red", "ann", Role::Maintainer);
    let boss = secrets(&rig, &boss_claims);
    boss.set_secret(set(ANN, "API_TOKEN", VALUE)).await.unwrap();
    let session = steward_base::names::SessionId::parse("s1").unwrap();
    let turn = boss_claims
        .clone()
        .for_turn(session, "t1", caps(&["skill_view", "skill_manage", "skills_list"]));
    for claims in [turn, rig.curation_claims("run1"), rig.hub()] {
        let client = secrets(&rig, &claims);
        let delete = pb::DeleteSecretRequest {
            name: "teams/red/secrets/API_TOKEN".to_owned(),
        };
        let list = pb::ListSecretsRequest { parent: ANN.to_owned() };
        let outcomes = [
            client.set_secret(set(ANN, "API_TOKEN", "x")).await.map(drop),
            client.list_secrets(list).await.map(drop),
            client.delete_secret(delete).await.map(drop),
            client.deliver_secrets(deliver("call")).await.map(drop),
        ];
        for outcome in outcomes {
            assert_eq!(outcome.unwrap_err().kind, ErrorKind::Forbidden);
        }
    }
    let member = secrets(&rig, &rig.claims("red", "bob", Role::Member));
    let bob = "teams/red/users/bob";
    let refused = member.set_secret(set(bob, "API_TOKEN", "x")).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Forbidden);
    let blue = secrets(&rig, &rig.claims("blue", "ann", Role::Admin));
    let delete = pb::DeleteSecretRequest {
        name: "teams/red/secrets/API_TOKEN".to_owned(),
    };
    assert!(
        !blue.delete_secret(delete).await.unwrap().deleted,
        "another team's is not there"
    );
    let parent = "teams/blue/users/ann".to_owned();
    let none = blue.list_secrets(pb::ListSecretsRequest { parent }).await.unwrap();
    assert!(none.secrets.is_empty());
    let error = blue.set_secret(set(ANN, "API_TOKEN", "x")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
    let still = boss.deliver_secrets(deliver("call")).await.unwrap();
    assert_eq!(still.secrets[0].value, VALUE);
}

/// `S-8`: a view asks for what is missing, says what the team keeps, and holds no value.
#[tokio::test]
async fn a_view_asks_a_client_for_what_is_missing_where_commands_run() {
    let rig = rig().await;
    with_skill(&rig).await;
    let claims = rig.claims("red", "ann", Role::Maintainer);
    secrets(&rig, &claims)
        .set_secret(set(ANN, "API_TOKEN", VALUE))
        .await
        .unwrap();
    let client = rig.client(&claims);
    let request = pb::ViewSkillRequest {
        parent: ANN.to_owned(),
        skill: "call".to_owned(),
        variables_known: true,
        ..pb::ViewSkillRequest::default()
    };
    let viewed = client.view_skill(request).await.unwrap();
    let asked = viewed.secret_request.clone().unwrap();
    assert_eq!(
        (asked.skill.as_str(), asked.team_store),
        ("teams/red/skills/call", true)
    );
    let names = asked.variables.iter().map(|variable| variable.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["API_BASE"]);
    let kept = viewed
        .variables
        .iter()
        .map(|variable| (variable.name.as_str(), variable.set_by_team));
    assert_eq!(kept.collect::<Vec<_>>(), [("API_BASE", false), ("API_TOKEN", true)]);
    assert!(viewed.setup_needed && !format!("{viewed:?}").contains(VALUE));
    assert!(viewed.tool_text.contains("API_BASE is not set"), "{}", viewed.tool_text);
    let unknown = view(&client, ANN, "call").await.unwrap();
    assert!(unknown.secret_request.is_none() && unknown.variables.len() == 2);
}

/// `S-8`: what a lost key sealed is told as such and hides no other secret; a new key takes over at the next start.
#[tokio::test]
async fn keys_are_rotated_by_the_file_and_a_lost_one_is_told() {
    let rig = rig().await;
    with_skill(&rig).await;
    let claims = rig.claims("red", "ann", Role::Maintainer);
    let list = pb::ListSecretsRequest { parent: ANN.to_owned() };
    secrets(&rig, &claims)
        .set_secret(set(ANN, "API_TOKEN", VALUE))
        .await
        .unwrap();
    let file = rig.folder().join("skills/secrets.key");
    let old = std::fs::read_to_string(&file).unwrap();
    let write = |text: &str| steward_runtime::data_dir::write_private(&file, text.as_bytes()).unwrap();
    let new = "5a".repeat(32);
    write(&format!("{new}\n{old}"));
    let rig = rig.edited_by_hand(&[]).await;
    // Sealed with the new key at the start, so that the old one can go.
    write(&new);
    let rig = rig.edited_by_hand(&[]).await;
    let client = secrets(&rig, &claims);
    let delivered = client.deliver_secrets(deliver("call")).await.unwrap();
    assert_eq!(delivered.secrets[0].value, VALUE);
    write(&"6b".repeat(32));
    let rig = rig.edited_by_hand(&[]).await;
    let client = secrets(&rig, &claims);
    client
        .set_secret(set(ANN, "API_BASE", "https://api.example"))
        .await
        .unwrap();
    let listed = client.list_secrets(list).await.unwrap().secrets;
    let readable = listed.iter().map(|secret| secret.readable).collect::<Vec<_>>();
    assert_eq!(readable, [true, false], "{listed:?}");
    let delivered = client.deliver_secrets(deliver("call")).await.unwrap();
    assert_eq!(
        (delivered.secrets.len(), delivered.missing[0].name.as_str()),
        (1, "API_TOKEN")
    );
    // A sealed value that was moved to another variable is damage and no value.
    let moved = "UPDATE secrets SET sealed = (SELECT sealed FROM secrets WHERE name = 'API_TOKEN'), key = (SELECT key FROM secrets WHERE name = 'API_BASE') WHERE name = 'API_BASE'";
    let rig = rig.edited_by_hand(&[moved]).await;
    let error = secrets(&rig, &claims)
        .deliver_secrets(deliver("call"))
        .await
        .unwrap_err();
    assert_eq!((error.kind, reason(&error)), (ErrorKind::DataLoss, "DATA_DAMAGED"));
}
