//! `steward memory`: what Steward remembers: look at it, change it, take it out, bring it in, erase it, decide on proposals.

mod change;
mod checks;
mod erase;
mod held;
mod inbox;
mod show;
mod transfer;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use steward_proto::memory::v1 as pb;
use steward_proto::memory::v1::operation::Action;

use crate::connect::{Session, request_id};
use crate::output::{ALL, Output, gather};

/// Which store.
#[derive(Debug, Clone, Args)]
pub struct Store {
    /// The agent's notes or your profile.
    #[arg(long, value_enum, default_value_t = Target::Notes)]
    target: Target,
    /// The team's notes instead of your own.
    #[arg(long, conflicts_with = "project")]
    team_notes: bool,
    /// The notes of a project of the team.
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
}

/// What a store is for.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Target {
    /// Environment, conventions, quirks of tools.
    Notes,
    /// Who you are and how you like to work.
    Profile,
}

impl Store {
    fn name(&self, session: &Session) -> String {
        let target = match self.target {
            Target::Notes => "notes",
            Target::Profile => "profile",
        };
        if self.team_notes {
            return format!("{}/memory/{target}", session.team);
        }
        match &self.project {
            Some(project) => format!("{}/projects/{project}/memory/{target}", session.team),
            None => format!("{}/memory/{target}", session.user),
        }
    }

    /// Full name of something in the store given as an id or a full name.
    fn child(&self, collection: &str, given: &str, session: &Session) -> String {
        if given.contains('/') {
            given.to_owned()
        } else {
            format!("{}/{collection}/{given}", self.name(session))
        }
    }
}

/// An entry of a store.
#[derive(Debug, Clone, Args)]
pub struct Entry {
    /// Id, as `list` shows it, or full name.
    entry: String,
    #[command(flatten)]
    store: Store,
}

impl Entry {
    fn name(&self, session: &Session) -> String {
        self.store.child("entries", &self.entry, session)
    }
}

/// Verbs of `steward memory`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List the entries of a store, and how full it is.
    List {
        #[command(flatten)]
        store: Store,
    },
    /// Show an entry with where it came from.
    Show(Entry),
    /// Add an entry.
    Add {
        /// The text.
        content: String,
        #[command(flatten)]
        holds: change::Holds,
        #[command(flatten)]
        store: Store,
    },
    /// Replace the entry that contains a text.
    Replace {
        /// A text that only this entry contains.
        old: String,
        /// The new entry.
        content: String,
        #[command(flatten)]
        holds: change::Holds,
        #[command(flatten)]
        store: Store,
    },
    /// Remove the entry that contains a text.
    Remove {
        /// A text that only this entry contains.
        old: String,
        #[command(flatten)]
        store: Store,
    },
    /// Say that an entry still holds, and for how long from now on.
    Confirm {
        #[command(flatten)]
        entry: Entry,
        #[command(flatten)]
        holds: change::Holds,
    },
    /// Run the checks that entries of a store name, in a folder, and report what no longer holds.
    Check {
        /// The folder; the present one by default.
        #[arg(long, value_name = "FOLDER")]
        dir: Option<PathBuf>,
        #[command(flatten)]
        store: Store,
    },
    /// Show how an entry came to be.
    History(Entry),
    /// Show what changed between two revisions of an entry.
    Diff {
        #[command(flatten)]
        entry: Entry,
        /// Number of the earlier revision; 0 for nothing.
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// Number of the later revision; 0 for the latest.
        #[arg(long, default_value_t = 0)]
        to: u64,
    },
    /// Make an earlier revision the present one again.
    Revert {
        #[command(flatten)]
        entry: Entry,
        /// Number of the revision.
        revision: u64,
    },
    /// Print what a new session is shown.
    Snapshot {
        /// Project whose notes are shown too.
        #[arg(long, default_value = "")]
        project: String,
    },
    /// Writes that wait for a decision.
    #[command(subcommand)]
    Inbox(inbox::Verb),
    /// Print the entries of a store, with a line `§` between two; or all that is held on you.
    Export(transfer::Export),
    /// Add the entries of a text file, with a line `§` between two.
    Import {
        /// The file; `-` for standard input.
        file: PathBuf,
        /// Say what would become of each entry; keep nothing.
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        store: Store,
    },
    /// What an import kept although it is no text.
    #[command(subcommand)]
    Held(held::Verb),
    /// Erase for good all that memory holds on you, history included.
    Erase(erase::Arguments),
}

/// Runs a verb.
pub async fn run(verb: Verb, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let memory = &session.client.memory;
    match verb {
        Verb::List { store } => list(&store.name(session), session, output).await,
        Verb::Show(entry) => {
            let request = pb::GetEntryRequest {
                name: entry.name(session),
            };
            output.answer(&memory.get_entry(request).await?, |output, answer| {
                if let Some(entry) = &answer.entry {
                    show::entry(output, entry);
                }
            })
        }
        Verb::Add { content, holds, store } => {
            let action = Action::Add(pb::AddEntry { content });
            change::apply(action, Some(&holds), store.name(session), session, output).await
        }
        Verb::Replace {
            old,
            content,
            holds,
            store,
        } => {
            let action = Action::Replace(pb::ReplaceEntry { old_text: old, content });
            change::apply(action, Some(&holds), store.name(session), session, output).await
        }
        Verb::Remove { old, store } => {
            let action = Action::Remove(pb::RemoveEntry { old_text: old });
            change::apply(action, None, store.name(session), session, output).await
        }
        Verb::Confirm { entry, holds } => change::confirm(entry.name(session), &holds, session, output).await,
        Verb::Check { dir, store } => checks::run(store.name(session), dir, session, output).await,
        Verb::Inbox(verb) => inbox::run(verb, session, output).await,
        Verb::Import { file, dry_run, store } => {
            transfer::import(store.name(session), &file, dry_run, session, output).await
        }
        Verb::Export(arguments) => transfer::export(arguments, session, output).await,
        Verb::Held(verb) => held::run(verb, session, output).await,
        Verb::Erase(arguments) => erase::run(arguments, session, output).await,
        verb => past(verb, session, output).await,
    }
}

/// The verbs on revisions, and on what is shown of the present ones.
async fn past(verb: Verb, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let memory = &session.client.memory;
    match verb {
        Verb::History(entry) => {
            let answer = gather(ALL, |page_size, page_token| {
                memory.list_entry_revisions(pb::ListEntryRevisionsRequest {
                    parent: entry.name(session),
                    page_size,
                    page_token,
                })
            });
            output.answer(&answer.await?, show::history)
        }
        Verb::Diff { entry, from, to } => {
            let request = pb::DiffRevisionsRequest {
                name: entry.name(session),
                from_revision: from,
                to_revision: to,
            };
            output.answer(&memory.diff_revisions(request).await?, show::diff)
        }
        Verb::Revert { entry, revision } => {
            let request = pb::RevertEntryRequest {
                name: entry.name(session),
                revision,
                etag: String::new(),
                request_id: request_id(),
            };
            output.answer(&memory.revert_entry(request).await?, |output, answer| {
                output.line("Reverted.");
                if let Some(entry) = &answer.entry {
                    show::entry(output, entry);
                }
            })
        }
        Verb::Snapshot { project } => {
            let request = pb::GetSnapshotRequest {
                user: session.user.clone(),
                project,
                ..pb::GetSnapshotRequest::default()
            };
            output.answer(&memory.get_snapshot(request).await?, show::snapshot)
        }
        _ => Ok(()),
    }
}

async fn list(store: &str, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let answer = gather(ALL, |page_size, page_token| {
        session.client.memory.list_entries(pb::ListEntriesRequest {
            parent: store.to_owned(),
            page_size,
            page_token,
        })
    });
    output.answer(&answer.await?, show::list)
}
