//! The scenarios, each on both engines.

use std::time::Duration;

use steward_base::{ErrorKind, Fault};

use super::{LEASE, Rig, about, anyone, in_memory, job, on_sqlite, team};
use crate::{
    Cancelled, ClaimRequest, Enqueued, Failure, JobState, ListJobs, NewJob, QueueError, QueueStats, Release, Sweep,
};

macro_rules! on_both_engines {
    ($($scenario:ident),+ $(,)?) => {
        mod memory {
            use super::*;
            $(#[tokio::test] async fn $scenario() { super::$scenario(in_memory()).await; })+
        }
        mod sqlite {
            use super::*;
            $(#[tokio::test] async fn $scenario() { super::$scenario(on_sqlite().await).await; })+
        }
    };
}

on_both_engines!(
    a_job_goes_from_in_to_done,
    an_id_that_ever_existed_is_not_put_in_again,
    a_newer_job_absorbs_a_waiting_one,
    two_jobs_on_one_matter_never_run_together,
    a_delayed_job_is_not_handed_out_early,
    a_job_claimed_after_its_start_by_time_is_late,
    a_clock_that_is_set_back_holds_nothing_up,
    a_stale_fence_changes_nothing,
    a_heartbeat_keeps_the_lease,
    an_expired_job_is_handed_out_again,
    a_late_worker_may_finish_what_nobody_else_took,
    failures_back_off_and_end_after_the_last_try,
    a_failure_that_no_retry_can_heal_ends_at_once,
    giving_way_costs_no_try_and_is_limited,
    a_shutdown_costs_nothing,
    a_waiting_job_is_cancelled_at_once,
    a_running_job_hears_of_its_cancellation,
    a_running_job_is_asked_to_give_way,
    teams_take_turns,
    a_team_runs_no_more_than_its_cap,
    workers_claim_only_their_kinds,
    a_dead_job_can_be_brought_back,
    the_queue_shows_how_it_stands,
    jobs_are_listed_in_the_order_of_arrival,
    another_teams_job_is_not_there,
);

fn failure(retry: bool) -> Failure {
    Failure {
        message: "the model is not there".to_owned(),
        retry,
        not_before: None,
    }
}

fn is_stale<T: std::fmt::Debug>(outcome: Result<T, QueueError>) {
    let error = outcome.expect_err("a stale claim");
    assert!(matches!(error, QueueError::StaleFence { .. }), "{error:?}");
    assert_eq!((error.kind(), error.reason()), (ErrorKind::Conflict, "STALE_FENCE"));
}

async fn a_job_goes_from_in_to_done(rig: Rig) {
    assert_eq!(rig.put(job("t", "a")).await, Enqueued::New);
    let claimed = rig.take().await.expect("a job");
    assert_eq!((claimed.claim.job.as_str(), claimed.claim.fence), ("a", 1));
    assert_eq!(claimed.lease_until, rig.job("t", "a").await.created_at.plus(LEASE));
    assert_eq!(
        (claimed.job.state, claimed.job.attempts, claimed.late),
        (JobState::Running, 1, false)
    );
    assert!(rig.take().await.is_none(), "it is taken");
    rig.queue.check(&claimed.claim).await.expect("current");
    rig.queue.complete(&claimed.claim).await.expect("done");
    let done = rig.job("t", "a").await;
    assert_eq!(
        (done.state, done.lease_until, done.worker),
        (JobState::Done, None, None)
    );
    assert!(done.finished_at.is_some());
    assert!(rig.take().await.is_none());
}

async fn an_id_that_ever_existed_is_not_put_in_again(rig: Rig) {
    rig.put(job("t", "a")).await;
    let changed = NewJob {
        payload: "other".to_owned(),
        ..job("t", "a")
    };
    assert_eq!(rig.put(changed.clone()).await, Enqueued::Known(JobState::Waiting));
    let claim = rig.take_claim().await;
    assert_eq!(rig.put(changed.clone()).await, Enqueued::Known(JobState::Running));
    rig.queue.complete(&claim).await.expect("done");
    assert_eq!(rig.put(changed).await, Enqueued::Known(JobState::Done));
    assert_eq!(rig.job("t", "a").await.payload, "a");
    assert_eq!(rig.put(job("u", "a")).await, Enqueued::New, "ids are the team's own");
}

async fn a_newer_job_absorbs_a_waiting_one(rig: Rig) {
    rig.put(about("s1", job("t", "a"))).await;
    rig.put(about("s2", job("t", "other"))).await;
    assert_eq!(
        rig.put(about("s1", job("t", "b"))).await,
        Enqueued::Absorbed("a".to_owned())
    );
    assert_eq!(
        rig.put(about("s1", job("u", "c"))).await,
        Enqueued::New,
        "another team's matter"
    );
    let other_kind = NewJob {
        kind: "curation".to_owned(),
        ..about("s1", job("t", "d"))
    };
    assert_eq!(rig.put(other_kind).await, Enqueued::New, "another kind of work");

    let absorbed = rig.job("t", "a").await;
    assert_eq!(
        (absorbed.state, absorbed.absorbed_by.as_deref()),
        (JobState::Absorbed, Some("b"))
    );
    let newer = rig.job("t", "b").await;
    assert_eq!((newer.state, newer.payload.as_str()), (JobState::Waiting, "a+b"));
}

async fn two_jobs_on_one_matter_never_run_together(rig: Rig) {
    rig.put(about("s1", job("t", "a"))).await;
    let running = rig.take_claim().await;
    assert_eq!(
        rig.put(about("s1", job("t", "b"))).await,
        Enqueued::New,
        "a running job is not absorbed"
    );
    assert!(rig.take().await.is_none());
    rig.queue.complete(&running).await.expect("done");
    assert_eq!(rig.take_claim().await.job, "b");
}

async fn a_delayed_job_is_not_handed_out_early(rig: Rig) {
    let due = rig.clock.advance(Duration::ZERO).plus(Duration::from_mins(10));
    rig.put(NewJob {
        run_at: Some(due),
        ..job("t", "a")
    })
    .await;
    assert!(rig.take().await.is_none());
    assert_eq!(rig.queue.stats().await.expect("stats").next_due, Some(due));
    rig.clock.advance(Duration::from_mins(10));
    assert_eq!(rig.take_claim().await.job, "a");
}

async fn a_job_claimed_after_its_start_by_time_is_late(rig: Rig) {
    let start_by = rig.clock.advance(Duration::ZERO).plus(Duration::from_mins(4));
    for id in ["a", "b"] {
        rig.put(NewJob {
            start_by: Some(start_by),
            ..job("t", id)
        })
        .await;
    }
    assert!(!rig.take().await.expect("a job").late);
    rig.clock.advance(Duration::from_mins(5));
    let late = rig.take().await.expect("a job");
    assert_eq!((late.claim.job.as_str(), late.late), ("b", true));
}

/// A worker is stopped (its machine sleeps, or it is held by a debugger) while the machine's clock is set back by hours: its
/// job is taken back after the lease all the same, what is due is handed out, and a time that a caller gives is still kept.
async fn a_clock_that_is_set_back_holds_nothing_up(rig: Rig) {
    rig.put(job("t", "held")).await;
    let held = rig.take_claim().await;
    rig.put(job("u", "waits")).await;
    let back = rig.clock.advance(Duration::ZERO).minus(Duration::from_hours(6));
    rig.clock.set(back);
    let in_a_minute = back.plus(Duration::from_mins(1));
    rig.put(NewJob {
        run_at: Some(in_a_minute),
        start_by: Some(in_a_minute),
        ..job("u", "later")
    })
    .await;
    assert_eq!(rig.queue.stats().await.expect("stats").next_due, Some(in_a_minute));
    let waited = rig.take_claim().await;
    assert_eq!(waited.job, "waits");
    rig.queue.complete(&waited).await.expect("current");
    assert!(rig.take().await.is_none(), "the other is not due yet");
    for _ in 0..2 {
        rig.clock.advance(LEASE / 2);
        rig.queue.stats().await.expect("somebody looks every now and then");
    }
    let later = rig.take().await.expect("its time has come");
    assert_eq!((later.claim.job.as_str(), later.late), ("later", true));
    assert_eq!(rig.job("t", "held").await.state, JobState::Waiting, "its lease is over");
    is_stale(rig.queue.complete(&held).await);
}

async fn a_stale_fence_changes_nothing(rig: Rig) {
    rig.put(job("t", "a")).await;
    let stale = rig.take_claim().await;
    rig.clock.advance(LEASE);
    rig.queue.sweep().await.expect("a sweep");
    rig.clock.advance(Duration::from_mins(1));
    let current = rig.take_claim().await;
    assert_eq!((stale.fence, current.fence), (1, 2));

    let before = rig.job("t", "a").await;
    is_stale(rig.queue.check(&stale).await);
    is_stale(rig.queue.heartbeat(&stale, LEASE).await);
    is_stale(rig.queue.complete(&stale).await);
    is_stale(rig.queue.fail(&stale, failure(true)).await);
    is_stale(rig.queue.release(&stale, Release::GiveWay).await);
    is_stale(rig.queue.release(&stale, Release::Shutdown).await);
    assert_eq!(rig.job("t", "a").await, before);

    rig.queue.complete(&current).await.expect("done");
    is_stale(rig.queue.complete(&current).await);
}

async fn a_heartbeat_keeps_the_lease(rig: Rig) {
    rig.put(job("t", "a")).await;
    let claim = rig.take_claim().await;
    for _ in 0..5 {
        let now = rig.clock.advance(LEASE / 2);
        let beat = rig.queue.heartbeat(&claim, LEASE).await.expect("current");
        assert_eq!(beat.lease_until, now.plus(LEASE));
        assert!(!beat.cancel_requested && !beat.yield_requested);
        assert_eq!(rig.queue.sweep().await.expect("a sweep"), Sweep::default());
    }
}

async fn an_expired_job_is_handed_out_again(rig: Rig) {
    rig.put(job("t", "a")).await;
    for attempt in 1..=3 {
        assert_eq!(rig.take_claim().await.fence, attempt);
        rig.clock.advance(LEASE);
        let swept = rig.queue.sweep().await.expect("a sweep");
        let expected = if attempt < 3 {
            Sweep { waiting: 1, ended: 0 }
        } else {
            Sweep { waiting: 0, ended: 1 }
        };
        assert_eq!(swept, expected);
        rig.clock.advance(Duration::from_mins(2));
    }
    let dead = rig.job("t", "a").await;
    assert_eq!((dead.state, dead.attempts), (JobState::Dead, 3));
    assert!(dead.last_error.is_some());
}

async fn a_late_worker_may_finish_what_nobody_else_took(rig: Rig) {
    rig.put(job("t", "a")).await;
    let claim = rig.take_claim().await;
    rig.clock.advance(LEASE * 3);
    rig.queue.complete(&claim).await.expect("nobody else has it");
    assert_eq!(rig.queue.sweep().await.expect("a sweep"), Sweep::default());
}

async fn failures_back_off_and_end_after_the_last_try(rig: Rig) {
    rig.put(job("t", "a")).await;
    for wait in [30, 60] {
        let claim = rig.take_claim().await;
        assert_eq!(
            rig.queue.fail(&claim, failure(true)).await.expect("current"),
            JobState::Waiting
        );
        rig.clock.advance(Duration::from_secs(wait - 1));
        assert!(rig.take().await.is_none(), "{wait} seconds are not over");
        rig.clock.advance(Duration::from_secs(1));
    }
    let last = rig.take_claim().await;
    assert_eq!(
        rig.queue.fail(&last, failure(true)).await.expect("current"),
        JobState::Dead
    );
    let dead = rig.job("t", "a").await;
    assert_eq!(
        (dead.attempts, dead.last_error.as_deref()),
        (3, Some("the model is not there"))
    );

    rig.put(job("t", "b")).await;
    let claim = rig.take_claim().await;
    let at = rig.clock.advance(Duration::ZERO).plus(Duration::from_hours(1));
    let later = Failure {
        not_before: Some(at),
        ..failure(true)
    };
    rig.queue.fail(&claim, later).await.expect("current");
    assert_eq!(rig.job("t", "b").await.run_at, at, "the worker knew better");
}

async fn a_failure_that_no_retry_can_heal_ends_at_once(rig: Rig) {
    rig.put(job("t", "a")).await;
    let claim = rig.take_claim().await;
    assert_eq!(
        rig.queue.fail(&claim, failure(false)).await.expect("current"),
        JobState::Dead
    );
}

async fn giving_way_costs_no_try_and_is_limited(rig: Rig) {
    rig.put(about("s1", job("t", "a"))).await;
    for releases in 1..=2 {
        let claim = rig.take_claim().await;
        assert_eq!(
            rig.queue.release(&claim, Release::GiveWay).await.expect("current"),
            JobState::Waiting
        );
        let waiting = rig.job("t", "a").await;
        assert_eq!((waiting.attempts, waiting.releases), (0, releases));
    }
    rig.put(about("s1", job("t", "b"))).await;
    let third = rig.take().await.expect("a job");
    assert_eq!(
        (third.job.id.as_str(), third.job.releases),
        ("b", 2),
        "absorbing does not renew the right"
    );
    let refused = rig
        .queue
        .release(&third.claim, Release::GiveWay)
        .await
        .expect_err("used up");
    assert!(matches!(refused, QueueError::NoReleaseLeft { releases: 2, .. }));
    rig.queue.complete(&third.claim).await.expect("it goes on running");
}

async fn a_shutdown_costs_nothing(rig: Rig) {
    rig.put(job("t", "a")).await;
    for fence in 1..=9 {
        let claim = rig.take_claim().await;
        assert_eq!(claim.fence, fence);
        rig.queue.release(&claim, Release::Shutdown).await.expect("current");
    }
    let waiting = rig.job("t", "a").await;
    assert_eq!((waiting.attempts, waiting.releases), (0, 0));
}

async fn a_waiting_job_is_cancelled_at_once(rig: Rig) {
    rig.put(job("t", "a")).await;
    assert_eq!(
        rig.queue.cancel(&team("t"), "a").await.expect("known"),
        Cancelled::AtOnce
    );
    assert_eq!(
        rig.queue.cancel(&team("t"), "a").await.expect("known"),
        Cancelled::Already(JobState::Cancelled)
    );
    assert!(rig.take().await.is_none());
}

async fn a_running_job_hears_of_its_cancellation(rig: Rig) {
    for (id, ends) in [("a", "release"), ("b", "fail"), ("c", "expire"), ("d", "complete")] {
        rig.put(job("t", id)).await;
        let claim = rig.take_claim().await;
        assert_eq!(
            rig.queue.cancel(&team("t"), id).await.expect("known"),
            Cancelled::Requested
        );
        assert!(
            rig.queue
                .heartbeat(&claim, LEASE)
                .await
                .expect("current")
                .cancel_requested
        );
        let expected = match ends {
            "release" => rig.queue.release(&claim, Release::GiveWay).await.expect("current"),
            "fail" => rig.queue.fail(&claim, failure(true)).await.expect("current"),
            "expire" => {
                rig.clock.advance(LEASE);
                rig.queue.sweep().await.expect("a sweep");
                JobState::Cancelled
            }
            _ => {
                rig.queue.complete(&claim).await.expect("it was faster");
                JobState::Done
            }
        };
        assert_eq!(rig.job("t", id).await.state, expected, "{ends}");
        assert!(expected.is_final(), "{ends}");
    }
}

async fn a_running_job_is_asked_to_give_way(rig: Rig) {
    rig.put(about("s1", job("t", "a"))).await;
    assert_eq!(
        rig.queue.ask_to_give_way(&team("t"), "s1").await.expect("an answer"),
        0,
        "it waits"
    );
    let claim = rig.take_claim().await;
    assert_eq!(rig.queue.ask_to_give_way(&team("t"), "s1").await.expect("an answer"), 1);
    assert_eq!(rig.queue.ask_to_give_way(&team("t"), "s2").await.expect("an answer"), 0);
    assert!(
        rig.queue
            .heartbeat(&claim, LEASE)
            .await
            .expect("current")
            .yield_requested
    );
    rig.queue.release(&claim, Release::GiveWay).await.expect("current");
    let again = rig.take_claim().await;
    assert!(
        !rig.queue
            .heartbeat(&again, LEASE)
            .await
            .expect("current")
            .yield_requested
    );
}

async fn teams_take_turns(rig: Rig) {
    for number in 0..20 {
        rig.put(job("big", &format!("b{number:02}"))).await;
    }
    for number in 0..3 {
        rig.put(job("small", &format!("s{number}"))).await;
    }
    let mut order = Vec::new();
    for _ in 0..8 {
        let claim = rig.take_claim().await;
        order.push(claim.job.clone());
        rig.queue.complete(&claim).await.expect("done");
    }
    assert_eq!(order, ["b00", "s0", "b01", "s1", "b02", "s2", "b03", "b04"]);
}

async fn a_team_runs_no_more_than_its_cap(rig: Rig) {
    for id in ["a", "b", "c"] {
        rig.put(job("t", id)).await;
    }
    let first = rig.take_claim().await;
    rig.take_claim().await;
    assert!(rig.take().await.is_none(), "two run");
    rig.put(job("u", "x")).await;
    assert_eq!(rig.take_claim().await.job, "x", "another team is not held up");
    rig.queue.complete(&first).await.expect("done");
    assert_eq!(rig.take_claim().await.job, "c");
}

async fn workers_claim_only_their_kinds(rig: Rig) {
    rig.put(job("t", "a")).await;
    rig.put(NewJob {
        kind: "curation".to_owned(),
        ..job("t", "b")
    })
    .await;
    let curator = || ClaimRequest {
        kinds: vec!["curation".to_owned(), "report".to_owned()],
        ..anyone()
    };
    assert_eq!(
        rig.queue
            .claim(curator())
            .await
            .expect("a claim")
            .expect("a job")
            .claim
            .job,
        "b"
    );
    assert!(rig.queue.claim(curator()).await.expect("a claim").is_none());
    assert_eq!(rig.take_claim().await.job, "a");
}

async fn a_dead_job_can_be_brought_back(rig: Rig) {
    rig.put(job("t", "a")).await;
    let waiting = rig.queue.revive(&team("t"), "a").await.expect_err("it waits");
    assert!(matches!(
        waiting,
        QueueError::NotRevivable {
            state: JobState::Waiting,
            ..
        }
    ));
    let claim = rig.take_claim().await;
    rig.queue.fail(&claim, failure(false)).await.expect("current");
    rig.queue.revive(&team("t"), "a").await.expect("it is dead");
    let again = rig.take().await.expect("a job");
    assert_eq!(
        (again.claim.fence, again.job.attempts),
        (2, 1),
        "fences go on, tries start afresh"
    );
    is_stale(rig.queue.complete(&claim).await);
}

async fn the_queue_shows_how_it_stands(rig: Rig) {
    assert_eq!(rig.queue.stats().await.expect("stats"), QueueStats::default());
    rig.put(job("t", "a")).await;
    rig.clock.advance(Duration::from_secs(90));
    rig.put(job("t", "b")).await;
    let claim = rig.take_claim().await;
    rig.put(job("u", "c")).await;
    rig.clock.advance(Duration::from_secs(10));
    let stats = rig.queue.stats().await.expect("stats");
    assert_eq!(
        stats.by_state.into_iter().collect::<Vec<_>>(),
        [(JobState::Waiting, 2), (JobState::Running, 1)]
    );
    assert_eq!((stats.ready, stats.oldest_ready), (2, Some(Duration::from_secs(10))));
    assert_eq!(claim.job, "a");
}

async fn jobs_are_listed_in_the_order_of_arrival(rig: Rig) {
    for (team_name, id) in [("u", "z"), ("t", "y"), ("t", "x"), ("u", "w")] {
        rig.put(job(team_name, id)).await;
    }
    rig.queue.cancel(&team("t"), "y").await.expect("known");
    let list = |team_name: Option<&str>, states: &[JobState], after, limit| ListJobs {
        team: team_name.map(team),
        states: states.to_vec(),
        after,
        limit,
    };
    for (list, expected) in [
        (list(None, &[], 0, 10), vec!["z", "y", "x", "w"]),
        (list(Some("t"), &[], 0, 10), vec!["y", "x"]),
        (
            list(None, &[JobState::Waiting, JobState::Dead], 0, 10),
            vec!["z", "x", "w"],
        ),
        (list(None, &[], 0, 2), vec!["z", "y"]),
        (list(None, &[], 2, 2), vec!["x", "w"]),
    ] {
        let ids: Vec<_> = rig
            .queue
            .list(list)
            .await
            .expect("a list")
            .into_iter()
            .map(|job| job.id)
            .collect();
        assert_eq!(ids, expected);
    }
}

async fn another_teams_job_is_not_there(rig: Rig) {
    rig.put(job("t", "a")).await;
    let claim = rig.take_claim().await;
    let foreign = crate::Claim {
        team: team("u"),
        ..claim
    };
    let error = rig.queue.complete(&foreign).await.expect_err("not theirs");
    assert!(matches!(error, QueueError::NoSuchJob { .. }));
    assert_eq!((error.kind(), error.reason()), (ErrorKind::NotFound, "JOB_NOT_FOUND"));
    assert!(rig.queue.get(&team("u"), "a").await.is_err());
    assert!(rig.queue.cancel(&team("u"), "a").await.is_err());
}
