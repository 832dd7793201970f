//! Tables of rules in documents, held to the code: each rule has a row, and each test that a row names is there.
//!
//! A row is `` | M-3 | `a_test`, `another_test` | ``: the rule's id, then its tests in backquotes. A document may hold several
//! tables, and other tables beside them. Whether a test says what the rule says is for the reader to judge; the table takes
//! care that there is one to read, and that it is found by its name.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Fails the test unless `document` has exactly the rows of `rules`, each with a test that stands below one of `places`. All
/// paths are the workspace's; all that is wrong is told at once.
pub fn check_table(document: &str, rules: impl IntoIterator<Item = String>, places: &[&str]) {
    let root = workspace();
    let text = read(&root.join(document));
    let mut code = String::new();
    for place in places {
        gather(&root.join(place), &mut code);
    }
    let wrong = problems(&text, &rules.into_iter().collect(), &code);
    assert!(wrong.is_empty(), "{document}:\n{}", wrong.join("\n"));
}

/// The ids of the rules `first` to `last` of one letter, for example `M-1` to `M-19`.
pub fn numbered(letter: &str, numbers: std::ops::RangeInclusive<u32>) -> impl Iterator<Item = String> {
    numbers.map(move |number| format!("{letter}-{number}"))
}

/// Only rows of rules with a letter of `rules` count: another table of the same document is another test's.
fn problems(document: &str, rules: &BTreeSet<String>, code: &str) -> Vec<String> {
    let letters: BTreeSet<&str> = rules.iter().filter_map(|rule| Some(rule.split_once('-')?.0)).collect();
    let mut missing = rules.clone();
    let mut wrong = Vec::new();
    for (rule, tests) in document.lines().filter_map(row) {
        if !letters
            .iter()
            .any(|letter| rule.split_once('-').is_some_and(|(of, _)| of == *letter))
        {
            continue;
        }
        if !missing.remove(rule) {
            wrong.push(format!("{rule}: no such rule, or its second row"));
        }
        for test in tests.split(", ").map(|test| test.trim_matches('`')) {
            if !code.contains(&format!("fn {test}(")) {
                wrong.push(format!("{rule}: no test is called {test}"));
            }
        }
    }
    wrong.extend(missing.into_iter().map(|rule| format!("{rule}: has no row")));
    wrong
}

/// A row's rule and its tests, if the line is a row of such a table.
fn row(line: &str) -> Option<(&str, &str)> {
    let (rule, tests) = line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | ")?;
    let (letter, number) = rule.split_once('-')?;
    let is_rule = letter.len() == 1 && letter.starts_with(|letter: char| letter.is_ascii_uppercase());
    (is_rule && number.bytes().all(|byte| byte.is_ascii_digit()) && tests.starts_with('`')).then_some((rule, tests))
}

/// The folder that holds all crates.
fn workspace() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors()
        .nth(3)
        .expect("services/kit/testkit is three folders down")
        .to_owned()
}

fn gather(folder: &Path, code: &mut String) {
    let entries = std::fs::read_dir(folder);
    for entry in entries.unwrap_or_else(|error| wrong_path(folder, &error)) {
        let path = entry.unwrap_or_else(|error| wrong_path(folder, &error)).path();
        if path.is_dir() {
            gather(&path, code);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            code.push_str(&read(&path));
        }
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| wrong_path(path, &error))
}

#[expect(clippy::panic, reason = "a path that is not there fails the test")]
fn wrong_path(path: &Path, error: &std::io::Error) -> ! {
    panic!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "fn it_holds() {} async fn it_holds_everywhere() {}";

    fn found(document: &str) -> Vec<String> {
        problems(document, &numbered("M", 1..=2).collect(), CODE)
    }

    #[test]
    fn a_table_with_a_test_for_each_rule_is_whole() {
        let whole = "| rule | tests |\n|---|---|\n| M-1 | `it_holds` |\n| M-2 | `it_holds`, `it_holds_everywhere` |\n";
        assert!(found(whole).is_empty());
        let others = "| S-1 | `of_another_test` |\n| a-b | `c` |\n| M-9 |  no tests in it |\n";
        assert!(found(&format!("{whole}{others}")).is_empty());
    }

    #[test]
    fn a_rule_without_a_row_and_a_row_without_a_rule_or_test_are_told_at_once() {
        let wrong = found("| M-1 | `it_holds`, `it_holds_no_more` |\n| M-1 | `it_holds` |\n| M-3 | `it_holds` |\n");
        assert_eq!(
            wrong,
            [
                "M-1: no test is called it_holds_no_more",
                "M-1: no such rule, or its second row",
                "M-3: no such rule, or its second row",
                "M-2: has no row",
            ]
        );
    }
}
