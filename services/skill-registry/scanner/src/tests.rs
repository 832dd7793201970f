use super::*;

mod probes;
mod rule_tests;
mod verdicts;

pub(crate) fn scanner() -> Scanner {
    Scanner::new().expect("the embedded rules compile")
}

pub(crate) fn skill(body: &str) -> Tree {
    let text = if body.starts_with("---\n") {
        body.to_owned()
    } else {
        format!("---\nname: sample\ndescription: Does a thing with files.\n---\n# Sample\n\n{body}\n")
    };
    [("SKILL.md", text.into_bytes())].into_iter().collect()
}
