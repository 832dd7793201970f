//! Changing a session between two of its turns.
//!
//! What its requests begin with changes only with a reason: the prefix then begins anew, and the break is a planned one
//! (`P-3`, `P-4`). [`decide`] is pure, as for an append.

use steward_base::names::{SessionId, TeamId};
use steward_base::{FieldViolations, Timestamp};

use crate::append_messages::{RequestKey, check_etag, check_request_id};
use crate::create_session::MAX_TITLE;
use crate::error::Error;
use crate::session::{ClientTool, Exposure, Session};
use crate::sessions::Sessions;

/// Longest reason of a break in characters.
const MAX_BREAK_REASON: usize = 64;

/// What to change; what is absent stays as it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes {
    /// Title for people.
    pub title: Option<String>,
    /// Model that every request names.
    pub model: Option<String>,
    /// Exact bytes of the system prompt.
    pub system_prompt: Option<String>,
    /// Bytes of its stable tier. A new prompt without them has none that is known.
    pub stable_prompt_bytes: Option<u32>,
    /// Exact bytes of the tool list.
    pub tools_json: Option<String>,
    /// Which of the tools run at the client.
    pub client_tools: Option<Vec<ClientTool>>,
    /// What the prompt was assembled from.
    pub setup: Option<Vec<u8>>,
    /// Learned artefacts that were shown, instead of those that were recorded.
    pub exposures: Option<Vec<Exposure>>,
}

impl Changes {
    /// Whether the requests of the session begin with something else from now on.
    pub const fn break_the_prefix(&self) -> bool {
        self.model.is_some()
            || self.system_prompt.is_some()
            || self.stable_prompt_bytes.is_some()
            || self.tools_json.is_some()
            || self.client_tools.is_some()
            || self.setup.is_some()
            || self.exposures.is_some()
    }
}

/// A change of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionUpdate {
    /// The tenant.
    pub team: TeamId,
    /// The session.
    pub session: SessionId,
    /// The state that the caller read; empty: any.
    pub etag: String,
    /// What to change.
    pub changes: Changes,
    /// Why the prefix breaks; empty if it does not.
    pub break_reason: String,
    /// Recognises a retry.
    pub request: RequestKey,
}

/// The session as it is to be. Retries are recognised before, by the store.
pub fn decide(mut session: Session, update: SessionUpdate, now: Timestamp) -> Result<Session, Error> {
    check_idle(&session, now)?;
    check_etag(&update.etag, &session)?;
    let breaks = update.changes.break_the_prefix();
    let changes = update.changes;
    let frozen = &mut session.frozen;
    if changes.system_prompt.is_some() {
        frozen.stable_prompt_bytes = 0;
    }
    set(&mut frozen.model, changes.model);
    set(&mut frozen.system_prompt, changes.system_prompt);
    set(&mut frozen.stable_prompt_bytes, changes.stable_prompt_bytes);
    set(&mut frozen.tools_json, changes.tools_json);
    set(&mut frozen.client_tools, changes.client_tools);
    set(&mut frozen.setup, changes.setup);
    set(&mut session.title, changes.title);
    set(&mut session.exposures, changes.exposures);
    let mut violations = FieldViolations::new();
    session.frozen.check(&mut violations);
    violations.into_result()?;
    if breaks {
        session.prefix = session.prefix.begun_anew(&update.break_reason);
    }
    session.revision += 1;
    Ok(session)
}

fn set<T>(place: &mut T, new: Option<T>) {
    if let Some(new) = new {
        *place = new;
    }
}

/// No turn runs, and none waits for the client: either would go on with what it began with.
pub(crate) fn check_idle(session: &Session, now: Timestamp) -> Result<(), Error> {
    check_unheld(session, now)?;
    match session.open_calls.first() {
        Some(waiting) => Err(Error::TurnRunning {
            turn: waiting.turn.clone(),
            holder: String::new(),
        }),
        None => Ok(()),
    }
}

/// No turn runs. One may wait.
pub(crate) fn check_unheld(session: &Session, now: Timestamp) -> Result<(), Error> {
    let holding = session.lease.holding.as_ref();
    match holding.filter(|holding| holding.expires > now) {
        Some(holding) => Err(Error::TurnRunning {
            turn: holding.turn.clone(),
            holder: holding.holder.clone(),
        }),
        None => Ok(()),
    }
}

impl Sessions {
    /// Changes the session; the same request again returns it (`T-9`).
    pub async fn update_session(&self, update: SessionUpdate) -> Result<Session, Error> {
        let mut violations = FieldViolations::new();
        check_request_id(&update.request.id, &mut violations);
        if update.changes == Changes::default() {
            violations.add("update_mask", "must name what to change");
        }
        let title = update.changes.title.as_ref();
        if title.is_some_and(|title| title.chars().count() > MAX_TITLE) {
            violations.add("session.title", format!("must have at most {MAX_TITLE} characters"));
        }
        let reason = update.break_reason.chars().count();
        if update.changes.break_the_prefix() && !(1..=MAX_BREAK_REASON).contains(&reason) {
            violations.add(
                "break_reason",
                format!("must have 1 to {MAX_BREAK_REASON} characters where the prefix changes"),
            );
        }
        violations.into_result()?;
        self.store.update_session(update, self.clock.now()).await
    }
}
