//! A history of conversations to work on: generated from a seed, or read from a dump.
//!
//! Conversations are English, Chinese, mixed, or about code with its identifiers; some are runs of a schedule or of a
//! delegated agent, some continue an earlier one. The words are invented, with the frequencies that words have.

mod dump;
mod generate;
mod lexicon;
mod queries;
mod truth;

use anyhow::ensure;

use crate::arguments::History;

pub(crate) use lexicon::{Language, Lexicon};
pub(crate) use queries::{Class, Query, queries};
pub(crate) use truth::truth;

/// Who spoke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    User,
    Assistant,
    Tool,
}

/// Where a conversation comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Chat,
    Schedule,
    /// Never shown by search.
    Delegate,
    Import,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) role: Role,
    pub(crate) text: String,
    /// Of a tool's result.
    pub(crate) tool_name: Option<String>,
    pub(crate) calls: Vec<Call>,
}

/// A conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) source: Source,
    /// Place of the conversation that this one continues.
    pub(crate) parent: Option<usize>,
    pub(crate) messages: Vec<Message>,
}

/// A history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Corpus {
    pub(crate) sessions: Vec<Session>,
}

impl Corpus {
    /// What the arguments ask for.
    pub(crate) fn of(history: &History, seed: u64) -> anyhow::Result<Self> {
        let corpus = match &history.corpus {
            Some(file) => dump::read(file)?,
            None => generate::generate(seed, history.messages, history.session_count()),
        };
        ensure!(corpus.message_count() > 0, "the history has no messages");
        Ok(corpus)
    }

    /// Messages of all conversations.
    pub(crate) fn message_count(&self) -> usize {
        self.sessions.iter().map(|session| session.messages.len()).sum()
    }

    /// Bytes of all texts, arguments of calls included.
    pub(crate) fn text_bytes(&self) -> u64 {
        let messages = self.sessions.iter().flat_map(|session| &session.messages);
        messages.map(|message| message.searchable().len() as u64).sum()
    }

    /// For each conversation the first one of its line.
    pub(crate) fn roots(&self) -> Vec<usize> {
        let mut roots: Vec<usize> = Vec::with_capacity(self.sessions.len());
        for (place, session) in self.sessions.iter().enumerate() {
            let root = session.parent.and_then(|parent| roots.get(parent).copied());
            roots.push(root.unwrap_or(place));
        }
        roots
    }

    /// Messages that search may show, each with the place of its conversation.
    pub(crate) fn searchable(&self) -> impl Iterator<Item = (usize, &Message)> {
        let shown = self
            .sessions
            .iter()
            .enumerate()
            .filter(|(_, session)| session.source != Source::Delegate);
        shown.flat_map(|(place, session)| session.messages.iter().map(move |message| (place, message)))
    }
}

impl Message {
    /// All that can be searched for: the text, and names and arguments of calls.
    pub(crate) fn searchable(&self) -> String {
        let mut text = self.text.clone();
        for call in &self.calls {
            text.push('\n');
            text.push_str(&call.name);
            text.push(' ');
            text.push_str(&call.arguments);
        }
        text
    }
}

/// Words of a text as a person would tell them apart: runs of Latin letters and digits in lower case, and the parts of
/// those that are written in camel case.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for run in text.split(|character: char| !character.is_ascii_alphanumeric()) {
        if run.is_empty() {
            continue;
        }
        found.push(run.to_ascii_lowercase());
        let mut start = 0;
        let bytes = run.as_bytes();
        let borders =
            (1..bytes.len()).filter(|at| bytes[at - 1].is_ascii_lowercase() && bytes[*at].is_ascii_uppercase());
        for border in borders.collect::<Vec<_>>() {
            found.push(run[start..border].to_ascii_lowercase());
            start = border;
        }
        if start > 0 {
            found.push(run[start..].to_ascii_lowercase());
        }
    }
    found
}

/// Whether a character is Han.
pub(crate) fn is_han(character: char) -> bool {
    ('\u{3400}'..='\u{9fff}').contains(&character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_runs_and_the_parts_of_identifiers() {
        let found = words("Fix getUserId in src/user_store.rs，完成 E4021.");
        let expected = [
            "fix",
            "getuserid",
            "get",
            "user",
            "id",
            "in",
            "src",
            "user",
            "store",
            "rs",
            "e4021",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_line_of_conversations_has_one_root() {
        let session = |parent| Session {
            source: Source::Chat,
            parent,
            messages: Vec::new(),
        };
        let corpus = Corpus {
            sessions: vec![session(None), session(Some(0)), session(None), session(Some(1))],
        };
        assert_eq!(corpus.roots(), [0, 0, 2, 0]);
    }
}
