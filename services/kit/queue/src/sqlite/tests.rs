//! What only the SQLite engine can be asked: the owner's transactions, and the time after a restart.

use std::sync::Arc;

use steward_testkit::MockClock;

use super::*;
use crate::contract::{anyone, job, open, options, team};

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
