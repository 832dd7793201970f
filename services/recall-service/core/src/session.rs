//! A session: one conversation of one user with the agent, with everything about it that must survive a process.

use serde::{Deserialize, Serialize};
use steward_base::names::{SessionId, TeamId, UserId, session_name};
use steward_base::{FieldViolations, Integrity, Timestamp};

use crate::lease::Lease;
use crate::message::ToolCall;
use crate::turn::ExpiredTurn;

/// Declares an enum whose values have one name each, on the wire of the store and in logs.
macro_rules! named_enum {
    ($(#[$docs:meta])* $name:ident { $($(#[$value_docs:meta])* $value:ident = $text:literal,)+ }) => {
        $(#[$docs])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$value_docs])* $value,)+
        }

        impl $name {
            /// Every value.
            pub const ALL: &[Self] = &[$(Self::$value),+];

            /// The name in stores and logs.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $text,)+
                }
            }

            /// From its name.
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str() == text)
            }
        }
    };
}
pub(crate) use named_enum;

named_enum! {
    /// Where a session comes from.
    SessionSource {
        /// A person talks to the agent.
        Chat = "chat",
        /// A schedule ran it; sinks below all others in search (`Q-4`).
        Schedule = "schedule",
        /// A delegated sub-agent; never shown in search.
        Delegate = "delegate",
        /// A review; never shown in search.
        Review = "review",
        /// A curation; never shown in search.
        Curation = "curation",
        /// Imported history.
        Import = "import",
    }
}

impl SessionSource {
    /// Whether search and lists leave it out unless asked.
    pub const fn is_hidden(self) -> bool {
        matches!(self, Self::Delegate | Self::Review | Self::Curation)
    }

    /// Whether search puts it after all others.
    pub const fn is_demoted(self) -> bool {
        matches!(self, Self::Schedule)
    }

    /// The sources that search may show.
    pub fn visible() -> Vec<Self> {
        Self::ALL.iter().copied().filter(|source| !source.is_hidden()).collect()
    }
}

named_enum! {
    /// Why a session has a parent.
    LineageReason {
        /// A new conversation after a reset.
        Reset = "reset",
        /// Continues a compressed one.
        Compression = "compression",
        /// A sub-agent of the parent.
        Delegation = "delegation",
        /// A branch from a point of the parent.
        Branch = "branch",
    }
}

impl LineageReason {
    /// Whether the session belongs to the conversation of its parent, so that search shows one of the two. After a reset
    /// another conversation begins.
    pub const fn continues(self) -> bool {
        match self {
            Self::Reset => false,
            Self::Compression | Self::Delegation | Self::Branch => true,
        }
    }
}

/// The parent of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lineage {
    /// Parent session, in the same team.
    pub parent: SessionId,
    /// Why there is one.
    pub reason: LineageReason,
}

/// What every request of a session repeats byte for byte (`P-3`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frozen {
    /// Model that every request names.
    pub model: String,
    /// Exact bytes of the system prompt.
    pub system_prompt: String,
    /// Exact bytes of the tool list.
    pub tools_json: String,
    /// Which of the tools run at the client.
    pub client_tools: Vec<ClientTool>,
    /// Bytes of the system prompt that form its stable tier, after which a provider may cache; 0 where it is not known.
    pub stable_prompt_bytes: u32,
    /// What the prompt was assembled from, for when it is assembled anew. Opaque here.
    pub setup: Vec<u8>,
}

/// Largest system prompt or tool list, in bytes.
pub const MAX_FROZEN: usize = 4 * 1024 * 1024;
/// Largest setup, in bytes.
pub const MAX_SETUP: usize = 1024 * 1024;

impl Frozen {
    /// Records what is wrong with it, as fields of `session`.
    pub fn check(&self, violations: &mut FieldViolations) {
        for (field, size, limit) in [
            ("session.system_prompt", self.system_prompt.len(), MAX_FROZEN),
            ("session.tools_json", self.tools_json.len(), MAX_FROZEN),
            ("session.setup", self.setup.len(), MAX_SETUP),
        ] {
            if size > limit {
                violations.add(field, format!("must have at most {limit} bytes"));
            }
        }
        let stable = usize::try_from(self.stable_prompt_bytes).unwrap_or(usize::MAX);
        // Past the end is no boundary either.
        if !self.system_prompt.is_char_boundary(stable) {
            violations.add(
                "session.stable_prompt_bytes",
                "must lie in the system prompt, on a character boundary",
            );
        }
        for (index, tool) in self.client_tools.iter().enumerate() {
            if tool.name.is_empty() {
                violations.add(format!("session.client_tools[{index}].name"), "must not be empty");
            }
            if tool.integrity > Integrity::Workspace {
                violations.add(
                    format!("session.client_tools[{index}].integrity"),
                    "the output of a tool is at most workspace material",
                );
            }
        }
    }
}

/// A tool that runs at the client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientTool {
    /// Name of the tool.
    pub name: String,
    /// Integrity of its output where the client does not say less.
    pub integrity: Integrity,
}

/// Counters of the nudges (`T-3`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// User turns since the memory tool was used or a memory review became due.
    pub turns_since_memory: u32,
    /// Model calls since `skill_manage` was used or a skill review became due.
    pub iterations_since_skill: u32,
    /// User turns of the session.
    pub user_turns: u32,
}

/// The segments of the last request, and how often one did not extend the one before (`P-4`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrefixState {
    /// SHA-256 of the tools segment, hexadecimal; empty before the first request, and after a planned break until the next.
    pub tools_sha256: String,
    /// SHA-256 of the system segment.
    pub system_sha256: String,
    /// Length of the messages segment in bytes, without its closing bracket.
    pub messages_bytes: u64,
    /// SHA-256 of the messages segment, without its closing bracket.
    pub messages_sha256: String,
    /// Breaks with a recorded reason.
    pub planned_breaks: u32,
    /// Breaks without one.
    pub unplanned_breaks: u32,
    /// Requests so far.
    pub requests: u32,
    /// Reason of the last planned break; empty without one.
    pub last_break_reason: String,
}

impl PrefixState {
    /// After a break that had a reason: the next request is compared with none before it.
    #[must_use]
    pub fn begun_anew(self, reason: &str) -> Self {
        Self {
            planned_breaks: self.planned_breaks.saturating_add(1),
            unplanned_breaks: self.unplanned_breaks,
            requests: self.requests,
            last_break_reason: reason.to_owned(),
            ..Self::default()
        }
    }
}

/// Tokens as providers reported them; what was not reported is absent, which is not zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// All input tokens, cached ones included.
    pub input: Option<u64>,
    /// Input tokens read from the provider's cache.
    pub cached_input: Option<u64>,
    /// Input tokens written to the provider's cache.
    pub cache_write: Option<u64>,
    /// Output tokens, reasoning included.
    pub output: Option<u64>,
}

impl Usage {
    /// The sums; a part stays absent only as long as nobody reported it.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let sum = |one: Option<u64>, two: Option<u64>| match (one, two) {
            (None, None) => None,
            (one, two) => Some(one.unwrap_or(0).saturating_add(two.unwrap_or(0))),
        };
        Self {
            input: sum(self.input, other.input),
            cached_input: sum(self.cached_input, other.cached_input),
            cache_write: sum(self.cache_write, other.cache_write),
            output: sum(self.output, other.output),
        }
    }
}

/// A call that waits for the client (`T-8`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenCall {
    /// The call.
    pub call: ToolCall,
    /// Turn that waits.
    pub turn: String,
    /// When it is to be closed as expired.
    pub expires: Timestamp,
}

/// A learned artefact that the session was shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Exposure {
    /// Resource name of the artefact.
    pub artifact: String,
    /// Revision that was shown.
    pub revision: String,
    /// How it was shown: `indexed`, `snapshot`, `loaded`.
    pub stage: String,
    /// Unit by which it was assigned; empty outside of experiments.
    pub assignment_unit: String,
    /// Arm of the experiment; empty outside of experiments.
    pub arm: String,
    /// Probability with which the arm was drawn.
    pub propensity: Option<f64>,
}

/// One conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    /// The tenant.
    pub team: TeamId,
    /// Id in the team.
    pub id: SessionId,
    /// Whose it is.
    pub user: UserId,
    /// Where it comes from.
    pub source: SessionSource,
    /// Title for people; may be empty.
    pub title: String,
    /// Parent, if it has one.
    pub lineage: Option<Lineage>,
    /// Root of the conversation: the first session that it continues, itself where it continues none.
    pub root: SessionId,
    /// Project whose notes are read with the person's; may be empty. Fixed at creation.
    pub project: String,
    /// What its requests repeat.
    pub frozen: Frozen,
    /// Whether its turns never make a review due.
    pub skip_review: bool,
    /// Whether it has no external memory provider.
    pub skip_memory: bool,
    /// Counters of the nudges.
    pub counters: Counters,
    /// State of the request prefix.
    pub prefix: PrefixState,
    /// Tokens of all turns so far.
    pub usage: Usage,
    /// Number of the last message; 0 for none.
    pub last_seq: u64,
    /// Calls that wait for the client.
    pub open_calls: Vec<OpenCall>,
    /// Learned artefacts shown to it.
    pub exposures: Vec<Exposure>,
    /// The lowest integrity of everything that ever stood in its context.
    pub lowest_integrity: Integrity,
    /// Turn that runs or waits.
    pub open_turn: Option<String>,
    /// Who may append.
    pub lease: Lease,
    /// When it was created.
    pub created: Timestamp,
    /// When a message was last appended.
    pub last_active: Timestamp,
    /// Rises with every change.
    pub revision: u64,
}

impl Session {
    /// The turn that waits for a client whose time is over, unless somebody is at it right now.
    pub fn expired_turn(&self, now: Timestamp) -> Option<ExpiredTurn> {
        let is_held = self.lease.holding.as_ref().is_some_and(|holding| holding.expires > now);
        let first = self.open_calls.iter().min_by_key(|call| call.expires)?;
        (!is_held && first.expires <= now).then(|| ExpiredTurn {
            team: self.team.clone(),
            session: self.id.clone(),
            user: self.user.clone(),
            turn: first.turn.clone(),
            expired: first.expires,
        })
    }

    /// Full resource name.
    pub fn name(&self) -> String {
        session_name(&self.team, &self.id)
    }

    /// Changes whenever the session does.
    pub fn etag(&self) -> String {
        self.revision.to_string()
    }
}
