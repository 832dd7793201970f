//! What was done, and the check that nobody changed the account of it.

use steward_proto::hub::v1 as pb;

use crate::connect::Session;
use crate::output::{Cell, Output, gather, short, time};

pub(super) async fn list(limit: usize, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let hub = &session.client.hub;
    let answer = gather(limit, |page_size, page_token| {
        hub.list_hub_audit_entries(pb::ListHubAuditEntriesRequest {
            parent: session.team.clone(),
            page_size,
            page_token,
        })
    });
    output.answer(&answer.await?, |output, answer| {
        let rows = answer.entries.iter().map(|entry| {
            vec![
                Cell::name(entry.sequence.to_string()),
                Cell::side(time(entry.time.as_ref())),
                entry.action.as_str().into(),
                entry.subject.as_str().into(),
                short(&entry.actor).into(),
                facts(entry).into(),
            ]
        });
        let head = ["", "when", "what", "of", "by", ""];
        output.table(&head, rows.collect(), "Nothing yet.");
        output.more(answer);
    })
}

/// The facts that people go by; digests are for programs.
fn facts(entry: &pb::HubAuditEntry) -> String {
    let shown = [
        "verdict",
        "signatures",
        "was",
        "decision",
        "reason",
        "forced",
        "reference",
        "problem",
        "problems",
    ];
    let facts = entry.facts.iter().filter(|fact| shown.contains(&fact.key.as_str()));
    let facts: Vec<_> = facts.map(|fact| format!("{} {}", fact.key, fact.value)).collect();
    facts.join(", ")
}

pub(super) async fn prove(entry: u64, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let request = pb::CheckHubAuditEntryRequest {
        name: session.child("hubAuditEntries", &entry.to_string()),
    };
    let answer = session.client.hub.check_hub_audit_entry(request).await?;
    let good = answer.included && answer.first_broken == 0;
    output.answer(&answer, |output, answer| {
        let broken = match answer.first_broken {
            0 => "whole".to_owned(),
            number => format!("broken at entry {number}"),
        };
        let number = answer.entry.as_ref().map_or(0, |entry| entry.sequence);
        let included = if answer.included { "is in it" } else { "is not in it" };
        output.record(vec![
            ("chain", broken.into()),
            ("entries", answer.entry_count.to_string().into()),
            ("entry", format!("{number} {included}").into()),
            ("root", answer.root_sha256.as_str().into()),
        ]);
    })?;
    if good { Ok(()) } else { Err(crate::Said.into()) }
}
