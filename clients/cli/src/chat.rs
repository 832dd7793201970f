//! `steward chat`: a conversation in the terminal. Text comes as it is written; tools that run on this machine are asked
//! first; after a turn, one line says what the reviewer kept.

mod approve;
mod command;
pub(crate) mod events;
mod secrets;
mod tools;
mod turn;
mod watch;

use std::io::IsTerminal as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use rustyline::error::ReadlineError;
use steward_proto::agent::v1 as pb;

use crate::connect::{Session, request_id};
use crate::output::{NAME, Output, SIDE, printable, short};
use crate::verbs::models;
use crate::verbs::sessions::Change;
use approve::Approval;
use command::{Command, HELP};

/// Arguments of `steward chat`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Go on with this session instead of beginning one.
    #[arg(long)]
    session: Option<String>,
    /// Say this and end after the answer.
    #[arg(long, short)]
    message: Option<String>,
    /// Model of a new session, or from now on the one of `--session`; the configured one by default.
    #[arg(long, default_value = "")]
    model: String,
    /// Project of the team whose notes are read too.
    #[arg(long, default_value = "")]
    project: String,
    /// Skill by its name, or bundle by its slug, that a new session opens at its start; may be repeated.
    #[arg(long, value_name = "SKILL", conflicts_with = "session")]
    preload: Vec<String>,
    /// Check of a memory entry that failed in this workspace, as the entry has it: a new session does not show such an entry;
    /// may be repeated.
    #[arg(long, value_name = "CHECK", conflicts_with = "session")]
    failed_check: Vec<String>,
    /// Offer no tools that run on this machine.
    #[arg(long)]
    no_tools: bool,
    /// Working folder for tools and project files; the present one by default.
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

/// Runs the conversation until the person ends it.
pub async fn run(arguments: Arguments, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let folder = match &arguments.dir {
        Some(folder) => folder
            .canonicalize()
            .with_context(|| format!("no such folder: {}", folder.display()))?,
        None => std::env::current_dir().context("the present folder cannot be read")?,
    };
    let begun = match &arguments.session {
        Some(given) => go_on(&session.session_name(given), &arguments.model, session).await?,
        None => begin(&arguments, &folder, session).await?,
    };
    let can_ask = std::io::stdin().is_terminal() && !output.is_json();
    let mut conversation = turn::Conversation {
        session: session.clone(),
        name: begun.name.clone(),
        approval: Approval::new(can_ask),
        folder,
        secrets: secrets::Secrets::default(),
        can_ask,
    };
    if let Some(message) = arguments.message {
        let reviewed = conversation.say(&message, output).await?;
        return watch::after_turn(&conversation, reviewed, watch::Patience::Brief, output).await;
    }
    if !output.is_json() {
        let title = if begun.title.is_empty() {
            String::new()
        } else {
            format!(" · {}", begun.title)
        };
        output.line(&format!(
            "{SIDE}session {} · {}{} · /help · Ctrl-D ends{SIDE:#}",
            short(&begun.name),
            printable(&begun.model),
            printable(&title),
        ));
    }
    if !begun.open_turn.is_empty()
        && let Some(reviewed) = conversation.resume(output).await?
    {
        watch::after_turn(&conversation, reviewed, watch::Patience::Short, output).await?;
    }
    talk(&mut conversation, output).await
}

async fn talk(conversation: &mut turn::Conversation, output: &mut Output) -> anyhow::Result<()> {
    let terminal = std::io::stdin().is_terminal();
    let mut editor = rustyline::DefaultEditor::new().context("the terminal cannot be used")?;
    loop {
        // The prompt blocks a thread of its own, so that nothing else does.
        let (line, returned) = tokio::task::spawn_blocking(move || {
            let line = editor.readline(if terminal { "› " } else { "" });
            (line, editor)
        })
        .await
        .context("the prompt failed")?;
        editor = returned;
        let done = match line {
            Ok(line) if line.trim().is_empty() => Ok(()),
            Ok(line) => {
                let _ = editor.add_history_entry(line.as_str());
                match Command::parse(&line) {
                    Some(Command::Exit) => return Ok(()),
                    Some(command) => obey(command, conversation, output).await,
                    None => say(&line, conversation, output).await,
                }
            }
            Err(ReadlineError::Eof | ReadlineError::Interrupted) => return Ok(()),
            Err(error) => return Err(error).context("the prompt failed"),
        };
        // One failed turn does not end the conversation.
        if let Err(error) = done {
            output.failure(&error);
        }
    }
}

async fn say(text: &str, conversation: &mut turn::Conversation, output: &mut Output) -> anyhow::Result<()> {
    let reviewed = conversation.say(text, output).await?;
    watch::after_turn(conversation, reviewed, watch::Patience::Short, output).await
}

async fn obey(command: Command, conversation: &turn::Conversation, output: &mut Output) -> anyhow::Result<()> {
    let change = match command {
        Command::Exit => return Ok(()),
        Command::Help => {
            output.line(HELP);
            return Ok(());
        }
        Command::Session => {
            let (name, id) = (&conversation.name, short(&conversation.name));
            output.line(&format!("{NAME}{name}{NAME:#}\nsteward chat --session {id}"));
            return Ok(());
        }
        Command::Models => return models::run(models::Verb::List, &conversation.session, output).await,
        Command::Model(model) => Change {
            model: Some(model),
            ..Change::default()
        },
        Command::Title(title) => Change {
            title: Some(title),
            ..Change::default()
        },
    };
    let answer = change.make(&conversation.name, &conversation.session).await?;
    output.answer(&answer, |output, answer| {
        let session = answer.session.clone().unwrap_or_default();
        output.aside(&format!(
            "{} · {}",
            printable(&session.model),
            printable(&session.title)
        ));
    })
}

/// The session to go on with, with another model if one is given.
async fn go_on(name: &str, model: &str, session: &Session) -> anyhow::Result<pb::Session> {
    let present = if model.is_empty() {
        let request = pb::GetSessionRequest { name: name.to_owned() };
        session.client.sessions.get_session(request).await?.session
    } else {
        let change = Change {
            model: Some(model.to_owned()),
            ..Change::default()
        };
        change.make(name, session).await?.session
    };
    present.context("the server gave no session")
}

/// What the model should know of where its answers are read.
const PLATFORM_HINT: &str = "Your answers are read in a terminal, as plain text: Markdown is not rendered there. Prefer \
                             short lines and few lists, and give commands and paths on lines of their own.";

async fn begin(arguments: &Arguments, folder: &std::path::Path, session: &Session) -> anyhow::Result<pb::Session> {
    let client_tools = if arguments.no_tools {
        Vec::new()
    } else {
        tools::definitions()
    };
    let environment = (!client_tools.is_empty()).then(|| tools::environment(folder));
    let request = pb::CreateSessionRequest {
        parent: session.user.clone(),
        session: Some(pb::Session {
            model: arguments.model.clone(),
            project: arguments.project.clone(),
            ..pb::Session::default()
        }),
        setup: Some(pb::SessionSetup {
            context_files: tools::context_files(folder),
            client_tools,
            environment,
            platform_hint: PLATFORM_HINT.to_owned(),
            failed_checks: arguments.failed_check.clone(),
            preload_skills: arguments.preload.clone(),
            ..pb::SessionSetup::default()
        }),
        request_id: request_id(),
    };
    let answer = session.client.sessions.create_session(request).await.map_err(|error| {
        if error.reason == "MODEL_NOT_CONFIGURED" {
            anyhow::anyhow!(
                "no model is configured. Set one for the server, for example: \
                 STEWARD__AGENT__MODEL__BASE_URL=http://127.0.0.1:8090/v1 STEWARD__AGENT__MODEL__NAME=my-model steward"
            )
        } else {
            anyhow::Error::from(error)
        }
    })?;
    answer.session.context("the server gave no session")
}
