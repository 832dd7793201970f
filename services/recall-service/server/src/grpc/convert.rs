//! Between the wire's messages and the core's types. No message type is known outside of `grpc`.

mod message;
mod search;
mod session;

pub(super) use message::{message_from_pb, message_to_pb, messages_from_pb};
pub(super) use search::answer_to_pb;
pub(super) use session::{
    client_tools_from_pb, counters_from_pb, exposures_from_pb, frozen_from_pb, open_calls_from_pb, prefix_from_pb,
    session_to_pb, source_to_pb, sources_from_pb, turn_to_pb, turn_update_from_pb, usage_from_pb, usage_to_pb,
};

use steward_base::{FieldViolations, Integrity, Timestamp};
use steward_proto::common::v1 as common;
use steward_proto::recall::v1 as pb;
use steward_recall_core::message::Role;

pub(super) fn time_to_pb(at: Timestamp) -> prost_types::Timestamp {
    let (seconds, nanos) = at.to_parts();
    prost_types::Timestamp { seconds, nanos }
}

pub(super) fn time_from_pb(at: &prost_types::Timestamp) -> Timestamp {
    Timestamp::from_parts(at.seconds, at.nanos)
}

pub(super) fn duration_from_pb(duration: Option<prost_types::Duration>) -> std::time::Duration {
    duration
        .and_then(|duration| duration.try_into().ok())
        .unwrap_or_default()
}

/// The wire counts from 1, since 0 means "not given".
pub(super) fn integrity_to_pb(integrity: Integrity) -> i32 {
    i32::from(integrity.level()) + 1
}

/// `None` where it is not given; an unknown number is recorded.
pub(super) fn integrity_from_pb(number: i32, field: &str, violations: &mut FieldViolations) -> Option<Integrity> {
    if number == common::Integrity::Unspecified as i32 {
        return None;
    }
    let known = u8::try_from(number - 1).ok().and_then(Integrity::from_level);
    if known.is_none() {
        violations.add(field, "is unknown");
    }
    known
}

pub(super) fn role_to_pb(role: Role) -> pb::MessageRole {
    match role {
        Role::User => pb::MessageRole::User,
        Role::Assistant => pb::MessageRole::Assistant,
        Role::Tool => pb::MessageRole::Tool,
    }
}

pub(super) fn role_from_pb(number: i32, field: &str, violations: &mut FieldViolations) -> Option<Role> {
    match pb::MessageRole::try_from(number) {
        Ok(pb::MessageRole::User) => Some(Role::User),
        Ok(pb::MessageRole::Assistant) => Some(Role::Assistant),
        Ok(pb::MessageRole::Tool) => Some(Role::Tool),
        Ok(pb::MessageRole::Unspecified) | Err(_) => {
            violations.add(field, "must be user, assistant or tool");
            None
        }
    }
}
