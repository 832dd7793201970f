//! English words without their endings, after the rules that Martin Porter published in 1980 (a final `y` after a vowel stays, as in his later ones). Not a dictionary: what comes
//! out need not be a word. Words of other languages in Latin letters lose endings too, alike in texts and in questions.

/// Shorter words have no ending to lose.
const SHORTEST: usize = 4;
/// Longer ones are no words.
const LONGEST: usize = 32;

/// The word without its ending, or `None` where it has none to lose or is no plain word of `a` to `z`.
pub(super) fn stem(word: &str) -> Option<String> {
    let is_plain = word.bytes().all(|letter| letter.is_ascii_lowercase());
    if !is_plain || !(SHORTEST..=LONGEST).contains(&word.len()) {
        return None;
    }
    let mut letters = Letters(word.as_bytes().to_vec());
    letters.plural();
    letters.past_and_progressive();
    letters.final_y();
    letters.replace_first(DOUBLE, 0);
    letters.replace_first(DERIVED, 0);
    letters.drop_suffix();
    letters.final_e();
    let stem = String::from_utf8(letters.0).ok()?;
    (stem != word).then_some(stem)
}

/// Endings of two suffixes, and what is left of them.
const DOUBLE: &[(&str, &str)] = &[
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("abli", "able"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
];
const DERIVED: &[(&str, &str)] = &[
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
];
/// Suffixes that are dropped from longer words.
const DROPPED: &[&str] = &[
    "ement", "ance", "ence", "able", "ible", "ment", "ent", "ant", "ism", "ate", "iti", "ous", "ive", "ize", "ion",
    "al", "er", "ic", "ou",
];

struct Letters(Vec<u8>);

impl Letters {
    fn ends(&self, suffix: &str) -> bool {
        self.0.ends_with(suffix.as_bytes())
    }

    /// What stands before the last `count` letters.
    fn before(&self, count: usize) -> &[u8] {
        &self.0[..self.0.len().saturating_sub(count)]
    }

    fn cut(&mut self, count: usize) {
        self.0.truncate(self.0.len().saturating_sub(count));
    }

    fn plural(&mut self) {
        if self.ends("sses") || self.ends("ies") {
            self.cut(2);
        } else if self.ends("s") && !self.ends("ss") {
            self.cut(1);
        }
    }

    fn past_and_progressive(&mut self) {
        if self.ends("eed") {
            if measure(self.before(3)) > 0 {
                self.cut(1);
            }
            return;
        }
        let count = if self.ends("ed") {
            2
        } else if self.ends("ing") {
            3
        } else {
            return;
        };
        if !has_vowel(self.before(count)) {
            return;
        }
        self.cut(count);
        let doubled =
            matches!(self.0.as_slice(), [.., one, two] if one == two && is_consonant(&self.0, self.0.len() - 1));
        if self.ends("at") || self.ends("bl") || self.ends("iz") {
            self.0.push(b'e');
        } else if doubled && !matches!(self.0.last(), Some(b'l' | b's' | b'z')) {
            self.cut(1);
        } else if measure(&self.0) == 1 && is_short(&self.0) {
            self.0.push(b'e');
        }
    }

    fn final_y(&mut self) {
        let after_consonant = self.0.len() > 2 && is_consonant(&self.0, self.0.len() - 2);
        if self.ends("y") && after_consonant && has_vowel(self.before(1)) {
            self.cut(1);
            self.0.push(b'i');
        }
    }

    /// Replaces the first ending of the list that the word has, if enough stands before it.
    fn replace_first(&mut self, endings: &[(&str, &str)], more_than: usize) {
        let found = endings.iter().find(|(ending, _)| self.ends(ending));
        if let Some((ending, left)) = found
            && measure(self.before(ending.len())) > more_than
        {
            self.cut(ending.len());
            self.0.extend_from_slice(left.as_bytes());
        }
    }

    fn drop_suffix(&mut self) {
        let Some(suffix) = DROPPED.iter().find(|suffix| self.ends(suffix)) else {
            return;
        };
        let before = self.before(suffix.len());
        let fits = *suffix != "ion" || matches!(before.last(), Some(b's' | b't'));
        if fits && measure(before) > 1 {
            self.cut(suffix.len());
        }
    }

    fn final_e(&mut self) {
        if self.ends("e") {
            let before = self.before(1);
            if measure(before) > 1 || (measure(before) == 1 && !is_short(before)) {
                self.cut(1);
            }
        }
        if self.ends("ll") && measure(&self.0) > 1 {
            self.cut(1);
        }
    }
}

/// `y` is a vowel after a consonant.
fn is_consonant(letters: &[u8], at: usize) -> bool {
    match letters[at] {
        b'a' | b'e' | b'i' | b'o' | b'u' => false,
        b'y' => at == 0 || !is_consonant(letters, at - 1),
        _ => true,
    }
}

fn has_vowel(letters: &[u8]) -> bool {
    (0..letters.len()).any(|at| !is_consonant(letters, at))
}

/// How often a consonant follows a vowel.
fn measure(letters: &[u8]) -> usize {
    (1..letters.len())
        .filter(|&at| is_consonant(letters, at) && !is_consonant(letters, at - 1))
        .count()
}

/// Ends in consonant, vowel, consonant, the last none of `w`, `x`, `y`: what lost an `e` looks like that.
fn is_short(letters: &[u8]) -> bool {
    let end = letters.len();
    end >= 3
        && is_consonant(letters, end - 3)
        && !is_consonant(letters, end - 2)
        && is_consonant(letters, end - 1)
        && !matches!(letters[end - 1], b'w' | b'x' | b'y')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn forms_of_a_word_have_one_stem() {
        for forms in [
            &["recommend", "recommended", "recommends", "recommending"][..],
            &["deploy", "deploys", "deployed", "deploying", "deployment"],
            &["hope", "hoped", "hoping", "hopes"],
            &["plan", "planned", "planning", "plans"],
            &["study", "studies", "studied"],
            &["paint", "painted", "painting"],
            &["relate", "related", "relational"],
            &["happy", "happiness"],
            &["agree", "agreed", "agreeing"],
        ] {
            let stems: Vec<String> = forms
                .iter()
                .map(|form| stem(form).unwrap_or_else(|| (*form).to_owned()))
                .collect();
            assert!(stems.iter().all(|one| *one == stems[0]), "{stems:?}");
        }
    }

    #[test]
    fn what_is_no_plain_word_stays() {
        for word in ["is", "e0308", "naïve", "getusername1", "bus", "sing"] {
            assert_eq!(stem(word), None, "{word}");
        }
    }

    proptest! {
        #[test]
        fn no_word_grows_much_or_vanishes(word in "[a-z]{0,40}") {
            if let Some(stem) = stem(&word) {
                prop_assert!(!stem.is_empty() && stem.len() <= word.len() + 1);
            }
        }
    }
}
