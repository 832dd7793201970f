//! Export and erase (`M-14`).

use steward_proto::memory::v1::export_user_memory_response::Holding;

use super::*;

const USER: &str = "teams/red/users/ann";
const SECRET: &str = "zweihundertsiebzig Kaffeetassen";

fn erase(shared: bool) -> pb::EraseUserMemoryRequest {
    pb::EraseUserMemoryRequest {
        user: USER.to_owned(),
        shared,
    }
}

async fn holdings(client: &MemoryClient) -> Result<Vec<Holding>, ClientError> {
    let request = pb::ExportUserMemoryRequest { user: USER.to_owned() };
    let mut stream = client.export_user_memory(request).await?;
    let mut holdings = Vec::new();
    while let Some(item) = stream.message().await? {
        holdings.extend(item.holding);
    }
    Ok(holdings)
}

async fn fill(rig: &Rig) {
    rig.ann()
        .apply(request(ANN, "r1", vec![add(SECRET), add("Uses vim")]))
        .await
        .unwrap();
    rig.ann()
        .apply(request(ANN, "r2", vec![remove("Uses vim")]))
        .await
        .unwrap();
    rig.ann()
        .apply(request(TEAM, "r3", vec![add("A proposal by Ann")]))
        .await
        .unwrap();
    let import = pb::ImportEntriesRequest {
        store: ANN.to_owned(),
        file: b"caf\xe9".to_vec().into(),
        dry_run: false,
        request_id: "r4".to_owned(),
    };
    rig.ann().import_entries(import).await.unwrap();
    let by_hand = rig.user("red", "ann", Role::Maintainer);
    by_hand
        .apply(request(TEAM, "r5", vec![add("Ann keeps the release calendar")]))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_person_and_nobody_else_gets_all_that_is_held_on_them() {
    let rig = Rig::new("memory-export-user").await;
    fill(&rig).await;
    let all = holdings(&rig.ann()).await.unwrap();
    let revisions = all.iter().filter(|one| matches!(one, Holding::Revision(_))).count();
    let proposals = all.iter().filter(|one| matches!(one, Holding::Proposal(_))).count();
    let held = all.iter().filter(|one| matches!(one, Holding::Held(_))).count();
    assert_eq!((revisions, proposals, held), (4, 1, 1));
    let admin = rig.user("red", "max", Role::Admin);
    assert_eq!(holdings(&admin).await.unwrap_err().reason, "STORE_NOT_FOUND");
}

#[tokio::test]
async fn what_is_erased_is_found_neither_by_asking_nor_on_the_disk() {
    let rig = Rig::new("memory-erase").await;
    fill(&rig).await;
    let bob = rig.user("red", "bob", Role::Member);
    assert_eq!(
        bob.erase_user_memory(erase(false)).await.unwrap_err().reason,
        "STORE_NOT_FOUND"
    );
    assert!(
        rig.turn("t1").erase_user_memory(erase(false)).await.is_err(),
        "the agent destroys nothing"
    );

    let receipt = rig.ann().erase_user_memory(erase(false)).await.unwrap();
    assert_eq!(
        (
            receipt.entries,
            receipt.revisions,
            receipt.proposals,
            receipt.found_after
        ),
        (1, 3, 1, 0)
    );
    assert!(receipt.others >= 2);
    assert_eq!(receipt.derived_entries.len(), 1);
    assert_eq!(
        receipt.derived_entries[0].support(),
        pb::derived_entry::Support::Independent
    );
    assert!(contents(&rig.ann(), ANN).await.is_empty());
    assert_eq!(
        holdings(&rig.ann()).await.unwrap().len(),
        1,
        "the shared note stays and is named"
    );

    // A writer that read before the erasure holds an etag that is no more.
    let mut slow = request(ANN, "r9", vec![add("late")]);
    slow.etag = "2".to_owned();
    assert_eq!(rig.ann().apply(slow).await.unwrap_err().reason, "ETAG_MISMATCH");

    let rig = rig.restart().await;
    for file in ["memory.db", "memory.db-wal"] {
        let bytes = std::fs::read(rig.folder.join("memory").join(file)).unwrap_or_default();
        let needle = SECRET.as_bytes();
        assert!(
            !bytes.windows(needle.len()).any(|window| window == needle),
            "{file} still has it"
        );
    }
    let again = rig.ann().erase_user_memory(erase(false)).await.unwrap();
    assert_eq!((again.revisions, again.found_after), (0, 0));
}

#[tokio::test]
async fn an_admin_erases_without_reading_and_shared_notes_that_rest_on_one_person_go_if_asked() {
    let rig = Rig::new("memory-erase-admin").await;
    let by_agent = rig.claims("red", "ann", Role::Maintainer).for_turn(
        SessionId::parse("s1").unwrap(),
        "t1",
        BTreeSet::from(["memory".to_owned()]),
    );
    rig.client(&by_agent)
        .apply(request(TEAM, "r1", vec![add("The mirror is at beta")]))
        .await
        .unwrap();
    let admin = rig.user("red", "max", Role::Admin);
    let receipt = admin.erase_user_memory(erase(true)).await.unwrap();
    assert!(receipt.derived_entries[0].erased);
    assert!(contents(&admin, TEAM).await.is_empty());
}
