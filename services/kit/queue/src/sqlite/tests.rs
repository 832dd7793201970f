//! What only the SQLite engine can be asked: the owner's transactions, and the time after a restart.

use std::sync::Arc;

use steward_store::{Sql, StoreError};
use steward_testkit::MockClock;

use super::*;
use crate::contract::{LEASE, about, anyone, job, open, open_with, options, team};

#[tokio::test]
async fn a_job_and_its_owners_row_end_together_or_not_at_all() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let sqlite = open(&folder).await;
    let queue = SqliteQueue::new(sqlite.clone(), Arc::new(MockClock::default()), options());
    queue.enqueue(job("t", "a")).await.expect("put in");
    let claim = queue.claim(anyone()).await.expect("a claim").expect("a job").claim;

    let end = |claim: Claim| {
        let (steps, sqlite) = (queue.steps(), sqlite.clone());
        async move {
            sqlite
                .update(move |db| {
                    steps.complete(db, &claim)?;
                    db.execute("INSERT INTO ledger (job) VALUES (?)", [&claim.job])?;
                    Ok::<_, QueueError>(())
                })
                .await
        }
    };
    sqlite
        .update(|db| db.execute("INSERT INTO ledger (job) VALUES ('a')", ()))
        .await
        .expect("something in the way");
    end(claim.clone()).await.expect_err("the ledger has it already");
    queue.check(&claim).await.expect("so the job still runs");

    sqlite
        .update(|db| db.execute("DELETE FROM ledger", ()))
        .await
        .expect("the way is free");
    end(claim).await.expect("both");
    assert_eq!(queue.get(&team("t"), "a").await.expect("known").state, JobState::Done);
}

#[tokio::test]
async fn a_restart_keeps_jobs_claims_and_turns() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let clock = MockClock::default();
    let sqlite = open(&folder).await;
    let queue = SqliteQueue::new(sqlite.clone(), Arc::new(clock.clone()), options());
    for (team_name, id) in [("t", "a"), ("t", "b"), ("u", "c")] {
        queue.enqueue(job(team_name, id)).await.expect("put in");
    }
    let claim = queue.claim(anyone()).await.expect("a claim").expect("a job").claim;
    let before = queue.get(&team("t"), "a").await.expect("known");
    sqlite.close().await;

    let queue = SqliteQueue::new(open(&folder).await, Arc::new(clock), options());
    assert_eq!(queue.get(&team("t"), "a").await.expect("known"), before);
    queue.complete(&claim).await.expect("the claim outlives the process");
    let next = queue.claim(anyone()).await.expect("a claim").expect("a job").claim;
    assert_eq!(next.job, "c", "it is the other team's turn");
}

#[tokio::test]
async fn a_waiting_worker_is_woken() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let queue = SqliteQueue::new(open(&folder).await, Arc::new(MockClock::default()), options());
    let woken = queue.wakes().notified();
    tokio::pin!(woken);
    woken.as_mut().enable();
    queue.enqueue(job("t", "a")).await.expect("put in");
    woken.await;
}

/// Ten thousand jobs of one team do not hold up the few of others, and two workers never get the same one.
#[tokio::test]
async fn a_flood_of_one_team_holds_up_nobody_else() {
    const FLOOD: usize = 10_000;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let sqlite = open(&folder).await;
    let queue = SqliteQueue::new(sqlite.clone(), Arc::new(MockClock::default()), options());
    let steps = queue.steps();
    sqlite
        .update(move |db| {
            for number in 0..FLOOD {
                steps.enqueue(db, &job("flood", &number.to_string()))?;
            }
            for name in ["a", "b", "c"] {
                steps.enqueue(db, &job(name, "1"))?;
                steps.enqueue(db, &job(name, "2"))?;
            }
            Ok::<_, QueueError>(())
        })
        .await
        .expect("put in");
    let mut order: Vec<String> = Vec::new();
    for _ in 0..5 {
        let (one, two) = tokio::join!(queue.claim(anyone()), queue.claim(anyone()));
        let both = [one, two].map(|claimed| claimed.expect("a claim").expect("a job").claim);
        assert_ne!(both[0], both[1]);
        for claim in both {
            order.push(claim.team.to_string());
            queue.complete(&claim).await.expect("current");
        }
    }
    for name in ["a", "b", "c"] {
        let turns: Vec<usize> = (0..order.len()).filter(|at| order[*at] == name).collect();
        assert_eq!(turns.len(), 2, "{order:?}");
        assert!(turns[0] < 4 && turns[1] < 8, "each team once in four: {order:?}");
    }
    let stats = queue.stats().await.expect("stats");
    assert_eq!((stats.by_state[&JobState::Done], stats.ready), (10, 9_996));
}

/// A job that is cancelled while it is completed is one of the two, and its merge key is free either way.
#[tokio::test]
async fn cancelling_while_completing_and_putting_in_while_claiming_leave_one_truth() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let queue = SqliteQueue::new(open(&folder).await, Arc::new(MockClock::default()), options());
    for round in 0..10 {
        let (older, newer) = (format!("{round}-a"), format!("{round}-b"));
        queue.enqueue(about("m", job("t", &older))).await.expect("put in");
        let (claimed, put) = tokio::join!(queue.claim(anyone()), queue.enqueue(about("m", job("t", &newer))));
        let claim = claimed.expect("a claim").expect("a job").claim;
        match put.expect("put in") {
            Enqueued::Absorbed(absorbed) => assert_eq!((&absorbed, &claim.job), (&older, &newer)),
            Enqueued::New => assert_eq!(claim.job, older),
            Enqueued::Known(state) => panic!("{state}"),
        }
        let ended = team("t");
        let (cancelled, completed) = tokio::join!(queue.cancel(&ended, &claim.job), queue.complete(&claim));
        completed.expect("the claim is current whether or not it is to be cancelled");
        assert!(!matches!(cancelled.expect("known"), Cancelled::AtOnce));
        assert_eq!(
            queue.get(&ended, &claim.job).await.expect("known").state,
            JobState::Done
        );
        while let Some(next) = queue.claim(anyone()).await.expect("a claim") {
            queue.complete(&next.claim).await.expect("current");
        }
    }
}

/// The steps in which SQLite would run a statement. Which values it is given does not matter to them.
async fn plan(sqlite: &Sqlite, sql: &str) -> Vec<String> {
    let explain = Sql::built(format!("EXPLAIN QUERY PLAN {sql}"));
    let planned = sqlite.view(|db| {
        let mut statement = db.prepare(explain)?;
        let mut rows = statement.raw_query();
        let mut steps = Vec::new();
        while let Some(row) = rows.next()? {
            steps.push(row.get("detail")?);
        }
        Ok::<_, StoreError>(steps)
    });
    planned.await.expect("a plan")
}

/// Ended jobs are kept for ever; the planner once read all of them for each claim and each sweep.
#[tokio::test]
async fn a_claim_a_sweep_and_a_look_read_what_waits_and_runs_and_not_what_has_ended() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let sqlite = open(&folder).await;
    for sql in [
        table::NEXT,
        table::EXPIRED,
        table::STANDING,
        table::WAITING,
        table::LAST_CHANGE,
    ] {
        let steps = plan(&sqlite, sql).await;
        for step in &steps {
            let of_the_open = step.contains("queue_job_running") || step.contains("queue_job_waiting");
            let of_lanes = step == "SCAN lane" || step.contains("json_each");
            let of_counts = step.contains("queue_ended") || step.contains("subquery");
            let whole_table = step.starts_with("SCAN") && !of_the_open && !of_lanes && !of_counts;
            assert!(!whole_table, "{steps:#?}");
            let by_team_only = step.contains("PRIMARY KEY (team=?)") || step.contains("queue_job_matter (team=?)");
            assert!(!by_team_only, "{steps:#?}");
        }
    }
}

/// Counts are kept in step with every way in which a job may end or begin anew, and with a database of the first schema.
#[tokio::test]
async fn ended_jobs_are_counted_without_being_read() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let clock = MockClock::default();
    let sqlite = open(&folder).await;
    let queue = SqliteQueue::new(sqlite.clone(), Arc::new(clock.clone()), options());
    for id in ["done", "dead", "cancelled", "revived"] {
        queue.enqueue(job("t", id)).await.expect("put in");
    }
    for id in ["older", "newer"] {
        queue.enqueue(about("m", job("t", id))).await.expect("put in");
    }
    queue.cancel(&team("t"), "cancelled").await.expect("known");
    queue.cancel(&team("t"), "revived").await.expect("known");
    let claim = async |queue: &SqliteQueue| queue.claim(anyone()).await.expect("a claim").expect("a job").claim;
    queue.complete(&claim(&queue).await).await.expect("current");
    let failure = Failure {
        message: "it failed".to_owned(),
        retry: false,
        not_before: None,
    };
    queue.fail(&claim(&queue).await, failure).await.expect("current");
    queue.revive(&team("t"), "revived").await.expect("cancelled");
    let counted = async |queue: &SqliteQueue| queue.stats().await.expect("stats").by_state;
    let expected = [
        (JobState::Waiting, 2),
        (JobState::Done, 1),
        (JobState::Dead, 1),
        (JobState::Cancelled, 1),
        (JobState::Absorbed, 1),
    ];
    assert_eq!(counted(&queue).await, expected.into());
    sqlite
        .update(|db| db.execute("DELETE FROM queue_job WHERE id = 'dead'", ()))
        .await
        .expect("a purge");
    assert_eq!(counted(&queue).await.get(&JobState::Dead), None);
}

#[tokio::test]
async fn a_database_of_the_first_schema_is_counted_when_it_is_opened() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let first = open_with(&folder, &[SQLITE_SCHEMA]).await;
    first
        .update(|db| {
            for (id, state) in [("a", "done"), ("b", "done"), ("c", "absorbed"), ("d", "waiting")] {
                let sql = "INSERT INTO queue_job (team, id, seq, kind, payload, state, fence, attempts, releases,
                         created_at, run_at, cancel_requested, yield_requested)
                     VALUES ('t', ?1, unicode(?1), 'review', '', ?2, 1, 1, 0, 5, 5, 0, 0)";
                db.execute(sql, (id, state))?;
            }
            db.execute("INSERT INTO queue_lane (team, served) VALUES ('t', 3)", ())
        })
        .await
        .expect("as the first version left it");
    first.close().await;
    let queue = SqliteQueue::new(open(&folder).await, Arc::new(MockClock::default()), options());
    let expected = [(JobState::Waiting, 1), (JobState::Done, 2), (JobState::Absorbed, 1)];
    assert_eq!(queue.stats().await.expect("stats").by_state, expected.into());
    let next = queue.claim(anyone()).await.expect("a claim").expect("a job");
    assert_eq!(next.claim.job, "d");
}

/// The machine's clock was set back by hours while nothing ran: what waits is due all the same, and what a worker left
/// behind comes back after its lease.
#[tokio::test]
async fn a_clock_that_was_set_back_between_two_runs_holds_nothing_up() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let clock = MockClock::default();
    let sqlite = open(&folder).await;
    let queue = SqliteQueue::new(sqlite.clone(), Arc::new(clock.clone()), options());
    queue.enqueue(job("t", "left")).await.expect("put in");
    queue.claim(anyone()).await.expect("a claim").expect("a job");
    queue.enqueue(job("t", "waits")).await.expect("put in");
    sqlite.close().await;

    clock.set(clock.now().minus(Duration::from_hours(5)));
    let queue = SqliteQueue::new(open(&folder).await, Arc::new(clock.clone()), options());
    let next = queue.claim(anyone()).await.expect("a claim").expect("a job").claim;
    assert_eq!(next.job, "waits");
    queue.complete(&next).await.expect("current");
    for waiting in [0, 1] {
        clock.advance(LEASE / 2);
        assert_eq!(queue.sweep().await.expect("a sweep").waiting, waiting);
    }
    let next_due = queue
        .stats()
        .await
        .expect("stats")
        .next_due
        .expect("it waits for its next try");
    assert_eq!(
        next_due,
        clock.now().plus(options().backoff),
        "told by the machine's clock"
    );
}
