//! Due-ness and the life of a run in the ledger, under a clock that the test moves.

use std::sync::Arc;

use steward_curator_core::curation::execute::{Plan, RunJournal as _};
use steward_curator_core::curation::report::{Counts, Finished};
use steward_curator_core::curation::transitions::Settings;
use steward_curator_core::review::Problem;
use steward_queue::QueueOptions;
use steward_testkit::{MockClock, TempDir};

use super::*;

const LEASE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const RHYTHM: Rhythm = Rhythm {
    enabled: true,
    interval: Duration::from_hours(168),
    idle: Duration::from_hours(2),
};

struct Rig {
    folder: TempDir,
    clock: Arc<MockClock>,
    ledger: Ledger,
    made: std::cell::Cell<u32>,
}

async fn open(folder: &TempDir, clock: &Arc<MockClock>) -> Ledger {
    let options = QueueOptions {
        jitter: 0.0,
        ..QueueOptions::default()
    };
    Ledger::open(folder.join("learning.db"), 2, options, clock.clone())
        .await
        .unwrap()
}

fn red() -> TeamId {
    TeamId::parse("red").unwrap()
}

fn finished() -> RunTried {
    RunTried::Finished(Box::new(Finished {
        result: RunResult {
            changes: 1,
            summary: "1 archived".to_owned(),
            ..RunResult::default()
        },
        run_json: "{}".to_owned(),
        markdown: "# Curation".to_owned(),
    }))
}

impl Rig {
    async fn new(name: &str) -> Self {
        let (folder, clock) = (TempDir::new(name), Arc::new(MockClock::default()));
        let ledger = open(&folder, &clock).await;
        Self {
            folder,
            clock,
            ledger,
            made: std::cell::Cell::new(0),
        }
    }

    fn id(&self) -> RunId {
        self.made.set(self.made.get() + 1);
        RunId::new(
            steward_base::Clock::now(&*self.clock),
            &format!("{:032x}", self.made.get()),
        )
    }

    /// One look at the team, last active so long ago.
    async fn tick(&self, idle: Duration) -> u64 {
        let now = steward_base::Clock::now(&*self.clock);
        let candidate = Candidate {
            team: red(),
            id: self.id(),
            last_active: Some(now.minus(idle)),
            users: vec![UserId::parse("ann").unwrap()],
        };
        self.ledger.enqueue_due(vec![candidate], RHYTHM.into()).await.unwrap()
    }

    fn new_run(&self, kind: Kind, request_id: &str) -> NewRun {
        NewRun {
            team: red(),
            id: self.id(),
            kind,
            requester: UserId::parse("ann").unwrap(),
            request_id: request_id.to_owned(),
            undoes: None,
        }
    }

    async fn claim(&self) -> ClaimedRun {
        self.ledger.claim_run("w", LEASE).await.unwrap().expect("a run waits")
    }

    async fn finish(&self) -> Run {
        let claimed = self.claim().await;
        self.ledger.settle_run(&claimed.job.claim, finished()).await.unwrap()
    }

    async fn status(&self) -> TeamClock {
        self.ledger.curation_status(&red()).await.unwrap().0.expect("a clock")
    }
}

#[tokio::test]
async fn first_sight_seeds_and_one_run_follows_each_interval() {
    // D-26.
    let rig = Rig::new("curation-due").await;
    for _ in 0..3 {
        assert_eq!(rig.tick(100 * HOUR).await, 0);
    }
    rig.clock.advance(167 * HOUR);
    assert_eq!(rig.tick(100 * HOUR).await, 0);
    rig.clock.advance(HOUR);
    assert_eq!(rig.tick(HOUR).await, 0, "somebody is there");
    assert_eq!(rig.tick(2 * HOUR).await, 1);
    assert_eq!(rig.tick(2 * HOUR).await, 0, "it waits already");
    assert_eq!(rig.finish().await.requester, None);
    assert_eq!(rig.tick(2 * HOUR).await, 0);
    assert_eq!(rig.status().await.runs, 1);
    rig.clock.advance(168 * HOUR);
    assert_eq!(rig.tick(2 * HOUR).await, 1);
}

#[tokio::test]
async fn a_clock_that_jumps_makes_one_run_or_none() {
    let rig = Rig::new("curation-jump").await;
    let begin = steward_base::Clock::now(&*rig.clock);
    rig.tick(3 * HOUR).await;
    rig.clock.advance(9_000 * HOUR);
    assert_eq!(rig.tick(3 * HOUR).await, 1);
    rig.finish().await;
    assert_eq!(rig.tick(3 * HOUR).await, 0, "missed intervals were made up for");
    rig.clock.set(begin);
    assert_eq!(rig.tick(3 * HOUR).await, 0, "a clock that went back ran something");
    rig.clock.advance(168 * HOUR);
    assert_eq!(rig.tick(3 * HOUR).await, 1, "the interval counts from the step back");
}

#[tokio::test]
async fn a_paused_team_runs_nothing_by_itself_and_all_that_is_asked_for() {
    let rig = Rig::new("curation-pause").await;
    rig.tick(3 * HOUR).await;
    rig.ledger.set_paused(&red(), true).await.unwrap();
    rig.clock.advance(500 * HOUR);
    assert_eq!(rig.tick(3 * HOUR).await, 0);
    rig.ledger.request_run(rig.new_run(Kind::DryRun, "r1")).await.unwrap();
    rig.finish().await;
    rig.ledger.set_paused(&red(), false).await.unwrap();
    assert_eq!(rig.tick(3 * HOUR).await, 1);
}

#[tokio::test]
async fn a_dry_run_leaves_clock_and_count_alone() {
    // D-25.
    let rig = Rig::new("curation-dry").await;
    rig.tick(3 * HOUR).await;
    let before = rig.status().await;
    rig.clock.advance(HOUR);
    rig.ledger.request_run(rig.new_run(Kind::DryRun, "r1")).await.unwrap();
    rig.finish().await;
    assert_eq!(rig.status().await, before);
    rig.ledger.request_run(rig.new_run(Kind::Curate, "r2")).await.unwrap();
    rig.finish().await;
    assert_eq!(rig.status().await.runs, 1);
}

#[tokio::test]
async fn a_request_that_comes_twice_makes_one_run_and_there_is_one_at_a_time() {
    let rig = Rig::new("curation-request").await;
    let first = rig.ledger.request_run(rig.new_run(Kind::Curate, "r1")).await.unwrap();
    let again = rig.ledger.request_run(rig.new_run(Kind::Curate, "r1")).await.unwrap();
    assert_eq!(again, first);
    let other = rig.ledger.request_run(rig.new_run(Kind::DryRun, "r1")).await;
    assert!(matches!(other, Err(Error::RequestIdReused { .. })));
    let second = rig.ledger.request_run(rig.new_run(Kind::Curate, "r2")).await;
    assert!(matches!(second, Err(Error::CurationOpen { run }) if run == first.name()));
    let done = rig.finish().await;
    let (kept, json, page) = rig.ledger.run_report(&red(), &first.id).await.unwrap();
    assert_eq!((kept, json.as_str(), page.as_str()), (done, "{}", "# Curation"));
    let second = rig.ledger.request_run(rig.new_run(Kind::Curate, "r2")).await.unwrap();
    assert_ne!(second.id, first.id, "two runs of one second have one name");
    let undo = NewRun {
        undoes: Some(second.id),
        ..rig.new_run(Kind::Rollback, "r3")
    };
    let refused = rig.ledger.request_run(undo).await;
    assert!(matches!(refused, Err(Error::NotUndoable { state: "queued", .. })));
    let runs = rig.ledger.runs(&red(), None, 1).await.unwrap();
    assert!(runs.next.is_some());
    let rest = rig.ledger.runs(&red(), runs.next, 5).await.unwrap();
    assert_eq!((rest.runs.len(), rest.next), (1, None));
}

#[tokio::test]
async fn a_run_is_tried_again_and_fails_after_its_last_try() {
    let rig = Rig::new("curation-tries").await;
    let run = rig.ledger.request_run(rig.new_run(Kind::Curate, "r1")).await.unwrap();
    for attempt in 1..=3 {
        rig.clock.advance(HOUR);
        let claimed = rig.claim().await;
        assert_eq!(claimed.run.attempts, attempt);
        let failed = RunTried::Failed {
            problem: Problem::new("DEPENDENCY_UNAVAILABLE", "gone"),
            retry: true,
        };
        rig.ledger.settle_run(&claimed.job.claim, failed).await.unwrap();
    }
    let (ended, ..) = rig.ledger.run_report(&red(), &run.id).await.unwrap();
    assert_eq!((ended.state, ended.attempts), (RunState::Failed, 3));
    assert_eq!(ended.problem.unwrap().reason, "DEPENDENCY_UNAVAILABLE");
}

/// `C-4`: a run that gave up half way is undone like one that came to its end; the row knows its snapshot from the moment
/// when there is one, and a row without one says that nothing was changed.
#[tokio::test]
async fn a_run_that_gave_up_half_way_can_be_undone() {
    let rig = Rig::new("curation-half").await;
    let give_up = || RunTried::Failed {
        problem: Problem::new("RECORD_DAMAGED", "damaged"),
        retry: false,
    };
    for (request, snapshot) in [("r1", ""), ("r2", "teams/red/librarySnapshots/r2")] {
        let run = rig
            .ledger
            .request_run(rig.new_run(Kind::Curate, request))
            .await
            .unwrap();
        let claim = rig.claim().await.job.claim;
        if !snapshot.is_empty() {
            let journal = rig.ledger.curation_journal(&claim);
            journal.keep_snapshot(snapshot).await.unwrap();
        }
        let ended = rig.ledger.settle_run(&claim, give_up()).await.unwrap();
        assert_eq!(
            (ended.state, ended.result.snapshot.as_str()),
            (RunState::Failed, snapshot)
        );
        let undo = NewRun {
            undoes: Some(run.id.clone()),
            ..rig.new_run(Kind::Rollback, &format!("{request}-undo"))
        };
        let undo = rig.ledger.request_run(undo).await.unwrap();
        let undoing = rig.claim().await.job.claim;
        let journal = rig.ledger.curation_journal(&undoing);
        assert_eq!(journal.changed_nothing(&run.id).await.unwrap(), snapshot.is_empty());
        assert!(!journal.changed_nothing(&undo.id).await.unwrap(), "it still runs");
        rig.ledger.settle_run(&undoing, give_up()).await.unwrap();
        let again = NewRun {
            undoes: Some(undo.id),
            ..rig.new_run(Kind::Rollback, "again")
        };
        let refused = rig.ledger.request_run(again).await;
        assert!(
            matches!(refused, Err(Error::NotUndoable { .. })),
            "a roll-back is asked for again instead"
        );
    }
}

#[tokio::test]
async fn a_plan_outlives_the_process_and_a_stale_claim_keeps_none() {
    let rig = Rig::new("curation-plan").await;
    rig.ledger.request_run(rig.new_run(Kind::Curate, "r1")).await.unwrap();
    let first = rig.claim().await;
    let plan = Plan {
        at: steward_base::Clock::now(&*rig.clock),
        settings: Settings {
            stale_days: 30,
            archive_days: 90,
        },
        before: Counts::default(),
        damaged: Vec::new(),
        decisions: Vec::new(),
    };
    let journal = rig.ledger.curation_journal(&first.job.claim);
    journal.keep_plan(&plan).await.unwrap();
    rig.ledger.close().await;
    let Rig {
        folder, clock, made, ..
    } = rig;
    let rig = Rig {
        ledger: open(&folder, &clock).await,
        folder,
        clock,
        made,
    };
    rig.clock.advance(HOUR);
    rig.ledger.sweep().await.unwrap();
    rig.clock.advance(HOUR);
    let second = rig.claim().await;
    assert_eq!((second.run.attempts, second.job.claim.fence), (2, 2));
    let journal = rig.ledger.curation_journal(&second.job.claim);
    assert_eq!(journal.plan().await.unwrap(), Some(plan.clone()));
    let stale = rig.ledger.curation_journal(&first.job.claim);
    assert!(matches!(stale.keep_plan(&plan).await, Err(Error::StaleFence { .. })));
    let kept = stale.keep_snapshot("teams/red/librarySnapshots/late").await;
    assert!(matches!(kept, Err(Error::StaleFence { .. })));
    let settled = rig.ledger.settle_run(&first.job.claim, finished()).await;
    assert!(matches!(settled, Err(Error::StaleFence { .. })));
}
