//! Items, locks, reports and entries as the wire has them.

use std::collections::{BTreeMap, BTreeSet};

use steward_proto::hub::v1 as pb;
use steward_proto::hub::v1::hub_progress::Stage as PbStage;
use steward_skill_hub::audit::Entry;
use steward_skill_hub::error::Error;
use steward_skill_hub::hub::{Hub, Plan, Preview, Stage};
use steward_skill_hub::lock::{Drift, Lock};
use steward_skill_hub::policy::Trust;
use steward_skill_hub::provenance::{Outcome, Provenance, Signed};
use steward_skill_hub::publish::Publication;
use steward_skill_hub::quarantine::{Approval, Item, State};
use steward_skill_hub::source::Found;
use steward_skill_hub::withdrawal::{Standing, Withdrawal};
use steward_skill_scanner::structure::Problem;
use steward_skill_scanner::{Capabilities, Change, Finding, Report, Severity, Verdict};

use super::super::convert::time_to_pb;

pub(super) const fn trust_to_pb(trust: Trust) -> pb::HubTrust {
    match trust {
        Trust::Builtin => pb::HubTrust::Builtin,
        Trust::Trusted => pb::HubTrust::Trusted,
        Trust::Community => pb::HubTrust::Community,
        Trust::AgentCreated => pb::HubTrust::AgentCreated,
    }
}

pub(super) const fn verdict_to_pb(verdict: Verdict) -> pb::HubVerdict {
    match verdict {
        Verdict::Safe => pb::HubVerdict::Safe,
        Verdict::Caution => pb::HubVerdict::Caution,
        Verdict::Dangerous => pb::HubVerdict::Dangerous,
    }
}

const fn severity_to_pb(severity: Severity) -> pb::HubSeverity {
    match severity {
        Severity::Info => pb::HubSeverity::Info,
        Severity::Low => pb::HubSeverity::Low,
        Severity::Medium => pb::HubSeverity::Medium,
        Severity::High => pb::HubSeverity::High,
        Severity::Critical => pb::HubSeverity::Critical,
    }
}

const fn state_to_pb(state: State) -> pb::HubItemState {
    match state {
        State::Refused => pb::HubItemState::Refused,
        State::Blocked => pb::HubItemState::Blocked,
        State::AwaitingApproval => pb::HubItemState::AwaitingApproval,
        State::Approved => pb::HubItemState::Approved,
        State::Installed => pb::HubItemState::Installed,
        State::Rejected => pb::HubItemState::Rejected,
    }
}

/// Counts of what one skill holds fit.
fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

pub(super) fn finding_to_pb(finding: &Finding, accepted: bool) -> pb::HubFinding {
    pb::HubFinding {
        rule: finding.rule.clone(),
        title: finding.title.clone(),
        severity: severity_to_pb(finding.severity).into(),
        category: finding.category.clone(),
        ast: finding.ast.clone(),
        ave: finding.ave.clone(),
        path: finding.path.clone(),
        line: number(finding.line),
        excerpt: finding.excerpt.clone(),
        revealed: finding.revealed.clone().unwrap_or_default(),
        fix: finding.fix.clone(),
        fingerprint: finding.fingerprint.clone(),
        accepted,
    }
}

fn capabilities_to_pb(capabilities: &Capabilities) -> pb::HubCapabilities {
    let list = |set: &BTreeSet<String>| set.iter().cloned().collect();
    pb::HubCapabilities {
        hosts: list(&capabilities.hosts),
        env: list(&capabilities.env),
        bins: list(&capabilities.bins),
        paths: list(&capabilities.paths),
        tools: list(&capabilities.tools),
        installs: list(&capabilities.installs),
        documents: list(&capabilities.documents),
    }
}

pub(super) fn report_to_pb(report: &Report) -> pb::HubReport {
    let standing = report.findings.iter().map(|finding| finding_to_pb(finding, false));
    let accepted = report.suppressed.iter().map(|finding| finding_to_pb(finding, true));
    let gaps = report.coverage.gaps.iter().map(|gap| pb::HubGap {
        path: gap.path.clone(),
        reason: gap.reason.clone(),
    });
    pb::HubReport {
        scan: report.id(),
        scanner: report.scanner.clone(),
        rule_set: report.rule_set.clone(),
        tree_sha256: report.digest.clone(),
        verdict: verdict_to_pb(report.verdict).into(),
        findings: standing.chain(accepted).collect(),
        files: number(report.coverage.files),
        size_bytes: report.coverage.bytes,
        gaps: gaps.collect(),
        capabilities: Some(capabilities_to_pb(&report.capabilities)),
    }
}

fn signature_to_pb(signed: &Signed) -> pb::HubSignature {
    let mut signature = pb::HubSignature {
        file: signed.signature.file.clone(),
        by_publisher: signed.by_publisher,
        ..pb::HubSignature::default()
    };
    let state = match &signed.signature.outcome {
        Outcome::NotChecked => pb::HubSignatureState::NotChecked,
        Outcome::Verified {
            issuer,
            subject,
            signed_at,
            covers,
        } => {
            signature.issuer.clone_from(issuer);
            signature.subject.clone_from(subject);
            signature.sign_time = time_to_pb(*signed_at);
            signature.covers.clone_from(covers);
            pb::HubSignatureState::Verified
        }
        Outcome::Invalid { why } => {
            signature.problem = why.to_string();
            pb::HubSignatureState::Invalid
        }
        Outcome::Unknown { why } => {
            signature.problem = why.to_string();
            pb::HubSignatureState::Unknown
        }
    };
    signature.set_state(state);
    signature
}

fn signatures_to_pb(provenance: &Provenance) -> Vec<pb::HubSignature> {
    provenance.signatures.iter().map(signature_to_pb).collect()
}

pub(super) fn change_to_pb(change: &Change) -> pb::HubChange {
    let new_findings = change.new_findings.iter();
    pb::HubChange {
        lowered: change.lowered,
        new_findings: new_findings.map(|finding| finding_to_pb(finding, false)).collect(),
        gone_findings: number(change.gone_findings.len()),
        new_capabilities: Some(capabilities_to_pb(&change.new_capabilities)),
        gone_capabilities: Some(capabilities_to_pb(&change.gone_capabilities)),
    }
}

fn approval_to_pb(approval: &Approval) -> pb::HubApproval {
    pb::HubApproval {
        by: approval.by.clone(),
        reason: approval.reason.clone(),
        forced: approval.forced,
        time: time_to_pb(approval.at),
    }
}

fn problem_to_text(problem: &Problem) -> String {
    if problem.path.is_empty() {
        problem.message.clone()
    } else {
        format!("{} {}", problem.path, problem.message)
    }
}

pub(super) fn problems_to_pb(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(problem_to_text).collect()
}

pub(super) fn item_to_pb(team: &str, item: &Item, known: &Known) -> pb::HubItem {
    let resolved = &item.resolved;
    pb::HubItem {
        name: format!("teams/{team}/hubItems/{}", item.id),
        state: state_to_pb(item.state).into(),
        source: resolved.source.clone(),
        reference: resolved.reference.clone(),
        revision: resolved.revision.clone(),
        skill: resolved.name.clone(),
        trust: trust_to_pb(resolved.trust).into(),
        warnings: resolved.warnings.clone(),
        problems: problems_to_pb(&item.problems),
        report: item.report.as_ref().map(report_to_pb),
        change: item.change.as_ref().map(change_to_pb),
        doubts: item.doubts.clone(),
        approval: item.approval.as_ref().map(approval_to_pb),
        requested_by: item.requested_by.clone(),
        create_time: time_to_pb(item.created_at),
        publish_time: resolved.published_at.and_then(time_to_pb),
        withdrawal: item.report.as_ref().and_then(|report| known.of(team, &report.digest)),
        signatures: signatures_to_pb(&item.provenance),
        signature_required: item.provenance.required,
    }
}

pub(super) fn skill_to_pb(team: &str, lock: &Lock, known: &Known) -> pb::HubSkill {
    let files = lock.files.iter().map(|(path, sha256)| pb::HubFile {
        path: path.clone(),
        sha256: sha256.clone(),
    });
    pb::HubSkill {
        name: skill_name(team, &lock.name),
        skill: format!("hub/skills/{}", lock.name),
        source: lock.source.clone(),
        reference: lock.reference.clone(),
        revision: lock.revision.clone(),
        trust: trust_to_pb(lock.trust).into(),
        tree_sha256: lock.digest.clone(),
        files: files.collect(),
        scanner: lock.scanner.clone(),
        rule_set: lock.rule_set.clone(),
        verdict: verdict_to_pb(lock.verdict).into(),
        installed_by: lock.installed_by.clone(),
        install_time: time_to_pb(lock.installed_at),
        forced_reason: lock.forced.clone().unwrap_or_default(),
        item: format!("teams/{team}/hubItems/{}", lock.item),
        withdrawal: known.of(team, &lock.digest),
        signatures: signatures_to_pb(&lock.provenance),
    }
}

/// What is known of withdrawals, for a page of items or skills.
#[derive(Debug, Default)]
pub(super) struct Known {
    withdrawals: BTreeMap<String, Withdrawal>,
    /// Installed skills by the digest of their tree.
    installed: BTreeMap<String, String>,
}

impl Known {
    /// Of a team, as it is now.
    pub(super) async fn read(hub: &Hub, team: &str) -> Result<Self, Error> {
        let all = hub.withdrawals(team).await?;
        let installed = if all.is_empty() {
            Vec::new()
        } else {
            hub.list(team).await?
        };
        let installed = installed.into_iter().map(|installed| installed.lock);
        Ok(Self {
            withdrawals: all.into_iter().map(|found| (found.digest.clone(), found)).collect(),
            installed: installed.map(|lock| (lock.digest, lock.name)).collect(),
        })
    }

    pub(super) fn of(&self, team: &str, digest: &str) -> Option<pb::HubWithdrawal> {
        let found = self.withdrawals.get(digest)?;
        Some(self.to_pb(team, found))
    }

    pub(super) fn to_pb(&self, team: &str, withdrawal: &Withdrawal) -> pb::HubWithdrawal {
        let skill = self.installed.get(&withdrawal.digest);
        withdrawal_to_pb(team, withdrawal, skill.map(String::as_str))
    }
}

pub(super) fn withdrawal_to_pb(team: &str, withdrawal: &Withdrawal, skill: Option<&str>) -> pb::HubWithdrawal {
    let standing = match withdrawal.standing {
        Standing::Reinstated => pb::HubStanding::Reinstated,
        Standing::Yanked => pb::HubStanding::Yanked,
        Standing::Revoked => pb::HubStanding::Revoked,
    };
    pb::HubWithdrawal {
        name: format!("teams/{team}/hubWithdrawals/{}", withdrawal.digest),
        standing: standing.into(),
        cause: withdrawal.cause.told(),
        by: withdrawal.by.clone(),
        reason: withdrawal.reason.clone(),
        time: time_to_pb(withdrawal.at),
        skill: skill.map(|skill| skill_name(team, skill)).unwrap_or_default(),
    }
}

pub(super) fn publication_to_pb(team: &str, publication: Publication, served: bool) -> pb::HubPublication {
    pb::HubPublication {
        name: format!("teams/{team}/hubPublications/{}", publication.name),
        path: format!("/teams/{team}/.well-known/agent-skills/{}", publication.file()),
        skill: publication.skill,
        description: publication.description,
        archive_sha256: publication.archive,
        size_bytes: publication.size,
        tree_sha256: publication.tree,
        revision: publication.revision,
        published_by: publication.by,
        publish_time: time_to_pb(publication.at),
        served,
    }
}

pub(super) fn skill_name(team: &str, skill: &str) -> String {
    format!("teams/{team}/hubSkills/{skill}")
}

pub(super) fn drift_to_pb(drift: Drift) -> pb::HubDrift {
    pb::HubDrift {
        missing: drift.missing,
        extra: drift.extra,
        changed: drift.changed,
    }
}

pub(super) fn found_to_pb(found: Found) -> pb::HubSearchResult {
    pb::HubSearchResult {
        reference: format!("{}:{}", found.source, found.reference),
        source: found.source,
        skill: found.name,
        description: found.description,
        trust: trust_to_pb(found.trust).into(),
        installable: found.installable,
        installs: found.installs,
    }
}

pub(super) fn progress_to_pb(stage: Stage) -> pb::HubProgress {
    match stage {
        Stage::Resolving { source } => pb::HubProgress {
            stage: PbStage::Resolving.into(),
            detail: source,
            ..pb::HubProgress::default()
        },
        Stage::Fetching { revision } => pb::HubProgress {
            stage: PbStage::Fetching.into(),
            detail: revision,
            ..pb::HubProgress::default()
        },
        Stage::Scanning { files, bytes } => pb::HubProgress {
            stage: PbStage::Scanning.into(),
            files: number(files),
            size_bytes: bytes,
            ..pb::HubProgress::default()
        },
    }
}

/// The plan; the diff is the caller's.
pub(super) fn plan_to_pb(team: &str, preview: Preview, diff: String, known: &Known) -> pb::HubPlan {
    let mut plan = pb::HubPlan {
        diff,
        withdrawal: known.of(team, &preview.lock.digest),
        ..pb::HubPlan::default()
    };
    let state = match preview.plan {
        Plan::Current => pb::HubPlanState::Current,
        Plan::Available { revision } => {
            plan.revision = revision;
            pb::HubPlanState::Available
        }
        Plan::Cooling { revision, until } => {
            plan.revision = revision;
            plan.cool_time = time_to_pb(until);
            pb::HubPlanState::Cooling
        }
        Plan::LocalChanges { drift } => {
            plan.drift = Some(drift_to_pb(drift));
            pb::HubPlanState::LocalChanges
        }
        Plan::GoneUpstream => pb::HubPlanState::GoneUpstream,
        Plan::SourceUnavailable { problem } => {
            plan.problem = problem;
            pb::HubPlanState::SourceUnavailable
        }
        Plan::OwnerChanged { revision } => {
            plan.revision = revision;
            pb::HubPlanState::OwnerChanged
        }
    };
    plan.set_state(state);
    if let Some(next) = preview.next {
        plan.next_withdrawal = known.of(team, &next.after.digest());
        plan.revision = next.revision;
        plan.change = next.change.as_ref().map(change_to_pb);
        plan.report = next.report.as_ref().map(report_to_pb);
        plan.problems = problems_to_pb(&next.problems);
        plan.signatures = signatures_to_pb(&next.provenance);
        plan.signature_required = next.provenance.required;
    }
    plan
}

pub(super) fn entry_to_pb(team: &str, entry: Entry) -> pb::HubAuditEntry {
    let facts = entry.details.into_iter().map(|(key, value)| pb::HubFact { key, value });
    pb::HubAuditEntry {
        name: format!("teams/{team}/hubAuditEntries/{}", entry.sequence),
        sequence: entry.sequence,
        time: time_to_pb(entry.at),
        action: entry.action.as_str().to_owned(),
        subject: entry.subject,
        actor: entry.actor,
        facts: facts.collect(),
        previous_sha256: entry.previous,
        entry_sha256: entry.hash,
    }
}
