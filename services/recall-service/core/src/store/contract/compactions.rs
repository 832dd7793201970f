//! Summaries in the place of messages (`Z-4`).

use steward_base::Integrity;

use super::lifecycle::{branch, calling, context, cut, found_from, listed, stored, summary, violated};
use super::{World, answered, returned, said, session, team};
use crate::append_messages::Appended;
use crate::error::Error;
use crate::mark_compacted::{Compaction, RebuiltPrompt};
use crate::message::{Replaced, Role};
use crate::store::{MessageRange, Visibility};

pub(super) async fn birds(world: &World) {
    world.create("s1").await;
    for bird in ["teal", "scoter", "smew", "eider", "garganey"] {
        world.say("s1", vec![said(&format!("about {bird}"))]).await;
    }
}

/// `Z-4`: in the context the summary stands for them, everywhere else they are what they were.
pub async fn a_summary_stands_in_the_place_of_what_it_replaces(world: &World) {
    birds(world).await;
    let before = stored(world, "s1").await;
    let prompt = RebuiltPrompt {
        system_prompt: "be kind".to_owned(),
        stable_prompt_bytes: 2,
        setup: vec![1, 2],
        exposures: Vec::new(),
    };
    let compaction = Compaction {
        prompt: Some(prompt),
        ..summary(world, "s1", (2, 4), 5, "three ducks were discussed")
    };
    let done: Appended = world.sessions.mark_compacted(compaction.clone()).await.unwrap();
    assert_eq!(done.last_seq, 6);
    assert_eq!(
        context(world, "s1").await,
        ["about teal", "three ducks were discussed", "about garganey"]
    );
    // Page by page it is the same.
    let mut paged = Vec::new();
    let mut from = 0;
    loop {
        let range = MessageRange::in_context(from, u64::MAX >> 1, 1);
        let page = world.sessions.list_messages(&team("red"), &session("s1"), &range).await;
        let page = page.unwrap();
        paged.extend(page.messages.into_iter().map(|message| message.seq));
        match page.next {
            Some(next) => from = next,
            None => break,
        }
    }
    assert_eq!(paged, [1, 6, 5]);
    let whole = listed(world, "s1", Visibility::All).await;
    let compacted: Vec<bool> = whole.iter().map(|message| message.compacted).collect();
    assert_eq!(compacted, [false, true, true, true, false, false]);
    assert_eq!(whole[5].replaces, Some(Replaced { from: 2, to: 4 }));
    assert_eq!(
        found_from(world, "s1", "smew").await,
        ["s1"],
        "out of context, so not hidden"
    );
    assert!(
        found_from(world, "s1", "garganey").await.is_empty(),
        "case D-67: in context"
    );
    let after = stored(world, "s1").await;
    assert_eq!(after.prefix.last_break_reason, "compression");
    assert_eq!(after.prefix.planned_breaks, before.prefix.planned_breaks + 1);
    assert_eq!(
        (after.frozen.system_prompt.as_str(), after.frozen.setup.len()),
        ("be kind", 2)
    );
    assert_eq!(after.last_active, before.last_active, "nobody said anything");
    assert_eq!(world.sessions.mark_compacted(compaction).await.unwrap(), done);
    assert_eq!(stored(world, "s1").await, after);
    let report = world.sessions.check_integrity(&team("red"), false).await.unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
}

/// A later summary takes the place of an earlier one and what follows it; a cut behind which they lie brings everything back.
pub async fn summaries_follow_each_other_and_a_rewind_undoes_them(world: &World) {
    birds(world).await;
    let first = summary(world, "s1", (2, 3), 5, "first summary");
    world.sessions.mark_compacted(first).await.unwrap();
    world.say("s1", vec![said("about brambling")]).await;
    let second = summary(world, "s1", (2, 5), 7, "second summary");
    world.sessions.mark_compacted(second).await.unwrap();
    assert_eq!(
        context(world, "s1").await,
        ["about teal", "second summary", "about brambling"]
    );
    // Behind the first summary, before the second.
    world.sessions.rewind_session(cut(world, "s1", 6)).await.unwrap();
    assert_eq!(
        context(world, "s1").await,
        ["about teal", "first summary", "about eider", "about garganey"]
    );
    world.sessions.rewind_session(cut(world, "s1", 4)).await.unwrap();
    assert_eq!(
        context(world, "s1").await,
        ["about teal", "about scoter", "about smew", "about eider"]
    );
    assert_eq!(world.found("smew").await, ["s1"]);
    assert!(world.found("brambling").await.is_empty());
    // A fork after a summary has it as an ordinary message.
    let anew = summary(world, "s1", (1, 3), 8, "third summary");
    world.sessions.mark_compacted(anew).await.unwrap();
    world.sessions.fork_session(branch(world, "s1", "s2", 0)).await.unwrap();
    assert_eq!(context(world, "s2").await, ["third summary", "about eider"]);
    assert_eq!(listed(world, "s2", Visibility::All).await[0].replaces, None);
}

/// No call is parted from its result (`Z-2`), and only who may write does.
pub async fn a_compaction_that_is_refused_leaves_nothing(world: &World) {
    world.create("s1").await;
    let turn = vec![said("run it"), calling("I will"), returned("done"), answered("it ran")];
    world.say("s1", turn).await;
    let before = stored(world, "s1").await;
    for range in [(1, 2), (3, 4), (3, 3)] {
        let parted = world.sessions.mark_compacted(summary(world, "s1", range, 4, "x")).await;
        assert!(violated(parted, "range"), "{range:?}");
    }
    for range in [(0, 2), (3, 2), (8, 9)] {
        let none = world.sessions.mark_compacted(summary(world, "s1", range, 4, "x")).await;
        assert!(violated(none, "range"), "{range:?}");
    }
    let behind = world
        .sessions
        .mark_compacted(summary(world, "s1", (1, 4), 3, "x"))
        .await;
    assert!(matches!(behind, Err(Error::SequenceMismatch { current: 4, .. })));
    let tool = Compaction {
        summary: returned("x"),
        ..summary(world, "s1", (1, 4), 4, "x")
    };
    assert!(violated(world.sessions.mark_compacted(tool).await, "summary"));
    let fence = world.lease("s1", "t2").await;
    let between = world
        .sessions
        .mark_compacted(summary(world, "s1", (1, 4), 4, "x"))
        .await;
    assert!(matches!(between, Err(Error::TurnRunning { .. })));
    let stale = Compaction {
        fence: fence + 1,
        ..summary(world, "s1", (1, 4), 4, "x")
    };
    assert!(matches!(
        world.sessions.mark_compacted(stale).await,
        Err(Error::StaleFence { .. })
    ));
    assert_eq!(stored(world, "s1").await.revision, before.revision);
    let good = Compaction {
        fence,
        ..summary(world, "s1", (1, 4), 4, "it ran")
    };
    world.sessions.mark_compacted(good).await.unwrap();
    let kept = listed(world, "s1", Visibility::InContext).await;
    assert_eq!(kept.len(), 1);
    assert_eq!(
        kept[0].integrity,
        Integrity::UnknownTool,
        "no better than what it sums up"
    );
    assert_eq!(kept[0].body.role, Role::User);
}
