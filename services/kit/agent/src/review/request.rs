//! The request of a review, from the parent's stored parts and one trailing message (`R-3`).

use std::sync::Arc;

use steward_model::{Message, ToolChoice};

use crate::digest::{KEPT_MESSAGES, fold};
use crate::kernel::{Budget, Conversation, Settings};

use super::data::{CorrectionLine, MemoryLine, SkillLine, render};
use super::hide::{hide, needs_hiding};
use super::rubric::{Kinds, Rubric, rubric};
use super::spans::{ReviewMessage, SpanTable};

/// Most tokens of one request of a review (`R-5`).
const REQUEST_TOKENS: u64 = 600_000;

/// What a review is built from.
#[derive(Debug, Clone)]
pub struct ReviewInput<'a> {
    /// What it is about.
    pub kinds: Kinds,
    /// The parent's model.
    pub parent_model: &'a str,
    /// The parent's stored system prompt.
    pub system: Arc<str>,
    /// The parent's stored tool list.
    pub tools_json: Arc<str>,
    /// The parent's messages up to the review's upper message.
    pub messages: &'a [ReviewMessage],
    /// Present memory entries.
    pub memory: &'a [MemoryLine],
    /// Corrections of this conversation that wait.
    pub corrections: &'a [CorrectionLine],
    /// Present skills.
    pub skills: &'a [SkillLine],
    /// Which model reviews.
    pub model: ReviewModel<'a>,
    /// Bound of one answer; the parent's, so that the request differs in nothing but its end.
    pub max_output_tokens: Option<u32>,
}

/// Which model reviews.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewModel<'a> {
    /// The parent's: its cache is used.
    Parent,
    /// Another one, configured for reviews: it gets a digest.
    Other(&'a str),
}

/// How the conversation is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewMode {
    /// As it was, byte for byte.
    Replay,
    /// With what came from outside hidden.
    Redacted,
    /// Shortened, for another model.
    Digest,
}

/// A review, ready to run.
#[derive(Debug, Clone)]
pub struct ReviewRequest {
    /// How the conversation is shown.
    pub mode: ReviewMode,
    /// Whether anything was hidden, whatever the mode: writes of such a review only become proposals (`L-6`).
    pub hidden: bool,
    /// The fixed text that was used.
    pub rubric: Rubric,
    /// The spans that may be cited.
    pub spans: SpanTable,
    /// What to run the kernel with; keys of calls begin with the prefix that was given.
    pub conversation: Conversation,
}

/// Builds the review. The same input gives the same bytes.
pub fn build(input: &ReviewInput<'_>, key_prefix: &str) -> ReviewRequest {
    let hidden = needs_hiding(input.messages);
    let (mut messages, spans): (Vec<Message>, SpanTable) = if hidden {
        hide(input.messages)
    } else {
        let shown = input.messages.iter().map(|message| message.sent.clone()).collect();
        (shown, SpanTable::of_shown(input.messages))
    };
    let (mode, model, system) = match input.model {
        ReviewModel::Parent if hidden => (ReviewMode::Redacted, input.parent_model, Arc::clone(&input.system)),
        ReviewModel::Parent => (ReviewMode::Replay, input.parent_model, Arc::clone(&input.system)),
        ReviewModel::Other(model) => (ReviewMode::Digest, model, Arc::from("")),
    };
    if mode == ReviewMode::Digest {
        messages = fold(&messages, KEPT_MESSAGES);
    }
    let rubric = rubric(input.kinds);
    let data = render(input.kinds, &spans, input.memory, input.corrections, input.skills);
    let turn_start = messages.len();
    messages.push(Message::User {
        content: format!("{}\n\n{data}", rubric.text),
    });
    let conversation = Conversation {
        model: model.to_owned(),
        system,
        tools_json: Arc::clone(&input.tools_json),
        messages,
        turn_start,
        key_prefix: key_prefix.to_owned(),
        known_results: Vec::new(),
        tool_choice: ToolChoice::Auto,
        max_output_tokens: input.max_output_tokens,
    };
    ReviewRequest {
        mode,
        hidden,
        rubric,
        spans,
        conversation,
    }
}

/// The limits of a review: 16 iterations, `min(600,000, 75 % of the window)` tokens a request (`R-5`), and an end after a
/// few refused calls.
pub fn review_settings(window_tokens: u64) -> Settings {
    let request_tokens = Some(REQUEST_TOKENS.min(window_tokens.saturating_mul(3) / 4));
    let budget = Budget {
        iterations: 16,
        request_tokens,
        total_tokens: None,
    };
    Settings {
        budget,
        denials: Some(5),
        ..Settings::default()
    }
}
