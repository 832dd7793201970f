//! Queries as people type them, and as nobody does.

use super::matching::Searchable;
use super::*;
use proptest::prelude::*;

fn matching(text: &str) -> String {
    Query::parse(text).map(|query| query.to_match()).unwrap_or_default()
}

fn finds(query: &str, text: &str) -> bool {
    Query::parse(query).is_some_and(|query| Searchable::new(text).matches(&query))
}

#[test]
fn the_list_of_function_words_is_sorted() {
    assert!(
        is_function_word("a") && is_function_word("Your") && is_function_word("not") && !is_function_word("deploy")
    );
    assert!(is_function_word("these") && is_function_word("in") && is_function_word("would"));
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

#[test]
fn an_explicit_operator_is_never_loosened() {
    assert_eq!(Query::parse("青岛 AND 烟台").unwrap().widened(), None);
    assert_eq!(Query::parse("\"exact words\"").unwrap().widened(), None);
    assert_eq!(Query::parse("one").unwrap().widened(), None);
}

#[test]
fn a_plain_list_widens_to_any_of_its_content_words() {
    let query = Query::parse("how did we deploy the harbour api").unwrap();
    assert!(query.is_plain_list());
    assert_eq!(
        query.widened().unwrap().to_match(),
        "\"deploy\" OR \"harbour\" OR \"api\""
    );
    assert_eq!(
        Query::parse("what is this").unwrap().widened().unwrap().to_match(),
        "\"what\" OR \"is\" OR \"this\""
    );
}

#[test]
fn a_sentence_in_a_dense_script_widens_to_its_pairs() {
    let query = Query::parse("上次部署").unwrap();
    assert!(!query.is_plain_list());
    assert_eq!(query.widened().unwrap().to_match(), "\"上次\" OR \"次部\" OR \"部署\"");
    assert_eq!(Query::parse("部署").unwrap().widened(), None);
}

#[test]
fn ranges_cover_what_was_asked_for_and_nothing_else() {
    let text = "我们用人工智能模型, getUserName returns null";
    let shown = |query: &str| -> Vec<String> {
        let ranges = Searchable::new(text).ranges(&Query::parse(query).unwrap());
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
            let _ = Searchable::new(&text).ranges(&query);
            if let Some(wider) = query.widened() {
                prop_assert!(!wider.to_match().is_empty());
            }
        }
    }

    #[test]
    fn a_text_finds_itself_as_a_phrase(text in "\\PC{1,40}") {
        let phrase = format!("\"{}\"", text.replace('"', " "));
        if let Some(query) = Query::parse(&phrase) {
            prop_assert!(Searchable::new(&text.replace('"', " ")).matches(&query));
        }
    }
}
