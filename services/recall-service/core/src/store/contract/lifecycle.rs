//! What becomes of a session as a whole: deleted, rewound, forked, compacted, waiting for too long.

use std::time::Duration;

use super::{World, answered, asker, names, returned, said, session, team};
use crate::append_messages::{Append, OpenCallsChange};
use crate::delete_session::Deletion;
use crate::error::Error;
use crate::fork_session::Fork;
use crate::import_session::WholeSession;
use crate::lease::LeaseRequest;
use crate::mark_compacted::Compaction;
use crate::message::{Message, NewMessage, Replaced, Role, ToolCall};
use crate::rewind_session::Rewind;
use crate::search::{Discover, Scroll};
use crate::session::{LineageReason, OpenCall, Session};
use crate::store::{MessageRange, Visibility};
use crate::turn::{NewDueReview, TurnState, TurnUpdate};
use crate::update_session::{Changes, SessionUpdate};

pub(super) fn deletion(id: &str, etag: &str) -> Deletion {
    Deletion {
        team: team("red"),
        session: session(id),
        etag: etag.to_owned(),
    }
}

pub(super) fn cut(world: &World, id: &str, to: u64) -> Rewind {
    Rewind {
        team: team("red"),
        session: session(id),
        to,
        etag: String::new(),
        request: world.request(),
    }
}

pub(super) fn branch(world: &World, parent: &str, id: &str, through: u64) -> Fork {
    Fork {
        team: team("red"),
        parent: session(parent),
        id: session(id),
        through,
        title: String::new(),
        request: world.request(),
    }
}

pub(super) fn summary(world: &World, id: &str, (from, to): (u64, u64), expected_seq: u64, text: &str) -> Compaction {
    Compaction {
        team: team("red"),
        session: session(id),
        fence: 0,
        expected_seq,
        range: Replaced { from, to },
        summary: said(text),
        prompt: None,
        usage: None,
        request: world.request(),
    }
}

/// Calls `c1`, which [`returned`] answers.
pub(super) fn calling(text: &str) -> NewMessage {
    NewMessage {
        tool_calls: vec![ToolCall {
            id: "c1".to_owned(),
            name: "terminal".to_owned(),
            arguments_json: "{}".to_owned(),
            sent_arguments_json: None,
        }],
        ..answered(text)
    }
}

pub(super) async fn stored(world: &World, id: &str) -> Session {
    world.sessions.get_session(&team("red"), &session(id)).await.unwrap()
}

pub(super) async fn listed(world: &World, id: &str, visibility: Visibility) -> Vec<Message> {
    let range = MessageRange {
        visibility,
        ..MessageRange::in_context(0, u64::MAX >> 1, 1_000)
    };
    let page = world.sessions.list_messages(&team("red"), &session(id), &range).await;
    page.unwrap().messages
}

pub(super) async fn context(world: &World, id: &str) -> Vec<String> {
    let messages = listed(world, id, Visibility::InContext).await;
    messages.into_iter().map(|message| message.body.text).collect()
}

pub(super) async fn found_from(world: &World, id: &str, query: &str) -> Vec<String> {
    let discover = Discover {
        query: query.to_owned(),
        limit: 10,
        ..Discover::default()
    };
    names(&world.ask(&asker(Some(id)), discover).await.unwrap())
}

pub(super) fn violated<T>(refused: Result<T, Error>, field: &str) -> bool {
    matches!(refused, Err(Error::Invalid(violations)) if violations.as_slice().iter().any(|one| one.field == field))
}

/// Of two replicas that read a session, the one that writes after the other has changed it is told, and nothing is kept.
pub async fn an_append_upon_another_state_than_was_read_is_refused(world: &World) {
    world.chat("s1", &["hello"]).await;
    let read = stored(world, "s1").await;
    let begins = |etag: &str| Append {
        acquire: Some(LeaseRequest {
            turn: "t9".to_owned(),
            holder: "p1".to_owned(),
            ttl: Duration::from_mins(1),
        }),
        expected_etag: etag.to_owned(),
        ..world.append_to("s1", 0, 1, vec![said("what was that?")])
    };
    let change = SessionUpdate {
        team: team("red"),
        session: session("s1"),
        etag: read.etag(),
        changes: Changes {
            system_prompt: Some("be brief".to_owned()),
            ..Changes::default()
        },
        break_reason: "model".to_owned(),
        request: world.request(),
    };
    world.sessions.update_session(change).await.unwrap();
    let late = begins(&read.etag());
    let refused = world.sessions.append_messages(late.clone()).await;
    assert!(
        matches!(refused, Err(Error::EtagMismatch { expected, .. }) if expected == read.etag()),
        "an append that was built on the old prompt"
    );
    let now = stored(world, "s1").await;
    assert_eq!((now.last_seq, now.lease.holding.clone()), (1, None));
    let again = Append {
        expected_etag: now.etag(),
        ..late
    };
    let kept = world.sessions.append_messages(again.clone()).await.unwrap();
    // A retry knows the state as little as the first try did after it was kept.
    assert_eq!(world.sessions.append_messages(again).await.unwrap(), kept);
}

/// `Q-9`: the messages, the entries of the index and the due reviews go in one; who comes late is told.
pub async fn a_deleted_session_is_gone_and_a_late_append_is_refused(world: &World) {
    world.chat("s1", &["a goosander", "and a smew"]).await;
    world.chat("s2", &["another goosander"]).await;
    let fence = world.lease("s1", "t1").await;
    let due = Append {
        due_review: Some(NewDueReview {
            id: "d1".to_owned(),
            memory: true,
            skills: false,
            turn: "t1".to_owned(),
            traceparent: String::new(),
        }),
        release: true,
        ..world.append_to("s1", fence, 2, vec![answered("indeed")])
    };
    world.sessions.append_messages(due).await.unwrap();
    let etag = stored(world, "s1").await.etag();
    let stale = world.sessions.delete_session(deletion("s1", "1")).await;
    assert!(matches!(stale, Err(Error::EtagMismatch { .. })));
    world.sessions.delete_session(deletion("s1", &etag)).await.unwrap();

    assert_eq!(world.found("goosander").await, ["s2"]);
    assert!(world.found("smew").await.is_empty());
    let (red, s1) = (team("red"), session("s1"));
    assert!(matches!(
        world.sessions.get_session(&red, &s1).await,
        Err(Error::SessionNotFound { .. })
    ));
    assert!(world.sessions.list_due_reviews(None, 10).await.unwrap().is_empty());
    let late = world
        .sessions
        .append_messages(world.append_to("s1", fence, 3, vec![said("late")]))
        .await;
    assert!(matches!(late, Err(Error::SessionDeleted { session }) if session.ends_with("s1")));
    let anew = world.sessions.create_session(world.new_session("s1")).await;
    assert!(matches!(anew, Err(Error::SessionDeleted { .. })));
    let report = world.sessions.check_integrity(&red, false).await.unwrap();
    assert_eq!((report.problems, report.messages), (Vec::<String>::new(), 1));
    // Deleted it stays, and what never was is not deleted.
    world.sessions.delete_session(deletion("s1", "")).await.unwrap();
    assert!(matches!(
        world.sessions.delete_session(deletion("s9", "")).await,
        Err(Error::SessionNotFound { .. })
    ));
}

/// A turn that runs has a process that goes on writing.
pub async fn a_session_is_not_deleted_while_a_turn_runs(world: &World) {
    world.chat("s1", &["hello"]).await;
    let fence = world.lease("s1", "t1").await;
    let refused = world.sessions.delete_session(deletion("s1", "")).await;
    assert!(matches!(refused, Err(Error::TurnRunning { turn, .. }) if turn == "t1"));
    world
        .sessions
        .release_turn_lease(&team("red"), &session("s1"), fence)
        .await
        .unwrap();
    world.sessions.delete_session(deletion("s1", "")).await.unwrap();
    assert!(world.found("hello").await.is_empty());
}

/// `Q-9`, case D-69: what was undone is kept and marked, and nobody sees it but a review.
pub async fn what_was_rewound_is_kept_and_seen_by_nobody(world: &World) {
    world.create("s1").await;
    for (asked, told) in [("about teal", "it is a duck"), ("about scoters", "so are they")] {
        world.say("s1", vec![said(asked), answered(told)]).await;
    }
    let before = stored(world, "s1").await;
    let request = cut(world, "s1", 2);
    let rewound = world.sessions.rewind_session(request.clone()).await.unwrap();
    assert_eq!(rewound.last_seq, 4, "numbers go on behind what was cut");
    assert_eq!(
        (rewound.prefix.planned_breaks, rewound.prefix.last_break_reason.as_str()),
        (before.prefix.planned_breaks + 1, "rewind")
    );
    assert_ne!(rewound.etag(), before.etag());
    world.say("s1", vec![said("about smew")]).await;

    assert_eq!(context(world, "s1").await, ["about teal", "it is a duck", "about smew"]);
    assert!(world.found("scoters").await.is_empty());
    assert_eq!(world.found("smew").await, ["s1"]);
    let scroll = Scroll {
        session: session("s1"),
        around_seq: 3,
        window: 5,
        roles: Vec::new(),
    };
    let away = world.search.scroll(&asker(None), &scroll).await;
    assert!(matches!(away, Err(Error::MessageNotFound { seq: 3, .. })));
    let whole = listed(world, "s1", Visibility::All).await;
    let marks: Vec<bool> = whole.iter().map(|message| message.rewound).collect();
    assert_eq!(marks, [false, false, true, true, false]);
    let report = world.sessions.check_integrity(&team("red"), false).await.unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
    // The same request again cuts nothing of what was said since.
    let again = world.sessions.rewind_session(request).await.unwrap();
    assert_eq!((again.last_seq, context(world, "s1").await.len()), (5, 3));
    // Nothing behind the cut: nothing happens.
    let same = world.sessions.rewind_session(cut(world, "s1", 5)).await.unwrap();
    assert_eq!(same.prefix.planned_breaks, again.prefix.planned_breaks);
}

/// A cut leaves whole turns, and no turn that goes on.
pub async fn a_rewind_cuts_whole_turns_between_turns(world: &World) {
    world.create("s1").await;
    let turn = vec![said("run it"), calling("I will"), returned("done"), answered("it ran")];
    world.say("s1", turn).await;
    for to in [1, 2, 3] {
        let parted = world.sessions.rewind_session(cut(world, "s1", to)).await;
        assert!(violated(parted, "to_seq"), "behind message {to}");
    }
    assert!(violated(
        world.sessions.rewind_session(cut(world, "s1", 9)).await,
        "to_seq"
    ));
    let stale = Rewind {
        etag: "1".to_owned(),
        ..cut(world, "s1", 0)
    };
    assert!(matches!(
        world.sessions.rewind_session(stale).await,
        Err(Error::EtagMismatch { .. })
    ));
    let fence = world.lease("s1", "t2").await;
    assert!(matches!(
        world.sessions.rewind_session(cut(world, "s1", 0)).await,
        Err(Error::TurnRunning { .. })
    ));
    let (red, s1) = (team("red"), session("s1"));
    world.sessions.release_turn_lease(&red, &s1, fence).await.unwrap();
    assert_eq!(context(world, "s1").await.len(), 4, "what was refused left nothing");
    world.sessions.rewind_session(cut(world, "s1", 0)).await.unwrap();
    assert!(context(world, "s1").await.is_empty());
}

/// `Q-5`: the history comes along with its labels, and the two are one conversation until they part.
pub async fn a_fork_takes_the_history_along_and_is_one_conversation(world: &World) {
    world.create("s1").await;
    world.say("s1", vec![said("about teal"), answered("a duck")]).await;
    world.say("s1", vec![said("about scoters"), answered("ducks")]).await;
    let parent = stored(world, "s1").await;
    let request = branch(world, "s1", "s2", 2);
    let forked = world.sessions.fork_session(request.clone()).await.unwrap();
    assert_eq!(forked.frozen, parent.frozen);
    let lineage = forked.lineage.clone().unwrap();
    assert_eq!((lineage.parent, lineage.reason), (session("s1"), LineageReason::Branch));
    assert_eq!((forked.root.as_str(), forked.last_seq), ("s1", 2));
    assert_eq!(forked.counters.user_turns, 1);
    assert_eq!(context(world, "s2").await, ["about teal", "a duck"]);
    let first = |messages: Vec<Message>| messages.into_iter().next().unwrap();
    assert_eq!(
        first(listed(world, "s2", Visibility::All).await),
        first(listed(world, "s1", Visibility::All).await),
        "with its time and its labels"
    );
    assert_eq!(world.found("teal").await.len(), 1, "one conversation");
    world.say("s2", vec![said("about smew")]).await;
    assert_eq!(world.found("smew").await, ["s2"]);
    assert_eq!(world.found("scoters").await, ["s1"]);
    assert_eq!(stored(world, "s1").await, parent, "the other one is as it was");
    let again = world.sessions.fork_session(request).await.unwrap();
    assert_eq!((again.id.as_str(), again.last_seq), ("s2", 3));
    // It outlives where it came from.
    world.sessions.delete_session(deletion("s1", "")).await.unwrap();
    assert_eq!(world.found("teal").await, ["s2"]);
    assert_eq!(stored(world, "s2").await.lineage.unwrap().parent, session("s1"));
}

/// Nothing half is taken along, and nothing that is not there.
pub async fn a_fork_that_is_refused_leaves_nothing(world: &World) {
    world.create("s1").await;
    let turn = vec![said("run it"), calling("I will"), returned("done"), answered("it ran")];
    world.say("s1", turn).await;
    let parted = world.sessions.fork_session(branch(world, "s1", "s2", 2)).await;
    assert!(violated(parted, "through_seq"));
    assert!(matches!(
        world.sessions.fork_session(branch(world, "s1", "s2", 7)).await,
        Err(Error::MessageNotFound { seq: 7, .. })
    ));
    assert!(matches!(
        world.sessions.fork_session(branch(world, "s9", "s2", 0)).await,
        Err(Error::SessionNotFound { .. })
    ));
    assert!(matches!(
        world.sessions.fork_session(branch(world, "s1", "s1", 0)).await,
        Err(Error::SessionExists { .. })
    ));
    let there = world.sessions.get_session(&team("red"), &session("s2")).await;
    assert!(matches!(there, Err(Error::SessionNotFound { .. })));
    let whole = world.sessions.fork_session(branch(world, "s1", "s2", 0)).await.unwrap();
    assert_eq!(whole.last_seq, 4);
}

/// `T-8`: whoever closes them is told which turns waited too long, of all teams; not those that somebody is at.
pub async fn turns_that_waited_too_long_are_listed(world: &World) {
    for (id, expires) in [("s1", Duration::from_hours(1)), ("s2", Duration::from_hours(30))] {
        world.create(id).await;
        let fence = world.lease(id, "t1").await;
        let call = calling("").tool_calls.remove(0);
        let waits = Append {
            open_calls: OpenCallsChange::Replace(vec![OpenCall {
                call,
                turn: "t1".to_owned(),
                expires: steward_base::Clock::now(&*world.clock).plus(expires),
            }]),
            turn: Some(TurnUpdate {
                id: "t1".to_owned(),
                state: TurnState::RequiresAction,
                iterations: 1,
                segments: 1,
                error_reason: String::new(),
                error_message: String::new(),
            }),
            release: true,
            ..world.append_to(id, fence, 0, vec![said("run it"), calling("I will")])
        };
        world.sessions.append_messages(waits).await.unwrap();
    }
    assert!(world.sessions.list_expired_turns(None, 10).await.unwrap().is_empty());
    world.clock.advance(Duration::from_hours(2));
    let over = world.sessions.list_expired_turns(None, 10).await.unwrap();
    assert_eq!(over.len(), 1);
    assert_eq!((over[0].session.as_str(), over[0].turn.as_str()), ("s1", "t1"));
    assert_eq!((over[0].team.as_str(), over[0].user.as_str()), ("red", "ann"));
    world.clock.advance(Duration::from_hours(30));
    let both = world.sessions.list_expired_turns(None, 10).await.unwrap();
    let order: Vec<&str> = both.iter().map(|turn| turn.session.as_str()).collect();
    assert_eq!(order, ["s1", "s2"]);
    let blue = team("blue");
    assert!(
        world
            .sessions
            .list_expired_turns(Some(&blue), 10)
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(world.sessions.list_expired_turns(None, 1).await.unwrap().len(), 1);
    // Somebody is at it.
    let fence = world.lease("s1", "t1").await;
    assert_eq!(world.sessions.list_expired_turns(None, 10).await.unwrap().len(), 1);
    let closed = Append {
        open_calls: OpenCallsChange::Replace(Vec::new()),
        release: true,
        ..world.append_to("s1", fence, 2, vec![returned("cancelled")])
    };
    world.sessions.append_messages(closed).await.unwrap();
    assert_eq!(world.sessions.list_expired_turns(None, 10).await.unwrap().len(), 1);
    world.sessions.delete_session(deletion("s2", "")).await.unwrap();
    assert!(world.sessions.list_expired_turns(None, 10).await.unwrap().is_empty());
}

/// What is handed out and taken in again elsewhere is the same, and once is enough.
pub async fn a_session_is_taken_in_as_it_was_and_once(world: &World) {
    super::compactions::birds(world).await;
    world
        .sessions
        .mark_compacted(summary(world, "s1", (2, 3), 5, "two ducks"))
        .await
        .unwrap();
    let turn = vec![said("run it"), calling("I will"), returned("done"), answered("it ran")];
    world.say("s1", turn).await;
    world.say("s1", vec![said("hunter2")]).await;
    world.sessions.rewind_session(cut(world, "s1", 10)).await.unwrap();
    let (red, s1) = (team("red"), session("s1"));
    let mut gone = WholeSession {
        session: stored(world, "s1").await,
        turns: world.sessions.turns(&red, &s1).await.unwrap(),
        messages: listed(world, "s1", Visibility::All).await,
    };
    gone.session.lease = crate::lease::Lease::default();
    assert!(
        !world.sessions.import_session(gone.clone()).await.unwrap(),
        "it is there"
    );
    world.sessions.delete_session(deletion("s1", "")).await.unwrap();
    assert!(world.sessions.import_session(gone.clone()).await.unwrap());
    let back = WholeSession {
        session: stored(world, "s1").await,
        turns: world.sessions.turns(&red, &s1).await.unwrap(),
        messages: listed(world, "s1", Visibility::All).await,
    };
    assert_eq!(back, gone);
    assert_eq!(world.found("garganey").await, ["s1"]);
    assert!(world.found("hunter2").await.is_empty());
    assert_eq!(context(world, "s1").await.len(), 8);
    let report = world.sessions.check_integrity(&red, false).await.unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
    let mut bobs = gone.clone();
    bobs.session.user = super::user("bob");
    assert!(matches!(
        world.sessions.import_session(bobs).await,
        Err(Error::SessionExists { .. })
    ));
    let mut odd = gone;
    odd.session.id = session("s7");
    odd.messages.remove(2);
    odd.messages[0].body.role = Role::Tool;
    assert!(violated(world.sessions.import_session(odd).await, "messages[2].seq"));
    assert!(world.sessions.get_session(&red, &session("s7")).await.is_err());
}
