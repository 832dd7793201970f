//! The states of turns, whatever comes in whatever order.

use super::*;
use crate::create_session::NewSession;
use crate::session::{Frozen, SessionSource};
use crate::turn::TurnState;
use proptest::prelude::*;
use std::collections::HashMap;
use steward_base::names::UserId;

fn held_session() -> Session {
    let new = NewSession {
        team: TeamId::parse("red").unwrap(),
        id: SessionId::parse("s1").unwrap(),
        user: UserId::parse("ann").unwrap(),
        source: SessionSource::Chat,
        title: String::new(),
        lineage: None,
        project: String::new(),
        frozen: Frozen::default(),
        skip_review: false,
        skip_memory: false,
        counters: Counters::default(),
        exposures: Vec::new(),
        request: RequestKey {
            id: "r".to_owned(),
            hash: String::new(),
        },
    };
    let mut session = new.into_session(None, Timestamp::from_secs(1));
    session
        .lease
        .acquire(&asked("t", "p"), Timestamp::from_secs(1))
        .unwrap();
    session
}

fn asked(turn: &str, holder: &str) -> LeaseRequest {
    LeaseRequest {
        turn: turn.to_owned(),
        holder: holder.to_owned(),
        ttl: Duration::from_mins(1),
    }
}

fn append(session: &Session, turn: u8, state: TurnState, messages: usize) -> Append {
    let said = NewMessage {
        role: Role::User,
        text: "x".to_owned(),
        sent_text: None,
        tool_calls: Vec::new(),
        result: None,
        spans: Vec::new(),
        usage: None,
        turn: String::new(),
        native: None,
    };
    Append {
        team: session.team.clone(),
        session: session.id.clone(),
        fence: session.lease.fence,
        acquire: None,
        release: false,
        expected_seq: session.last_seq,
        expected_etag: String::new(),
        request: RequestKey {
            id: "r".to_owned(),
            hash: String::new(),
        },
        messages: vec![said; messages],
        turn: Some(TurnUpdate {
            id: format!("t{turn}"),
            state,
            iterations: 1,
            segments: 1,
            error_reason: String::new(),
            error_message: String::new(),
        }),
        counters: None,
        prefix: None,
        usage: None,
        open_calls: OpenCallsChange::Add(Vec::new()),
        due_review: None,
        title: None,
        exposures: Vec::new(),
    }
}

proptest! {
    /// `T-7`, `T-8`: whatever comes in whatever order, at most one turn is open, it is the session's, and an end is
    /// final.
    #[test]
    fn at_most_one_turn_is_open_and_an_end_is_final(
        steps in prop::collection::vec((0_u8..4, 0_usize..TurnState::ALL.len(), 0_usize..3), 1..40)
    ) {
        let mut session = held_session();
        let mut turns: HashMap<String, Turn> = HashMap::new();
        for (at, (turn, state, messages)) in (2_i64..).zip(steps) {
            let (now, state) = (Timestamp::from_secs(at), TurnState::ALL[state]);
            let append = append(&session, turn, state, messages);
            let id = format!("t{turn}");
            let before = turns.get(&id).cloned();
            let other = session.open_turn.as_ref().filter(|open| **open != id).and_then(|open| turns.get(open)).cloned();
            let found = Found { session: session.clone(), turn: before.clone(), other_open_turn: other };
            let ended = before.as_ref().filter(|turn| !turn.state.is_open());
            match decide(found, append, now) {
                Err(_) => prop_assert!(ended.is_some_and(|turn| turn.state != state)),
                Ok(effects) => {
                    prop_assert!(ended.is_none_or(|turn| turn.state == state));
                    session = effects.session;
                    turns.extend(effects.turns.into_iter().map(|turn| (turn.id.clone(), turn)));
                    prop_assert_eq!(turns[&id].state, state);
                }
            }
            let open: Vec<&Turn> = turns.values().filter(|turn| turn.state.is_open()).collect();
            prop_assert!(open.len() <= 1);
            prop_assert_eq!(open.first().map(|turn| turn.id.as_str()), session.open_turn.as_deref());
            for turn in turns.values() {
                prop_assert_eq!(turn.ended.is_some(), !turn.state.is_open());
                prop_assert!(turn.first_seq <= turn.last_seq + 1 && turn.last_seq <= session.last_seq);
            }
        }
    }
}
