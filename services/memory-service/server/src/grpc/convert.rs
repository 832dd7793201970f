//! Between the wire's messages and the core's types. No message type is known outside of `grpc`.

use steward_base::names::{EntryId, SessionId, TeamId, parse_session, session_name, user_name};
use steward_base::{FieldViolations, Integrity, Origin, Timestamp};
use steward_memory_core::book::DAMAGED;
use steward_memory_core::{
    Action, Basis, Entry, Error, Evidence, Held, Holds, Listed, Operation, Proposal, Provenance, Revision, State, Step,
    StoreName, proposal_name, screen,
};
use steward_proto::common::v1 as common;
use steward_proto::memory::v1 as pb;

/// The operations of a request; those that name no action are recorded.
pub(super) fn operations_from_pb(operations: Vec<pb::Operation>, violations: &mut FieldViolations) -> Vec<Operation> {
    let mut parsed = Vec::with_capacity(operations.len());
    for (at, operation) in operations.into_iter().enumerate() {
        match operation.action {
            Some(pb::operation::Action::Add(add)) => parsed.push(Operation::Add { content: add.content }),
            Some(pb::operation::Action::Replace(replace)) => {
                parsed.push(Operation::Replace {
                    old_text: replace.old_text,
                    content: replace.content,
                });
            }
            Some(pb::operation::Action::Remove(remove)) => parsed.push(Operation::Remove {
                old_text: remove.old_text,
            }),
            None => violations.add(format!("operations[{at}].action"), "must be add, replace or remove"),
        }
    }
    parsed
}

fn operation_to_pb(operation: &Operation) -> pb::Operation {
    let action = match operation.clone() {
        Operation::Add { content } => pb::operation::Action::Add(pb::AddEntry { content }),
        Operation::Replace { old_text, content } => {
            pb::operation::Action::Replace(pb::ReplaceEntry { old_text, content })
        }
        Operation::Remove { old_text } => pb::operation::Action::Remove(pb::RemoveEntry { old_text }),
    };
    pb::Operation { action: Some(action) }
}

/// The evidence of a request in `team`; wrong fields are recorded. A message without session and spans is no evidence.
pub(super) fn evidence_from_pb(
    evidence: Option<common::Evidence>,
    team: Option<&TeamId>,
    violations: &mut FieldViolations,
) -> Option<Evidence> {
    let evidence = evidence.filter(|evidence| !evidence.session.is_empty() || !evidence.spans.is_empty())?;
    let session = match parse_session(&evidence.session) {
        Ok((of, session)) if team.is_none_or(|team| *team == of) => Some(session),
        Ok(_) => {
            violations.add("evidence.session", "must be a session of the store's team");
            None
        }
        Err(problem) => {
            violations.add("evidence.session", problem.to_string());
            None
        }
    };
    let basis = match evidence.basis() {
        common::Basis::Unspecified if evidence.basis != 0 => {
            violations.add("evidence.basis", "is unknown");
            None
        }
        common::Basis::Unspecified => None,
        common::Basis::Stated => Some(Basis::Stated),
        common::Basis::Checked => Some(Basis::Checked),
        common::Basis::SeenOnce => Some(Basis::SeenOnce),
    };
    let integrity = match u8::try_from(evidence.integrity) {
        Ok(0) => None,
        Ok(number) if number <= Integrity::Operator.level() + 1 => Integrity::from_level(number - 1),
        _ => {
            violations.add("evidence.integrity", "is unknown");
            None
        }
    };
    Some(Evidence {
        session: session?,
        spans: evidence.spans,
        basis,
        integrity,
    })
}

fn evidence_to_pb(team: &TeamId, evidence: &Evidence) -> common::Evidence {
    let basis = match evidence.basis {
        None => common::Basis::Unspecified,
        Some(Basis::Stated) => common::Basis::Stated,
        Some(Basis::Checked) => common::Basis::Checked,
        Some(Basis::SeenOnce) => common::Basis::SeenOnce,
    };
    let integrity = match evidence.integrity {
        None => common::Integrity::Unspecified,
        Some(Integrity::External) => common::Integrity::External,
        Some(Integrity::UnknownTool) => common::Integrity::UnknownTool,
        Some(Integrity::Workspace) => common::Integrity::Workspace,
        Some(Integrity::Person) => common::Integrity::Person,
        Some(Integrity::Operator) => common::Integrity::Operator,
    };
    common::Evidence {
        session: session_name(team, &evidence.session),
        spans: evidence.spans.clone(),
        basis: basis.into(),
        integrity: integrity.into(),
    }
}

fn origin_to_pb(origin: Origin) -> common::Origin {
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

fn provenance_to_pb(team: &TeamId, from: &Provenance) -> pb::Provenance {
    let session = |session: &SessionId| session_name(team, session);
    pb::Provenance {
        author: from
            .author
            .as_ref()
            .map(|user| user_name(team, user))
            .unwrap_or_default(),
        origin: origin_to_pb(from.origin).into(),
        session: from.session.as_ref().map(session).unwrap_or_default(),
        job: from.job.clone().unwrap_or_default(),
        evidence: from.evidence.as_ref().map(|evidence| evidence_to_pb(team, evidence)),
        reason: from.reason.clone(),
        approved_by: from
            .approved_by
            .as_ref()
            .map(|user| user_name(team, user))
            .unwrap_or_default(),
        holds: (!from.holds.is_unlimited()).then(|| holds_to_pb(&from.holds)),
    }
}

fn holds_to_pb(holds: &Holds) -> pb::Holds {
    pb::Holds {
        until_time: holds.until.map(time_to_pb),
        checks: holds.checks.clone(),
    }
}

/// How long something holds, as given; what is wrong with it, the core says.
pub(super) fn holds_from_pb(holds: Option<pb::Holds>) -> Holds {
    let holds = holds.unwrap_or_default();
    Holds {
        until: holds
            .until_time
            .map(|time| Timestamp::from_parts(time.seconds, time.nanos)),
        checks: holds.checks,
    }
}

pub(super) fn time_to_pb(at: Timestamp) -> prost_types::Timestamp {
    let (seconds, nanos) = at.to_parts();
    prost_types::Timestamp { seconds, nanos }
}

pub(super) fn entry_to_pb(store: &StoreName, entry: Entry, at: Timestamp) -> pb::Entry {
    pb::Entry {
        name: store.entry(&entry.id),
        revision: u64::from(entry.revision),
        blocked_category: screen::finding(&entry.content).unwrap_or_default(),
        provenance: Some(provenance_to_pb(&store.team, &entry.provenance)),
        create_time: Some(time_to_pb(entry.created)),
        update_time: Some(time_to_pb(entry.changed)),
        etag: entry.revision.to_string(),
        stale_cause: entry.stale(at).map(|stale| stale.to_string()).unwrap_or_default(),
        content: entry.content,
    }
}

/// An entry that cannot be read: that it is there, and nothing that could be taken for its text.
pub(super) fn damaged_to_pb(store: &StoreName, id: &str) -> pb::Entry {
    pb::Entry {
        name: format!("{store}/entries/{id}"),
        blocked_category: DAMAGED.to_owned(),
        ..pb::Entry::default()
    }
}

pub(super) fn revision_to_pb(team: &TeamId, revision: Revision) -> pb::EntryRevision {
    pb::EntryRevision {
        revision: u64::from(revision.number),
        removed: revision.action == Action::Removed,
        content: revision.content.unwrap_or_default(),
        provenance: Some(provenance_to_pb(team, &revision.provenance)),
        create_time: Some(time_to_pb(revision.at)),
    }
}

/// Characters in use and permitted.
pub(super) fn budget_to_pb(used: usize, limit: usize) -> pb::Budget {
    let number = |value| u32::try_from(value).unwrap_or(u32::MAX);
    pb::Budget {
        used: number(used),
        limit: number(limit),
    }
}

pub(super) fn step_to_pb(store: &StoreName, step: Step) -> pb::Change {
    let (entry, revision) = step.entry();
    let (entry, revision) = (store.entry(entry), u64::from(revision));
    let similar = match &step {
        Step::Added { similar, .. } => similar.clone().unwrap_or_default(),
        Step::AlreadyStored { .. } | Step::Replaced { .. } | Step::Removed { .. } => String::new(),
    };
    let (kind, old_content) = match step {
        Step::Added { .. } => (pb::change::Kind::Added, String::new()),
        Step::AlreadyStored { .. } => (pb::change::Kind::Unchanged, String::new()),
        Step::Replaced { former, .. } => (pb::change::Kind::Replaced, former),
        Step::Removed { former, .. } => (pb::change::Kind::Removed, former),
    };
    pb::Change {
        kind: kind.into(),
        entry,
        revision,
        old_content,
        similar_content: similar,
    }
}

pub(super) fn proposal_to_pb(team: &TeamId, proposal: &Proposal) -> pb::Proposal {
    let state = match proposal.state {
        State::Pending => pb::ProposalState::Pending,
        State::Approved => pb::ProposalState::Approved,
        State::Rejected => pb::ProposalState::Rejected,
        State::Expired => pb::ProposalState::Expired,
    };
    let decided = proposal.decided.as_ref();
    pb::Proposal {
        name: proposal_name(team, &proposal.id),
        store: proposal.store(team).to_string(),
        operations: proposal.operations.iter().map(operation_to_pb).collect(),
        provenance: Some(provenance_to_pb(team, &proposal.provenance)),
        cause: proposal.waiting.explanation().to_owned(),
        state: state.into(),
        decided_by: decided
            .and_then(|decided| decided.by.as_ref())
            .map(|user| user_name(team, user))
            .unwrap_or_default(),
        decision_reason: decided.map(|decided| decided.reason.clone()).unwrap_or_default(),
        create_time: Some(time_to_pb(proposal.created)),
        decide_time: decided.map(|decided| time_to_pb(decided.at)),
        expire_time: Some(time_to_pb(proposal.expires)),
        shown: proposal.shown,
        edited_operations: proposal.edited.iter().flatten().map(operation_to_pb).collect(),
    }
}

/// A listed proposal; of one that cannot be read, that it is there. Nobody can decide on it.
pub(super) fn listed_to_pb(team: &TeamId, listed: &Listed) -> pb::Proposal {
    match listed {
        Ok(proposal) => proposal_to_pb(team, proposal),
        Err(id) => pb::Proposal {
            name: format!("teams/{team}/memoryProposals/{id}"),
            cause: "its record is damaged".to_owned(),
            ..pb::Proposal::default()
        },
    }
}

/// The state asked for: pending unless one is given.
pub(super) fn state_from_pb(state: i32, violations: &mut FieldViolations) -> State {
    match pb::ProposalState::try_from(state) {
        Ok(pb::ProposalState::Unspecified | pb::ProposalState::Pending) => State::Pending,
        Ok(pb::ProposalState::Approved) => State::Approved,
        Ok(pb::ProposalState::Rejected) => State::Rejected,
        Ok(pb::ProposalState::Expired) => State::Expired,
        Err(_) => {
            violations.add("state", "is unknown");
            State::Pending
        }
    }
}

/// The resource name of what a store keeps although it is no text.
pub(super) fn held_name(store: &StoreName, id: &EntryId) -> String {
    format!("{store}/held/{id}")
}

/// Parses `{store}/held/{held}`.
pub(super) fn parse_held(name: &str) -> Result<(StoreName, EntryId), Error> {
    let invalid = || Error::invalid("name", "must have the form {store}/held/{held}");
    let (store, id) = name.rsplit_once("/held/").ok_or_else(invalid)?;
    let store = StoreName::parse(store).map_err(|_| invalid())?;
    Ok((store, EntryId::parse(id).map_err(|_| invalid())?))
}

pub(super) fn held_to_pb(store: &StoreName, held: Held) -> pb::HeldEntry {
    pb::HeldEntry {
        name: held_name(store, &held.id),
        preview: held.preview(),
        create_time: Some(time_to_pb(held.at)),
        content: held.bytes.into(),
    }
}

/// What an optional text holds.
pub(super) fn given(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// A parsed value whose absence has been recorded as a violation already. It is only used after those were reported.
pub(super) fn checked<T>(value: Option<T>, field: &str) -> Result<T, steward_memory_core::Error> {
    value.ok_or_else(|| steward_memory_core::Error::invalid(field, "is not valid"))
}

/// Page size and cursor of a list; wrong ones are recorded.
pub(super) fn page_from_pb(
    page_size: i32,
    page_token: &str,
    arguments: &[&str],
    (default, max): (u32, u32),
    violations: &mut FieldViolations,
) -> (u32, Option<String>) {
    let size = steward_base::page::size(page_size, default, max);
    let cursor = steward_base::page::decode(arguments, page_token);
    for problem in [size.as_ref().err(), cursor.as_ref().err()].into_iter().flatten() {
        for violation in problem.as_slice() {
            violations.add(violation.field.clone(), violation.description.clone());
        }
    }
    (size.unwrap_or(default), cursor.unwrap_or_default())
}
