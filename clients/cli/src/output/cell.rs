//! What stands in a table: text, and what it means. How that looks is decided in one place.

use anstyle::{AnsiColor, Style};
use comfy_table::{Attribute, Color};

/// What a piece of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// Nothing special.
    #[default]
    Plain,
    /// The name of a thing.
    Name,
    /// Said on the side.
    Side,
    /// As it should be.
    Good,
    /// Needs attention, or waits for something.
    Notice,
    /// Went wrong.
    Bad,
}

impl Tone {
    /// For text outside of tables.
    pub const fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Name => AnsiColor::Cyan.on_default(),
            Self::Side => Style::new().dimmed(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Notice => AnsiColor::Yellow.on_default(),
            Self::Bad => AnsiColor::Red.on_default(),
        }
    }

    /// What the word for a state of something means.
    pub fn of_state(word: &str) -> Self {
        match word {
            "succeeded" | "active" | "approved" | "applied" | "serving" | "ok" | "delivered" | "created"
            | "updated" | "installed" | "conforms" => Self::Good,
            "failed" | "dead" | "denied" | "rejected" | "refused" | "broken" | "PROBLEM" | "unreachable"
            | "blocked" | "revoked" | "disabled" | "dangerous" | "harmful" | "incomplete" => Self::Bad,
            "queued" | "running" | "pending" | "open" | "stale" | "paused" | "proposed" | "conflict"
            | "not serving" | "caution" | "waiting" | "staged" | "canary" => Self::Notice,
            "archived" | "cancelled" | "absorbed" | "unchanged" | "hidden" | "expired" => Self::Side,
            _ => Self::Plain,
        }
    }
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cell {
    /// Its text, as it is stored: it may hold anything.
    pub text: String,
    /// What it is.
    pub tone: Tone,
}

impl Cell {
    /// The name of a thing.
    pub fn name(text: impl Into<String>) -> Self {
        Self::toned(text, Tone::Name)
    }

    /// Said on the side.
    pub fn side(text: impl Into<String>) -> Self {
        Self::toned(text, Tone::Side)
    }

    /// The word for a state.
    pub fn state(word: impl Into<String>) -> Self {
        let text = word.into();
        let tone = Tone::of_state(&text);
        Self { text, tone }
    }

    /// Any tone.
    pub fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self {
            text: text.into(),
            tone,
        }
    }

    pub(super) fn drawn(&self, text: &str) -> comfy_table::Cell {
        let cell = comfy_table::Cell::new(text);
        match self.tone {
            Tone::Plain => cell,
            Tone::Name => cell.fg(Color::DarkCyan),
            Tone::Side => cell.add_attribute(Attribute::Dim),
            Tone::Good => cell.fg(Color::DarkGreen),
            Tone::Notice => cell.fg(Color::DarkYellow),
            Tone::Bad => cell.fg(Color::DarkRed),
        }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::toned(text, Tone::Plain)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::toned(text, Tone::Plain)
    }
}

impl From<&String> for Cell {
    fn from(text: &String) -> Self {
        Self::toned(text.as_str(), Tone::Plain)
    }
}
