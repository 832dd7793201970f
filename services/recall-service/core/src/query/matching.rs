//! Answers a query over one text without SQLite: does it match, and where.
//!
//! The in-memory store searches with it, and snippets and highlights of both stores come from it, as byte ranges that
//! always lie on character boundaries.

use std::collections::HashMap;
use std::ops::Range;

use super::{Expr, Query, Term};
use crate::tokenizer::{self, PlacedToken, Purpose};

/// A text, cut into tokens once and asked many times.
#[derive(Debug)]
pub struct Searchable {
    tokens: Vec<PlacedToken>,
    by_text: HashMap<String, Vec<usize>>,
}

impl Searchable {
    /// Tokenises `text` as a document.
    pub fn new(text: &str) -> Self {
        let tokens = tokenizer::positions(text, Purpose::Document);
        let mut by_text: HashMap<String, Vec<usize>> = HashMap::new();
        for token in &tokens {
            let places = by_text.entry(token.text.clone()).or_default();
            if places.last() != Some(&token.position) {
                places.push(token.position);
            }
        }
        Self { tokens, by_text }
    }

    /// Whether the text satisfies the query.
    pub fn matches(&self, query: &Query) -> bool {
        satisfied(query.expr(), &|term| self.holds(term))
    }

    /// Whether the term's tokens follow one another somewhere in the text.
    pub fn holds(&self, term: &Term) -> bool {
        !self.places(term).is_empty()
    }

    /// Byte ranges of everything that the query's terms matched: ascending, apart from each other.
    pub fn ranges(&self, query: &Query) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        for term in query.terms() {
            let length = term.tokens.len();
            found.extend(
                self.places(term)
                    .into_iter()
                    .filter_map(|first| self.bytes_of(first, first + length - 1)),
            );
        }
        found.sort_by_key(|range| (range.start, range.end));
        let mut merged: Vec<Range<usize>> = Vec::new();
        for range in found {
            match merged.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        merged
    }

    /// How often the query's terms occur: a plain measure of relevance for stores without BM25.
    pub fn count(&self, query: &Query) -> usize {
        query.terms().into_iter().map(|term| self.places(term).len()).sum()
    }

    /// Positions at which the term's first token stands when all its tokens follow one another.
    fn places(&self, term: &Term) -> Vec<usize> {
        let last = term.tokens.len().saturating_sub(1);
        let mut places: Option<Vec<usize>> = None;
        for (offset, token) in term.tokens.iter().enumerate() {
            let here = self.positions_of(token, term.prefix && offset == last);
            places = Some(match places {
                None => here,
                Some(before) => before
                    .into_iter()
                    .filter(|first| here.binary_search(&(first + offset)).is_ok())
                    .collect(),
            });
        }
        places.unwrap_or_default()
    }

    fn positions_of(&self, token: &str, prefix: bool) -> Vec<usize> {
        if !prefix {
            return self.by_text.get(token).cloned().unwrap_or_default();
        }
        let longer = self.by_text.iter().filter(|(text, _)| text.starts_with(token));
        let mut positions: Vec<usize> = longer.flat_map(|(_, places)| places.iter().copied()).collect();
        positions.sort_unstable();
        positions.dedup();
        positions
    }

    /// Bytes from the token at position `first` to the one at position `last`, by the tokens that are not colocated.
    fn bytes_of(&self, first: usize, last: usize) -> Option<Range<usize>> {
        let at = |position: usize| {
            let index = self.tokens.partition_point(|token| token.position < position);
            self.tokens.get(index).filter(|token| token.position == position)
        };
        Some(at(first)?.start..at(last)?.end)
    }
}

/// Whether an expression holds, given which of its terms are present. For documents of several fields a term is present
/// when one of them holds it.
pub fn satisfied(expr: &Expr, present: &dyn Fn(&Term) -> bool) -> bool {
    match expr {
        Expr::Term(term) => present(term),
        Expr::All(members) => members.iter().all(|member| satisfied(member, present)),
        Expr::Any(members) => members.iter().any(|member| satisfied(member, present)),
        Expr::Without(wanted, unwanted) => satisfied(wanted, present) && !satisfied(unwanted, present),
    }
}
