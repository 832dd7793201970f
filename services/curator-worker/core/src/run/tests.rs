//! A review against scripted services and a scripted model.

mod world;

use steward_base::Integrity;

use super::*;
use crate::memory_journal::SharedJournal;
use crate::review::{Basis, Kinds, WriteResult};
use world::{World, calls, message, says};

const ADD: &str =
    r#"{"action":"add","target":"profile","content":"Prefers metric units","evidence":["s1"],"basis":"stated"}"#;
const NOTHING: &str = r#"{"result":"no_change","rejected":[{"candidate":"c","reason":"r"}]}"#;

async fn run(world: &World, journal: &SharedJournal) -> Tried {
    run_with(world, journal, &Halt::new()).await
}

async fn run_with(world: &World, journal: &SharedJournal, halt: &Halt) -> Tried {
    run_review(
        &world.review(),
        false,
        Arc::new(world.clone()),
        Arc::new(journal.claim()),
        halt,
    )
    .await
}

fn finished(tried: &Tried) -> bool {
    tried.reason == HaltReason::Ended(Ending::Finished)
}

#[tokio::test]
async fn a_review_writes_what_it_learned_and_says_what_it_turned_down() {
    let world = World::new([calls(&[("memory", ADD)]), says(NOTHING)]);
    let tried = run(&world, &SharedJournal::default()).await;
    assert!(finished(&tried), "{tried:?}");
    assert_eq!(world.keys(), ["r1/0/0"]);
    let report = tried.report;
    assert_eq!((report.iterations, report.mode), (2, Some(Mode::Replay)));
    assert_eq!(
        report.rejected,
        [Rejected {
            candidate: "c".to_owned(),
            reason: "r".to_owned()
        }]
    );
    let evidence = report.writes[0].evidence.clone().unwrap();
    assert_eq!(
        (evidence.spans, evidence.integrity),
        (vec!["s1".to_owned()], Integrity::Person)
    );
    assert_eq!(report.usage.input, Some(20), "two calls of ten tokens each");
}

#[tokio::test]
async fn nothing_to_save_is_a_normal_end() {
    let world = World::new([says(NOTHING)]);
    let tried = run(&world, &SharedJournal::default()).await;
    assert!(finished(&tried) && tried.report.writes.is_empty());
    let request = world.requests().remove(0);
    let trailing = request.messages.last().unwrap().content();
    assert!(
        trailing.contains("Anything unresolved") && trailing.contains("Verdicts on a tool"),
        "the exclusions"
    );
    assert!(trailing.contains("Prefers short answers"), "the present entries");
    assert_eq!(
        (&*request.system, &*request.tools_json),
        ("the parent's prompt", world::TOOLS)
    );
}

#[tokio::test]
async fn a_retry_follows_the_journal_even_if_the_model_would_answer_differently() {
    let journal = SharedJournal::default();
    // The first try dies in the write: it took effect, but nobody heard of it.
    let first = World::new([calls(&[("memory", ADD)])]);
    first.lose_next_answer();
    let tried = run(&first, &journal).await;
    assert!(matches!(tried.reason, HaltReason::TryAgain(_)), "{tried:?}");
    assert_eq!(first.effects(), [("r1/0/0".to_owned(), ADD.to_owned())]);
    // The second model would have created a skill instead.
    let other = r##"{"action":"create","name":"units","content":"# Units","evidence":["s1"],"basis":"stated"}"##;
    let second = first.again([calls(&[("skill_manage", other)]), says(NOTHING)]);
    let tried = run(&second, &journal).await;
    // The journalled call is made again under its key; what the second model says comes after it.
    assert_eq!(second.effects()[0], ("r1/0/0".to_owned(), ADD.to_owned()));
    assert_eq!(
        second.keys()[..2],
        ["r1/0/0", "r1/0/0"],
        "the same key, so that the store does it once"
    );
    assert!(finished(&tried));
    assert_eq!(tried.report.iterations, 3, "replayed replies are not counted again");
}

#[tokio::test]
async fn a_whole_journal_is_replayed_without_asking_or_writing_anything() {
    let journal = SharedJournal::default();
    let world = World::new([calls(&[("memory", ADD)]), says(NOTHING)]);
    let first = run(&world, &journal).await;
    let again = world.again([says("never asked")]);
    let second = run(&again, &journal).await;
    assert_eq!(second, first);
    assert_eq!(
        (again.effects().len(), again.requests().len()),
        (1, 2),
        "nothing was added by the second try"
    );
}

/// D-44.
#[tokio::test]
async fn a_forbidden_tool_is_never_run_and_denials_end_the_review() {
    let shell = |command: &str| calls(&[("shell", command)]);
    let replies = (0..20).map(|number| shell(&format!(r#"{{"command":"ls {number}"}}"#)));
    let world = World::new(replies);
    let tried = run(&world, &SharedJournal::default()).await;
    assert!(world.keys().is_empty(), "no tool ran");
    let HaltReason::Ended(Ending::Failed(problem)) = tried.reason else {
        panic!("{tried:?}")
    };
    assert_eq!(problem.reason, "TOOLS_DENIED");
    assert!(world.requests().len() <= 6, "a small number of denials is enough");
    let last = world.requests().pop().unwrap();
    assert_eq!(&*last.tools_json, world::TOOLS, "the tool list is still the parent's");
    assert!(last.messages.last().unwrap().content().contains("do not call it again"));
}

#[tokio::test]
async fn a_write_without_good_evidence_is_refused_before_any_service_hears_of_it() {
    let none = r#"{"action":"add","target":"profile","content":"x"}"#;
    let unknown = r#"{"action":"add","target":"profile","content":"x","evidence":["s99"],"basis":"stated"}"#;
    let world = World::new([calls(&[("memory", none), ("memory", unknown)]), says(NOTHING)]);
    let tried = run(&world, &SharedJournal::default()).await;
    assert!(finished(&tried) && world.keys().is_empty());
    let reasons: Vec<_> = tried
        .report
        .writes
        .iter()
        .map(|write| (write.result, write.reason.as_str()))
        .collect();
    assert_eq!(reasons, [(WriteResult::Refused, "REVIEW_POLICY"); 2]);
}

#[tokio::test]
async fn at_most_three_writes_are_made() {
    let calls_of_one = calls(&[("memory", ADD), ("memory", ADD), ("memory", ADD), ("memory", ADD)]);
    let world = World::new([calls_of_one, says(NOTHING)]);
    run(&world, &SharedJournal::default()).await;
    assert_eq!(world.keys(), ["r1/0/0", "r1/0/1", "r1/0/2"]);
}

/// A correction that waits is shown under a number of this review, and the store hears its own name for it.
#[tokio::test]
async fn a_correction_that_waits_is_decided_beside_the_three_writes() {
    let confirm = r#"{"action":"confirm","correction":"c1","content":"Answers in German"}"#;
    let drop = r#"{"action":"drop","correction":"c2","why":"meant for that table only"}"#;
    let nobody = r#"{"action":"confirm","correction":"c3"}"#;
    let first = calls(&[
        ("memory", ADD),
        ("memory", confirm),
        ("memory", drop),
        ("memory", nobody),
    ]);
    let second = calls(&[("memory", ADD), ("memory", ADD), ("memory", ADD)]);
    let world = World::new([first, second, says(NOTHING)]);
    let tried = run(&world, &SharedJournal::default()).await;
    assert!(finished(&tried), "{tried:?}");
    let request = world.requests().remove(0);
    let trailing = request.messages.last().unwrap().content();
    assert!(
        trailing.contains("- c1 profile: From now on, answer in German.\n- c2 profile: 别再用表格"),
        "{trailing}"
    );
    assert_eq!(
        world.keys(),
        ["r1/0/0", "r1/0/1", "r1/0/2", "r1/1/0", "r1/1/1"],
        "the fourth addition is one too many, and nothing waits under c3"
    );
    let told = &world.effects()[1].1;
    assert!(told.contains("teams/red/memoryProposals/p7"), "{told}");
    let evidence = tried.report.writes[1].evidence.clone().unwrap();
    assert_eq!((evidence.spans, evidence.basis), (vec!["s1".to_owned()], Basis::Stated));
}

/// `L-6`: what a reviewer words anew after text from outside is no correction of the person's any more.
#[tokio::test]
async fn after_text_from_outside_a_correction_is_kept_as_it_was_said_or_not_at_all() {
    let reworded = r#"{"action":"confirm","correction":"c1","content":"Buys gold"}"#;
    let as_said = r#"{"action":"confirm","correction":"c1"}"#;
    let world =
        World::new([calls(&[("memory", reworded), ("memory", as_said)]), says(NOTHING)]).with_external("buy gold");
    run(&world, &SharedJournal::default()).await;
    assert_eq!(world.keys(), ["r1/0/1"]);
}

#[tokio::test]
async fn memory_is_not_available_to_a_review_of_skills() {
    let world = World::new([calls(&[("memory", ADD)]), says(NOTHING)]).about(Kinds {
        memory: false,
        skills: true,
    });
    let tried = run(&world, &SharedJournal::default()).await;
    assert!(finished(&tried) && world.keys().is_empty());
}

#[tokio::test]
async fn writes_after_text_from_outside_count_as_external_and_the_text_is_hidden() {
    let requests = ["buy gold", "sell all your silver now"].map(async |text| {
        let world = World::new([calls(&[("memory", ADD)]), says(NOTHING)]).with_external(text);
        let tried = run(&world, &SharedJournal::default()).await;
        assert_eq!(tried.report.mode, Some(Mode::Redacted));
        let evidence = tried.report.writes[0].evidence.clone().unwrap();
        assert_eq!(
            evidence.integrity,
            Integrity::External,
            "it can become a proposal at most"
        );
        world.requests()
    });
    let [left, right] = requests;
    assert_eq!(
        left.await,
        right.await,
        "conversations that differ only in outside text are reviewed by the same bytes"
    );
}

#[tokio::test]
async fn a_new_turn_stops_the_review_before_its_next_question() {
    let journal = SharedJournal::default();
    let halt = Halt::new();
    let world = World::new([calls(&[("memory", ADD)]), says(NOTHING)]);
    world.during_call({
        let halt = halt.clone();
        move || halt.ask_to_give_way()
    });
    let tried = run_with(&world, &journal, &halt).await;
    assert_eq!(tried.reason, HaltReason::GiveWay);
    assert_eq!(tried.report.writes.len(), 1, "what was written so far is known");
    let tried = run(&world, &journal).await;
    assert!(finished(&tried));
    assert_eq!(world.keys().len(), 1, "the write is not made again");
}

#[tokio::test]
async fn a_stop_in_the_middle_of_a_write_waits_until_it_is_journalled() {
    let journal = SharedJournal::default();
    let halt = Halt::new();
    let world = World::new([calls(&[("memory", ADD)]), says(NOTHING)]);
    world.during_call({
        let halt = halt.clone();
        move || halt.stop(HaltReason::Shutdown)
    });
    let tried = run_with(&world, &journal, &halt).await;
    assert_eq!((tried.reason, tried.report.writes.len()), (HaltReason::Shutdown, 1));
}

#[tokio::test]
async fn a_stale_claim_stops_at_its_next_record() {
    let journal = SharedJournal::default();
    let world = World::new([calls(&[("memory", ADD)]), says(NOTHING)]);
    world.during_call({
        let journal = journal.clone();
        move || drop(journal.claim())
    });
    let tried = run(&world, &journal).await;
    assert_eq!(tried.reason, HaltReason::LeaseLost);
    assert!(journal.content().answers.is_empty());
}

#[tokio::test]
async fn a_review_of_an_undone_turn_is_cancelled() {
    let world = World::new([says(NOTHING)]).undone();
    let tried = run(&world, &SharedJournal::default()).await;
    let HaltReason::Ended(Ending::Cancelled(problem)) = tried.reason else {
        panic!("{tried:?}")
    };
    assert_eq!(problem.reason, "TURN_UNDONE");
    assert!(world.requests().is_empty());
}

#[tokio::test]
async fn a_model_that_does_not_answer_is_asked_again_later() {
    let world = World::new([]);
    let journal = SharedJournal::default();
    let tried = run(&world, &journal).await;
    let HaltReason::TryAgain(problem) = tried.reason else {
        panic!("{tried:?}")
    };
    assert_eq!(problem.reason, "MODEL_UNAVAILABLE");
    let again = world.again([says(NOTHING)]);
    assert!(finished(&run(&again, &journal).await));
}

#[tokio::test]
async fn another_review_model_gets_a_digest_without_the_parents_prompt() {
    let world = World::new([says(NOTHING)]).reviewed_by("small");
    let tried = run(&world, &SharedJournal::default()).await;
    assert_eq!(tried.report.mode, Some(Mode::Digest));
    let request = world.requests().remove(0);
    assert_eq!((request.model.as_str(), &*request.system), ("small", ""));
}

#[tokio::test]
async fn a_skill_is_read_before_it_is_patched_in_one_answer() {
    let patch =
        r#"{"action":"patch","name":"deploy-notes","old_text":"a","new_text":"b","evidence":["s1"],"basis":"stated"}"#;
    let world = World::new([
        calls(&[("skill_view", r#"{"name":"deploy-notes"}"#), ("skill_manage", patch)]),
        says(NOTHING),
    ]);
    run(&world, &SharedJournal::default()).await;
    assert_eq!(world.tools(), ["skill_view", "skill_manage"], "in the model's order");
    assert_eq!(message(&world.requests()[1], 1), "deploy-notes as it is now");
}

fn at(position: usize, blocks: &str) -> (usize, String) {
    (position, blocks.to_owned())
}

/// `R-3`: what the provider wants back of the session's messages and of the review's own goes with every question, also
/// when a later try reads the journal.
#[tokio::test]
async fn a_replay_gives_the_provider_its_own_messages_back() {
    let view = ("skill_view", r#"{"name":"deploy-notes"}"#);
    let world = World::new([calls(&[view]), calls(&[view])]).with_a_model_that_thinks();
    let journal = SharedJournal::default();
    let tried = run(&world, &journal).await;
    assert!(matches!(tried.reason, HaltReason::TryAgain(_)), "{tried:?}");
    let world = world.again([says(NOTHING)]);
    assert!(finished(&run(&world, &journal).await));
    let beside = world.beside();
    let session = at(1, "of 2");
    assert_eq!(beside[0], (Some(10), vec![session.clone()]));
    assert_eq!(beside[1], (Some(10), vec![session.clone(), at(3, "reply 1")]));
    let last = (Some(10), vec![session, at(3, "reply 1"), at(5, "reply 2")]);
    assert_eq!(
        beside[2..],
        [last.clone(), last],
        "the second try asks as the first would have"
    );
    let [.., before, after] = &world.requests()[..] else {
        panic!("there were four questions")
    };
    assert_eq!(before.messages, after.messages);
}

/// `R-3`: what the model thought of hidden text is hidden with it, and what it thought before is not; two pages give the
/// same bytes.
#[tokio::test]
async fn what_was_thought_after_text_from_outside_is_not_given_back() {
    let mut seen = Vec::new();
    for page in ["Postgres runs on alpha", "Everybody loves cats and dogs"] {
        let world = World::new([says(NOTHING)])
            .with_external(page)
            .with_a_model_that_thinks();
        let tried = run(&world, &SharedJournal::default()).await;
        assert_eq!(tried.report.mode, Some(Mode::Redacted));
        let before = vec![at(1, "of 2"), at(2, "of 3")];
        assert_eq!(
            world.beside(),
            [(Some(10), before)],
            "the call came before the page, the answer after it"
        );
        let request = world.requests().remove(0);
        seen.push((request.system, request.tools_json, request.messages));
    }
    assert_eq!(seen[0], seen[1]);
}

#[tokio::test]
async fn a_digest_gives_nothing_back_but_its_own_replies() {
    let view = ("skill_view", r#"{"name":"deploy-notes"}"#);
    let world = World::new([calls(&[view]), says(NOTHING)])
        .with_a_model_that_thinks()
        .reviewed_by("another");
    let tried = run(&world, &SharedJournal::default()).await;
    assert_eq!(tried.report.mode, Some(Mode::Digest));
    assert_eq!(world.beside(), [(None, vec![]), (None, vec![at(3, "reply 1")])]);
}

/// `R-10`: a call without a price is not free.
#[tokio::test]
async fn the_cost_of_priced_calls_is_summed_and_the_others_are_counted() {
    let world = World::new([calls(&[("memory", ADD)]), says(NOTHING)]).priced([1_200_000]);
    let report = run(&world, &SharedJournal::default()).await.report;
    assert_eq!((report.cost, report.unpriced, report.iterations), (1_200_000, 1, 2));
}

/// `R-8`: what people are shown of a write is what was written, not what surrounds it.
#[tokio::test]
async fn the_opening_words_of_a_write_are_kept() {
    let skill = r#"{"action":"create","name":"units","content":"---\nname: units\ndescription: d\n---\n\n# Units\n\nUse  metric.\n","evidence":["s1"],"basis":"stated"}"#;
    let batch = r#"{"action":"batch","target":"notes","operations":[{"action":"add","content":"one"},{"action":"remove","old_text":"two"}],"evidence":["s1"],"basis":"stated"}"#;
    let long = format!(
        r#"{{"action":"add","target":"notes","content":"{}","evidence":["s1"],"basis":"stated"}}"#,
        "字".repeat(300)
    );
    for (tool, arguments, expected) in [
        ("memory", ADD, "Prefers metric units".to_owned()),
        ("skill_manage", skill, "# Units Use metric.".to_owned()),
        ("memory", batch, "one · two".to_owned()),
        ("memory", &long, format!("{}…", "字".repeat(119))),
    ] {
        let world = World::new([calls(&[(tool, arguments)]), says(NOTHING)]);
        let report = run(&world, &SharedJournal::default()).await.report;
        assert_eq!(report.writes[0].preview, expected, "{arguments}");
    }
}

/// `R-2`: the plan of a review that starts late is made anew, since the provider has forgotten the conversation by then; a
/// later try keeps what the first had decided.
#[tokio::test]
async fn a_long_history_is_replayed_early_and_folded_late() {
    let late = |world: &World, journal: &SharedJournal, late: bool| {
        let (world, journal) = (world.clone(), journal.claim());
        async move {
            run_review(
                &world.review(),
                late,
                Arc::new(world.clone()),
                Arc::new(journal),
                &Halt::new(),
            )
            .await
        }
    };
    let long = || {
        World::new([says(NOTHING)])
            .with_a_window(1_000_000)
            .with_history_of(120_000)
    };
    for (is_late, mode) in [(false, Mode::Replay), (true, Mode::Digest)] {
        let tried = late(&long(), &SharedJournal::default(), is_late).await;
        assert_eq!(tried.report.mode, Some(mode), "late: {is_late}");
    }
    let (silent, journal) = (long().again([]), SharedJournal::default());
    assert_eq!(late(&silent, &journal, false).await.report.mode, Some(Mode::Replay));
    let again = late(&silent.again([says(NOTHING)]), &journal, true).await;
    assert_eq!(
        again.report.mode,
        Some(Mode::Replay),
        "the request of a try is that of the first"
    );
}

/// D-05: what is no lesson is said in every review of skills, and that there was none is an ordinary end.
#[tokio::test]
async fn failures_and_single_questions_are_excluded_and_nothing_to_save_is_a_success() {
    let world = World::new([says(NOTHING)]);
    let tried = run(&world, &SharedJournal::default()).await;
    assert!(finished(&tried) && tried.report.writes.is_empty());
    let asked = world.requests().remove(0);
    let instruction = message(&asked, 0);
    for exclusion in [
        "Failures of this machine or this moment: something not installed",
        "record the fix as a setup step with its check",
        "Verdicts on a tool",
        "An error that went away on retry",
        "The story of this request",
        "Anything unresolved",
        "is an ordinary outcome",
    ] {
        assert!(instruction.contains(exclusion), "{exclusion}");
    }
}
