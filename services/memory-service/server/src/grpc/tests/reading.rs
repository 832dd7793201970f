use steward_base::ErrorKind;

use super::*;

fn list(parent: &str, page_size: i32, page_token: &str) -> pb::ListEntriesRequest {
    pb::ListEntriesRequest {
        parent: parent.to_owned(),
        page_size,
        page_token: page_token.to_owned(),
    }
}

#[tokio::test]
async fn entries_are_paged_in_order_and_a_token_is_bound_to_its_store() {
    let rig = Rig::new("memory-pages").await;
    let ann = rig.ann();
    ann.apply(request(
        ANN,
        "r1",
        (0..5).map(|at| add(&format!("fact {at}"))).collect(),
    ))
    .await
    .unwrap();
    let mut seen = Vec::new();
    let mut token = String::new();
    loop {
        let page = ann.list_entries(list(ANN, 2, &token)).await.unwrap();
        seen.extend(page.entries.into_iter().map(|entry| entry.content));
        token = page.next_page_token;
        if token.is_empty() {
            break;
        }
        if seen.len() == 2 {
            ann.apply(request(ANN, "r2", vec![remove("fact 1")])).await.unwrap();
        }
    }
    assert_eq!(seen, ["fact 0", "fact 1", "fact 2", "fact 3", "fact 4"]);
    let token = ann.list_entries(list(ANN, 2, "")).await.unwrap().next_page_token;
    let error = ann.list_entries(list(TEAM, -1, &token)).await.unwrap_err();
    let fields: Vec<&str> = error
        .violations
        .iter()
        .map(|violation| violation.field.as_str())
        .collect();
    assert_eq!(fields, ["page_size", "page_token"]);
}

#[tokio::test]
async fn history_shows_who_wrote_what_on_which_evidence_and_can_be_put_back() {
    let rig = Rig::new("memory-history").await;
    let ann = rig.ann();
    let mut write = request(ANN, "job1/1/0", vec![add("Prefers tea")]);
    write.evidence = Some(cited(common::Integrity::Workspace));
    write.reason = "said twice".to_owned();
    let entry = rig.review(1).apply(write).await.unwrap().changes[0].entry.clone();
    ann.apply(request(ANN, "r2", vec![remove("tea")])).await.unwrap();
    let revisions = pb::ListEntryRevisionsRequest {
        parent: entry.clone(),
        page_size: 1,
        page_token: String::new(),
    };
    let newest = ann.list_entry_revisions(revisions.clone()).await.unwrap();
    assert!(newest.revisions[0].removed && newest.revisions[0].revision == 2);
    let page_token = newest.next_page_token;
    let first = ann
        .list_entry_revisions(pb::ListEntryRevisionsRequest {
            page_token,
            ..revisions
        })
        .await
        .unwrap();
    assert!(first.next_page_token.is_empty());
    let provenance = first.revisions[0].provenance.clone().unwrap();
    assert_eq!(provenance.origin(), common::Origin::Review);
    assert_eq!(provenance.evidence, Some(cited(common::Integrity::Workspace)));
    assert_eq!(
        (provenance.job.as_str(), provenance.session.as_str()),
        ("job1", "teams/red/sessions/s1")
    );
    assert_eq!(provenance.reason, "said twice");

    let get = pb::GetEntryRequest { name: entry.clone() };
    assert_eq!(ann.get_entry(get.clone()).await.unwrap_err().reason, "ENTRY_NOT_FOUND");
    let revert = pb::RevertEntryRequest {
        name: entry,
        revision: 1,
        etag: "1".to_owned(),
        request_id: "v1".to_owned(),
    };
    assert_eq!(
        ann.revert_entry(revert.clone()).await.unwrap_err().reason,
        "ETAG_MISMATCH"
    );
    let back = ann
        .revert_entry(pb::RevertEntryRequest {
            etag: "2".to_owned(),
            ..revert
        })
        .await
        .unwrap()
        .entry;
    assert_eq!(ann.get_entry(get).await.unwrap().entry, back);
    assert_eq!(
        back.map(|entry| (entry.content, entry.revision)),
        Some(("Prefers tea".to_owned(), 3))
    );
}

#[tokio::test]
async fn what_is_foreign_looks_exactly_like_what_is_missing() {
    let rig = Rig::new("memory-foreign").await;
    let entry = rig
        .ann()
        .apply(request(ANN, "r1", vec![add("A-ONLY-7")]))
        .await
        .unwrap()
        .changes[0]
        .entry
        .clone();
    let nobody = "teams/red/users/nobody/memory/notes";
    let others = [
        rig.user("red", "bob", Role::Admin),
        rig.user("blue", "ann", Role::Admin),
    ];
    for other in &others {
        for (real, absent) in [(ANN, nobody), ("teams/red/users/ann/memory/profile", nobody)] {
            let seen = other.list_entries(list(real, 0, "")).await.unwrap_err();
            let missing = other.list_entries(list(absent, 0, "")).await.unwrap_err();
            assert_eq!((seen.kind, seen.reason), (ErrorKind::NotFound, "STORE_NOT_FOUND"));
            assert_eq!((seen.kind, seen.reason), (missing.kind, missing.reason));
            assert_eq!(seen.message.replace(real, ""), missing.message.replace(absent, ""));
            let write = other.apply(request(real, "r1", vec![add("x")])).await.unwrap_err();
            assert_eq!(write.reason, "STORE_NOT_FOUND");
        }
        let get = other
            .get_entry(pb::GetEntryRequest { name: entry.clone() })
            .await
            .unwrap_err();
        assert_eq!((get.kind, get.reason), (ErrorKind::NotFound, "ENTRY_NOT_FOUND"));
        let revisions = pb::ListEntryRevisionsRequest {
            parent: entry.clone(),
            page_size: 0,
            page_token: String::new(),
        };
        assert_eq!(
            other.list_entry_revisions(revisions).await.unwrap_err().reason,
            "ENTRY_NOT_FOUND"
        );
        let snapshot = pb::GetSnapshotRequest {
            user: "teams/red/users/ann".to_owned(),
            project: String::new(),
            ..Default::default()
        };
        assert_eq!(
            other.get_snapshot(snapshot).await.unwrap_err().kind,
            ErrorKind::NotFound
        );
    }
    let proposals = pb::ListProposalsRequest {
        parent: "teams/red".to_owned(),
        ..pb::ListProposalsRequest::default()
    };
    assert_eq!(
        others[1].list_proposals(proposals).await.unwrap_err().kind,
        ErrorKind::NotFound
    );
}

#[tokio::test]
async fn the_snapshot_shows_each_owner_and_names_the_revisions_shown() {
    let rig = Rig::new("memory-snapshot").await;
    let max = rig.user("red", "max", Role::Maintainer);
    let entry = rig
        .ann()
        .apply(request(ANN, "r1", vec![add("Prefers tea")]))
        .await
        .unwrap()
        .changes[0]
        .entry
        .clone();
    max.apply(request(TEAM, "r1", vec![add("Deploy on Mondays")]))
        .await
        .unwrap();
    max.apply(request(
        "teams/red/projects/site/memory/notes",
        "r2",
        vec![add("Uses pnpm")],
    ))
    .await
    .unwrap();
    let ask = |project: &str| pb::GetSnapshotRequest {
        user: "teams/red/users/ann".to_owned(),
        project: project.to_owned(),
        ..Default::default()
    };
    let snapshot = rig.turn("t1").get_snapshot(ask("site")).await.unwrap();
    assert_eq!(
        snapshot.text,
        "## Notes of team red\n- Deploy on Mondays\n\n## Notes of project site\n- Uses pnpm\n\n\
         ## Your notes for ann\n- Prefers tea"
    );
    assert_eq!(snapshot.exposures.len(), 3);
    assert_eq!(
        (
            snapshot.exposures[2].artifact.as_str(),
            snapshot.exposures[2].revision.as_str()
        ),
        (entry.as_str(), "1")
    );
    assert_eq!(
        rig.turn("t1")
            .get_snapshot(ask("teams/red/projects/site"))
            .await
            .unwrap(),
        snapshot
    );
    let bobs = pb::GetSnapshotRequest {
        user: "teams/red/users/bob".to_owned(),
        project: String::new(),
        ..Default::default()
    };
    let bobs = rig.user("red", "bob", Role::Member).get_snapshot(bobs).await.unwrap();
    assert_eq!(bobs.text, "## Notes of team red\n- Deploy on Mondays");
    let error = rig
        .turn("t1")
        .get_snapshot(ask("teams/blue/projects/site"))
        .await
        .unwrap_err();
    assert_eq!(error.violations[0].field, "project");
}

#[tokio::test]
async fn a_turn_reaches_only_what_its_capabilities_name() {
    let rig = Rig::new("memory-capabilities").await;
    let denied = rig
        .turn("t1")
        .get_entry(pb::GetEntryRequest {
            name: format!("{ANN}/entries/e1"),
        })
        .await
        .unwrap_err();
    assert_eq!(denied.kind, ErrorKind::Forbidden);
    let anonymous = MemoryClient::new(rig.built.local_client());
    assert_eq!(
        anonymous.list_entries(list(ANN, 0, "")).await.unwrap_err().kind,
        ErrorKind::Unauthenticated
    );
    let viewer = rig.user("red", "vic", Role::Viewer);
    assert!(viewer.list_entries(list(TEAM, 0, "")).await.is_ok());
    let write = viewer.apply(request(TEAM, "r1", vec![add("x")])).await.unwrap_err();
    assert_eq!(write.kind, ErrorKind::Forbidden);
}
