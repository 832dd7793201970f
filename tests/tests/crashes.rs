//! SIGKILL at nine places along the flow, before and after each, with a model that answers differently the second time:
//! nothing acknowledged is lost, effects come from one journal only, each exactly once.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;

use steward_proto::learning::v1::ReviewState;
use steward_testkit::ModelServer;
use steward_testkit::wait_for_some;
use steward_testkit::{RecordedRequest, Reply, ScriptedCall};
use steward_tests::person::fresh_id;
use steward_tests::stack::PATIENCE;
use steward_tests::{Ended, Person, Segment, Shape, Stack, script};

/// Answers with the number of the request in every effect, so that two answers to one question never agree.
fn fickle(request: &RecordedRequest) -> Reply {
    let first = script::since_user(request).is_empty();
    if script::is_review(request) {
        if !first {
            return script::changed();
        }
        let span = script::span_with(request, "Remember:").expect("the person's span is listed");
        return Reply::calls([script::create_skill(
            "skill",
            &format!("lesson-{}", request.index),
            "Mind it.",
            &span,
        )]);
    }
    if first {
        let arguments = format!(
            r#"{{"action":"add","target":"notes","content":"fact {}"}}"#,
            request.index
        );
        return Reply::calls([ScriptedCall::new("note", "memory", arguments)]);
    }
    Reply::text(format!("done {}", request.index))
}

/// Says it again under the same request id until the turn is over, as a client does that lost its connection.
async fn insist(person: &Person, session: &str, text: &str, id: &str) -> Segment {
    wait_for_some("the turn to end", PATIENCE, || async {
        let segment = person.say_as(session, text, id).await.ok()?;
        matches!(segment.ended, Ended::Completed(_)).then_some(segment)
    })
    .await
}

async fn crash(shape: Shape, service: &'static str, failpoint: &str) {
    let model = ModelServer::scripted(fickle).await;
    let options = common::reviews_after_each_turn(&model)
        .set("AGENT__TURN__LEASE_SECONDS", 2)
        .set("LEARNING__LEASE_SECONDS", 5)
        .set("LEARNING__HEARTBEAT_SECONDS", 1)
        .set("LEARNING__BACKOFF_SECONDS", 0);
    let mut stack = Stack::start("crash", shape, options);
    let owner = stack.owner().await;
    let session = owner.session(Vec::new()).await;
    stack.stop(service).await;
    stack.start_again_with_failpoint(service, &format!("{failpoint}=kill"));
    let (text, id) = ("Remember: crashes lose nothing", fresh_id());
    // The connection may break in the middle, or the answer may come before the crash; both are fine.
    let _ = owner.say_as(&session, text, &id).await;
    stack.wait_for_crash(service).await;
    stack.start_again(service);

    let owner = stack.owner().await;
    let segment = insist(&owner, &session, text, &id).await;
    let reviews = owner.reviews_ended(1).await;
    check_session(&owner, &session, &segment).await;
    assert_eq!(reviews.len(), 1, "{reviews:?}");
    assert_eq!(reviews[0].state(), ReviewState::Succeeded, "{:?}", reviews[0]);
    check_effects(&owner, &session, &reviews[0]).await;
}

/// One message of the person, each call with one result, one final answer, which is the one that was delivered.
async fn check_session(owner: &Person, session: &str, segment: &Segment) {
    let messages = owner.messages(session).await;
    let roles: Vec<_> = messages.iter().map(|message| message.role.as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"], "{messages:?}");
    assert_eq!(messages[0].text, "Remember: crashes lose nothing");
    assert_eq!(messages[3].text, segment.answer());
    let read = owner.read_session(session).await;
    assert_eq!(read.unplanned_prefix_breaks, 0);
    assert_eq!(read.open_turn, "");
}

/// One note and one skill, and the ledger names just these.
async fn check_effects(owner: &Person, session: &str, review: &steward_proto::learning::v1::Review) {
    let notes = owner.notes().await;
    assert_eq!(notes.len(), 1, "{notes:?}");
    let stored = owner.messages(session).await[2].text.clone();
    assert!(!stored.is_empty());
    let skills = owner.skills().await;
    let lessons: Vec<_> = skills
        .iter()
        .filter(|skill| skill.name.contains("/skills/lesson-"))
        .collect();
    assert_eq!(lessons.len(), 1, "{lessons:?}");
    let accepted: Vec<_> = review.writes.iter().filter(|write| write.reason.is_empty()).collect();
    assert_eq!(accepted.len(), 1, "{review:?}");
    assert!(
        lessons[0].name.ends_with(&accepted[0].target) || accepted[0].target.ends_with(&lessons[0].name),
        "{accepted:?} is not {lessons:?}"
    );
}

macro_rules! crashes {
    ($($name:ident: $service:literal, $failpoint:literal;)*) => {
        $(
            mod $name {
                use super::{Shape, crash};

                #[tokio::test(flavor = "multi_thread")]
                async fn before_in_one_process() {
                    crash(Shape::One, $service, concat!($failpoint, ".before")).await;
                }

                #[tokio::test(flavor = "multi_thread")]
                async fn after_in_one_process() {
                    crash(Shape::One, $service, concat!($failpoint, ".after")).await;
                }

                #[tokio::test(flavor = "multi_thread")]
                async fn before_in_five_processes() {
                    crash(Shape::Split, $service, concat!($failpoint, ".before")).await;
                }

                #[tokio::test(flavor = "multi_thread")]
                async fn after_in_five_processes() {
                    crash(Shape::Split, $service, concat!($failpoint, ".after")).await;
                }
            }
        )*
    };
}

crashes! {
    user_message: "agent-orchestrator", "turn.user_message";
    model_reply: "agent-orchestrator", "turn.model_reply";
    tool_write: "agent-orchestrator", "turn.tool_write";
    final_append: "agent-orchestrator", "turn.final_append";
    outbox_pull: "curator-worker", "review.outbox_pull";
    claim: "curator-worker", "review.claim";
    journal: "curator-worker", "review.journal";
    effect: "curator-worker", "review.effect";
    ledger: "curator-worker", "review.ledger";
}
