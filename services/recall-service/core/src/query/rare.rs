//! What of a wide question is looked for. Every match of every word is scored, so that a question of a hundred words, or one
//! with words that stand in every tenth message, would cost more than it is worth; what it is about is in the rare ones.

use super::parse::any_of;
use super::{Expr, MAX_TERMS, Query, Term};
use crate::tokenizer::DAY_MARK;

/// Messages that are looked at for their rarest words, about; common words then only count in those.
pub const MATCHES: u64 = 8_192;

/// A question reduced to what is affordable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rarest {
    /// What is asked. Messages have to hold one of its rare words; common ones stand in it to be scored.
    pub query: Query,
    /// The terms of it that are scored, counted from the first; the others only repeat them.
    pub scored: usize,
}

impl Query {
    /// The FTS5 expressions of the alternatives among which [`Self::rarest`] chooses, for whoever counts how many messages
    /// match each. Empty where there is nothing to choose.
    pub fn alternatives(&self) -> Vec<String> {
        let Some(members) = self.choice() else {
            return Vec::new();
        };
        let each = members.iter().map(|member| {
            let mut out = String::new();
            super::write_match(member, &mut out);
            out
        });
        each.collect()
    }

    /// The same question with the rarest of its alternatives, in their order: at most [`MAX_TERMS`] and the days, of which only
    /// the rarest have to be found. `counts` says how many messages match each of the [`Self::alternatives`].
    pub fn rarest(&self, counts: &[u64]) -> Rarest {
        let mut query = self.clone();
        let choice = match &mut query.expr {
            Expr::All(parts) => parts.iter_mut().find(|part| matches!(part, Expr::Any(_))),
            whole => Some(whole),
        };
        if let Some(choice) = choice
            && let Expr::Any(members) = choice
            && members.len() == counts.len()
        {
            let (all, needed) = chosen(members, counts);
            *choice = match needed {
                // What was quoted has to be found, too, and bounds the rest.
                Some(needed) if matches!(self.expr, Expr::Any(_)) => Expr::All(vec![all, needed]),
                _ => all,
            };
        }
        let scored = match &query.expr {
            // What has to be found repeats what is scored.
            Expr::All(parts) if matches!(self.expr, Expr::Any(_)) => {
                parts.first().map_or(0, |all| super::terms_of(all).len())
            }
            whole => super::terms_of(whole).len(),
        };
        Rarest { query, scored }
    }

    /// The list of which any member will do, where nobody wrote it as such.
    fn choice(&self) -> Option<&Vec<Expr>> {
        let list = match &self.expr {
            _ if self.strict => None,
            Expr::All(parts) => parts.iter().find(|part| matches!(part, Expr::Any(_))),
            whole => Some(whole),
        };
        match list {
            Some(Expr::Any(members)) => Some(members),
            _ => None,
        }
    }
}

/// The rarest members, and the rarest of those where all would be found in too many messages.
fn chosen(members: &[Expr], counts: &[u64]) -> (Expr, Option<Expr>) {
    let mut by_count: Vec<(u64, usize)> = counts
        .iter()
        .copied()
        .zip(0..)
        .filter(|(count, _)| *count > 0)
        .collect();
    by_count.sort_unstable();
    by_count.truncate(MAX_TERMS);
    let mut found = 0_u64;
    let affordable = by_count.iter().take_while(|(count, _)| {
        found = found.saturating_add(*count);
        found <= MATCHES
    });
    // The rarest one, whatever it costs.
    let needed = &by_count[..affordable.count().max(1).min(by_count.len())];
    let of = |places: &[(u64, usize)], days: bool| -> Vec<Expr> {
        let wanted = |place: &usize| places.iter().any(|(_, chosen)| chosen == place);
        let each = members
            .iter()
            .zip(0..)
            .filter(|(member, place)| wanted(place) || (days && is_day(member)));
        each.map(|(member, _)| member.clone()).collect()
    };
    let (all, needed) = (of(&by_count, true), of(needed, false));
    let fewer = needed.len() < all.len();
    match (any_of(all), any_of(needed).filter(|_| fewer)) {
        (Some(all), needed) if !by_count.is_empty() => (all, needed),
        // The index knows none of them, which it will say itself.
        _ => (Expr::Any(members.iter().take(MAX_TERMS).cloned().collect()), None),
    }
}

fn is_day(member: &Expr) -> bool {
    matches!(member, Expr::Term(Term { text, .. }) if text.starts_with(DAY_MARK))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widest(text: &str) -> Query {
        Query::parse(text).unwrap().widened().remove(0)
    }

    #[test]
    fn of_a_long_question_the_rarest_terms_are_looked_for_in_their_order() {
        let words: Vec<String> = (0..100).map(|number| format!("w{number}x")).collect();
        let query = widest(&words.join(" "));
        assert_eq!(query.alternatives().len(), 100);
        // The later a word, the rarer; the last one is nowhere.
        let counts: Vec<u64> = (0..100).map(|place| 99 - place).collect();
        let rare = query.rarest(&counts);
        let left: Vec<&str> = rare.query.terms().into_iter().map(|term| term.text.as_str()).collect();
        assert_eq!(
            (left, rare.scored),
            (words[67..99].iter().map(String::as_str).collect(), 32)
        );
    }

    #[test]
    fn common_words_are_scored_where_rare_ones_stand() {
        let query = widest("kestrel fence yesterday");
        let rare = query.rarest(&[3, 90_000, 8_000]);
        assert_eq!(
            (rare.query.to_text().as_str(), rare.scored),
            (
                "(\"kestrel\" OR \"fence\" OR \"yesterday\") AND (\"kestrel\" OR \"yesterday\")",
                3
            )
        );
        let common = query.rarest(&[50_000, 90_000, 80_000]);
        assert_eq!(
            common.query.to_text(),
            "(\"kestrel\" OR \"fence\" OR \"yesterday\") AND \"kestrel\""
        );
        assert_eq!(
            query.rarest(&[3, 4, 5]),
            Rarest {
                query: query.clone(),
                scored: 3
            }
        );
        assert_eq!(query.rarest(&[0, 0, 0]).query, query);
    }

    #[test]
    fn days_are_scored_and_quoted_text_stays_needed() {
        let query = widest("\"the plan\" kestrel fence on May 4th");
        let rare = query.rarest(&[1, 9_000, 0, 2_000]);
        assert_eq!(rare.query.to_text(), query.to_text().replace(" OR \"4th\"", ""));
    }

    #[test]
    fn what_was_written_as_a_list_of_alternatives_stays_whole() {
        let query = Query::parse("kestrel OR fence OR heron").unwrap();
        assert!(query.alternatives().is_empty());
        assert_eq!(query.rarest(&[]).query, query);
    }

    #[test]
    fn what_a_question_says_again_weighs_more() {
        let again = widest("kestrel fence kestrel");
        assert!(again.weights()[0] > again.weights()[1] && again.weights()[0] < 2.0);
    }

    #[test]
    fn words_beyond_the_bound_are_looked_for_when_the_question_is_widened() {
        let words: Vec<String> = (0..60).map(|number| format!("w{number}x")).collect();
        let query = Query::parse(&words.join(" ")).unwrap();
        assert_eq!(query.terms().len(), MAX_TERMS);
        assert_eq!(query.widened()[0].terms().len(), 60);
    }
}
