//! A session as it is put together from a foreign history: numbers, turns, labels, and how far words may be trusted.

use std::collections::BTreeMap;

use steward_base::Integrity;
use steward_base::hash::sha256_parts;

use crate::line::{CallPart, FORMAT, MessagePart, ResultPart, SessionLine, UsagePart};

/// Longest title in characters.
const MAX_TITLE: usize = 200;

/// The id of a foreign session for one person: the same whenever it is imported, and another one for everybody else.
pub(crate) fn session_id(owner: &str, program: &str, id: &str) -> String {
    let mut digest = sha256_parts([owner.as_bytes(), program.as_bytes(), id.as_bytes()]);
    digest.truncate(32);
    digest
}

/// A session that grows.
#[derive(Debug)]
pub(crate) struct Draft {
    line: SessionLine,
    tool_names: BTreeMap<String, String>,
    turns: u64,
}

impl Draft {
    pub(crate) fn new(id: String) -> Self {
        Self {
            line: SessionLine {
                format: FORMAT.to_owned(),
                root: id.clone(),
                id,
                source: "import".to_owned(),
                parent: None,
                tools_json: "[]".to_owned(),
                lowest_integrity: Integrity::Operator,
                revision: 1,
                ..SessionLine::empty()
            },
            tool_names: BTreeMap::new(),
            turns: 0,
        }
    }

    pub(crate) fn line(&mut self) -> &mut SessionLine {
        &mut self.line
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.line.messages.is_empty()
    }

    /// Sets the title, on one line and no longer than titles are.
    pub(crate) fn title(&mut self, title: &str) {
        let words: Vec<&str> = title.split_whitespace().collect();
        let text: String = words.join(" ").chars().filter(|char| !char.is_control()).collect();
        self.line.title = text.chars().take(MAX_TITLE).collect();
    }

    /// What the person said; begins a turn.
    pub(crate) fn user(&mut self, text: String, at: i64) {
        self.turns += 1;
        self.line.counters.user_turns = self.line.counters.user_turns.saturating_add(1);
        self.push("user", text, Integrity::Person, at);
    }

    /// What the model said and called.
    pub(crate) fn assistant(
        &mut self,
        text: String,
        calls: Vec<CallPart>,
        model: &str,
        usage: Option<UsagePart>,
        at: i64,
    ) {
        for call in &calls {
            self.tool_names.insert(call.id.clone(), call.name.clone());
        }
        let lowest = self.line.lowest_integrity.min(Integrity::Person);
        self.push("assistant", text, lowest, at);
        if let Some(message) = self.line.messages.last_mut() {
            message.tool_calls = calls;
            message.usage = usage;
            model.clone_into(&mut message.model);
        }
        if let Some(usage) = usage {
            self.line.usage = sum(self.line.usage, usage);
        }
    }

    /// What a tool returned. Nothing is known about the tool.
    pub(crate) fn tool(&mut self, call_id: String, name: Option<String>, is_error: bool, text: String, at: i64) {
        let known = self.tool_names.get(&call_id).cloned();
        let tool_name = name.filter(|name| !name.is_empty()).or(known).unwrap_or_default();
        self.push("tool", text, Integrity::UnknownTool, at);
        if let Some(message) = self.line.messages.last_mut() {
            message.result = Some(ResultPart {
                call_id,
                tool_name,
                is_error,
            });
        }
    }

    /// The last message, for marks.
    pub(crate) fn last(&mut self) -> Option<&mut MessagePart> {
        self.line.messages.last_mut()
    }

    /// The calls of the last message, if it is the model's.
    pub(crate) fn open_message(&mut self) -> Option<&mut MessagePart> {
        self.line
            .messages
            .last_mut()
            .filter(|message| message.role == "assistant")
    }

    /// Remembers a call that was added to a message after it was pushed.
    pub(crate) fn name_call(&mut self, call: &CallPart) {
        self.tool_names.insert(call.id.clone(), call.name.clone());
    }

    fn push(&mut self, role: &str, text: String, integrity: Integrity, at: i64) {
        let line = &mut self.line;
        if line.messages.is_empty() && line.created == 0 {
            line.created = at;
        }
        line.lowest_integrity = line.lowest_integrity.min(integrity);
        line.last_active = line.last_active.max(at);
        line.messages.push(MessagePart {
            seq: line.messages.len() as u64 + 1,
            role: role.to_owned(),
            text,
            sent_text: None,
            tool_calls: Vec::new(),
            result: None,
            spans: Vec::new(),
            usage: None,
            turn: format!("import-{}", self.turns.max(1)),
            native: None,
            model: line.model.clone(),
            integrity,
            rewound: false,
            compacted: false,
            replaces: None,
            created: at,
        });
    }

    /// The session, if anything was said in it.
    pub(crate) fn finish(mut self) -> Option<SessionLine> {
        if self.is_empty() {
            return None;
        }
        if self.line.created == 0 {
            self.line.created = self.line.last_active;
        }
        Some(self.line)
    }
}

fn sum(one: UsagePart, two: UsagePart) -> UsagePart {
    let sum = |one: Option<u64>, two: Option<u64>| match (one, two) {
        (None, None) => None,
        (one, two) => Some(one.unwrap_or(0).saturating_add(two.unwrap_or(0))),
    };
    UsagePart {
        input: sum(one.input, two.input),
        cached_input: sum(one.cached_input, two.cached_input),
        cache_write: sum(one.cache_write, two.cache_write),
        output: sum(one.output, two.output),
    }
}
