//! Where words come from. Every message is cut into spans, and each span keeps its origin and integrity for ever, so
//! that a review can tell a person's wish from a web page that imitates one (`L-6`, `R-3`).

use serde::{Deserialize, Serialize};

/// How far a span may be trusted to speak for the people Steward works for. Higher is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Integrity {
    /// 0: from outside: web pages, mail, fetched repositories.
    External,
    /// 1: a tool about which nothing is known.
    UnknownTool,
    /// 2: the output of a tool on the person's own workspace.
    Workspace,
    /// 3: an authenticated person.
    Person,
    /// 4: the operator of the installation.
    Operator,
}

impl Integrity {
    /// The number by which the rules and the wire call it.
    pub const fn level(self) -> u8 {
        match self {
            Self::External => 0,
            Self::UnknownTool => 1,
            Self::Workspace => 2,
            Self::Person => 3,
            Self::Operator => 4,
        }
    }

    /// From its number; `None` above 4.
    pub const fn from_level(level: u8) -> Option<Self> {
        match level {
            0 => Some(Self::External),
            1 => Some(Self::UnknownTool),
            2 => Some(Self::Workspace),
            3 => Some(Self::Person),
            4 => Some(Self::Operator),
            _ => None,
        }
    }
}

/// Who or what produced the words of a span.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "name")]
pub enum SpanOrigin {
    /// A person typed it; the user id.
    User(String),
    /// The model said it.
    Assistant,
    /// A tool returned it; the tool's name.
    Tool(String),
    /// It came from outside through a tool; the source, for example a URL.
    External(String),
    /// The operator or Steward itself wrote it.
    System,
}

/// A stretch of one message's said text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// First byte in the said text, on a character boundary.
    pub start: u32,
    /// One past the last byte, on a character boundary.
    pub end: u32,
    /// Where the words come from.
    pub origin: SpanOrigin,
    /// How far they may be trusted.
    pub integrity: Integrity,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_round_trip_and_order() {
        for level in 0..=4 {
            assert_eq!(Integrity::from_level(level).map(Integrity::level), Some(level));
        }
        assert_eq!(Integrity::from_level(5), None);
        assert!(Integrity::External < Integrity::Workspace && Integrity::Workspace < Integrity::Person);
    }
}
