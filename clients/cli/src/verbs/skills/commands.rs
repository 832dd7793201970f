//! Skills as commands: what can be typed after a slash, and what the agent reads then.

use clap::Subcommand;
use steward_proto::skill::v1 as pb;

use crate::connect::Session;
use crate::output::{Cell, Output, Tone, first_line, printable, word};

/// Verbs on commands.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List what can be typed after a slash in a conversation.
    Commands,
    /// Print what the agent reads when this is typed. Counts as a use of the skills that it opens.
    Expand {
        /// What is typed: `/slug words`.
        text: Vec<String>,
    },
}

/// Runs a verb.
pub(super) async fn run(verb: Verb, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let commands = &session.client.commands;
    match verb {
        Verb::Commands => {
            let request = pb::ListCommandsRequest {
                parent: session.user.clone(),
            };
            output.answer(&commands.list_commands(request).await?, list)
        }
        Verb::Expand { text } => {
            let request = pb::ExpandCommandRequest {
                parent: session.user.clone(),
                text: text.join(" "),
                context: None,
            };
            output.answer(&commands.expand_command(request).await?, |output, answer| {
                output.line(printable(&answer.message).trim_end());
                for problem in &answer.problems {
                    output.warn(problem);
                }
                for variable in &answer.missing {
                    output.aside(&format!("needs {}", printable(&variable.name)));
                }
            })
        }
    }
}

fn list(output: &mut Output, answer: &pb::ListCommandsResponse) {
    let rows = answer.commands.iter().map(|command| {
        let several = if command.candidates.is_empty() {
            String::new()
        } else {
            format!("type one of: {}", command.candidates.join(" "))
        };
        vec![
            Cell::name(format!("/{}", command.slug)),
            word(command.kind().as_str_name(), "KIND_").into(),
            first_line(&command.description, 60).into(),
            Cell::toned(several, Tone::Notice),
        ]
    });
    output.table(&["command", "opens", "for", ""], rows.collect(), "No commands.");
}
