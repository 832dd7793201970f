//! Scratch.
#![allow(
    clippy::all,
    clippy::pedantic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "scratch"
)]
use std::collections::BTreeMap;
use std::path::Path;
use steward_skill_scanner::*;
fn walk(root: &Path, at: &Path, tree: &mut Tree) {
    for e in std::fs::read_dir(at).unwrap() {
        let p = e.unwrap().path();
        if p.is_dir() {
            walk(root, &p, tree)
        } else if p.is_file() {
            tree.insert(
                p.strip_prefix(root).unwrap().to_str().unwrap(),
                File::plain(std::fs::read(&p).unwrap()),
            );
        }
    }
}
fn skills(at: &Path, out: &mut Vec<std::path::PathBuf>) {
    if at.join("SKILL.md").is_file() {
        out.push(at.to_owned());
        return;
    }
    for e in std::fs::read_dir(at).unwrap() {
        let p = e.unwrap().path();
        if p.is_dir() {
            skills(&p, out)
        }
    }
}
fn main() {
    let mut dirs = Vec::new();
    skills(Path::new(&std::env::args().nth(1).unwrap()), &mut dirs);
    let scanner = Scanner::new().unwrap();
    let mut by: BTreeMap<String, usize> = BTreeMap::new();
    let mut verdicts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut trees = Vec::new();
    for d in &dirs {
        let mut t = Tree::new();
        walk(d, d, &mut t);
        trees.push(t);
    }
    scanner.scan(&trees[0], &Options::default());
    let start = std::time::Instant::now();
    let reports: Vec<_> = trees
        .iter()
        .map(|t| {
            let s = std::time::Instant::now();
            let r = scanner.scan(t, &Options::default());
            (r, s.elapsed())
        })
        .collect();
    let total = start.elapsed();
    let bytes: u64 = trees.iter().map(|t| t.bytes()).sum();
    for (d, (r, e)) in dirs.iter().zip(&reports) {
        *verdicts.entry(r.verdict.as_str()).or_default() += 1;
        if e.as_millis() > 20 {
            println!("SLOW {:?} {:?}", d, e);
        }
        let mut seen = std::collections::BTreeSet::new();
        for f in &r.findings {
            if f.severity >= Severity::Medium && r.verdict != Verdict::Safe && seen.insert(f.rule.clone()) {
                *by.entry(f.rule.clone()).or_default() += 1;
                println!(
                    "{:?} {} {}:{} {} => {:?}\n      {}",
                    f.severity,
                    f.rule,
                    d.file_name().unwrap().to_str().unwrap(),
                    f.path,
                    f.line,
                    f.revealed.as_deref().map(|x| x.chars().take(160).collect::<String>()),
                    f.excerpt.chars().take(220).collect::<String>()
                );
            }
        }
        for g in &r.coverage.gaps {
            println!("GAP {:?} {}: {}", d.file_name().unwrap(), g.path, g.reason);
            *by.entry(format!("gap {}", g.reason)).or_default() += 1;
        }
    }
    println!(
        "{} skills {} bytes in {:?}; {:?}\n{:#?}",
        dirs.len(),
        bytes,
        total,
        verdicts,
        by
    );
}
