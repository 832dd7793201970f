//! What only the SQLite engine can be asked: the owner's transactions, and the time after a restart.

use std::sync::Arc;

use steward_testkit::MockClock;

use super::*;
use crate::contract::{about, anyone, job, open, options, team};

#[tokio::test]
async fn a_job_and_its_owners_row_end_together_or_not_at_all() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let sqlite = open(&folder).await;
    let queue = SqliteQueue::new(sqlite.clone(), Arc::new(MockClock::default()), options());
    queue.enqueue(job("t", "a")).await.expect("put in");
    let claim = queue.claim(anyone()).await.expect("a claim").expect("a job").claim;

    let end = |claim: Claim| {
        let (jobs, sqlite) = (queue.jobs(), sqlite.clone());
        async move {
            sqlite
                .write(move |connection| {
                    async move {
                        jobs.complete(connection, &claim).await?;
                        sqlx::query("INSERT INTO ledger (job) VALUES (?)")
                            .bind(&claim.job)
                            .execute(connection)
                            .await?;
                        Ok::<_, QueueError>(())
                    }
                    .boxed()
                })
                .await
        }
    };
    sqlite
        .write(|connection| {
            async move {
                sqlx::query("INSERT INTO ledger (job) VALUES ('a')")
                    .execute(connection)
                    .await?;
                Ok::<_, QueueError>(())
            }
            .boxed()
        })
        .await
        .expect("something in the way");
    end(claim.clone()).await.expect_err("the ledger has it already");
    queue.check(&claim).await.expect("so the job still runs");

    sqlite
        .write(|connection| {
            async move {
                sqlx::query("DELETE FROM ledger").execute(connection).await?;
                Ok::<_, QueueError>(())
            }
            .boxed()
        })
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
    let jobs = queue.jobs();
    sqlite
        .write(move |connection| {
            async move {
                for number in 0..FLOOD {
                    jobs.enqueue(connection, job("flood", &number.to_string())).await?;
                }
                for name in ["a", "b", "c"] {
                    jobs.enqueue(connection, job(name, "1")).await?;
                    jobs.enqueue(connection, job(name, "2")).await?;
                }
                Ok::<_, QueueError>(())
            }
            .boxed()
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

/// Ended jobs are kept for ever; the planner once read all of them for each claim and each sweep.
#[tokio::test]
async fn a_claim_reads_what_waits_and_runs_and_not_what_has_ended() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let sqlite = open(&folder).await;
    let mut reader = sqlite.read().await.expect("a reader");
    for sql in [rows::NEXT, rows::EXPIRED] {
        let explain = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}"));
        let steps: Vec<(i64, i64, i64, String)> =
            sqlx::query_as(explain).fetch_all(&mut *reader).await.expect("a plan");
        for (.., step) in &steps {
            let whole_table = step.starts_with("SCAN") && !step.contains("queue_job_running");
            let of_lanes = step == "SCAN lane" || step.contains("json_each");
            assert!(!whole_table || of_lanes, "{steps:#?}");
            let by_team_only = step.contains("PRIMARY KEY (team=?)") || step.contains("queue_job_matter (team=?)");
            assert!(!by_team_only, "{steps:#?}");
        }
    }
}
