//! `steward config`: dump, check, schema, example.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use steward_cli::{Connection, Output};
use steward_runtime::config;

use super::{ServerArguments, serve};
use crate::example;

/// Arguments of `steward config`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Settings in TOML.
    #[arg(long, env = "STEWARD_CONFIG", value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Print every setting in effect and where it comes from; secrets are hidden.
    Dump,
    /// Say everything that is wrong with the settings; exit code 64 if anything is.
    Check,
    /// Print the JSON Schema of the settings file.
    Schema,
    /// Print a settings file with every setting, its meaning and its default.
    Example,
}

pub(super) fn run(arguments: &Arguments, connection: &Connection) -> ExitCode {
    let mut output = Output::new(connection.json);
    match arguments.verb {
        Verb::Schema => {
            output.line(&serde_json::to_string_pretty(&example::schema()).unwrap_or_default());
            return ExitCode::SUCCESS;
        }
        Verb::Example if connection.json => {
            output.line(&serde_json::json!({ "example": example::toml() }).to_string());
            return ExitCode::SUCCESS;
        }
        Verb::Example => {
            output.line(example::toml().trim_end());
            return ExitCode::SUCCESS;
        }
        Verb::Dump | Verb::Check => {}
    }
    let server = ServerArguments {
        config: arguments.config.clone(),
        listen: None,
    };
    match serve::load(&server, connection) {
        Ok(loaded) if connection.json => {
            let settings: Vec<_> = loaded
                .settings
                .iter()
                .map(|setting| serde_json::json!({"path": setting.path, "value": setting.value, "origin": setting.origin}))
                .collect();
            output.line(&serde_json::json!({"settings": settings, "problems": []}).to_string());
            ExitCode::SUCCESS
        }
        Ok(loaded) => {
            let text = if matches!(arguments.verb, Verb::Dump) {
                loaded.dump()
            } else {
                "The settings are right.".into()
            };
            output.line(text.trim_end());
            ExitCode::SUCCESS
        }
        Err(problems) if connection.json => {
            let problems: Vec<_> = problems
                .iter()
                .map(|problem| serde_json::json!({"path": problem.path, "message": problem.message}))
                .collect();
            output.line(&serde_json::json!({"settings": [], "problems": problems}).to_string());
            ExitCode::from(config::EXIT_USAGE)
        }
        Err(problems) => {
            output.aside(config::list(&problems).trim_end());
            ExitCode::from(config::EXIT_USAGE)
        }
    }
}
