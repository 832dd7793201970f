//! `steward sessions`: conversations as things: list, show, change, read, follow, stop, delete, rewind, fork, hand out and
//! take in.

mod change;
mod lifecycle;
mod show;
mod transfer;
mod watch;

use clap::Subcommand;
use steward_proto::agent::v1 as pb;

use crate::connect::Session;
use crate::fault::at_least_one;
use crate::output::{ALL, Output, gather};

pub(crate) use change::Change;

/// Verbs of `steward sessions`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List your conversations, most recently active first.
    List {
        /// At most this many.
        #[arg(long, default_value_t = 20, value_parser = at_least_one::<usize>)]
        limit: usize,
    },
    /// Show a conversation: settings, tokens, how its requests extended each other; with --prompt the frozen prompt.
    #[command(visible_alias = "get")]
    Show {
        /// Id or full name.
        session: String,
        /// Also print the system prompt.
        #[arg(long)]
        prompt: bool,
    },
    /// Give a conversation another title, or another model between two turns.
    Update(change::Arguments),
    /// Delete a conversation for good, with all that was said in it.
    Delete(lifecycle::Delete),
    /// Take back what was said after a message.
    Rewind(lifecycle::Rewind),
    /// Go on from a message in a conversation of its own; the other one stays as it is.
    Fork(lifecycle::Fork),
    /// Write conversations down as JSON lines.
    Export(transfer::Export),
    /// Take conversations in: what `export` wrote, or the history of another program.
    Import(transfer::Import),
    /// Print what was said.
    Messages {
        /// Id or full name.
        session: String,
    },
    /// List calls that wait for your client.
    Pending,
    /// Follow the turn that runs, from its beginning to its end.
    Watch {
        /// Id or full name.
        session: String,
        /// The turn; the open one by default.
        #[arg(long)]
        turn: Option<String>,
    },
    /// Say something to the turn that runs: it is heard before the next model call.
    Steer {
        /// Id or full name.
        session: String,
        /// What to say.
        text: String,
    },
    /// Stop the running turn, or close one that waits.
    Stop {
        /// Id or full name.
        session: String,
    },
}

/// Runs a verb.
pub async fn run(verb: Verb, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let client = &session.client;
    match verb {
        Verb::List { limit } => {
            let answer = gather(limit, |page_size, page_token| {
                client.sessions.list_sessions(pb::ListSessionsRequest {
                    parent: session.user.clone(),
                    page_size,
                    page_token,
                })
            });
            output.answer(&answer.await?, |output, answer| {
                show::list(output, answer);
                output.more(answer);
            })
        }
        Verb::Show { session: name, prompt } => {
            let request = pb::GetSessionRequest {
                name: session.session_name(&name),
            };
            let answer = client.sessions.get_session(request).await?;
            output.answer(&answer, |output, answer| {
                if let Some(session) = &answer.session {
                    show::session(output, session, prompt);
                }
            })
        }
        Verb::Update(arguments) => change::run(arguments, session, output).await,
        Verb::Delete(arguments) => lifecycle::delete(arguments, session, output).await,
        Verb::Rewind(arguments) => lifecycle::rewind(arguments, session, output).await,
        Verb::Fork(arguments) => lifecycle::fork(arguments, session, output).await,
        Verb::Export(arguments) => transfer::export(arguments, session, output).await,
        Verb::Import(arguments) => transfer::import(arguments, session, output).await,
        Verb::Messages { session: name } => messages(&session.session_name(&name), session, output).await,
        Verb::Pending => {
            let request = pb::ListPendingActionsRequest {
                parent: session.user.clone(),
            };
            output.answer(&client.agent.list_pending_actions(request).await?, show::pending)
        }
        Verb::Watch { session: name, turn } => watch::follow(&session.session_name(&name), turn, session, output).await,
        Verb::Steer { session: name, text } => watch::steer(&session.session_name(&name), text, session, output).await,
        Verb::Stop { session: name } => {
            let request = pb::InterruptTurnRequest {
                session: session.session_name(&name),
            };
            output.answer(&client.agent.interrupt_turn(request).await?, |output, answer| {
                output.line(if answer.turn.is_empty() {
                    "Nothing was running."
                } else {
                    "Stopped."
                });
            })
        }
    }
}

async fn messages(name: &str, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let mut request = pb::ListSessionMessagesRequest {
        parent: name.to_owned(),
        ..pb::ListSessionMessagesRequest::default()
    };
    // People read page by page; programs get one document.
    if output.is_json() {
        let whole = gather(ALL, |page_size, page_token| {
            session
                .client
                .sessions
                .list_session_messages(pb::ListSessionMessagesRequest {
                    parent: name.to_owned(),
                    page_size,
                    page_token,
                })
        });
        return output.answer(&whole.await?, |_, _| {});
    }
    loop {
        let page = session.client.sessions.list_session_messages(request.clone()).await?;
        show::messages(output, &page);
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            return Ok(());
        }
    }
}
