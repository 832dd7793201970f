//! A request as it arrived: raw bytes for prefix checks, with a few readers for scripts.

use bytes::Bytes;
use serde_json::Value;

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

    /// The messages, the system message included.
    pub fn messages(&self) -> Vec<Value> {
        self.json()["messages"].as_array().cloned().unwrap_or_default()
    }

    /// The system prompt, empty when there is none.
    pub fn system(&self) -> String {
        let messages = self.messages();
        let system = messages.iter().find(|message| message["role"] == "system");
        system.map(content).unwrap_or_default()
    }

    /// Role and text of the last message.
    pub fn last_message(&self) -> (String, String) {
        let messages = self.messages();
        let last = messages.last().unwrap_or(&Value::Null);
        (last["role"].as_str().unwrap_or_default().to_owned(), content(last))
    }

    /// Names of the offered tools.
    pub fn tool_names(&self) -> Vec<String> {
        let body = self.json();
        let tools = body["tools"].as_array().cloned().unwrap_or_default();
        tools
            .iter()
            .filter_map(|tool| tool["function"]["name"].as_str().map(str::to_owned))
            .collect()
    }
}

fn content(message: &Value) -> String {
    message["content"].as_str().unwrap_or_default().to_owned()
}
