//! `steward doctor`: the findings as a table or as JSON.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use steward_base::{Clock as _, SystemClock};
use steward_cli::{Connection, Output};

use super::{ServerArguments, serve};
use crate::config::Config;
use crate::doctor::{Examination, Finding, Report, State};

/// Arguments of `steward doctor`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Settings in TOML.
    #[arg(long, env = "STEWARD_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Also ask the model's server for its models, with the key.
    #[arg(long)]
    model: bool,
}

pub(super) async fn run(arguments: Arguments, connection: &Connection) -> ExitCode {
    let mut output = Output::new(connection.json);
    let server = ServerArguments {
        config: arguments.config,
        listen: None,
    };
    let mut report = Report::default();
    let config = match serve::load(&server, connection) {
        Ok(loaded) => {
            report.ok("settings", "in effect", "right");
            loaded.config
        }
        Err(problems) => {
            for problem in problems {
                report.problem("settings", problem.path, problem.message, "`steward config check`");
            }
            let mut config = Config::default();
            config.server.data_dir.clone_from(&connection.data_dir);
            config
        }
    };
    // The token is looked for where the settings put the data.
    let mut connection = connection.clone();
    connection.data_dir.get_or_insert_with(|| config.data_dir());
    let examination = Examination {
        connection: &connection,
        config: &config,
        now: SystemClock.now(),
        ask_model: arguments.model,
    };
    let found = examination.run(|what| output.progress(what)).await;
    report.findings.extend(found.findings);
    show(&report, &mut output);
    if report.is_healthy() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn show(report: &Report, output: &mut Output) {
    if output.is_json() {
        let document = serde_json::json!({"healthy": report.is_healthy(), "findings": report.findings});
        output.line(&document.to_string());
        return;
    }
    let row = |finding: &Finding| {
        let state = finding.state.word().to_owned();
        vec![
            state,
            finding.area.to_owned(),
            finding.subject.clone(),
            finding.detail.clone(),
        ]
    };
    output.table(
        &["state", "area", "what", "found"],
        report.findings.iter().map(row).collect(),
        "",
    );
    for finding in report.findings.iter().filter(|finding| !finding.hint.is_empty()) {
        output.line(&format!("{}: {}", finding.subject, finding.hint));
    }
    let problems = report
        .findings
        .iter()
        .filter(|finding| finding.state == State::Problem)
        .count();
    output.line(&match problems {
        0 => "Nothing is wrong.".to_owned(),
        1 => "1 problem.".to_owned(),
        more => format!("{more} problems."),
    });
}
