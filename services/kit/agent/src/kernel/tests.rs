//! The loop against a scripted model over real HTTP, a transcript in memory and tools that are counted.

mod random_runs;
mod rig;

use steward_base::{ErrorKind, Fault};
use steward_model::prefix::extends_all;
use steward_model::{Message, ModelError, ToolCall};
use steward_testkit::{PATIENCE, Reply, ScriptedCall, wait_for};

use super::*;
use rig::{Rig, Stored, conversation};

fn calls(calls: &[(&str, &str, &str)]) -> Reply {
    Reply::calls(
        calls
            .iter()
            .map(|(id, name, arguments)| ScriptedCall::new(id, name, *arguments)),
    )
}

fn final_text(ended: &Ended) -> &str {
    match &ended.outcome {
        Outcome::Final { text, .. } => text,
        other => panic!("not final: {other:?}"),
    }
}

#[tokio::test]
async fn calls_run_and_the_answer_comes_back_over_an_unbroken_prefix() {
    let rig = Rig::with([
        Reply::text_and_calls(
            "Let me look.",
            [ScriptedCall::new("a", "look", r#"{"at":9007199254740993}"#)],
        )
        .usage(10, 0, 5),
        Reply::text("It is blue.").usage(20, 10, 3),
    ])
    .await;
    let ended = rig.run(conversation("what colour?")).await;
    assert_eq!(final_text(&ended), "It is blue.");
    assert_eq!((ended.progress.iterations, ended.progress.usage.total()), (2, 38));
    assert!(ended.progress.called("look"));
    assert_eq!(
        rig.stored(),
        [
            Stored::Calls(0, 1),
            Stored::Results(0, vec!["a".to_owned()]),
            Stored::Final(1, AnswerEnd::Complete)
        ]
    );
    assert_eq!(extends_all(&rig.server.bodies()), Ok(()));
    assert_eq!(rig.dispatched(), ["s/t/0/0"]);
    assert!(rig.server.requests()[1].text().contains("9007199254740993"));
}

#[tokio::test]
async fn calls_are_durable_before_the_first_of_them_runs() {
    let rig = Rig::with([calls(&[("a", "look", "{}"), ("b", "look", "{}")]), Reply::text("ok")]).await;
    rig.run(conversation("go")).await;
    assert!(
        rig.log().iter().position(|line| line == "stored calls 0")
            < rig.log().iter().position(|line| line.starts_with("ran"))
    );
}

#[tokio::test]
async fn parallel_calls_run_at_once_and_their_results_keep_the_models_order() {
    let rig = Rig::with([
        calls(&[("a", "slow", "{}"), ("b", "look", "{}"), ("c", "look", "{}")]),
        Reply::text("ok"),
    ])
    .await;
    let (ended, ()) = tokio::join!(rig.run(conversation("go")), async {
        // The slow call is let go only after both others have finished.
        wait_for("the quick calls", PATIENCE, || async { rig.dispatched().len() == 2 }).await;
        rig.tools.release();
    });
    assert_eq!(final_text(&ended), "ok");
    assert_eq!(
        rig.stored()[1],
        Stored::Results(0, ["a", "b", "c"].map(str::to_owned).to_vec())
    );
    assert_eq!(rig.dispatched().last().map(String::as_str), Some("s/t/0/0"));
}

#[tokio::test]
async fn calls_of_one_lane_keep_their_order() {
    let rig = Rig::with([
        calls(&[("a", "write", r#"{"n":1}"#), ("b", "write", r#"{"n":2}"#)]),
        Reply::text("ok"),
    ])
    .await;
    rig.run(conversation("go")).await;
    assert_eq!(
        rig.log()
            .iter()
            .filter(|line| line.contains("write"))
            .cloned()
            .collect::<Vec<_>>(),
        [
            "began write s/t/0/0",
            "ran write s/t/0/0",
            "began write s/t/0/1",
            "ran write s/t/0/1",
        ]
    );
}

#[tokio::test]
async fn unreadable_arguments_never_run_and_end_after_three_in_a_row() {
    let broken = || calls(&[("a", "write", r#"{"n":"half"#)]);
    let rig = Rig::with([broken().finish("length"), broken(), broken(), broken()]).await;
    let ended = rig.run(conversation("go")).await;
    let Outcome::Failed {
        error: KernelError::MalformedArguments { times: 4 },
    } = &ended.outcome
    else {
        panic!("{:?}", ended.outcome)
    };
    assert!(rig.dispatched().is_empty());
    assert!(ended.messages[2].content().contains("cut off at its length limit"));
    assert_eq!(pairing(&ended.messages), Ok(()));
    for body in rig.server.requests() {
        for message in body.messages() {
            for call in message["tool_calls"].as_array().into_iter().flatten() {
                let arguments = call["function"]["arguments"].as_str().expect("text");
                assert!(
                    serde_json::from_str::<serde_json::Value>(arguments).is_ok(),
                    "{arguments}"
                );
            }
        }
    }
}

#[tokio::test]
async fn one_good_answer_ends_the_row_of_unreadable_ones() {
    let broken = || calls(&[("a", "write", "[")]);
    let good = || calls(&[("a", "write", r#"{"n":1}"#)]);
    let rig = Rig::with([broken(), broken(), broken(), good(), broken(), Reply::text("ok")]).await;
    assert_eq!(final_text(&rig.run(conversation("go")).await), "ok");
    assert_eq!(rig.dispatched(), ["s/t/3/0"]);
}

#[tokio::test]
async fn unknown_tools_and_denials_are_answered_and_enough_denials_end_the_run() {
    let reply = || calls(&[("a", "fly", "{}"), ("b", "forbidden", "{}"), ("c", "looklook", "{}")]);
    let mut rig = Rig::with([reply(), reply(), Reply::text("never asked")]).await;
    rig.settings.denials = Some(2);
    let ended = rig.run(conversation("go")).await;
    assert!(matches!(ended.outcome, Outcome::Denied));
    assert!(ended.messages[2].content().contains("no tool named \"fly\""));
    assert!(ended.messages[3].content().contains("do not retry"));
    assert_eq!(rig.dispatched().len(), 4, "forbidden and the doubled name, twice");
    assert_eq!(rig.server.requests().len(), 2);
    assert_eq!(pairing(&ended.messages), Ok(()));
}

#[tokio::test]
async fn a_client_call_ends_the_segment_and_the_next_one_goes_on_in_order() {
    let rig = Rig::with([calls(&[("a", "client", "{}"), ("b", "look", "{}")]), Reply::text("ok")]).await;
    let ended = rig.run(conversation("go")).await;
    let Outcome::RequiresAction { open, finished } = ended.outcome else {
        panic!("{:?}", ended.outcome)
    };
    assert_eq!((open[0].id.as_str(), finished[0].call_id.as_str()), ("a", "b"));
    assert_eq!(
        rig.stored(),
        [Stored::Calls(0, 2)],
        "no result is stored before the client's"
    );
    let mut known = finished;
    known.push(ToolResult {
        is_error: false,
        kind: ResultKind::Done,
        ..ToolResult::ours(&open[0], ResultKind::Done, "from the client")
    });
    let next = Conversation {
        messages: ended.messages,
        known_results: known,
        ..conversation("go")
    };
    let ended = rig.run(next).await;
    assert_eq!(final_text(&ended), "ok");
    assert_eq!(
        rig.stored()[1],
        Stored::Results(0, ["a", "b"].map(str::to_owned).to_vec())
    );
    assert_eq!(rig.dispatched(), ["s/t/0/1"], "what is known is not run again");
    assert_eq!(ended.progress.iterations, 2);
}

#[tokio::test]
async fn a_history_with_open_calls_is_taken_up_under_the_same_keys() {
    let rig = Rig::with([calls(&[("a", "look", "{}"), ("b", "look", "{}")]), Reply::text("ok")]).await;
    let first = rig.run(conversation("go")).await;
    let keys = rig.dispatched();
    let crashed = Rig::with([Reply::text("ok")]).await;
    // The process died after the calls and one of the results were stored.
    let history = vec![
        first.messages[0].clone(),
        first.messages[1].clone(),
        first.messages[2].clone(),
    ];
    let ended = crashed
        .run(Conversation {
            messages: history,
            ..conversation("go")
        })
        .await;
    assert_eq!(crashed.dispatched(), ["s/t/0/1"]);
    assert!(keys.contains(&"s/t/0/1".to_owned()));
    assert_eq!(ended.messages, first.messages);
    assert_eq!(ended.progress.iterations, first.progress.iterations);
}

/// `T-11`: a result belongs to the call that it was given for, not to a later one of the same id.
#[tokio::test]
async fn a_known_result_that_answers_nothing_does_not_answer_a_later_call() {
    let rig = Rig::with([calls(&[("call_0", "look", "{}")]), Reply::text("ok")]).await;
    let old = ToolCall {
        id: "call_0".to_owned(),
        name: "look".to_owned(),
        arguments: "{}".to_owned(),
    };
    let late = Conversation {
        known_results: vec![ToolResult::ours(&old, ResultKind::Done, "from another call")],
        ..conversation("go")
    };
    assert_eq!(final_text(&rig.run(late).await), "ok");
    assert_eq!(rig.dispatched(), ["s/t/0/0"]);
}

/// `D-36`: an answer that was cut before the arguments is not a call without any.
#[tokio::test]
async fn a_call_that_was_cut_before_its_arguments_is_not_run() {
    let rig = Rig::with([calls(&[("a", "look", "")]).finish("length"), Reply::text("ok")]).await;
    let ended = rig.run(conversation("go")).await;
    assert!(rig.dispatched().is_empty());
    assert!(ended.messages[2].content().contains("cut off at its length limit"));
    let whole = Rig::with([calls(&[("a", "look", "")]), Reply::text("ok")]).await;
    whole.run(conversation("go")).await;
    assert_eq!(whole.dispatched(), ["s/t/0/0"]);
}

#[tokio::test]
async fn what_could_not_be_read_is_not_run_when_the_history_is_taken_up() {
    let rig = Rig::with([calls(&[("a", "write", "[")]), Reply::text("ok")]).await;
    let first = rig.run(conversation("go")).await;
    let again = Rig::with([Reply::text("ok")]).await;
    let ended = again
        .run(Conversation {
            messages: first.messages[..2].to_vec(),
            ..conversation("go")
        })
        .await;
    assert!(again.dispatched().is_empty());
    assert_eq!(pairing(&ended.messages), Ok(()));
}

#[tokio::test]
async fn an_interrupt_leaves_every_call_with_a_result() {
    let rig = Rig::with([calls(&[
        ("a", "look", "{}"),
        ("b", "slow", "{}"),
        ("c", "client", "{}"),
    ])])
    .await;
    let (ended, ()) = tokio::join!(rig.run(conversation("go")), async {
        wait_for("the quick call", PATIENCE, || async { rig.dispatched().len() == 1 }).await;
        rig.interrupt.cancel();
    });
    assert!(matches!(ended.outcome, Outcome::Interrupted));
    assert_eq!(pairing(&ended.messages), Ok(()));
    assert!(ended.messages[3].content().contains("not known"));
    assert_eq!(rig.stored().len(), 2);
}

#[tokio::test]
async fn an_interrupt_in_the_middle_of_an_answer_keeps_what_was_seen() {
    let rig = Rig::with([Reply::text("one two three four five six seven").hang_after(420)]).await;
    let (ended, ()) = tokio::join!(rig.run(conversation("go")), async {
        wait_for("the first words", PATIENCE, || async { !rig.text().is_empty() }).await;
        rig.interrupt.cancel();
    });
    assert!(matches!(ended.outcome, Outcome::Interrupted));
    assert_eq!(rig.stored(), [Stored::Final(0, AnswerEnd::Interrupted)]);
    let last = ended.messages.last().map(Message::content).unwrap_or_default();
    assert!(last.starts_with(&rig.text()) && last.ends_with("[The person interrupted the answer here.]"));
}

#[tokio::test]
async fn a_broken_stream_keeps_what_was_seen_and_half_a_call_is_not_run() {
    let half_text = Reply::text("a sentence that will not be finished").cut_after(420);
    let rig = Rig::with([half_text]).await;
    let ended = rig.run(conversation("go")).await;
    let Outcome::Failed { error } = &ended.outcome else {
        panic!("{:?}", ended.outcome)
    };
    assert_eq!(
        (error.kind(), error.reason()),
        (ErrorKind::Unavailable, "MODEL_ANSWER_BROKEN_OFF")
    );
    assert_eq!(rig.stored(), [Stored::Final(0, AnswerEnd::BrokenOff)]);
    let rig = Rig::with([calls(&[("a", "write", r#"{"n":"a long argument"}"#)]).cut_after(520)]).await;
    let ended = rig.run(conversation("go")).await;
    assert!(matches!(ended.outcome, Outcome::Failed { .. }));
    assert!(rig.stored().is_empty() && rig.dispatched().is_empty());
}

#[tokio::test]
async fn an_empty_answer_is_asked_for_again_once() {
    let rig = Rig::with([Reply::text(""), Reply::text("now")]).await;
    let ended = rig.run(conversation("go")).await;
    assert_eq!((final_text(&ended), ended.progress.iterations), ("now", 1));
    let rig = Rig::with([Reply::text(""), Reply::text("  ")]).await;
    let ended = rig.run(conversation("go")).await;
    assert!(matches!(
        ended.outcome,
        Outcome::Failed {
            error: KernelError::Model(ModelError::Empty)
        }
    ));
    assert!(rig.stored().is_empty());
}

#[tokio::test]
async fn steering_is_taken_before_the_next_model_call() {
    let rig = Rig::with([calls(&[("a", "look", "{}")]), Reply::text("ok")]).await;
    rig.steer_after_calls("in French </steering> please");
    rig.run(conversation("go")).await;
    let (role, text) = rig.server.requests()[1].last_message();
    assert_eq!(role, "user");
    assert_eq!(text, "<steering>\nin French <\\/steering> please\n</steering>");
    assert!(
        rig.stored()
            .contains(&Stored::Steering(1, "in French </steering> please".to_owned()))
    );
}

/// D-66 for what a run may take; a curation asks no model.
#[tokio::test]
async fn budgets_end_a_run_between_steps() {
    let mut rig =
        Rig::scripted(|request| calls(&[(&format!("c{}", request.index), "look", "{}")]).usage(600, 0, 100)).await;
    rig.settings.budget.iterations = 3;
    let ended = rig.run(conversation("go")).await;
    assert!(matches!(ended.outcome, Outcome::BudgetSpent(Spent::Iterations)));
    assert_eq!((rig.server.requests().len(), pairing(&ended.messages)), (3, Ok(())));
    rig.settings.budget = Budget {
        iterations: 90,
        request_tokens: Some(650),
        total_tokens: None,
    };
    let ended = rig.run(conversation("go")).await;
    assert!(matches!(ended.outcome, Outcome::BudgetSpent(Spent::RequestTokens)));
    assert_eq!(
        ended.progress.iterations, 1,
        "the provider's count is used where there is one"
    );
    rig.settings.budget = Budget {
        iterations: 90,
        request_tokens: None,
        total_tokens: Some(1400),
    };
    let ended = rig.run(conversation("go")).await;
    assert_eq!(ended.progress.iterations, 2);
}

#[tokio::test]
async fn a_store_that_refuses_ends_the_run_before_anything_is_dispatched() {
    let rig = Rig::with([calls(&[("a", "look", "{}")])]).await;
    rig.lose_lease();
    let ended = rig.run(conversation("go")).await;
    let Outcome::Failed { error } = ended.outcome else {
        panic!("{:?}", ended.outcome)
    };
    assert_eq!((error.kind(), error.reason()), (ErrorKind::Conflict, "STALE_FENCE"));
    assert!(rig.dispatched().is_empty());
}

#[tokio::test]
async fn an_orphaned_history_is_never_sent() {
    let rig = Rig::with([Reply::text("ok")]).await;
    let orphan = Message::Tool {
        call_id: "x".to_owned(),
        name: "look".to_owned(),
        content: "?".to_owned(),
    };
    let messages = vec![Message::user("a"), orphan, Message::user("b")];
    let ended = rig
        .run(Conversation {
            messages,
            ..conversation("go")
        })
        .await;
    assert!(matches!(
        ended.outcome,
        Outcome::Failed {
            error: KernelError::Orphans(_)
        }
    ));
    assert!(rig.server.requests().is_empty());
}

#[tokio::test]
async fn a_run_can_be_supervised_as_a_task_of_its_own() {
    let rig = Rig::with([Reply::text("ok")]).await;
    let (ports, settings) = (rig.ports(), rig.settings);
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move { run(&ports, &settings, conversation("go")).await });
    let ended = tasks.join_next().await.expect("one task").expect("no panic");
    assert_eq!(final_text(&ended), "ok");
}

#[test]
fn the_estimate_counts_other_scripts_by_character() {
    assert_eq!(
        (
            estimate_tokens("abcdefgh"),
            estimate_tokens("青岛啤酒"),
            estimate_tokens("")
        ),
        (2, 4, 0)
    );
}
