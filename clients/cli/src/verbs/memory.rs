//! `steward memory`: list, add, replace, remove, history, revert, snapshot, proposals, approve, reject,
//! import, export.

mod transfer;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use steward_proto::memory::v1 as pb;
use steward_proto::memory::v1::operation::Action;

use crate::connect::{Session, request_id};
use crate::output::{NOTICE, Output, first_line, printable, short, time, word};

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
}

/// Verbs of `steward memory`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List the entries of a store, and how full it is.
    List {
        #[command(flatten)]
        store: Store,
    },
    /// Add an entry.
    Add {
        /// The text.
        content: String,
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
        store: Store,
    },
    /// Remove the entry that contains a text.
    Remove {
        /// A text that only this entry contains.
        old: String,
        #[command(flatten)]
        store: Store,
    },
    /// Show how an entry came to be.
    History {
        /// Full name of the entry, as `list` shows it.
        entry: String,
    },
    /// Make an earlier revision the present one again.
    Revert {
        /// Full name of the entry.
        entry: String,
        /// Number of the revision.
        revision: u64,
    },
    /// Print what a new session is shown.
    Snapshot {
        /// Project whose notes are shown too.
        #[arg(long, default_value = "")]
        project: String,
    },
    /// List writes that wait for a decision.
    Proposals,
    /// Apply a proposal.
    Approve {
        /// Id or full name.
        proposal: String,
    },
    /// Refuse a proposal.
    Reject {
        /// Id or full name.
        proposal: String,
        /// Why.
        reason: String,
    },
    /// Add the entries of a text file, with a line `§` between two entries.
    Import {
        /// The file; `-` for standard input.
        file: PathBuf,
        /// Say what is in the file; send nothing.
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        store: Store,
    },
    /// Print the entries of a store, with a line `§` between two entries.
    Export {
        /// Write to this new file instead.
        #[arg(long)]
        file: Option<PathBuf>,
        #[command(flatten)]
        store: Store,
    },
}

/// Runs a verb.
pub async fn run(verb: Verb, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let memory = &session.client.memory;
    match verb {
        Verb::List { store } => list(&store.name(session), session, output).await,
        Verb::Add { content, store } => {
            apply(
                Action::Add(pb::AddEntry { content }),
                store.name(session),
                session,
                output,
            )
            .await
        }
        Verb::Replace { old, content, store } => {
            let action = Action::Replace(pb::ReplaceEntry { old_text: old, content });
            apply(action, store.name(session), session, output).await
        }
        Verb::Remove { old, store } => {
            apply(
                Action::Remove(pb::RemoveEntry { old_text: old }),
                store.name(session),
                session,
                output,
            )
            .await
        }
        Verb::History { entry } => {
            let request = pb::ListEntryRevisionsRequest {
                parent: entry,
                page_size: 200,
                page_token: String::new(),
            };
            output.answer(&memory.list_entry_revisions(request).await?, show_history)
        }
        Verb::Revert { entry, revision } => {
            let request = pb::RevertEntryRequest {
                name: entry,
                revision,
                etag: String::new(),
                request_id: request_id(),
            };
            output.answer(&memory.revert_entry(request).await?, |output, _| {
                output.line("Reverted.");
            })
        }
        Verb::Snapshot { project } => {
            let request = pb::GetSnapshotRequest {
                user: session.user.clone(),
                project,
                ..pb::GetSnapshotRequest::default()
            };
            output.answer(&memory.get_snapshot(request).await?, |output, answer| {
                output.line(if answer.text.is_empty() {
                    "Nothing is remembered yet."
                } else {
                    answer.text.trim_end()
                });
            })
        }
        Verb::Proposals => {
            let request = pb::ListProposalsRequest {
                parent: session.team.clone(),
                ..pb::ListProposalsRequest::default()
            };
            output.answer(&memory.list_proposals(request).await?, show_proposals)
        }
        Verb::Approve { proposal } => {
            let request = pb::ApproveProposalRequest {
                name: session.child("memoryProposals", &proposal),
                operations: Vec::new(),
            };
            output.answer(&memory.approve_proposal(request).await?, |output, _| {
                output.line("Applied.");
            })
        }
        Verb::Import { file, dry_run, store } => {
            transfer::import(store.name(session), &file, dry_run, session, output).await
        }
        Verb::Export { file, store } => transfer::export(store.name(session), file.as_deref(), session, output).await,
        Verb::Reject { proposal, reason } => {
            let request = pb::RejectProposalRequest {
                name: session.child("memoryProposals", &proposal),
                reason,
            };
            output.answer(&memory.reject_proposal(request).await?, |output, _| {
                output.line("Rejected.");
            })
        }
    }
}

async fn list(store: &str, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let request = pb::ListEntriesRequest {
        parent: store.to_owned(),
        page_size: 500,
        page_token: String::new(),
    };
    output.answer(&session.client.memory.list_entries(request).await?, |output, answer| {
        let rows = answer
            .entries
            .iter()
            .map(|entry| {
                let text = if entry.blocked_category.is_empty() {
                    entry.content.clone()
                } else {
                    format!(
                        "{NOTICE}[blocked: {}]{NOTICE:#} {}",
                        entry.blocked_category, entry.content
                    )
                };
                vec![
                    text,
                    entry.revision.to_string(),
                    time(entry.update_time.as_ref()),
                    entry.name.clone(),
                ]
            })
            .collect();
        output.table(
            &["entry", "rev", "changed", "name"],
            rows,
            "Nothing is remembered here yet.",
        );
        let budget = answer.budget.unwrap_or_default();
        output.aside(&format!("{} of {} characters used", budget.used, budget.limit));
    })
}

async fn apply(action: Action, store: String, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let request = pb::ApplyRequest {
        store,
        operations: vec![pb::Operation { action: Some(action) }],
        request_id: request_id(),
        ..pb::ApplyRequest::default()
    };
    output.answer(&session.client.memory.apply(request).await?, |output, answer| {
        if let Some(proposal) = &answer.proposal {
            output.line(&format!("Proposed as {}; a maintainer decides.", short(&proposal.name)));
        }
        for change in &answer.changes {
            output.line(&match change.kind() {
                pb::change::Kind::Added => format!("Added {}.", change.entry),
                pb::change::Kind::Unchanged => "It is there already; nothing changed.".to_owned(),
                pb::change::Kind::Replaced => format!("Replaced; it said: {}", printable(&change.old_content)),
                pb::change::Kind::Removed => format!("Removed: {}", printable(&change.old_content)),
                pb::change::Kind::Unspecified => "Changed.".to_owned(),
            });
        }
        if let Some(budget) = answer.budget {
            output.aside(&format!("{} of {} characters used", budget.used, budget.limit));
        }
    })
}

fn show_history(output: &mut Output, answer: &pb::ListEntryRevisionsResponse) {
    let rows = answer
        .revisions
        .iter()
        .map(|revision| {
            let provenance = revision.provenance.clone().unwrap_or_default();
            let text = if revision.removed {
                "(removed)".to_owned()
            } else {
                first_line(&revision.content, 60)
            };
            let origin = word(provenance.origin().as_str_name(), "ORIGIN_");
            vec![
                revision.revision.to_string(),
                time(revision.create_time.as_ref()),
                origin,
                short(&provenance.author).to_owned(),
                text,
            ]
        })
        .collect();
    output.table(&["rev", "when", "origin", "for", "text"], rows, "No revisions.");
}

fn show_proposals(output: &mut Output, answer: &pb::ListProposalsResponse) {
    let rows = answer
        .proposals
        .iter()
        .map(|proposal| {
            let what = proposal
                .operations
                .iter()
                .filter_map(|operation| operation.action.as_ref())
                .map(|action| match action {
                    Action::Add(add) => format!("add: {}", add.content),
                    Action::Replace(replace) => format!("replace “{}”: {}", replace.old_text, replace.content),
                    Action::Remove(remove) => format!("remove “{}”", remove.old_text),
                });
            vec![
                short(&proposal.name).to_owned(),
                time(proposal.create_time.as_ref()),
                what.collect::<Vec<_>>().join("\n"),
                proposal.cause.clone(),
            ]
        })
        .collect();
    output.table(
        &["proposal", "since", "change", "why a proposal"],
        rows,
        "Nothing waits for a decision.",
    );
}
