//! `steward memory held`: bytes that were brought in as an entry and are no text.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Subcommand;
use steward_proto::memory::v1 as pb;

use super::Store;
use crate::connect::Session;
use crate::output::{Cell, Output, short, size, time};
use crate::verbs::write_new;

/// Verbs of `steward memory held`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List what is kept, oldest first.
    List {
        #[command(flatten)]
        store: Store,
    },
    /// Write the bytes to a new file.
    Save {
        /// Id or full name.
        held: String,
        /// The file.
        file: PathBuf,
        #[command(flatten)]
        store: Store,
    },
    /// Let go of it.
    Delete {
        /// Id or full name.
        held: String,
        #[command(flatten)]
        store: Store,
    },
}

/// Runs a verb.
pub(super) async fn run(verb: Verb, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let memory = &session.client.memory;
    let list = |store: &Store| {
        memory.list_held_entries(pb::ListHeldEntriesRequest {
            parent: store.name(session),
        })
    };
    match verb {
        Verb::List { store } => output.answer(&list(&store).await?, |output, answer| {
            let rows = answer.held_entries.iter().map(|held| {
                vec![
                    Cell::name(short(&held.name)),
                    Cell::side(time(held.create_time.as_ref())),
                    size(held.content.len() as u64).into(),
                    held.preview.as_str().into(),
                ]
            });
            output.table(
                &["held", "since", "size", "looks like"],
                rows.collect(),
                "Nothing is held.",
            );
        }),
        Verb::Save { held, file, store } => {
            let name = store.child("held", &held, session);
            let found = list(&store).await?.held_entries;
            let Some(found) = found.into_iter().find(|found| found.name == name) else {
                bail!("{name} is not there; `steward memory held list` shows what is");
            };
            write_new(&file, &found.content).with_context(|| format!("cannot write {}", file.display()))?;
            output.answer(&found, |output, found| {
                output.line(&format!(
                    "{} written to {}.",
                    size(found.content.len() as u64),
                    file.display()
                ));
            })
        }
        Verb::Delete { held, store } => {
            let request = pb::DeleteHeldEntryRequest {
                name: store.child("held", &held, session),
            };
            output.answer(&memory.delete_held_entry(request).await?, |output, _| {
                output.line("Gone.");
            })
        }
    }
}
