//! Sessions as JSON lines: the form in which recall-service hands them out and takes them in, and how histories of other
//! programs are put into it.
//!
//! Pure: no store, no transport, no file is opened here. What comes in is hostile; nothing of it panics, and one bad line or
//! row hides no other. Whether a session may be stored is the store's to say.
#![warn(missing_docs)]

pub mod claude_code;
mod draft;
pub mod hermes;
pub mod line;
pub mod split;

pub use line::{FORMAT, SessionLine};
pub use split::{LineSplitter, MAX_LINE};

/// What came of a foreign history.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Converted {
    /// Sessions, in the order of their first message.
    pub sessions: Vec<SessionLine>,
    /// What was left out, and why: a sentence each, with the line or row that it is about.
    pub problems: Vec<String>,
}
