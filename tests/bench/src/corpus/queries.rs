//! What is searched for: five classes, drawn from the history itself so that most of them are in it.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::path::Path;

use super::{Corpus, dump, is_han, words};
use crate::random::Random;

/// A kind of query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// One English word, from very frequent to rare.
    En1,
    /// Three English words of one message.
    En3,
    /// Three to five Han characters in a row.
    Cjk3,
    /// Two of them.
    Cjk2,
    /// One of them.
    Cjk1,
}

impl Class {
    pub(crate) const ALL: [Self; 5] = [Self::En1, Self::En3, Self::Cjk3, Self::Cjk2, Self::Cjk1];

    /// The name in figures and dumps.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::En1 => "en1",
            Self::En3 => "en3",
            Self::Cjk3 => "cjk3",
            Self::Cjk2 => "cjk2",
            Self::Cjk1 => "cjk1",
        }
    }

    /// Whether it is about words rather than characters.
    pub(crate) const fn is_latin(self) -> bool {
        matches!(self, Self::En1 | Self::En3)
    }
}

/// A query.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Query {
    pub(crate) class: Class,
    pub(crate) text: String,
}

/// At most `count` queries of each class: from the file if there is one, else drawn from the history.
pub(crate) fn queries(corpus: &Corpus, file: Option<&Path>, seed: u64, count: usize) -> anyhow::Result<Vec<Query>> {
    let Some(file) = file else {
        return Ok(drawn(corpus, seed, count));
    };
    let mut left: HashMap<&str, usize> = Class::ALL.iter().map(|class| (class.name(), count)).collect();
    let mut queries = dump::read_queries(file)?;
    queries.retain(|query| {
        let left = left.entry(query.class.name()).or_default();
        let keep = *left > 0;
        *left = left.saturating_sub(1);
        keep
    });
    Ok(queries)
}

/// What queries are drawn from.
struct Pool {
    /// Words and characters, the most frequent first.
    latin: Vec<String>,
    pairs: Vec<String>,
    characters: Vec<char>,
    /// Messages with enough words, and runs of Han.
    messages: Vec<Vec<String>>,
    runs: Vec<Vec<char>>,
}

fn drawn(corpus: &Corpus, seed: u64, count: usize) -> Vec<Query> {
    let pool = pool(corpus);
    let mut random = Random::new(seed, "queries");
    let mut queries = BTreeSet::new();
    for class in Class::ALL {
        let mut found = 0;
        // A small history may not have as many different ones.
        for _ in 0..count * 50 {
            let text = draw(class, &pool, &mut random);
            found += usize::from(text.is_some_and(|text| queries.insert(Query { class, text })));
            if found == count {
                break;
            }
        }
    }
    queries.into_iter().collect()
}

fn draw(class: Class, pool: &Pool, random: &mut Random) -> Option<String> {
    match class {
        Class::En1 => ranked(&pool.latin, random, 8, 8_000).cloned(),
        Class::Cjk2 => ranked(&pool.pairs, random, 3, 5_000).cloned(),
        Class::Cjk1 => ranked(&pool.characters, random, 1, 800).map(char::to_string),
        Class::En3 => {
            let message = pool.messages.get(random.below(pool.messages.len()))?;
            let three: BTreeSet<&String> = (0..3).map(|_| random.pick(message)).collect();
            let three: Vec<&str> = three.into_iter().map(String::as_str).collect();
            (three.len() == 3).then(|| three.join(" "))
        }
        Class::Cjk3 => {
            let run = pool.runs.get(random.below(pool.runs.len()))?;
            let length = (*random.pick(&[3, 3, 4, 5])).min(run.len());
            let start = random.below(run.len() - length + 1);
            Some(run[start..start + length].iter().collect())
        }
    }
}

/// One of a list that is sorted by frequency, the frequent ones as often as the many rare ones.
fn ranked<'a, T>(list: &'a [T], random: &mut Random, from: u32, to: u32) -> Option<&'a T> {
    let rarest = list.len().checked_sub(1)?;
    list.get(random.log_rank(from, to).min(rarest))
}

fn pool(corpus: &Corpus) -> Pool {
    let mut latin: HashMap<String, u32> = HashMap::new();
    let mut pairs: HashMap<String, u32> = HashMap::new();
    let mut characters: HashMap<char, u32> = HashMap::new();
    let (mut messages, mut runs) = (Vec::new(), Vec::new());
    for (_, message) in corpus.searchable() {
        let found: Vec<String> = words(&message.text)
            .into_iter()
            .filter(|word| word.len() >= 3 && word.bytes().all(|byte| byte.is_ascii_lowercase()))
            .collect();
        for word in &found {
            *latin.entry(word.clone()).or_default() += 1;
        }
        if found.len() >= 8 {
            messages.push(found);
        }
        for run in message.text.split(|character| !is_han(character)) {
            let run: Vec<char> = run.chars().collect();
            for character in &run {
                *characters.entry(*character).or_default() += 1;
            }
            for pair in run.windows(2) {
                *pairs.entry(pair.iter().collect()).or_default() += 1;
            }
            if run.len() >= 3 {
                runs.push(run);
            }
        }
    }
    Pool {
        latin: by_frequency(latin),
        pairs: by_frequency(pairs),
        characters: by_frequency(characters),
        messages,
        runs,
    }
}

fn by_frequency<T: Ord + Hash>(counted: HashMap<T, u32>) -> Vec<T> {
    let mut sorted: Vec<(T, u32)> = counted.into_iter().collect();
    sorted.sort_unstable_by(|(one, many), (other, more)| more.cmp(many).then_with(|| one.cmp(other)));
    sorted.into_iter().map(|(what, _)| what).collect()
}
