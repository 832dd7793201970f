//! A request as it arrived: raw bytes for prefix checks, with a few readers for scripts.

use bytes::Bytes;
use serde_json::Value;

use super::reply::Protocol;

/// One received request.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    /// Position among all requests of the server, from 0.
    pub index: usize,
    /// `POST`, `GET`, ...
    pub method: String,
    /// Path with query.
    pub path: String,
    /// Header names in lower case, in the order of arrival.
    pub headers: Vec<(String, String)>,
    /// The body, byte for byte.
    pub body: Bytes,
}

impl RecordedRequest {
    /// The first header of this name; any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The body as JSON, `null` when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// The body as text, with replacement characters where it is not UTF-8.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Whether a streamed answer is asked for.
    pub fn wants_stream(&self) -> bool {
        self.json()["stream"].as_bool().unwrap_or(false)
    }

    /// Which protocol the client speaks.
    pub(super) fn protocol(&self) -> Protocol {
        let path = self.path.split('?').next().unwrap_or_default();
        if path.ends_with("/messages") {
            Protocol::Messages
        } else {
            Protocol::ChatCompletions
        }
    }

    /// The messages as they were sent; with chat completions the system message is one of them.
    pub fn messages(&self) -> Vec<Value> {
        self.json()["messages"].as_array().cloned().unwrap_or_default()
    }

    /// The system prompt, empty when there is none.
    pub fn system(&self) -> String {
        let messages = self.messages();
        let system = messages.iter().find(|message| message["role"] == "system");
        system.map_or_else(
            || text_of(&self.json()["system"]),
            |message| text_of(&message["content"]),
        )
    }

    /// Role and text of the last message.
    pub fn last_message(&self) -> (String, String) {
        let messages = self.messages();
        let last = messages.last().unwrap_or(&Value::Null);
        (
            last["role"].as_str().unwrap_or_default().to_owned(),
            text_of(&last["content"]),
        )
    }

    /// Names of the offered tools.
    pub fn tool_names(&self) -> Vec<String> {
        let body = self.json();
        let tools = body["tools"].as_array().cloned().unwrap_or_default();
        let name = |tool: &Value| {
            let name = tool["function"]["name"].as_str().or_else(|| tool["name"].as_str());
            name.map(str::to_owned)
        };
        tools.iter().filter_map(name).collect()
    }

    /// All tool results of the conversation: call id and text, in the order in which they were sent.
    pub fn tool_results(&self) -> Vec<(String, String)> {
        let (mut results, messages) = (Vec::new(), self.messages());
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        for message in &messages {
            if message["role"] == "tool" {
                results.push((text(&message["tool_call_id"]), text_of(&message["content"])));
            }
            for block in message["content"].as_array().into_iter().flatten() {
                if block["type"] == "tool_result" {
                    results.push((text(&block["tool_use_id"]), text_of(&block["content"])));
                }
            }
        }
        results
    }
}

/// The text of a content that is a string or a list of blocks.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks
            .iter()
            .map(|block| {
                block["text"]
                    .as_str()
                    .map_or_else(|| text_of(&block["content"]), str::to_owned)
            })
            .collect(),
        _ => String::new(),
    }
}
