//! The table of rules in the README, held to the code: no rule is missing, and each test that it names is there.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Where tests of these rules may stand.
const PLACES: [&str; 4] = [
    "services/memory-service",
    "services/kit/guard",
    "services/agent-orchestrator",
    "tests/tests",
];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// All Rust text below a folder.
fn sources(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).expect("a folder of the workspace") {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn every_rule_of_the_readme_has_its_tests() {
    let readme = std::fs::read_to_string(workspace().join("services/memory-service/README.md")).unwrap();
    let mut code = String::new();
    for place in PLACES {
        sources(&workspace().join(place), &mut code);
    }
    let mut seen = BTreeSet::new();
    for row in readme
        .lines()
        .filter(|line| line.starts_with("| ") && line.contains(" | `"))
    {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [rule, tests] = cells[..] else { continue };
        if !rule.starts_with(|letter: char| letter.is_ascii_uppercase()) || !rule.contains('-') {
            continue;
        }
        seen.insert(rule.to_owned());
        for test in tests.split(", ").map(|test| test.trim_matches('`')) {
            assert!(
                code.contains(&format!("fn {test}(")),
                "{rule}: no test is called {test}"
            );
        }
    }
    let others = ["A-1", "L-6", "L-7"].map(str::to_owned);
    let rules: BTreeSet<String> = (1..=19).map(|number| format!("M-{number}")).chain(others).collect();
    assert_eq!(seen, rules);
}
