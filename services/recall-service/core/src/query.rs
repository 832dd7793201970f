//! What a person or the model typed, understood as a search (`Q-8`).
//!
//! Any text is a query. `AND`, `OR`, `NOT`, quotes, parentheses and a trailing `*` work when the whole is well-formed;
//! when it is not, every sign is literal text. Punctuation that holds no identifier together parts words. What comes out is an [`Expr`] whose leaves are never empty, so that
//! [`Query::to_match`] can only produce valid FTS5 syntax, and [`matching`] can answer the same question without SQLite.
//!
//! Not here: ranking and filters. Those belong to the store.

mod dates;
mod function_words;
mod lex;
pub mod matching;
mod parse;
pub mod rare;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use crate::tokenizer::{self, Purpose};

/// Longest query in characters. Longer ones are a mistake of the caller, answered as such.
pub const MAX_QUERY: usize = 1_000;
/// Most terms that are asked for together; of a longer question as many are looked for, the rarest ones.
pub const MAX_TERMS: usize = 32;
/// Most terms that those are chosen from.
const MAX_CHOICE: usize = 256;

/// How much a word gains by being said again.
const AGAIN: f32 = 0.5;
/// What one character of a longer word is worth beside the pairs.
const OF_ONE: f32 = 0.5;
/// A question with more content words than that says enough: other words for them and single characters would only blur it.
const SHORT: usize = 12;
/// Fewer characters than that are a name or a keyword and no sentence.
const SENTENCE: usize = 5;

/// A parsed query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    expr: Expr,
    /// Whether the caller wrote operators or prefixes; such a query is never loosened.
    strict: bool,
    /// Days that it names.
    days: Vec<Term>,
    /// Words of a long question beyond [`MAX_TERMS`], which only its widening looks for.
    further: Vec<Term>,
}

/// The structure of a query. Lists have at least two members; terms have at least one token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expr {
    /// One word, identifier, quoted phrase or run of dense script.
    Term(Term),
    /// All of them.
    All(Vec<Expr>),
    /// At least one of them.
    Any(Vec<Expr>),
    /// The first without the second.
    Without(Box<Expr>, Box<Expr>),
}

/// A leaf: consecutive tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// As typed, without quotes.
    pub text: String,
    /// The folded tokens, in order; never empty.
    pub tokens: Vec<String>,
    /// Whether the last token may be the beginning of a longer one.
    pub prefix: bool,
    /// Whether it was quoted.
    pub quoted: bool,
    /// Other tokens that will do in place of the only one: what [`Self::reading`] allows.
    pub forms: Vec<String>,
    /// What will do in place of the word.
    pub reading: Reading,
    /// Whether it is one character of what was typed as a longer run.
    pub is_piece: bool,
    /// How often the question says it; what it comes back to matters more.
    pub times: u16,
}

/// What is accepted for a word.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reading {
    /// The word as typed.
    #[default]
    Typed,
    /// Other forms of it.
    AnyForm,
    /// Other forms, and other words that say the same.
    Alike,
}

impl Term {
    /// `None` if nothing in `text` can be searched for.
    fn new(text: &str, prefix: bool, quoted: bool) -> Option<Self> {
        let tokens: Vec<String> = tokenizer::positions(text, Purpose::Query)
            .into_iter()
            .map(|token| token.text)
            .collect();
        (!tokens.is_empty()).then(|| Self {
            text: text.replace('\0', " "),
            tokens,
            prefix,
            quoted,
            forms: Vec::new(),
            reading: Reading::Typed,
            is_piece: false,
            times: 1,
        })
    }

    /// More for what is said again and again, but far from as much more.
    fn weight(&self) -> f32 {
        let again = 1.0 + AGAIN * f32::from(self.times.max(1)).ln();
        if self.is_piece { OF_ONE * again } else { again }
    }

    /// The same, read with more or less licence.
    fn read_as(mut self, reading: Reading) -> Self {
        if let [word] = self.tokens.as_slice()
            && !self.prefix
            && !self.quoted
        {
            self.forms = match reading {
                Reading::Typed => Vec::new(),
                Reading::AnyForm => tokenizer::forms(word),
                Reading::Alike => tokenizer::alike(word),
            };
            self.reading = if self.forms.is_empty() { Reading::Typed } else { reading };
        }
        self
    }
}

impl Query {
    /// Understands `text`; `None` if it holds nothing that could be searched for, such as only blanks or punctuation.
    pub fn parse(text: &str) -> Option<Self> {
        let text = lex::quoted_question(text).unwrap_or(text);
        let days = dates::named(text)
            .into_iter()
            .filter_map(|day| Term::new(&day.phrase(), false, false))
            .collect();
        let items = lex::items(text);
        let strict = items.iter().any(lex::Item::is_operator);
        let quotes = items.iter().any(|item| matches!(item, lex::Item::Quoted { .. }));
        if (strict || quotes)
            && let Some(expr) = parse::well_formed(&items)
        {
            let further = Vec::new();
            return Some(Self {
                expr,
                strict,
                days,
                further,
            });
        }
        let mut terms: Vec<Term> = lex::literal_words(text)
            .into_iter()
            .filter_map(|word| Term::new(word, false, false))
            .collect();
        let further = terms.split_off(terms.len().min(MAX_TERMS));
        parse::all_of(terms.into_iter().map(Expr::Term).collect()).map(|expr| Self {
            expr,
            strict: false,
            days,
            further,
        })
    }

    /// The structure.
    pub fn expr(&self) -> &Expr {
        &self.expr
    }

    /// The FTS5 `MATCH` argument. Every term is a quoted string, so no text of the caller's is ever read as syntax.
    pub fn to_match(&self) -> String {
        let mut out = String::new();
        write_match(&self.expr, &mut out);
        out
    }

    /// The same for people to read.
    pub fn to_text(&self) -> String {
        let signs = self.to_match().replace([tokenizer::LOOSE, tokenizer::ALIKE], "");
        signs
            .replace(&format!("\"{}", tokenizer::DAY_MARK), "\"")
            .replace(tokenizer::DAY_MARK, " ")
    }

    /// Whether all words had to be present although the caller asked for nothing of the kind: such a query may be
    /// widened when it finds less than a page.
    pub fn is_plain_list(&self) -> bool {
        !self.strict && matches!(self.expr, Expr::All(_))
    }

    /// The same question asked less strictly, step by step: any of its content words, then any word at all. Empty where the
    /// caller was explicit or nothing is left to loosen. What was quoted must be there in each step; beside it, the words
    /// that were not are wanted first and then needed no more.
    ///
    /// A run of dense script is cut into its pairs, since a sentence typed in Chinese is hardly ever found as it stands.
    /// Identifiers stay whole.
    pub fn widened(&self) -> Vec<Self> {
        if self.strict {
            return Vec::new();
        }
        let all = terms_of(&self.expr).into_iter().chain(&self.further);
        let (quoted, loose): (Vec<&Term>, Vec<&Term>) = all.partition(|term| term.quoted);
        let mut steps: Vec<Self> = Vec::new();
        for words in [Words::Content, Words::All] {
            let any = any_of(&loose, &self.days, words).filter(|_| quoted.is_empty() || words == Words::Content);
            let needed = quoted.iter().map(|term| Expr::Term((*term).clone()));
            let step = parse::all_of(needed.chain(any).collect()).map(|expr| Self {
                expr,
                strict: false,
                days: Vec::new(),
                further: Vec::new(),
            });
            if let Some(step) = step.filter(|step| step != self && !loose.is_empty() && !steps.contains(step)) {
                steps.push(step);
            }
        }
        steps
    }

    /// How much each of the [`Self::terms`] matters.
    pub fn weights(&self) -> Vec<f32> {
        self.terms().into_iter().map(Term::weight).collect()
    }

    /// The terms that a match may show, those after `NOT` excepted.
    pub fn terms(&self) -> Vec<&Term> {
        terms_of(&self.expr)
    }
}

fn terms_of(expr: &Expr) -> Vec<&Term> {
    match expr {
        Expr::Term(term) => vec![term],
        Expr::All(members) | Expr::Any(members) => members.iter().flat_map(terms_of).collect(),
        Expr::Without(wanted, _) => terms_of(wanted),
    }
}

fn write_match(expr: &Expr, out: &mut String) {
    match expr {
        Expr::Term(term) => {
            let star = if term.prefix { " *" } else { "" };
            let mark = match term.reading {
                Reading::Typed => String::new(),
                Reading::AnyForm => tokenizer::LOOSE.to_string(),
                Reading::Alike => tokenizer::ALIKE.to_string(),
            };
            let _ = write!(out, "\"{mark}{}\"{star}", term.text.replace('"', "\"\""));
        }
        Expr::All(members) => write_list(members, " AND ", out),
        Expr::Any(members) => write_list(members, " OR ", out),
        Expr::Without(wanted, unwanted) => {
            write_group(wanted, out);
            out.push_str(" NOT ");
            write_group(unwanted, out);
        }
    }
}

fn write_list(members: &[Expr], operator: &str, out: &mut String) {
    for (index, member) in members.iter().enumerate() {
        if index > 0 {
            out.push_str(operator);
        }
        write_group(member, out);
    }
}

fn write_group(expr: &Expr, out: &mut String) {
    if matches!(expr, Expr::Term(_)) {
        write_match(expr, out);
    } else {
        out.push('(');
        write_match(expr, out);
        out.push(')');
    }
}

/// Which words of a question are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Words {
    Content,
    All,
}

/// Any of what the terms hold; `None` if nothing is left.
fn any_of(terms: &[&Term], days: &[Term], words: Words) -> Option<Expr> {
    let mut alternatives: Vec<Term> = Vec::new();
    for found in terms.iter().flat_map(|term| looser(term)) {
        if words == Words::All || !function_words::says_nothing(&found) {
            add(&mut alternatives, found);
        }
    }
    let is_short = alternatives.len() <= SHORT;
    if is_short && words == Words::Content && !alternatives.is_empty() {
        for piece in pieces(terms) {
            add(&mut alternatives, piece);
        }
    }
    alternatives.truncate(MAX_CHOICE);
    let reading = if is_short { Reading::Alike } else { Reading::AnyForm };
    let read = alternatives.into_iter().map(|term| term.read_as(reading));
    // A day alone says too much: all that was said on it.
    let alternatives = read.chain(days.iter().cloned());
    parse::any_of(alternatives.map(Expr::Term).collect())
}

fn add(alternatives: &mut Vec<Term>, found: Term) {
    match alternatives.iter_mut().find(|known| known.tokens == found.tokens) {
        Some(known) => known.times = known.times.saturating_add(1),
        None => alternatives.push(found),
    }
}

/// The single characters of a sentence in Han that say something. Many words of everyday talk have one, and what is asked
/// about in two is answered in one: 养的猫, 一只猫.
fn pieces(terms: &[&Term]) -> Vec<Term> {
    let signs = || {
        terms
            .iter()
            .flat_map(|term| term.text.chars())
            .filter(|sign| lex::is_han(*sign))
    };
    if signs().count() < SENTENCE {
        return Vec::new();
    }
    let each = signs().filter_map(|sign| Term::new(sign.encode_utf8(&mut [0; 4]), false, false));
    let telling = each.filter(|piece| !function_words::says_nothing(piece));
    telling
        .map(|piece| Term {
            is_piece: true,
            ..piece
        })
        .collect()
}

/// The term, or its pairs of characters and the words between them. Of `Ann's` it is Ann that is asked about.
fn looser(term: &Term) -> Vec<Term> {
    if let [_, ending] = term.tokens.as_slice()
        && ending == "s"
        && let Some((owner, _)) = term.text.split_once(['\'', '’'])
    {
        return Term::new(owner, false, false).into_iter().collect();
    }
    let segments = lex::segments(&term.text);
    if segments.iter().all(|segment| matches!(segment, lex::Segment::Words(_))) {
        return vec![term.clone()];
    }
    let mut pieces = Vec::new();
    for segment in segments {
        match segment {
            lex::Segment::Words(text) => pieces.extend(Term::new(text, false, false)),
            lex::Segment::Dense(text) => {
                let whole = Term::new(text, false, false);
                let pairs = whole.iter().flat_map(|run| &run.tokens);
                pieces.extend(pairs.filter_map(|pair| Term::new(pair, false, false)));
            }
        }
    }
    pieces
}
