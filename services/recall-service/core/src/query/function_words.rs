//! Words that say nothing about what is looked for. Only consulted when a query is widened, so that no text becomes
//! unfindable; leaving them out is first of all a matter of speed, since every match of every word is scored.

use super::Term;

/// English function words, and what an apostrophe leaves of one; sorted.
const ENGLISH: &[&str] = &[
    "a", "about", "after", "all", "am", "an", "and", "any", "are", "aren", "as", "at", "be", "been", "before", "being",
    "but", "by", "can", "could", "couldn", "d", "did", "didn", "do", "does", "doesn", "doing", "don", "for", "from",
    "had", "has", "have", "haven", "he", "her", "him", "his", "how", "i", "if", "in", "into", "is", "isn", "it", "its",
    "just", "ll", "m", "may", "me", "my", "no", "not", "of", "on", "or", "our", "re", "s", "she", "should", "so",
    "some", "t", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those", "to", "up",
    "us", "ve", "was", "wasn", "we", "were", "what", "when", "where", "which", "while", "who", "whom", "whose", "why",
    "will", "with", "won", "would", "wouldn", "you", "your",
];

/// Chinese particles, pronouns and question words: a pair that holds one is no word of its own.
const CHINESE: &str = "的了吗呢吧啊呀嘛么什谁哪怎这那我你您他她它们是在就也还很与和及或而但把被";

/// Whether nothing of the term would help to find something.
pub(super) fn says_nothing(term: &Term) -> bool {
    term.tokens
        .iter()
        .all(|token| ENGLISH.binary_search(&token.as_str()).is_ok())
        || term.text.chars().any(|sign| CHINESE.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted() {
        assert!(ENGLISH.is_sorted());
    }

    #[test]
    fn function_words_are_known_with_their_punctuation() {
        let nothing = |text: &str| says_nothing(&Term::new(text, false, false).unwrap());
        for text in ["The", "what's", "don't", "you?", "我们", "怎么"] {
            assert!(nothing(text), "{text}");
        }
        for text in ["deploy", "deploy's", "C++", "部署", "it-department"] {
            assert!(!nothing(text), "{text}");
        }
    }
}
