//! Queries as people type them, and as nobody does.

use super::matching::Searchable;
use super::*;
use proptest::prelude::*;

fn matching(text: &str) -> String {
    Query::parse(text).map(|query| query.to_match()).unwrap_or_default()
}

fn finds(query: &str, text: &str) -> bool {
    Query::parse(query).is_some_and(|query| Searchable::new(text, &query).matches())
}

/// What is run step by step when a query finds too little.
fn steps(text: &str) -> Vec<String> {
    let query = Query::parse(text).unwrap();
    query.widened().iter().map(Query::to_text).collect()
}

#[test]
fn operators_work_when_the_whole_is_well_formed() {
    assert_eq!(matching("a b"), "\"a\" AND \"b\"");
    assert_eq!(matching("a OR b c"), "\"a\" OR (\"b\" AND \"c\")");
    assert_eq!(matching("(a OR b) NOT c"), "(\"a\" OR \"b\") NOT \"c\"");
    assert_eq!(matching("dep*"), "\"dep\" *");
    assert_eq!(matching("\"exact words here\""), "\"exact words here\"");
    assert_eq!(matching("\"say \"\"hi\"\"\""), "\"say \"\"hi\"\"\"");
}

#[test]
fn signs_are_literal_text_when_the_whole_is_not_well_formed() {
    assert_eq!(matching("AND"), "\"AND\"");
    assert_eq!(matching("OR OR"), "\"OR\" AND \"OR\"");
    assert_eq!(matching("NEAR("), "\"NEAR\"");
    assert_eq!(matching("NOT ready"), "\"NOT\" AND \"ready\"");
    assert_eq!(matching("open \"quote"), "\"open\" AND \"quote\"");
}

#[test]
fn what_holds_no_word_is_no_query() {
    for nothing in [
        "",
        "   ",
        "\"",
        "*",
        "\"\"",
        "()",
        "--",
        &"[".repeat(500),
        &"(".repeat(500),
        "\u{3000}",
    ] {
        assert_eq!(Query::parse(nothing), None, "{nothing:?}");
    }
}

#[test]
fn everyday_spellings_find_their_text() {
    for text in [
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
        "\"exact words here\"",
        "青岛",
        "岛",
        "검색",
        "🚀",
    ] {
        let stored = format!("before {} after", text.replace('"', ""));
        assert!(finds(text, &stored), "{text}");
        assert!(!finds(text, "nothing of the kind"), "{text}");
    }
}

/// `Q-8`: punctuation of any script parts words, unless it holds an identifier together.
#[test]
fn punctuation_parts_words_and_identifiers_stay_whole() {
    for parted in [
        "bug，main",
        "main；bug",
        "main。bug！",
        "《main》、bug",
        "main—bug",
        "main|bug",
        "main;bug",
        "“main” bug",
        "«main» bug?",
        "main（bug）",
        "【main】bug",
        "main … bug",
        "(main) bug",
    ] {
        assert!(finds(parted, "a bug, they say, is in main.rs"), "{parted}");
    }
    assert!(finds("部署，回滚", "先回滚再部署") && finds("部署、回滚？", "先回滚再部署"));
    for whole in [
        "src/main.rs",
        "a::b",
        "P2.2",
        "user@example.com",
        "it's",
        "1,000",
        "AT&T",
        "x=1",
        "don’t",
    ] {
        assert_eq!(Query::parse(whole).unwrap().terms().len(), 1, "{whole}");
    }
    assert_eq!(matching("“exact words” here"), "\"exact words\" AND \"here\"");
    assert_eq!(matching("an “open one"), "\"an\" AND \"open\" AND \"one\"");
}

/// `Q-8`: what is explicit stays so.
#[test]
fn an_explicit_operator_is_never_loosened() {
    for strict in [
        "青岛 AND 烟台",
        "\"exact words\"",
        "“exact words”",
        "deploy*",
        "a NOT b",
        "src/main.rs",
        "foo_bar",
        "E0308",
    ] {
        assert_eq!(steps(strict), Vec::<String>::new(), "{strict}");
    }
    // One word alone is looked for in its other forms, if it is not found.
    let one = Query::parse("deployed").unwrap();
    assert_eq!(
        (one.is_plain_list(), steps("deployed")),
        (false, vec!["\"deployed\"".to_owned()])
    );
    let with_signs = Query::parse("why did the deploy (the second one) fail **badly**?").unwrap();
    assert!(with_signs.is_plain_list() && !with_signs.widened().is_empty());
}

/// `Q-8`: what is quoted inside a question stays a phrase and must be there; the rest of the question is looser.
#[test]
fn a_quoted_phrase_is_needed_and_the_words_beside_it_are_not() {
    let typed = "what was in the film \"Taxi Driver\", did you say?";
    assert!(Query::parse(typed).unwrap().is_plain_list());
    assert_eq!(steps(typed), ["\"Taxi Driver\" AND \"film\"", "\"Taxi Driver\""]);
    assert_eq!(steps("\"Taxi Driver\" \"New York\""), Vec::<String>::new());
    assert_eq!(steps("film OR \"Taxi Driver\""), Vec::<String>::new());
}

/// `Q-8`: content words first, then any word.
#[test]
fn a_plain_list_widens_to_any_of_its_content_words() {
    let typed = "what's how did we deploy src/main.rs to the harbour-api?";
    assert!(Query::parse(typed).unwrap().is_plain_list());
    assert_eq!(steps(typed)[0], "\"deploy\" OR \"src/main.rs\" OR \"harbour-api?\"");
    assert_eq!(steps(typed).len(), 2);
    assert_eq!(steps("what is this"), ["\"what\" OR \"is\" OR \"this\""]);
}

/// `Q-8`: also where Latin words are glued to it.
#[test]
fn a_sentence_in_a_dense_script_widens_to_its_pairs() {
    assert!(!Query::parse("上次部署").unwrap().is_plain_list());
    assert_eq!(steps("上次部署"), ["\"上次\" OR \"次部\" OR \"部署\""]);
    assert_eq!(steps("部署"), Vec::<String>::new());
    assert_eq!(steps("我们怎么部署")[0], "\"部署\" OR \"部\" OR \"署\"");
    assert_eq!(
        steps("用Kafka的src/main.rs部署方案")[0],
        "\"用\" OR \"Kafka\" OR \"src/main.rs\" OR \"部署\" OR \"署方\" OR \"方案\" OR \"部\" OR \"署\" OR \"方\" OR \"案\""
    );
    assert_eq!(steps("ระบบทดสอบ")[0].matches(" OR ").count(), 7);
}

/// Single characters help a sentence and weigh less than its pairs; a keyword of two or three stays what it is.
#[test]
fn a_sentence_of_han_is_also_asked_for_by_its_telling_characters() {
    let widest = |text: &str| Query::parse(text).unwrap().widened().remove(0);
    let asked = widest("林晓养的猫叫什么名字？");
    let texts: Vec<&str> = asked.terms().into_iter().map(|term| term.text.as_str()).collect();
    assert!(texts.contains(&"猫") && !texts.contains(&"的") && !texts.contains(&"什"));
    let weight_of = |text: &str| asked.weights()[texts.iter().position(|known| *known == text).unwrap()];
    assert!(weight_of("猫") < weight_of("林晓"));
    assert!(
        widest("莫高窟票")
            .terms()
            .iter()
            .all(|term| term.tokens[0].chars().count() == 2)
    );
    // So much was said that single characters would only blur it.
    let long = widest("昨天傍晚我跟爸爸妈妈到东湖公园散步看见一只白鹭站在荷叶旁边抓鱼");
    assert!(long.terms().iter().all(|term| !term.is_piece));
}

/// Other words for the same thing are looked for where little was asked, and never where one word was meant.
#[test]
fn a_short_question_finds_other_words_for_the_same() {
    let finds_wider = |typed: &str, text: &str| {
        let query = Query::parse(typed).unwrap();
        let exact = Searchable::new(text, &query).matches();
        let wider = query.widened().into_iter().next();
        (
            exact,
            wider.is_some_and(|wider| Searchable::new(text, &wider).matches()),
        )
    };
    for (typed, text) in [
        ("Which books did Nora lend?", "the novels you lent me"),
        ("Who bought it?", "a purchase of mine"),
        ("What did his mother sew?", "Mum made curtains"),
        ("母亲怎么说", "妈妈不同意"),
    ] {
        assert_eq!(finds_wider(typed, text), (false, true), "{typed}");
    }
    for (typed, text) in [
        ("\"lend\"", "lent"),
        ("lend AND x", "lent x"),
        ("mother*", "mum"),
        ("bitrate", "bit"),
    ] {
        assert_eq!(finds_wider(typed, text), (false, false), "{typed}");
    }
    let long = (0..20)
        .map(|number| format!("w{number}x"))
        .collect::<Vec<_>>()
        .join(" ");
    assert_eq!(finds_wider(&format!("{long} mother"), "mum"), (false, false));
    let wider = Query::parse("the mother lent it").unwrap().widened().remove(0);
    let text = "Mum lends it";
    let shown: Vec<&str> = Searchable::new(text, &wider)
        .ranges()
        .into_iter()
        .map(|range| &text[range])
        .collect();
    assert_eq!(
        (shown, wider.to_text()),
        (vec!["Mum", "lends"], "\"mother\" OR \"lent\"".to_owned())
    );
}

#[test]
fn ranges_cover_what_was_asked_for_and_nothing_else() {
    let text = "我们用人工智能模型, getUserName returns null";
    let shown = |query: &str| -> Vec<String> {
        let query = Query::parse(query).unwrap();
        let ranges = Searchable::new(text, &query).ranges();
        ranges.into_iter().map(|range| text[range].to_owned()).collect()
    };
    assert_eq!(shown("人工智能"), ["人工智能"]);
    assert_eq!(shown("能"), ["能"]);
    assert_eq!(shown("username"), ["getUserName"]);
    assert_eq!(shown("null OR returns"), ["returns", "null"]);
    assert_eq!(shown("getUserName NOT missing"), ["getUserName"]);
}

proptest! {
    #[test]
    fn the_match_text_is_quoted_whatever_is_typed(text in "(\\PC|[\"()* ]|AND |OR |NOT ){0,60}") {
        if let Some(query) = Query::parse(&text) {
            let built = query.to_match();
            prop_assert!(built.matches('"').count() % 2 == 0);
            let _ = Searchable::new(&text, &query).ranges();
            for wider in query.widened() {
                prop_assert!(!wider.to_match().is_empty() && wider != query);
            }
        }
    }

    /// `Q-7`: every stretch of a dense script finds what it is a stretch of, and the highlight is that stretch.
    #[test]
    fn every_stretch_of_dense_script_is_found_where_it_stands(
        before in "[a-z，。 ]{0,6}", run in "[一-龥ぁ-んァ-ヶ가-힣\\x{20000}-\\x{2a6df}]{1,12}", after in "(|[A-Z]{1,4}|！| x)",
        from in 0_usize..12, length in 1_usize..12,
    ) {
        let characters: Vec<char> = run.chars().collect();
        let from = from % characters.len();
        let to = (from + length).min(characters.len());
        let stretch: String = characters[from..to].iter().collect();
        let text = format!("{before}{run}{after}");
        let query = Query::parse(&stretch).unwrap();
        let found = Searchable::new(&text, &query);
        prop_assert!(found.matches());
        let at = before.len() + characters[..from].iter().collect::<String>().len();
        let ranges = found.ranges();
        prop_assert!(ranges.iter().any(|range| range.start <= at && range.end >= at + stretch.len()));
        let shown: Vec<&str> = ranges.iter().map(|range| &text[range.clone()]).collect();
        prop_assert!(shown.iter().all(|shown| characters.iter().any(|first| shown.starts_with(*first))));
    }

    /// `Q-7`: ascending, apart, on characters, whatever the text and the query.
    #[test]
    fn ranges_are_ascending_and_lie_on_characters(text in "(\\PC|[a-d人工ที่\u{e000}\u{e001}👩\u{200d}]){0,60}", typed in "(\\PC|[a-d人工ที่ ]){1,6}") {
        let Some(query) = Query::parse(&typed) else { return Ok(()) };
        let mut end = 0;
        for range in Searchable::new(&text, &query).ranges() {
            prop_assert!(range.start >= end && range.end > range.start);
            prop_assert!(text.is_char_boundary(range.start) && text.is_char_boundary(range.end));
            end = range.end;
        }
    }

    #[test]
    fn a_text_finds_itself_as_a_phrase(text in "\\PC{1,40}") {
        let phrase = format!("\"{}\"", text.replace('"', " "));
        if let Some(query) = Query::parse(&phrase) {
            prop_assert!(Searchable::new(&text.replace('"', " "), &query).matches());
        }
    }
}

/// A sentence in quotes that ends in a question mark was copied, not said word for word.
#[test]
fn a_question_in_quotes_is_a_question() {
    let quoted = Query::parse("\"What type of music do I like?\"").unwrap();
    assert!(quoted.is_plain_list());
    assert_eq!(quoted, Query::parse("What type of music do I like?").unwrap());
    assert_eq!(
        steps("“Which film?” she wondered"),
        ["\"Which film?\" AND \"wondered\"", "\"Which film?\""]
    );
    assert_eq!(steps("\"exact words\""), Vec::<String>::new());
}

#[test]
fn what_belongs_to_somebody_is_asked_about_them() {
    assert_eq!(
        steps("When did Ann’s kestrel's wing heal")[0],
        "\"Ann\" OR \"kestrel\" OR \"wing\" OR \"heal\""
    );
    assert_eq!(matching("Ann's"), "\"Ann's\"");
    assert_eq!(steps("fix x/s please")[0], "\"fix\" OR \"x/s\"");
}

/// A day is looked for beside the words, in every way of writing it.
#[test]
fn a_day_is_looked_for_beside_the_words() {
    assert_eq!(
        steps("what was sold on May 4th?")[0],
        "\"sold\" OR \"4th?\" OR \"m05 d04\""
    );
    assert_eq!(
        steps("5月4日开会")[0],
        "\"5\" OR \"月\" OR \"4\" OR \"日开\" OR \"开会\" OR \"m05 d04\""
    );
    assert_eq!(steps("2023-05-04 AND x"), Vec::<String>::new());
}

/// Forms of a word are found where any form will do, and where one was asked for no other is.
#[test]
fn other_forms_are_found_in_wider_steps_only() {
    let exact = Query::parse("deployed the pump").unwrap();
    let wider = exact.widened().remove(0);
    let text = "we were deploying pumps";
    assert!(!Searchable::new(text, &exact).matches());
    let found = Searchable::new(text, &wider);
    let shown: Vec<&str> = found.ranges().into_iter().map(|range| &text[range]).collect();
    assert_eq!(shown, ["deploying", "pumps"]);
    assert!(!Searchable::new(text, &Query::parse("deployed").unwrap()).matches());
    assert!(!Searchable::new("deploy\u{1}", &Query::parse("\"deployed\"").unwrap()).matches());
}
