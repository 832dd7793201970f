//! Words that say nothing about what is looked for. Only consulted when a query is widened, so that no text becomes
//! unfindable; leaving them out is first of all a matter of speed, since every match of every word is scored.

use super::Term;

/// English function words, what people fill a talk with, and what an apostrophe leaves of a word; sorted.
const ENGLISH: &[&str] = &[
    "a", "about", "above", "after", "again", "against", "all", "also", "am", "an", "and", "any", "are", "aren", "as",
    "at", "be", "because", "been", "before", "being", "below", "between", "both", "but", "by", "can", "could",
    "couldn", "d", "did", "didn", "do", "does", "doesn", "doing", "don", "down", "during", "each", "even", "few",
    "for", "from", "further", "had", "haha", "has", "have", "haven", "he", "hello", "her", "here", "hey", "hi", "him",
    "his", "hmm", "how", "i", "if", "in", "into", "is", "isn", "it", "its", "just", "ll", "lot", "m", "many", "may",
    "maybe", "me", "more", "most", "much", "my", "no", "nor", "not", "now", "of", "off", "oh", "ok", "okay", "on",
    "only", "or", "other", "our", "out", "over", "own", "please", "quite", "re", "really", "s", "same", "she",
    "should", "so", "some", "still", "such", "t", "than", "thank", "thanks", "that", "the", "their", "them", "then",
    "there", "these", "they", "this", "those", "through", "to", "too", "under", "until", "up", "us", "ve", "very",
    "was", "wasn", "we", "well", "were", "what", "when", "where", "which", "while", "who", "whom", "whose", "why",
    "will", "with", "won", "would", "wouldn", "wow", "yeah", "yes", "you", "your",
];

/// What people ask about a talk with: of what *kind* of *thing* somebody *told* them.
const ASKED_WITH: &str = "conversation conversations discussed get getting got happen happened kind kinds knew know mention mentioned \
    remember remind said say says sort talk talked tell thing things think thought told type types";

/// Chinese particles, pronouns, question words, measures and exclamations: a pair that holds one is no word of its own.
const CHINESE: &str =
    "的了吗呢吧啊呀嘛么什谁哪怎这那我你您他她它们是在就也还很与和及或而但把被不没有一个些样啦哦嗯哇呐哟哈";

/// Chinese pairs that say nothing, of characters that elsewhere do.
const CHINESE_PAIRS: &[&str] = &[
    "以前", "以后", "其实", "几次", "只要", "可以", "可能", "告诉", "因为", "多少", "如果", "已经", "应该", "想要",
    "所以", "提到", "提过", "时候", "曾经", "然后", "特别", "看着", "知道", "聊过", "能够", "自己", "要去", "觉得",
    "记得", "讲过", "说过", "请问", "都会", "需要", "非常",
];

/// Whether nothing of the term would help to find something.
pub(super) fn says_nothing(term: &Term) -> bool {
    term.tokens
        .iter()
        .all(|token| ENGLISH.binary_search(&token.as_str()).is_ok() || asked_with(token))
        || term.text.chars().any(|sign| CHINESE.contains(sign))
        || CHINESE_PAIRS.contains(&term.text.as_str())
}

fn asked_with(token: &str) -> bool {
    ASKED_WITH.split(' ').any(|word| word == token)
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
        for text in [
            "The", "kind", "types", "what's", "don't", "you?", "Wow", "我们", "怎么", "因为",
        ] {
            assert!(nothing(text), "{text}");
        }
        for text in ["deploy", "deploy's", "C++", "部署", "开会", "it-department"] {
            assert!(!nothing(text), "{text}");
        }
    }
}
