//! Finding the entry that a piece of its text names (`M-3`).

use similar::TextDiff;

use crate::book::Book;
use crate::text::{canonical, preview};

/// How many near misses are shown.
const CLOSEST: usize = 3;
/// How much of a text that was not found is compared, in characters: comparing takes time by the product of lengths.
const COMPARED: usize = 200;

/// What a piece of text names in a book.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Match {
    /// One text, which stands at these positions: identical duplicates count as one. Never empty.
    Found(Vec<usize>),
    /// Nothing; previews of the entries that come closest.
    Nothing(Vec<String>),
    /// Several different texts; their previews.
    Several(Vec<String>),
}

/// Looks for `old_text` in `book`. An entry that equals it wins over entries that merely contain it, so that each entry
/// can be named by its full text.
pub fn find(book: &Book, old_text: &str) -> Match {
    let wanted = canonical(old_text);
    let positions = |hit: &dyn Fn(&str) -> bool| -> Vec<usize> {
        book.entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| hit(&entry.content))
            .map(|(at, _)| at)
            .collect()
    };
    let mut hits = positions(&|content| content == wanted);
    if hits.is_empty() {
        hits = positions(&|content| content.contains(&wanted));
    }
    let mut distinct: Vec<&str> = hits.iter().map(|at| book.entries[*at].content.as_str()).collect();
    distinct.sort_unstable();
    distinct.dedup();
    match distinct.len() {
        0 => Match::Nothing(closest(book, &wanted)),
        1 => Match::Found(hits),
        _ => Match::Several(hits.iter().map(|at| preview(&book.entries[*at].content)).collect()),
    }
}

/// Previews of the entries most like `wanted`, best first.
fn closest(book: &Book, wanted: &str) -> Vec<String> {
    let wanted: String = wanted.to_lowercase().chars().take(COMPARED).collect();
    let mut ranked: Vec<(u32, usize)> = book
        .entries
        .iter()
        .enumerate()
        .map(|(at, entry)| (likeness(&wanted, &entry.content.to_lowercase()), at))
        .collect();
    ranked.sort_by_key(|(score, at)| (std::cmp::Reverse(*score), *at));
    ranked
        .iter()
        .take(CLOSEST)
        .map(|(_, at)| preview(&book.entries[*at].content))
        .collect()
}

/// How much of `wanted` reappears in `content`, in thousandths: a substring of a long entry is close to it.
fn likeness(wanted: &str, content: &str) -> u32 {
    let diff = TextDiff::from_chars(wanted, content);
    let same: usize = diff
        .ops()
        .iter()
        .filter(|op| op.tag() == similar::DiffTag::Equal)
        .map(|op| op.old_range().len())
        .sum();
    let length = wanted.chars().count().max(1);
    u32::try_from(same * 1_000 / length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::book;

    #[test]
    fn a_unique_piece_names_its_entry() {
        let book = book(&["Host alpha runs Postgres 15", "Host beta runs Postgres 15"]);
        assert_eq!(find(&book, " alpha "), Match::Found(vec![0]));
    }

    #[test]
    fn a_decomposed_piece_names_the_same_entry() {
        assert_eq!(
            find(&book(&["Café closes at six"]), "Cafe\u{301}"),
            Match::Found(vec![0])
        );
    }

    #[test]
    fn identical_duplicates_count_as_one() {
        assert_eq!(find(&book(&["same", "other", "same"]), "sam"), Match::Found(vec![0, 2]));
    }

    #[test]
    fn different_matches_are_listed() {
        let Match::Several(previews) = find(&book(&["Host alpha runs", "Host beta runs"]), "Host") else {
            panic!("two entries contain it");
        };
        assert_eq!(previews, ["Host alpha runs", "Host beta runs"]);
    }

    #[test]
    fn the_full_text_of_an_entry_names_it_although_another_contains_it() {
        assert_eq!(
            find(&book(&["tabs, not spaces", "tabs"]), "tabs"),
            Match::Found(vec![1])
        );
    }

    #[test]
    fn a_miss_names_the_closest_first() {
        let Match::Nothing(closest) = find(
            &book(&["likes tea", "Host alpha runs Postgres 15", "z"]),
            "alfa runs postgres",
        ) else {
            panic!("nothing contains it");
        };
        assert_eq!(closest[0], "Host alpha runs Postgres 15");
        assert_eq!(closest.len(), 3);
    }
}
