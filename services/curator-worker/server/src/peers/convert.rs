//! Between the words of the contract and of the core.

use steward_base::{Integrity, Span, SpanOrigin};
use steward_curator_core::ports::PresentSkill;
use steward_curator_core::review::{Basis, Evidence, Write, WriteResult};
use steward_model::NativeBlocks;
use steward_proto::common::v1 as common;
use steward_proto::skill::v1 as skill;
use steward_tools::{Basis as ToolBasis, CitedEvidence, Effect, EffectResult};

pub(super) fn present_skill(found: &skill::Skill) -> PresentSkill {
    let id = found.name.rsplit('/').next().unwrap_or_default();
    let name = if found.category.is_empty() {
        id.to_owned()
    } else {
        format!("{}/{id}", found.category)
    };
    let mut marks = Vec::new();
    if found.pinned {
        marks.push("pinned".to_owned());
    }
    let owner = match found.provenance() {
        skill::SkillProvenance::Agent => None,
        skill::SkillProvenance::Builtin => Some("bundled"),
        skill::SkillProvenance::Hub => Some("installed"),
        skill::SkillProvenance::User
        | skill::SkillProvenance::Import
        | skill::SkillProvenance::External
        | skill::SkillProvenance::Unspecified => Some("user-owned"),
    };
    marks.extend(owner.map(str::to_owned));
    PresentSkill {
        name,
        description: found.description.clone(),
        marks,
    }
}

pub(super) fn native(native: common::NativeBlocks) -> NativeBlocks {
    NativeBlocks {
        provider: native.provider,
        model: native.model,
        blocks: native.blocks_json,
    }
}

pub(super) fn native_to_pb(native: NativeBlocks) -> common::NativeBlocks {
    common::NativeBlocks {
        provider: native.provider,
        model: native.model,
        blocks_json: native.blocks,
    }
}

pub(super) fn cited(evidence: &Evidence) -> CitedEvidence {
    CitedEvidence {
        spans: evidence.spans.clone(),
        basis: match evidence.basis {
            Basis::Stated => ToolBasis::Stated,
            Basis::Checked => ToolBasis::Checked,
            Basis::SeenOnce => ToolBasis::SeenOnce,
        },
        integrity: evidence.integrity,
    }
}

/// The run adds evidence, reason and opening words.
pub(super) fn write(effect: Effect, line: String) -> Write {
    Write {
        tool: effect.tool,
        action: effect.action,
        target: effect.target,
        result: match effect.result {
            EffectResult::Accepted => WriteResult::Accepted,
            EffectResult::Proposed => WriteResult::Proposed,
            EffectResult::Unchanged => WriteResult::Unchanged,
            EffectResult::Refused => WriteResult::Refused,
        },
        reason: effect.reason,
        gate: effect.gate,
        preview: String::new(),
        revision: effect.revision,
        evidence: None,
        why: String::new(),
        line,
    }
}

pub(super) fn span(span: &common::Span) -> Span {
    let name = span.name.clone();
    let origin = match span.source() {
        common::SpanSource::User => SpanOrigin::User(name),
        common::SpanSource::Assistant => SpanOrigin::Assistant,
        common::SpanSource::Tool => SpanOrigin::Tool(name),
        common::SpanSource::System => SpanOrigin::System,
        // What nobody accounts for counts as from outside.
        common::SpanSource::External | common::SpanSource::Unspecified => SpanOrigin::External(name),
    };
    let integrity = match span.integrity() {
        common::Integrity::External | common::Integrity::Unspecified => Integrity::External,
        common::Integrity::UnknownTool => Integrity::UnknownTool,
        common::Integrity::Workspace => Integrity::Workspace,
        common::Integrity::Person => Integrity::Person,
        common::Integrity::Operator => Integrity::Operator,
    };
    Span {
        start: span.start,
        end: span.end,
        origin,
        integrity,
    }
}
