//! Memory for people.

use steward_proto::memory::v1 as pb;
use steward_proto::memory::v1::operation::Action;

use crate::output::{Cell, NOTICE, Output, Tone, first_line, printable, short, time, word};

pub(super) fn list(output: &mut Output, answer: &pb::ListEntriesResponse) {
    let rows = answer
        .entries
        .iter()
        .map(|entry| {
            let (text, tone) = match (entry.blocked_category.as_str(), entry.stale_cause.as_str()) {
                ("", "") => (entry.content.clone(), Tone::Plain),
                ("", _) => (format!("[no longer holds] {}", entry.content), Tone::Side),
                (category, _) => (format!("[blocked: {category}] {}", entry.content), Tone::Notice),
            };
            vec![
                Cell::toned(text, tone),
                entry.revision.to_string().into(),
                Cell::side(time(entry.update_time.as_ref())),
                Cell::name(short(&entry.name)),
            ]
        })
        .collect();
    output.table(
        &["entry", "rev", "changed", "id"],
        rows,
        "Nothing is remembered here yet.",
    );
    budget(output, answer.budget);
}

pub(super) fn budget(output: &mut Output, budget: Option<pb::Budget>) {
    let budget = budget.unwrap_or_default();
    output.aside(&format!("{} of {} characters used", budget.used, budget.limit));
}

pub(super) fn entry(output: &mut Output, entry: &pb::Entry) {
    output.line(&printable(&entry.content));
    output.line("");
    let provenance = entry.provenance.clone().unwrap_or_default();
    let mut properties = vec![
        ("name", Cell::name(entry.name.as_str())),
        ("revision", entry.revision.to_string().into()),
        ("created", time(entry.create_time.as_ref()).into()),
        ("changed", time(entry.update_time.as_ref()).into()),
    ];
    properties.extend(origin(&provenance));
    properties.push(("blocked", Cell::toned(entry.blocked_category.as_str(), Tone::Notice)));
    properties.push(("no longer holds", Cell::toned(entry.stale_cause.as_str(), Tone::Notice)));
    output.record(properties);
}

/// Where something came from, property by property.
pub(super) fn origin(provenance: &pb::Provenance) -> Vec<(&'static str, Cell)> {
    let evidence = provenance.evidence.clone().unwrap_or_default();
    let holds = provenance.holds.clone().unwrap_or_default();
    vec![
        ("for", short(&provenance.author).into()),
        ("origin", word(provenance.origin().as_str_name(), "ORIGIN_").into()),
        ("session", short(&provenance.session).into()),
        ("job", provenance.job.as_str().into()),
        ("rests on", evidence.spans.join(" ").into()),
        ("why", provenance.reason.as_str().into()),
        ("approved by", short(&provenance.approved_by).into()),
        ("holds until", time(holds.until_time.as_ref()).into()),
        ("while", holds.checks.join("\n").into()),
    ]
}

pub(super) fn history(output: &mut Output, answer: &pb::ListEntryRevisionsResponse) {
    let rows = answer
        .revisions
        .iter()
        .map(|revision| {
            let provenance = revision.provenance.clone().unwrap_or_default();
            let text = if revision.removed {
                Cell::side("(removed)")
            } else {
                first_line(&revision.content, 60).into()
            };
            let origin = word(provenance.origin().as_str_name(), "ORIGIN_");
            vec![
                Cell::name(revision.revision.to_string()),
                Cell::side(time(revision.create_time.as_ref())),
                origin.into(),
                short(&provenance.author).into(),
                text,
            ]
        })
        .collect();
    output.table(&["rev", "when", "origin", "for", "text"], rows, "No revisions.");
}

pub(super) fn diff(output: &mut Output, answer: &pb::DiffRevisionsResponse) {
    let lines = answer.lines.iter().map(|line| {
        let sign = match line.change() {
            pb::diff_line::Change::Added => '+',
            pb::diff_line::Change::Removed => '-',
            pb::diff_line::Change::Same | pb::diff_line::Change::Unspecified => ' ',
        };
        format!("{sign}{}", line.text)
    });
    output.diff_lines(lines);
}

pub(super) fn snapshot(output: &mut Output, answer: &pb::GetSnapshotResponse) {
    if answer.text.is_empty() {
        output.line("Nothing is remembered yet.");
    } else {
        output.line(printable(&answer.text).trim_end());
    }
    for stale in &answer.stale_entries {
        output.aside(&format!(
            "left out: {}: {}",
            short(&stale.entry),
            printable(&stale.cause)
        ));
    }
}

/// What an operation would do, in one line or as many as its text has.
pub(super) fn operation(operation: &pb::Operation) -> String {
    match &operation.action {
        Some(Action::Add(add)) => format!("add: {}", add.content),
        Some(Action::Replace(replace)) => format!("replace “{}”: {}", replace.old_text, replace.content),
        Some(Action::Remove(remove)) => format!("remove “{}”", remove.old_text),
        None => "nothing".to_owned(),
    }
}

/// What an operation did.
pub(super) fn change(output: &mut Output, change: &pb::Change) {
    output.line(&match change.kind() {
        pb::change::Kind::Added => format!("Added {}.", short(&change.entry)),
        pb::change::Kind::Unchanged => "It is there already; nothing changed.".to_owned(),
        pb::change::Kind::Replaced => format!("Replaced; it said: {}", printable(&change.old_content)),
        pb::change::Kind::Removed => format!("Removed: {}", printable(&change.old_content)),
        pb::change::Kind::Unspecified => "Changed.".to_owned(),
    });
    if !change.similar_content.is_empty() {
        output.line(&format!(
            "{NOTICE}Another entry says nearly the same:{NOTICE:#} {}",
            printable(&change.similar_content)
        ));
    }
}
