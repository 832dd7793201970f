//! Requests that come again (`T-9`), and what else must not happen twice.

use std::time::Duration;

use steward_base::{Integrity, Span, SpanOrigin, Timestamp};

use super::{World, said, session, team};
use crate::append_messages::{ANSWER_RETENTION, Append, OpenCallsChange};
use crate::create_session::{MAX_TITLE, NewSession};
use crate::error::Error;
use crate::message::{NewMessage, ToolCall};
use crate::session::OpenCall;
use crate::turn::NewDueReview;

/// `T-9`: whoever holds the session by now.
pub async fn a_retry_under_another_fence_returns_the_first_answer(world: &World) {
    world.create("s1").await;
    let fence = world.lease("s1", "t1").await;
    let append = world.append_to("s1", fence, 0, vec![said("once")]);
    let first = world.sessions.append_messages(append.clone()).await.unwrap();
    world.clock.advance(Duration::from_mins(2));
    let next = world.lease("s1", "t1").await;
    assert!(next > fence);
    let again = Append {
        fence: next,
        ..append.clone()
    };
    assert_eq!(world.sessions.append_messages(again).await.unwrap(), first);
    assert_eq!(world.sessions.append_messages(append).await.unwrap(), first);
}

/// `T-9`: for a month, and what comes later still is not done twice.
pub async fn an_answer_is_kept_for_a_month_and_no_longer(world: &World) {
    let new = NewSession {
        id: session("s1"),
        ..world.new_session("s1")
    };
    let created = world.sessions.create_session(new.clone()).await.unwrap();
    let fence = world.lease("s1", "t1").await;
    let append = world.append_to("s1", fence, 0, vec![said("once")]);
    let first = world.sessions.append_messages(append.clone()).await.unwrap();
    world
        .clock
        .advance(ANSWER_RETENTION.saturating_sub(Duration::from_mins(1)));
    assert_eq!(world.sessions.append_messages(append.clone()).await.unwrap(), first);
    assert_eq!(world.sessions.create_session(new.clone()).await.unwrap().id, created.id);
    world.clock.advance(Duration::from_mins(2));
    let late = world.sessions.append_messages(append).await;
    assert!(matches!(
        late,
        Err(Error::SequenceMismatch {
            expected: 0,
            current: 1
        })
    ));
    let late = world.sessions.create_session(new).await;
    assert!(matches!(late, Err(Error::SessionExists { .. })));
}

/// Results name a call by its id.
pub async fn no_two_calls_with_one_id_wait_at_once(world: &World) {
    world.create("s1").await;
    let fence = world.lease("s1", "t1").await;
    let waiting = |id: &str| OpenCall {
        call: ToolCall {
            id: id.to_owned(),
            name: "terminal".to_owned(),
            arguments_json: "{}".to_owned(),
            sent_arguments_json: None,
        },
        turn: "t1".to_owned(),
        expires: Timestamp::default(),
    };
    let add = |calls: Vec<OpenCall>| Append {
        open_calls: OpenCallsChange::Add(calls),
        ..world.append_to("s1", fence, 0, Vec::new())
    };
    world
        .sessions
        .append_messages(add(vec![waiting("c1"), waiting("c2")]))
        .await
        .unwrap();
    for twice in [vec![waiting("c2")], vec![waiting("c3"), waiting("c3")]] {
        let refused = world.sessions.append_messages(add(twice)).await;
        assert!(matches!(refused, Err(Error::Invalid(_))));
    }
    let replaced = Append {
        open_calls: OpenCallsChange::Replace(vec![waiting("c2")]),
        ..add(Vec::new())
    };
    world.sessions.append_messages(replaced).await.unwrap();
    let open = world
        .sessions
        .get_session(&team("red"), &session("s1"))
        .await
        .unwrap()
        .open_calls;
    assert_eq!(
        open.iter().map(|open| open.call.id.as_str()).collect::<Vec<_>>(),
        ["c2"]
    );
}

/// Whatever a message carries counts; so do titles and the ids of turns.
pub async fn nothing_unbounded_is_kept(world: &World) {
    world.create("s1").await;
    let fence = world.lease("s1", "t1").await;
    let span = Span {
        start: 0,
        end: 1,
        origin: SpanOrigin::External("u".repeat(600_000)),
        integrity: Integrity::External,
    };
    let spans = vec![
        span.clone(),
        Span {
            start: 1,
            end: 1,
            ..span
        },
    ];
    let heavy = world.append_to("s1", fence, 0, vec![NewMessage { spans, ..said("x") }]);
    let refused = world.sessions.append_messages(heavy).await;
    assert!(matches!(refused, Err(Error::MessageTooLarge { .. })));
    let titled = |title: String| Append {
        title: Some(title),
        ..world.append_to("s1", fence, 0, Vec::new())
    };
    let refused = world.sessions.append_messages(titled("é".repeat(MAX_TITLE + 1))).await;
    assert!(matches!(refused, Err(Error::Invalid(_))));
    assert!(
        world
            .sessions
            .append_messages(titled("é".repeat(MAX_TITLE)))
            .await
            .is_ok()
    );
}

/// `R-1`: a team's outbox is read by its own, and no limit is used up by another's rows.
pub async fn due_reviews_of_one_team_are_not_hidden_by_anothers(world: &World) {
    for (of, id) in [("red", "s1"), ("red", "s2"), ("red", "s3"), ("blue", "s4")] {
        let new = NewSession {
            team: team(of),
            ..world.new_session(id)
        };
        world.sessions.create_session(new).await.unwrap();
        let (of, ttl) = (team(of), Duration::from_mins(1));
        let lease = world
            .sessions
            .acquire_turn_lease(&of, &session(id), "t1".to_owned(), "p1".to_owned(), ttl)
            .await;
        let review = NewDueReview {
            id: format!("review-{id}"),
            memory: true,
            skills: true,
            turn: "t1".to_owned(),
            traceparent: String::new(),
        };
        let append = Append {
            team: of,
            due_review: Some(review),
            ..world.append_to(id, lease.unwrap().fence, 0, vec![said("thanks")])
        };
        world.sessions.append_messages(append).await.unwrap();
    }
    let ids = async |of: Option<&str>, limit| -> Vec<String> {
        let of = of.map(team);
        let due = world.sessions.list_due_reviews(of.as_ref(), limit).await.unwrap();
        due.into_iter().map(|due| due.review.id).collect()
    };
    assert_eq!(ids(Some("blue"), 2).await, ["review-s4"]);
    assert_eq!(ids(Some("red"), 2).await, ["review-s1", "review-s2"]);
    assert_eq!(ids(Some("never-seen"), 2).await, Vec::<String>::new());
    assert_eq!(ids(None, 10).await.len(), 4);
}
