//! `steward memory erase`: a person's right to be forgotten, as far as memory goes.

use anyhow::ensure;
use clap::Args;
use steward_proto::memory::v1 as pb;

use crate::Said;
use crate::connect::Session;
use crate::output::{Cell, Output, short, word};
use crate::verbs::permitted;

/// Arguments of `steward memory erase`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Of whom: id or full name; yourself by default (another one: admins).
    #[arg(long)]
    user: Option<String>,
    /// Also what the team shares that rests on this person's words alone.
    #[arg(long)]
    shared: bool,
    /// Do not ask first.
    #[arg(long, short)]
    yes: bool,
}

/// Runs the verb. Exit code 1 when something is found afterwards.
pub(super) async fn run(arguments: Arguments, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let user = session.user_name(arguments.user.as_deref());
    let question = format!("erase for good what memory holds on {user}? There is no way back");
    ensure!(permitted(arguments.yes, &question, output), "nothing was erased");
    let request = pb::EraseUserMemoryRequest {
        user,
        shared: arguments.shared,
    };
    let answer = session.client.memory.erase_user_memory(request).await?;
    output.answer(&answer, show)?;
    if answer.found_after > 0 {
        Err(Said.into())
    } else {
        Ok(())
    }
}

fn show(output: &mut Output, answer: &pb::EraseUserMemoryResponse) {
    output.line(&format!(
        "Erased {} entries with {} revisions, {} proposals and {} other traces.",
        answer.entries, answer.revisions, answer.proposals, answer.others
    ));
    if answer.found_after > 0 {
        output.warn(&format!(
            "{} traces are still found afterwards; this is a fault of Steward, please report it",
            answer.found_after
        ));
    }
    let rows: Vec<_> = answer
        .derived_entries
        .iter()
        .map(|derived| {
            let what = if derived.erased { "erased" } else { "stays" };
            vec![
                Cell::name(short(&derived.entry)),
                what.into(),
                word(derived.support().as_str_name(), "SUPPORT_").into(),
                Cell::side(derived.entry.as_str()),
            ]
        })
        .collect();
    if !rows.is_empty() {
        output.line("");
        output.table(&["shared entry", "", "rests on the person", "name"], rows, "");
    }
}
