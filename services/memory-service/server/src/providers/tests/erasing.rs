//! A person in an external memory, erased; and a write that somebody waits for (`M-14`, `M-15`).

use super::*;

fn red() -> TeamId {
    TeamId::parse("red").unwrap()
}

fn person() -> UserId {
    UserId::parse("ann").unwrap()
}

async fn made(queued: Asked<Queued>) -> Asked<()> {
    match queued {
        Asked::Answered(queued) => queued.made().await,
        Asked::None => Asked::None,
        Asked::Unavailable => Asked::Unavailable,
    }
}

/// `M-14`: whatever it can do is said plainly.
#[tokio::test]
async fn a_person_is_erased_from_the_external_memory_or_the_answer_says_why_not() {
    assert_eq!(Desk::default().erase(&red(), &person()).await, PersonErasure::None);
    for (erases, became) in [(true, PersonErasure::Erased), (false, PersonErasure::Unsupported)] {
        let reference = Arc::new(Reference {
            erases,
            ..Reference::default()
        });
        let served = MemoryProviderServiceServer::new(Served(Arc::clone(&reference)));
        let (desk, _) = desk(Arc::new(GrpcProvider::over(steward_client::Wire::local(served))));
        let told = desk.sync(&ann(), &scope("s1"), "t1".to_owned(), "I like tea", "Noted");
        assert_eq!(made(told).await, Asked::Answered(()));
        for _ in 0..2 {
            assert_eq!(desk.erase(&red(), &person()).await, became);
        }
        assert_eq!(reference.heard().is_empty(), erases);
    }
}

/// `M-14`: of the sessions of this person alone, and whatever the provider makes of the rest.
#[tokio::test]
async fn the_sessions_of_an_erased_person_are_over_for_the_external_memory() {
    let reference = Arc::new(Reference::default());
    let (desk, _) = desk(reference.clone());
    for session in ["s1", "s2"] {
        let told = desk.sync(&ann(), &scope(session), "t1".to_owned(), "hello", "hi");
        assert_eq!(made(told).await, Asked::Answered(()));
    }
    let bob = Scope {
        user: UserId::parse("bob").unwrap(),
        ..scope("s3")
    };
    let told = desk.sync(&ann(), &bob, "t1".to_owned(), "hello", "hi");
    assert_eq!(made(told).await, Asked::Answered(()));
    let before = reference.heard().len();
    desk.erase(&red(), &person()).await;
    assert_eq!(reference.heard()[before..], ["SessionEnd", "SessionEnd"]);
    desk.erase(&red(), &person()).await;
    assert_eq!(reference.heard().len(), before + 2, "once");
}

/// `M-14`.
#[tokio::test(start_paused = true)]
async fn one_that_does_not_answer_has_failed_and_what_waited_is_told_no_more() {
    let (desk, _) = desk(Arc::new(Dead));
    let waiting = desk.sync(&ann(), &scope("s1"), "t1".to_owned(), "hello", "hi");
    assert_eq!(desk.erase(&red(), &person()).await, PersonErasure::Failed);
    assert_eq!(made(waiting).await, Asked::Unavailable);
    let stopping = tokio::time::Instant::now();
    let attached = &desk.attached[&red()];
    assert!(attached.lanes.lock().unwrap().is_empty());
    assert_eq!(stopping.elapsed(), Duration::ZERO);
}

/// `M-14`: through the server's own call, for that person alone.
#[tokio::test]
async fn a_mem0_server_erases_one_person_and_no_other() {
    steward_testkit::install_crypto();
    let (url, requests) = mem0().await;
    let provider = Mem0Provider::connect(&url, "k-1").unwrap();
    let bob = Scope {
        user: UserId::parse("bob").unwrap(),
        ..scope("s2")
    };
    let turn = Turn {
        id: "t1".to_owned(),
        user: "I prefer tea".to_owned(),
        assistant: "Noted".to_owned(),
    };
    provider.sync_turn(&scope("s1"), &turn).await.unwrap();
    provider.sync_turn(&bob, &turn).await.unwrap();
    for _ in 0..2 {
        assert_eq!(provider.erase_person(&red(), &person()).await.unwrap(), Erasing::Erased);
    }
    let left: Vec<Value> = requests
        .lock()
        .unwrap()
        .iter()
        .map(|(_, one)| one["user_id"].clone())
        .collect();
    assert_eq!(left, ["red/bob"]);
    let gone = Mem0Provider::connect("http://127.0.0.1:1", "").unwrap();
    assert!(gone.erase_person(&red(), &person()).await.is_err());
}

/// `M-15`: whoever waits learns what became of a write, hands it over again when it was given up, and never twice.
#[tokio::test(start_paused = true)]
async fn a_write_that_was_given_up_is_made_when_it_is_handed_over_again() {
    let reference = Arc::new(Reference::default());
    *reference.failing.lock().unwrap() = 3;
    let (desk, _) = desk(reference.clone());
    let hand_over = || desk.sync(&ann(), &scope("s1"), "t1".to_owned(), "hello", "hi");
    assert_eq!(made(hand_over()).await, Asked::Unavailable, "three tries failed");
    let (first, second) = tokio::join!(made(hand_over()), made(hand_over()));
    assert_eq!((first, second), (Asked::Answered(()), Asked::Answered(())));
    assert_eq!(made(hand_over()).await, Asked::Answered(()));
    assert_eq!(reference.heard(), ["t1: hello / hi"]);
}
