//! Letting go of a person's reviews (`M-14`).

use super::*;

/// What has ended and what waits goes with its journal; what runs is asked to stop, stays, and goes with the next call.
/// Another person's reviews are as they were.
#[tokio::test]
async fn a_persons_reviews_go_with_their_journals_and_one_that_runs_goes_next() {
    let rig = Rig::new("erase-reviews").await;
    let ben = Due {
        user: UserId::parse("ben").unwrap(),
        ..due("bens", "s9", 2, MEMORY)
    };
    rig.ledger.enqueue(vec![due("r1", "s1", 2, MEMORY)]).await.unwrap();
    let claimed = rig.claim().await;
    let journal = rig.ledger.journal(&claimed.job.claim);
    let opening = Opening {
        corrections: Vec::new(),
        memory: Vec::new(),
        skills: Vec::new(),
        digest_for: Some("plumtree".to_owned()),
        context_window: 0,
    };
    journal.record_opening(&opening).await.unwrap();
    rig.settle(&claimed, HaltReason::Ended(Ending::Finished)).await;
    rig.ledger.enqueue(vec![due("r2", "s2", 2, MEMORY)]).await.unwrap();
    let running = rig.claim().await;
    rig.ledger.enqueue(vec![due("r3", "s3", 2, MEMORY), ben]).await.unwrap();

    let (erased, left) = rig.ledger.erase_reviews(&red(), &ann()).await.unwrap();
    assert_eq!((erased, left.len()), (2, 1));
    assert_eq!(left[0].as_str(), "r2");
    rig.settle(&running, HaltReason::Ended(Ending::Finished)).await;
    let (erased, left) = rig.ledger.erase_reviews(&red(), &ann()).await.unwrap();
    assert_eq!((erased, left.len()), (1, 0));
    assert!(rig.shown_after(0).await.is_empty());
    assert_eq!(rig.claim().await.review.id.as_str(), "bens");
    // Coming once more changes nothing: the queue knows it.
    assert_eq!(rig.ledger.enqueue(vec![due("r1", "s1", 2, MEMORY)]).await.unwrap(), 0);
    let folder = rig.folder.path().to_owned();
    rig.ledger.close().await;
    let stored = std::fs::read(folder.join("learning.db")).unwrap();
    assert!(!stored.windows(8).any(|window| window == b"plumtree"));
}
