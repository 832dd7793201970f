//! Between the core's library and the contract's.

use steward_base::Timestamp;
use steward_base::names::TeamId;
use steward_proto::skill::v1 as pb;
use steward_proto::skill::v1::transition_result::Outcome as PbOutcome;
use steward_skill_core::library::{Age, LibraryRecord, Outcome, Snapshot, TransitionResult, snapshot_name};

use super::super::convert::time_to_pb;

pub(super) fn record_to_pb(found: &LibraryRecord) -> pb::LibraryRecord {
    let record = &found.record;
    let time = |at: Option<Timestamp>| at.and_then(time_to_pb);
    pb::LibraryRecord {
        name: found.exact_name(),
        uid: record.uid.clone(),
        age: age_to_pb(found.age()).into(),
        pinned: record.pinned,
        uses: record.usage.uses,
        patches: record.usage.patches,
        last_use_time: time(record.usage.last_used),
        last_change_time: time_to_pb(found.last_change),
        create_time: time_to_pb(record.created),
        etag: found.etag(),
        referenced: found.referenced,
    }
}

pub(super) fn snapshot_to_pb(team: &TeamId, snapshot: &Snapshot) -> pb::LibrarySnapshot {
    pb::LibrarySnapshot {
        name: snapshot_name(team, &snapshot.run),
        skills: u32::try_from(snapshot.skills.len()).unwrap_or(u32::MAX),
        create_time: time_to_pb(snapshot.taken),
    }
}

pub(super) fn result_to_pb(result: TransitionResult) -> pb::TransitionResult {
    let (outcome, reason) = match result.outcome {
        Outcome::Applied => (PbOutcome::Applied, ""),
        Outcome::Unchanged => (PbOutcome::Unchanged, ""),
        Outcome::Conflict(reason) => (PbOutcome::Conflict, reason),
        Outcome::Refused(gate) => (PbOutcome::Refused, gate),
    };
    pb::TransitionResult {
        uid: result.uid,
        name: result.name,
        outcome: outcome.into(),
        from: age_to_pb(result.from).into(),
        to: age_to_pb(result.to).into(),
        reason: reason.to_owned(),
    }
}

pub(super) const fn age_from_pb(age: pb::SkillAge) -> Option<Age> {
    match age {
        pb::SkillAge::Unspecified => None,
        pb::SkillAge::Active => Some(Age::Active),
        pb::SkillAge::Stale => Some(Age::Stale),
        pb::SkillAge::Archived => Some(Age::Archived),
    }
}

const fn age_to_pb(age: Age) -> pb::SkillAge {
    match age {
        Age::Active => pb::SkillAge::Active,
        Age::Stale => pb::SkillAge::Stale,
        Age::Archived => pb::SkillAge::Archived,
    }
}
