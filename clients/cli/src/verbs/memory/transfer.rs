//! `steward memory import` and `export`: the entries of a store as one text, with a line `§` between two entries (`M-2`).
//!
//! An import is a row of ordinary additions by a person, so budget, scan and approval apply to each; one entry that is
//! refused hides no other, and what is there already stays as it is (`M-4`).

use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};
use steward_base::entries;
use steward_proto::memory::v1 as pb;
use steward_proto::memory::v1::operation::Action;

use crate::Said;
use crate::connect::{Session, request_id};
use crate::output::{Output, first_line, printable, short};

/// Prints the entries of a store, or writes them to a new file.
pub(super) async fn export(
    store: String,
    file: Option<&Path>,
    session: &Session,
    output: &mut Output,
) -> anyhow::Result<()> {
    let contents = contents(&store, session).await?;
    let text = entries::export(contents.iter().map(String::as_str));
    if let Some(file) = file {
        write_new(file, &text).with_context(|| format!("cannot write {}", file.display()))?;
        output.aside(&format!("{} entries written to {}", contents.len(), file.display()));
    }
    if output.is_json() {
        return output.document(&json!({ "store": store, "entries": contents }));
    }
    if file.is_none() && !text.is_empty() {
        output.line(&printable(&text));
    }
    Ok(())
}

/// Memory is private, and what stands in the way is not for us to overwrite.
fn write_new(file: &Path, text: &str) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(file)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")
}

async fn contents(store: &str, session: &Session) -> anyhow::Result<Vec<String>> {
    let mut request = pb::ListEntriesRequest {
        parent: store.to_owned(),
        page_size: 500,
        page_token: String::new(),
    };
    let mut contents = Vec::new();
    loop {
        let page = session.client.memory.list_entries(request.clone()).await?;
        contents.extend(page.entries.into_iter().map(|entry| entry.content));
        if page.next_page_token.is_empty() {
            return Ok(contents);
        }
        request.page_token = page.next_page_token;
    }
}

/// Adds the entries of a file to a store.
pub(super) async fn import(
    store: String,
    file: &Path,
    dry_run: bool,
    session: &Session,
    output: &mut Output,
) -> anyhow::Result<()> {
    let found = entries::import(&crate::verbs::read_text(file)?);
    let mut results = Vec::with_capacity(found.len());
    let mut failed = 0;
    for (index, content) in found.iter().enumerate() {
        output.progress(&format!("entry {} of {}", index + 1, found.len()));
        let (outcome, detail) = if dry_run {
            ("read".to_owned(), String::new())
        } else {
            add(&store, content, session).await
        };
        output.progress("");
        failed += usize::from(outcome == "failed");
        if !output.is_json() {
            let why = if detail.is_empty() {
                String::new()
            } else {
                format!(" ({detail})")
            };
            output.line(&printable(&format!("{outcome:9} {}{why}", first_line(content, 60))));
        }
        results.push((content, outcome, detail));
    }
    if output.is_json() {
        let entries: Vec<Value> = results
            .iter()
            .map(|(content, outcome, detail)| json!({"content": content, "outcome": outcome, "detail": detail}))
            .collect();
        output.document(&json!({"store": store, "dryRun": dry_run, "failed": failed, "entries": entries}))?;
    } else {
        let kept = if dry_run { ", nothing was kept" } else { "" };
        output.aside(&format!("{} entries, {failed} failed{kept}", results.len()));
    }
    if failed > 0 { Err(Said.into()) } else { Ok(()) }
}

/// Adds one entry; gives what became of it and, where there is more to say, why.
async fn add(store: &str, content: &str, session: &Session) -> (String, String) {
    let add = Action::Add(pb::AddEntry {
        content: content.to_owned(),
    });
    let request = pb::ApplyRequest {
        store: store.to_owned(),
        operations: vec![pb::Operation { action: Some(add) }],
        request_id: request_id(),
        reason: "imported from a file".to_owned(),
        ..pb::ApplyRequest::default()
    };
    match session.client.memory.apply(request).await {
        Ok(answer) => match (&answer.proposal, answer.changes.first().map(pb::Change::kind)) {
            (Some(proposal), _) => ("proposed".to_owned(), short(&proposal.name).to_owned()),
            (None, Some(pb::change::Kind::Unchanged)) => ("unchanged".to_owned(), String::new()),
            _ => ("added".to_owned(), String::new()),
        },
        Err(error) => ("failed".to_owned(), format!("{}: {error}", error.reason)),
    }
}
