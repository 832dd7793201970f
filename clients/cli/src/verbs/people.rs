//! `steward people`: everything that is held on a person, over all services: export and erase.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use clap::Subcommand;
use steward_proto::learning::v1 as pb;
use steward_proto::learning::v1::export_person_response::Held;

use crate::Said;
use crate::connect::Session;
use crate::output::{Cell, Output, counted, json_of, short};
use crate::verbs::{new_file, permitted};

/// Verbs of `steward people`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Everything that is held on you, as one archive: a JSON document a line.
    Export {
        /// Write to this new file, which only you can read; else to the terminal.
        #[arg(long)]
        file: Option<PathBuf>,
    },
    /// Erase everything that is held on a person, for good; made again, it goes on with what is left.
    Erase {
        /// Of whom: id or full name; yourself by default (another one: admins).
        #[arg(long)]
        user: Option<String>,
        /// Also what the team's memory shares that rests on this person's words alone.
        #[arg(long)]
        shared: bool,
        /// Do not ask first.
        #[arg(long, short)]
        yes: bool,
    },
}

/// Runs a verb. Exit code 1 when something is left after an erasure.
pub async fn run(verb: Verb, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    match verb {
        Verb::Export { file } => export(file, session, output).await,
        Verb::Erase { user, shared, yes } => {
            let user = session.user_name(user.as_deref());
            let question = format!("erase for good everything that is held on {user}? There is no way back");
            ensure!(permitted(yes, &question, output), "nothing was erased");
            let request = pb::ErasePersonRequest { user, shared };
            let answer = session.client.people.erase_person(request).await?;
            output.answer(&answer, erased)?;
            if answer.found_after > 0 {
                Err(Said.into())
            } else {
                Ok(())
            }
        }
    }
}

async fn export(file: Option<PathBuf>, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let request = pb::ExportPersonRequest {
        user: session.user_name(None),
    };
    let mut stream = session.client.people.export_person(request).await?;
    let mut archive = match &file {
        Some(path) => Some(new_file(path).with_context(|| format!("cannot write {}", path.display()))?),
        None => None,
    };
    let mut count = 0;
    while let Some(item) = stream.message().await? {
        count += 1;
        match &mut archive {
            Some(archive) => {
                writeln!(archive, "{}", serde_json::to_string(&json_of(&item)?)?).context("cannot write the file")?;
                output.progress(&counted(count, "item"));
            }
            None => output.item(&item, held)?,
        }
    }
    output.progress("");
    if let Some(archive) = archive {
        archive.sync_all().context("cannot write the file")?;
        if output.is_json() {
            return output.document(&serde_json::json!({"file": file, "items": count}));
        }
    }
    output.aside(&counted(count, "item"));
    Ok(())
}

fn held(output: &mut Output, item: &pb::ExportPersonResponse) {
    let line = match &item.held {
        Some(Held::Session(session)) => format!("session {} {}", short(&session.name), session.title),
        Some(Held::Message(message)) => {
            let inner = message.message.as_ref();
            let seq = inner.map(|message| message.seq).unwrap_or_default();
            format!("message {seq} of session {}", short(&message.session))
        }
        Some(Held::Memory(_)) => "something in memory".to_owned(),
        Some(Held::Skill(skill)) => {
            let name = skill
                .skill
                .as_ref()
                .map(|skill| skill.name.as_str())
                .unwrap_or_default();
            format!("skill {} with {}", short(name), counted(skill.files.len(), "file"))
        }
        Some(Held::Review(review)) => format!("review {} {}", short(&review.name), review.summary),
        None => return,
    };
    output.line(&line);
}

fn erased(output: &mut Output, answer: &pb::ErasePersonResponse) {
    output.line(&format!(
        "Erased {} sessions, {} reviews, {} memory entries with {} revisions, and {} skills.",
        answer.sessions, answer.reviews, answer.entries, answer.revisions, answer.skills
    ));
    if answer.found_after > 0 {
        output.warn(&format!(
            "{} things are left; see the table, and ask again",
            answer.found_after
        ));
    }
    let rows: Vec<Vec<Cell>> = answer
        .derived
        .iter()
        .map(|derived| {
            let what = if derived.erased { "erased" } else { "stays" };
            vec![
                Cell::name(short(&derived.name)),
                what.into(),
                derived.cause.as_str().into(),
                Cell::side(derived.name.as_str()),
            ]
        })
        .collect();
    if !rows.is_empty() {
        output.line("");
        output.table(&["what", "", "why", "name"], rows, "");
    }
}
