//! `steward memory import` and `export`: the entries of a store as one text, with a line `§` between two entries (`M-2`);
//! and all that memory holds on a person, item by item (`M-14`).

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use steward_base::entries;
use steward_proto::memory::v1 as pb;
use steward_proto::memory::v1::export_user_memory_response::Holding;

use super::{Store, show};
use crate::Said;
use crate::connect::{Session, request_id};
use crate::output::{Cell, Output, counted, first_line, json_of, printable, short};
use crate::verbs::{new_file, read_bytes, write_new};

/// Arguments of `steward memory export`.
#[derive(Debug, Args)]
pub struct Export {
    /// Write to this new file instead; only you can read it.
    #[arg(long)]
    file: Option<PathBuf>,
    /// All that memory holds on you: every store, history and proposals included; a JSON document a line.
    #[arg(long, conflicts_with_all = ["team_notes", "project", "target"])]
    everything: bool,
    #[command(flatten)]
    store: Store,
}

/// Prints the entries of a store, or writes them to a new file.
pub(super) async fn export(arguments: Export, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    if arguments.everything {
        return everything(arguments.file.as_deref(), session, output).await;
    }
    let request = pb::ExportEntriesRequest {
        store: arguments.store.name(session),
    };
    let answer = session.client.memory.export_entries(request).await?;
    if let Some(file) = &arguments.file {
        write_new(file, &answer.file).with_context(|| format!("cannot write {}", file.display()))?;
        output.aside(&format!(
            "{} written to {}",
            entries_of(answer.entries as usize),
            file.display()
        ));
    }
    output.answer(&answer, |output, answer| {
        if arguments.file.is_none() && !answer.file.is_empty() {
            output.line(printable(&String::from_utf8_lossy(&answer.file)).trim_end_matches('\n'));
        }
        if answer.damaged_entries > 0 {
            output.warn(&format!(
                "{} of the store cannot be read and is left out; `steward doctor` checks the stores",
                entries_of(answer.damaged_entries as usize)
            ));
        }
    })
}

fn entries_of(count: usize) -> String {
    if count == 1 {
        "1 entry".to_owned()
    } else {
        format!("{count} entries")
    }
}

/// All that is held on the caller: a line of JSON for each thing.
async fn everything(file: Option<&Path>, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let request = pb::ExportUserMemoryRequest {
        user: session.user.clone(),
    };
    let mut stream = session.client.memory.export_user_memory(request).await?;
    let mut file = file
        .map(|path| new_file(path).with_context(|| format!("cannot write {}", path.display())))
        .transpose()?;
    let mut count = 0;
    while let Some(item) = stream.message().await? {
        count += 1;
        match &mut file {
            Some(file) => {
                writeln!(file, "{}", serde_json::to_string(&json_of(&item)?)?).context("cannot write the file")?;
                output.progress(&counted(count, "item"));
            }
            None => output.item(&item, holding)?,
        }
    }
    output.progress("");
    if let Some(file) = file {
        file.sync_all().context("cannot write the file")?;
    }
    output.aside(&counted(count, "item"));
    Ok(())
}

fn holding(output: &mut Output, item: &pb::ExportUserMemoryResponse) {
    let said = match &item.holding {
        Some(Holding::Revision(held)) => {
            let revision = held.revision.clone().unwrap_or_default();
            let state = match (held.present, revision.removed) {
                (_, true) => "removed",
                (true, _) => "present",
                (false, _) => "past",
            };
            format!(
                "{state:8} {} revision {}: {}",
                short(&held.entry),
                revision.revision,
                first_line(&revision.content, 80)
            )
        }
        Some(Holding::Proposal(proposal)) => {
            let what: Vec<_> = proposal.operations.iter().map(show::operation).collect();
            format!(
                "proposal {}: {}",
                short(&proposal.name),
                first_line(&what.join("; "), 80)
            )
        }
        Some(Holding::Held(held)) => format!("held     {}: {}", short(&held.name), held.preview),
        None => return,
    };
    output.line(&printable(&said));
}

/// Adds the entries of a file to a store. Exit code 1 when one of them is not remembered now: refused, or held since it is
/// no text.
pub(super) async fn import(
    store: String,
    file: &Path,
    dry_run: bool,
    session: &Session,
    output: &mut Output,
) -> anyhow::Result<()> {
    let bytes = read_bytes(file)?;
    // The service says what became of each in their order; the texts are here.
    let texts = entries::import(&String::from_utf8_lossy(&bytes));
    let request = pb::ImportEntriesRequest {
        store,
        file: bytes.into(),
        dry_run,
        request_id: request_id(),
    };
    let answer = session.client.memory.import_entries(request).await?;
    let held = became(&answer, "held");
    let refused = became(&answer, "refused");
    output.answer(&answer, |output, answer| {
        let same = texts.len() == answer.results.len();
        let rows = answer.results.iter().enumerate().map(|(index, result)| {
            let (outcome, why) = outcome(result);
            let text = match (&result.held, texts.get(index)) {
                (Some(held), _) => held.preview.clone(),
                (None, Some(text)) if same => first_line(text, 60),
                (None, _) => format!("entry {}", index + 1),
            };
            vec![Cell::state(outcome), text.into(), Cell::side(why)]
        });
        output.table(&["", "entry", ""], rows.collect(), "The file has no entries.");
        let kept = if dry_run { ", nothing was kept" } else { "" };
        let missing = if held + refused > 0 {
            "; what is held or refused is not remembered"
        } else {
            ""
        };
        output.aside(&format!(
            "{}, {held} held, {refused} refused{kept}{missing}",
            entries_of(answer.results.len())
        ));
    })?;
    if held + refused > 0 { Err(Said.into()) } else { Ok(()) }
}

fn became(answer: &pb::ImportEntriesResponse, what: &str) -> usize {
    answer.results.iter().filter(|result| outcome(result).0 == what).count()
}

/// What became of an entry, and why where there is more to say.
fn outcome(result: &pb::ImportResult) -> (&'static str, String) {
    if !result.refused_reason.is_empty() {
        return (
            "refused",
            format!("{} ({})", result.refused_message, result.refused_reason),
        );
    }
    if result.held.is_some() {
        return ("held", "no text; `steward memory held list` shows it".to_owned());
    }
    match result.change.as_ref().map(pb::Change::kind) {
        Some(pb::change::Kind::Unchanged) => ("unchanged", String::new()),
        Some(_) => ("added", String::new()),
        None => ("proposed", String::new()),
    }
}
