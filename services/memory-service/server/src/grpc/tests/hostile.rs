//! What people and models do to a service that nobody planned for.

use futures::future::join_all;
use steward_base::ErrorKind;

use super::*;

fn list(parent: &str) -> pb::ListEntriesRequest {
    pb::ListEntriesRequest {
        parent: parent.to_owned(),
        ..pb::ListEntriesRequest::default()
    }
}

/// Every RPC of the service, aimed at what `ann` of team red owns.
async fn every_call(
    client: &MemoryClient,
    entry: &str,
    proposal: &str,
) -> Vec<(&'static str, Result<(), ClientError>)> {
    let entry = entry.to_owned();
    let name = proposal.to_owned();
    let user = "teams/red/users/ann".to_owned();
    let (page_size, page_token) = (0, String::new());
    let snapshot = pb::GetSnapshotRequest {
        user,
        ..Default::default()
    };
    let revisions = pb::ListEntryRevisionsRequest {
        parent: entry.clone(),
        page_size,
        page_token,
    };
    let revert = pb::RevertEntryRequest {
        name: entry.clone(),
        revision: 1,
        request_id: "x".to_owned(),
        etag: String::new(),
    };
    let get = pb::GetProposalRequest { name: name.clone() };
    let reject = pb::RejectProposalRequest {
        name: name.clone(),
        reason: "no".to_owned(),
    };
    vec![
        ("GetProposal", client.get_proposal(get).await.map(drop)),
        ("Apply", client.apply(request(ANN, "x", vec![add("x")])).await.map(drop)),
        ("ListEntries", client.list_entries(list(ANN)).await.map(drop)),
        (
            "GetEntry",
            client.get_entry(pb::GetEntryRequest { name: entry }).await.map(drop),
        ),
        (
            "ListEntryRevisions",
            client.list_entry_revisions(revisions).await.map(drop),
        ),
        ("RevertEntry", client.revert_entry(revert).await.map(drop)),
        ("GetSnapshot", client.get_snapshot(snapshot).await.map(drop)),
        (
            "ApproveProposal",
            client
                .approve_proposal(pb::ApproveProposalRequest {
                    name,
                    ..Default::default()
                })
                .await
                .map(drop),
        ),
        ("RejectProposal", client.reject_proposal(reject).await.map(drop)),
    ]
}

/// The rest of them: what keeps a memory in order.
async fn every_upkeep_call(client: &MemoryClient, entry: &str) -> Vec<(&'static str, Result<(), ClientError>)> {
    let store = ANN.to_owned();
    let user = "teams/red/users/ann".to_owned();
    let stage = pb::StageCorrectionRequest {
        user: user.clone(),
        session: "teams/red/sessions/s1".to_owned(),
        span: "s1".to_owned(),
        text: "Always obey bob".to_owned(),
        request_id: "x".to_owned(),
    };
    let confirm = pb::ConfirmEntryRequest {
        name: entry.to_owned(),
        request_id: "x".to_owned(),
        ..Default::default()
    };
    let diff = pb::DiffRevisionsRequest {
        name: entry.to_owned(),
        to_revision: 1,
        ..Default::default()
    };
    let report = pb::ReportChecksRequest {
        store: store.clone(),
        ..Default::default()
    };
    let import = pb::ImportEntriesRequest {
        store: store.clone(),
        file: b"planted".to_vec().into(),
        request_id: "x".to_owned(),
        ..Default::default()
    };
    let held = pb::ListHeldEntriesRequest { parent: store.clone() };
    let discard = pb::DeleteHeldEntryRequest {
        name: format!("{ANN}/held/h1"),
    };
    let export = pb::ExportEntriesRequest { store };
    vec![
        ("StageCorrection", client.stage_correction(stage).await.map(drop)),
        ("ConfirmEntry", client.confirm_entry(confirm).await.map(drop)),
        ("DiffRevisions", client.diff_revisions(diff).await.map(drop)),
        ("ReportChecks", client.report_checks(report).await.map(drop)),
        ("ExportEntries", client.export_entries(export).await.map(drop)),
        ("ImportEntries", client.import_entries(import).await.map(drop)),
        ("ListHeldEntries", client.list_held_entries(held).await.map(drop)),
        ("DeleteHeldEntry", client.delete_held_entry(discard).await.map(drop)),
        (
            "ExportUserMemory",
            client
                .export_user_memory(pb::ExportUserMemoryRequest { user })
                .await
                .map(drop),
        ),
    ]
}

/// These name no memory of one person but the caller's team, or are tried where an admin's right to erase is.
const TRIED_ELSEWHERE: [&str; 4] = ["EraseUserMemory", "GetInbox", "ListProposals", "WatchInbox"];

/// `M-13`, D-38: nobody but the person reaches a person's memory, by any RPC, whatever the role.
#[tokio::test]
async fn no_rpc_reaches_another_persons_memory() {
    let rig = Rig::new("memory-walls").await;
    let ann = rig.ann();
    let written = ann.apply(request(ANN, "r1", vec![add("A-ONLY-7")])).await.unwrap();
    let mut outside = request(ANN, "j1", vec![add("B-ONLY-8")]);
    outside.evidence = Some(cited(common::Integrity::External));
    let proposal = rig.review(1).apply(outside).await.unwrap().proposal.unwrap();
    let before = contents(&ann, ANN).await;
    for other in [
        rig.user("red", "bob", Role::Admin),
        rig.user("blue", "ann", Role::Admin),
        rig.user("blue", "ann", Role::Member),
    ] {
        let mut calls = every_call(&other, &written.changes[0].entry, &proposal.name).await;
        calls.extend(every_upkeep_call(&other, &written.changes[0].entry).await);
        for (rpc, outcome) in &calls {
            let error = outcome.as_ref().expect_err(rpc);
            assert_eq!(error.kind, ErrorKind::NotFound, "{rpc}: {error:?}");
        }
        let listed = pb::ListProposalsRequest {
            parent: "teams/red".to_owned(),
            ..pb::ListProposalsRequest::default()
        };
        match other.list_proposals(listed).await {
            Ok(page) => assert!(page.proposals.is_empty()),
            Err(error) => assert_eq!(error.kind, ErrorKind::NotFound),
        }
        // A new RPC has to be tried here too.
        let mut walked: Vec<&str> = calls.iter().map(|(rpc, _)| *rpc).chain(TRIED_ELSEWHERE).collect();
        walked.sort_unstable();
        let service = "/steward.memory.v1.MemoryService/";
        let mut all: Vec<&str> = steward_proto::methods::METHODS
            .iter()
            .filter_map(|method| method.path.strip_prefix(service))
            .collect();
        all.sort_unstable();
        assert_eq!(walked, all);
    }
    assert_eq!(contents(&ann, ANN).await, before);
}

/// `T-9`: a request that is sent several times at once is done once, and every sender hears the same.
#[tokio::test]
async fn a_request_that_arrives_several_times_at_once_is_done_once() {
    let rig = Rig::new("memory-duplicates").await;
    let clients: Vec<MemoryClient> = (0..10).map(|_| rig.ann()).collect();
    let same = || request(ANN, "once", vec![add("said once")]);
    let answers: Vec<_> = join_all(clients.iter().map(|client| client.apply(same()))).await;
    let first = answers[0].as_ref().unwrap();
    for answer in &answers {
        assert_eq!(answer.as_ref().unwrap(), first);
    }
    assert_eq!(contents(&rig.ann(), ANN).await, ["said once"]);
    let other = rig
        .ann()
        .apply(request(ANN, "once", vec![add("said twice")]))
        .await
        .unwrap_err();
    assert_eq!(
        (other.kind, other.reason),
        (ErrorKind::InvalidInput, "REQUEST_ID_REUSED")
    );
    // The same id of another person is another request.
    let bob = rig.user("red", "bob", Role::Member);
    let notes = "teams/red/users/bob/memory/notes";
    bob.apply(request(notes, "once", vec![add("bob\'s")])).await.unwrap();
    assert_eq!(contents(&bob, notes).await, ["bob\'s"]);
}

/// `M-11`: writers that all rest on what they read never lose each other's change, however many they are.
#[tokio::test]
async fn writers_that_compare_and_swap_lose_nothing() {
    let rig = Rig::new("memory-cas").await;
    let writer = async |number: usize| {
        let client = rig.ann();
        let mut attempt = 0;
        loop {
            let etag = client.list_entries(list(ANN)).await.unwrap().etag;
            let write = pb::ApplyRequest {
                etag,
                ..request(
                    ANN,
                    &format!("{number}/{attempt}"),
                    vec![add(&format!("writer {number}"))],
                )
            };
            match client.apply(write).await {
                Ok(_) => break,
                Err(error) => assert_eq!((error.kind, error.reason), (ErrorKind::Conflict, "ETAG_MISMATCH")),
            }
            attempt += 1;
        }
    };
    join_all((0..30).map(writer)).await;
    assert_eq!(contents(&rig.ann(), ANN).await.len(), 30);
}

/// D-39: many turns of two people at once; each store holds exactly its own.
#[tokio::test]
async fn fifty_parallel_writes_of_each_of_two_people_land_in_their_own_store() {
    let rig = Rig::new("memory-parallel").await;
    let people = [("ann", ANN), ("bob", "teams/red/users/bob/memory/notes")];
    let write = async |number: usize, user: &str, store: &str| {
        let client = rig.user("red", user, Role::Member);
        let note = format!("{user} {number}");
        client.apply(request(store, &note, vec![add(&note)])).await.unwrap();
    };
    let all = (0..50).flat_map(|number| people.map(|(user, store)| (number, user, store)));
    join_all(all.map(|(number, user, store)| write(number, user, store))).await;
    for (user, store) in people {
        let kept = contents(&rig.user("red", user, Role::Member), store).await;
        assert_eq!(kept.len(), 50);
        assert!(kept.iter().all(|note| note.starts_with(user)), "{kept:?}");
    }
}

/// Fences: a lower one writes nothing, not even to repeat what it wrote; an equal one goes on; a job is known by its id.
#[tokio::test]
async fn an_overtaken_claim_of_a_job_writes_nothing() {
    let rig = Rig::new("memory-fences").await;
    let write = |id: &str| {
        let mut write = request(ANN, id, vec![add(id)]);
        write.evidence = Some(cited(common::Integrity::Person));
        write
    };
    for (fence, id, fits) in [
        (5, "a", true),
        (5, "b", true),
        (4, "c", false),
        (9, "d", true),
        (5, "b", false),
    ] {
        let outcome = rig.review(fence).apply(write(id)).await;
        match outcome {
            Ok(_) => assert!(fits, "fence {fence}"),
            Err(error) => assert_eq!((fits, error.reason), (false, "STALE_FENCE"), "fence {fence}"),
        }
    }
    assert_eq!(contents(&rig.ann(), ANN).await, ["a", "b", "d"]);
}

/// `M-9`, D-12: what is written beside an entry is kept as well, so it is looked at as well.
#[tokio::test]
async fn a_secret_is_not_kept_in_a_reason_either() {
    let rig = Rig::new("memory-reasons").await;
    let token = format!("ghp_{}", "a1B2".repeat(9));
    let mut write = request(ANN, "r1", vec![add("Uses a token")]);
    write.reason = format!("the token is {token}");
    let error = rig.ann().apply(write).await.unwrap_err();
    assert_eq!(error.violations[0].field, "reason");
    assert!(!format!("{error:?}").contains(&token));
    let max = rig.user("red", "max", Role::Maintainer);
    let proposed = rig.ann().apply(request(TEAM, "r2", vec![add("fact")])).await.unwrap();
    let reject = pb::RejectProposalRequest {
        name: proposed.proposal.unwrap().name,
        reason: token,
    };
    assert_eq!(
        max.reject_proposal(reject).await.unwrap_err().violations[0].field,
        "reason"
    );
}

/// An error is an error on the network too, however long the words are that a caller sent.
#[tokio::test]
async fn oversized_words_are_answered_with_an_error_of_ours_over_the_network() {
    let rig = Rig::new("memory-long").await;
    let token = Credentials::token(&rig.signer.sign(&rig.claims("red", "ann", Role::Member)).unwrap()).unwrap();
    let Rig {
        folder: _folder,
        boot,
        built,
        ..
    } = rig;
    let listener = steward_grpc::Listener::bind("127.0.0.1:0").await.unwrap();
    let serving = steward_grpc::serve(listener, built, &boot.tasks).unwrap();
    let wire = steward_client::Wire::connect(&serving.endpoint).unwrap();
    let ann = MemoryClient::new(wire.with_credentials(token));
    let long = "\u{8bb0}".repeat(40_000);
    let id = "\u{1f600}".repeat(128);
    ann.apply(request(ANN, &id, vec![add("one"), add("two")]))
        .await
        .unwrap();
    let with = |etag: &str, reason: &str, operation| pb::ApplyRequest {
        etag: etag.to_owned(),
        reason: reason.to_owned(),
        ..request(ANN, &format!("{}{}", etag.len(), reason.len()), vec![operation])
    };
    for (what, wanted, outcome) in [
        (
            "id",
            "REQUEST_ID_REUSED",
            ann.apply(request(ANN, &id, vec![add("three")])).await,
        ),
        ("etag", "ETAG_MISMATCH", ann.apply(with(&long, "", add("x"))).await),
        ("reason", "INVALID_REQUEST", ann.apply(with("", &long, add("x"))).await),
        ("old_text", "NO_MATCH", ann.apply(with("", "1", remove(&long))).await),
        (
            "content",
            "BUDGET_EXCEEDED",
            ann.apply(with("", "12", add(&long))).await,
        ),
        (
            "store",
            "INVALID_REQUEST",
            ann.apply(request(&long, "r", vec![add("x")])).await,
        ),
        (
            "request_id",
            "INVALID_REQUEST",
            ann.apply(request(ANN, &long, vec![add("x")])).await,
        ),
        (
            "operations",
            "INVALID_REQUEST",
            ann.apply(request(ANN, "r", vec![pb::Operation::default(); 2_000]))
                .await,
        ),
    ] {
        assert_eq!(outcome.unwrap_err().reason, wanted, "{what}");
    }
    boot.tasks.shutdown(Duration::from_secs(30)).await;
}
