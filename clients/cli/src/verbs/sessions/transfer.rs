//! `steward sessions export` and `import`: conversations as JSON lines, and histories of other programs, put into that form on
//! this side: the server never opens a file of theirs.

mod hermes_file;

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, ensure};
use clap::{Args, ValueEnum};
use futures::{StreamExt as _, stream};
use steward_proto::recall::v1 as pb;
use steward_recall_exchange::{Converted, claude_code};

use crate::Said;
use crate::connect::Session;
use crate::output::{Cell, Output, counted, printable, size};
use crate::verbs::new_file;

/// Bytes that are sent at a time.
const CHUNK: usize = 1024 * 1024;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum From {
    /// JSON lines, as `sessions export` writes them.
    Jsonl,
    /// The `state.db` of Hermes.
    Hermes,
    /// Session files of Claude Code, or a folder of them.
    ClaudeCode,
}

/// Arguments of `steward sessions export`.
#[derive(Debug, Args)]
pub struct Export {
    /// Ids or full names; all conversations by default.
    sessions: Vec<String>,
    /// Write to this new file; to standard output by default.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Arguments of `steward sessions import`.
#[derive(Debug, Args)]
pub struct Import {
    /// Files, or folders for `claude-code`; `-` is standard input.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// What they are.
    #[arg(long, value_enum, default_value_t = From::Jsonl)]
    from: From,
}

/// Runs `export`.
pub(super) async fn export(arguments: Export, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let request = pb::ExportSessionsRequest {
        parent: session.user.clone(),
        sessions: arguments
            .sessions
            .iter()
            .map(|given| session.session_name(given))
            .collect(),
    };
    let mut chunks = session.client.recall.export_sessions(request).await?;
    let Some(path) = arguments.output else {
        let mut out = std::io::stdout().lock();
        while let Some(item) = chunks.message().await? {
            out.write_all(&item.chunk)?;
        }
        return Ok(out.flush()?);
    };
    let written = |error| Err(error).with_context(|| format!("cannot write {}", path.display()));
    let mut file = new_file(&path).or_else(written)?;
    let (mut bytes, mut lines) = (0_u64, 0_u64);
    while let Some(item) = chunks.message().await? {
        if let Err(error) = file.write_all(&item.chunk) {
            return written(error).map(drop);
        }
        bytes += item.chunk.len() as u64;
        lines += memchr::memchr_iter(b'\n', &item.chunk).count() as u64;
    }
    if output.is_json() {
        let told = serde_json::json!({"file": path, "bytes": bytes, "sessions": lines});
        return output.document(&told);
    }
    let many = counted(usize::try_from(lines).unwrap_or(usize::MAX), "conversation");
    output.line(&format!("{many}, {}, written to {}", size(bytes), path.display()));
    Ok(())
}

/// Runs `import`. Exit code 1 when a line was not taken in.
pub(super) async fn import(arguments: Import, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let mut total = pb::ImportSessionsResponse::default();
    // What a foreign file has that could not even be sent is not taken in either.
    let mut is_whole = true;
    match arguments.from {
        From::Jsonl => {
            for path in &arguments.files {
                absorb(&mut total, send_file(path, session).await?);
            }
        }
        From::Hermes => {
            for path in &arguments.files {
                let converted = hermes_file::convert(&session.user, path).await?;
                is_whole &= converted.problems.is_empty();
                tell(path, &converted, output);
                absorb(&mut total, send_lines(&converted, session).await?);
            }
        }
        From::ClaudeCode => {
            let mut files = Vec::new();
            for path in &arguments.files {
                collect(path, &mut files)?;
            }
            ensure!(!files.is_empty(), "no file that ends with .jsonl was found");
            for path in &files {
                let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
                let name = path.file_stem().unwrap_or_default().to_string_lossy();
                let converted = claude_code::convert(&session.user, &name, &bytes);
                is_whole &= converted.problems.is_empty();
                tell(path, &converted, output);
                absorb(&mut total, send_lines(&converted, session).await?);
            }
        }
    }
    output.answer(&total, show)?;
    if is_whole && total.problems.is_empty() && total.more_problems == 0 {
        Ok(())
    } else {
        Err(Said.into())
    }
}

fn show(output: &mut Output, answer: &pb::ImportSessionsResponse) {
    let rows = answer.problems.iter().map(|problem| {
        vec![
            Cell::name(problem.line.to_string()),
            printable(&problem.description).into(),
        ]
    });
    if !answer.problems.is_empty() {
        output.table(&["line", "not taken in, since it"], rows.collect(), "");
    }
    if answer.more_problems > 0 {
        output.warn(&format!("{} more lines were not taken in", answer.more_problems));
    }
    output.line(&format!(
        "{} taken in, {} there already.",
        counted(answer.imported as usize, "conversation"),
        answer.unchanged
    ));
}

fn absorb(total: &mut pb::ImportSessionsResponse, part: pb::ImportSessionsResponse) {
    total.imported += part.imported;
    total.unchanged += part.unchanged;
    total.problems.extend(part.problems);
    total.more_problems += part.more_problems;
}

/// What was left out of a foreign file.
fn tell(path: &Path, converted: &Converted, output: &mut Output) {
    for problem in &converted.problems {
        output.warn(&format!("{}: {}", path.display(), printable(problem)));
    }
}

/// Files of sessions in a folder, in the order of their paths.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let entries = std::fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut entries: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        // What is linked may lead anywhere, in circles too.
        .filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()))
        .map(|entry| entry.path())
        .collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() || entry.extension().is_some_and(|extension| extension == "jsonl") {
            collect(&entry, files)?;
        }
    }
    Ok(())
}

async fn send_lines(converted: &Converted, session: &Session) -> anyhow::Result<pb::ImportSessionsResponse> {
    let mut bytes = Vec::new();
    for line in &converted.sessions {
        bytes.extend(line.write()?);
        bytes.push(b'\n');
    }
    let items = stream::iter(items(
        &session.user,
        Box::new(std::io::Cursor::new(bytes)),
        Arc::default(),
    ));
    Ok(session.client.recall.import_sessions(items).await?)
}

async fn send_file(path: &Path, session: &Session) -> anyhow::Result<pb::ImportSessionsResponse> {
    let source: Box<dyn Read + Send> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(File::open(path).with_context(|| format!("cannot read {}", path.display()))?)
    };
    let failed = Arc::new(Mutex::new(None));
    let items = stream::iter(items(&session.user, source, Arc::clone(&failed))).boxed();
    let answer = session.client.recall.import_sessions(items).await;
    let failed = failed.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(error) = failed {
        let told: std::io::Error = error;
        return Err(told).with_context(|| format!("cannot read all of {}; what came before was sent", path.display()));
    }
    Ok(answer?)
}

/// The items of an import: the first one says whose, each has a piece of the source.
fn items(
    user: &str,
    mut source: Box<dyn Read + Send>,
    failed: Arc<Mutex<Option<std::io::Error>>>,
) -> impl Iterator<Item = pb::ImportSessionsRequest> + Send + use<> {
    let mut parent = Some(user.to_owned());
    std::iter::from_fn(move || {
        let mut chunk = vec![0; CHUNK];
        let read = match source.read(&mut chunk) {
            Ok(read) => read,
            Err(error) => {
                *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                0
            }
        };
        // An empty source is an import, too, of nothing.
        if read == 0 && parent.is_none() {
            return None;
        }
        chunk.truncate(read);
        Some(pb::ImportSessionsRequest {
            parent: parent.take().unwrap_or_default(),
            chunk: chunk.into(),
        })
    })
}
