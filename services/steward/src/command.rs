//! The command line of the `steward` binary: run everything, run one service, or use a running one.

mod config;
mod serve;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use steward_cli::Connection;

use crate::Component;
use crate::demo;

/// Steward: an agent backend for teams that learns from its own work.
///
/// Without a command it runs all services in one process on 127.0.0.1:7400.
#[derive(Debug, Parser)]
#[command(name = "steward", version, about, long_about = None, disable_help_subcommand = true)]
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

#[derive(Debug, Subcommand)]
enum Command {
    #[command(flatten)]
    Verb(steward_cli::Verb),
    /// Play the loop once: a lesson is met, kept, and used by the next session.
    Demo(demo::Arguments),
    /// Make keys, the home team and the first tokens, without serving.
    Init(ServerArguments),
    /// Show, check or describe the settings.
    Config(config::Arguments),
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
    let cli = Cli::parse();
    let Some(command) = cli.command else {
        return serve::run(Component::All, &cli.server, &cli.connection);
    };
    match command {
        Command::AgentOrchestrator(server) => serve::run(Component::AgentOrchestrator, &server, &cli.connection),
        Command::SkillRegistry(server) => serve::run(Component::SkillRegistry, &server, &cli.connection),
        Command::MemoryService(server) => serve::run(Component::MemoryService, &server, &cli.connection),
        Command::RecallService(server) => serve::run(Component::RecallService, &server, &cli.connection),
        Command::CuratorWorker(server) => serve::run(Component::CuratorWorker, &server, &cli.connection),
        Command::Init(server) => serve::init(&server, &cli.connection),
        Command::Config(arguments) => config::run(&arguments, &cli.connection),
        Command::Demo(arguments) => serve::block_on(demo::run(arguments)),
        Command::Verb(verb) => {
            steward_runtime::tls::install_provider();
            serve::block_on(steward_cli::run(verb, &cli.connection))
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_grammar_is_consistent() {
        Cli::command().debug_assert();
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
