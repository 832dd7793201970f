//! The storage side of compression (`Z-4`): a summary takes the place of messages in the context. The messages stay, readable
//! and searchable; nothing is moved or written anew.

use steward_base::names::{SessionId, TeamId};
use steward_base::{FieldViolations, Timestamp};

use crate::append_messages::{Appended, RequestKey, check_request_id, number, within};
use crate::error::Error;
use crate::fork_session::has_unanswered;
use crate::message::{Message, NewMessage, Replaced, Role};
use crate::session::{Exposure, Session, Usage};
use crate::sessions::Sessions;
use crate::update_session::check_idle;

/// Reason of the planned break (`P-3`, `Z-5`).
const REASON: &str = "compression";

/// A prompt that was assembled anew.
#[derive(Debug, Clone, PartialEq)]
pub struct RebuiltPrompt {
    /// Exact bytes of the system prompt.
    pub system_prompt: String,
    /// Bytes of its stable tier; 0 where it is not known.
    pub stable_prompt_bytes: u32,
    /// What it was assembled from; empty leaves what is stored.
    pub setup: Vec<u8>,
    /// Learned artefacts that it shows, instead of those that were recorded.
    pub exposures: Vec<Exposure>,
}

/// A summary in the place of messages.
#[derive(Debug, Clone, PartialEq)]
pub struct Compaction {
    /// The tenant.
    pub team: TeamId,
    /// The session.
    pub session: SessionId,
    /// Fence of the caller's turn lease; 0 between two turns.
    pub fence: u64,
    /// Number of the last message as the caller knows it.
    pub expected_seq: u64,
    /// Places of what is replaced.
    pub range: Replaced,
    /// The summary.
    pub summary: NewMessage,
    /// What requests begin with from now on; `None`: the same as before.
    pub prompt: Option<RebuiltPrompt>,
    /// Added to the session's sums.
    pub usage: Option<Usage>,
    /// Recognises a retry.
    pub request: RequestKey,
}

/// What a store has to write: the session, its prompt and exposures if `prompt` is set, the summary, and that the messages
/// of the range are compacted.
#[derive(Debug, Clone)]
pub struct Compacted {
    /// The session as it is to be.
    pub session: Session,
    /// The summary, numbered.
    pub summary: Message,
    /// Whether the prompt and the exposures of the session changed.
    pub prompt: bool,
    /// The answer.
    pub appended: Appended,
}

/// Checks the compaction against what is stored. `replaced` is what is in the context in the range, in order.
pub fn decide(
    mut session: Session,
    replaced: &[Message],
    compaction: Compaction,
    now: Timestamp,
) -> Result<Compacted, Error> {
    if compaction.fence == 0 {
        check_idle(&session, now)?;
    } else {
        session.lease.check(compaction.fence)?;
    }
    if compaction.expected_seq != session.last_seq {
        return Err(Error::SequenceMismatch {
            expected: compaction.expected_seq,
            current: session.last_seq,
        });
    }
    check_range(replaced)?;
    let mut numbered = number(vec![compaction.summary], &mut session, None, now);
    let summary = numbered
        .pop()
        .ok_or_else(|| Error::internal("number a summary", "a message vanished"))?;
    let summary = Message {
        // It says again what stood in the context, whoever is made to speak.
        integrity: summary.integrity.min(session.lowest_integrity),
        replaces: Some(compaction.range),
        ..summary
    };
    let prompt = compaction.prompt.is_some();
    if let Some(rebuilt) = compaction.prompt {
        session.frozen.system_prompt = rebuilt.system_prompt;
        session.frozen.stable_prompt_bytes = rebuilt.stable_prompt_bytes;
        if !rebuilt.setup.is_empty() {
            session.frozen.setup = rebuilt.setup;
        }
        session.exposures = rebuilt.exposures;
        let mut violations = FieldViolations::new();
        session.frozen.check(&mut violations);
        violations.into_result()?;
    }
    session.usage = session.usage.plus(compaction.usage.unwrap_or_default());
    session.prefix = session.prefix.begun_anew(REASON);
    session.revision += 1;
    let appended = Appended {
        last_seq: session.last_seq,
        due_review: None,
        fence: compaction.fence,
    };
    Ok(Compacted {
        session,
        summary,
        prompt,
        appended,
    })
}

/// Something is replaced, and no call is parted from its result (`Z-2`).
fn check_range(replaced: &[Message]) -> Result<(), Error> {
    if replaced.is_empty() {
        return Err(Error::field("range", "holds no message that is in the context"));
    }
    let calls = || replaced.iter().flat_map(|message| &message.body.tool_calls);
    let mut results = replaced.iter().filter_map(|message| message.body.result.as_ref());
    let is_parted = |call_id: &str| !calls().any(|call| call.id == call_id);
    if has_unanswered(replaced) || results.any(|result| is_parted(&result.call_id)) {
        return Err(Error::field("range", "must not part a call from its result"));
    }
    Ok(())
}

impl Sessions {
    /// Puts a summary in the place of messages; the same request again returns the first answer (`T-9`).
    pub async fn mark_compacted(&self, compaction: Compaction) -> Result<Appended, Error> {
        let mut violations = FieldViolations::new();
        check_request_id(&compaction.request.id, &mut violations);
        let summary = &compaction.summary;
        summary.check("summary", &mut violations);
        if summary.role == Role::Tool || !summary.tool_calls.is_empty() {
            violations.add("summary", "must be a message of the person or the model, without calls");
        }
        if compaction.range.from == 0 || compaction.range.to < compaction.range.from {
            violations.add("range", "must begin with a message and end with it or a later one");
        }
        violations.into_result()?;
        within([summary.size()].into_iter(), self.limits.message_bytes)?;
        self.store.mark_compacted(compaction, self.clock.now()).await
    }
}
