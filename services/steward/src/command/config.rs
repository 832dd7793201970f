//! `steward config`: dump, check, schema.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use steward_cli::{Connection, Output};
use steward_runtime::config;

use super::{ServerArguments, serve};
use crate::config::Config;

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
}

pub(super) fn run(arguments: &Arguments, connection: &Connection) -> ExitCode {
    let mut output = Output::new(connection.json);
    if let Verb::Schema = arguments.verb {
        let schema = schemars::schema_for!(Config);
        output.line(&serde_json::to_string_pretty(&schema).unwrap_or_default());
        return ExitCode::SUCCESS;
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
        Err(problems) => {
            output.aside(config::list(&problems).trim_end());
            ExitCode::from(config::EXIT_USAGE)
        }
    }
}
