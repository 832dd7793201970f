//! Measures what Steward costs: what a turn, a start, a call, a job, a search, a memory or a skill takes, on the real
//! services with real stores, each figure beside a raw floor that is measured in the same run on the same disk.
//!
//! It prints one JSON object (or a table for people) and judges nothing: what a figure means and how it is taken is said
//! in this crate's README. Nothing depends on this crate.

mod append;
mod arguments;
mod corpus;
mod floor;
mod history;
mod index;
mod machine;
mod measure;
mod memory;
mod model;
mod quality;
mod queue;
mod random;
mod recall;
mod report;
mod rig;
mod rpc;
mod scan;
mod settle;
mod start;
mod teams;
mod turn;

use std::process::ExitCode;

use clap::Parser as _;
use serde_json::Value;
use steward_runtime::telemetry;

use arguments::{Arguments, Bench};
use report::Report;

/// Parses the command line, runs one bench, prints what it found.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    steward_runtime::tls::install_provider();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report::fail(&error.into()),
    };
    match runtime.block_on(run_watched(&arguments)) {
        Ok(report) => report.print(arguments.json),
        Err(error) => report::fail(&error),
    }
}

/// With the spans, traces and log filter of a real process, since those cost as well. Only warnings are written, unless
/// `STEWARD_LOG` asks for more.
async fn run_watched(arguments: &Arguments) -> anyhow::Result<Report> {
    let mut options = telemetry::Options::new("steward-bench");
    "warn".clone_into(&mut options.config.filter);
    let guard = telemetry::install(&options)?;
    let report = Box::pin(run(arguments)).await;
    // Flushing blocks until the exporter's own tasks have run.
    tokio::task::spawn_blocking(move || drop(guard)).await?;
    report
}

async fn run(arguments: &Arguments) -> anyhow::Result<Report> {
    let (name, figures): (&'static str, Value) = match &arguments.bench {
        Bench::Turn(options) => ("turn", Box::pin(turn::run(options, arguments)).await?),
        Bench::Start(options) => ("start", start::run(options, arguments).await?),
        Bench::Append(options) => ("append", Box::pin(append::run(options, arguments)).await?),
        Bench::Recall(options) => ("recall", Box::pin(recall::run(options, arguments)).await?),
        Bench::Teams(options) => ("teams", Box::pin(teams::run(options, arguments)).await?),
        Bench::Quality(options) => ("quality", Box::pin(quality::run(options, arguments)).await?),
        Bench::Queue(options) => ("queue", queue::run(options, arguments).await?),
        Bench::Rpc(options) => ("rpc", Box::pin(rpc::run(options, arguments)).await?),
        Bench::Memory(options) => ("memory", memory::run(options, arguments).await?),
        Bench::Index(options) => ("index", Box::pin(index::run(options, arguments)).await?),
        Bench::Scan(options) => ("scan", scan::run(options)?),
        Bench::Corpus(options) => ("corpus", scan::corpus(options)?),
    };
    Ok(Report::new(name, figures))
}
