//! Changes between two turns, turns that begin and end with their appends, and reads at one moment.

use std::time::Duration;

use steward_base::{Integrity, Timestamp};

use super::lifecycle::summary;
use super::{World, answered, said, session, team};
use crate::append_messages::{Append, OpenCallsChange};
use crate::create_session::NewSession;
use crate::error::Error;
use crate::get_session::{SessionRead, SessionView};
use crate::lease::LeaseRequest;
use crate::mark_compacted::Compaction;
use crate::message::{MAX_NATIVE, Native, NewMessage, ToolCall};
use crate::session::{ClientTool, Exposure, Frozen, OpenCall, PrefixState, Session};
use crate::store::{MessageRange, Visibility};
use crate::turn::{TurnState, TurnUpdate};
use crate::update_session::{Changes, SessionUpdate};

fn change(world: &World, changes: Changes, break_reason: &str) -> SessionUpdate {
    SessionUpdate {
        team: team("red"),
        session: session("s1"),
        etag: String::new(),
        changes,
        break_reason: break_reason.to_owned(),
        request: world.request(),
    }
}

fn titled(title: &str) -> Changes {
    Changes {
        title: Some(title.to_owned()),
        ..Changes::default()
    }
}

fn model(name: &str) -> Changes {
    Changes {
        model: Some(name.to_owned()),
        ..Changes::default()
    }
}

fn asked(turn: &str, holder: &str) -> LeaseRequest {
    LeaseRequest {
        turn: turn.to_owned(),
        holder: holder.to_owned(),
        ttl: Duration::from_mins(1),
    }
}

fn running(turn: &str, state: TurnState) -> TurnUpdate {
    TurnUpdate {
        id: turn.to_owned(),
        state,
        iterations: 1,
        segments: 1,
        error_reason: String::new(),
        error_message: String::new(),
    }
}

/// The fields of a request that is refused as wrong.
fn violated<T>(refused: Result<T, Error>) -> Vec<String> {
    match refused {
        Err(Error::Invalid(violations)) => violations
            .as_slice()
            .iter()
            .map(|violation| violation.field.clone())
            .collect(),
        _ => Vec::new(),
    }
}

fn exposure(artifact: &str) -> Exposure {
    Exposure {
        artifact: artifact.to_owned(),
        revision: "1".to_owned(),
        stage: "indexed".to_owned(),
        assignment_unit: String::new(),
        arm: String::new(),
        propensity: Some(0.5),
    }
}

async fn stored(world: &World) -> Session {
    world.sessions.get_session(&team("red"), &session("s1")).await.unwrap()
}

/// A session with everything that a change may touch.
async fn begun(world: &World) -> Session {
    let new = NewSession {
        frozen: Frozen {
            model: "m1".to_owned(),
            system_prompt: "é and more".to_owned(),
            tools_json: "[1]".to_owned(),
            client_tools: Vec::new(),
            stable_prompt_bytes: 2,
            setup: vec![0, 255],
        },
        exposures: vec![exposure("a"), exposure("b")],
        ..world.new_session("s1")
    };
    let created = world.sessions.create_session(new).await.unwrap();
    let prefix = PrefixState {
        tools_sha256: "t".to_owned(),
        system_sha256: "s".to_owned(),
        messages_bytes: 7,
        messages_sha256: "m".to_owned(),
        planned_breaks: 0,
        unplanned_breaks: 1,
        requests: 3,
        last_break_reason: String::new(),
    };
    let first = Append {
        acquire: Some(asked("t0", "p1")),
        release: true,
        prefix: Some(prefix),
        ..world.append_to("s1", 0, 0, vec![said("hello")])
    };
    world.sessions.append_messages(first).await.unwrap();
    created
}

/// `P-3`: with the reason, and without a break that nobody planned.
pub async fn a_changed_session_begins_its_prefix_anew(world: &World) {
    let created = begun(world).await;
    assert_eq!((created.frozen.stable_prompt_bytes, created.frozen.setup.len()), (2, 2));
    let before = stored(world).await;
    let tool = ClientTool {
        name: "edit".to_owned(),
        integrity: Integrity::UnknownTool,
    };
    let wanted = Changes {
        title: None,
        model: Some("m2".to_owned()),
        system_prompt: Some("anew, 全新".to_owned()),
        stable_prompt_bytes: Some(6),
        tools_json: Some("[2]".to_owned()),
        client_tools: Some(vec![tool.clone()]),
        setup: Some(vec![1, 2, 3]),
        exposures: Some(vec![exposure("c")]),
    };
    let changed = world
        .sessions
        .update_session(change(world, wanted, "model"))
        .await
        .unwrap();
    let expected = Session {
        frozen: Frozen {
            model: "m2".to_owned(),
            system_prompt: "anew, 全新".to_owned(),
            tools_json: "[2]".to_owned(),
            client_tools: vec![tool],
            stable_prompt_bytes: 6,
            setup: vec![1, 2, 3],
        },
        exposures: vec![exposure("c")],
        prefix: PrefixState {
            planned_breaks: 1,
            unplanned_breaks: 1,
            requests: 3,
            last_break_reason: "model".to_owned(),
            ..PrefixState::default()
        },
        revision: before.revision + 1,
        ..before
    };
    assert_eq!(changed, expected);
    assert_eq!(stored(world).await, expected);
    // Exposures that come later stand behind those that are there now.
    let later = Append {
        acquire: Some(asked("t1", "p1")),
        exposures: vec![exposure("d")],
        ..world.append_to("s1", 0, 1, vec![answered("hm")])
    };
    world.sessions.append_messages(later).await.unwrap();
    let now = stored(world).await;
    assert_eq!(now.exposures, [exposure("c"), exposure("d")]);
    // What is said under another model says so.
    let range = MessageRange::in_context(1, u64::MAX, 10);
    let page = world.sessions.list_messages(&team("red"), &session("s1"), &range).await;
    let models: Vec<String> = page
        .unwrap()
        .messages
        .into_iter()
        .map(|message| message.model)
        .collect();
    assert_eq!(models, ["m1", "m2"]);
    // Another prompt has no stable tier that is known.
    release(world, now.lease.fence).await;
    let prompt = Changes {
        system_prompt: Some("é".to_owned()),
        ..Changes::default()
    };
    let changed = world
        .sessions
        .update_session(change(world, prompt, "tools"))
        .await
        .unwrap();
    assert_eq!(changed.frozen.stable_prompt_bytes, 0);
    assert_eq!(
        (changed.prefix.planned_breaks, changed.prefix.last_break_reason.as_str()),
        (2, "tools")
    );
}

async fn release(world: &World, fence: u64) {
    let released = world
        .sessions
        .release_turn_lease(&team("red"), &session("s1"), fence)
        .await;
    released.unwrap();
}

/// A title is no part of what is sent.
pub async fn a_title_changes_without_a_break(world: &World) {
    begun(world).await;
    let before = stored(world).await;
    let changed = world
        .sessions
        .update_session(change(world, titled("On hats"), ""))
        .await
        .unwrap();
    let expected = Session {
        title: "On hats".to_owned(),
        revision: before.revision + 1,
        ..before
    };
    assert_eq!(changed, expected);
}

/// Not while a turn runs, and not while one waits for the client; one whose process is gone holds nothing up.
pub async fn a_session_is_changed_between_turns_only(world: &World) {
    begun(world).await;
    let waiting = OpenCall {
        call: ToolCall {
            id: "c1".to_owned(),
            name: "edit".to_owned(),
            arguments_json: "{}".to_owned(),
            sent_arguments_json: None,
        },
        turn: "t1".to_owned(),
        expires: Timestamp::default(),
    };
    let begin = Append {
        acquire: Some(asked("t1", "p1")),
        turn: Some(running("t1", TurnState::RequiresAction)),
        open_calls: OpenCallsChange::Replace(vec![waiting]),
        ..world.append_to("s1", 0, 1, vec![said("edit it")])
    };
    let fence = world.sessions.append_messages(begin).await.unwrap().fence;
    for changes in [titled("x"), model("m2")] {
        let refused = world.sessions.update_session(change(world, changes, "model")).await;
        assert!(matches!(refused, Err(Error::TurnRunning { turn, holder }) if turn == "t1" && holder == "p1"));
    }
    release(world, fence).await;
    let refused = world.sessions.update_session(change(world, model("m2"), "model")).await;
    assert!(matches!(refused, Err(Error::TurnRunning { turn, holder }) if turn == "t1" && holder.is_empty()));
    let answered = Append {
        acquire: Some(asked("t1", "p1")),
        turn: Some(running("t1", TurnState::Running)),
        open_calls: OpenCallsChange::Replace(Vec::new()),
        ..world.append_to("s1", 0, 2, Vec::new())
    };
    world.sessions.append_messages(answered).await.unwrap();
    assert!(
        world
            .sessions
            .update_session(change(world, model("m2"), "model"))
            .await
            .is_err()
    );
    world.clock.advance(Duration::from_mins(2));
    let changed = world
        .sessions
        .update_session(change(world, model("m2"), "model"))
        .await
        .unwrap();
    assert_eq!(changed.frozen.model, "m2");
    assert_eq!(changed.open_turn.as_deref(), Some("t1"));
}

/// Who changes what has changed meanwhile is told so.
pub async fn a_changed_session_is_the_one_that_was_read(world: &World) {
    begun(world).await;
    let read = stored(world).await.etag();
    let with = |etag: &str, title: &str| SessionUpdate {
        etag: etag.to_owned(),
        ..change(world, titled(title), "")
    };
    let changed = world.sessions.update_session(with(&read, "one")).await.unwrap();
    assert_ne!(changed.etag(), read);
    let refused = world.sessions.update_session(with(&read, "two")).await;
    assert!(
        matches!(refused, Err(Error::EtagMismatch { expected, current }) if expected == read && current == changed.etag())
    );
    assert_eq!(stored(world).await.title, "one");
    let missing = SessionUpdate {
        session: session("gone"),
        ..with("", "three")
    };
    let missing = world.sessions.update_session(missing).await;
    assert!(matches!(missing, Err(Error::SessionNotFound { .. })));
    let foreign = SessionUpdate {
        team: team("blue"),
        ..with("", "four")
    };
    let foreign = world.sessions.update_session(foreign).await;
    assert!(matches!(foreign, Err(Error::SessionNotFound { .. })));
}

/// Every wrong value, and nothing half changed.
pub async fn a_change_that_is_refused_leaves_nothing(world: &World) {
    begun(world).await;
    let before = stored(world).await;
    let wrong = [
        (Changes::default(), "model", "update_mask"),
        (model("m2"), "", "break_reason"),
        (titled(&"é".repeat(201)), "", "session.title"),
        (
            Changes {
                stable_prompt_bytes: Some(1),
                ..titled("x")
            },
            "r",
            "session.stable_prompt_bytes",
        ),
        (
            Changes {
                stable_prompt_bytes: Some(4),
                system_prompt: Some("abc".to_owned()),
                ..titled("x")
            },
            "r",
            "session.stable_prompt_bytes",
        ),
        (
            Changes {
                setup: Some(vec![0; 1024 * 1024 + 1]),
                ..titled("x")
            },
            "r",
            "session.setup",
        ),
    ];
    for (changes, reason, field) in wrong {
        let refused = world.sessions.update_session(change(world, changes, reason)).await;
        let named = violated(refused);
        assert_eq!(named.first().map(String::as_str), Some(field));
    }
    assert_eq!(stored(world).await, before);
}

/// `T-9`: and an id that an append used is no id of a change.
pub async fn the_same_change_again_changes_nothing(world: &World) {
    begun(world).await;
    let update = change(world, model("m2"), "model");
    let first = world.sessions.update_session(update.clone()).await.unwrap();
    assert_eq!(world.sessions.update_session(update.clone()).await.unwrap(), first);
    let append = Append {
        acquire: Some(asked("t1", "p1")),
        ..world.append_to("s1", 0, 1, vec![said("on")])
    };
    world.sessions.append_messages(append.clone()).await.unwrap();
    // Also while a turn runs: it was done before.
    let again = world.sessions.update_session(update.clone()).await.unwrap();
    assert_eq!((again.prefix.planned_breaks, again.last_seq), (1, 2));
    let mut other = update.clone();
    "another".clone_into(&mut other.request.hash);
    let refused = world.sessions.update_session(other).await;
    assert!(matches!(refused, Err(Error::RequestIdReused { .. })));
    let mut mixed = update;
    mixed.request = append.request;
    "a change".clone_into(&mut mixed.request.hash);
    let refused = world.sessions.update_session(mixed).await;
    assert!(matches!(refused, Err(Error::RequestIdReused { .. })));
}

/// `T-7`: the lease comes and goes with the messages.
pub async fn a_turn_begins_and_ends_with_its_appends(world: &World) {
    world.create("s1").await;
    let opening = Append {
        acquire: Some(asked("t1", "p1")),
        turn: Some(running("t1", TurnState::Running)),
        ..world.append_to("s1", 0, 0, vec![said("hello")])
    };
    let begun = world.sessions.append_messages(opening).await.unwrap();
    let held = stored(world).await.lease;
    assert_eq!((held.fence, begun.last_seq), (begun.fence, 1));
    let holding = held.holding.unwrap();
    assert_eq!((holding.turn.as_str(), holding.holder.as_str()), ("t1", "p1"));
    // The same turn of the same process keeps its fence.
    let renewed = Append {
        acquire: Some(asked("t1", "p1")),
        ..world.append_to("s1", 0, 1, vec![answered("hm")])
    };
    assert_eq!(
        world.sessions.append_messages(renewed).await.unwrap().fence,
        begun.fence
    );
    let end = Append {
        release: true,
        turn: Some(running("t1", TurnState::Completed)),
        ..world.append_to("s1", begun.fence, 2, vec![answered("good day")])
    };
    let ended = world.sessions.append_messages(end).await.unwrap();
    assert_eq!((ended.fence, ended.last_seq), (begun.fence, 3));
    let after = stored(world).await;
    assert_eq!((after.lease.holding, after.open_turn), (None, None));
    let late = world
        .sessions
        .append_messages(world.append_to("s1", begun.fence, 3, vec![said("x")]))
        .await;
    assert!(matches!(late, Err(Error::StaleFence { .. })));
}

/// Neither the lease nor the messages of who comes second are kept; nor is a lease whose append is refused.
pub async fn an_append_takes_no_lease_that_another_turn_holds(world: &World) {
    world.create("s1").await;
    let by = |turn: &str, holder: &str, last| Append {
        acquire: Some(asked(turn, holder)),
        ..world.append_to("s1", 0, last, vec![said("mine")])
    };
    let unexpected = world.sessions.append_messages(by("t1", "p1", 7)).await;
    assert!(matches!(unexpected, Err(Error::SequenceMismatch { .. })));
    assert_eq!(stored(world).await.lease.holding, None);
    let first = world.sessions.append_messages(by("t1", "p1", 0)).await.unwrap();
    for (turn, holder) in [("t2", "p1"), ("t2", "p2"), ("t1", "p2")] {
        // The lease is looked at before anything else.
        let refused = world.sessions.append_messages(by(turn, holder, 7)).await;
        assert!(matches!(refused, Err(Error::TurnRunning { turn, .. }) if turn == "t1"));
    }
    world.clock.advance(Duration::from_mins(2));
    let taken_over = world.sessions.append_messages(by("t2", "p2", 1)).await.unwrap();
    assert_eq!(taken_over.fence, first.fence + 1);
    let stale = world.append_to("s1", first.fence, 2, vec![said("mine")]);
    let stale = world.sessions.append_messages(stale).await;
    assert!(matches!(stale, Err(Error::StaleFence { .. })));
    let both = Append {
        acquire: Some(asked("", "p2")),
        ..world.append_to("s1", 3, 2, Vec::new())
    };
    let fields = violated(world.sessions.append_messages(both).await);
    assert_eq!(fields, ["acquire_lease.turn", "fence"]);
}

/// `T-9`: whoever begins a turn again has a fence that is good, and the first answer in everything else.
pub async fn a_retry_that_begins_a_turn_has_its_lease(world: &World) {
    world.create("s1").await;
    let begin = Append {
        acquire: Some(asked("t1", "p1")),
        ..world.append_to("s1", 0, 0, vec![said("hello")])
    };
    let first = world.sessions.append_messages(begin.clone()).await.unwrap();
    assert_eq!(world.sessions.append_messages(begin.clone()).await.unwrap(), first);
    let elsewhere = Append {
        acquire: Some(asked("t1", "p2")),
        ..begin.clone()
    };
    let early = world.sessions.append_messages(elsewhere.clone()).await;
    assert!(matches!(early, Err(Error::TurnRunning { .. })));
    world.clock.advance(Duration::from_mins(2));
    let later = world.sessions.append_messages(elsewhere).await.unwrap();
    assert_eq!((later.last_seq, later.fence), (1, first.fence + 1));
    let stale = world.append_to("s1", first.fence, 1, Vec::new());
    assert!(world.sessions.append_messages(stale).await.is_err());
    let good = world.append_to("s1", later.fence, 1, vec![answered("hm")]);
    world.sessions.append_messages(good).await.unwrap();
    // What begins and ends at once needs no lease for its answer.
    release(world, later.fence).await;
    let whole = Append {
        acquire: Some(asked("t2", "p1")),
        release: true,
        ..world.append_to("s1", 0, 2, vec![said("note")])
    };
    let once = world.sessions.append_messages(whole.clone()).await.unwrap();
    world.lease("s1", "t3").await;
    assert_eq!(world.sessions.append_messages(whole).await.unwrap(), once);
}

async fn view(world: &World, turn: &str, limit: Option<u32>) -> SessionView {
    let read = SessionRead {
        turn: turn.to_owned(),
        messages: limit.map(|limit| MessageRange::in_context(1, u64::MAX, limit)),
    };
    let view = world.sessions.view_session(&team("red"), &session("s1"), &read).await;
    view.unwrap()
}

/// Only what is asked for, as it is in the lists.
pub async fn a_session_is_read_with_its_turn_and_messages(world: &World) {
    world.create("s1").await;
    let first = Append {
        acquire: Some(asked("t1", "p1")),
        turn: Some(running("t1", TurnState::Running)),
        ..world.append_to("s1", 0, 0, vec![said("x"); 70])
    };
    let begun = world.sessions.append_messages(first).await.unwrap();
    let compaction = Compaction {
        fence: begun.fence,
        ..summary(world, "s1", (2, 2), 70, "earlier")
    };
    world.sessions.mark_compacted(compaction).await.unwrap();
    let alone = view(world, "", None).await;
    assert_eq!((&alone.session, &alone.turn), (&stored(world).await, &None));
    assert_eq!((alone.messages.messages.len(), alone.messages.next), (0, None));
    let whole = view(world, "t1", Some(100)).await;
    let turn = world
        .sessions
        .get_turn(&team("red"), &session("s1"), "t1")
        .await
        .unwrap();
    assert_eq!(whole.turn, Some(turn));
    let every = MessageRange::in_context(1, u64::MAX, 100);
    let listed = world
        .sessions
        .list_messages(&team("red"), &session("s1"), &every)
        .await
        .unwrap();
    assert_eq!((listed.messages.len(), listed.next), (70, None));
    assert_eq!(whole.messages, listed);
    let part = view(world, "gone", Some(40)).await;
    assert_eq!(
        (part.turn, part.messages.messages.len(), part.messages.next),
        (None, 40, Some(41))
    );
    let ranged = SessionRead {
        messages: Some(MessageRange::in_context(1, u64::MAX, 40)),
        ..SessionRead::default()
    };
    for read in [SessionRead::default(), ranged] {
        let missing = world.sessions.view_session(&team("red"), &session("gone"), &read).await;
        assert!(matches!(missing, Err(Error::SessionNotFound { .. })), "{read:?}");
    }
}

/// Byte for byte, and no word of it is found or shown.
pub async fn a_providers_form_is_kept_and_never_found(world: &World) {
    world.create("s1").await;
    let blocks = |text: &str| Native {
        provider: "anthropic".to_owned(),
        model: "m1".to_owned(),
        blocks_json: format!("[ {{\"type\":\"thinking\", \"thinking\":\"{text}\"}} ]"),
    };
    let thought = NewMessage {
        native: Some(blocks("zanzibar")),
        ..answered("a visible answer")
    };
    world.say("s1", vec![said("hello"), thought.clone()]).await;
    let range = MessageRange {
        visibility: Visibility::All,
        ..MessageRange::in_context(1, u64::MAX, 10)
    };
    let page = world
        .sessions
        .list_messages(&team("red"), &session("s1"), &range)
        .await
        .unwrap();
    let natives: Vec<Option<Native>> = page.messages.into_iter().map(|message| message.body.native).collect();
    assert_eq!(natives, [None, thought.native]);
    assert_eq!(world.found("zanzibar").await, Vec::<String>::new());
    assert_eq!(world.found("visible").await, ["s1"]);
    let large = NewMessage {
        native: Some(blocks(&"x".repeat(MAX_NATIVE))),
        ..answered("hm")
    };
    let fence = world.lease("s1", "t2").await;
    let refused = world
        .sessions
        .append_messages(world.append_to("s1", fence, 2, vec![large]))
        .await;
    assert!(matches!(refused, Err(Error::MessageTooLarge { limit, .. }) if limit == MAX_NATIVE as u64));
}
