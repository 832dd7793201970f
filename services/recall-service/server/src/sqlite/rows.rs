//! Rows as domain values and back. A row that cannot be what was written is damage, and is said to be.
//!
//! Columns are read one after the other, each statement naming them in the order of the macros here: a column that is asked for
//! by its name is looked for among all of them, which for a session costs more than to read it.

use std::borrow::Cow;

use rusqlite::types::{FromSql, ValueRef};
use serde::Serialize;
use serde::de::DeserializeOwned;
use steward_base::names::{NameError, SessionId, TeamId, UserId};
use steward_base::{Integrity, Timestamp, error_chain};
use steward_recall_core::Error;
use steward_recall_core::lease::{Holding, Lease};
use steward_recall_core::message::{Message, Native, NewMessage, Replaced, Role, ToolResult};
use steward_recall_core::session::{
    Counters, Exposure, Frozen, Lineage, LineageReason, PrefixState, Session, SessionSource, Usage,
};
use steward_recall_core::turn::{DueReview, NewDueReview, Turn, TurnState};
use steward_store::Row;

use super::failure::Failure;

/// Unsigned numbers are kept in SQLite's signed ones.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

pub(super) fn json<T: Serialize>(value: &T) -> Result<String, Failure> {
    Ok(serde_json::to_string(value)?)
}

/// A list of names, for `IN (SELECT value FROM json_each(?))`.
pub(super) fn json_names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    serde_json::Value::from_iter(names).to_string()
}

/// What [`Numbered`](super::sessions::Numbered) is read from.
macro_rules! session_columns {
    () => {
        "session.number, session.team, session.id, session.user, session.source, session.title, session.parent,
         session.lineage_reason, session.root, session.project, session.model, session.skip_review, session.skip_memory,
         session.turns_since_memory, session.iterations_since_skill, session.user_turns, session.prefix_tools_sha256,
         session.prefix_system_sha256, session.prefix_messages_bytes, session.prefix_messages_sha256,
         session.planned_breaks, session.unplanned_breaks, session.requests, session.last_break_reason,
         session.usage_input, session.usage_cached_input, session.usage_cache_write, session.usage_output,
         session.last_seq, session.open_calls, session.lowest_integrity, session.open_turn, session.lease_fence,
         session.lease_turn, session.lease_holder, session.lease_expires, session.created, session.last_active,
         session.revision"
    };
}

/// What [`prompt`] is read from.
macro_rules! prompt_columns {
    () => {
        "session_prompt.client_tools, session_prompt.stable_prompt_bytes, session_prompt.system_prompt,
         session_prompt.tools_json, session_prompt.setup"
    };
}

/// What [`message`] is read from: not what only the index has of it, which may be as large again.
macro_rules! message_columns {
    () => {
        "seq, role, said, sent, tool_calls, tool_call_id, tool_name, is_error, spans, usage_input, usage_cached_input,
         usage_cache_write, usage_output, turn, native_provider, native_model, native_blocks, model, integrity, rewound,
         compacted, created, place, replaces_to"
    };
}

/// What [`turn`] is read from.
macro_rules! turn_columns {
    () => {
        "turn.id, turn.state, turn.first_seq, turn.last_seq, turn.iterations, turn.segments, turn.error_reason,
         turn.error_message, turn.created, turn.ended"
    };
}

pub(super) use {message_columns, prompt_columns, session_columns, turn_columns};

/// The columns of a row that were not read yet.
#[derive(Debug)]
pub(super) struct Columns<'r, 's> {
    row: &'r Row<'s>,
    at: usize,
}

impl<'r, 's> Columns<'r, 's> {
    pub(super) fn of(row: &'r Row<'s>) -> Self {
        Self { row, at: 0 }
    }

    pub(super) fn take<T: FromSql>(&mut self) -> Result<T, Failure> {
        let value = self.row.get(self.at)?;
        self.at += 1;
        Ok(value)
    }

    fn value(&mut self) -> Result<ValueRef<'r>, Failure> {
        let value = self.row.get_ref(self.at)?;
        self.at += 1;
        Ok(value)
    }

    /// The next columns are not read.
    pub(super) fn pass_by(&mut self, columns: usize) {
        self.at += columns;
    }

    pub(super) fn text(&mut self) -> Result<&'r str, Failure> {
        Ok(self.value()?.as_str()?)
    }

    fn optional_text(&mut self) -> Result<Option<&'r str>, Failure> {
        Ok(self.value()?.as_str_or_null()?)
    }

    pub(super) fn number(&mut self) -> Result<u64, Failure> {
        Ok(unsigned(self.take()?))
    }

    pub(super) fn bytes(&mut self) -> Result<&'r [u8], Failure> {
        Ok(self.value()?.as_blob()?)
    }

    fn small(&mut self) -> Result<u32, Failure> {
        Ok(u32::try_from(self.take::<i64>()?).unwrap_or(u32::MAX))
    }

    pub(super) fn time(&mut self) -> Result<Timestamp, Failure> {
        Ok(Timestamp::from_micros(self.take()?))
    }

    pub(super) fn flag(&mut self) -> Result<bool, Failure> {
        Ok(self.take::<i64>()? != 0)
    }

    fn parsed<T: DeserializeOwned>(&mut self) -> Result<T, Failure> {
        Ok(serde_json::from_str(self.text()?)?)
    }

    /// A text of a message. Bytes that are none become signs that say so: one bad row must not hide a conversation.
    pub(super) fn salvaged(&mut self) -> Result<Option<Cow<'r, str>>, Failure> {
        let (ValueRef::Text(bytes) | ValueRef::Blob(bytes)) = self.value()? else {
            return Ok(None);
        };
        let text = String::from_utf8_lossy(bytes);
        if matches!(text, Cow::Owned(_)) {
            tracing::error!("a message holds bytes that are no text");
        }
        Ok(Some(text))
    }

    /// What belongs to a message, for which the same holds. How far it may be trusted is a column of its own.
    pub(super) fn or_empty<T: DeserializeOwned>(&mut self, column: &str) -> Vec<T> {
        self.parsed().unwrap_or_else(|Failure(error)| {
            tracing::error!(
                column,
                error = error_chain(&error),
                "a part of a message cannot be read"
            );
            Vec::new()
        })
    }

    pub(super) fn session_id(&mut self) -> Result<SessionId, Failure> {
        id(SessionId::parse(self.text()?))
    }

    pub(super) fn role(&mut self) -> Result<Role, Failure> {
        role(self.text()?)
    }

    pub(super) fn integrity(&mut self) -> Result<Integrity, Failure> {
        let level: i64 = self.take()?;
        let known = u8::try_from(level).ok().and_then(Integrity::from_level);
        known.ok_or_else(|| Error::damaged(format!("{level} is no integrity")).into())
    }

    fn usage(&mut self) -> Result<Usage, Failure> {
        let mut part = || Ok::<_, Failure>(self.take::<Option<i64>>()?.map(unsigned));
        Ok(Usage {
            input: part()?,
            cached_input: part()?,
            cache_write: part()?,
            output: part()?,
        })
    }
}

fn id<T>(checked: Result<T, NameError>) -> Result<T, Failure> {
    checked.map_err(|error| Error::damaged(error).into())
}

fn named<T>(text: &str, parse: fn(&str) -> Option<T>) -> Result<T, Failure> {
    parse(text).ok_or_else(|| Error::damaged(format!("{text:?} is no value that this program writes")).into())
}

pub(super) fn role(text: &str) -> Result<Role, Failure> {
    named(text, Role::parse)
}

fn lease(columns: &mut Columns<'_, '_>) -> Result<Lease, Failure> {
    let fence = columns.number()?;
    let (turn, holder) = (columns.take::<Option<String>>()?, columns.take::<Option<String>>()?);
    let expires: Option<i64> = columns.take()?;
    let holding = match (turn, holder, expires) {
        (Some(turn), Some(holder), Some(expires)) => Some(Holding {
            turn,
            holder,
            expires: Timestamp::from_micros(expires),
        }),
        _ => None,
    };
    Ok(Lease { fence, holding })
}

/// What requests begin with, the model's name excepted.
pub(super) fn prompt(columns: &mut Columns<'_, '_>, frozen: &mut Frozen) -> Result<(), Failure> {
    frozen.client_tools = columns.parsed()?;
    frozen.stable_prompt_bytes = columns.small()?;
    frozen.system_prompt = columns.take()?;
    frozen.tools_json = columns.take()?;
    frozen.setup = columns.take()?;
    Ok(())
}

fn lineage(columns: &mut Columns<'_, '_>) -> Result<Option<Lineage>, Failure> {
    match (columns.optional_text()?, columns.optional_text()?) {
        (Some(parent), Some(reason)) => Ok(Some(Lineage {
            parent: id(SessionId::parse(parent))?,
            reason: named(reason, LineageReason::parse)?,
        })),
        _ => Ok(None),
    }
}

/// A session, from behind its number on, without what its requests begin with and without its exposures, which are rows of
/// their own. The fields stand in the order of the columns, in which they are read.
pub(super) fn session(columns: &mut Columns<'_, '_>) -> Result<Session, Failure> {
    Ok(Session {
        team: id(TeamId::parse(columns.text()?))?,
        id: columns.session_id()?,
        user: id(UserId::parse(columns.text()?))?,
        source: named(columns.text()?, SessionSource::parse)?,
        title: columns.take()?,
        lineage: lineage(columns)?,
        root: columns.session_id()?,
        project: columns.take()?,
        frozen: Frozen {
            model: columns.take()?,
            ..Frozen::default()
        },
        skip_review: columns.flag()?,
        skip_memory: columns.flag()?,
        counters: Counters {
            turns_since_memory: columns.small()?,
            iterations_since_skill: columns.small()?,
            user_turns: columns.small()?,
        },
        prefix: PrefixState {
            tools_sha256: columns.take()?,
            system_sha256: columns.take()?,
            messages_bytes: columns.number()?,
            messages_sha256: columns.take()?,
            planned_breaks: columns.small()?,
            unplanned_breaks: columns.small()?,
            requests: columns.small()?,
            last_break_reason: columns.take()?,
        },
        usage: columns.usage()?,
        last_seq: columns.number()?,
        open_calls: columns.parsed()?,
        exposures: Vec::new(),
        lowest_integrity: columns.integrity()?,
        open_turn: columns.take()?,
        lease: lease(columns)?,
        created: columns.time()?,
        last_active: columns.time()?,
        revision: columns.number()?,
    })
}

/// Columns: artifact, revision, stage, assignment_unit, arm, propensity.
pub(super) fn exposure(row: &Row<'_>) -> Result<Exposure, Failure> {
    let mut columns = Columns::of(row);
    Ok(Exposure {
        artifact: columns.take()?,
        revision: columns.take()?,
        stage: columns.take()?,
        assignment_unit: columns.take()?,
        arm: columns.take()?,
        propensity: columns.take()?,
    })
}

fn result(columns: &mut Columns<'_, '_>) -> Result<Option<ToolResult>, Failure> {
    let call_id: Option<String> = columns.take()?;
    let tool_name: Option<String> = columns.take()?;
    let is_error = columns.flag()?;
    Ok(call_id.map(|call_id| ToolResult {
        call_id,
        tool_name: tool_name.unwrap_or_default(),
        is_error,
    }))
}

fn native(columns: &mut Columns<'_, '_>) -> Result<Option<Native>, Failure> {
    let Some(provider) = columns.take()? else {
        columns.pass_by(2);
        return Ok(None);
    };
    Ok(Some(Native {
        provider,
        model: columns.take()?,
        blocks_json: columns.take()?,
    }))
}

/// A message with its place in the context.
pub(super) fn message(columns: &mut Columns<'_, '_>) -> Result<Message, Failure> {
    let mut message = Message {
        seq: columns.number()?,
        body: NewMessage {
            role: columns.role()?,
            text: columns.salvaged()?.unwrap_or_default().into_owned(),
            sent_text: columns.salvaged()?.map(Cow::into_owned),
            tool_calls: columns.or_empty("tool_calls"),
            result: result(columns)?,
            spans: columns.or_empty("spans"),
            usage: Some(columns.usage()?).filter(|usage| *usage != Usage::default()),
            turn: columns.take()?,
            native: native(columns)?,
        },
        model: columns.take()?,
        integrity: columns.integrity()?,
        rewound: columns.flag()?,
        compacted: columns.flag()?,
        created: columns.time()?,
        replaces: None,
    };
    let (from, to): (Option<i64>, Option<i64>) = (columns.take()?, columns.take()?);
    message.replaces = from.zip(to).map(|(from, to)| Replaced {
        from: unsigned(from),
        to: unsigned(to),
    });
    Ok(message)
}

/// A turn that may be missing from a row that is joined to it.
pub(super) fn optional_turn(columns: &mut Columns<'_, '_>) -> Result<Option<Turn>, Failure> {
    let known = columns.row.get_ref(columns.at)? != ValueRef::Null;
    known.then(|| turn(columns)).transpose()
}

pub(super) fn turn(columns: &mut Columns<'_, '_>) -> Result<Turn, Failure> {
    Ok(Turn {
        id: columns.take()?,
        state: named(columns.text()?, TurnState::parse)?,
        first_seq: columns.number()?,
        last_seq: columns.number()?,
        iterations: columns.small()?,
        segments: columns.small()?,
        error_reason: columns.take()?,
        error_message: columns.take()?,
        created: columns.time()?,
        ended: columns.take::<Option<i64>>()?.map(Timestamp::from_micros),
    })
}

/// Columns: team, session, id, user, memory, skills, to_seq, turn, traceparent, created.
pub(super) fn due_review(row: &Row<'_>) -> Result<DueReview, Failure> {
    let mut columns = Columns::of(row);
    let (team, session) = (id(TeamId::parse(columns.text()?))?, columns.session_id()?);
    let review: String = columns.take()?;
    let user = id(UserId::parse(columns.text()?))?;
    let (memory, skills) = (columns.flag()?, columns.flag()?);
    let to_seq = columns.number()?;
    let (turn, traceparent) = (columns.take()?, columns.take()?);
    Ok(DueReview {
        team,
        session,
        user,
        to_seq,
        created: columns.time()?,
        review: NewDueReview {
            id: review,
            memory,
            skills,
            turn,
            traceparent,
        },
    })
}
