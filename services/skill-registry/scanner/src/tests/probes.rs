//! The probes: inert samples of attacks beside benign twins. They are data in `probes/`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::*;

const FILES: [&str; 3] = [
    include_str!("../../probes/commands.toml"),
    include_str!("../../probes/data.toml"),
    include_str!("../../probes/words.toml"),
];

#[derive(Debug, Deserialize)]
struct ProbeFile {
    probe: Vec<Probe>,
}

#[derive(Debug, Deserialize)]
struct Probe {
    id: String,
    expect: Verdict,
    text: String,
    twin: String,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    twin_files: BTreeMap<String, String>,
}

fn probes() -> Vec<Probe> {
    FILES
        .iter()
        .flat_map(|file| toml::from_str::<ProbeFile>(file).expect("a probe file").probe)
        .collect()
}

fn tree(text: &str, files: &BTreeMap<String, String>) -> Tree {
    let mut tree = skill(text);
    for (path, content) in files {
        let bytes = match content.strip_prefix("hex:") {
            Some(digits) => hex::decode(digits).expect("hexadecimal bytes"),
            None => content.clone().into_bytes(),
        };
        tree.insert(path.clone(), File::plain(bytes));
    }
    tree
}

fn told(report: &Report) -> Vec<String> {
    report
        .findings
        .iter()
        .filter(|finding| finding.severity >= Severity::Medium)
        .map(|finding| format!("{} ({:?})", finding.rule, finding.excerpt))
        .chain(report.coverage.gaps.iter().map(|gap| format!("gap: {}", gap.reason)))
        .collect()
}

#[test]
fn h_4_at_least_ninety_five_of_a_hundred_probes_are_caught() {
    let probes = probes();
    assert!(probes.len() >= 60, "{} probes", probes.len());
    let missed: Vec<String> = probes
        .iter()
        .filter_map(|probe| {
            let report = scanner().scan(&tree(&probe.text, &probe.files), &Options::default());
            (report.verdict < probe.expect).then(|| format!("{}: {} {:?}", probe.id, report.verdict, told(&report)))
        })
        .collect();
    assert!(missed.len() * 100 <= probes.len() * 5, "{}", missed.join("\n"));
}

#[test]
fn h_4_every_benign_twin_is_safe() {
    let wrong: Vec<String> = probes()
        .iter()
        .filter_map(|probe| {
            let report = scanner().scan(&tree(&probe.twin, &probe.twin_files), &Options::default());
            (report.verdict != Verdict::Safe).then(|| format!("{}: {} {:?}", probe.id, report.verdict, told(&report)))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
