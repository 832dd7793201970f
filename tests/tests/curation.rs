//! A library that ages in processes whose clocks the scenario moves: dry run, real run, report, pin, roll-back, pause, and a
//! worker that is killed in the middle (`C-1` to `C-4`, `C-10`, `C-11`).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;

use std::time::Duration;

use serde_json::Value;
use steward_client::ClientError;
use steward_proto::learning::v1 as learning;
use steward_proto::learning::v1::{CurationKind, CurationState};
use steward_proto::skill::v1 as skill;
use steward_testkit::{ModelServer, RecordedRequest, Reply, wait_for_some};
use steward_tests::person::fresh_id;
use steward_tests::stack::PATIENCE;
use steward_tests::{Person, Shape, Stack, StackOptions, script};

const DAY: Duration = Duration::from_hours(24);

/// As a reviewer makes two skills of what a person said.
fn two_skills(request: &RecordedRequest) -> Reply {
    if !script::is_review(request) {
        return Reply::text("fine");
    }
    match script::span_with(request, "Remember:") {
        Some(span) if script::since_user(request).is_empty() => Reply::calls([
            script::create_skill("one", "left-alone", "Mind it.", &span),
            script::create_skill("two", "held-dear", "Mind it, too.", &span),
        ]),
        _ => script::changed(),
    }
}

/// Skills are stale after 2 days and set aside after 5, so that no credential runs out meanwhile.
fn options(model: &ModelServer) -> StackOptions {
    common::reviews_after_each_turn(model)
        .set("LEARNING__CURATION__STALE_DAYS", 2)
        .set("LEARNING__CURATION__ARCHIVE_DAYS", 5)
        .set("LEARNING__CURATION__CHECK_SECONDS", 1)
        .set("LEARNING__LEASE_SECONDS", 5)
        .set("LEARNING__HEARTBEAT_SECONDS", 1)
        .set("LEARNING__BACKOFF_SECONDS", 0)
}

/// An installation in which a review has made two skills, and a person one.
async fn library(shape: Shape) -> (ModelServer, Stack, Person) {
    let model = ModelServer::scripted(two_skills).await;
    let stack = Stack::start("curation", shape, options(&model));
    let owner = stack.owner().await;
    owner
        .create_skill("by-hand", &script::skill_text("by-hand", "Do it as I say."))
        .await
        .unwrap();
    let session = owner.session(Vec::new()).await;
    owner.say(&session, "Remember: two things").await;
    owner.reviews_ended(1).await;
    (model, stack, owner)
}

/// A run that was asked for, and its report, once it has ended.
async fn ended(owner: &Person, run: learning::CurationRun) -> learning::GetCurationReportResponse {
    wait_for_some("the run to end", PATIENCE, || async {
        let request = learning::GetCurationReportRequest { name: run.name.clone() };
        // The worker may be on its way back.
        let report = owner.client.curator.get_curation_report(request).await.ok()?;
        let open = [CurationState::Queued, CurationState::Running];
        let is_over = !open.contains(&report.run.as_ref()?.state());
        is_over.then_some(report)
    })
    .await
}

async fn request_run(owner: &Person, dry_run: bool) -> learning::CurationRun {
    let request = learning::RunCurationRequest {
        parent: owner.team.clone(),
        dry_run,
        request_id: fresh_id(),
    };
    let answer = owner.client.curator.run_curation(request).await.unwrap();
    answer.run.expect("a run")
}

async fn request_rollback(owner: &Person, run: &str) -> Result<learning::CurationRun, ClientError> {
    let request = learning::RollbackCurationRunRequest {
        name: run.to_owned(),
        request_id: fresh_id(),
    };
    let answer = owner.client.curator.rollback_curation_run(request).await?;
    Ok(answer.run.expect("a run"))
}

/// A run to its good end: its row and its `run.json`.
async fn curate(owner: &Person, dry_run: bool) -> (learning::CurationRun, Value) {
    done(owner, request_run(owner, dry_run).await).await
}

async fn roll_back(owner: &Person, run: &str) -> (learning::CurationRun, Value) {
    done(owner, request_rollback(owner, run).await.unwrap()).await
}

async fn done(owner: &Person, run: learning::CurationRun) -> (learning::CurationRun, Value) {
    let report = ended(owner, run).await;
    let run = report.run.unwrap();
    assert_eq!(run.state(), CurationState::Succeeded, "{run:?}");
    assert!(report.report_markdown.contains(&run.name), "{}", report.report_markdown);
    let json: Value = serde_json::from_str(&report.run_json).unwrap();
    assert_eq!(json["run"], run.name.as_str());
    (run, json)
}

/// What a report tells of each skill: last part of the name, ages, outcome.
fn told(report: &Value) -> Vec<String> {
    let changes = report["changes"].as_array().unwrap();
    let word = |told: &Value, field: &str| told[field].as_str().unwrap().to_owned();
    changes
        .iter()
        .map(|told| {
            // An archived skill's name carries more than its own.
            let name = word(told, "skill").rsplit('/').next().unwrap().to_owned();
            let name = name.split(['~', '@']).next().unwrap().to_owned();
            let [from, to, outcome] = ["from", "to", "outcome"].map(|field| word(told, field));
            format!("{name}: {from} -> {to}, {outcome}")
        })
        .collect()
}

async fn status(owner: &Person) -> learning::CurationStatus {
    let request = learning::GetCurationStatusRequest {
        name: owner.team.clone(),
    };
    let answer = owner.client.curator.get_curation_status(request).await.unwrap();
    answer.status.unwrap()
}

async fn history(owner: &Person) -> Vec<learning::CurationRun> {
    let request = learning::ListCurationRunsRequest {
        parent: owner.team.clone(),
        ..learning::ListCurationRunsRequest::default()
    };
    owner.client.curator.list_curation_runs(request).await.unwrap().runs
}

/// Everything that can be seen of the library, archived skills included. Looking changes nothing of it.
async fn seen(owner: &Person) -> Vec<skill::Skill> {
    let mut all = Vec::new();
    for archived in [false, true] {
        let request = skill::ListSkillsRequest {
            parent: owner.user.clone(),
            archived,
            page_size: 1000,
            ..skill::ListSkillsRequest::default()
        };
        all.extend(owner.client.skills.list_skills(request).await.unwrap().skills);
    }
    all
}

fn named<'a>(skills: &'a [skill::Skill], name: &str) -> &'a skill::Skill {
    let found = skills.iter().find(|skill| skill.name.contains(name));
    found.unwrap_or_else(|| panic!("{name} is not in {skills:#?}"))
}

async fn pin(owner: &Person, name: &str) {
    let request = skill::PinSkillRequest {
        name: named(&seen(owner).await, name).name.clone(),
        pinned: true,
    };
    owner.client.skills.pin_skill(request).await.unwrap();
}

both_shapes!(a_library_ages_is_set_aside_and_put_back);

async fn a_library_ages_is_set_aside_and_put_back(shape: Shape) {
    let (_model, mut stack, owner) = library(shape).await;
    pin(&owner, "held-dear").await;
    // First sight: days begin to count and nothing is done (D-26).
    let (first, report) = curate(&owner, false).await;
    assert_eq!(report["kept"]["first_sight"].as_array().unwrap().len(), 2, "{report:#}");
    assert_eq!((first.changes, first.summary.as_str()), (0, "Nothing to change"));

    // D-25: a dry run says what would be done and leaves no trace of it.
    stack.let_pass(3 * DAY);
    let (before, clock) = (seen(&owner).await, status(&owner).await);
    let (dry, report) = curate(&owner, true).await;
    assert_eq!(told(&report), ["left-alone: active -> stale, planned"]);
    assert!(report["kept"]["pinned"][0].as_str().unwrap().contains("held-dear"));
    assert_eq!((dry.kind(), dry.snapshot.as_str()), (CurationKind::DryRun, ""));
    assert_eq!(seen(&owner).await, before);
    assert_eq!(status(&owner).await, clock);

    let (_, report) = curate(&owner, false).await;
    assert_eq!(told(&report), ["left-alone: active -> stale, applied"]);
    stack.let_pass(3 * DAY);
    let (run, report) = curate(&owner, false).await;
    assert_eq!(told(&report), ["left-alone: stale -> archived, applied"]);
    assert_eq!((run.changes, run.conflicts), (1, 0));
    let after = seen(&owner).await;
    assert_eq!(named(&after, "left-alone").state(), skill::SkillState::Archived);
    for kept in ["held-dear", "by-hand"] {
        assert_eq!(named(&after, kept), named(&before, kept), "{kept} is not touched");
    }

    let (undone, report) = roll_back(&owner, &run.name).await;
    assert_eq!(told(&report), ["left-alone: archived -> stale, applied"]);
    assert_eq!((undone.undoes.as_str(), undone.changes), (run.name.as_str(), 1));
    let content = owner.view_skill("left-alone").await.unwrap().content;
    assert!(content.contains("Mind it."), "{content}");
    // The look was a use, which makes it young again at once (`C-2`).
    let (_, report) = curate(&owner, true).await;
    assert_eq!(told(&report), Vec::<String>::new());
    // There was nothing to undo in the first run, and that is no failure (`C-4`).
    let (nothing, _) = roll_back(&owner, &first.name).await;
    assert_eq!((nothing.changes, nothing.summary.as_str()), (0, "Nothing to change"));
    let refused = request_rollback(&owner, &dry.name).await.unwrap_err();
    assert_eq!(refused.reason, "CURATION_NOT_UNDOABLE");

    let runs = history(&owner).await;
    assert_eq!(runs.len(), 7);
    let at = |run: &learning::CurationRun| run.create_time.map(|at| (at.seconds, at.nanos));
    assert!(runs.is_sorted_by(|newer, older| at(newer) > at(older)), "{runs:#?}");
    assert_eq!(status(&owner).await.runs, 3, "dry runs and roll-backs are not counted");
}

both_shapes!(a_team_that_rests_is_curated_by_itself_unless_paused);

async fn a_team_that_rests_is_curated_by_itself_unless_paused(shape: Shape) {
    let (_model, mut stack, owner) = library(shape).await;
    wait_for_some("the team to be seen", PATIENCE, || async {
        status(&owner).await.due_time
    })
    .await;
    let team = owner.team.clone();
    let paused = learning::PauseCurationRequest { name: team.clone() };
    assert!(
        owner
            .client
            .curator
            .pause_curation(paused)
            .await
            .unwrap()
            .status
            .unwrap()
            .paused
    );
    stack.let_pass(8 * DAY);
    // A paused team is due at no time, and is curated only when somebody asks.
    assert_eq!(status(&owner).await.due_time, None);
    curate(&owner, true).await;
    assert_eq!(history(&owner).await.len(), 1);
    let resumed = learning::ResumeCurationRequest { name: team };
    owner.client.curator.resume_curation(resumed).await.unwrap();
    let run = wait_for_some("a run by itself", PATIENCE, || async {
        let runs = history(&owner).await;
        runs.into_iter()
            .find(|run| run.requester.is_empty() && run.end_time.is_some())
    })
    .await;
    assert_eq!(
        (run.kind(), run.state()),
        (CurationKind::Curate, CurationState::Succeeded)
    );
    assert_eq!(
        history(&owner).await.len(),
        2,
        "one run, however far the clock has jumped"
    );
}

/// Kills the worker at `failpoint`, which it passes in a run or in the undoing of one: what was begun is carried to its end,
/// and nothing of it is done twice.
async fn crash(shape: Shape, failpoint: &str, in_rollback: bool) {
    let (_model, mut stack, owner) = library(shape).await;
    curate(&owner, false).await;
    stack.let_pass(6 * DAY);
    let archived = if in_rollback {
        Some(curate(&owner, false).await.0)
    } else {
        None
    };
    stack.stop("curator-worker").await;
    stack.start_again_with_failpoint("curator-worker", &format!("{failpoint}=kill"));
    let owner = stack.owner().await;
    let run = match &archived {
        Some(run) => request_rollback(&owner, &run.name).await.unwrap(),
        None => request_run(&owner, false).await,
    };
    stack.wait_for_crash("curator-worker").await;
    stack.start_again("curator-worker");
    let owner = stack.owner().await;
    let (run, report) = done(&owner, run).await;
    let changes = told(&report);
    let expected = if in_rollback {
        "archived -> active"
    } else {
        "active -> archived"
    };
    assert_eq!((changes.len(), run.changes, run.attempts), (2, 2, 2), "{report:#}");
    assert!(changes.iter().all(|change| change.contains(expected)), "{changes:?}");
    let skills = seen(&owner).await;
    for name in ["left-alone", "held-dear"] {
        let is_archived = named(&skills, name).state() == skill::SkillState::Archived;
        assert_eq!(is_archived, !in_rollback, "{name}");
    }
    // What the broken try had begun is known for good: it can be undone like any other, or done again.
    let (undone, report) = roll_back(&owner, &run.name).await;
    assert_eq!((undone.changes, undone.conflicts), (2, 0), "{report:#}");
}

macro_rules! crashes {
    ($($name:ident: $failpoint:literal, $in_rollback:literal;)+) => {
        $(
            mod $name {
                use steward_tests::Shape;

                #[tokio::test(flavor = "multi_thread")]
                async fn in_one_process() {
                    super::crash(Shape::One, $failpoint, $in_rollback).await;
                }

                #[tokio::test(flavor = "multi_thread")]
                async fn in_five_processes() {
                    super::crash(Shape::Split, $failpoint, $in_rollback).await;
                }
            }
        )+
    };
}

crashes! {
    a_run_is_killed_after_it_decided: "curation.plan.after", false;
    a_run_is_killed_after_its_snapshot: "curation.snapshot.after", false;
    a_run_is_killed_after_the_registry_changed_everything: "curation.change.after", false;
    an_undoing_is_killed_after_the_registry_put_everything_back: "curation.rollback.after", true;
}
