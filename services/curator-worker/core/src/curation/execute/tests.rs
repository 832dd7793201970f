//! Runs against a registry that does as told.

use std::sync::Mutex;

use steward_base::names::{TeamId, UserId};

use super::*;
use crate::curation::{Result as RunResult, RunState};

const SETTINGS: Settings = Settings {
    stale_days: 30,
    archive_days: 90,
};

#[derive(Debug, Default)]
struct Fake {
    records: Mutex<Vec<Record>>,
    calls: Mutex<Vec<String>>,
    seen: Mutex<BTreeMap<String, Timestamp>>,
    plan: Mutex<Option<Plan>>,
    named: BTreeSet<String>,
    /// Runs that are known to have changed nothing.
    idle: BTreeSet<String>,
    /// How many changes are made before the registry stops answering.
    breaks_after: Mutex<Option<usize>>,
}

fn day(day: i64) -> Timestamp {
    Timestamp::from_secs(1_795_910_400 + day * 86_400)
}

fn run(kind: Kind) -> Run {
    Run {
        team: TeamId::parse("red").unwrap(),
        id: RunId::new(day(0), "0198c00000007000800000000000000a"),
        kind,
        requester: UserId::parse("ann").ok(),
        users: Vec::new(),
        undoes: None,
        state: RunState::Running,
        problem: None,
        attempts: 1,
        result: RunResult::default(),
        created_at: day(0),
        ended_at: None,
    }
}

impl Fake {
    /// Skills made and last used so many days ago, and watched since.
    fn new(days: &[i64]) -> Self {
        let fake = Self::default();
        for &age in days {
            let uid = format!("skill-{age}");
            fake.seen.lock().unwrap().insert(uid.clone(), day(-age));
            fake.records.lock().unwrap().push(Record {
                name: format!("teams/red/skills/{uid}"),
                uid,
                age: Age::Active,
                pinned: false,
                referenced: false,
                uses: 1,
                patches: 0,
                last_used: Some(day(-age)),
                last_changed: None,
                created: day(-age),
                etag: "1".to_owned(),
            });
        }
        fake
    }

    fn called(&self, call: &str) {
        self.calls.lock().unwrap().push(call.to_owned());
    }

    fn calls(&self) -> Vec<String> {
        std::mem::take(&mut *self.calls.lock().unwrap())
    }

    async fn execute(&self, kind: Kind, now: Timestamp) -> Finished {
        execute(&run(kind), self, self, self, SETTINGS, now).await.unwrap()
    }
}

#[async_trait]
impl LibraryPort for Fake {
    async fn records(&self) -> Result<Library, Error> {
        self.called("records");
        Ok(Library {
            records: self.records.lock().unwrap().clone(),
            damaged: vec!["team/broken".to_owned()],
        })
    }

    async fn create_snapshot(&self, run: &RunId) -> Result<String, Error> {
        self.called("snapshot");
        Ok(format!("teams/red/librarySnapshots/{run}"))
    }

    async fn apply(&self, _: &RunId, decisions: &[Decision]) -> Result<Vec<Change>, Error> {
        self.called("apply");
        let mut records = self.records.lock().unwrap();
        for decision in decisions {
            if let Some(left) = self.breaks_after.lock().unwrap().as_mut() {
                if *left == 0 {
                    return Err(Error::unreadable("the registry", "it stopped answering"));
                }
                *left -= 1;
            }
            let record = records.iter_mut().find(|record| record.uid == decision.uid);
            record.unwrap().age = decision.to;
        }
        Ok(decisions.iter().map(|decision| change(decision, "applied")).collect())
    }

    async fn rollback(&self, run: &RunId, _: &RunId) -> Result<(String, Vec<Change>), Error> {
        self.called(&format!("rollback {run}"));
        let change = |skill: &str, outcome: &str, reason: &str| Change {
            skill: skill.to_owned(),
            from: Age::Archived,
            to: Age::Active,
            outcome: outcome.to_owned(),
            reason: reason.to_owned(),
        };
        Ok((
            "teams/red/librarySnapshots/safety".to_owned(),
            vec![change("one", "applied", ""), change("two", "conflict", "name_taken")],
        ))
    }
}

#[async_trait]
impl Schedules for Fake {
    async fn skills(&self, _: &Run) -> Result<BTreeSet<String>, Error> {
        Ok(self.named.clone())
    }
}

#[async_trait]
impl RunJournal for Fake {
    async fn seen(&self) -> Result<BTreeMap<String, Timestamp>, Error> {
        Ok(self.seen.lock().unwrap().clone())
    }

    async fn plan(&self) -> Result<Option<Plan>, Error> {
        Ok(self.plan.lock().unwrap().clone())
    }

    async fn keep_plan(&self, plan: &Plan) -> Result<(), Error> {
        self.called("plan");
        let mut seen = self.seen.lock().unwrap();
        seen.extend(plan.first_seen().map(|uid| (uid.to_owned(), plan.at)));
        *self.plan.lock().unwrap() = Some(plan.clone());
        Ok(())
    }

    async fn keep_snapshot(&self, snapshot: &str) -> Result<(), Error> {
        self.called(&format!("keep {snapshot}"));
        Ok(())
    }

    async fn changed_nothing(&self, run: &RunId) -> Result<bool, Error> {
        Ok(self.idle.contains(run.as_str()))
    }
}

/// The call that keeps the snapshot of the run.
const KEEP: &str = "keep teams/red/librarySnapshots/20261129t000000z-00000000000a";

#[tokio::test]
async fn the_plan_and_the_snapshot_come_before_any_change() {
    let fake = Fake::new(&[1, 40, 100]);
    let finished = fake.execute(Kind::Curate, day(0)).await;
    assert_eq!(fake.calls(), ["records", "plan", "snapshot", KEEP, "apply"]);
    assert_eq!(finished.result.summary, "1 marked stale, 1 archived");
    let json: serde_json::Value = serde_json::from_str(&finished.run_json).unwrap();
    assert_eq!(
        json["before"],
        serde_json::json!({"active": 3, "stale": 0, "archived": 0})
    );
    assert_eq!(
        json["after"],
        serde_json::json!({"active": 1, "stale": 1, "archived": 1})
    );
    assert_eq!(json["changes"][1]["unused_days"], 100);
    assert_eq!(json["kept"]["fresh"][0], "teams/red/skills/skill-1");
    assert_eq!(json["damaged"][0], "team/broken");
    for line in [
        "| `teams/red/skills/skill-40` | active | stale | 40 | applied |",
        "| stale | 0 | 1 |",
        "- snapshot: `teams/red/librarySnapshots/",
    ] {
        assert!(finished.markdown.contains(line), "{line} in {}", finished.markdown);
    }
}

#[tokio::test]
async fn a_dry_run_looks_and_touches_nothing() {
    // D-25.
    let fake = Fake::new(&[1, 40, 100]);
    let finished = fake.execute(Kind::DryRun, day(0)).await;
    assert_eq!(fake.calls(), ["records"]);
    assert_eq!(finished.result.summary, "1 would be marked stale, 1 would be archived");
    assert!(fake.plan.lock().unwrap().is_none());
    assert!(finished.markdown.contains("nothing was changed"));
}

#[tokio::test]
async fn a_later_try_does_what_the_first_decided() {
    let fake = Fake::new(&[40]);
    let first = fake.execute(Kind::Curate, day(0)).await;
    fake.calls();
    let second = fake.execute(Kind::Curate, day(300)).await;
    assert_eq!(fake.calls(), ["snapshot", KEEP, "apply"]);
    assert_eq!(second, first);
}

#[tokio::test]
async fn first_sight_begins_to_count_and_changes_nothing() {
    // D-26.
    let fake = Fake::new(&[200]);
    fake.seen.lock().unwrap().clear();
    let finished = fake.execute(Kind::Curate, day(0)).await;
    assert_eq!(
        (finished.result.changes, finished.result.summary.as_str()),
        (0, "Nothing to change")
    );
    assert_eq!(fake.calls(), ["records", "plan"]);
    for (later, changes) in [(29, 0), (31, 1)] {
        *fake.plan.lock().unwrap() = None;
        let finished = fake.execute(Kind::Curate, day(later)).await;
        assert_eq!(finished.result.changes, changes, "day {later}");
    }
}

#[tokio::test]
async fn what_a_schedule_names_is_kept_and_the_report_says_so() {
    let mut fake = Fake::new(&[100]);
    fake.named.insert("teams/red/skills/skill-100".to_owned());
    let finished = fake.execute(Kind::Curate, day(0)).await;
    assert_eq!(finished.result.changes, 0);
    assert!(finished.markdown.contains("## Kept: named by a schedule"));
}

#[tokio::test]
async fn a_roll_back_reports_what_it_left_alone() {
    let fake = Fake::new(&[]);
    let undo = Run {
        undoes: RunId::parse("20261101t000000z-00000000000b"),
        ..run(Kind::Rollback)
    };
    let finished = execute(&undo, &fake, &fake, &fake, SETTINGS, day(0)).await.unwrap();
    assert_eq!(fake.calls(), ["rollback 20261101t000000z-00000000000b"]);
    assert_eq!(finished.result.summary, "1 back in use, 1 left alone");
    assert!(
        finished
            .markdown
            .contains("| `two` | archived | active |  | conflict name taken |")
    );
}

/// `C-4`: there is no snapshot to put back, and that is no failure.
#[tokio::test]
async fn undoing_a_run_that_changed_nothing_changes_nothing_and_succeeds() {
    let mut fake = Fake::new(&[1]);
    let id = RunId::parse("20261101t000000z-00000000000b").unwrap();
    fake.idle.insert(id.to_string());
    let undo = Run {
        undoes: Some(id),
        ..run(Kind::Rollback)
    };
    let finished = execute(&undo, &fake, &fake, &fake, SETTINGS, day(0)).await.unwrap();
    assert_eq!(fake.calls(), Vec::<String>::new(), "the registry is not asked");
    assert_eq!(
        (finished.result.changes, finished.result.summary.as_str()),
        (0, "Nothing to change")
    );
    assert!(
        finished
            .markdown
            .contains("Undoes `teams/red/curationRuns/20261101t000000z-00000000000b`")
    );
}

/// `C-4`: the registry goes away in the middle; the next try ends with what the first had decided.
#[tokio::test]
async fn a_run_that_broke_off_is_carried_to_its_end() {
    let fake = Fake::new(&[40, 50, 100]);
    *fake.breaks_after.lock().unwrap() = Some(1);
    execute(&run(Kind::Curate), &fake, &fake, &fake, SETTINGS, day(0))
        .await
        .expect_err("it breaks off");
    assert_eq!(fake.calls(), ["records", "plan", "snapshot", KEEP, "apply"]);
    *fake.breaks_after.lock().unwrap() = None;
    let finished = fake.execute(Kind::Curate, day(80)).await;
    assert_eq!(fake.calls(), ["snapshot", KEEP, "apply"], "it looks and decides once");
    assert_eq!(finished.result.summary, "2 marked stale, 1 archived");
    let ages: Vec<Age> = fake.records.lock().unwrap().iter().map(|record| record.age).collect();
    assert_eq!(ages, [Age::Stale, Age::Stale, Age::Archived]);
}
