//! Search when there is much of one thing: nothing is starved (`Q-6`), nothing is unbounded, every page can be reached.

use super::{World, answered, asker, names, said, session};
use crate::create_session::NewSession;
use crate::message::{NewMessage, ToolCall};
use crate::search::{ANSWER_BYTES, Answer, CONTEXT_CHARS, Discover, MATCH_END, MATCH_START, Read, Scroll, Sort};
use crate::session::{Lineage, LineageReason, SessionSource};

fn wanting(query: &str, limit: usize) -> Discover {
    Discover {
        query: query.to_owned(),
        limit,
        ..Discover::default()
    }
}

fn seqs(answer: &Answer) -> Vec<u64> {
    answer.messages.iter().map(|message| message.seq).collect()
}

async fn continued(world: &World, parent: &str, id: &str, reason: LineageReason) {
    let lineage = Some(Lineage {
        parent: session(parent),
        reason,
    });
    let new = NewSession {
        lineage,
        ..world.new_session(id)
    };
    world.sessions.create_session(new).await.unwrap();
}

/// `Q-6`: however many hits one conversation has, the others are found, in every order.
pub async fn talkative_conversations_starve_no_other(world: &World) {
    for number in 0..30 {
        let id = format!("many-{number}");
        world.create(&id).await;
        world.say(&id, vec![said("lorem ipsum"); 100]).await;
    }
    for sort in [Sort::Relevance, Sort::Newest, Sort::Oldest] {
        let lorem = Discover {
            sort,
            ..wanting("lorem", 10)
        };
        assert_eq!(world.ask(&asker(None), lorem).await.unwrap().conversations.len(), 10);
    }
    for number in 0..8 {
        let text = format!(
            "{} and then somebody mentioned the kafka cluster 部署",
            "long talk ".repeat(60)
        );
        world.chat(&format!("quiet-{number}"), &[&text]).await;
    }
    world.create("big").await;
    world.say("big", vec![said("kafka tuning 部署"); 400]).await;
    for query in ["kafka", "部署"] {
        assert_eq!(world.discover(query).await.conversations.len(), 9, "{query}");
        let inside = world.ask(&asker(Some("big")), wanting(query, 10)).await.unwrap();
        assert_eq!(inside.conversations.len(), 8, "{query}");
    }
}

/// `Q-4`, `Q-6`: a wall of schedules does not hide a long talk, and is found where nothing else is.
pub async fn a_wall_of_schedules_hides_nobodys_talk(world: &World) {
    let talk = format!(
        "{} revenue {} report",
        "quarterly talk ".repeat(80),
        "of numbers ".repeat(40)
    );
    world.chat("own", &[&talk]).await;
    for number in 0..350 {
        let id = format!("nightly-{number}");
        world.create_from(&id, SessionSource::Schedule).await;
        world.say(&id, vec![said("revenue report done")]).await;
    }
    let found = world.discover("revenue report").await;
    assert_eq!(
        (names(&found)[0].as_str(), found.conversations.len(), found.widened),
        ("own", 10, false)
    );
    assert_eq!(world.discover("done").await.conversations.len(), 10);
}

/// `D-67`: after a reset another conversation begins; a branch and a continuation belong to the one before.
pub async fn the_reason_of_a_parent_decides_what_is_one_conversation(world: &World) {
    world.chat("s1", &["the kestrel nests in the tower"]).await;
    for (parent, id) in [("s1", "s2"), ("s2", "s3")] {
        continued(world, parent, id, LineageReason::Reset).await;
        world.say(id, vec![said("another kestrel, another day")]).await;
    }
    let from_third = world.ask(&asker(Some("s3")), wanting("kestrel", 10)).await.unwrap();
    let mut found = names(&from_third);
    found.sort();
    assert_eq!(found, ["s1", "s2"]);
    assert_eq!(
        from_third.conversations[0].session.root,
        from_third.conversations[0].session.id
    );
    let browsed = world.search.browse(&asker(Some("s3")), 10).await.unwrap();
    assert_eq!(names(&browsed), ["s2", "s1"]);
    continued(world, "s1", "b1", LineageReason::Branch).await;
    world.say("b1", vec![said("a kestrel on the branch")]).await;
    assert_eq!(world.discover("kestrel").await.conversations.len(), 3);
}

/// `D-67`, `Q-5`: what a branch or a continuation took along is in its context, wherever it was first said.
pub async fn what_was_taken_along_is_not_offered_as_past(world: &World) {
    for (parent, child, reason) in [
        ("p1", "c1", LineageReason::Compression),
        ("p2", "c2", LineageReason::Branch),
    ] {
        world
            .chat(parent, &["the osprey left", "a live tail with a kingfisher"])
            .await;
        continued(world, parent, child, reason).await;
        world
            .say(child, vec![said("a live tail with a kingfisher"), answered("yes")])
            .await;
        let inside = asker(Some(child));
        let others: Vec<String> = names(&world.ask(&inside, wanting("kingfisher", 10)).await.unwrap());
        assert!(
            !others.contains(&parent.to_owned()) && !others.contains(&child.to_owned()),
            "{others:?}"
        );
        assert!(names(&world.ask(&inside, wanting("osprey", 10)).await.unwrap()).contains(&parent.to_owned()));
        world.compact(child, (1, 1), 2).await;
        let found = world.ask(&inside, wanting("kingfisher", 10)).await.unwrap();
        assert!(!found.conversations.is_empty());
    }
}

/// `Q-5`: of the current session everything that compression took out can be reached, and nothing else.
pub async fn what_left_the_context_can_be_paged_through(world: &World) {
    world.create("here").await;
    let ospreys = |numbers: std::ops::RangeInclusive<u32>| -> Vec<NewMessage> {
        numbers.map(|number| said(&format!("osprey {number}"))).collect()
    };
    world.say("here", ospreys(1..=12)).await;
    world.rewind("here", 9).await;
    world.say("here", ospreys(13..=40)).await;
    world.compact("here", (4, 30), 40).await;
    let inside = asker(Some("here"));
    let mut read = Read {
        session: session("here"),
        from_seq: 0,
        limit: 2,
    };
    let mut seen = Vec::new();
    loop {
        let page = world.search.read(&inside, &read).await.unwrap();
        seen.extend(seqs(&page));
        read.from_seq = page.next_seq;
        if page.next_seq == 0 {
            break;
        }
    }
    let expected: Vec<u64> = (4..=9).chain(13..=30).collect();
    assert_eq!(seen, expected);
    let scroll = |around_seq, window| Scroll {
        session: session("here"),
        around_seq,
        window,
        roles: Vec::new(),
    };
    let scrolled = world.search.scroll(&inside, &scroll(13, 5)).await.unwrap();
    assert_eq!(seqs(&scrolled), [5, 6, 7, 8, 9, 13, 14, 15, 16, 17, 18]);
    assert_eq!(
        seqs(&world.search.scroll(&inside, &scroll(30, 5)).await.unwrap()),
        [25, 26, 27, 28, 29, 30]
    );
    let found = world.ask(&inside, wanting("osprey", 3)).await.unwrap();
    let ends =
        |messages: &[crate::search::RecalledMessage]| messages.iter().map(|message| message.seq).collect::<Vec<_>>();
    assert_eq!(ends(&found.conversations[0].opening), [4, 5, 6]);
    assert_eq!(ends(&found.conversations[0].closing), [28, 29, 30]);
}

/// `Q-3`: scrolling by the ends of each window reaches both ends of the session, and stands still there.
pub async fn scrolling_reaches_both_ends(world: &World) {
    world.create("s1").await;
    world
        .say("s1", (1..=23).map(|number| said(&format!("n{number}"))).collect())
        .await;
    let window = async |around_seq: u64| {
        let scroll = Scroll {
            session: session("s1"),
            around_seq,
            window: 4,
            roles: Vec::new(),
        };
        seqs(&world.search.scroll(&asker(None), &scroll).await.unwrap())
    };
    let (mut at, mut seen) = (12, Vec::new());
    for _ in 0..4 {
        let shown = window(at).await;
        seen.extend(shown.iter().copied());
        at = *shown.last().unwrap();
    }
    assert_eq!(at, 23);
    at = 12;
    for _ in 0..4 {
        let shown = window(at).await;
        seen.extend(shown.iter().copied());
        at = shown[0];
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!((at, seen), (1, (1..=23).collect::<Vec<u64>>()));
}

/// `D-70`: huge messages, many calls and long names of tools do not make a huge answer.
pub async fn no_answer_grows_with_what_is_stored(world: &World) {
    let huge = "word salad 内容 ".repeat(45_000);
    let call = |number: usize| ToolCall {
        id: format!("c{number}"),
        name: format!("{number}-{}", "n".repeat(500)),
        arguments_json: "{}".to_owned(),
        sent_arguments_json: None,
    };
    for number in 0..6 {
        let id = format!("s{number}");
        world.create(&id).await;
        let calling = NewMessage {
            tool_calls: (0..200).map(call).collect(),
            ..answered("calling")
        };
        let needle = said(&format!("{huge} needle {huge}"));
        let needle = NewMessage {
            text: needle.text.chars().take(330_000).chain(" needle".chars()).collect(),
            ..needle
        };
        world.say(&id, vec![needle, calling]).await;
    }
    let found = world.discover("needle").await;
    assert_eq!(found.conversations.len(), 6);
    let shown = |conversation: &crate::search::Conversation| {
        let parts = [&conversation.around, &conversation.opening, &conversation.closing];
        let messages = parts.into_iter().flatten();
        messages
            .map(|message| {
                assert!(message.text.chars().count() <= CONTEXT_CHARS && message.tools.len() <= 32);
                message.text.len() + message.tools.iter().map(String::len).sum::<usize>()
            })
            .sum::<usize>()
    };
    assert!(found.conversations.iter().map(shown).sum::<usize>() <= ANSWER_BYTES);
    for conversation in &found.conversations {
        let hit = conversation.hit.as_ref().unwrap();
        assert!(hit.snippet.contains(&format!("{MATCH_START}needle{MATCH_END}")) && hit.snippet.chars().count() < 300);
        assert!(conversation.around[0].text_chars > 300_000);
    }
}

/// `Q-7`: the marks of highlights are not text, so that nothing stored can pass for a highlight.
pub async fn stored_marks_are_no_highlights(world: &World) {
    world
        .chat("s1", &["a \u{e000}forged\u{e001} mark beside a kingfisher\u{e001}"])
        .await;
    for query in ["kingfisher", "forged"] {
        let found = world.discover(query).await;
        let hit = found.conversations[0].hit.as_ref().unwrap();
        let marked = format!("{MATCH_START}{query}{MATCH_END}");
        assert!(hit.snippet.contains(&marked), "{}", hit.snippet);
        assert_eq!(hit.snippet.matches([MATCH_START, MATCH_END]).count(), 2);
    }
}

/// `Q-7`: width, composition, invisible signs and scripts do not stand between a question and its text.
pub async fn every_spelling_of_a_text_finds_it(world: &World) {
    let pairs = [
        ("ＡＰＩ　の設計", "api"),
        ("cafe\u{301} noir", "café"),
        ("ｶﾞｲﾄﾞ", "ガイド"),
        ("ระบบ\u{200b}ทดสอบ", "บทดสอ"),
        ("ភាសាខ្មែរ", "ខ្មែរ"),
        ("\u{1112}\u{1161}\u{11ab}글 검색", "한글"),
        ("𠮷野家で", "𠮷野"),
        ("GPT模型部署v2", "模型部署v2"),
        ("👩\u{200d}💻 at work", "👩\u{200d}💻"),
        ("ΑΘΗΝΑ", "αθήνα"),
        ("getUserName()", "getUser"),
        ("葛\u{e0100}城市", "葛城"),
        ("⽅案", "方案"),
        ("ครั้งที่แล้ว", "ที่"),
    ];
    for (index, (text, query)) in pairs.iter().enumerate() {
        let id = format!("n{index}");
        world.chat(&id, &[&format!("before {text} after")]).await;
        for typed in [(*query).to_owned(), format!("\"{query}\"")] {
            let found = world.discover(&typed).await;
            assert!(names(&found).contains(&id) && !found.widened, "{typed} in {text}");
            let at = names(&found).iter().position(|name| *name == id).unwrap();
            assert!(
                found.conversations[at]
                    .hit
                    .as_ref()
                    .unwrap()
                    .snippet
                    .contains(MATCH_START),
                "{typed}"
            );
        }
    }
}

/// `Q-8`: questions as people ask them, in English and Chinese.
pub async fn plain_questions_find_what_they_are_about(world: &World) {
    world
        .chat("grease", &["Use lithium grease on the turbine bearing."])
        .await;
    world
        .chat("deploy", &["周五用Kafka做的灰度部署失败了，回滚到上个版本"])
        .await;
    for number in 0..12 {
        world
            .chat(
                &format!("noise-{number}"),
                &["what is this and why did we do that to the other one"],
            )
            .await;
    }
    let asked = [
        ("what did we decide to put on the bearing (of the turbine)?", "grease"),
        ("what's the thing with that lithium stuff?", "grease"),
        ("上次Kafka的部署为什么失败？", "deploy"),
        ("我们怎么回滚的？", "deploy"),
    ];
    for (question, expected) in asked {
        let found = world.discover(question).await;
        assert_eq!(
            (names(&found).first().map(String::as_str), found.widened),
            (Some(expected), true),
            "{question}"
        );
    }
}
