//! `steward memory check`: the checks that entries name, run where the workspace is, and reported.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use anyhow::Context as _;
use steward_base::hash::sha256_hex;
use steward_proto::memory::v1 as pb;

use crate::Said;
use crate::connect::Session;
use crate::output::{ALL, Cell, Output, gather};

/// Largest file that is looked into, in bytes.
const FILE_BYTES: u64 = 16 << 20;

/// Runs the verb. Exit code 1 when a check does not hold.
pub(super) async fn run(
    store: String,
    dir: Option<PathBuf>,
    session: &Session,
    output: &mut Output,
) -> anyhow::Result<()> {
    let root = match dir {
        Some(dir) => dir
            .canonicalize()
            .with_context(|| format!("no such folder: {}", dir.display()))?,
        None => std::env::current_dir().context("the present folder cannot be read")?,
    };
    let entries = gather(ALL, |page_size, page_token| {
        session.client.memory.list_entries(pb::ListEntriesRequest {
            parent: store.clone(),
            page_size,
            page_token,
        })
    });
    let checks: BTreeSet<String> = entries
        .await?
        .entries
        .into_iter()
        .filter_map(|entry| entry.provenance?.holds)
        .flat_map(|holds| holds.checks)
        .collect();
    let results: Vec<_> = checks
        .into_iter()
        .map(|check| pb::CheckResult {
            holds: holds(&check, &root),
            check,
        })
        .collect();
    if !output.is_json() {
        let rows = results.iter().map(|result| {
            let word = if result.holds { "ok" } else { "failed" };
            vec![Cell::state(word), result.check.as_str().into()]
        });
        output.table(&["", "check"], rows.collect(), "No entry names a check.");
    }
    let failed = results.iter().any(|result| !result.holds);
    let request = pb::ReportChecksRequest { store, results };
    output.answer(
        &session.client.memory.report_checks(request).await?,
        |output, answer| {
            if answer.doubted_entries > 0 {
                output.aside(&format!(
                    "{} left out of new sessions until they hold again; `steward memory confirm` overrules",
                    match answer.doubted_entries {
                        1 => "1 entry is".to_owned(),
                        many => format!("{many} entries are"),
                    }
                ));
            }
        },
    )?;
    if failed { Err(Said.into()) } else { Ok(()) }
}

/// Whether a check holds below `root`. What cannot be read or understood does not hold.
fn holds(check: &str, root: &Path) -> bool {
    let Some((kind, rest)) = check.split_once(':') else {
        return false;
    };
    match kind {
        "exists" => below(root, rest).is_some_and(|path| path.exists()),
        "file" => rest.rsplit_once('#').is_some_and(|(path, digest)| {
            read(root, path).is_some_and(|content| sha256_hex(&content).eq_ignore_ascii_case(digest))
        }),
        "grep" => rest.split_once(':').is_some_and(|(path, text)| {
            read(root, path).is_some_and(|content| String::from_utf8_lossy(&content).contains(text))
        }),
        _ => false,
    }
}

/// A path below the root, links followed; anything else is none.
fn below(root: &Path, path: &str) -> Option<PathBuf> {
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if !Path::new(path).components().all(plain) {
        return None;
    }
    let root = root.canonicalize().ok()?;
    let found = root.join(path).canonicalize().ok()?;
    found.starts_with(&root).then_some(found)
}

fn read(root: &Path, path: &str) -> Option<Vec<u8>> {
    let path = below(root, path)?;
    let about = std::fs::metadata(&path).ok()?;
    if !about.is_file() || about.len() > FILE_BYTES {
        return None;
    }
    std::fs::read(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_hold_as_the_folder_says_and_never_leave_it() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("work");
        std::fs::create_dir_all(root.join("src")).unwrap();
        std::fs::write(root.join("src/port.txt"), "port: 7400\n").unwrap();
        std::fs::write(outer.path().join("secret"), "x").unwrap();
        let digest = sha256_hex(b"port: 7400\n");
        for good in [
            "exists:src".to_owned(),
            "exists:src/port.txt".to_owned(),
            format!("file:src/port.txt#{digest}"),
            "grep:src/port.txt:port: 7400".to_owned(),
        ] {
            assert!(holds(&good, &root), "{good}");
        }
        for bad in [
            "exists:../secret",
            "exists:/etc",
            "grep:src/port.txt:7401",
            "file:src/port.txt#00",
            "grep:src:x",
            "shell:true",
            "exists",
        ] {
            assert!(!holds(bad, &root), "{bad}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_out_of_the_folder_is_not_followed() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("work");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(outer.path().join("secret"), "x").unwrap();
        std::os::unix::fs::symlink(outer.path().join("secret"), root.join("link")).unwrap();
        assert!(!holds("exists:link", &root));
    }
}
