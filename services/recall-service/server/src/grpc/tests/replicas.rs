//! Two orchestrators at one session, and what health says of the index.

use futures::future::join_all;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::*;

/// What one replica sends that begins a turn of its own upon the state it read.
fn begins(replica: &str, round: u64, read: &pb::Session) -> pb::AppendMessagesRequest {
    pb::AppendMessagesRequest {
        acquire_lease: Some(pb::TurnLease {
            turn: format!("turn-{replica}-{round}"),
            holder: replica.to_owned(),
            ttl: Some(prost_types::Duration { seconds: 60, nanos: 0 }),
        }),
        expected_etag: read.etag.clone(),
        request_id: format!("begin-{replica}-{round}"),
        ..append(S1, 0, read.last_seq, vec![said(&format!("{replica} in round {round}"))])
    }
}

/// `T-7`: of two replicas that begin a turn, or write, upon the same state, exactly one wins. The other is told which of its
/// expectations did not hold, and leaves nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_replicas_at_one_session_exactly_one_writes_and_nothing_is_lost() {
    let rig = Rig::new("recall-replicas").await;
    rig.create("s1").await;
    let mut kept = Vec::new();
    for round in 0..12 {
        let replicas = ["p1", "p2"].map(|name| (name, rig.store()));
        let read = rig.store().get_session(get(S1)).await.unwrap().session.unwrap();
        let begun = join_all(replicas.iter().map(|(name, store)| {
            let request = begins(name, round, &read);
            async move { (*name, store.append_messages(request).await) }
        }))
        .await;
        let (won, lost): (Vec<_>, Vec<_>) = begun.into_iter().partition(|(_, outcome)| outcome.is_ok());
        assert_eq!((won.len(), lost.len()), (1, 1), "round {round}");
        let (winner, fence) = (won[0].0, won[0].1.as_ref().unwrap().fence);
        let refused = lost[0].1.as_ref().unwrap_err();
        assert!(
            ["TURN_RUNNING", "ETAG_MISMATCH"].contains(&refused.reason),
            "{refused:?}"
        );
        kept.push(format!("{winner} in round {round}"));

        // The loser takes over once the lease has ended, and both write at the same place, each with its own fence.
        rig.clock.advance(Duration::from_secs(61));
        let replicas = ["p1", "p2"].map(|name| (name, rig.store()));
        let loser = lost[0].0;
        let taken = pb::AcquireTurnLeaseRequest {
            session: S1.to_owned(),
            turn: format!("over-{loser}-{round}"),
            holder: loser.to_owned(),
            ttl: Some(prost_types::Duration { seconds: 60, nanos: 0 }),
        };
        let over = rig.store().acquire_turn_lease(taken).await.unwrap().fence;
        let place = read.last_seq + 1;
        let written = join_all(replicas.iter().map(|(name, store)| {
            let own = if *name == loser { over } else { fence };
            let request = append(S1, own, place, vec![said(&format!("{name} goes on in {round}"))]);
            async move { (*name, store.append_messages(request).await) }
        }))
        .await;
        for (name, outcome) in written {
            match outcome {
                Ok(_) => assert_eq!(name, loser, "round {round}"),
                Err(error) => assert_eq!((name, error.reason), (winner, "STALE_FENCE"), "round {round}"),
            }
        }
        kept.push(format!("{loser} goes on in {round}"));
        let release = pb::ReleaseTurnLeaseRequest {
            session: S1.to_owned(),
            fence: over,
        };
        rig.store().release_turn_lease(release).await.unwrap();
    }
    let all = pb::ListMessagesRequest {
        session: S1.to_owned(),
        page_size: 1_000,
        ..Default::default()
    };
    let stored = rig.store().list_messages(all).await.unwrap().messages;
    let texts: Vec<&str> = stored.iter().map(|message| message.text.as_str()).collect();
    assert_eq!(texts, kept);
}

/// The service goes on; the index has a name of its own, which answers that it is not well until it is.
#[tokio::test]
async fn health_tells_of_a_damaged_index_until_it_is_made_anew() {
    let mut rig = Rig::new("recall-health").await;
    rig.built.start_background(&rig.boot.tasks);
    rig.create("s1").await;
    rig.say(S1, "a goosander").await;
    let mut health = HealthClient::new(rig.built.local_client());
    let mut status = async |service: &str| {
        let request = HealthCheckRequest {
            service: service.to_owned(),
        };
        health.check(request).await.unwrap().into_inner().status()
    };
    assert_eq!(status(crate::INDEX_HEALTH).await, ServingStatus::Serving);
    let admin = Claims {
        role: Some(Role::Admin),
        ..rig.person("red", "ann")
    };
    let store = SessionStoreClient::new(rig.wire(&admin));
    let check = |rebuild| pb::CheckIntegrityRequest {
        parent: "teams/red".to_owned(),
        rebuild,
    };
    assert!(store.check_integrity(check(false)).await.unwrap().consistent);
    harm(&rig.folder.path().join("recall/red.db"));
    assert!(!store.check_integrity(check(false)).await.unwrap().consistent);
    while status(crate::INDEX_HEALTH).await == ServingStatus::Serving {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        status("steward.recall.v1.RecallService").await,
        ServingStatus::Serving,
        "the service itself goes on"
    );
    assert!(store.check_integrity(check(true)).await.unwrap().consistent);
    while status(crate::INDEX_HEALTH).await != ServingStatus::Serving {
        tokio::task::yield_now().await;
    }
}

/// Takes the sizes of all entries out of the index, as somebody with a shell could.
fn harm(path: &Path) {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.execute("DELETE FROM message_index_docsize", ()).unwrap();
}
