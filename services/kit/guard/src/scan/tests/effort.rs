//! What a scan takes, counted: texts made to keep it busy cost no more than their length. Time decides nothing here.

use super::*;

/// Beginnings of what rules look for, so that as much as possible is tried and nothing is found.
const HOSTILE: [&str; 12] = [
    "ignore all of the your my our ",
    "send all your ",
    "read open cat get .ssh/ab ",
    "curl wget nc ",
    "rm -a -b ",
    "<a display:none ",
    "remember that you ",
    "in future sessions ",
    "忽略你我所有一切",
    "删除所有",
    "base64 -d curl ",
    "modify agents.md ",
];

fn effort(text: &str) -> Effort {
    let mut effort = Effort::default();
    find(text, Scope::Strict, &mut effort);
    effort
}

/// A text that says the same again and again is read once, wherever rules may begin in it.
#[test]
fn what_was_tried_in_vain_is_not_tried_again() {
    let mixed = HOSTILE.concat();
    for piece in HOSTILE.iter().copied().chain([mixed.as_str()]) {
        let text = piece.repeat(40 * 1024 / piece.len());
        let effort = effort(&text);
        if effort.searched == 0 {
            assert!(effort.tried < 2_000, "{piece:?}: {effort:?}");
        }
        assert!(
            effort.searched <= text.len() * CALM + CALM_BYTES,
            "{piece:?}: {effort:?}"
        );
    }
}

/// Twice the text, twice the work, when everything in it begins something and no two places are alike.
#[test]
fn the_work_grows_no_faster_than_the_text() {
    let hostile = |bytes: usize| {
        let mut text = String::new();
        let mut state: u64 = 7;
        while text.len() < bytes {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let pick = usize::try_from(state >> 33).unwrap_or_default();
            text.push_str(HOSTILE[pick % HOSTILE.len()]);
        }
        text
    };
    let (small, large) = (effort(&hostile(40 * 1024)), effort(&hostile(80 * 1024)));
    assert!(small.tried > 0 && small.tried < 40 * 1024, "{small:?}");
    assert!(large.tried * 10 <= small.tried * 22, "{small:?}, {large:?}");
}

#[test]
fn only_the_same_text_counts_as_known() {
    let text = b"abcdefgh-abcdefgh-abcdefgX";
    let prints = Prints::of(text, text.len());
    let mut tries = Tries::new(&[0, 9, 18], &prints);
    tries.remember(0..8);
    assert!(tries.is_known(text, &(9..17)));
    assert!(!tries.is_known(text, &(18..26)) && !tries.is_known(text, &(9..16)));
    assert_eq!((tries.tried, tries.known), (2, 1));
    assert_eq!(
        (tries.next(&(5..18)), tries.next(&(5..18)), tries.next(&(0..26))),
        (Some(9), None, Some(18))
    );
}
