//! Answers a query over one text without SQLite: does it match, and where.
//!
//! The in-memory store searches with it, and snippets and highlights of both stores come from it, as byte ranges that
//! always lie on character boundaries.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};

use super::{Expr, Query, Term};
use crate::tokenizer::{self, Purpose, Scratch, Token};

/// Where the words of one query stand in a text. Words that the query does not ask for are not kept, so that a large
/// text takes time but no room.
#[derive(Debug)]
pub struct Searchable<'q> {
    query: &'q Query,
    /// For each wanted token, the positions at which it stands, ascending.
    found: BTreeMap<Wanted<'q>, Vec<Place>>,
}

/// A token that the query asks for, as it is or as the beginning of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Wanted<'q> {
    text: &'q str,
    prefix: bool,
}

/// A position in a text and the bytes of what stands there.
#[derive(Debug, Clone, Copy)]
struct Place {
    position: usize,
    start: usize,
    end: usize,
}

impl<'q> Searchable<'q> {
    /// Reads `text` as a document and remembers what `query` asks for.
    pub fn new(text: &str, query: &'q Query) -> Self {
        let mut found: BTreeMap<Wanted<'q>, Vec<Place>> = BTreeMap::new();
        for_each_term(query.expr(), &mut |term| {
            for (at, _) in term.tokens.iter().enumerate() {
                found.entry(wanted(term, at)).or_default();
            }
            for form in &term.forms {
                found.entry(whole(form)).or_default();
            }
        });
        // In the order of their texts, as the map gives them. A text has many words, and a query few.
        let mut exact: Vec<(&str, &mut Vec<Place>)> = Vec::new();
        let mut beginnings: Vec<(&str, &mut Vec<Place>)> = Vec::new();
        for (wanted, places) in &mut found {
            if wanted.prefix {
                beginnings.push((wanted.text, places));
            } else {
                exact.push((wanted.text, places));
            }
        }
        let mut count = 0_usize;
        let _ = tokenizer::tokenize(text, Purpose::Index, &mut Scratch::default(), &mut |token: Token<
            '_,
        >| {
            count += usize::from(!token.colocated);
            // A pair reaches further than the character at whose place it stands.
            let here = Place {
                position: count.saturating_sub(1),
                start: token.start,
                end: token.end,
            };
            if let Ok(at) = exact.binary_search_by_key(&token.text, |(wanted, _)| *wanted) {
                note(exact[at].1, here);
            }
            for (beginning, places) in &mut beginnings {
                if token.text.starts_with(*beginning) {
                    note(places, here);
                }
            }
            ControlFlow::Continue(())
        });
        Self { query, found }
    }

    /// Whether the text satisfies the query.
    pub fn matches(&self) -> bool {
        satisfied(self.query.expr(), &|term| self.holds(term))
    }

    /// Whether the tokens of a term of the query follow one another somewhere in the text.
    pub fn holds(&self, term: &Term) -> bool {
        !self.places(term).is_empty()
    }

    /// Byte ranges of everything that the query's terms matched: ascending, apart from each other.
    pub fn ranges(&self) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        for term in self.query.terms() {
            found.extend(self.places(term));
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

    /// How often a term of the query occurs.
    pub fn count_of(&self, term: &Term) -> usize {
        self.places(term).len()
    }

    /// Wherever the word or another form of it stands.
    fn any_form(&self, term: &Term) -> Vec<Range<usize>> {
        let tokens = term.tokens.iter().chain(&term.forms);
        let mut places: Vec<Place> = tokens
            .filter_map(|token| self.found.get(&whole(token)))
            .flatten()
            .copied()
            .collect();
        places.sort_by_key(|place| place.position);
        places.dedup_by_key(|place| place.position);
        places.into_iter().map(|place| place.start..place.end).collect()
    }

    /// The bytes from the term's first token to its last, wherever all of them follow one another.
    fn places(&self, term: &Term) -> Vec<Range<usize>> {
        if !term.forms.is_empty() {
            return self.any_form(term);
        }
        let at = |offset: usize| self.found.get(&wanted(term, offset)).map_or(&[][..], Vec::as_slice);
        let follows = |first: &Place| -> Option<Range<usize>> {
            let mut end = first.end;
            for offset in 1..term.tokens.len() {
                let here = at(offset);
                let index = here
                    .binary_search_by_key(&(first.position + offset), |place| place.position)
                    .ok()?;
                end = here[index].end;
            }
            Some(first.start..end)
        };
        at(0).iter().filter_map(follows).collect()
    }
}

fn whole(text: &str) -> Wanted<'_> {
    Wanted { text, prefix: false }
}

fn wanted(term: &Term, offset: usize) -> Wanted<'_> {
    Wanted {
        text: &term.tokens[offset],
        prefix: term.prefix && offset + 1 == term.tokens.len(),
    }
}

fn note(places: &mut Vec<Place>, here: Place) {
    if places.last().is_none_or(|last| last.position != here.position) {
        places.push(here);
    }
}

/// Every term, those after `NOT` too.
fn for_each_term<'q>(expr: &'q Expr, then: &mut impl FnMut(&'q Term)) {
    match expr {
        Expr::Term(term) => then(term),
        Expr::All(members) | Expr::Any(members) => {
            for member in members {
                for_each_term(member, then);
            }
        }
        Expr::Without(wanted, unwanted) => {
            for_each_term(wanted, then);
            for_each_term(unwanted, then);
        }
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
