//! `steward curator`: run, status, pause, resume, history, report, rollback.

use std::time::Duration;

use clap::Subcommand;
use steward_client::CuratorClient;
use steward_proto::learning::v1 as pb;

use crate::Said;
use crate::connect::{Session, request_id};
use crate::fault::at_least_one;
use crate::output::{Cell, NOTICE, Output, first_line, gather, printable, short, span, time, word};

/// Time between two looks at a run that is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Verbs of `steward curator`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Curate the team's library now, and show the report.
    Run {
        /// Only say what would be done.
        #[arg(long)]
        dry_run: bool,
        /// Do not wait for the end.
        #[arg(long)]
        no_wait: bool,
    },
    /// When the library was curated last and is due next.
    Status,
    /// Stop curations from running by themselves.
    Pause,
    /// Let curations run by themselves again.
    Resume,
    /// List runs, newest first.
    History {
        /// At most this many.
        #[arg(long, default_value_t = 20, value_parser = at_least_one::<usize>)]
        limit: usize,
    },
    /// Show the report of a run.
    Report {
        /// Id or full name.
        run: String,
        /// Show `run.json` instead of `REPORT.md`.
        #[arg(long)]
        run_json: bool,
    },
    /// Put back what a run changed, and show the report.
    Rollback {
        /// Id or full name.
        run: String,
        /// Do not wait for the end.
        #[arg(long)]
        no_wait: bool,
    },
}

/// Runs a verb.
pub async fn run(verb: Verb, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let curator = &session.client.curator;
    match verb {
        Verb::Run { dry_run, no_wait } => {
            let request = pb::RunCurationRequest {
                parent: session.team.clone(),
                dry_run,
                request_id: request_id(),
            };
            let answer = curator.run_curation(request).await?;
            if no_wait {
                return output.answer(&answer, |output, answer| queued(output, answer.run.as_ref()));
            }
            follow(curator, answer.run.unwrap_or_default().name, output).await
        }
        Verb::Status => {
            let request = pb::GetCurationStatusRequest {
                name: session.team.clone(),
            };
            let answer = curator.get_curation_status(request).await?;
            output.answer(&answer, |output, answer| status(output, answer.status.as_ref()))
        }
        Verb::Pause => {
            let request = pb::PauseCurationRequest {
                name: session.team.clone(),
            };
            let answer = curator.pause_curation(request).await?;
            output.answer(&answer, |output, answer| status(output, answer.status.as_ref()))
        }
        Verb::Resume => {
            let request = pb::ResumeCurationRequest {
                name: session.team.clone(),
            };
            let answer = curator.resume_curation(request).await?;
            output.answer(&answer, |output, answer| status(output, answer.status.as_ref()))
        }
        Verb::History { limit } => {
            let answer = gather(limit, |page_size, page_token| {
                curator.list_curation_runs(pb::ListCurationRunsRequest {
                    parent: session.team.clone(),
                    page_size,
                    page_token,
                })
            });
            output.answer(&answer.await?, |output, answer| {
                let rows = answer.runs.iter().map(row).collect();
                let head = ["run", "made", "kind", "by", "state", "summary"];
                output.table(&head, rows, "No runs yet.");
                output.more(answer);
            })
        }
        Verb::Report { run, run_json } => {
            let answer = get(curator, session.child("curationRuns", &run)).await?;
            output.answer(&answer, |output, answer| report(output, answer, run_json))
        }
        Verb::Rollback { run, no_wait } => {
            let request = pb::RollbackCurationRunRequest {
                name: session.child("curationRuns", &run),
                request_id: request_id(),
            };
            let answer = curator.rollback_curation_run(request).await?;
            if no_wait {
                return output.answer(&answer, |output, answer| queued(output, answer.run.as_ref()));
            }
            follow(curator, answer.run.unwrap_or_default().name, output).await
        }
    }
}

async fn get(curator: &CuratorClient, name: String) -> anyhow::Result<pb::GetCurationReportResponse> {
    Ok(curator
        .get_curation_report(pb::GetCurationReportRequest { name })
        .await?)
}

/// Waits for the end of a run and shows its report. Exit code 1 when it failed.
async fn follow(curator: &CuratorClient, name: String, output: &mut Output) -> anyhow::Result<()> {
    output.aside(&format!("waiting for {}; Ctrl-C leaves it running", short(&name)));
    let answer = loop {
        let answer = get(curator, name.clone()).await?;
        match state_of(&answer) {
            pb::CurationState::Succeeded | pb::CurationState::Failed => break answer,
            pb::CurationState::Unspecified | pb::CurationState::Queued | pb::CurationState::Running => {
                output.progress(&answer.run.as_ref().map(state).unwrap_or_default());
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }
    };
    output.progress("");
    output.answer(&answer, |output, answer| report(output, answer, false))?;
    if state_of(&answer) == pb::CurationState::Failed {
        return Err(Said.into());
    }
    Ok(())
}

fn state_of(answer: &pb::GetCurationReportResponse) -> pb::CurationState {
    answer
        .run
        .as_ref()
        .map_or(pb::CurationState::Unspecified, pb::CurationRun::state)
}

fn queued(output: &mut Output, run: Option<&pb::CurationRun>) {
    if let Some(run) = run {
        output.line(&format!("Queued as {}.", short(&run.name)));
    }
}

fn report(output: &mut Output, answer: &pb::GetCurationReportResponse, run_json: bool) {
    let text = if run_json {
        &answer.run_json
    } else {
        &answer.report_markdown
    };
    if !text.is_empty() {
        output.line(printable(text).trim_end());
        return;
    }
    let Some(run) = &answer.run else { return };
    let said = format!("{} {}", run.error_message, run.error_reason);
    let state = state(run);
    output.line(&format!("{NOTICE}{state}{NOTICE:#} {}", printable(said.trim())));
}

fn state(run: &pb::CurationRun) -> String {
    word(run.state().as_str_name(), "CURATION_STATE_")
}

fn row(run: &pb::CurationRun) -> Vec<Cell> {
    let said = if run.summary.is_empty() {
        &run.error_message
    } else {
        &run.summary
    };
    let by = if run.requester.is_empty() {
        "itself"
    } else {
        short(&run.requester)
    };
    vec![
        Cell::name(short(&run.name)),
        Cell::side(time(run.create_time.as_ref())),
        word(run.kind().as_str_name(), "CURATION_KIND_").into(),
        by.into(),
        Cell::state(state(run)),
        first_line(said, 70).into(),
    ]
}

fn status(output: &mut Output, status: Option<&pb::CurationStatus>) {
    let Some(status) = status else { return };
    let says = match (status.enabled, status.paused) {
        (false, _) => "off in this installation",
        (true, true) => "paused",
        (true, false) => "on",
    };
    let due = if status.due_time.is_some() {
        time(status.due_time.as_ref())
    } else {
        "not known".to_owned()
    };
    let last = if status.last_run.is_empty() {
        "never".to_owned()
    } else {
        format!("{} ({})", time(status.last_run_time.as_ref()), short(&status.last_run))
    };
    let (every, idle) = (span(status.interval.as_ref()), span(status.idle.as_ref()));
    output.record(vec![
        ("curation", Cell::state(says)),
        (
            "rhythm",
            format!("every {every}, when nobody was active for {idle}").into(),
        ),
        ("last", format!("{last}, {} in all", status.runs).into()),
        ("due", due.into()),
        ("open", Cell::name(short(&status.open_run))),
    ]);
}
