//! Rows as domain values and back. A row that cannot be what was written is damage, and is said to be.

use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;
use steward_base::names::{NameError, SessionId, TeamId, UserId};
use steward_base::{Integrity, Timestamp, error_chain};
use steward_recall_core::Error;
use steward_recall_core::lease::{Holding, Lease};
use steward_recall_core::message::{Message, Native, NewMessage, Replaced, Role, ToolResult};
use steward_recall_core::session::{
    Counters, Exposure, Frozen, Lineage, LineageReason, PrefixState, Session, SessionSource, Usage,
};
use steward_recall_core::turn::{DueReview, NewDueReview, Turn, TurnState};

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

fn parsed<T: DeserializeOwned>(row: &SqliteRow, column: &str) -> Result<T, Failure> {
    Ok(serde_json::from_str(row.try_get(column)?)?)
}

/// A text of a message. Bytes that are none become signs that say so: one bad row must not hide a conversation.
fn salvaged(row: &SqliteRow, column: &str) -> Result<Option<String>, Failure> {
    match row.try_get(column) {
        Err(sqlx::Error::ColumnDecode { .. }) => {
            tracing::error!(column, "a message holds bytes that are no text");
            let bytes: Option<Vec<u8>> = row.try_get_unchecked(column)?;
            Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
        }
        read => Ok(read?),
    }
}

/// What belongs to a message, for which the same holds. How far it may be trusted is a column of its own.
fn or_empty<T: DeserializeOwned + Default>(row: &SqliteRow, column: &str) -> T {
    parsed(row, column).unwrap_or_else(|Failure(error)| {
        tracing::error!(
            column,
            error = error_chain(&error),
            "a part of a message cannot be read"
        );
        T::default()
    })
}

fn number(row: &SqliteRow, column: &str) -> Result<u64, Failure> {
    Ok(unsigned(row.try_get(column)?))
}

fn small(row: &SqliteRow, column: &str) -> Result<u32, Failure> {
    Ok(u32::try_from(row.try_get::<i64, _>(column)?).unwrap_or(u32::MAX))
}

fn time(row: &SqliteRow, column: &str) -> Result<Timestamp, Failure> {
    Ok(Timestamp::from_micros(row.try_get(column)?))
}

fn flag(row: &SqliteRow, column: &str) -> Result<bool, Failure> {
    Ok(row.try_get::<i64, _>(column)? != 0)
}

fn id<T>(checked: Result<T, NameError>) -> Result<T, Failure> {
    checked.map_err(|error| Error::damaged(error).into())
}

fn named<T>(text: &str, parse: fn(&str) -> Option<T>) -> Result<T, Failure> {
    parse(text).ok_or_else(|| Error::damaged(format!("{text:?} is no value that this program writes")).into())
}

fn integrity(row: &SqliteRow, column: &str) -> Result<Integrity, Failure> {
    let level: i64 = row.try_get(column)?;
    let known = u8::try_from(level).ok().and_then(Integrity::from_level);
    known.ok_or_else(|| Error::damaged(format!("{level} is no integrity")).into())
}

fn usage(row: &SqliteRow) -> Result<Usage, Failure> {
    let part = |column: &str| Ok::<_, sqlx::Error>(row.try_get::<Option<i64>, _>(column)?.map(unsigned));
    Ok(Usage {
        input: part("usage_input")?,
        cached_input: part("usage_cached_input")?,
        cache_write: part("usage_cache_write")?,
        output: part("usage_output")?,
    })
}

fn lease(row: &SqliteRow) -> Result<Lease, Failure> {
    let turn: Option<String> = row.try_get("lease_turn")?;
    let holder: Option<String> = row.try_get("lease_holder")?;
    let expires: Option<i64> = row.try_get("lease_expires")?;
    let holding = match (turn, holder, expires) {
        (Some(turn), Some(holder), Some(expires)) => Some(Holding {
            turn,
            holder,
            expires: Timestamp::from_micros(expires),
        }),
        _ => None,
    };
    Ok(Lease {
        fence: number(row, "lease_fence")?,
        holding,
    })
}

/// The number of a session in its file.
pub(super) fn session_number(row: &SqliteRow) -> Result<i64, Failure> {
    Ok(row.try_get("number")?)
}

/// What requests begin with, the model's name excepted.
pub(super) fn prompt(row: &SqliteRow, frozen: &mut Frozen) -> Result<(), Failure> {
    frozen.system_prompt = row.try_get("system_prompt")?;
    frozen.tools_json = row.try_get("tools_json")?;
    frozen.client_tools = parsed(row, "client_tools")?;
    frozen.stable_prompt_bytes = small(row, "stable_prompt_bytes")?;
    frozen.setup = row.try_get("setup")?;
    Ok(())
}

/// A session without what its requests begin with and without its exposures, which are rows of their own.
pub(super) fn session(row: &SqliteRow) -> Result<Session, Failure> {
    let parent: Option<&str> = row.try_get("parent")?;
    let reason: Option<&str> = row.try_get("lineage_reason")?;
    let lineage = match (parent, reason) {
        (Some(parent), Some(reason)) => Some(Lineage {
            parent: id(SessionId::parse(parent))?,
            reason: named(reason, LineageReason::parse)?,
        }),
        _ => None,
    };
    Ok(Session {
        team: id(TeamId::parse(row.try_get::<&str, _>("team")?))?,
        id: id(SessionId::parse(row.try_get::<&str, _>("id")?))?,
        user: id(UserId::parse(row.try_get::<&str, _>("user")?))?,
        source: named(row.try_get("source")?, SessionSource::parse)?,
        title: row.try_get("title")?,
        lineage,
        root: id(SessionId::parse(row.try_get::<&str, _>("root")?))?,
        project: row.try_get("project")?,
        frozen: Frozen {
            model: row.try_get("model")?,
            ..Frozen::default()
        },
        skip_review: flag(row, "skip_review")?,
        skip_memory: flag(row, "skip_memory")?,
        counters: Counters {
            turns_since_memory: small(row, "turns_since_memory")?,
            iterations_since_skill: small(row, "iterations_since_skill")?,
            user_turns: small(row, "user_turns")?,
        },
        prefix: PrefixState {
            tools_sha256: row.try_get("prefix_tools_sha256")?,
            system_sha256: row.try_get("prefix_system_sha256")?,
            messages_bytes: number(row, "prefix_messages_bytes")?,
            messages_sha256: row.try_get("prefix_messages_sha256")?,
            planned_breaks: small(row, "planned_breaks")?,
            unplanned_breaks: small(row, "unplanned_breaks")?,
            requests: small(row, "requests")?,
            last_break_reason: row.try_get("last_break_reason")?,
        },
        usage: usage(row)?,
        last_seq: number(row, "last_seq")?,
        open_calls: parsed(row, "open_calls")?,
        exposures: Vec::new(),
        lowest_integrity: integrity(row, "lowest_integrity")?,
        open_turn: row.try_get("open_turn")?,
        lease: lease(row)?,
        created: time(row, "created")?,
        last_active: time(row, "last_active")?,
        revision: number(row, "revision")?,
    })
}

pub(super) fn exposure(row: &SqliteRow) -> Result<Exposure, Failure> {
    Ok(Exposure {
        artifact: row.try_get("artifact")?,
        revision: row.try_get("revision")?,
        stage: row.try_get("stage")?,
        assignment_unit: row.try_get("assignment_unit")?,
        arm: row.try_get("arm")?,
        propensity: row.try_get("propensity")?,
    })
}

fn native(row: &SqliteRow) -> Result<Option<Native>, Failure> {
    let provider: Option<String> = row.try_get("native_provider")?;
    let Some(provider) = provider else { return Ok(None) };
    Ok(Some(Native {
        provider,
        model: row.try_get("native_model")?,
        blocks_json: row.try_get("native_blocks")?,
    }))
}

pub(super) fn message(row: &SqliteRow) -> Result<Message, Failure> {
    let call_id: Option<String> = row.try_get("tool_call_id")?;
    let tool_name: Option<String> = row.try_get("tool_name")?;
    let is_error = flag(row, "is_error")?;
    let result = call_id.map(|call_id| ToolResult {
        call_id,
        tool_name: tool_name.unwrap_or_default(),
        is_error,
    });
    let usage = usage(row)?;
    Ok(Message {
        seq: number(row, "seq")?,
        body: NewMessage {
            role: named(row.try_get("role")?, Role::parse)?,
            text: salvaged(row, "said")?.unwrap_or_default(),
            sent_text: salvaged(row, "sent")?,
            tool_calls: or_empty(row, "tool_calls"),
            result,
            spans: or_empty(row, "spans"),
            usage: (usage != Usage::default()).then_some(usage),
            turn: row.try_get("turn")?,
            native: native(row)?,
        },
        model: row.try_get("model")?,
        integrity: integrity(row, "integrity")?,
        rewound: flag(row, "rewound")?,
        compacted: flag(row, "compacted")?,
        replaces: None,
        created: time(row, "created")?,
    })
}

/// A message with its place in the context.
pub(super) fn placed_message(row: &SqliteRow) -> Result<Message, Failure> {
    let from: Option<i64> = row.try_get("place")?;
    let to: Option<i64> = row.try_get("replaces_to")?;
    Ok(Message {
        replaces: from.zip(to).map(|(from, to)| Replaced {
            from: unsigned(from),
            to: unsigned(to),
        }),
        ..message(row)?
    })
}

pub(super) fn role(text: &str) -> Result<Role, Failure> {
    named(text, Role::parse)
}

/// A turn whose columns have names that begin with `prefix`.
pub(super) fn turn(row: &SqliteRow, prefix: &str) -> Result<Turn, Failure> {
    let name = |column: &str| format!("{prefix}{column}");
    Ok(Turn {
        id: row.try_get(name("id").as_str())?,
        state: named(row.try_get(name("state").as_str())?, TurnState::parse)?,
        first_seq: number(row, &name("first_seq"))?,
        last_seq: number(row, &name("last_seq"))?,
        iterations: small(row, &name("iterations"))?,
        segments: small(row, &name("segments"))?,
        error_reason: row.try_get(name("error_reason").as_str())?,
        error_message: row.try_get(name("error_message").as_str())?,
        created: time(row, &name("created"))?,
        ended: row
            .try_get::<Option<i64>, _>(name("ended").as_str())?
            .map(Timestamp::from_micros),
    })
}

pub(super) fn due_review(row: &SqliteRow) -> Result<DueReview, Failure> {
    Ok(DueReview {
        team: id(TeamId::parse(row.try_get::<&str, _>("team")?))?,
        session: id(SessionId::parse(row.try_get::<&str, _>("session")?))?,
        user: id(UserId::parse(row.try_get::<&str, _>("user")?))?,
        to_seq: number(row, "to_seq")?,
        created: time(row, "created")?,
        review: NewDueReview {
            id: row.try_get("id")?,
            memory: flag(row, "memory")?,
            skills: flag(row, "skills")?,
            turn: row.try_get("turn")?,
            traceparent: row.try_get("traceparent")?,
        },
    })
}
