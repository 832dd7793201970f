//! The command line: which bench, how large, where its files go.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand};

/// Measures what Steward costs, beside a raw floor measured in the same run.
#[derive(Debug, Clone, Parser)]
#[command(name = "steward-bench", version, about, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    /// What to measure.
    #[command(subcommand)]
    pub(crate) bench: Bench,
    /// Print one JSON object instead of a table.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Draws the generated texts; another seed, other texts.
    #[arg(long, global = true, default_value_t = 7)]
    pub(crate) seed: u64,
    /// Folder for the databases, on the disk that is to be measured; the system's temporary folder by default. What is
    /// made in it is removed at the end.
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
}

/// The benches.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Bench {
    /// What Steward adds to a turn, the model's own time taken out.
    Turn(Turn),
    /// From the start of the process to its ready line, and what it takes when idle.
    Start(Start),
    /// Messages appended one by one.
    Append(History),
    /// Word-for-word search, by class of query.
    Recall(Recall),
    /// Search in one of many teams, each with a file of its own.
    Teams(Teams),
    /// Whether search finds what people ask about, on sets of conversations with questions.
    Quality(Quality),
    /// Jobs put in, claimed and completed.
    Queue(Queue),
    /// The smallest authenticated call over a real port.
    Rpc(Rpc),
    /// Memory writes, snapshots, and the threat scan.
    Memory(Memory),
    /// The index of a large library of skills, and opening one of them.
    Index(Index),
    /// The skill scanner on an ordinary skill and on one long line.
    Scan(Scan),
    /// The skill scanner on every skill below a folder: verdicts, and blocks by rule.
    Corpus(Corpus),
}

/// Options of `turn`.
#[derive(Debug, Clone, Args)]
pub(crate) struct Turn {
    /// Sessions that talk at the same time.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) sessions: u32,
    /// Turns of each session.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) turns: u32,
    /// How long the scripted model takes for an answer, in milliseconds.
    #[arg(long, default_value_t = 500)]
    pub(crate) model_ms: u64,
    /// How long a person waits between an answer and the next message, in milliseconds.
    #[arg(long, default_value_t = 500)]
    pub(crate) pause_ms: u64,
}

/// Options of `start`.
#[derive(Debug, Clone, Args)]
pub(crate) struct Start {
    /// The `steward` binary; by default the one beside this binary.
    #[arg(long, value_name = "FILE")]
    pub(crate) binary: Option<PathBuf>,
    /// Starts on the same data folder after the first.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) runs: u32,
}

/// Options of what works on a history.
#[derive(Debug, Clone, Args)]
pub(crate) struct History {
    /// Messages in the generated history.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(10..=5_000_000))]
    pub(crate) messages: u32,
    /// Sessions of the generated history; one per 50 messages by default.
    #[arg(long)]
    pub(crate) sessions: Option<u32>,
    /// A history in the dump format (see the README) instead of a generated one.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["messages", "sessions"])]
    pub(crate) corpus: Option<PathBuf>,
}

/// Options of `recall`.
#[derive(Debug, Clone, Args)]
pub(crate) struct Recall {
    /// The history to search in.
    #[command(flatten)]
    pub(crate) history: History,
    /// Queries of each class.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) queries: u32,
}

/// Options of `teams`.
#[derive(Debug, Clone, Args)]
pub(crate) struct Teams {
    /// Teams.
    #[arg(long = "teams", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=50_000))]
    pub(crate) count: u32,
    /// Messages of each team.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(50..=100_000))]
    pub(crate) messages: u32,
    /// Searches of each kind.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) searches: u32,
    /// Files that are open at most, as the setting `recall.open_teams`.
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) open: u32,
}

/// Options of `quality`.
#[derive(Debug, Clone, Args)]
pub(crate) struct Quality {
    /// Folder of sets, in any of the forms that the README names.
    #[arg(value_name = "DIR")]
    pub(crate) folder_of_sets: PathBuf,
}

/// Options of `queue`.
#[derive(Debug, Clone, Args)]
pub(crate) struct Queue {
    /// Jobs.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) jobs: u32,
    /// Workers that claim at the same time.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) workers: u32,
}

/// Options of `rpc`.
#[derive(Debug, Clone, Args)]
pub(crate) struct Rpc {
    /// Calls, one after the other and again all at once.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) calls: u32,
    /// Callers at the same time when throughput is measured.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) callers: u32,
}

/// Options of `memory`.
#[derive(Debug, Clone, Args)]
pub(crate) struct Memory {
    /// Entries that are added one after the other.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) writes: u32,
    /// Snapshots that are read.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) snapshots: u32,
}

/// Options of `index`.
#[derive(Debug, Clone, Args)]
pub(crate) struct Index {
    /// Skills of the person.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) skills: u32,
    /// Changes, each followed by one index that is rendered anew and ten that are not.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) runs: u32,
    /// Skills that are opened.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) views: u32,
}

/// Options of `scan`.
#[derive(Debug, Clone, Args)]
pub(crate) struct Scan {
    /// Scans of each.
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) runs: u32,
}

/// Options of `corpus`.
#[derive(Debug, Clone, Args)]
pub(crate) struct Corpus {
    /// The folder; every folder below it that holds a SKILL.md is a skill.
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}

impl Arguments {
    /// A fresh folder of the run, removed when it is dropped.
    pub(crate) fn fresh_folder(&self) -> anyhow::Result<tempfile::TempDir> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("steward-bench-");
        let made = match &self.folder {
            Some(folder) => builder.tempdir_in(folder),
            None => builder.tempdir(),
        };
        made.context("make a folder for the databases")
    }
}

impl History {
    /// Sessions to generate.
    pub(crate) fn session_count(&self) -> u32 {
        self.sessions.unwrap_or(self.messages / 50).clamp(1, self.messages)
    }

    /// Where the queries of a dumped history lie, if there are any.
    pub(crate) fn queries_file(&self) -> Option<PathBuf> {
        let mut name = self.corpus.as_deref().map(Path::as_os_str)?.to_owned();
        name.push(".queries.jsonl");
        Some(PathBuf::from(name)).filter(|file| file.exists())
    }
}
