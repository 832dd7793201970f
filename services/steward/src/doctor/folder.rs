//! The data folder: whether it is there, whether others could read it, and whether its files come from the future.

use std::fs::{self, Metadata};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use steward_base::Timestamp;

use super::Report;

const AREA: &str = "folder";
/// Files below the data folder that open doors, and folders of such files.
const SECRETS: [&str; 4] = ["agent", "agent/owner.token", "agent/curator-worker.token", "agent/keys"];
/// Seconds by which clocks may differ without harm.
const TOLERANCE: i64 = 120;

/// Looks at the folder; says whether there is one that can be read.
pub(super) fn examine(data_dir: &Path, now: Timestamp, report: &mut Report) -> bool {
    let subject = data_dir.display().to_string();
    let metadata = match fs::metadata(data_dir) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            report.note(AREA, subject, "is not there", "the first start of `steward` makes it");
            return false;
        }
        Err(error) => {
            report.problem(
                AREA,
                subject,
                error.to_string(),
                "run as the user that the server runs as",
            );
            return false;
        }
    };
    if let Err(error) = fs::read_dir(data_dir) {
        report.problem(
            AREA,
            subject,
            error.to_string(),
            "run as the user that the server runs as",
        );
        return false;
    }
    // What lies in a folder that others may enter is safe where its own folders are private.
    let wide: Vec<_> = folders(data_dir)
        .into_iter()
        .filter(|folder| is_open_at(folder))
        .collect();
    match wide.first() {
        Some(folder) if is_open(&metadata) => {
            let detail = format!("others may enter {} in it", folder.display());
            report.problem(AREA, subject, detail, &format!("chmod 700 {}", data_dir.display()));
        }
        _ => report.ok(AREA, subject, "private"),
    }
    for secret in SECRETS.into_iter().map(|name| data_dir.join(name)) {
        examine_secret(&secret, report);
    }
    examine_times(data_dir, now, report);
    true
}

fn is_open(metadata: &Metadata) -> bool {
    metadata.permissions().mode() & 0o077 != 0
}

fn is_open_at(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| is_open(&metadata))
}

/// The services' folders that are there.
fn folders(data_dir: &Path) -> Vec<PathBuf> {
    let folders = ["agent", "recall", "memory", "skills", "learning"].map(|name| data_dir.join(name));
    folders.into_iter().filter(|folder| folder.is_dir()).collect()
}

fn examine_secret(path: &Path, report: &mut Report) {
    let mut wide: Vec<PathBuf> = Vec::new();
    if is_open_at(path) {
        wide.push(path.to_owned());
    }
    // Of a folder of keys the files count; the public halves may be read by anyone.
    if path.ends_with("keys") {
        let files = fs::read_dir(path)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path());
        wide.extend(files.filter(|file| file.is_file() && is_open_at(file)));
    }
    for path in wide {
        let hint = format!("chmod go-rwx {}", path.display());
        report.problem(AREA, path.display().to_string(), "others may read it", &hint);
    }
}

/// A database that was written in the future tells of a clock that went back, and with it of tokens and leases that
/// mean another time.
fn examine_times(data_dir: &Path, now: Timestamp, report: &mut Report) {
    let newest = super::stores::files(data_dir)
        .into_iter()
        .filter_map(|store| fs::metadata(store.path).ok()?.modified().ok())
        .filter_map(|time| i64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok())
        .max();
    let Some(newest) = newest else { return };
    let ahead = newest - now.as_secs();
    if ahead > TOLERANCE {
        let detail = format!("data was written {ahead} seconds in the future of this machine's clock");
        report.problem(
            "clock",
            "this machine",
            detail,
            "set the clock, by NTP where that is possible",
        );
    } else {
        report.ok("clock", "this machine", format!("{now}, not behind the data"));
    }
}
