//! `scan`: what the skill scanner costs for an ordinary skill and for one line of a mebibyte. `corpus`: what it says of
//! every skill below a folder, in a table, so that anyone can count false blocks on skills of their own.

mod tree;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use serde_json::{Map, Value, json};
use steward_skill_scanner::{File, Options, Report, Scanner, Severity, Tree, Verdict};

use crate::arguments::{Corpus, Scan};
use crate::measure::{Meter, number, rounded};

/// Deepest folder in which a skill is looked for.
const DEPTH: usize = 12;

/// Figures of `scan`.
pub(crate) fn run(options: &Scan) -> anyhow::Result<Value> {
    let scanner = Scanner::new()?;
    let (skill, line) = (tree::skill(), tree::line());
    let report = scanner.scan(&skill, &Options::default());
    ensure!(
        report.verdict == Verdict::Safe,
        "the bench's own skill is {}: {:?}",
        report.verdict,
        report.findings
    );
    let ordinary = measure(&scanner, &skill, options.runs);
    let long = measure(&scanner, &line, options.runs);
    Ok(json!({
        "files": skill.len(),
        "bytes": skill.bytes(),
        "cpu_ms": ordinary.cpu().p50(),
        "wall_ms": ordinary.wall().p50(),
        "line_1mb_cpu_ms": long.cpu().p50(),
        "line_1mb_wall_ms": long.wall().p50(),
    }))
}

fn measure(scanner: &Scanner, tree: &Tree, runs: u32) -> Meter {
    let mut meter = Meter::default();
    for _ in 0..runs {
        meter.time_blocking(|| black_box(scanner.scan(black_box(tree), &Options::default())));
    }
    meter
}

/// Figures of `corpus`.
pub(crate) fn corpus(options: &Corpus) -> anyhow::Result<Value> {
    let mut folders = Vec::new();
    find(&options.folder, 0, &mut folders)?;
    ensure!(
        !folders.is_empty(),
        "no folder below {} holds a SKILL.md",
        options.folder.display()
    );
    folders.sort();
    let scanner = Scanner::new()?;
    let mut meter = Meter::default();
    let mut verdicts: BTreeMap<String, usize> = BTreeMap::new();
    let mut blocked_by: BTreeMap<String, usize> = BTreeMap::new();
    let mut blocked: BTreeMap<String, Value> = BTreeMap::new();
    let mut bytes = 0;
    for folder in &folders {
        let mut tree = Tree::new();
        read(folder, folder, &mut tree)?;
        bytes += tree.bytes();
        let report = meter.time_blocking(|| scanner.scan(&tree, &Options::default()));
        *verdicts.entry(report.verdict.as_str().to_owned()).or_default() += 1;
        let reasons = reasons(&report);
        if report.verdict != Verdict::Safe {
            let name = folder.strip_prefix(&options.folder).unwrap_or(folder);
            blocked.insert(
                name.display().to_string(),
                json!({"verdict": report.verdict.as_str(), "rules": reasons.join(", ")}),
            );
            for reason in reasons {
                *blocked_by.entry(reason).or_default() += 1;
            }
        }
    }
    let share = number(blocked.len()) * 100.0 / number(folders.len());
    let counted = |counts: BTreeMap<String, usize>| -> Value {
        counts
            .into_iter()
            .map(|(name, count)| (name, json!({"skills": count})))
            .collect::<Map<_, _>>()
            .into()
    };
    Ok(json!({
        "skills": folders.len(),
        "bytes": bytes,
        "blocked_percent": rounded(share),
        "skill_ms_p50": meter.wall().p50(),
        "skill_ms_p99": meter.wall().p99(),
        "skill_ms_longest": meter.wall().longest(),
        "verdicts": counted(verdicts),
        "blocked_by_rule": counted(blocked_by),
        "blocked": blocked,
    }))
}

/// Rules that speak against a skill, and gaps in what was read.
fn reasons(report: &Report) -> Vec<String> {
    let mut reasons: Vec<String> = report
        .findings
        .iter()
        .filter(|finding| finding.severity >= Severity::Medium)
        .map(|finding| finding.rule.clone())
        .chain(report.coverage.gaps.iter().map(|_| "not-read".to_owned()))
        .collect();
    reasons.sort();
    reasons.dedup();
    reasons
}

/// Folders that hold a `SKILL.md`; what lies below one belongs to it. Links are not followed.
fn find(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if folder.join("SKILL.md").is_file() {
        found.push(folder.to_owned());
        return Ok(());
    }
    if depth >= DEPTH {
        return Ok(());
    }
    for entry in std::fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            find(&entry.path(), depth + 1, found)?;
        }
    }
    Ok(())
}

fn read(root: &Path, folder: &Path, tree: &mut Tree) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() {
            read(root, &path, tree)?;
        } else if kind.is_file() {
            let name = path.strip_prefix(root)?.to_string_lossy().replace('\\', "/");
            tree.insert(name, File::plain(std::fs::read(&path)?));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_measured_skill_is_as_large_as_it_says_and_safe() {
        let skill = tree::skill();
        assert_eq!(skill.len(), tree::FILES);
        let off = skill.bytes().abs_diff(tree::BYTES as u64);
        assert!(off < 8 * 1024, "{} bytes", skill.bytes());
        let figures = run(&Scan { runs: 1 }).expect("figures");
        assert_eq!(figures["files"], 20);
    }

    #[test]
    fn a_folder_of_skills_is_told_by_verdict_and_rule() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, body: &str| {
            let skill = folder.path().join("some").join(name);
            std::fs::create_dir_all(&skill).expect("made");
            let text = format!("---\nname: {name}\ndescription: Does it.\n---\n{body}\n");
            std::fs::write(skill.join("SKILL.md"), text).expect("written");
        };
        write("good", "Reads the files.");
        write("bad", "```bash\nrm -rf ~/\n```");
        let figures = corpus(&Corpus {
            folder: folder.path().to_owned(),
        })
        .expect("figures");
        assert_eq!(figures["skills"], 2);
        assert_eq!(figures["verdicts"]["dangerous"]["skills"], 1);
        assert_eq!(figures["blocked_by_rule"]["destroys-files"]["skills"], 1);
        assert_eq!(figures["blocked"]["some/bad"]["verdict"], "dangerous");
    }
}
