//! Two invented vocabularies, one Latin and one Han, whose words are as unevenly frequent as words are (Zipf).

use std::collections::HashSet;

use crate::random::Random;

const LATIN_WORDS: usize = 20_000;
const HAN_WORDS: usize = 12_000;
const HAN_CHARACTERS: usize = 2_500;

const ONSETS: &[&str] = &[
    "b", "c", "d", "f", "g", "h", "k", "l", "m", "n", "p", "r", "s", "t", "v", "w", "bl", "cr", "dr", "fl", "gr", "pr",
    "sk", "st", "tr", "ch", "th",
];
const VOWELS: &[&str] = &["a", "e", "i", "o", "u", "ea", "io", "ou", "ie"];
const ENDS: &[&str] = &["", "", "", "n", "r", "s", "l", "m", "nt", "rd", "ck"];

/// Languages of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    English,
    Chinese,
    Mixed,
    /// English with many identifiers.
    Code,
}

/// The vocabularies.
#[derive(Debug)]
pub(crate) struct Lexicon {
    latin: Vocabulary,
    han: Vocabulary,
}

#[derive(Debug)]
struct Vocabulary {
    words: Vec<String>,
    /// Sums of the weights up to each word.
    sums: Vec<f64>,
}

impl Vocabulary {
    fn new(words: Vec<String>, exponent: f64) -> Self {
        let sums = sums(words.len(), exponent);
        Self { words, sums }
    }

    fn draw(&self, random: &mut Random) -> &str {
        draw(&self.sums, random).map_or("", |place| &self.words[place])
    }
}

/// Running sums of `1 / rank^exponent`.
fn sums(count: usize, exponent: f64) -> Vec<f64> {
    let mut sum = 0.0;
    (1..=u32::try_from(count).unwrap_or(u32::MAX))
        .map(|rank| {
            sum += f64::from(rank).powf(-exponent);
            sum
        })
        .collect()
}

fn draw(sums: &[f64], random: &mut Random) -> Option<usize> {
    let place = random.unit() * sums.last()?;
    Some(sums.partition_point(|sum| *sum <= place).min(sums.len() - 1))
}

impl Lexicon {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed, "lexicon");
        let latin = distinct(LATIN_WORDS, &mut random, |random| {
            let syllables = *random.pick(&[1, 2, 2, 2, 3, 3, 4]);
            let mut word = String::new();
            for _ in 0..syllables {
                for part in [ONSETS, VOWELS, ENDS] {
                    word.push_str(random.pick_text(part));
                }
            }
            word
        });
        let mut characters: Vec<char> = ('\u{4e00}'..='\u{9fa5}').collect();
        for place in 0..HAN_CHARACTERS {
            let other = place + random.below(characters.len() - place);
            characters.swap(place, other);
        }
        characters.truncate(HAN_CHARACTERS);
        let weights = sums(HAN_CHARACTERS, 0.8);
        let han = distinct(HAN_WORDS, &mut random, |random| {
            let length = *random.pick(&[1, 2, 2, 2, 2, 2, 2, 3, 3, 4]);
            (0..length)
                .filter_map(|_| draw(&weights, random).map(|place| characters[place]))
                .collect()
        });
        Self {
            latin: Vocabulary::new(latin, 1.05),
            han: Vocabulary::new(han, 1.0),
        }
    }

    /// About `count` words in a language.
    pub(crate) fn text(&self, random: &mut Random, language: Language, count: usize) -> String {
        match language {
            Language::English => self.latin_text(random, count, 0.02),
            Language::Code => self.latin_text(random, count, 0.2),
            Language::Chinese => self.han_text(random, count),
            Language::Mixed => {
                let half = (count / 2).max(1);
                let chinese = self.han_text(random, half);
                format!("{chinese} {}", self.latin_text(random, half, 0.08))
            }
        }
    }

    fn latin_text(&self, random: &mut Random, count: usize, identifiers: f64) -> String {
        let mut text = String::new();
        for number in 0..count {
            if number > 0 {
                text.push(' ');
            }
            if random.chance(identifiers) {
                text.push_str(&self.identifier(random));
            } else {
                text.push_str(self.latin.draw(random));
            }
            text.push_str(if random.chance(0.2) {
                random.pick_text(&[",", "."])
            } else {
                ""
            });
        }
        text
    }

    fn han_text(&self, random: &mut Random, count: usize) -> String {
        let mut text = String::new();
        for _ in 0..count {
            text.push_str(self.han.draw(random));
            text.push_str(if random.chance(0.2) {
                random.pick_text(&["，", "。"])
            } else {
                ""
            });
        }
        text
    }

    /// Two words as programs write them.
    pub(crate) fn identifier(&self, random: &mut Random) -> String {
        let (one, two) = (self.latin.draw(random), self.latin.draw(random));
        match random.below(5) {
            0 => format!("{one}_{two}"),
            1 => format!("{one}-{two}"),
            2 => format!("{one}/{two}.rs"),
            3 => format!("{one}::{two}"),
            _ => format!("{one}{}{}", two[..1].to_ascii_uppercase(), &two[1..]),
        }
    }
}

fn distinct(count: usize, random: &mut Random, mut make: impl FnMut(&mut Random) -> String) -> Vec<String> {
    let mut known = HashSet::new();
    let mut words = Vec::with_capacity(count);
    while words.len() < count {
        let word = make(random);
        // Short words come first and are soon used up, which leaves the long ones.
        let usable = word.chars().count() >= 3 || !word.is_ascii();
        if usable && known.insert(word.clone()) {
            words.push(word);
        }
    }
    words
}
