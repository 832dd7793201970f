//! From the core's review to the contract's.

use steward_base::names::{session_name, user_name};
use steward_base::{Integrity, Timestamp};
use steward_curator_core::review::{
    Basis, Evidence, Mode, Rejected, Review, ReviewState, Write, WriteResult, review_name,
};
use steward_curator_core::summary::{self, Detail};
use steward_model::{Money, Usage};
use steward_proto::common::v1 as common;
use steward_proto::learning::v1 as pb;
use steward_proto::learning::v1::review_write::Result as PbResult;

pub(super) fn review(review: &Review) -> pb::Review {
    let session = session_name(&review.team, &review.session);
    let report = &review.report;
    let problem = review.problem.clone();
    pb::Review {
        name: review.name(),
        user: user_name(&review.team, &review.user),
        to_seq: review.to_seq,
        memory: review.kinds.memory,
        skills: review.kinds.skills,
        state: state(review.state).into(),
        summary: review.summary.clone(),
        writes: report.writes.iter().map(|one| write(one, &session)).collect(),
        error_reason: problem
            .as_ref()
            .map(|problem| problem.reason.clone())
            .unwrap_or_default(),
        error_message: problem.map(|problem| problem.message).unwrap_or_default(),
        attempts: review.attempts,
        iterations: report.iterations,
        usage: Some(usage(&report.usage)),
        cost_microdollars: Money::from_picodollars(report.cost.into()).microdollars(),
        unpriced_calls: report.unpriced,
        mode: report.mode.map(Mode::as_str).unwrap_or_default().to_owned(),
        rubric: report.rubric.clone(),
        integrity: report
            .integrity
            .map_or(common::Integrity::Unspecified, integrity)
            .into(),
        create_time: Some(timestamp(review.created_at)),
        end_time: review.ended_at.map(timestamp),
        rejected: report.rejected.iter().map(rejected).collect(),
        absorbed_by: review
            .absorbed_by
            .as_ref()
            .map(|by| review_name(&review.team, by))
            .unwrap_or_default(),
        session,
    }
}

/// As [`review`], and told so much of it.
pub(super) fn told(found: &Review, detail: Detail) -> pb::Review {
    let summary = match detail {
        _ if found.summary.is_empty() => String::new(),
        Detail::On => found.summary.clone(),
        Detail::Off | Detail::Verbose => summary::render(&found.report.writes, detail),
    };
    pb::Review {
        summary,
        ..review(found)
    }
}

fn state(state: ReviewState) -> pb::ReviewState {
    match state {
        ReviewState::Queued => pb::ReviewState::Queued,
        ReviewState::Running => pb::ReviewState::Running,
        ReviewState::Succeeded => pb::ReviewState::Succeeded,
        ReviewState::NothingToSave => pb::ReviewState::NothingToSave,
        ReviewState::Failed => pb::ReviewState::Failed,
        ReviewState::Cancelled => pb::ReviewState::Cancelled,
        ReviewState::Dead => pb::ReviewState::Dead,
        ReviewState::Absorbed => pb::ReviewState::Absorbed,
    }
}

fn write(write: &Write, session: &str) -> pb::ReviewWrite {
    let result = match write.result {
        WriteResult::Accepted => PbResult::Accepted,
        WriteResult::Proposed => PbResult::Proposed,
        WriteResult::Unchanged => PbResult::Unchanged,
        WriteResult::Refused => PbResult::Refused,
    };
    pb::ReviewWrite {
        tool: write.tool.clone(),
        action: write.action.clone(),
        target: write.target.clone(),
        result: result.into(),
        reason: write.reason.clone(),
        evidence: write.evidence.as_ref().map(|cited| evidence(cited, session)),
        why: write.why.clone(),
        revision: write.revision.clone(),
        gate: write.gate.clone(),
        preview: write.preview.clone(),
    }
}

fn evidence(evidence: &Evidence, session: &str) -> common::Evidence {
    let basis = match evidence.basis {
        Basis::Stated => common::Basis::Stated,
        Basis::Checked => common::Basis::Checked,
        Basis::SeenOnce => common::Basis::SeenOnce,
    };
    common::Evidence {
        session: session.to_owned(),
        spans: evidence.spans.clone(),
        basis: basis.into(),
        integrity: integrity(evidence.integrity).into(),
    }
}

fn rejected(rejected: &Rejected) -> pb::RejectedCandidate {
    pb::RejectedCandidate {
        candidate: rejected.candidate.clone(),
        reason: rejected.reason.clone(),
    }
}

fn usage(usage: &Usage) -> common::Usage {
    common::Usage {
        input_tokens: usage.input,
        cached_input_tokens: usage.cached_input,
        cache_write_tokens: usage.cache_write,
        output_tokens: usage.output,
    }
}

fn integrity(integrity: Integrity) -> common::Integrity {
    match integrity {
        Integrity::External => common::Integrity::External,
        Integrity::UnknownTool => common::Integrity::UnknownTool,
        Integrity::Workspace => common::Integrity::Workspace,
        Integrity::Person => common::Integrity::Person,
        Integrity::Operator => common::Integrity::Operator,
    }
}

pub(super) fn timestamp(at: Timestamp) -> prost_types::Timestamp {
    let (seconds, nanos) = at.to_parts();
    prost_types::Timestamp { seconds, nanos }
}
