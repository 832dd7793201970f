//! What a figure was measured on; without it a figure says nothing.

use std::path::Path;

use anyhow::Context as _;
use serde_json::{Map, Value, json};

/// Profile, processors and load of this run, to stand beside the figures.
pub(crate) fn describe() -> Map<String, Value> {
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let mut map = Map::new();
    map.insert("profile".to_owned(), json!(profile));
    map.insert("cpus".to_owned(), json!(cpus));
    map.insert("load_average".to_owned(), json!(load_average()));
    map
}

/// Processes that wanted to run in the last minute; `None` where the system does not say.
fn load_average() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// Bytes of the files in a folder whose names begin with `stem`: a database with its log.
pub(crate) fn bytes_of(folder: &Path, stem: &str) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(stem) {
            bytes += entry.metadata()?.len();
        }
    }
    Ok(bytes)
}

/// Resident memory of a process, in MiB.
pub(crate) fn resident_mib(process: u32) -> anyhow::Result<f64> {
    memory_mib(process, "VmRSS:")
}

/// The most that it ever was, in MiB.
pub(crate) fn peak_mib(process: u32) -> anyhow::Result<f64> {
    memory_mib(process, "VmHWM:")
}

fn memory_mib(process: u32, field: &str) -> anyhow::Result<f64> {
    let file = format!("/proc/{process}/status");
    let text = std::fs::read_to_string(&file).with_context(|| format!("read {file}"))?;
    let kib = text
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .and_then(|rest| rest.trim().strip_suffix("kB"))
        .and_then(|number| number.trim().parse::<f64>().ok())
        .with_context(|| format!("{file} does not say {field}"))?;
    Ok(crate::measure::rounded(kib / 1_024.0))
}
