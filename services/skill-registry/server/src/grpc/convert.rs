//! Between wire messages and the core's types. Wire types parse, core types validate; nothing else in this crate sees
//! both.

use prost_types::Timestamp as PbTimestamp;
use steward_base::names::{self, TeamId};
use steward_base::{FieldViolations, Integrity, Origin, Timestamp};
use steward_proto::common::v1 as common;
use steward_proto::skill::v1 as pb;
use steward_proto::skill::v1::manage_skill_request::Action;
use steward_skill_core::gate::Provenance;
use steward_skill_core::header::Variable;
use steward_skill_core::index::Entry;
use steward_skill_core::list_skills::{Broken, warning};
use steward_skill_core::manage_skill::{Manage, ManageRequest};
use steward_skill_core::name::{self, Scope};
use steward_skill_core::record::{Evidence, FileEntry, HeaderState, Revision, SkillRecord, State, Usage};
use steward_skill_core::{Actor, Error};
use tonic::{Request, Status};

use super::fail;

/// The actor behind a request, in the view of the user whose resource name stands in `field`.
pub(super) fn viewer<T>(request: &Request<T>, field: &str, user: &str) -> Result<Actor, Status> {
    let caller = steward_grpc::caller(request)?;
    let (team, user) = names::parse_user(user)
        .map_err(|problem| fail(Error::from(FieldViolations::one(field, problem.to_string()))))?;
    Actor::in_view(caller, &team, &user).map_err(fail)
}

#[expect(clippy::unnecessary_wraps, reason = "message fields are options")]
pub(super) fn time_to_pb(at: Timestamp) -> Option<PbTimestamp> {
    let (seconds, nanos) = at.to_parts();
    Some(PbTimestamp { seconds, nanos })
}

pub(super) fn skill_to_pb(record: &SkillRecord) -> pb::Skill {
    let (state, archived) = match &record.state {
        State::Active => (pb::SkillState::Active, None),
        State::Archived(archival) => (pb::SkillState::Archived, Some(archival.at)),
    };
    let broken_reason = match &record.header {
        HeaderState::Read(_) => String::new(),
        HeaderState::Broken(problem) => problem.clone(),
    };
    pb::Skill {
        name: record.resource_name(),
        scope: scope_to_pb(&record.scope).into(),
        category: record.category.to_string(),
        description: record.description().to_owned(),
        provenance: provenance_to_pb(record.provenance).into(),
        state: state.into(),
        pinned: record.pinned,
        revision: record.revision.clone(),
        r#use: Some(use_to_pb(&record.usage)),
        broken_reason,
        create_time: time_to_pb(record.created),
        update_time: time_to_pb(record.updated),
        archive_time: archived.and_then(time_to_pb),
        warning: warning(record),
        full_name: record.full_name(),
        protected: record.protected,
        required_variables: record
            .header()
            .map(|header| header.required_environment_variables.clone())
            .unwrap_or_default(),
        manual_only: record.header().is_some_and(|header| header.manual_only),
        hidden: false,
    }
}

pub(super) fn variable_to_pb(variable: Variable, set_by_team: bool) -> pb::SkillVariable {
    pb::SkillVariable {
        name: variable.name,
        prompt: variable.prompt,
        help: variable.help,
        optional: variable.optional,
        set_by_team,
    }
}

/// In a list: an archived copy is named exactly, since a later one may have its name.
pub(super) fn listed_to_pb(record: &SkillRecord) -> pb::Skill {
    let mut skill = skill_to_pb(record);
    if !record.is_active() {
        let id = name::archived_id(&record.name, &record.uid);
        skill.name = name::resource_name(&record.team, &record.scope, &id);
    }
    skill
}

pub(super) fn broken_to_pb(broken: &Broken) -> pb::Skill {
    match broken {
        Broken::Header(record, _) => listed_to_pb(record),
        // What such a row says of itself cannot be trusted, so only its name is shown.
        Broken::Record(record) => pb::Skill {
            name: record.skill.clone(),
            broken_reason: "its record is damaged".to_owned(),
            ..pb::Skill::default()
        },
        Broken::Outside(outside) => pb::Skill {
            name: format!("external/{}", outside.folder),
            scope: pb::SkillScope::External.into(),
            provenance: pb::SkillProvenance::External.into(),
            broken_reason: outside.problem.clone(),
            ..pb::Skill::default()
        },
    }
}

const fn scope_to_pb(scope: &Scope) -> pb::SkillScope {
    match scope {
        Scope::User(_) => pb::SkillScope::User,
        Scope::Team => pb::SkillScope::Team,
        Scope::External => pb::SkillScope::External,
        Scope::Hub => pb::SkillScope::Hub,
        Scope::Builtin => pb::SkillScope::Builtin,
    }
}

const fn provenance_to_pb(provenance: Provenance) -> pb::SkillProvenance {
    match provenance {
        Provenance::AgentCreated => pb::SkillProvenance::Agent,
        Provenance::UserMade => pb::SkillProvenance::User,
        Provenance::Hub => pb::SkillProvenance::Hub,
        Provenance::Builtin => pb::SkillProvenance::Builtin,
        Provenance::External => pb::SkillProvenance::External,
        Provenance::Imported => pb::SkillProvenance::Import,
    }
}

fn use_to_pb(usage: &Usage) -> pb::SkillUse {
    pb::SkillUse {
        view_count: usage.views,
        use_count: usage.uses,
        patch_count: usage.patches,
        automatic_view_count: usage.review_views,
        last_use_time: usage.last_used.and_then(time_to_pb),
    }
}

pub(super) fn file_to_pb(entry: &FileEntry) -> pb::SkillFile {
    pb::SkillFile {
        path: entry.path.to_string(),
        size_bytes: entry.size,
        sha256: entry.sha256.clone(),
    }
}

pub(super) fn exposure_to_pb(entry: &Entry) -> common::Exposure {
    common::Exposure {
        artifact: entry.resource.clone(),
        revision: entry.revision.clone(),
        stage: "indexed".to_owned(),
        ..common::Exposure::default()
    }
}

pub(super) fn revision_to_pb(team: &TeamId, revision: &Revision) -> pb::SkillRevision {
    let by = &revision.by;
    pb::SkillRevision {
        revision: revision.id.clone(),
        parent_revision: revision.parent.clone().unwrap_or_default(),
        files: revision.files.iter().map(file_to_pb).collect(),
        action: revision.action.clone(),
        author: by
            .user
            .as_ref()
            .map_or_else(String::new, |user| names::user_name(team, user)),
        origin: origin_to_pb(by.origin).into(),
        session: by
            .session
            .as_ref()
            .map_or_else(String::new, |session| format!("teams/{team}/sessions/{session}")),
        job: by.job.as_ref().map_or_else(String::new, |job| job.id.clone()),
        evidence: by.evidence.first().map(evidence_to_pb),
        reason: by.reason.clone(),
        create_time: time_to_pb(revision.created),
    }
}

pub(super) const fn origin_to_pb(origin: Origin) -> common::Origin {
    match origin {
        Origin::Foreground => common::Origin::Foreground,
        Origin::Review => common::Origin::Review,
        Origin::Curation => common::Origin::Curation,
        Origin::Schedule => common::Origin::Schedule,
        Origin::Delegate => common::Origin::Delegate,
        Origin::Hub => common::Origin::Hub,
        Origin::Builtin => common::Origin::Builtin,
        Origin::Import => common::Origin::Import,
    }
}

pub(super) fn evidence_to_pb(evidence: &Evidence) -> common::Evidence {
    let basis = match evidence.basis.as_str() {
        "stated" => common::Basis::Stated,
        "checked" => common::Basis::Checked,
        "seen_once" => common::Basis::SeenOnce,
        _ => common::Basis::Unspecified,
    };
    common::Evidence {
        session: evidence.session.clone(),
        spans: evidence.spans.clone(),
        basis: basis.into(),
        integrity: evidence.integrity.map_or(0, |level| i32::from(level.level()) + 1),
    }
}

fn evidence_from_pb(violations: &mut FieldViolations, evidence: common::Evidence) -> Evidence {
    let basis = match evidence.basis() {
        common::Basis::Unspecified => "",
        common::Basis::Stated => "stated",
        common::Basis::Checked => "checked",
        common::Basis::SeenOnce => "seen_once",
    };
    let level = u8::try_from(evidence.integrity)
        .ok()
        .and_then(|number| number.checked_sub(1));
    violations.take("evidence.session", names::parse_session(&evidence.session));
    if evidence.spans.len() > MAX_SPANS || evidence.spans.iter().any(|span| span.len() > MAX_SPAN_BYTES) {
        violations.add(
            "evidence.spans",
            format!("must be at most {MAX_SPANS} ids of at most {MAX_SPAN_BYTES} bytes"),
        );
    }
    Evidence {
        basis: basis.to_owned(),
        integrity: level.and_then(Integrity::from_level),
        session: evidence.session,
        spans: evidence.spans,
    }
}

const MAX_SPANS: usize = 100;
const MAX_SPAN_BYTES: usize = 64;

/// The request without its caller. `hash` is over all of it.
pub(super) fn manage_from_pb(request: pb::ManageSkillRequest, hash: String) -> Result<ManageRequest, FieldViolations> {
    let mut violations = FieldViolations::new();
    let evidence = request
        .evidence
        .map(|evidence| evidence_from_pb(&mut violations, evidence));
    let action = request.action.map(|action| action_from_pb(&mut violations, action));
    if action.is_none() {
        violations.add(
            "action",
            "must be one of create, edit, patch, delete, write_file, remove_file",
        );
    }
    violations.into_result()?;
    let action = action.ok_or_else(|| FieldViolations::one("action", "must be given"))?;
    Ok(ManageRequest {
        skill: request.skill,
        action,
        base_revision: request.base_revision,
        request_id: request.request_id,
        request_hash: hash,
        evidence,
        reason: request.reason,
        validate_only: request.validate_only,
    })
}

fn action_from_pb(violations: &mut FieldViolations, action: Action) -> Manage {
    match action {
        Action::Create(create) => {
            let in_team = match create.scope() {
                pb::SkillScope::Unspecified | pb::SkillScope::User => false,
                pb::SkillScope::Team => true,
                pb::SkillScope::Builtin | pb::SkillScope::External | pb::SkillScope::Hub => {
                    violations.add("create.scope", "must be user or team; the others have their own makers");
                    false
                }
            };
            Manage::Create {
                content: create.content,
                category: create.category,
                in_team,
            }
        }
        Action::Edit(edit) => Manage::Edit { content: edit.content },
        Action::Patch(patch) => Manage::Patch {
            path: patch.path,
            old: patch.old_text,
            new: patch.new_text,
            all: patch.replace_all,
        },
        Action::Delete(delete) => Manage::Delete {
            absorbed_into: delete.absorbed_into,
        },
        Action::WriteFile(file) => Manage::WriteFile {
            path: file.path,
            content: file.content,
        },
        Action::RemoveFile(file) => Manage::RemoveFile { path: file.path },
    }
}
