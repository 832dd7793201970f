//! Items, findings, locks and plans for people.

use steward_proto::hub::v1 as pb;

use crate::output::{Cell, Output, Tone, counted, first_line, short, size, time, word};

/// Widest description of a search result, in characters.
const WIDTH: usize = 60;

pub(super) fn verdict_word(verdict: pb::HubVerdict) -> String {
    word(verdict.as_str_name(), "HUB_VERDICT_")
}

fn verdict(report: Option<&pb::HubReport>) -> Cell {
    let Some(report) = report else { return Cell::default() };
    let tone = match report.verdict() {
        pb::HubVerdict::Safe => Tone::Good,
        pb::HubVerdict::Caution => Tone::Notice,
        pb::HubVerdict::Dangerous => Tone::Bad,
        pb::HubVerdict::Unspecified => Tone::Plain,
    };
    Cell::toned(verdict_word(report.verdict()), tone)
}

fn trust(trust: pb::HubTrust) -> String {
    word(trust.as_str_name(), "HUB_TRUST_")
}

fn state(state: pb::HubItemState) -> Cell {
    let word = word(state.as_str_name(), "HUB_ITEM_STATE_");
    let tone = match state {
        pb::HubItemState::Approved | pb::HubItemState::Installed => Tone::Good,
        pb::HubItemState::Blocked | pb::HubItemState::Refused => Tone::Bad,
        pb::HubItemState::AwaitingApproval => Tone::Notice,
        pb::HubItemState::Rejected => Tone::Side,
        pb::HubItemState::Unspecified => Tone::Plain,
    };
    Cell::toned(word, tone)
}

pub(super) fn results(output: &mut Output, answer: &pb::SearchHubResponse) {
    let rows = answer.results.iter().map(|found| {
        let installs = found.installs.map(|count| count.to_string()).unwrap_or_default();
        let note = if found.installable { "" } else { "listed only" };
        vec![
            Cell::name(found.reference.as_str()),
            trust(found.trust()).into(),
            installs.into(),
            first_line(&found.description, WIDTH).into(),
            Cell::side(note),
        ]
    });
    let head = ["reference", "trust", "installs", "says of itself", ""];
    output.table(&head, rows.collect(), "Nothing found.");
    for failure in &answer.failures {
        output.warn(&format!("{} did not answer: {}", failure.source, failure.problem));
    }
}

pub(super) fn items(output: &mut Output, answer: &pb::ListHubItemsResponse) {
    let rows = answer.items.iter().map(|item| {
        vec![
            Cell::name(short(&item.name)),
            Cell::side(time(item.create_time.as_ref())),
            item.skill.as_str().into(),
            state(item.state()),
            verdict(item.report.as_ref()),
            trust(item.trust()).into(),
            format!("{}:{}", item.source, item.reference).into(),
        ]
    });
    let head = ["item", "since", "skill", "state", "verdict", "trust", "from"];
    output.table(&head, rows.collect(), "Nothing is in quarantine.");
    output.more(answer);
}

pub(super) fn item_with_diff(output: &mut Output, answer: &pb::GetHubItemResponse) {
    item(output, answer.item.as_ref());
    if !answer.diff.is_empty() {
        output.line("");
        output.diff(&answer.diff);
    }
}

pub(super) fn item(output: &mut Output, item: Option<&pb::HubItem>) {
    let Some(item) = item else { return };
    let approval = item.approval.as_ref().map(|approval| {
        let forced = if approval.forced { ", by force" } else { "" };
        format!("{}{forced}: {}", short(&approval.by), approval.reason)
    });
    output.record(vec![
        ("item", Cell::name(short(&item.name))),
        ("skill", item.skill.as_str().into()),
        ("from", format!("{}:{}", item.source, item.reference).into()),
        ("revision", item.revision.as_str().into()),
        ("trust", trust(item.trust()).into()),
        ("state", state(item.state())),
        ("approved", approval.unwrap_or_default().into()),
        ("published", time(item.publish_time.as_ref()).into()),
        ("asked for by", short(&item.requested_by).into()),
    ]);
    withdrawal(output, item.withdrawal.as_ref());
    for warning in &item.warnings {
        output.warn(&format!("its source says: {warning}"));
    }
    for doubt in item.doubts.iter().chain(&item.problems) {
        output.warn(doubt);
    }
    report(output, item.report.as_ref());
    signatures(output, &item.signatures, item.signature_required);
    if let Some(brings) = &item.change {
        output.line("");
        output.head("On top of what is installed");
        change(output, brings);
    }
}

pub(super) fn report(output: &mut Output, report: Option<&pb::HubReport>) {
    let Some(scanned) = report else { return };
    let files = usize::try_from(scanned.files).unwrap_or_default();
    output.line("");
    output.record(vec![
        ("verdict", verdict(Some(scanned))),
        (
            "read",
            format!("{}, {}", counted(files, "file"), size(scanned.size_bytes)).into(),
        ),
        ("scanner", scanned.scanner.as_str().into()),
    ]);
    for gap in &scanned.gaps {
        output.warn(&format!("{} was not judged: {}", gap.path, gap.reason));
    }
    if !scanned.findings.is_empty() {
        output.line("");
    }
    findings(output, &scanned.findings);
    if let Some(reaches) = &scanned.capabilities {
        capabilities(output, "reaches for", reaches);
    }
}

pub(super) fn signatures(output: &mut Output, signatures: &[pb::HubSignature], required: bool) {
    for signature in signatures {
        let state = word(signature.state().as_str_name(), "HUB_SIGNATURE_STATE_");
        let tone = match signature.state() {
            pb::HubSignatureState::Invalid => Tone::Bad,
            pb::HubSignatureState::Verified if signature.by_publisher => Tone::Good,
            _ => Tone::Notice,
        };
        let whose = match signature.state() {
            pb::HubSignatureState::Verified if signature.by_publisher => ", by its publisher",
            pb::HubSignatureState::Verified => ", by nobody who is named here",
            _ => "",
        };
        output.line("");
        output.record(vec![
            ("signature", signature.file.as_str().into()),
            ("says", Cell::toned(format!("{state}{whose}"), tone)),
            ("because", signature.problem.as_str().into()),
            ("signed by", signature.subject.as_str().into()),
            ("vouched by", signature.issuer.as_str().into()),
            ("signed at", time(signature.sign_time.as_ref()).into()),
        ]);
    }
    if required && !signatures.iter().any(|signature| signature.by_publisher) {
        output.warn("a signature by its publisher is required, and there is none");
    }
}

fn findings(output: &mut Output, findings: &[pb::HubFinding]) {
    for finding in findings {
        let severity = word(finding.severity().as_str_name(), "HUB_SEVERITY_");
        let tone = match finding.severity() {
            pb::HubSeverity::High | pb::HubSeverity::Critical => Tone::Bad,
            pb::HubSeverity::Medium => Tone::Notice,
            _ => Tone::Side,
        };
        let place = format!("{}:{}", finding.path, finding.line);
        let accepted = if finding.accepted { " (accepted)" } else { "" };
        output.record(vec![
            (
                severity.as_str(),
                Cell::toned(format!("{}{accepted}", finding.title), tone),
            ),
            ("rule", format!("{} at {place}", finding.rule).into()),
            ("text", finding.excerpt.trim().into()),
            ("comes to", finding.revealed.as_str().into()),
            ("instead", finding.fix.as_str().into()),
        ]);
    }
}

fn capabilities(output: &mut Output, title: &str, reaches: &pb::HubCapabilities) {
    let rows: Vec<(&str, Cell)> = [
        ("hosts", &reaches.hosts),
        ("variables", &reaches.env),
        ("programs", &reaches.bins),
        ("paths", &reaches.paths),
        ("tools", &reaches.tools),
        ("installs", &reaches.installs),
        ("pages", &reaches.documents),
    ]
    .into_iter()
    .filter(|(_, list)| !list.is_empty())
    .map(|(name, list)| (name, Cell::from(list.join(", "))))
    .collect();
    if !rows.is_empty() {
        output.line("");
        output.head(&format!("It {title}"));
        output.record(rows);
    }
}

fn change(output: &mut Output, change: &pb::HubChange) {
    if change.lowered {
        output.warn("its verdict is worse than that of the installed one");
    }
    if change.new_findings.is_empty() {
        output.line("No new findings.");
    }
    findings(output, &change.new_findings);
    if let Some(reaches) = &change.new_capabilities {
        capabilities(output, "newly reaches for", reaches);
    }
}

/// The standing of what is withdrawn; nothing for what is not.
fn standing(withdrawal: Option<&pb::HubWithdrawal>) -> Cell {
    match withdrawal.map(pb::HubWithdrawal::standing) {
        Some(pb::HubStanding::Yanked) => Cell::toned("yanked", Tone::Notice),
        Some(pb::HubStanding::Revoked) => Cell::toned("revoked", Tone::Bad),
        _ => Cell::default(),
    }
}

pub(super) fn skills(output: &mut Output, answer: &pb::ListHubSkillsResponse) {
    let rows = answer.skills.iter().map(|skill| {
        let verdict = verdict_word(skill.verdict());
        let forced = if skill.forced_reason.is_empty() { "" } else { ", forced" };
        vec![
            Cell::name(short(&skill.name)),
            format!("{}:{}", skill.source, skill.reference).into(),
            first_line(&skill.revision, 24).into(),
            trust(skill.trust()).into(),
            format!("{verdict}{forced}").into(),
            Cell::side(time(skill.install_time.as_ref())),
            short(&skill.installed_by).into(),
            standing(skill.withdrawal.as_ref()),
        ]
    });
    let head = ["skill", "from", "revision", "trust", "verdict", "since", "by", ""];
    output.table(&head, rows.collect(), "The hub has installed nothing.");
}

pub(super) fn skill(output: &mut Output, skill: Option<&pb::HubSkill>) {
    let Some(skill) = skill else { return };
    output.record(vec![
        ("name", Cell::name(skill.name.as_str())),
        ("skill", skill.skill.as_str().into()),
        ("from", format!("{}:{}", skill.source, skill.reference).into()),
        ("revision", skill.revision.as_str().into()),
        ("trust", trust(skill.trust()).into()),
        ("verdict", verdict_word(skill.verdict()).into()),
        ("forced", skill.forced_reason.as_str().into()),
        ("tree", skill.tree_sha256.as_str().into()),
        ("files", skill.files.len().to_string().into()),
        ("installed", time(skill.install_time.as_ref()).into()),
        ("by", short(&skill.installed_by).into()),
    ]);
    withdrawal(output, skill.withdrawal.as_ref());
    signatures(output, &skill.signatures, false);
}

pub(super) fn installed(output: &mut Output, answer: &pb::InstallHubItemResponse) {
    if let Some(skill) = &answer.skill {
        let from = format!("{}:{}", skill.source, skill.reference);
        output.line(&format!("Installed {} from {from}.", short(&skill.name)));
    }
    for path in &answer.merged {
        output.line(&format!("{path}: your changes stand beside the new ones."));
    }
    for skill in &answer.set_aside {
        output.line(&format!("{skill} was set aside; it can be restored from the archive."));
    }
}

pub(super) fn drift(output: &mut Output, drift: Option<&pb::HubDrift>) {
    let Some(drift) = drift else { return };
    let lists = [
        ("changed", &drift.changed),
        ("missing", &drift.missing),
        ("not of the install", &drift.extra),
    ];
    for (what, paths) in lists {
        for path in paths {
            output.line(&format!("{what}: {path}"));
        }
    }
}

/// A withdrawal as a warning, or as what a person decided about it.
pub(super) fn withdrawal(output: &mut Output, withdrawal: Option<&pb::HubWithdrawal>) {
    let Some(found) = withdrawal else { return };
    let standing = word(found.standing().as_str_name(), "HUB_STANDING_");
    let told = format!("{standing} ({}): {}", found.cause, found.reason);
    if found.standing() == pb::HubStanding::Reinstated {
        output.line(&told);
    } else {
        output.warn(&told);
    }
}

pub(super) fn withdrawals(output: &mut Output, answer: &pb::ListHubWithdrawalsResponse) {
    let rows = answer.withdrawals.iter().map(|found| {
        let tone = match found.standing() {
            pb::HubStanding::Revoked => Tone::Bad,
            pb::HubStanding::Yanked => Tone::Notice,
            _ => Tone::Side,
        };
        vec![
            Cell::name(short(&found.name)),
            Cell::toned(word(found.standing().as_str_name(), "HUB_STANDING_"), tone),
            short(&found.skill).into(),
            found.cause.as_str().into(),
            first_line(&found.reason, WIDTH).into(),
            Cell::side(time(found.time.as_ref())),
            short(&found.by).into(),
        ]
    });
    let head = ["tree", "standing", "installed as", "cause", "reason", "since", "by"];
    output.table(&head, rows.collect(), "Nothing is withdrawn.");
    output.more(answer);
}

pub(super) fn publications(output: &mut Output, answer: &pb::ListHubPublicationsResponse) {
    let rows = answer.publications.iter().map(|publication| {
        let note = if publication.served { "" } else { "not served" };
        vec![
            Cell::name(short(&publication.name)),
            publication.skill.as_str().into(),
            size(publication.size_bytes).into(),
            first_line(&publication.archive_sha256, 16).into(),
            Cell::side(time(publication.publish_time.as_ref())),
            short(&publication.published_by).into(),
            Cell::side(note),
        ]
    });
    let head = ["skill", "from", "size", "archive", "since", "by", ""];
    output.table(&head, rows.collect(), "The team gives nothing out.");
    output.more(answer);
}

pub(super) fn plan(output: &mut Output, plan: Option<&pb::HubPlan>) {
    let Some(plan) = plan else { return };
    let state = word(plan.state().as_str_name(), "HUB_PLAN_STATE_");
    output.record(vec![
        ("state", state.into()),
        ("revision", plan.revision.as_str().into()),
        ("old enough", time(plan.cool_time.as_ref()).into()),
        ("problem", plan.problem.as_str().into()),
    ]);
    withdrawal(output, plan.withdrawal.as_ref());
    if let Some(next) = &plan.next_withdrawal {
        output.warn(&format!("the newer revision is withdrawn: {}", next.reason));
    }
    drift(output, plan.drift.as_ref());
    for problem in &plan.problems {
        output.warn(problem);
    }
    report(output, plan.report.as_ref());
    signatures(output, &plan.signatures, plan.signature_required);
    if let Some(brings) = &plan.change {
        output.line("");
        output.head("On top of what is installed");
        change(output, brings);
    }
    if !plan.diff.is_empty() {
        output.line("");
        output.diff(&plan.diff);
    }
}
