//! Appends: everything or nothing, once.

use steward_base::{Integrity, Span, SpanOrigin, Timestamp};

use super::{World, answered, returned, said, session, team};
use crate::append_messages::{Append, OPEN_CALL_TTL, OpenCallsChange};
use crate::create_session::NewSession;
use crate::error::Error;
use crate::message::{Message, NewMessage, ToolCall};
use crate::session::{Counters, Exposure, OpenCall, PrefixState, Usage};
use crate::sessions::DueReviewRef;
use crate::store::{MessageRange, Taken, Visibility};
use crate::turn::{NewDueReview, TurnState, TurnUpdate};

async fn all(world: &World, id: &str) -> Vec<Message> {
    let range = MessageRange::in_context(1, u64::MAX, 1_000);
    world
        .sessions
        .list_messages(&team("red"), &session(id), &range)
        .await
        .unwrap()
        .messages
}

fn update(id: &str, state: TurnState) -> TurnUpdate {
    TurnUpdate {
        id: id.to_owned(),
        state,
        iterations: 2,
        segments: 1,
        error_reason: String::new(),
        error_message: String::new(),
    }
}

fn due(id: &str) -> NewDueReview {
    NewDueReview {
        id: id.to_owned(),
        memory: true,
        skills: false,
        turn: "t1".to_owned(),
        traceparent: "00-trace".to_owned(),
    }
}

fn loaded_skill() -> Exposure {
    Exposure {
        artifact: "teams/red/skills/a".to_owned(),
        revision: "1".to_owned(),
        stage: "loaded".to_owned(),
        assignment_unit: String::new(),
        arm: String::new(),
        propensity: None,
    }
}

fn open_call() -> OpenCall {
    let call = ToolCall {
        id: "c1".to_owned(),
        name: "terminal".to_owned(),
        arguments_json: "{}".to_owned(),
        sent_arguments_json: None,
    };
    OpenCall {
        call,
        turn: "t1".to_owned(),
        expires: Timestamp::default(),
    }
}

/// Every field survives, arguments byte for byte.
pub async fn messages_are_numbered_without_gaps_and_come_back_whole(world: &World) {
    world.create("s1").await;
    let span = Span {
        start: 0,
        end: 3,
        origin: SpanOrigin::User("ann".to_owned()),
        integrity: Integrity::Person,
    };
    let call = ToolCall {
        id: "c1".to_owned(),
        name: "terminal".to_owned(),
        arguments_json: "{\"b\": 9007199254740993,\"a\":1 }".to_owned(),
        sent_arguments_json: Some("{}".to_owned()),
    };
    let messages = vec![
        NewMessage {
            sent_text: Some("<x>say".to_owned()),
            spans: vec![span],
            ..said("say")
        },
        NewMessage {
            tool_calls: vec![call],
            usage: Some(Usage {
                input: Some(10),
                cached_input: Some(0),
                cache_write: None,
                output: Some(3),
            }),
            ..answered("")
        },
        returned("out\u{0}put"),
    ];
    let fence = world.lease("s1", "t1").await;
    let mut append = world.append_to("s1", fence, 0, messages.clone());
    append.turn = Some(update("t1", TurnState::Running));
    assert_eq!(world.sessions.append_messages(append).await.unwrap().last_seq, 3);
    let stored = all(world, "s1").await;
    assert_eq!(stored.iter().map(|message| message.seq).collect::<Vec<_>>(), [1, 2, 3]);
    for (stored, sent) in stored.iter().zip(messages) {
        assert_eq!(
            stored.body,
            NewMessage {
                turn: "t1".to_owned(),
                ..sent
            }
        );
        assert_eq!(stored.model, "m1");
    }
}

/// `T-9`, also after the lease is gone.
pub async fn the_same_append_again_returns_the_first_answer(world: &World) {
    world.create("s1").await;
    let fence = world.lease("s1", "t1").await;
    let append = Append {
        due_review: Some(due("r1")),
        ..world.append_to("s1", fence, 0, vec![said("once")])
    };
    let first = world.sessions.append_messages(append.clone()).await.unwrap();
    world
        .sessions
        .release_turn_lease(&team("red"), &session("s1"), fence)
        .await
        .unwrap();
    assert_eq!(world.sessions.append_messages(append.clone()).await.unwrap(), first);
    let mut other = append;
    "another".clone_into(&mut other.request.hash);
    let refused = world.sessions.append_messages(other).await;
    assert!(matches!(refused, Err(Error::RequestIdReused { .. })));
    assert_eq!(all(world, "s1").await.len(), 1);
    assert_eq!(world.sessions.list_due_reviews(None, 10).await.unwrap().len(), 1);
}

/// Neither rows nor index nor outbox.
pub async fn an_append_that_is_refused_leaves_nothing(world: &World) {
    world.create("s1").await;
    let fence = world.lease("s1", "t1").await;
    let before = world.sessions.get_session(&team("red"), &session("s1")).await.unwrap();
    let late = Append {
        due_review: Some(due("r1")),
        ..world.append_to("s1", fence, 7, vec![said("kingfisher")])
    };
    let refused = world.sessions.append_messages(late).await;
    assert!(matches!(
        refused,
        Err(Error::SequenceMismatch {
            expected: 7,
            current: 0
        })
    ));
    let wrong = world.append_to(
        "s1",
        fence,
        0,
        vec![
            said("kingfisher"),
            NewMessage {
                result: None,
                ..returned("x")
            },
        ],
    );
    assert!(matches!(
        world.sessions.append_messages(wrong).await,
        Err(Error::Invalid(_))
    ));
    assert_eq!(
        world.sessions.get_session(&team("red"), &session("s1")).await.unwrap(),
        before
    );
    assert!(all(world, "s1").await.is_empty() && world.found("kingfisher").await.is_empty());
    assert!(world.sessions.list_due_reviews(None, 10).await.unwrap().is_empty());
}

/// Checked where the write lands.
pub async fn a_stale_fence_cannot_append(world: &World) {
    world.create("s1").await;
    let never = world.append_to("s1", 0, 0, vec![said("x")]);
    assert!(matches!(
        world.sessions.append_messages(never).await,
        Err(Error::StaleFence { .. })
    ));
    let old = world.lease("s1", "t1").await;
    world
        .sessions
        .release_turn_lease(&team("red"), &session("s1"), old)
        .await
        .unwrap();
    let new = world.lease("s1", "t2").await;
    let late = world.append_to("s1", old, 0, vec![said("late")]);
    let refused = world.sessions.append_messages(late).await;
    assert!(matches!(refused, Err(Error::StaleFence { fence, current }) if (fence, current) == (old, new)));
    let good = world.append_to("s1", new, 0, vec![said("good")]);
    assert!(world.sessions.append_messages(good).await.is_ok());
}

/// Counters, prefix, usage, title, open calls and exposures go with the messages.
pub async fn state_changes_with_the_messages(world: &World) {
    let created = world.create("s1").await;
    let fence = world.lease("s1", "t1").await;
    let prefix = PrefixState {
        tools_sha256: "aa".to_owned(),
        messages_bytes: 99,
        requests: 1,
        ..Default::default()
    };
    let exposure = loaded_skill();
    let usage = Usage {
        input: Some(5),
        output: Some(2),
        ..Usage::default()
    };
    let counters = Counters {
        turns_since_memory: 1,
        iterations_since_skill: 2,
        user_turns: 3,
    };
    let append = Append {
        counters: Some(counters),
        prefix: Some(prefix.clone()),
        usage: Some(usage),
        title: Some("Named".to_owned()),
        open_calls: OpenCallsChange::Replace(vec![open_call()]),
        exposures: vec![exposure.clone()],
        ..world.append_to("s1", fence, 0, vec![said("x")])
    };
    world.sessions.append_messages(append).await.unwrap();
    let more = Append {
        usage: Some(usage),
        ..world.append_to("s1", fence, 1, Vec::new())
    };
    world.sessions.append_messages(more).await.unwrap();
    let changed = world.sessions.get_session(&team("red"), &session("s1")).await.unwrap();
    assert_eq!(
        (changed.counters, changed.prefix, changed.title.as_str()),
        (counters, prefix, "Named")
    );
    assert_eq!(
        changed.usage,
        Usage {
            input: Some(10),
            output: Some(4),
            ..Usage::default()
        }
    );
    assert_eq!(changed.exposures, [exposure]);
    assert_eq!(changed.open_calls.len(), 1);
    assert_eq!(changed.open_calls[0].expires, changed.last_active.plus(OPEN_CALL_TTL));
    assert!(changed.last_active > created.last_active && changed.revision > created.revision);
    let cleared = Append {
        open_calls: OpenCallsChange::Replace(Vec::new()),
        ..world.append_to("s1", fence, 1, Vec::new())
    };
    world.sessions.append_messages(cleared).await.unwrap();
    let changed = world.sessions.get_session(&team("red"), &session("s1")).await.unwrap();
    assert!(changed.open_calls.is_empty());
}

/// From its first update to an end that is final.
pub async fn a_turn_moves_from_running_to_its_end(world: &World) {
    world.create("s1").await;
    let (red, s1) = (team("red"), session("s1"));
    assert!(matches!(
        world.sessions.get_turn(&red, &s1, "t1").await,
        Err(Error::TurnNotFound { .. })
    ));
    let fence = world.lease("s1", "t1").await;
    let steps = [
        TurnState::Running,
        TurnState::RequiresAction,
        TurnState::Running,
        TurnState::Completed,
    ];
    for (seq, state) in (0..).zip(steps) {
        let append = Append {
            turn: Some(update("t1", state)),
            ..world.append_to("s1", fence, seq, vec![said("x")])
        };
        world.sessions.append_messages(append).await.unwrap();
        let open = world.sessions.get_session(&red, &s1).await.unwrap().open_turn;
        assert_eq!(open.as_deref(), state.is_open().then_some("t1"));
    }
    let turn = world.sessions.get_turn(&red, &s1, "t1").await.unwrap();
    assert_eq!(
        (turn.state, turn.first_seq, turn.last_seq),
        (TurnState::Completed, 1, 4)
    );
    assert!(turn.ended.is_some_and(|ended| ended > turn.created));
    let reopened = Append {
        turn: Some(update("t1", TurnState::Running)),
        ..world.append_to("s1", fence, 4, vec![said("kingfisher")])
    };
    assert!(matches!(
        world.sessions.append_messages(reopened).await,
        Err(Error::Invalid(_))
    ));
}

/// The next holder hears of it, and no two turns of a session are ever open.
pub async fn a_turn_that_was_left_open_is_closed_by_the_next(world: &World) {
    world.create("s1").await;
    let (red, s1) = (team("red"), session("s1"));
    let fence = world.lease("s1", "t1").await;
    let begin = Append {
        turn: Some(update("t1", TurnState::Running)),
        ..world.append_to("s1", fence, 0, vec![said("first")])
    };
    world.sessions.append_messages(begin).await.unwrap();
    world.sessions.release_turn_lease(&red, &s1, fence).await.unwrap();
    let ttl = std::time::Duration::from_mins(1);
    let grant = world
        .sessions
        .acquire_turn_lease(&red, &s1, "t2".to_owned(), "p2".to_owned(), ttl)
        .await
        .unwrap();
    assert_eq!(grant.interrupted_turn.as_deref(), Some("t1"));
    let next = Append {
        turn: Some(update("t2", TurnState::Running)),
        ..world.append_to("s1", grant.fence, 1, vec![said("second")])
    };
    world.sessions.append_messages(next).await.unwrap();
    assert_eq!(
        world.sessions.get_turn(&red, &s1, "t1").await.unwrap().state,
        TurnState::Interrupted
    );
    assert_eq!(
        world
            .sessions
            .get_session(&red, &s1)
            .await
            .unwrap()
            .open_turn
            .as_deref(),
        Some("t2")
    );
}

/// `R-1`: reading does not remove; unknown ids are ignored; a newer one stands beside an older.
pub async fn due_reviews_stay_until_acknowledged(world: &World) {
    for id in ["s1", "s2"] {
        world.create(id).await;
    }
    for (id, review, seq) in [("s1", "r1", 0), ("s2", "r2", 0), ("s1", "r3", 1)] {
        let fence = world.lease(id, "t1").await;
        let append = Append {
            due_review: Some(due(review)),
            ..world.append_to(id, fence, seq, vec![said("thanks")])
        };
        let appended = world.sessions.append_messages(append).await.unwrap();
        assert_eq!(
            appended.due_review,
            Some(format!("teams/red/sessions/{id}/dueReviews/{review}"))
        );
    }
    let listed = world.sessions.list_due_reviews(None, 10).await.unwrap();
    let seen: Vec<(&str, u64)> = listed.iter().map(|due| (due.review.id.as_str(), due.to_seq)).collect();
    assert_eq!(seen, [("r1", 1), ("r2", 1), ("r3", 2)]);
    assert_eq!(world.sessions.list_due_reviews(None, 2).await.unwrap(), listed[..2]);
    let reference = |id: &str, review: &str| DueReviewRef {
        team: team("red"),
        session: session(id),
        id: review.to_owned(),
    };
    let taken = vec![reference("s1", "r1"), reference("s2", "gone"), reference("s1", "r3")];
    assert_eq!(world.sessions.acknowledge_due_reviews(taken.clone()).await.unwrap(), 2);
    assert_eq!(world.sessions.acknowledge_due_reviews(taken).await.unwrap(), 0);
    assert_eq!(world.sessions.list_due_reviews(None, 10).await.unwrap(), listed[1..2]);
    world
        .sessions
        .acknowledge_due_reviews(vec![reference("s2", "r2")])
        .await
        .unwrap();
    assert!(world.sessions.list_due_reviews(None, 10).await.unwrap().is_empty());
    assert!(world.sessions.list_due_reviews(None, 10).await.unwrap().is_empty());
}

/// `T-5`, `R-5`: the answer is kept all the same.
pub async fn a_session_that_skips_reviews_makes_none_due(world: &World) {
    world
        .sessions
        .create_session(NewSession {
            skip_review: true,
            ..world.new_session("s1")
        })
        .await
        .unwrap();
    let fence = world.lease("s1", "t1").await;
    let append = Append {
        due_review: Some(due("r1")),
        ..world.append_to("s1", fence, 0, vec![said("thanks")])
    };
    let appended = world.sessions.append_messages(append).await.unwrap();
    assert_eq!((appended.last_seq, appended.due_review), (1, None));
    assert!(world.sessions.list_due_reviews(None, 10).await.unwrap().is_empty());
}

/// First or last ones, by role, by visibility, always ascending.
pub async fn messages_are_taken_from_either_end(world: &World) {
    world.create("s1").await;
    let messages = vec![said("1"), answered("2"), returned("3"), answered("4"), said("5")];
    world.say("s1", messages).await;
    let seqs = async |range: MessageRange| -> Vec<u64> {
        let found = world
            .store
            .messages(&team("red"), &session("s1"), &range)
            .await
            .unwrap();
        found.iter().map(|message| message.seq).collect()
    };
    let first = MessageRange::in_context(2, 4, 2);
    assert_eq!(seqs(first.clone()).await, [2, 3]);
    assert_eq!(
        seqs(MessageRange {
            taken: Taken::Last,
            ..first.clone()
        })
        .await,
        [3, 4]
    );
    let roles = vec![crate::message::Role::Assistant];
    assert_eq!(seqs(MessageRange { roles, ..first.clone() }).await, [2, 4]);
    world.rewind("s1", 4).await;
    world.compact("s1", (2, 2), 5).await;
    let every = MessageRange::in_context(1, u64::MAX, 100);
    assert_eq!(seqs(every.clone()).await, [1, 6, 3, 4]);
    assert_eq!(
        seqs(MessageRange {
            visibility: Visibility::Searchable,
            ..every.clone()
        })
        .await,
        [1, 2, 3, 4, 6]
    );
    assert_eq!(
        seqs(MessageRange {
            visibility: Visibility::All,
            ..every.clone()
        })
        .await,
        [1, 2, 3, 4, 5, 6]
    );
    let missing = world
        .sessions
        .list_messages(&team("red"), &session("gone"), &every)
        .await;
    assert!(matches!(missing, Err(Error::SessionNotFound { .. })));
}

/// Pages end at their limit and go on where they ended.
pub async fn a_page_of_messages_says_where_the_next_begins(world: &World) {
    world.create("s1").await;
    world.say("s1", vec![said("x"); 100]).await;
    let (mut from, mut sizes) = (1, Vec::new());
    loop {
        let range = MessageRange::in_context(from, u64::MAX, 45);
        let page = world
            .sessions
            .list_messages(&team("red"), &session("s1"), &range)
            .await
            .unwrap();
        assert_eq!(page.messages[0].seq, from);
        sizes.push(page.messages.len());
        match page.next {
            Some(next) => from = next,
            None => break,
        }
    }
    assert_eq!(sizes, [45, 45, 10]);
}

/// What the model says is trusted no further than the worst it has been told; a person's words keep their own.
pub async fn integrity_follows_what_stood_in_the_context(world: &World) {
    world.create("s1").await;
    let outside = Span {
        start: 0,
        end: 3,
        origin: SpanOrigin::External("https://example.org".to_owned()),
        integrity: Integrity::External,
    };
    let web = NewMessage {
        spans: vec![outside],
        ..returned("web")
    };
    world.say("s1", vec![said("q"), answered("a")]).await;
    world
        .say("s1", vec![web, answered("b"), said("c"), answered("d")])
        .await;
    let levels: Vec<Integrity> = all(world, "s1").await.iter().map(|message| message.integrity).collect();
    let (outside, person) = (Integrity::External, Integrity::Person);
    assert_eq!(levels, [person, person, outside, outside, person, outside]);
}

/// The limit counts everything that is kept of a message.
pub async fn oversized_messages_are_refused(world: &World) {
    world.create("s1").await;
    let fence = world.lease("s1", "t1").await;
    let large = NewMessage {
        sent_text: Some("x".repeat(600_000)),
        ..said(&"y".repeat(600_000))
    };
    let refused = world
        .sessions
        .append_messages(world.append_to("s1", fence, 0, vec![large]))
        .await;
    assert!(matches!(
        refused,
        Err(Error::MessageTooLarge {
            limit: 1_000_000,
            actual: 1_200_000
        })
    ));
}
