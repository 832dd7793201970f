//! The neutral conversation: what is asked, by whom, and with which tools. Providers turn it into their own wire form.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// One question to a model. The system prompt and the tool list are the exact bytes stored with the session (`P-3`);
/// nothing between the store and the wire re-writes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelRequest {
    /// The provider's name for the model.
    pub model: String,
    /// The system prompt; empty for none.
    pub system: Arc<str>,
    /// A JSON array of `{name, description, input_schema}` as [`crate::canonical_tools`] writes it; empty or `[]` for none.
    pub tools_json: Arc<str>,
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
    /// Whether and what the model must call.
    pub tool_choice: ToolChoice,
    /// Upper bound of the answer in tokens; the provider's own default when absent.
    pub max_output_tokens: Option<u32>,
}

/// One message of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// From the person, or from Steward on the person's behalf.
    User {
        /// The sent text.
        content: String,
    },
    /// From the model.
    Assistant {
        /// Its text; may be empty when it only calls tools.
        content: String,
        /// The tools it calls, in its order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall>,
    },
    /// The result of one call.
    Tool {
        /// Id of the call that it answers.
        call_id: String,
        /// Name of the tool.
        name: String,
        /// The result's text.
        content: String,
    },
}

impl Message {
    /// A user message.
    pub fn user(content: impl Into<String>) -> Self {
        Self::User {
            content: content.into(),
        }
    }

    /// An assistant message without calls.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::Assistant {
            content: content.into(),
            tool_calls: Vec::new(),
        }
    }

    /// The text of the message, whoever said it.
    pub fn content(&self) -> &str {
        match self {
            Self::User { content } | Self::Assistant { content, .. } | Self::Tool { content, .. } => content,
        }
    }
}

/// A call of a tool by the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Unique in the conversation, never empty.
    pub id: String,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The arguments as the very text that was received: numbers and key order survive (`P-4`). It need not be JSON.
    pub arguments: String,
}

/// What the model is allowed or told to call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// No calls.
    None,
    /// At least one call.
    Required,
    /// This tool.
    Tool(String),
}
