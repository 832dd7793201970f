//! The command line of the `steward` binary: run everything, run one service, or use a running one.

mod completion;
mod config;
mod doctor;
mod serve;
mod version;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _, Parser, Subcommand};
use steward_cli::Connection;
use steward_cli::fault::Fault;
use steward_cli::output::Output;

use crate::Component;
use crate::demo;

/// Steward: an agent backend for teams that learns from its own work.
///
/// Without a command it runs all services in one process on 127.0.0.1:7400.
#[derive(Debug, Parser)]
#[command(name = "steward", version, long_about = None, disable_help_subcommand = true)]
struct Cli {
    #[command(flatten)]
    server: ServerArguments,
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    command: Option<Command>,
}

/// Options of a process that serves.
#[derive(Debug, Clone, Default, Args)]
struct ServerArguments {
    /// Settings in TOML; `steward config dump` shows all of them.
    #[arg(long, env = "STEWARD_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address to listen on: host:port or unix:/path.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
}

/// Options of `steward init`.
#[derive(Debug, Clone, Default, Args)]
struct InitArguments {
    #[command(flatten)]
    server: ServerArguments,
    /// Also put curator-worker's token into this file, for a worker that may not see the folder where it is kept.
    #[arg(long, value_name = "FILE")]
    worker_token: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(flatten)]
    Verb(steward_cli::Verb),
    /// Play the loop once: a lesson is met, kept, and used by the next session.
    Demo(demo::Arguments),
    /// Make keys, the home team and the first tokens, without serving.
    Init(InitArguments),
    /// Show, check or describe the settings.
    Config(config::Arguments),
    /// Look at files, servers, token and model, and say what is wrong; exit code 1 if anything is.
    Doctor(doctor::Arguments),
    /// Print a script that completes commands in a shell.
    Completion(completion::Arguments),
    /// Say which version this is.
    Version,
    /// Run agent-orchestrator alone.
    AgentOrchestrator(ServerArguments),
    /// Run skill-registry alone.
    SkillRegistry(ServerArguments),
    /// Run memory-service alone.
    MemoryService(ServerArguments),
    /// Run recall-service alone.
    RecallService(ServerArguments),
    /// Run curator-worker alone.
    CuratorWorker(ServerArguments),
}

/// Parses the command line and does what it says. The exit code: 0 done, 1 failed, 2 wrong usage, 64 wrong settings.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return not_parsed(&error),
    };
    let Some(command) = cli.command else {
        return serve::run(Component::All, &cli.server, &cli.connection);
    };
    match command {
        Command::AgentOrchestrator(server) => serve::run(Component::AgentOrchestrator, &server, &cli.connection),
        Command::SkillRegistry(server) => serve::run(Component::SkillRegistry, &server, &cli.connection),
        Command::MemoryService(server) => serve::run(Component::MemoryService, &server, &cli.connection),
        Command::RecallService(server) => serve::run(Component::RecallService, &server, &cli.connection),
        Command::CuratorWorker(server) => serve::run(Component::CuratorWorker, &server, &cli.connection),
        Command::Init(arguments) => serve::init(&arguments, &cli.connection),
        Command::Config(arguments) => config::run(&arguments, &cli.connection),
        Command::Doctor(arguments) => {
            steward_runtime::tls::install_provider();
            serve::block_on(doctor::run(arguments, &cli.connection))
        }
        Command::Completion(arguments) => completion::run(&arguments, cli.connection.json),
        Command::Version => version::run(cli.connection.json),
        Command::Demo(arguments) => serve::block_on(demo::run(arguments, cli.connection.json)),
        Command::Verb(verb) => {
            steward_runtime::tls::install_provider();
            serve::block_on(steward_cli::run(verb, &cli.connection))
        }
    }
}

/// Prints help where that was asked for, else what is wrong: as a document for programs, which get one for every error.
fn not_parsed(error: &clap::Error) -> ExitCode {
    let before_others = |argument: &std::ffi::OsString| argument != "--";
    let wants_json = std::env::args_os()
        .take_while(before_others)
        .any(|argument| argument == "--json");
    if error.use_stderr() && wants_json {
        Output::new(true).failure(&Fault::usage(wrong_usage(error)).into());
    } else {
        // Nobody is there to read it: the exit code still says it.
        let _ = error.print();
    }
    u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// What the parser found wrong, in one line, without its advice on usage.
fn wrong_usage(error: &clap::Error) -> String {
    let told = error.to_string();
    let first = told.split("\n\n").next().unwrap_or_default();
    let words: Vec<&str> = first
        .strip_prefix("error: ")
        .unwrap_or(first)
        .split_whitespace()
        .collect();
    words.join(" ")
}

/// Whether these arguments are a command line of `steward`, for tests of files that hold one. The error is the parser's.
pub fn check<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Result<(), String> {
    let arguments = std::iter::once("steward").chain(arguments);
    Cli::try_parse_from(arguments)
        .map(drop)
        .map_err(|error| error.to_string())
}

/// Every verb there is, by its words: `memory list`. For tests that hold that each has a property.
pub fn verbs() -> Vec<String> {
    fn collect(command: &clap::Command, words: &str, found: &mut Vec<String>) {
        if !words.is_empty() && !command.has_subcommands() {
            found.push(words.to_owned());
        }
        for inner in command.get_subcommands() {
            let words = format!("{words} {}", inner.get_name());
            collect(inner, words.trim_start(), found);
        }
    }
    let mut found = Vec::new();
    collect(&Cli::command(), "", &mut found);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_is_consistent() {
        Cli::command().debug_assert();
    }

    /// An argument of a verb with the id of an option that every verb has would set that option.
    #[test]
    fn no_verb_takes_an_argument_that_means_something_else_everywhere() {
        fn check(command: &clap::Command, global: &[String]) {
            for argument in command.get_arguments().filter(|argument| !argument.is_global_set()) {
                let id = argument.get_id().to_string();
                assert!(!global.contains(&id), "`{}` has its own {id}", command.get_name());
            }
            for inner in command.get_subcommands() {
                check(inner, global);
            }
        }
        let command = Cli::command();
        let global = command.get_arguments().filter(|argument| argument.is_global_set());
        let global: Vec<_> = global.map(|argument| argument.get_id().to_string()).collect();
        assert!(global.contains(&"token".to_owned()));
        check(&command, &global);
    }

    #[test]
    fn what_the_parser_finds_wrong_fits_into_one_line() {
        let said = |arguments: &[&str]| wrong_usage(&Cli::try_parse_from(arguments).unwrap_err());
        let missing = "the following required arguments were not provided: <CONTENT>";
        assert_eq!(said(&["steward", "memory", "add", "--json"]), missing);
        assert!(said(&["steward", "frobnicate"]).starts_with("unrecognized subcommand"));
        assert!(said(&["steward", "audit", "list", "--limit", "0"]).ends_with("must be 1 or more"));
    }

    #[test]
    fn without_a_command_everything_is_served() {
        let cli = Cli::try_parse_from(["steward", "--listen", "127.0.0.1:0", "--data-dir", "/tmp/x"]).unwrap();
        assert!(cli.command.is_none());
        assert_eq!(cli.server.listen.as_deref(), Some("127.0.0.1:0"));
    }

    #[test]
    fn one_service_takes_the_same_options() {
        let cli = Cli::try_parse_from([
            "steward",
            "recall-service",
            "--data-dir",
            "/tmp/x",
            "--listen",
            "127.0.0.1:0",
        ]);
        assert!(matches!(cli.unwrap().command, Some(Command::RecallService(_))));
    }
}
