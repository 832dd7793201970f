//! All that is held on a person, over all services: given out as one archive, and erased (`M-14`).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;

use std::collections::BTreeSet;
use std::path::Path;

use steward_client::ClientError;
use steward_proto::learning::v1 as learning;
use steward_proto::learning::v1::export_person_response::Held;
use steward_testkit::{ModelServer, Reply};
use steward_tests::{Person, Shape, Stack, script};

/// A word that stands in what the person said, in memory, in a skill and in a review.
const WORD: &str = "plumtree";

/// Everything that is held on the person: its kind and, where it has words, the words.
async fn exported(person: &Person) -> Result<Vec<(&'static str, String)>, ClientError> {
    let request = learning::ExportPersonRequest {
        user: person.user.clone(),
    };
    let mut stream = person.client.people.export_person(request).await?;
    let mut items = Vec::new();
    while let Some(item) = stream.message().await? {
        items.push(match item.held.expect("an item holds something") {
            Held::Session(session) => ("session", session.title),
            Held::Message(message) => ("message", message.message.unwrap().text),
            Held::Memory(memory) => ("memory", format!("{memory:?}")),
            Held::Skill(skill) => (
                "skill",
                skill
                    .files
                    .iter()
                    .map(|file| String::from_utf8_lossy(&file.content))
                    .collect(),
            ),
            Held::Review(review) => (
                "review",
                review.writes.iter().map(|write| write.preview.as_str()).collect(),
            ),
        });
    }
    Ok(items)
}

async fn erase(person: &Person, user: &str) -> Result<learning::ErasePersonResponse, ClientError> {
    let request = learning::ErasePersonRequest {
        user: user.to_owned(),
        shared: false,
    };
    person.client.people.erase_person(request).await
}

/// The databases below `folder` that hold the word, logs of writes included.
fn databases_with_the_word(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(databases_with_the_word(&path));
            continue;
        }
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = std::fs::read(&path).unwrap_or_default();
        if name.contains(".db") && bytes.windows(WORD.len()).any(|window| window == WORD.as_bytes()) {
            found.push(name);
        }
    }
    found
}

both_shapes!(everything_on_a_person_is_given_out_and_erased);

async fn everything_on_a_person_is_given_out_and_erased(shape: Shape) {
    let model = ModelServer::scripted(script::learner).await;
    let mut stack = Stack::start("people", shape, common::reviews_after_each_turn(&model));
    let owner = stack.owner().await;
    let session = owner.session(Vec::new()).await;
    owner
        .say(&session, &format!("Remember: the {WORD} stands by the gate"))
        .await;
    owner.reviews_ended(1).await;

    let items = exported(&owner).await.unwrap();
    let with_word: BTreeSet<&str> = items
        .iter()
        .filter(|(_, words)| words.contains(WORD))
        .map(|(kind, _)| *kind)
        .collect();
    assert_eq!(
        with_word,
        BTreeSet::from(["memory", "message", "review", "session", "skill"]),
        "{items:?}"
    );

    // A part that does not answer makes the call fail, and what was done stays done.
    stack.kill("memory-service");
    assert!(erase(&owner, &owner.user).await.is_err());
    stack.start_again("memory-service");
    let owner = stack.owner().await;
    let receipt = erase(&owner, &owner.user).await.unwrap();
    assert_eq!(receipt.found_after, 0, "{receipt:?}");
    assert!(exported(&owner).await.unwrap().is_empty());
    assert!(owner.notes().await.is_empty() && owner.reviews().await.is_empty());
    assert!(owner.search(WORD).await.conversations.is_empty());
    assert!(owner.view_skill("kept-lesson").await.is_err());
    let again = erase(&owner, &owner.user).await.unwrap();
    assert_eq!(
        again,
        learning::ErasePersonResponse::default(),
        "there is nothing left to erase"
    );

    stack.restart_all().await;
    assert_eq!(databases_with_the_word(&stack.data()), Vec::<String>::new());
}

both_shapes!(nobody_gives_out_or_erases_another_person);

async fn nobody_gives_out_or_erases_another_person(shape: Shape) {
    let model = ModelServer::scripted(|_| Reply::text("fine")).await;
    let stack = Stack::start("others", shape, common::no_reviews(&model));
    let owner = stack.owner().await;
    let other = format!("{}/users/somebody", owner.team);
    let request = learning::ExportPersonRequest { user: other };
    let mut refused = owner.client.people.export_person(request).await;
    if let Ok(stream) = &mut refused {
        let item = stream.message().await;
        assert_eq!(item.unwrap_err().reason, "INVALID_REQUEST");
    } else {
        assert_eq!(refused.unwrap_err().reason, "INVALID_REQUEST");
    }
    let elsewhere = erase(&owner, "teams/other/users/somebody").await.unwrap_err();
    assert_eq!(elsewhere.violations[0].field, "user");
}
