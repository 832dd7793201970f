//! The `steward` verbs that talk to a server: `chat`, `sessions`, `memory`, `skills`, `hub`, `secrets`, `recall`, `reviews`,
//! `people`, `curator`, `models`, `access`, `audit`, `health`.
//!
//! They are one grammar, `steward NOUN VERB [ARGUMENTS]`, work the same against one process or five, and print tables for
//! people or, with `--json`, the messages of the contract in protobuf's JSON form, one document per answer. The verbs that
//! run a server live in the `steward` crate; this one knows no service.

pub mod chat;
pub mod connect;
pub mod fault;
pub mod output;
pub mod verbs;

use std::process::ExitCode;

use clap::Subcommand;

pub use connect::{Connection, Session};
pub use output::Output;

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Talk to the agent.
    Chat(chat::Arguments),
    /// Look at past and present conversations.
    #[command(subcommand)]
    Sessions(verbs::sessions::Verb),
    /// What Steward remembers about you and your team.
    #[command(subcommand)]
    Memory(verbs::memory::Verb),
    /// Written know-how: list, read, change, restore.
    #[command(subcommand)]
    Skills(verbs::skills::Verb),
    /// Skills from outside: search, look at, approve, install, update.
    #[command(subcommand)]
    Hub(verbs::hub::Verb),
    /// Values for variables that skills need, kept encrypted for the team.
    #[command(subcommand)]
    Secrets(verbs::secrets::Verb),
    /// Search what was said, word for word.
    #[command(subcommand)]
    Recall(verbs::recall::Verb),
    /// What the reviewer did after your turns.
    #[command(subcommand)]
    Reviews(verbs::reviews::Verb),
    /// Everything that is held on a person: export and erase.
    #[command(subcommand)]
    People(verbs::people::Verb),
    /// The ageing of the team's library: run, undo, pause, look.
    #[command(subcommand)]
    Curator(verbs::curator::Verb),
    /// Which models there are, and what for.
    #[command(subcommand)]
    Models(verbs::models::Verb),
    /// Teams, users and tokens.
    #[command(subcommand)]
    Access(verbs::access::Verb),
    /// Who changed what, and who was refused (admins).
    #[command(subcommand)]
    Audit(verbs::audit::Verb),
    /// Ask whether servers are ready; exit code 1 when one is not. Needs no token.
    Health,
}

/// A verb that failed has said so in its answer: its exit code is 1 and nothing more is printed.
#[derive(Debug)]
pub struct Said;

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the answer says what failed")
    }
}

impl std::error::Error for Said {}

/// Runs a verb to its end and gives the exit code: 0 done, 1 refused or failed, 2 wrong usage.
pub async fn run(verb: Verb, connection: &Connection) -> ExitCode {
    let mut output = Output::new(connection.json);
    let done = async {
        if let Verb::Health = verb {
            return verbs::health::run(connection, &mut output).await;
        }
        let session = connection.open().await?;
        match verb {
            Verb::Chat(arguments) => Box::pin(chat::run(arguments, &session, &mut output)).await,
            Verb::Sessions(verb) => verbs::sessions::run(verb, &session, &mut output).await,
            Verb::Memory(verb) => verbs::memory::run(verb, &session, &mut output).await,
            Verb::Skills(verb) => verbs::skills::run(verb, &session, &mut output).await,
            Verb::Secrets(verb) => verbs::secrets::run(verb, &session, &mut output).await,
            Verb::Hub(verb) => verbs::hub::run(verb, &session, &mut output).await,
            Verb::Recall(verb) => verbs::recall::run(verb, &session, &mut output).await,
            Verb::Reviews(verb) => verbs::reviews::run(verb, &session, &mut output).await,
            Verb::People(verb) => verbs::people::run(verb, &session, &mut output).await,
            Verb::Curator(verb) => verbs::curator::run(verb, &session, &mut output).await,
            Verb::Models(verb) => verbs::models::run(verb, &session, &mut output).await,
            Verb::Access(verb) => verbs::access::run(verb, &session, &mut output).await,
            Verb::Audit(verb) => verbs::audit::run(verb, connection, &session, &mut output).await,
            Verb::Health => Ok(()),
        }
    };
    match Box::pin(done).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<Said>() => ExitCode::FAILURE,
        Err(error) => {
            output.failure(&error);
            fault::Fault::exit_code(&error)
        }
    }
}
