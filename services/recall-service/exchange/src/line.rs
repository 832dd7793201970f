//! One session on one line. Every field is written, also an empty one; a field that is missing has its empty value, and one
//! that is not known is an error, since it would be lost.

use serde::{Deserialize, Serialize};
use steward_base::{Integrity, Span};

/// Version of the format; the first field of each line.
pub const FORMAT: &str = "steward-session/1";

/// A session with everything that belongs to it. Times are microseconds since the Unix epoch, UTC.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionLine {
    /// [`FORMAT`].
    pub format: String,
    /// Id in the team.
    pub id: String,
    /// `chat`, `schedule` or `import`.
    pub source: String,
    /// Title; may be empty.
    #[serde(default)]
    pub title: String,
    /// Id of the parent.
    #[serde(default)]
    pub parent: Option<String>,
    /// `reset`, `compression`, `delegation` or `branch`; with a parent only.
    #[serde(default)]
    pub lineage_reason: Option<String>,
    /// Id of the first session of the conversation; empty: itself.
    #[serde(default)]
    pub root: String,
    /// Project; may be empty.
    #[serde(default)]
    pub project: String,
    /// Model that requests name.
    #[serde(default)]
    pub model: String,
    /// Exact system prompt.
    #[serde(default)]
    pub system_prompt: String,
    /// Bytes of its stable tier.
    #[serde(default)]
    pub stable_prompt_bytes: u32,
    /// Exact tool list.
    #[serde(default)]
    pub tools_json: String,
    /// Tools that run at the client.
    #[serde(default)]
    pub client_tools: Vec<ClientToolPart>,
    /// What the prompt was assembled from, in hexadecimal digits.
    #[serde(default)]
    pub setup: String,
    /// Whether its turns never make a review due.
    #[serde(default)]
    pub skip_review: bool,
    /// Whether it has no external memory provider.
    #[serde(default)]
    pub skip_memory: bool,
    /// Counters of the nudges.
    #[serde(default)]
    pub counters: CountersPart,
    /// State of the request prefix.
    #[serde(default)]
    pub prefix: PrefixPart,
    /// Tokens of all turns.
    #[serde(default)]
    pub usage: UsagePart,
    /// Calls that wait for the client.
    #[serde(default)]
    pub open_calls: Vec<OpenCallPart>,
    /// Turn that runs or waits.
    #[serde(default)]
    pub open_turn: Option<String>,
    /// Learned artefacts that it was shown.
    #[serde(default)]
    pub exposures: Vec<ExposurePart>,
    /// The lowest integrity that ever stood in its context.
    pub lowest_integrity: Integrity,
    /// When it was created.
    pub created: i64,
    /// When a message was last appended.
    pub last_active: i64,
    /// How often it was changed.
    #[serde(default)]
    pub revision: u64,
    /// Its turns.
    #[serde(default)]
    pub turns: Vec<TurnPart>,
    /// Its messages, in order. The last field, so that a line can be written as the messages are read.
    #[serde(default)]
    pub messages: Vec<MessagePart>,
}

/// A tool that runs at the client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientToolPart {
    /// Name.
    pub name: String,
    /// Integrity of its output.
    pub integrity: Integrity,
}

/// Counters of the nudges.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CountersPart {
    /// User turns since memory was used or reviewed.
    pub turns_since_memory: u32,
    /// Model calls since skills were managed or reviewed.
    pub iterations_since_skill: u32,
    /// User turns.
    pub user_turns: u32,
}

/// State of the request prefix.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PrefixPart {
    /// SHA-256 of the tools segment.
    pub tools_sha256: String,
    /// SHA-256 of the system segment.
    pub system_sha256: String,
    /// Length of the messages segment.
    pub messages_bytes: u64,
    /// SHA-256 of the messages segment.
    pub messages_sha256: String,
    /// Breaks with a reason.
    pub planned_breaks: u32,
    /// Breaks without one.
    pub unplanned_breaks: u32,
    /// Requests.
    pub requests: u32,
    /// Reason of the last planned break.
    pub last_break_reason: String,
}

/// Tokens as they were reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UsagePart {
    /// All input tokens.
    pub input: Option<u64>,
    /// Of those, read from a cache.
    pub cached_input: Option<u64>,
    /// Of those, written to a cache.
    pub cache_write: Option<u64>,
    /// Output tokens.
    pub output: Option<u64>,
}

/// A call of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallPart {
    /// Id by which the result names it.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Arguments as received.
    #[serde(default)]
    pub arguments_json: String,
    /// What was sent back in their place.
    #[serde(default)]
    pub sent_arguments_json: Option<String>,
}

/// A call that waits for the client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenCallPart {
    /// The call.
    pub call: CallPart,
    /// Turn that waits.
    pub turn: String,
    /// When it expires.
    pub expires: i64,
}

/// A learned artefact that was shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExposurePart {
    /// Resource name of the artefact.
    pub artifact: String,
    /// Revision.
    pub revision: String,
    /// How it was shown.
    pub stage: String,
    /// Unit of an experiment; may be empty.
    #[serde(default)]
    pub assignment_unit: String,
    /// Arm of an experiment; may be empty.
    #[serde(default)]
    pub arm: String,
    /// Probability of the arm.
    #[serde(default)]
    pub propensity: Option<f64>,
}

/// A turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnPart {
    /// Id.
    pub id: String,
    /// `running`, `requires_action`, `completed`, `failed`, `interrupted` or `expired`.
    pub state: String,
    /// Number of its first message.
    pub first_seq: u64,
    /// Number of its last message.
    pub last_seq: u64,
    /// Model calls.
    pub iterations: u32,
    /// Segments.
    pub segments: u32,
    /// Reason of a failed turn.
    #[serde(default)]
    pub error_reason: String,
    /// Message of a failed turn.
    #[serde(default)]
    pub error_message: String,
    /// When it began.
    pub created: i64,
    /// When it ended.
    #[serde(default)]
    pub ended: Option<i64>,
}

/// The call that a tool message answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResultPart {
    /// Id of the call.
    pub call_id: String,
    /// Name of the tool.
    #[serde(default)]
    pub tool_name: String,
    /// Whether it failed.
    #[serde(default)]
    pub is_error: bool,
}

/// A provider's own form of an assistant message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NativePart {
    /// Vendor.
    pub provider: String,
    /// Model.
    #[serde(default)]
    pub model: String,
    /// The blocks, as text.
    pub blocks_json: String,
}

/// What a summary stands for: the first and the last place in the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RangePart {
    /// First, inclusive.
    pub from: u64,
    /// Last, inclusive.
    pub to: u64,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessagePart {
    /// Number, gapless from 1.
    pub seq: u64,
    /// `user`, `assistant` or `tool`.
    pub role: String,
    /// What was said.
    #[serde(default)]
    pub text: String,
    /// What was sent in its place.
    #[serde(default)]
    pub sent_text: Option<String>,
    /// Calls.
    #[serde(default)]
    pub tool_calls: Vec<CallPart>,
    /// The call that it answers.
    #[serde(default)]
    pub result: Option<ResultPart>,
    /// Where the words come from.
    #[serde(default)]
    pub spans: Vec<Span>,
    /// Tokens of its model call.
    #[serde(default)]
    pub usage: Option<UsagePart>,
    /// Turn that it belongs to.
    #[serde(default)]
    pub turn: String,
    /// Its provider's form.
    #[serde(default)]
    pub native: Option<NativePart>,
    /// Model of the session by then.
    #[serde(default)]
    pub model: String,
    /// How far its words may be trusted.
    pub integrity: Integrity,
    /// Undone by the person.
    #[serde(default)]
    pub rewound: bool,
    /// Out of the context by compression.
    #[serde(default)]
    pub compacted: bool,
    /// What it stands for.
    #[serde(default)]
    pub replaces: Option<RangePart>,
    /// When it was appended.
    pub created: i64,
}

impl SessionLine {
    /// One in which nothing is said about anything.
    pub fn empty() -> Self {
        Self {
            format: FORMAT.to_owned(),
            id: String::new(),
            source: String::new(),
            title: String::new(),
            parent: None,
            lineage_reason: None,
            root: String::new(),
            project: String::new(),
            model: String::new(),
            system_prompt: String::new(),
            stable_prompt_bytes: 0,
            tools_json: String::new(),
            client_tools: Vec::new(),
            setup: String::new(),
            skip_review: false,
            skip_memory: false,
            counters: CountersPart::default(),
            prefix: PrefixPart::default(),
            usage: UsagePart::default(),
            open_calls: Vec::new(),
            open_turn: None,
            exposures: Vec::new(),
            lowest_integrity: Integrity::Operator,
            created: 0,
            last_active: 0,
            revision: 0,
            turns: Vec::new(),
            messages: Vec::new(),
        }
    }

    /// Reads a line. Says what is wrong with it, without what it holds.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        let session: Self = serde_json::from_slice(line).map_err(|error| said_shortly(&error))?;
        if session.format != FORMAT {
            return Err(format!("format must be {FORMAT}"));
        }
        Ok(session)
    }

    /// Writes it as a line, without its end.
    pub fn write(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }
}

/// Without positions on a line that may be megabytes long, and short.
fn said_shortly(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or(&text);
    let place = error.column();
    let text: String = text.chars().take(200).collect();
    format!("{text} (at byte {place})")
}
