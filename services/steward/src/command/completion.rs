//! `steward completion`: a script that makes a shell complete commands, options and values.

use std::process::ExitCode;

use clap::{Args, CommandFactory as _, ValueEnum};
use clap_complete::{Shell, generate};
use steward_cli::Output;

use super::Cli;

/// Arguments of `steward completion`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The shell.
    #[arg(value_enum)]
    shell: Supported,
}

/// Shells that a script is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Supported {
    /// `steward completion bash > ~/.local/share/bash-completion/completions/steward`
    Bash,
    /// `steward completion zsh > "${fpath[1]}/_steward"`
    Zsh,
    /// `steward completion fish > ~/.config/fish/completions/steward.fish`
    Fish,
}

impl From<Supported> for Shell {
    fn from(shell: Supported) -> Self {
        match shell {
            Supported::Bash => Self::Bash,
            Supported::Zsh => Self::Zsh,
            Supported::Fish => Self::Fish,
        }
    }
}

pub(super) fn run(arguments: &Arguments, json: bool) -> ExitCode {
    let script = script(arguments.shell);
    let mut output = Output::new(json);
    if json {
        output.line(&serde_json::json!({ "script": script }).to_string());
    } else {
        output.line(script.trim_end());
    }
    ExitCode::SUCCESS
}

fn script(shell: Supported) -> String {
    let mut script = Vec::new();
    generate(Shell::from(shell), &mut Cli::command(), "steward", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_gets_a_script_that_knows_the_verbs() {
        for shell in [Supported::Bash, Supported::Zsh, Supported::Fish] {
            let script = script(shell);
            for word in ["memory", "revoke-token", "token-file", "curator-worker"] {
                assert!(script.contains(word), "{shell:?} does not know {word}");
            }
        }
    }
}
