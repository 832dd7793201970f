//! What becomes of a conversation as a whole: deleted, rewound, gone on with in another one.

use anyhow::ensure;
use clap::Args;
use steward_proto::agent::v1 as pb;

use super::show;
use crate::connect::{Session, request_id};
use crate::output::Output;
use crate::verbs::permitted;

/// Arguments of `steward sessions delete`.
#[derive(Debug, Args)]
pub struct Delete {
    /// Id or full name.
    session: String,
    /// Only if the conversation is still as `sessions show --json` gave it.
    #[arg(long, default_value = "", hide_default_value = true)]
    etag: String,
    /// Do not ask first.
    #[arg(long, short)]
    yes: bool,
}

/// Arguments of `steward sessions rewind`.
#[derive(Debug, Args)]
pub struct Rewind {
    /// Id or full name.
    session: String,
    /// Number of the last message that stays; what follows it must begin with a message of yours. 0 takes all back.
    #[arg(long, value_name = "SEQ")]
    to: u64,
    /// Only if the conversation is still as `sessions show --json` gave it.
    #[arg(long, default_value = "", hide_default_value = true)]
    etag: String,
}

/// Arguments of `steward sessions fork`.
#[derive(Debug, Args)]
pub struct Fork {
    /// Id or full name.
    session: String,
    /// Number of the last message that is taken along; all of them by default.
    #[arg(long, value_name = "SEQ", default_value_t = 0, hide_default_value = true)]
    through: u64,
    /// Title of the new conversation; that of the other one by default.
    #[arg(long, default_value = "", hide_default_value = true)]
    title: String,
}

pub(super) async fn delete(arguments: Delete, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let name = session.session_name(&arguments.session);
    let question = format!("delete {name} for good, with all that was said in it?");
    ensure!(permitted(arguments.yes, &question, output), "nothing was deleted");
    let request = pb::DeleteSessionRequest {
        name,
        etag: arguments.etag,
    };
    let answer = session.client.sessions.delete_session(request).await?;
    output.answer(&answer, |output, _| output.line("Deleted."))
}

pub(super) async fn rewind(arguments: Rewind, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let request = pb::RewindSessionRequest {
        name: session.session_name(&arguments.session),
        to_seq: arguments.to,
        etag: arguments.etag,
        request_id: request_id(),
    };
    let answer = session.client.sessions.rewind_session(request).await?;
    output.answer(&answer, |output, answer| {
        if let Some(session) = &answer.session {
            show::session(output, session, false);
        }
    })
}

pub(super) async fn fork(arguments: Fork, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let request = pb::ForkSessionRequest {
        name: session.session_name(&arguments.session),
        through_seq: arguments.through,
        title: arguments.title,
        request_id: request_id(),
    };
    let answer = session.client.sessions.fork_session(request).await?;
    output.answer(&answer, |output, answer| {
        if let Some(session) = &answer.session {
            show::session(output, session, false);
        }
    })
}
