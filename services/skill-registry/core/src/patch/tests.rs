use proptest::prelude::*;

use super::*;

const BODY: &str = "# A\n- retry limit 2\n\n# B\n- retry limit 5\n";

fn one<'a>(old: &'a str, new: &'a str) -> Replacement<'a> {
    Replacement { old, new, all: false }
}

#[test]
fn a_text_that_does_not_occur_is_answered_with_the_nearest_lines() {
    let Err(Refusal::NotFound(near)) = apply(BODY, one("retry limit 9", "x")) else {
        panic!("was found")
    };
    let lines = near
        .iter()
        .map(|place| (place.line, place.text.as_str()))
        .collect::<Vec<_>>();
    assert_eq!(lines, [(2, "- retry limit 2"), (5, "- retry limit 5")]);
}

#[test]
fn a_text_that_occurs_twice_is_answered_with_both_places() {
    let Err(Refusal::Ambiguous(places)) = apply(BODY, one("retry limit", "tries")) else {
        panic!("was not refused")
    };
    assert_eq!(places.iter().map(|place| place.line).collect::<Vec<_>>(), [2, 5]);
    let patched = apply(
        BODY,
        Replacement {
            all: true,
            ..one("retry limit", "tries")
        },
    )
    .unwrap();
    assert_eq!(patched.text, "# A\n- tries 2\n\n# B\n- tries 5\n");
    assert_eq!(patched.replaced, 2);
}

#[test]
fn overlapping_occurrences_are_ambiguous() {
    assert!(matches!(apply("xaaay", one("aa", "b")), Err(Refusal::Ambiguous(places)) if places.len() == 2));
}

#[test]
fn an_empty_or_unchanged_text_is_invalid() {
    assert_eq!(apply(BODY, one("", "x")), Err(Refusal::EmptyOld));
    assert_eq!(apply(BODY, one(" \n", "x")), Err(Refusal::EmptyOld));
    assert_eq!(apply(BODY, one("limit", "limit")), Err(Refusal::NoChange));
}

/// D-13: what would change nothing is no patch, also where the two texts differ only in what is kept as the file has it.
#[test]
fn a_patch_that_would_change_nothing_is_refused() {
    assert_eq!(apply("a\r\nb\r\n", one("a\nb", "a\r\nb")), Err(Refusal::NoChange));
    assert_eq!(apply("a  b", one("a b", "a  b")), Err(Refusal::NoChange));
    assert_eq!(apply("x y", one(" x y", "x y")), Err(Refusal::NoChange));
}

#[test]
fn white_space_may_differ_at_a_single_place_and_the_answer_says_so() {
    let patched = apply(BODY, one("retry  limit 2", "retry limit 3")).unwrap();
    assert!(patched.approximate);
    assert_eq!(patched.text, BODY.replace("limit 2", "limit 3"));
    assert_eq!(
        patched.changed,
        [Place {
            line: 2,
            text: "- retry limit 3".to_owned()
        }]
    );
    assert!(matches!(
        apply(BODY, one("retry  limit", "x")),
        Err(Refusal::Ambiguous(_))
    ));
}

#[test]
fn an_approximate_match_keeps_the_indentation_around_it() {
    let text = "steps:\n    - run  the tool\n    - stop\n";
    let patched = apply(text, one("- run the tool\n- stop\n", "- run the tool twice\n")).unwrap();
    assert_eq!(patched.text, "steps:\n    - run the tool twice\n");
}

#[test]
fn line_ends_byte_order_mark_and_missing_final_newline_stay() {
    let text = "\u{feff}one\r\ntwo\r\nthree";
    let patched = apply(text, one("one\ntwo", "1\n2")).unwrap();
    assert_eq!(patched.text, "\u{feff}1\r\n2\r\nthree");
    assert!(!patched.approximate);
    assert_eq!(apply("a\nb", one("b", "c")).unwrap().text, "a\nc");
}

#[test]
fn the_replacement_is_literal() {
    assert_eq!(apply("cost: N", one("N", "$1 \\0 $&")).unwrap().text, "cost: $1 \\0 $&");
}

proptest! {
    #[test]
    fn a_patch_changes_nothing_but_its_place(
        before in "[a-z \n]{0,30}", old in "[A-Z]{1,8}( [A-Z]{1,4})?", after in "[a-z \r\n]{0,30}", new in "[0-9 ]{0,9}",
    ) {
        let text = format!("{before}{old}{after}");
        let patched = apply(&text, Replacement { old: &old, new: &new, all: false }).unwrap();
        prop_assert_eq!(patched.text, format!("{before}{new}{after}"));
    }

    #[test]
    fn any_two_texts_are_patched_or_refused(text in ".{0,60}", old in ".{0,12}", new in ".{0,12}") {
        if let Ok(patched) = apply(&text, Replacement { old: &old, new: &new, all: false }) {
            prop_assert!(patched.replaced == 1);
        }
    }
}
