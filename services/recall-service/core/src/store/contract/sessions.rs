//! Sessions and their leases.

use std::time::Duration;

use steward_base::Integrity;

use super::{World, session, team, user};
use crate::create_session::NewSession;
use crate::error::Error;
use crate::session::{ClientTool, Counters, Exposure, Frozen, Lineage, LineageReason, SessionSource};
use crate::store::SessionList;

/// Every field survives, the prompt byte for byte.
pub async fn a_session_comes_back_as_it_was_created(world: &World) {
    let new = NewSession {
        title: "Deploys".to_owned(),
        project: "harbour".to_owned(),
        frozen: Frozen {
            model: "m1".to_owned(),
            system_prompt: "line\r\n\ttab \u{0} nul é 青".to_owned(),
            tools_json: "[{\"n\":9007199254740993, \"a\" : 1}]".to_owned(),
            stable_prompt_bytes: 0,
            setup: Vec::new(),
            client_tools: vec![ClientTool {
                name: "terminal".to_owned(),
                integrity: Integrity::Workspace,
            }],
        },
        skip_memory: true,
        counters: Counters {
            turns_since_memory: 3,
            iterations_since_skill: 4,
            user_turns: 5,
        },
        exposures: vec![Exposure {
            artifact: "teams/red/skills/rollout".to_owned(),
            revision: "7".to_owned(),
            stage: "indexed".to_owned(),
            assignment_unit: String::new(),
            arm: String::new(),
            propensity: Some(0.5),
        }],
        ..world.new_session("s1")
    };
    let created = world.sessions.create_session(new.clone()).await.unwrap();
    assert_eq!(created, new.into_session(None, created.created));
    assert_eq!(
        world.sessions.get_session(&team("red"), &session("s1")).await.unwrap(),
        created
    );
}

/// `T-9`.
pub async fn the_same_creation_again_returns_the_first_session(world: &World) {
    let new = world.new_session("s1");
    let first = world.sessions.create_session(new.clone()).await.unwrap();
    let redrawn = NewSession {
        id: session("s2"),
        ..new.clone()
    };
    assert_eq!(world.sessions.create_session(redrawn).await.unwrap(), first);
    let mut other = new;
    "another request".clone_into(&mut other.request.hash);
    assert!(matches!(
        world.sessions.create_session(other).await,
        Err(Error::RequestIdReused { .. })
    ));
    assert!(world.sessions.get_session(&team("red"), &session("s2")).await.is_err());
}

/// An id is taken once.
pub async fn a_taken_id_is_refused(world: &World) {
    world.create("s1").await;
    let again = world.sessions.create_session(world.new_session("s1")).await;
    assert!(matches!(again, Err(Error::SessionExists { session }) if session == "teams/red/sessions/s1"));
}

/// The root goes down the generations.
pub async fn a_lineage_keeps_its_root(world: &World) {
    world.create("s1").await;
    for (parent, child) in [("s1", "s2"), ("s2", "s3")] {
        let lineage = Some(Lineage {
            parent: session(parent),
            reason: LineageReason::Branch,
        });
        let created = world
            .sessions
            .create_session(NewSession {
                lineage,
                ..world.new_session(child)
            })
            .await
            .unwrap();
        assert_eq!(created.root, session("s1"));
    }
    let lineage = Some(Lineage {
        parent: session("gone"),
        reason: LineageReason::Reset,
    });
    let orphan = world
        .sessions
        .create_session(NewSession {
            lineage,
            ..world.new_session("s4")
        })
        .await;
    assert!(matches!(orphan, Err(Error::SessionNotFound { .. })));
    assert!(world.sessions.get_session(&team("red"), &session("s4")).await.is_err());
}

/// Nothing crosses teams.
pub async fn another_team_sees_nothing(world: &World) {
    world.chat("s1", &["kingfisher"]).await;
    let blue = NewSession {
        team: team("blue"),
        ..world.new_session("s2")
    };
    world.sessions.create_session(blue).await.unwrap();
    assert!(world.sessions.get_session(&team("blue"), &session("s1")).await.is_err());
    let lineage = Some(Lineage {
        parent: session("s1"),
        reason: LineageReason::Branch,
    });
    let foreign = NewSession {
        team: team("blue"),
        lineage,
        ..world.new_session("s3")
    };
    assert!(matches!(
        world.sessions.create_session(foreign).await,
        Err(Error::SessionNotFound { .. })
    ));
    let mut asker = super::asker(None);
    asker.team = team("blue");
    let discover = crate::search::Discover {
        query: "kingfisher".to_owned(),
        limit: 3,
        ..Default::default()
    };
    assert!(world.ask(&asker, discover).await.unwrap().conversations.is_empty());
    assert!(
        world
            .sessions
            .get_session(&team("never-seen"), &session("s1"))
            .await
            .is_err()
    );
}

/// Most recently active first; pages neither repeat nor lose.
pub async fn sessions_are_listed_by_activity_page_by_page(world: &World) {
    for id in ["s1", "s2", "s3", "s4"] {
        world.create(id).await;
    }
    world.create_from("hidden", SessionSource::Review).await;
    world
        .sessions
        .create_session(NewSession {
            user: user("bob"),
            ..world.new_session("bobs")
        })
        .await
        .unwrap();
    world.say("s2", vec![super::said("hello")]).await;
    let mut list = SessionList {
        team: team("red"),
        user: user("ann"),
        sources: SessionSource::visible(),
        after: None,
        limit: 3,
    };
    let first = world.sessions.list_sessions(&list).await.unwrap();
    let ids: Vec<&str> = first.iter().map(|session| session.id.as_str()).collect();
    assert_eq!(ids, ["s2", "s4", "s3"]);
    assert!(first.iter().all(|session| session.frozen.system_prompt.is_empty()));
    list.after = first.last().map(|session| (session.last_active, session.id.clone()));
    let rest = world.sessions.list_sessions(&list).await.unwrap();
    assert_eq!(
        rest.iter().map(|session| session.id.as_str()).collect::<Vec<_>>(),
        ["s1"]
    );
}

/// `T-7`: the second is refused, whoever asks, and the fence stays that of the first.
pub async fn one_turn_at_a_time_runs_in_a_session(world: &World) {
    world.create("s1").await;
    let fence = world.lease("s1", "t1").await;
    let (red, s1, ttl) = (team("red"), session("s1"), Duration::from_mins(1));
    for (turn, holder) in [("t2", "p1"), ("t1", "p2")] {
        let refused = world
            .sessions
            .acquire_turn_lease(&red, &s1, turn.to_owned(), holder.to_owned(), ttl)
            .await;
        assert!(matches!(refused, Err(Error::TurnRunning { turn, .. }) if turn == "t1"));
    }
    assert_eq!(world.lease("s1", "t1").await, fence);
    world.sessions.release_turn_lease(&red, &s1, fence).await.unwrap();
    world.sessions.release_turn_lease(&red, &s1, fence).await.unwrap();
    assert_eq!(world.lease("s1", "t2").await, fence + 1);
    let too_long = Duration::from_hours(1);
    let refused = world.sessions.renew_turn_lease(&red, &s1, fence + 1, too_long).await;
    assert!(matches!(refused, Err(Error::Invalid(_))));
}

/// A process that is gone does not hold a session for ever, and cannot come back.
pub async fn a_lease_that_ended_can_be_taken_over_and_fences_its_holder_off(world: &World) {
    world.create("s1").await;
    let (red, s1, ttl) = (team("red"), session("s1"), Duration::from_mins(1));
    let old = world.lease("s1", "t1").await;
    assert!(world.sessions.renew_turn_lease(&red, &s1, old, ttl).await.is_ok());
    world.clock.advance(Duration::from_mins(2));
    let new = world.lease("s1", "t2").await;
    assert!(new > old);
    let stale = world.sessions.renew_turn_lease(&red, &s1, old, ttl).await;
    assert!(matches!(stale, Err(Error::StaleFence { fence, current }) if (fence, current) == (old, new)));
    world.sessions.release_turn_lease(&red, &s1, old).await.unwrap();
    assert!(world.sessions.renew_turn_lease(&red, &s1, new, ttl).await.is_ok());
}
