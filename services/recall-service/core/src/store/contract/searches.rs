//! Search as a person meets it.

use super::{World, answered, asker, names, returned, said, session, team, user};
use crate::create_session::NewSession;
use crate::error::Error;
use crate::message::{NewMessage, Role, ToolCall};
use crate::search::{ANSWER_BYTES, Discover, MATCH_END, MATCH_START, MESSAGE_CHARS, Read, Scroll, Sort};
use crate::session::{Lineage, LineageReason, SessionSource};

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

/// Case D-27: one character, two, a phrase; with and without operators; Hangul below the word.
pub async fn dense_scripts_are_found_in_every_query_shape(world: &World) {
    let texts = [
        ("a1", "我在青岛"),
        ("a2", "去烟台玩"),
        ("a3", "威海的海"),
        ("a4", "青岛啤酒节"),
        ("a5", "검색엔진을 쓰다"),
    ];
    for (id, text) in texts {
        world.chat(id, &[text]).await;
    }
    assert_eq!(sorted(world.found("青岛").await), ["a1", "a4"]);
    assert_eq!(sorted(world.found("烟台 OR 威海").await), ["a2", "a3"]);
    assert_eq!(world.found("青岛啤酒").await, ["a4"]);
    assert_eq!(sorted(world.found("岛").await), ["a1", "a4"]);
    assert!(world.found("青岛 AND 烟台").await.is_empty());
    assert_eq!(world.found("엔진").await, ["a5"]);
}

/// Case D-28: found as written; and no text whatsoever is an error.
pub async fn any_text_is_a_valid_query(world: &World) {
    let texts = [
        "red-letter",
        ".npmrc",
        "--dry-run",
        "don't",
        "src/main.rs",
        "ops@mail.example",
        "75%",
        "v3.14",
        "C++",
        "a:b",
        "exact words here",
        "🚀",
    ];
    for (index, text) in texts.iter().enumerate() {
        world
            .chat(&format!("n{index}"), &[&format!("before {text} after")])
            .await;
    }
    for (index, text) in texts.iter().enumerate() {
        assert!(world.found(text).await.contains(&format!("n{index}")), "{text}");
    }
    world.chat("decoy", &["before words here, exact, after"]).await;
    assert_eq!(
        world.found("\"exact words here\"").await,
        ["n10"],
        "a phrase is in its order"
    );
    let brackets = "[".repeat(500);
    for odd in [
        "\"",
        "AND",
        "OR OR",
        "NEAR(",
        "*",
        &brackets,
        "   ",
        "",
        "said: x",
        "{said}: (y",
        "^z",
        "\u{0}",
        "'",
    ] {
        let _ = world.found(odd).await;
    }
}

/// `Q-4`, `Q-6`, case D-29: a wall of newer and better hits does not hide a person's own talk.
pub async fn peoples_own_talks_come_before_schedules(world: &World) {
    world.chat("own", &["we renamed harbour-api yesterday"]).await;
    for number in 0..320 {
        let id = format!("job-{number}");
        world.create_from(&id, SessionSource::Schedule).await;
        world.say(&id, vec![said(&"harbour-api nightly ".repeat(10))]).await;
    }
    let discover = |query: &str| Discover {
        query: query.to_owned(),
        limit: 3,
        ..Discover::default()
    };
    let found = world.ask(&asker(None), discover("harbour-api")).await.unwrap();
    assert_eq!((names(&found)[0].as_str(), found.conversations.len()), ("own", 3));
    assert_eq!(
        world
            .ask(&asker(None), discover("nightly"))
            .await
            .unwrap()
            .conversations
            .len(),
        3
    );
    let recent = world.search.browse(&asker(None), 5).await.unwrap();
    assert_eq!((names(&recent)[0].as_str(), recent.conversations.len()), ("own", 5));
    world.create_from("review", SessionSource::Review).await;
    world.say("review", vec![said("secretive harbour-api")]).await;
    assert!(world.found("secretive").await.is_empty());
}

/// `Q-5`, case D-30: one hit per lineage, shown where it is, with the root's id.
pub async fn a_lineage_is_found_once(world: &World) {
    world.chat("g1", &["the beginning"]).await;
    for (parent, child, text) in [
        ("g1", "g2", "kingfisher kingfisher"),
        ("g2", "g3", "the end of kingfisher"),
    ] {
        let lineage = Some(Lineage {
            parent: session(parent),
            reason: LineageReason::Compression,
        });
        world
            .sessions
            .create_session(NewSession {
                lineage,
                ..world.new_session(child)
            })
            .await
            .unwrap();
        world.say(child, vec![said("before"), said(text), said("after")]).await;
    }
    let found = world.discover("kingfisher").await;
    assert_eq!(names(&found), ["g2"]);
    let conversation = &found.conversations[0];
    assert_eq!(conversation.session.root, session("g1"));
    assert_eq!(
        conversation
            .around
            .iter()
            .map(|message| message.seq)
            .collect::<Vec<_>>(),
        [1, 2, 3]
    );
    let hit = conversation.hit.as_ref().unwrap();
    assert_eq!(
        (hit.seq, hit.snippet.as_str()),
        (2, "\u{e000}kingfisher\u{e001} \u{e000}kingfisher\u{e001}")
    );
}

/// `Q-5`, case D-30: what the asker still sees is not found again; what compression took out of it is.
pub async fn the_current_context_is_left_out_and_compaction_opens_it(world: &World) {
    world.chat("here", &["osprey over the bay", "later words"]).await;
    let discover = || Discover {
        query: "osprey".to_owned(),
        limit: 3,
        ..Discover::default()
    };
    let inside = asker(Some("here"));
    let read = Read {
        session: session("here"),
        from_seq: 0,
        limit: 10,
    };
    let scroll = Scroll {
        session: session("here"),
        around_seq: 1,
        window: 5,
        roles: Vec::new(),
    };
    assert_eq!(world.found("osprey").await, ["here"]);
    assert!(world.ask(&inside, discover()).await.unwrap().conversations.is_empty());
    assert!(matches!(
        world.search.read(&inside, &read).await,
        Err(Error::InContext { .. })
    ));
    assert!(matches!(
        world.search.scroll(&inside, &scroll).await,
        Err(Error::InContext { .. })
    ));
    assert!(world.search.browse(&inside, 5).await.unwrap().conversations.is_empty());

    world.compact("here", (1, 1), 2).await;
    let found = world.ask(&inside, discover()).await.unwrap();
    assert_eq!(names(&found), ["here"]);
    assert_eq!(found.conversations[0].around.len(), 1);
    assert_eq!(world.found("osprey").await, ["here"]);
    let read = world.search.read(&inside, &read).await.unwrap();
    assert_eq!(read.messages.iter().map(|message| message.seq).collect::<Vec<_>>(), [1]);
    assert_eq!(world.search.scroll(&inside, &scroll).await.unwrap().messages.len(), 1);
}

/// Case D-68: the current session's 500 hits do not use up the answer.
pub async fn filters_act_before_limits(world: &World) {
    for id in ["o1", "o2", "o3", "o4", "o5"] {
        world.chat(id, &["a llama"]).await;
    }
    world.create("current").await;
    world.say("current", vec![said("llama"); 500]).await;
    let discover = Discover {
        query: "llama".to_owned(),
        limit: 5,
        sort: Sort::Newest,
        ..Discover::default()
    };
    let found = world.ask(&asker(Some("current")), discover.clone()).await.unwrap();
    assert_eq!(names(&found), ["o5", "o4", "o3", "o2", "o1"]);
    let oldest = Discover {
        sort: Sort::Oldest,
        limit: 2,
        ..discover
    };
    assert_eq!(
        names(&world.ask(&asker(Some("current")), oldest).await.unwrap()),
        ["o1", "o2"]
    );
}

/// `Q-9`, case D-69: not in hits, not around them, not in read or scroll.
pub async fn what_was_undone_is_invisible_everywhere(world: &World) {
    let texts = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
    world.chat("s1", &texts[..5]).await;
    world.rewind("s1", 3).await;
    world
        .say("s1", texts[5..].iter().map(|text| said(text)).collect())
        .await;
    let seqs = |messages: &[crate::search::RecalledMessage]| -> Vec<u64> {
        messages.iter().map(|message| message.seq).collect()
    };
    let found = world.discover("three").await;
    assert_eq!(seqs(&found.conversations[0].around), [1, 2, 3, 6, 7, 8]);
    assert!(world.found("four").await.is_empty());
    let read = Read {
        session: session("s1"),
        from_seq: 0,
        limit: 50,
    };
    assert_eq!(
        seqs(&world.search.read(&asker(None), &read).await.unwrap().messages),
        [1, 2, 3, 6, 7, 8, 9]
    );
    let scroll = |around_seq| Scroll {
        session: session("s1"),
        around_seq,
        window: 2,
        roles: Vec::new(),
    };
    assert_eq!(
        seqs(&world.search.scroll(&asker(None), &scroll(3)).await.unwrap().messages),
        [1, 2, 3, 6, 7]
    );
    let gone = world.search.scroll(&asker(None), &scroll(4)).await;
    assert!(matches!(gone, Err(Error::MessageNotFound { seq: 4, .. })));
    assert!(
        world
            .sessions
            .check_integrity(&team("red"), false)
            .await
            .unwrap()
            .problems
            .is_empty()
    );
}

/// Case D-70: each message to its bound with its true length, the whole to its own.
pub async fn every_answer_is_bounded(world: &World) {
    world.create("s1").await;
    let call = ToolCall {
        id: "c1".to_owned(),
        name: "terminal".to_owned(),
        arguments_json: format!("\"{}\"", "a".repeat(50_000)),
        sent_arguments_json: None,
    };
    let long = "long text 长 ".repeat(8_000);
    let calling = NewMessage {
        tool_calls: vec![call],
        ..answered("calling")
    };
    world
        .say("s1", vec![said("pelican"), calling, returned(&long), answered("done")])
        .await;
    let read = Read {
        session: session("s1"),
        from_seq: 0,
        limit: 50,
    };
    let answer = world.search.read(&asker(None), &read).await.unwrap();
    let result = &answer.messages[2];
    assert_eq!(result.text.chars().count(), MESSAGE_CHARS);
    assert_eq!(result.text_chars, long.chars().count() as u64);
    assert_eq!(answer.messages[1].tools, ["terminal"]);
    assert!(answer.messages[1].text.len() < 100 && !answer.truncated);
    let roles = vec![Role::User, Role::Assistant];
    let scroll = Scroll {
        session: session("s1"),
        around_seq: 2,
        window: 20,
        roles,
    };
    let scrolled = world.search.scroll(&asker(None), &scroll).await.unwrap();
    assert!(scrolled.messages.iter().all(|message| message.role != Role::Tool));
    assert_eq!(scrolled.messages.len(), 3);

    let found = world.discover("pelican").await;
    let around = &found.conversations[0].around;
    assert!(around.iter().any(|message| message.text.contains("pelican")));
    assert!(
        around
            .iter()
            .all(|message| message.text.chars().count() <= MESSAGE_CHARS)
    );

    world.create("s2").await;
    world.say("s2", vec![said(&"鸟".repeat(5_000)); 60]).await;
    let read = Read {
        session: session("s2"),
        from_seq: 0,
        limit: 60,
    };
    let answer = world.search.read(&asker(None), &read).await.unwrap();
    let bytes: usize = answer.messages.iter().map(|message| message.text.len()).sum();
    assert!(bytes <= ANSWER_BYTES && answer.truncated && answer.next_seq > 0);
}

/// `Q-10`: another person's and hidden sessions look like missing ones.
pub async fn nobody_finds_what_is_not_theirs(world: &World) {
    world.chat("anns", &["cormorant"]).await;
    world.create_from("review", SessionSource::Review).await;
    world.say("review", vec![said("cormorant")]).await;
    let mut bob = asker(None);
    bob.user = user("bob");
    let discover = Discover {
        query: "cormorant".to_owned(),
        limit: 3,
        ..Discover::default()
    };
    assert!(world.ask(&bob, discover).await.unwrap().conversations.is_empty());
    assert!(world.search.browse(&bob, 5).await.unwrap().conversations.is_empty());
    let hidden = Discover {
        query: "cormorant".to_owned(),
        limit: 3,
        sources: vec![SessionSource::Review],
        ..Discover::default()
    };
    assert!(world.ask(&asker(None), hidden).await.unwrap().conversations.is_empty());
    for (asker, id) in [(&bob, "anns"), (&asker(None), "review"), (&bob, "missing")] {
        let read = Read {
            session: session(id),
            from_seq: 0,
            limit: 5,
        };
        assert!(matches!(
            world.search.read(asker, &read).await,
            Err(Error::SessionNotFound { .. })
        ));
        let scroll = Scroll {
            session: session(id),
            around_seq: 1,
            window: 5,
            roles: Vec::new(),
        };
        assert!(matches!(
            world.search.scroll(asker, &scroll).await,
            Err(Error::SessionNotFound { .. })
        ));
    }
}

/// `Q-8`: hits for all words first, then hits for any; and the answer says so.
pub async fn too_few_hits_widen_the_search_and_say_so(world: &World) {
    world.chat("both", &["the turbine uses grease"]).await;
    world.chat("one", &["turbine inspection"]).await;
    let found = world.discover("which grease for the turbine").await;
    assert_eq!(names(&found)[0], "both");
    assert!(found.widened && names(&found).contains(&"one".to_owned()));
    assert_eq!(found.expression, "\"grease\" OR \"turbine\"");
    let exact = world.discover("turbine AND grease").await;
    assert_eq!((names(&exact), exact.widened), (vec!["both".to_owned()], false));
    world.chat("dense", &["部署在周五失败"]).await;
    let found = world.discover("上次部署失败").await;
    assert!(found.widened && names(&found) == ["dense"]);
}

/// `Q-7`: results and arguments of tools are searchable, below what people said.
pub async fn tool_text_is_found_and_weighs_less(world: &World) {
    world.create("tool").await;
    let call = ToolCall {
        id: "c1".to_owned(),
        name: "terminal".to_owned(),
        arguments_json: "{\"command\":\"ls /opt/albatross\"}".to_owned(),
        sent_arguments_json: None,
    };
    let calling = NewMessage {
        tool_calls: vec![call],
        ..answered("looking")
    };
    world
        .say("tool", vec![calling, returned("E4711 gannet not found")])
        .await;
    let found = world.discover("albatross").await;
    assert_eq!(names(&found), ["tool"]);
    let snippet = &found.conversations[0].hit.as_ref().unwrap().snippet;
    assert!(snippet.contains(&format!("{MATCH_START}albatross{MATCH_END}")));
    assert_eq!(world.found("E4711").await, ["tool"]);
}

/// Inside the query.
pub async fn time_and_role_filters_hold(world: &World) {
    world.chat("early", &["heron"]).await;
    let early = world
        .sessions
        .get_session(&team("red"), &session("early"))
        .await
        .unwrap();
    let between = early.last_active;
    world.create("late").await;
    world.say("late", vec![answered("heron")]).await;
    let heron = || Discover {
        query: "heron".to_owned(),
        limit: 5,
        ..Discover::default()
    };
    let ask = async |discover| names(&world.ask(&asker(None), discover).await.unwrap());
    assert_eq!(ask(heron()).await.len(), 2);
    assert_eq!(
        ask(Discover {
            roles: vec![Role::User],
            ..heron()
        })
        .await,
        ["early"]
    );
    assert_eq!(
        ask(Discover {
            after: Some(between),
            ..heron()
        })
        .await
        .len(),
        2
    );
    assert_eq!(
        ask(Discover {
            before: Some(between),
            ..heron()
        })
        .await
        .len(),
        0
    );
    let later = between.plus(std::time::Duration::from_micros(1));
    assert_eq!(
        ask(Discover {
            after: Some(later),
            ..heron()
        })
        .await,
        ["late"]
    );
    let too_long = Discover {
        query: "x".repeat(5_000),
        ..heron()
    };
    let refused = world.ask(&asker(None), too_long).await;
    assert!(matches!(refused, Err(Error::Invalid(_))));
}

/// Page by page, without a gap.
pub async fn reading_goes_on_where_it_ended(world: &World) {
    world.chat("s1", &["1", "2", "3", "4", "5"]).await;
    let mut read = Read {
        session: session("s1"),
        from_seq: 0,
        limit: 2,
    };
    let mut seen = Vec::new();
    loop {
        let answer = world.search.read(&asker(None), &read).await.unwrap();
        seen.extend(answer.messages.iter().map(|message| message.seq));
        if answer.next_seq == 0 {
            break;
        }
        read.from_seq = answer.next_seq;
    }
    assert_eq!(seen, [1, 2, 3, 4, 5]);
}

/// `Q-11`: after appends, rewinds and a rebuild.
pub async fn rows_and_index_agree(world: &World) {
    world.chat("s1", &["merganser 秋沙鸭", "getUserName", "undone"]).await;
    world.rewind("s1", 2).await;
    for rebuild in [false, true, false] {
        let report = world.sessions.check_integrity(&team("red"), rebuild).await.unwrap();
        assert_eq!((report.problems.len(), report.messages), (0, 3));
        assert_eq!(report.tokenizer_version, crate::tokenizer::VERSION);
        assert_eq!(world.found("沙鸭").await, ["s1"]);
        assert!(world.found("undone").await.is_empty());
    }
    assert_eq!(
        world
            .sessions
            .check_integrity(&team("never-seen"), true)
            .await
            .unwrap()
            .messages,
        0
    );
}
