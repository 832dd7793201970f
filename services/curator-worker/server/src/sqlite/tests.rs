mod person;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use steward_agent::kernel::StepRef;
use steward_base::Timestamp;
use steward_base::names::{SessionId, TeamId, UserId};
use steward_curator_core::ports::{CallRecord, Journal as _, KeptReply, Opening};
use steward_curator_core::review::{Kinds, ReviewState, Write, WriteResult};
use steward_curator_core::{HaltReason, Report, Tried};
use steward_model::{FinishReason, NativeBlocks, Reply, Usage};
use steward_testkit::{MockClock, TempDir};

use super::*;

const LEASE: Duration = Duration::from_mins(1);
const MEMORY: Kinds = Kinds {
    memory: true,
    skills: false,
};
const SKILLS: Kinds = Kinds {
    memory: false,
    skills: true,
};

struct Rig {
    folder: TempDir,
    clock: Arc<MockClock>,
    ledger: Ledger,
}

async fn open(folder: &Path, clock: &Arc<MockClock>) -> Ledger {
    let options = QueueOptions {
        jitter: 0.0,
        ..QueueOptions::default()
    };
    Ledger::open(folder.join("learning.db"), 2, options, clock.clone())
        .await
        .unwrap()
}

impl Rig {
    async fn new(name: &str) -> Self {
        let folder = TempDir::new(name);
        let clock = Arc::new(MockClock::at(Timestamp::from_secs(1_000)));
        let ledger = open(folder.path(), &clock).await;
        Self { folder, clock, ledger }
    }

    async fn reopen(self) -> Self {
        self.ledger.close().await;
        let ledger = open(self.folder.path(), &self.clock).await;
        Self { ledger, ..self }
    }

    async fn claim(&self) -> Claimed {
        self.ledger.claim("w", LEASE).await.unwrap().expect("a review waits")
    }

    async fn get(&self, id: &str) -> Review {
        self.ledger
            .get(&red(), &ann(), &ReviewId::parse(id).unwrap())
            .await
            .unwrap()
    }

    async fn settle(&self, claimed: &Claimed, reason: HaltReason) -> Review {
        let tried = Tried {
            reason,
            report: Report::default(),
        };
        self.ledger.settle(&claimed.job.claim, tried).await.unwrap()
    }

    async fn shown_after(&self, number: u64) -> Vec<(String, ReviewState)> {
        let whose = Whose {
            team: red(),
            user: ann(),
            session: None,
        };
        let changes = self.ledger.changed_after(&whose, number, 100).await.unwrap();
        changes
            .reviews
            .into_iter()
            .map(|(_, review)| (review.id.to_string(), review.state))
            .collect()
    }
}

fn red() -> TeamId {
    TeamId::parse("red").unwrap()
}

fn ann() -> UserId {
    UserId::parse("ann").unwrap()
}

fn due(id: &str, session: &str, to_seq: u64, kinds: Kinds) -> Due {
    Due {
        team: red(),
        id: ReviewId::parse(id).unwrap(),
        name: format!("teams/red/sessions/{session}/dueReviews/{id}"),
        user: ann(),
        session: SessionId::parse(session).unwrap(),
        turn: "t".to_owned(),
        to_seq,
        kinds,
        created_at: Timestamp::from_secs(1_000),
        traceparent: String::new(),
    }
}

fn problem(reason: &str) -> Problem {
    Problem::new(reason, "a sentence")
}

fn accepted() -> Write {
    Write {
        tool: "memory".to_owned(),
        action: "add".to_owned(),
        target: "teams/red/users/ann/memory/profile".to_owned(),
        result: WriteResult::Accepted,
        reason: String::new(),
        gate: String::new(),
        preview: String::new(),
        revision: "1".to_owned(),
        evidence: None,
        why: String::new(),
        line: "Profile updated".to_owned(),
    }
}

#[test]
fn the_queues_schema_is_in_the_migrations() {
    for (migration, schema) in [
        (
            include_str!("../../migrations/0001_queue.sql"),
            steward_queue::SQLITE_SCHEMA,
        ),
        (
            include_str!("../../migrations/0004_queue_counts.sql"),
            steward_queue::SQLITE_SCHEMA_2,
        ),
    ] {
        assert_eq!(migration, schema);
    }
}

#[tokio::test]
async fn a_due_review_is_queued_once_and_seen_at_once() {
    let rig = Rig::new("ledger-once").await;
    let dues = vec![due("a", "s", 8, MEMORY)];
    assert_eq!(rig.ledger.enqueue(dues.clone()).await.unwrap(), 1);
    assert_eq!(rig.ledger.enqueue(dues.clone()).await.unwrap(), 0);
    assert_eq!(rig.get("a").await, Review::queued(dues[0].clone()));
    let rig = rig.reopen().await;
    assert_eq!(rig.get("a").await.state, ReviewState::Queued);
}

#[tokio::test]
async fn a_newer_review_takes_over_one_that_waits() {
    let rig = Rig::new("ledger-absorb").await;
    rig.ledger.enqueue(vec![due("a", "s", 8, MEMORY)]).await.unwrap();
    rig.ledger
        .enqueue(vec![due("b", "s", 12, SKILLS), due("c", "other", 3, SKILLS)])
        .await
        .unwrap();
    let older = rig.get("a").await;
    assert_eq!(older.state, ReviewState::Absorbed);
    assert_eq!(older.absorbed_by.unwrap().as_str(), "b");
    let claimed = rig.claim().await;
    assert_eq!((claimed.review.id.as_str(), claimed.review.to_seq), ("b", 12));
    assert_eq!(
        claimed.review.kinds,
        Kinds {
            memory: true,
            skills: true
        }
    );
    assert_eq!(claimed.review.state, ReviewState::Running);
}

#[tokio::test]
async fn a_running_review_gives_way_and_is_taken_over() {
    let rig = Rig::new("ledger-give-way").await;
    rig.ledger.enqueue(vec![due("a", "s", 8, MEMORY)]).await.unwrap();
    let running = rig.claim().await;
    rig.ledger.enqueue(vec![due("b", "s", 12, SKILLS)]).await.unwrap();
    assert!(
        rig.ledger.claim("other", LEASE).await.unwrap().is_none(),
        "two of one session never run together"
    );
    let beat = rig.ledger.heartbeat(&running.job.claim, LEASE).await.unwrap();
    assert!(beat.yield_requested && !beat.cancel_requested);
    let report = Report {
        writes: vec![accepted()],
        ..Report::default()
    };
    let tried = Tried {
        reason: HaltReason::GiveWay,
        report,
    };
    let gone = rig.ledger.settle(&running.job.claim, tried).await.unwrap();
    assert_eq!(
        (gone.state, gone.summary.as_str()),
        (ReviewState::Absorbed, "Profile updated")
    );
    let next = rig.claim().await;
    assert_eq!(
        (next.review.id.as_str(), next.review.kinds),
        (
            "b",
            Kinds {
                memory: true,
                skills: true
            }
        )
    );
    rig.settle(&next, HaltReason::Ended(Ending::Finished)).await;
    assert!(
        rig.ledger.claim("w", LEASE).await.unwrap().is_none(),
        "the one that was taken over never runs"
    );
}

#[tokio::test]
async fn giving_way_costs_no_try_and_a_failure_does() {
    let rig = Rig::new("ledger-tries").await;
    rig.ledger.enqueue(vec![due("a", "s", 8, MEMORY)]).await.unwrap();
    for reason in [HaltReason::GiveWay, HaltReason::Shutdown] {
        let back = rig.settle(&rig.claim().await, reason).await;
        assert_eq!((back.state, back.attempts), (ReviewState::Queued, 0));
    }
    let back = rig
        .settle(&rig.claim().await, HaltReason::TryAgain(problem("MODEL_UNAVAILABLE")))
        .await;
    assert_eq!((back.state, back.attempts), (ReviewState::Queued, 1));
    assert!(
        rig.ledger.claim("w", LEASE).await.unwrap().is_none(),
        "it waits before it is tried again"
    );
}

/// `R-2`: twice at most, and even a worker that counts wrongly loses nothing.
#[tokio::test]
async fn a_review_gives_way_twice_and_is_finished_then() {
    let rig = Rig::new("ledger-twice").await;
    rig.ledger.enqueue(vec![due("a", "s", 8, MEMORY)]).await.unwrap();
    for releases in [0, 1, 2, 2] {
        let claimed = rig.claim().await;
        assert_eq!((claimed.job.job.releases, claimed.review.attempts), (releases, 1));
        rig.settle(&claimed, HaltReason::GiveWay).await;
    }
    let last = rig.claim().await;
    rig.settle(&last, HaltReason::Ended(Ending::Finished)).await;
    assert_eq!(rig.get("a").await.state, ReviewState::NothingToSave);
}

#[tokio::test]
async fn after_three_tries_a_review_is_dead_and_says_why() {
    let rig = Rig::new("ledger-dead").await;
    rig.ledger.enqueue(vec![due("a", "s", 8, MEMORY)]).await.unwrap();
    let mut last = None;
    for _ in 0..3 {
        rig.clock.advance(Duration::from_hours(1));
        last = Some(
            rig.settle(&rig.claim().await, HaltReason::TryAgain(problem("MODEL_UNAVAILABLE")))
                .await,
        );
    }
    let dead = last.unwrap();
    assert_eq!(
        (dead.state, dead.problem),
        (ReviewState::Dead, Some(problem("MODEL_UNAVAILABLE")))
    );
    let retried = rig.ledger.retry(&red(), &dead.id).await.unwrap();
    assert_eq!((retried.state, retried.problem), (ReviewState::Queued, None));
    assert_eq!(rig.claim().await.review.attempts, 1);
}

#[tokio::test]
async fn a_review_whose_worker_dies_each_time_ends_visibly_with_what_it_wrote() {
    let rig = Rig::new("ledger-lost").await;
    rig.ledger.enqueue(vec![due("a", "s", 8, MEMORY)]).await.unwrap();
    for attempt in 0..3 {
        rig.clock.advance(Duration::from_hours(1));
        // Whoever looks first takes the lost one back; it waits for its backoff then.
        rig.ledger.sweep().await.unwrap();
        rig.clock.advance(Duration::from_hours(1));
        let claimed = rig.claim().await;
        if attempt == 0 {
            let answer = CallRecord {
                content: "Saved.".to_owned(),
                is_error: false,
                spans: Vec::new(),
                admitted: true,
                write: Some(accepted()),
            };
            rig.ledger
                .journal(&claimed.job.claim)
                .record_answer(0, 0, &answer)
                .await
                .unwrap();
        }
    }
    rig.clock.advance(Duration::from_hours(1));
    assert_eq!(rig.ledger.sweep().await.unwrap(), 1);
    let dead = rig.get("a").await;
    assert_eq!(
        (dead.state, dead.summary.as_str()),
        (ReviewState::Dead, "Profile updated")
    );
    assert_eq!(dead.problem.unwrap().reason, "WORKER_LOST");
}

#[tokio::test]
async fn the_journal_survives_a_restart_and_refuses_a_stale_claim() {
    let rig = Rig::new("ledger-journal").await;
    rig.ledger.enqueue(vec![due("a", "s", 8, MEMORY)]).await.unwrap();
    let first = rig.claim().await;
    let opening = Opening {
        corrections: Vec::new(),
        memory: Vec::new(),
        skills: Vec::new(),
        digest_for: None,
        context_window: 7,
    };
    let reply = |text: &str| KeptReply {
        reply: Reply {
            content: text.to_owned(),
            tool_calls: Vec::new(),
            finish: FinishReason::Stop,
            usage: Usage {
                input: Some(3),
                ..Usage::default()
            },
        },
        native: Some(NativeBlocks {
            provider: "vendor".to_owned(),
            model: "m".to_owned(),
            blocks: r#"[{"n":9007199254740993}]"#.to_owned(),
        }),
        cost: Some(5),
    };
    let at = StepRef { step: 0, attempt: 0 };
    let journal = rig.ledger.journal(&first.job.claim);
    journal.record_opening(&opening).await.unwrap();
    journal.record_reply(at, &reply("first")).await.unwrap();
    let rig = rig.reopen().await;
    let held = rig.ledger.journal(&first.job.claim).load().await.unwrap();
    assert_eq!(held.opening, Some(opening));
    rig.clock.advance(Duration::from_mins(2));
    rig.ledger.sweep().await.unwrap();
    rig.clock.advance(Duration::from_hours(1));
    let second = rig.claim().await;
    let stale = rig
        .ledger
        .journal(&first.job.claim)
        .record_reply(at, &reply("late"))
        .await
        .unwrap_err();
    assert!(matches!(
        stale,
        Error::StaleFence {
            fence: 1,
            current: 2,
            ..
        }
    ));
    let journal = rig.ledger.journal(&second.job.claim);
    journal.record_reply(at, &reply("other")).await.unwrap();
    assert_eq!(
        journal.load().await.unwrap().replies[&at],
        reply("first"),
        "what is there stays"
    );
}

/// A journal of an earlier version has replies without the provider's own form.
#[tokio::test]
async fn a_reply_that_an_earlier_version_kept_is_read() {
    let rig = Rig::new("ledger-old-journal").await;
    rig.ledger.enqueue(vec![due("a", "s", 8, MEMORY)]).await.unwrap();
    let claim = rig.claim().await.job.claim;
    let old = r#"{"content":"hello","tool_calls":[],"finish":"stop","usage":{"input":3,"cached_input":null,"cache_write":null,"output":null,"reasoning":null}}"#;
    let kept = rig.ledger.write(move |_, db| {
        let sql =
            "INSERT INTO journal_reply (team, job, step, attempt, content, fence) VALUES ('red', 'a', 0, 0, ?, 1)";
        Ok(db.execute(sql, [old])?)
    });
    kept.await.unwrap();
    let held = rig.ledger.journal(&claim).load().await.unwrap();
    let at = StepRef { step: 0, attempt: 0 };
    assert_eq!(
        (held.replies[&at].reply.content.as_str(), &held.replies[&at].native),
        ("hello", &None)
    );
}

#[tokio::test]
async fn a_cancelled_review_never_runs_and_a_running_one_is_asked() {
    let rig = Rig::new("ledger-cancel").await;
    rig.ledger
        .enqueue(vec![due("a", "s", 8, MEMORY), due("b", "other", 8, MEMORY)])
        .await
        .unwrap();
    let waiting = rig.ledger.cancel(&red(), &ReviewId::parse("a").unwrap()).await.unwrap();
    assert_eq!(
        (waiting.state, waiting.problem.unwrap().reason.as_str()),
        (ReviewState::Cancelled, "CANCELLED")
    );
    let running = rig.claim().await;
    assert_eq!(running.review.id.as_str(), "b");
    let asked = rig.ledger.cancel(&red(), &running.review.id).await.unwrap();
    assert_eq!(asked.state, ReviewState::Running);
    assert!(
        rig.ledger
            .heartbeat(&running.job.claim, LEASE)
            .await
            .unwrap()
            .cancel_requested
    );
    let ended = rig.settle(&running, HaltReason::Shutdown).await;
    assert_eq!(
        ended.state,
        ReviewState::Cancelled,
        "a stop that comes first does not forget it"
    );
    let again = rig.ledger.cancel(&red(), &ended.id).await.unwrap_err();
    assert!(matches!(
        again,
        Error::Ended {
            state: ReviewState::Cancelled,
            ..
        }
    ));
}

#[tokio::test]
async fn a_stale_claim_settles_nothing() {
    let rig = Rig::new("ledger-stale").await;
    rig.ledger.enqueue(vec![due("a", "s", 8, MEMORY)]).await.unwrap();
    let first = rig.claim().await;
    rig.clock.advance(Duration::from_mins(2));
    rig.ledger.sweep().await.unwrap();
    rig.clock.advance(Duration::from_hours(1));
    let second = rig.claim().await;
    let tried = Tried {
        reason: HaltReason::Ended(Ending::Finished),
        report: Report::default(),
    };
    let refused = rig.ledger.settle(&first.job.claim, tried).await.unwrap_err();
    assert!(matches!(
        refused,
        Error::StaleFence {
            fence: 1,
            current: 2,
            ..
        }
    ));
    assert!(rig.ledger.heartbeat(&first.job.claim, LEASE).await.is_err());
    rig.settle(&second, HaltReason::Ended(Ending::Finished)).await;
    assert_eq!(rig.get("a").await.state, ReviewState::NothingToSave);
}

#[tokio::test]
async fn people_are_told_of_ends_and_not_of_failed_tries() {
    let rig = Rig::new("ledger-quiet").await;
    rig.ledger.enqueue(vec![due("a", "s", 8, MEMORY)]).await.unwrap();
    let claimed = rig.claim().await;
    let whose = Whose {
        team: red(),
        user: ann(),
        session: None,
    };
    let seen = rig.ledger.unfinished(&whose).await.unwrap().last;
    rig.settle(&claimed, HaltReason::TryAgain(problem("MODEL_QUOTA"))).await;
    assert!(rig.shown_after(seen).await.is_empty());
    rig.clock.advance(Duration::from_hours(1));
    rig.settle(
        &rig.claim().await,
        HaltReason::Ended(Ending::Failed(problem("MODEL_REFUSED"))),
    )
    .await;
    assert_eq!(rig.shown_after(seen).await, [("a".to_owned(), ReviewState::Failed)]);
}

#[tokio::test]
async fn pages_go_from_new_to_old_and_show_only_the_persons_own() {
    let rig = Rig::new("ledger-pages").await;
    for number in 1..=5 {
        let mut due = due(&format!("r{number}"), &format!("s{number}"), 1, MEMORY);
        due.created_at = Timestamp::from_secs(1_000 + number);
        rig.ledger.enqueue(vec![due]).await.unwrap();
    }
    let mut foreign = due("x", "sx", 1, MEMORY);
    foreign.user = UserId::parse("bob").unwrap();
    rig.ledger.enqueue(vec![foreign]).await.unwrap();
    let whose = Whose {
        team: red(),
        user: ann(),
        session: None,
    };
    let (mut ids, mut before) = (Vec::new(), None);
    loop {
        let page = rig.ledger.list(&whose, before, 2).await.unwrap();
        ids.extend(page.reviews.iter().map(|review| review.id.to_string()));
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    assert_eq!(ids, ["r5", "r4", "r3", "r2", "r1"]);
    let one = Whose {
        session: Some(SessionId::parse("s2").unwrap()),
        ..whose
    };
    assert_eq!(rig.ledger.list(&one, None, 10).await.unwrap().reviews.len(), 1);
    assert!(
        rig.ledger
            .get(&red(), &ann(), &ReviewId::parse("x").unwrap())
            .await
            .is_err()
    );
}

#[tokio::test]
async fn a_damaged_row_holds_nobody_up() {
    let rig = Rig::new("ledger-damaged").await;
    rig.ledger
        .enqueue(vec![due("a", "s", 8, MEMORY), due("b", "other", 8, MEMORY)])
        .await
        .unwrap();
    let damage = rig
        .ledger
        .write(|_, db| Ok(db.execute("UPDATE review SET writes = 'x' WHERE id = 'a'", ())?));
    damage.await.unwrap();
    assert!(rig.ledger.claim("w", LEASE).await.unwrap().is_none());
    assert_eq!(rig.claim().await.review.id.as_str(), "b");
}
