//! Reads the pieces of a query as an expression, if they form one.
//!
//! `or := and ("OR" and)*`, `and := not (("AND")? not)*`, `not := leaf ("NOT" leaf)*`, `leaf := word | quoted | "(" or ")"`.
//! Leaves in which nothing can be searched for are dropped, as if they had not been typed.

use super::lex::Item;
use super::{Expr, MAX_TERMS, Term};

/// Deeper nesting is not a query that a person typed.
const MAX_DEPTH: usize = 12;

/// The expression, or `None` where the pieces do not form one or nothing in them can be searched for.
pub(super) fn well_formed(items: &[Item<'_>]) -> Option<Expr> {
    let mut reader = Reader { items, at: 0, terms: 0 };
    let expr = reader.any(0).ok()?;
    (reader.at == items.len()).then_some(expr).flatten()
}

/// All of `members`: the member itself if there is one, `None` if there is none.
pub(super) fn all_of(members: Vec<Expr>) -> Option<Expr> {
    list_of(members, Expr::All)
}

/// Any of `members`: the member itself if there is one, `None` if there is none.
pub(super) fn any_of(members: Vec<Expr>) -> Option<Expr> {
    list_of(members, Expr::Any)
}

fn list_of(mut members: Vec<Expr>, list: fn(Vec<Expr>) -> Expr) -> Option<Expr> {
    if members.len() > 1 {
        Some(list(members))
    } else {
        members.pop()
    }
}

/// The pieces do not form an expression.
struct Malformed;

type Read = Result<Option<Expr>, Malformed>;

struct Reader<'a> {
    items: &'a [Item<'a>],
    at: usize,
    terms: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<&'a Item<'a>> {
        self.items.get(self.at)
    }

    fn take_if(&mut self, wanted: &Item<'_>) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += 1;
        }
        found
    }

    fn any(&mut self, depth: usize) -> Read {
        let mut members: Vec<Expr> = self.all(depth)?.into_iter().collect();
        while self.take_if(&Item::Or) {
            members.extend(self.all(depth)?);
        }
        Ok(any_of(members))
    }

    fn all(&mut self, depth: usize) -> Read {
        let mut members: Vec<Expr> = self.without(depth)?.into_iter().collect();
        loop {
            let explicit = self.take_if(&Item::And);
            let continues = matches!(
                self.peek(),
                Some(Item::Word { .. } | Item::Quoted { .. } | Item::OpenGroup)
            );
            if !explicit && !continues {
                return Ok(all_of(members));
            }
            members.extend(self.without(depth)?);
        }
    }

    fn without(&mut self, depth: usize) -> Read {
        let mut wanted = self.leaf(depth)?;
        while self.take_if(&Item::Not) {
            let unwanted = self.leaf(depth)?;
            wanted = match (wanted, unwanted) {
                (Some(wanted), Some(unwanted)) => Some(Expr::Without(Box::new(wanted), Box::new(unwanted))),
                (wanted, _) => wanted,
            };
        }
        Ok(wanted)
    }

    fn leaf(&mut self, depth: usize) -> Read {
        let item = self.peek().ok_or(Malformed)?;
        self.at += 1;
        let term = match item {
            Item::Word { text, prefix } => Term::new(text, *prefix, false),
            Item::Quoted { text, prefix } => Term::new(text, *prefix, true),
            Item::OpenGroup if depth < MAX_DEPTH => {
                let inner = self.any(depth + 1)?;
                return if self.take_if(&Item::CloseGroup) {
                    Ok(inner)
                } else {
                    Err(Malformed)
                };
            }
            Item::OpenGroup | Item::CloseGroup | Item::OpenQuote | Item::And | Item::Or | Item::Not => {
                return Err(Malformed);
            }
        };
        self.terms += usize::from(term.is_some());
        if self.terms > MAX_TERMS {
            Ok(None)
        } else {
            Ok(term.map(Expr::Term))
        }
    }
}
