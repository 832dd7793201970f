//! Whether a request extends the one before it, byte for byte. A pure judgement over hashes, so that it can be kept with
//! the session and made by any replica (`P-4`).

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use steward_base::hash::sha256_hex;

use crate::anthropic::render::without_markers;
use crate::render::Rendered;

/// What a session remembers of its last request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrefixState {
    /// SHA-256 of the tools segment.
    pub tools_sha: String,
    /// SHA-256 of the system segment.
    pub system_sha: String,
    /// Length of the messages segment in bytes.
    pub messages_len: u64,
    /// SHA-256 of the messages segment.
    pub messages_sha: String,
}

impl PrefixState {
    /// The state after `rendered` was sent.
    pub fn of(rendered: &Rendered) -> Self {
        Self {
            tools_sha: sha256_hex(rendered.tools()),
            system_sha: sha256_hex(rendered.system()),
            messages_len: rendered.messages().len() as u64,
            messages_sha: sha256_hex(rendered.messages()),
        }
    }
}

/// One of the three segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrefixSegment {
    /// The tool list.
    Tools,
    /// The system prompt.
    System,
    /// The conversation.
    Messages,
}

/// The judgement on one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrefixVerdict {
    /// There was none before.
    First,
    /// Each segment equals or extends that of the request before.
    Extends,
    /// These segments do not.
    Broken(Vec<PrefixSegment>),
}

/// Compares a request with the state left by the one before it.
pub fn check(previous: Option<&PrefixState>, rendered: &Rendered) -> PrefixVerdict {
    let Some(previous) = previous else {
        return PrefixVerdict::First;
    };
    let messages = rendered.messages();
    let head = usize::try_from(previous.messages_len)
        .ok()
        .and_then(|len| messages.get(..len));
    let mut broken = Vec::new();
    if sha256_hex(rendered.tools()) != previous.tools_sha {
        broken.push(PrefixSegment::Tools);
    }
    if sha256_hex(rendered.system()) != previous.system_sha {
        broken.push(PrefixSegment::System);
    }
    if head.is_none_or(|head| sha256_hex(head) != previous.messages_sha) {
        broken.push(PrefixSegment::Messages);
    }
    if broken.is_empty() {
        PrefixVerdict::Extends
    } else {
        PrefixVerdict::Broken(broken)
    }
}

/// Judges the requests of a session one after the other, and hashes each byte once: what was sent before is compared with
/// what is sent now, and only what is new of it is hashed.
#[derive(Clone)]
pub struct PrefixJudge {
    state: Option<PrefixState>,
    /// The last request of this process, with the hash of its messages going on.
    sent: Option<(Rendered, Sha256)>,
}

impl std::fmt::Debug for PrefixJudge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PrefixJudge")
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl PrefixJudge {
    /// For a session whose last request left this state.
    pub const fn new(previous: Option<PrefixState>) -> Self {
        Self {
            state: previous,
            sent: None,
        }
    }

    /// The judgement on the next request, as [`check`] gives it, and the state that it leaves.
    pub fn judge(&mut self, rendered: Rendered) -> (PrefixVerdict, PrefixState) {
        let before = self.sent.as_ref().map(|(before, _)| before);
        let hash = |now: &[u8], then: Option<&[u8]>, known: Option<&String>| match known {
            Some(known) if then == Some(now) => known.clone(),
            _ => sha256_hex(now),
        };
        let state = self.state.as_ref();
        let tools_sha = hash(
            rendered.tools(),
            before.map(Rendered::tools),
            state.map(|state| &state.tools_sha),
        );
        let system_sha = hash(
            rendered.system(),
            before.map(Rendered::system),
            state.map(|state| &state.system_sha),
        );
        let (extends, hasher) = self.go_on(rendered.messages());
        let mut broken = Vec::new();
        if let Some(state) = state {
            let segments = [
                (state.tools_sha == tools_sha, PrefixSegment::Tools),
                (state.system_sha == system_sha, PrefixSegment::System),
                (extends, PrefixSegment::Messages),
            ];
            broken.extend(
                segments
                    .into_iter()
                    .filter(|(kept, _)| !kept)
                    .map(|(_, segment)| segment),
            );
        }
        let verdict = match state {
            None => PrefixVerdict::First,
            Some(_) if broken.is_empty() => PrefixVerdict::Extends,
            Some(_) => PrefixVerdict::Broken(broken),
        };
        let now = PrefixState {
            tools_sha,
            system_sha,
            messages_len: rendered.messages().len() as u64,
            messages_sha: hex::encode(hasher.clone().finalize()),
        };
        self.state = Some(now.clone());
        self.sent = Some((rendered, hasher));
        (verdict, now)
    }

    /// Whether `messages` extend those before, and the hash over all of them.
    fn go_on(&self, messages: &[u8]) -> (bool, Sha256) {
        if let Some((before, hasher)) = &self.sent {
            if let Some(more) = messages.strip_prefix(before.messages()) {
                return (true, hasher.clone().chain_update(more));
            }
            return (false, Sha256::new_with_prefix(messages));
        }
        let head = self.state.as_ref().and_then(|state| {
            let len = usize::try_from(state.messages_len).ok()?;
            Some((messages.split_at_checked(len)?, &state.messages_sha))
        });
        let Some(((head, more), expected)) = head else {
            return (false, Sha256::new_with_prefix(messages));
        };
        let hasher = Sha256::new_with_prefix(head);
        let extends = hex::encode(hasher.clone().finalize()) == *expected;
        (extends, hasher.chain_update(more))
    }
}

/// Fails a test unless each body extends the one before it; `bodies` are raw requests of either protocol as a server received
/// them.
///
/// # Errors
/// A sentence that names the first pair and segment that break.
pub fn extends_all<B: AsRef<[u8]>>(bodies: &[B]) -> Result<(), String> {
    let mut previous: Option<[String; 3]> = None;
    for (index, body) in bodies.iter().enumerate() {
        let segments = received_segments(body.as_ref()).ok_or_else(|| format!("request {index} is not readable"))?;
        if let Some(before) = &previous {
            for (name, (now, then)) in ["tools", "system", "messages"].iter().zip(segments.iter().zip(before)) {
                if !now.starts_with(then.as_str()) {
                    return Err(format!(
                        "request {index} does not extend the {name} of the request before it"
                    ));
                }
            }
        }
        previous = Some(segments);
    }
    Ok(())
}

/// The raw text of tools, system prompt and messages of a received body, cache markers and closing brackets left out.
fn received_segments(body: &[u8]) -> Option<[String; 3]> {
    #[derive(Deserialize)]
    struct Received<'a> {
        #[serde(borrow)]
        tools: Option<&'a serde_json::value::RawValue>,
        #[serde(borrow)]
        system: Option<&'a serde_json::value::RawValue>,
        #[serde(borrow)]
        messages: Vec<&'a serde_json::value::RawValue>,
    }
    let received: Received<'_> = serde_json::from_slice(body).ok()?;
    let mut messages: Vec<&str> = received.messages.iter().map(|message| message.get()).collect();
    let tools = received.tools.map(|tools| tools.get().to_owned()).unwrap_or_default();
    let of_blocks = messages
        .first()
        .is_some_and(|first| first.starts_with("{\"role\":\"user\",\"content\":["));
    if of_blocks {
        let system = received
            .system
            .map(serde_json::value::RawValue::get)
            .unwrap_or_default();
        let joined = without_markers(&messages.join(","));
        let open = joined.strip_suffix("]}").unwrap_or(&joined).to_owned();
        return Some([without_markers(&tools), without_markers(system), open]);
    }
    let has_system = messages
        .first()
        .is_some_and(|first| first.starts_with("{\"role\":\"system\""));
    let system = if has_system {
        messages.remove(0).to_owned()
    } else {
        String::new()
    };
    Some([tools, system, messages.join(",")])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Message, ModelRequest, ToolChoice};
    use crate::render::render;

    fn rendered(system: &str, tools: &str, messages: &[&str]) -> Rendered {
        let request = ModelRequest {
            model: "m".to_owned(),
            system: system.into(),
            tools_json: tools.into(),
            messages: messages.iter().copied().map(Message::user).collect(),
            tool_choice: ToolChoice::Auto,
            max_output_tokens: None,
        };
        render(&request).expect("renders")
    }

    #[test]
    fn a_longer_conversation_extends_and_a_changed_one_breaks() {
        let tools = r#"[{"name":"t","description":"","input_schema":{}}]"#;
        let first = rendered("s", "[]", &["a"]);
        let state = PrefixState::of(&first);
        assert_eq!(check(None, &first), PrefixVerdict::First);
        assert_eq!(check(Some(&state), &first), PrefixVerdict::Extends);
        assert_eq!(
            check(Some(&state), &rendered("s", "[]", &["a", "b"])),
            PrefixVerdict::Extends
        );
        let broken = |segments: &[PrefixSegment]| PrefixVerdict::Broken(segments.to_vec());
        assert_eq!(
            check(Some(&state), &rendered("s", "[]", &["ab"])),
            broken(&[PrefixSegment::Messages])
        );
        assert_eq!(
            check(Some(&state), &rendered("s", "[]", &[])),
            broken(&[PrefixSegment::Messages])
        );
        let other = rendered("S", tools, &["a"]);
        assert_eq!(
            check(Some(&state), &other),
            broken(&[PrefixSegment::Tools, PrefixSegment::System])
        );
    }

    #[test]
    fn a_judge_says_what_the_hashes_say_and_goes_on_from_a_kept_state() {
        let tools = r#"[{"name":"t","description":"","input_schema":{}}]"#;
        let requests = [
            rendered("s", "[]", &["a"]),
            rendered("s", "[]", &["a", "b"]),
            rendered("s", "[]", &["a", "b"]),
            rendered("s", "[]", &["a"]),
            rendered("s", tools, &["a", "c"]),
            rendered("S", tools, &["A", "c", "d"]),
            rendered("S", tools, &["A", "c", "d", "e"]),
        ];
        let (mut judge, mut state) = (PrefixJudge::new(None), None);
        for request in &requests {
            let expected = (check(state.as_ref(), request), PrefixState::of(request));
            let mut fresh = PrefixJudge::new(state);
            assert_eq!(fresh.judge(request.clone()), expected, "from a kept state");
            assert_eq!(judge.judge(request.clone()), expected, "from the request before");
            state = Some(expected.1);
        }
    }

    #[test]
    fn received_bodies_are_judged_by_segment() {
        let bodies = [rendered("s", "[]", &["a"]).body, rendered("s", "[]", &["a", "b"]).body];
        assert_eq!(extends_all(&bodies), Ok(()));
        let reversed = [&bodies[1], &bodies[0]];
        let problem = extends_all(&reversed).expect_err("it got shorter");
        assert_eq!(
            problem,
            "request 1 does not extend the messages of the request before it"
        );
    }
}
