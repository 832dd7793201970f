//! Cuts a query into words, quoted phrases and signs. Nothing fails here: what is not a sign is a word.

use crate::tokenizer::{self, Purpose};

/// One piece of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item<'a> {
    Word {
        text: &'a str,
        prefix: bool,
    },
    Quoted {
        text: String,
        prefix: bool,
    },
    /// A quote that is never closed.
    OpenQuote,
    And,
    Or,
    Not,
    OpenGroup,
    CloseGroup,
}

impl Item<'_> {
    /// Whether it is anything but a bare word.
    pub(super) fn is_syntax(&self) -> bool {
        !matches!(self, Self::Word { prefix: false, .. })
    }
}

/// The pieces of `text`, reading operators, quotes, parentheses and stars.
pub(super) fn items(text: &str) -> Vec<Item<'_>> {
    let mut items = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(is_blank);
        let Some(first) = rest.chars().next() else { return items };
        match first {
            '"' => {
                if let Some((item, after)) = quoted(&rest[1..]) {
                    items.push(item);
                    rest = after;
                } else {
                    items.push(Item::OpenQuote);
                    rest = &rest[1..];
                }
            }
            '(' => {
                items.push(Item::OpenGroup);
                rest = &rest[1..];
            }
            ')' => {
                items.push(Item::CloseGroup);
                rest = &rest[1..];
            }
            _ => {
                let end = rest
                    .find(|sign| is_blank(sign) || matches!(sign, '"' | '(' | ')'))
                    .unwrap_or(rest.len());
                items.push(word(&rest[..end]));
                rest = &rest[end..];
            }
        }
    }
}

/// The words of `text` when no sign in it means anything.
pub(super) fn literal_words(text: &str) -> Vec<&str> {
    text.split(|sign| is_blank(sign) || matches!(sign, '"' | '(' | ')' | '*'))
        .filter(|word| !word.is_empty())
        .collect()
}

/// Whether `text` is one unbroken run of a script without blanks: its query tokens are pairs closed by a single.
pub(super) fn is_dense_run(text: &str) -> bool {
    let tokens = tokenizer::positions(text, Purpose::Query);
    let overlapping = tokens.windows(2).all(|two| two[1].start < two[0].end);
    tokens.len() > 1 && overlapping
}

fn word(text: &str) -> Item<'_> {
    match text {
        "AND" => Item::And,
        "OR" => Item::Or,
        "NOT" => Item::Not,
        _ => match text.strip_suffix('*') {
            Some(stem) if !stem.is_empty() && !stem.ends_with('*') => Item::Word {
                text: stem,
                prefix: true,
            },
            _ => Item::Word { text, prefix: false },
        },
    }
}

/// A quoted phrase and what comes after it; a doubled quote inside stands for one. `None` without a closing quote.
fn quoted(after_quote: &str) -> Option<(Item<'_>, &str)> {
    let mut text = String::new();
    let mut rest = after_quote;
    loop {
        let at = rest.find('"')?;
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if !rest.starts_with('"') {
            break;
        }
        text.push('"');
        rest = &rest[1..];
    }
    let (prefix, rest) = rest.strip_prefix('*').map_or((false, rest), |after| (true, after));
    Some((Item::Quoted { text, prefix }, rest))
}

fn is_blank(sign: char) -> bool {
    sign.is_whitespace() || sign.is_control() || sign == '\u{3000}'
}
