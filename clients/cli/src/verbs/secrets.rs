//! `steward secrets`: values for variables that skills need, kept encrypted for the team.
//!
//! A value comes from standard input or a hidden prompt, never from the command line, where every process of the machine
//! could read it; and it is printed nowhere. It goes into the environment of one command, by `run`.

use std::borrow::Cow;
use std::io::{IsTerminal as _, Read as _};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use clap::Subcommand;
use rustyline::completion::Completer;
use rustyline::config::Configurer as _;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::Validator;
use rustyline::{ColorMode, Config, Editor, Helper};
use serde_json::json;
use steward_proto::skill::v1 as pb;

use super::permitted;
use crate::Said;
use crate::connect::Session;
use crate::output::{Cell, Output, Tone, printable, short, time};

/// Verbs of `steward secrets`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List the team's secrets by name.
    List,
    /// Set a secret; the value is asked for, or read from standard input (maintainers).
    Set {
        /// Name of the environment variable.
        secret: String,
    },
    /// Delete a secret for good (maintainers).
    Delete {
        /// Name of the environment variable.
        secret: String,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
    /// Ask for every secret that a skill declares and the team does not have (maintainers).
    Fill {
        /// Skill, by name.
        skill: String,
    },
    /// Run a command with the secrets of a skill in its environment.
    Run {
        /// Skill, by name; one of the team's, not one of your own.
        skill: String,
        /// The command, after `--`.
        #[arg(required = true, last = true)]
        command: Vec<String>,
    },
}

/// Runs a verb.
pub async fn run(verb: Verb, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let secrets = &session.client.secrets;
    match verb {
        Verb::List => {
            let request = pb::ListSecretsRequest {
                parent: session.user.clone(),
            };
            output.answer(&secrets.list_secrets(request).await?, |output, answer| {
                let rows = answer.secrets.iter().map(row);
                output.table(&["secret", "set by", "set", ""], rows.collect(), "No secrets.");
            })
        }
        Verb::Set { secret } => {
            let value = value_of(&secret, output)?;
            let answer = set(&secret, value, session).await?;
            output.answer(&answer, |output, answer| {
                let name = answer.secret.as_ref().map_or("", |secret| short(&secret.name));
                output.line(&format!("{} is set.", printable(name)));
            })
        }
        Verb::Delete { secret, yes } => {
            if !permitted(yes, &format!("Delete the team's secret {secret} for good?"), output) {
                bail!("nothing was deleted");
            }
            let name = format!("{}/secrets/{secret}", session.team);
            let answer = secrets.delete_secret(pb::DeleteSecretRequest { name }).await?;
            output.answer(&answer, |output, answer| {
                output.line(if answer.deleted { "Deleted." } else { "There was none." });
            })
        }
        Verb::Fill { skill } => fill(skill, session, output).await,
        Verb::Run { skill, command } => run_with(skill, &command, session, output).await,
    }
}

fn row(secret: &pb::Secret) -> Vec<Cell> {
    let state = if secret.readable {
        ""
    } else {
        "its key is gone; set it anew"
    };
    vec![
        Cell::name(short(&secret.name)),
        short(&secret.author).into(),
        time(secret.set_time.as_ref()).into(),
        Cell::toned(state, Tone::Bad),
    ]
}

async fn set(secret: &str, value: String, session: &Session) -> anyhow::Result<pb::SetSecretResponse> {
    let request = pb::SetSecretRequest {
        parent: session.user.clone(),
        secret: secret.to_owned(),
        value,
    };
    Ok(session.client.secrets.set_secret(request).await?)
}

async fn deliver(skill: String, session: &Session) -> anyhow::Result<pb::DeliverSecretsResponse> {
    let request = pb::DeliverSecretsRequest {
        parent: session.user.clone(),
        skill,
    };
    Ok(session.client.secrets.deliver_secrets(request).await?)
}

/// Asks for what a skill declares and the team lacks, one after the other; an empty answer leaves one out.
async fn fill(skill: String, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let missing = deliver(skill, session).await?.missing;
    if missing.is_empty() {
        output.aside("the team has every secret that this skill declares");
    }
    ensure!(
        missing.is_empty() || can_ask(output),
        "nobody can be asked here; `steward secrets set` reads a value from standard input"
    );
    let mut done = Vec::new();
    for variable in missing {
        for said in [&variable.prompt, &variable.help]
            .into_iter()
            .filter(|said| !said.is_empty())
        {
            output.aside(&printable(said));
        }
        let value = ask(&variable.name)?;
        if !value.is_empty() {
            set(&variable.name, value, session).await?;
            done.push(variable.name);
        }
    }
    if output.is_json() {
        output.document(&json!({ "set": done }))?;
    } else if !done.is_empty() {
        output.line(&format!("Set: {}.", printable(&done.join(", "))));
    }
    Ok(())
}

/// Runs a command with what the team keeps for a skill. Nothing of it is printed.
async fn run_with(skill: String, command: &[String], session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let delivered = deliver(skill, session).await?;
    for variable in delivered.missing.iter().filter(|variable| !variable.optional) {
        if std::env::var_os(&variable.name).is_none() {
            output.warn(&format!(
                "{} is set neither here nor by the team",
                printable(&variable.name)
            ));
        }
    }
    let Some((program, arguments)) = command.split_first() else {
        bail!("name the command after --");
    };
    let mut child = Command::new(program);
    child.args(arguments);
    for secret in delivered.secrets {
        child.env(secret.variable, secret.value);
    }
    let status = tokio::task::spawn_blocking(move || child.status())
        .await?
        .with_context(|| format!("cannot run {program}"))?;
    if status.success() {
        return Ok(());
    }
    output.aside(&format!("{} ended with {status}", printable(program)));
    Err(Said.into())
}

fn can_ask(output: &Output) -> bool {
    !output.is_json() && std::io::stdin().is_terminal()
}

/// The value: asked for where a person sits, else all of standard input without the line's end.
fn value_of(name: &str, output: &Output) -> anyhow::Result<String> {
    let value = if can_ask(output) {
        ask(name)?
    } else {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .context("cannot read the value from standard input")?;
        without_line_end(&text).to_owned()
    };
    ensure!(!value.is_empty(), "an empty value is none; nothing was set");
    Ok(value)
}

fn without_line_end(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

/// Asks without showing what is typed. A terminal that would show it is refused.
pub(crate) fn ask(name: &str) -> anyhow::Result<String> {
    let terminal = std::env::var_os("TERM").unwrap_or_default();
    let terminal = terminal.to_string_lossy();
    ensure!(
        can_hide(&terminal),
        "a terminal of the kind {terminal} would show the value; `steward secrets set` reads it from standard input"
    );
    let config = Config::builder().auto_add_history(false).build();
    let history = MemHistory::with_config(&config);
    let mut editor: Editor<Hidden, MemHistory> =
        Editor::with_history(config, history).context("the terminal cannot be used")?;
    editor.set_color_mode(ColorMode::Forced);
    editor.set_helper(Some(Hidden));
    Ok(editor.readline(&format!("{} (not shown): ", printable(name)))?)
}

/// Whether the editor can keep what is typed off a terminal of this kind. On these it takes whole lines, as they are typed.
fn can_hide(terminal: &str) -> bool {
    !["dumb", "cons25", "emacs"]
        .iter()
        .any(|plain| terminal.eq_ignore_ascii_case(plain))
}

/// Shows blanks for what is typed, completes and suggests nothing.
struct Hidden;

impl Highlighter for Hidden {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        Cow::Owned(" ".repeat(line.chars().count()))
    }

    fn highlight_char(&self, _: &str, _: usize, kind: CmdKind) -> bool {
        kind != CmdKind::MoveCursor
    }
}

impl Completer for Hidden {
    type Candidate = String;
}

impl Hinter for Hidden {
    type Hint = String;
}

impl Validator for Hidden {}

impl Helper for Hidden {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_not_what_is_shown() {
        let shown = Hidden.highlight("v-4711", 6);
        assert_eq!(shown, "      ");
    }

    #[test]
    fn a_value_loses_one_line_end_and_no_more() {
        assert_eq!(without_line_end("v\r\n"), "v");
        assert_eq!(without_line_end("v\n\n"), "v\n");
        assert_eq!(without_line_end("v "), "v ");
    }
}
