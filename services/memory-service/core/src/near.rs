//! When two texts say nearly the same: the hint at a near duplicate (`M-4`), the mark by which a rejected candidate is
//! known again, and whether a text for many repeats what one person keeps for themselves (`M-13`).

use std::collections::BTreeSet;

use steward_base::hash::sha256_parts;
use unicode_normalization::UnicodeNormalization as _;

use crate::book::Book;
use crate::edit::Operation;
use crate::entry::Entry;

/// Words in a row that two texts must share for one to repeat the other; a shorter text must be shared whole.
const SHINGLE: usize = 6;

/// Whether a character is a word of its own: scripts without blanks between words are compared character by character.
const fn is_word(character: char) -> bool {
    matches!(character, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{20000}'..='\u{3ffff}')
}

/// A text without what makes no difference, a character at a time: compatibility forms, case, blanks, and signs at the ends of
/// words; one blank between two words. Most texts differ early, so that little of them is looked at.
fn folded(text: &str) -> impl Iterator<Item = char> + '_ {
    let mut letters = text.nfkc().flat_map(char::to_lowercase).nfkc();
    let (mut apart, mut begun, mut held) = (false, false, None);
    std::iter::from_fn(move || {
        if let Some(letter) = held.take() {
            return Some(letter);
        }
        loop {
            let letter = letters.next()?;
            if !letter.is_alphanumeric() {
                apart = true;
                continue;
            }
            let blank = begun && (apart || is_word(letter));
            begun = true;
            apart = is_word(letter);
            if blank {
                held = Some(letter);
                return Some(' ');
            }
            return Some(letter);
        }
    })
}

/// The words of a text without what makes no difference.
fn words(text: &str) -> Vec<String> {
    let folded: String = folded(text).collect();
    folded.split_whitespace().map(str::to_owned).collect()
}

/// An entry of `book` other than an equal one that says the same in nearly the same letters.
pub fn twin<'b>(book: &'b Book, content: &str) -> Option<&'b Entry> {
    let wanted: String = folded(content).collect();
    let is_twin = |entry: &&Entry| entry.content != content && folded(&entry.content).eq(wanted.chars());
    book.entries.iter().find(|entry| !wanted.is_empty() && is_twin(entry))
}

/// What a list of operations is about, whatever the order of the words: the same candidate in another dress has the same.
pub fn fingerprint(operations: &[Operation]) -> String {
    let parts: Vec<String> = operations
        .iter()
        .map(|operation| {
            let (verb, old_text, content) = match operation {
                Operation::Add { content } => ("add", "", content.as_str()),
                Operation::Replace { old_text, content } => ("replace", old_text.as_str(), content.as_str()),
                Operation::Remove { old_text } => ("remove", old_text.as_str(), ""),
            };
            format!("{verb}\n{}\n{}", bag(old_text), bag(content))
        })
        .collect();
    sha256_parts(parts.iter().map(String::as_bytes))
}

fn bag(text: &str) -> String {
    let set: BTreeSet<String> = words(text).into_iter().collect();
    set.into_iter().collect::<Vec<_>>().join(" ")
}

/// Whether `text` repeats a stretch of one of the `private` texts.
pub fn repeats<'t>(text: &str, private: impl IntoIterator<Item = &'t str>) -> bool {
    let said = words(text);
    private.into_iter().any(|private| {
        let kept = words(private);
        let length = SHINGLE.min(kept.len());
        // One or two words are a name or a topic, which belong to nobody.
        length >= 3
            && kept
                .windows(length)
                .any(|stretch| said.windows(length).any(|own| own == stretch))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::book;

    fn add(content: &str) -> Operation {
        Operation::Add {
            content: content.to_owned(),
        }
    }

    #[test]
    fn case_blanks_and_width_make_no_new_fact() {
        let book = book(&["Prefers  TABS, not spaces."]);
        assert!(twin(&book, "prefers tabs not spaces").is_some());
        assert!(twin(&book, "ｐｒｅｆｅｒｓ tabs, not\nspaces!").is_some());
        assert!(twin(&book, "prefers spaces, not tabs").is_none());
        assert!(
            twin(&book, "Prefers  TABS, not spaces.").is_none(),
            "an equal one is no near one"
        );
        assert!(twin(&book, "…").is_none());
    }

    /// Words are what stands between signs; in scripts without blanks each character is one.
    #[test]
    fn words_are_told_apart_by_signs_and_by_script() {
        assert_eq!(words("  Ｔabs, not—spaces! "), ["tabs", "not", "spaces"]);
        assert_eq!(words("用vim编辑 3次"), ["用", "vim", "编", "辑", "3", "次"]);
        assert_eq!(words("…"), Vec::<String>::new());
    }

    /// `L-7`.
    #[test]
    fn a_candidate_is_known_again_with_its_words_in_another_order() {
        assert_eq!(
            fingerprint(&[add("Deploy on Mondays")]),
            fingerprint(&[add("on mondays: deploy")])
        );
        assert_ne!(
            fingerprint(&[add("Deploy on Mondays")]),
            fingerprint(&[add("Deploy on Fridays")])
        );
        assert_eq!(fingerprint(&[add("周五不要部署")]), fingerprint(&[add("不要周五部署")]));
        let remove = Operation::Remove {
            old_text: "Deploy on Mondays".to_owned(),
        };
        assert_ne!(fingerprint(&[add("Deploy on Mondays")]), fingerprint(&[remove]));
    }

    /// `M-13`.
    #[test]
    fn what_one_person_keeps_is_recognised_in_a_text_for_many() {
        let private = [
            "Ann has a hearing next Tuesday and works from home until noon",
            "likes tea",
        ];
        assert!(repeats("Note: Ann has a hearing next Tuesday and is out", private));
        assert!(!repeats("The hearing room is on floor 2; everyone likes tea", private));
        assert!(repeats("安下周二要去医院复查", ["下周二要去医院"]));
    }
}
