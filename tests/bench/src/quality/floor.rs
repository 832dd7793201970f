//! The floor of quality: what one FTS5 table with SQLite's own tokenizer finds when any word of a question will do.
//!
//! The best messages by its `bm25`, each conversation once, the asker's only. Runs of Han are written out for it, in questions
//! and in texts, since it takes each for one word.

use std::path::Path;

use crate::floor::{Bare, written_out};

use super::set::{Question, Set};

const TABLE: &str = "CREATE VIRTUAL TABLE bare USING fts5 (said, content = '', tokenize = 'unicode61')";
const BEST: &str = "SELECT rowid FROM bare WHERE bare MATCH ? ORDER BY rank";

/// The table, and where each of its rows stands in the set.
pub(super) struct Floor {
    bare: Bare,
    places: Vec<(usize, u64)>,
}

impl Floor {
    /// With every message of the set.
    pub(super) fn load(folder: &Path, set: &Set) -> anyhow::Result<Self> {
        let bare = Bare::open(folder, TABLE)?;
        let transaction = bare.connection().unchecked_transaction()?;
        let mut places = Vec::new();
        for (place, talk) in set.talks.iter().enumerate() {
            for (message, seq) in talk.messages.iter().zip(1..) {
                places.push((place, seq));
                let row = (i64::try_from(places.len())?, written_out(&message.text));
                bare.commit("INSERT INTO bare (rowid, said) VALUES (?, ?)", row)?;
            }
        }
        transaction.commit()?;
        Ok(Self { bare, places })
    }

    /// Places of the first conversations, each with the number of its best message.
    pub(super) fn ask(&self, set: &Set, question: &Question, limit: usize) -> anyhow::Result<Vec<(usize, u64)>> {
        let Some(expression) = any_word(&question.text) else {
            return Ok(Vec::new());
        };
        let mut best = self.bare.connection().prepare_cached(BEST)?;
        let rows = best.query_map((expression,), |row| row.get(0))?;
        let rows: Vec<i64> = rows.collect::<Result<_, _>>()?;
        let mut found: Vec<(usize, u64)> = Vec::new();
        let places = rows.into_iter().filter_map(|row| {
            let at = usize::try_from(row).ok()?.checked_sub(1)?;
            self.places.get(at).copied()
        });
        for (place, seq) in places {
            let is_own = set.talks[place].person == question.person;
            if is_own && found.len() < limit && found.iter().all(|(known, _)| *known != place) {
                found.push((place, seq));
            }
        }
        Ok(found)
    }

    pub(super) fn close(self) -> anyhow::Result<()> {
        self.bare.close().map(drop)
    }
}

/// All words of a text, and the pairs of its Han, any of which will do.
fn any_word(text: &str) -> Option<String> {
    let written = written_out(text);
    let words = written
        .split(|sign: char| !sign.is_alphanumeric())
        .filter(|word| !word.is_empty());
    let quoted: Vec<String> = words.map(|word| format!("\"{word}\"")).collect();
    (!quoted.is_empty()).then(|| quoted.join(" OR "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_word_of_a_question_will_do() {
        assert_eq!(any_word("Ann's bird?").as_deref(), Some(r#""Ann" OR "s" OR "bird""#));
        assert_eq!(any_word("养猫").as_deref(), Some(r#""养" OR "猫" OR "养猫""#));
        assert_eq!(any_word("?!"), None);
    }
}
