//! What a word is, script by script.

use super::*;
use proptest::prelude::*;

fn tokens(purpose: Purpose, text: &str) -> Vec<String> {
    positions(text, purpose)
        .into_iter()
        .map(|token| format!("{}:{}", token.position, token.text))
        .collect()
}

#[test]
fn latin_words_lose_case_and_diacritics() {
    assert_eq!(tokens(Purpose::Document, "Crème BRÛLÉE"), ["0:creme", "1:brulee"]);
    assert_eq!(
        tokens(Purpose::Document, "Cre\u{301}me İstanbul straße Łódź"),
        ["0:creme", "1:istanbul", "2:strasse", "3:lodz"]
    );
    assert_eq!(tokens(Purpose::Document, "ＡＢＣ１２３"), ["0:abc123"]);
}

#[test]
fn other_scripts_keep_their_marks_however_they_are_composed() {
    assert_eq!(
        tokens(Purpose::Document, "и\u{306}од"),
        tokens(Purpose::Document, "йод")
    );
    assert_eq!(tokens(Purpose::Query, "ΟΔΟΣ"), tokens(Purpose::Query, "οδος"));
    assert_ne!(tokens(Purpose::Document, "йод"), tokens(Purpose::Document, "иод"));
}

#[test]
fn identifiers_are_phrases_of_their_parts() {
    assert_eq!(
        tokens(Purpose::Document, "foo_bar a-b x.y::z"),
        ["0:foo", "1:bar", "2:a", "3:b", "4:x", "5:y", "6:z"]
    );
    assert_eq!(tokens(Purpose::Query, "src/main.rs"), ["0:src", "1:main", "2:rs"]);
    assert_eq!(tokens(Purpose::Document, "E0308"), ["0:e0308"]);
}

#[test]
fn camel_case_is_found_whole_and_by_every_run_of_its_parts() {
    assert_eq!(
        tokens(Purpose::Document, "getUserName HTTPServer"),
        [
            "0:getusername",
            "0:get",
            "0:getuser",
            "0:user",
            "0:username",
            "0:name",
            "1:httpserver",
            "1:http",
            "1:server"
        ]
    );
    assert_eq!(tokens(Purpose::Query, "getUserName"), ["0:getusername"]);
}

#[test]
fn names_that_end_in_punctuation_are_told_apart() {
    assert_eq!(tokens(Purpose::Query, "C++ C# C"), ["0:c++", "1:c#", "2:c"]);
    assert_eq!(tokens(Purpose::Document, "C++, F#"), ["0:c", "0:c++", "1:f", "1:f#"]);
    assert_eq!(tokens(Purpose::Query, "a#b i++j"), ["0:a", "1:b", "2:i", "3:j"]);
}

#[test]
fn a_dense_document_holds_each_character_and_each_pair() {
    assert_eq!(
        tokens(Purpose::Document, "人工智能"),
        ["0:人", "0:人工", "1:工", "1:工智", "2:智", "2:智能", "3:能"]
    );
}

#[test]
fn a_dense_query_is_a_phrase_over_what_was_typed() {
    assert_eq!(tokens(Purpose::Query, "人"), ["0:人"]);
    assert_eq!(tokens(Purpose::Query, "人工"), ["0:人工"]);
    assert_eq!(tokens(Purpose::Query, "完成了？"), ["0:完成", "1:成了"]);
    assert_eq!(tokens(Purpose::Query, "GPT模型"), ["0:gpt", "1:模型"]);
    assert_eq!(tokens(Purpose::Query, "模型GPT"), ["0:模型", "1:型", "2:gpt"]);
    assert_eq!(tokens(Purpose::Query, "第3章"), ["0:第", "1:3", "2:章"]);
}

/// A question that was not answered as typed is asked with other forms and other words.
#[test]
fn a_word_has_forms_that_no_ending_leads_to_and_words_that_say_the_same() {
    let bought = forms("bought");
    assert!(
        ["buy", "buy\u{1}", "bought\u{1}"]
            .iter()
            .all(|form| bought.contains(&(*form).to_owned()))
    );
    assert!(!bought.contains(&"purchase".to_owned()) && alike("bought").contains(&"purchase".to_owned()));
    assert!(forms("buying").contains(&"bought".to_owned()));
    assert!(alike("mothers").contains(&"mum".to_owned()) && alike("母亲").contains(&"妈妈".to_owned()));
    for plain in ["heron", "e0308", "x", "c++", "部署", "部"] {
        assert!(
            alike(plain).len() < 3 && !alike(plain).contains(&plain.to_owned()),
            "{plain}"
        );
    }
    let at_one_place = tokens(Purpose::Query, "\u{3}kid");
    assert!(at_one_place.len() > 4 && at_one_place.iter().all(|token| token.starts_with("0:")));
}

#[test]
fn marks_stay_with_their_character() {
    assert_eq!(tokens(Purpose::Query, "ที่นี่").len(), 1);
    assert_eq!(tokens(Purpose::Document, "ｶﾞｽ"), tokens(Purpose::Document, "ガス"));
    assert_eq!(tokens(Purpose::Document, "か\u{3099}"), tokens(Purpose::Document, "が"));
    assert_eq!(
        tokens(Purpose::Document, "\u{1112}\u{1161}\u{11ab}"),
        tokens(Purpose::Document, "한")
    );
}

#[test]
fn pictographs_are_tokens_without_their_modifiers() {
    assert_eq!(tokens(Purpose::Document, "ship 🚀! 👍🏽"), ["0:ship", "1:🚀", "2:👍"]);
    assert_eq!(tokens(Purpose::Document, "👩\u{200d}💻"), ["0:👩", "1:💻"]);
}

#[test]
fn an_endless_word_is_cut_alike_on_both_sides() {
    let key = "k".repeat(100_000);
    assert_eq!(tokens(Purpose::Document, &key), tokens(Purpose::Query, &key));
}

/// `Q-7`: signs that nobody sees do not part or change what is written.
#[test]
fn invisible_signs_change_no_token() {
    for (with, without) in [
        ("co\u{ad}operate", "cooperate"),
        ("ทดสอบ\u{200b}ระบบ", "ทดสอบระบบ"),
        ("葛\u{e0100}城", "葛城"),
        ("\u{feff}harbour\u{200b}", "harbour"),
        ("ශ්\u{200d}රී", "ශ්රී"),
        ("می\u{200c}خواهم", "میخواهم"),
        ("❤\u{fe0f} 1\u{fe0f}\u{20e3}", "❤ 1"),
    ] {
        for purpose in [Purpose::Document, Purpose::Query] {
            assert_eq!(tokens(purpose, with), tokens(purpose, without), "{with:?}");
        }
    }
}

/// `Q-7`: a mark with nothing to stand on does not change with the order in which marks come.
#[test]
fn marks_on_nothing_are_read_alike_in_every_order() {
    assert_eq!(
        tokens(Purpose::Document, "\u{20e7}\u{e48}"),
        tokens(Purpose::Document, "\u{e48}\u{20e7}")
    );
    assert_eq!(tokens(Purpose::Document, "\u{e48}\u{20e7}\u{e49}").len(), 1);
}

/// `Q-7`: what people leave out when they type, in Greek capitals, in Arabic, Hebrew and Russian.
#[test]
fn optional_marks_are_dropped_and_letters_are_kept() {
    for (one, two) in [
        ("ΑΘΗΝΑ", "Αθήνα"),
        ("مُحَمَّد", "محمد"),
        ("محـــمد", "محمد"),
        ("שָׁלוֹם", "שלום"),
        ("ёлка", "елка"),
        ("Ｆｏｏ＿Ｂａｒ", "foo_bar"),
        ("⽅案", "方案"),
        ("ﬁle", "file"),
    ] {
        assert_eq!(tokens(Purpose::Query, one), tokens(Purpose::Query, two), "{one}");
    }
    assert_ne!(tokens(Purpose::Query, "أمر"), tokens(Purpose::Query, "امر"));
    assert!(tokens(Purpose::Document, "ـ").is_empty());
}

/// `Q-7`: symbols of an icon font beside a word are no part of it; the marks of a snippet are no text at all.
#[test]
fn private_symbols_do_not_hide_the_words_beside_them() {
    assert_eq!(tokens(Purpose::Query, "\u{e0a0}main"), ["0:\u{e0a0}", "1:main"]);
    assert_eq!(tokens(Purpose::Query, "\u{e000}main\u{e001}"), ["0:main"]);
}

proptest! {
    #[test]
    fn ranges_lie_on_boundaries_and_never_go_back(text in "\\PC{0,60}") {
        for purpose in [Purpose::Document, Purpose::Query] {
            let (mut start, mut end, mut seen) = (0, 0, false);
            let _ = tokenize(&text, purpose, &mut Scratch::default(), &mut |token: Token<'_>| {
                assert!(!token.text.is_empty() && token.text.len() <= MAX_TOKEN * 2);
                assert!(text.is_char_boundary(token.start) && text.is_char_boundary(token.end));
                assert!(token.start < token.end);
                assert!(seen || !token.colocated);
                assert!(purpose == Purpose::Document || !token.colocated);
                if !token.colocated {
                    assert!(token.start >= start && token.end >= end);
                    (start, end) = (token.start, token.end);
                }
                seen = true;
                ControlFlow::Continue(())
            });
        }
    }

    /// `Q-7`: however a text is composed, it has the same tokens.
    #[test]
    fn canonically_equal_texts_have_the_same_tokens(text in "(\\PC|[\\x{e0}-\\x{24f}]|[\\x{386}-\\x{3ce}]|[\\x{958}-\\x{95f}]|[\\x{ac00}-\\x{d7a3}]|[\\x{3041}-\\x{30fa}]|[\\x{f900}-\\x{fad0}]|[a-z0-9]\\p{M}|\\p{M}|ที่|ស្រី|ﾊﾟ|𠮷){0,24}") {
        let composed: String = text.nfc().collect();
        let apart: String = text.nfd().collect();
        for purpose in [Purpose::Document, Purpose::Query] {
            let expected = tokens(purpose, &text);
            prop_assert_eq!(&expected, &tokens(purpose, &composed));
            prop_assert_eq!(&expected, &tokens(purpose, &apart));
        }
    }

    #[test]
    fn a_sink_that_breaks_ends_the_walk(text in "[a-z ]{1,40}") {
        let mut count = 0;
        let _ = tokenize(&text, Purpose::Document, &mut Scratch::default(), &mut |_: Token<'_>| {
            count += 1;
            ControlFlow::Break(())
        });
        prop_assert!(count <= 1);
    }
}
