//! The structure check (`H-3`): what a folder must be before anything in it is read as a skill.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::content::{Binary, Kind, classify, decode};
use crate::header;
use crate::path;
use crate::tree::Tree;

/// How much a skill may hold. The defaults fit 99 of 100 published skills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Most files.
    pub files: usize,
    /// Most bytes of all files.
    pub bytes: u64,
    /// Most bytes of one file.
    pub file_bytes: u64,
    /// Most bytes of `SKILL.md`.
    pub skill_bytes: u64,
    /// Most parts of a path.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            files: 1_000,
            bytes: 10 << 20,
            file_bytes: 8 << 20,
            skill_bytes: 1 << 20,
            depth: 16,
        }
    }
}

/// One reason why a folder cannot be installed, whatever its trust.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The file, or nothing for the whole folder.
    pub path: String,
    /// What is wrong with it, as a clause that follows its name.
    pub message: String,
}

/// Everything that is wrong with the folder; empty means that it may be scanned. `name` is the folder's name.
pub fn check(tree: &Tree, name: Option<&str>, limits: &Limits) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut add = |path: &str, message: String| {
        problems.push(Problem {
            path: path.to_owned(),
            message,
        });
    };
    if tree.len() > limits.files {
        add(
            "",
            format!("holds {} files; at most {} are taken", tree.len(), limits.files),
        );
    }
    if tree.bytes() > limits.bytes {
        add(
            "",
            format!("holds {} bytes; at most {} are taken", tree.bytes(), limits.bytes),
        );
    }
    let mut folded: BTreeMap<String, &str> = BTreeMap::new();
    for (path, file) in tree.iter() {
        if let Some(problem) = path::problem(path, limits.depth) {
            add(path, problem.to_owned());
        }
        if let Some(other) = folded.insert(path::folded(path), path) {
            add(
                path,
                format!("is one file with {other} where case or Unicode form does not count"),
            );
        }
        if file.bytes.len() as u64 > limits.file_bytes {
            add(
                path,
                format!(
                    "has {} bytes; at most {} are taken",
                    file.bytes.len(),
                    limits.file_bytes
                ),
            );
        }
        match classify(path, &file.bytes).0 {
            Kind::Binary(Binary::Program) => add(path, "is a compiled program".to_owned()),
            Kind::Binary(Binary::Bytecode) => add(path, "is code that no one can read".to_owned()),
            Kind::Binary(Binary::Archive) => add(path, "is an archive inside the skill".to_owned()),
            Kind::Binary(_) | Kind::Markdown | Kind::Script(_) | Kind::Data => {}
        }
    }
    for (key, path) in &folded {
        let mut parent = key.as_str();
        while let Some((above, _)) = parent.rsplit_once('/') {
            if let Some(file) = folded.get(above) {
                add(path, format!("lies below {file}, which is a file"));
            }
            parent = above;
        }
    }
    check_skill_file(tree, name, limits, &mut add);
    problems
}

fn check_skill_file(tree: &Tree, name: Option<&str>, limits: &Limits, add: &mut impl FnMut(&str, String)) {
    let spellings: Vec<&str> = tree
        .iter()
        .map(|(path, _)| path)
        .filter(|path| path.eq_ignore_ascii_case("SKILL.md"))
        .collect();
    let file = match spellings.as_slice() {
        [only] => *only,
        [] => {
            add("", "has no SKILL.md at its root".to_owned());
            return;
        }
        _ => {
            add(
                "",
                format!("has more than one SKILL.md at its root: {}", spellings.join(", ")),
            );
            return;
        }
    };
    for (path, _) in tree.iter() {
        let name = path.rsplit('/').next().unwrap_or(path);
        if path.contains('/') && name.eq_ignore_ascii_case("SKILL.md") {
            add(path, "is a skill inside the skill".to_owned());
        }
    }
    let bytes = tree.get(file).map(|file| file.bytes.clone()).unwrap_or_default();
    if bytes.len() as u64 > limits.skill_bytes {
        add(
            file,
            format!("has {} bytes; at most {} are taken", bytes.len(), limits.skill_bytes),
        );
        return;
    }
    let Some(text) = decode(&bytes) else {
        add(file, "is not text".to_owned());
        return;
    };
    match header::parse(&text.text) {
        Err(error) => add(file, format!("cannot be used: {error}")),
        Ok(header) => {
            if let Some(name) = name.filter(|name| *name != header.name) {
                add(
                    file,
                    format!("names the skill {:?}, but its folder is {name:?}", header.name),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SKILL: &str = "---\nname: tidy\ndescription: Tidies.\n---\n# Tidy\n";

    fn problems(files: &[(&str, &[u8])]) -> Vec<String> {
        let tree: Tree = files.iter().map(|(path, bytes)| (*path, bytes.to_vec())).collect();
        check(&tree, Some("tidy"), &Limits::default())
            .into_iter()
            .map(|problem| format!("{}: {}", problem.path, problem.message))
            .collect()
    }

    #[test]
    fn h_3_an_ordinary_skill_passes() {
        let files: &[(&str, &[u8])] = &[
            ("SKILL.md", SKILL.as_bytes()),
            ("references/a.md", b"a"),
            ("scripts/run.sh", b"#!/bin/sh\n"),
            ("assets/x.png", b"\x89PNG\r\n\x1a\n\0\0\0\0IEND\xae\x42\x60\x82"),
        ];
        assert_eq!(problems(files), Vec::<String>::new());
    }

    #[test]
    fn h_3_each_wrong_folder_is_told_with_its_reason() {
        type Files<'f> = &'f [(&'f str, &'f [u8])];
        let skill = ("SKILL.md", SKILL.as_bytes());
        let cases: &[(Files<'_>, &str)] = &[
            (&[("README.md", b"x")], "no SKILL.md"),
            (&[skill, ("skill.md", SKILL.as_bytes())], "more than one SKILL.md"),
            (&[skill, ("../../evil.md", b"x")], "`..`"),
            (&[skill, ("/tmp/evil.md", b"x")], "not relative"),
            (&[skill, ("..\\..\\evil.md", b"x")], "backslash"),
            (&[skill, ("a.md", b"x"), ("A.md", b"y")], "one file with"),
            (&[skill, ("a", b"x"), ("a/b", b"y")], "lies below"),
            (&[skill, ("x/SKILL.md", SKILL.as_bytes())], "skill inside"),
            (&[skill, ("bin/x", b"\x7fELF\x02\x01")], "compiled program"),
            (&[skill, ("x.pyc", b"\xcb\x0d\r\n")], "no one can read"),
            (&[skill, ("x.zip", b"PK\x03\x04")], "an archive"),
            (&[("SKILL.md", b"no header")], "between two lines"),
            (
                &[("SKILL.md", b"---\nname: other\ndescription: d\n---\nx")],
                "its folder",
            ),
            (&[("SKILL.md", b"---\na: &a [1]\nb: *a\n---\nx")], "no plain YAML"),
        ];
        for (files, reason) in cases {
            let found = problems(files);
            assert!(
                found.iter().any(|problem| problem.contains(reason)),
                "{reason}: {found:?}"
            );
        }
        let many: Tree = (0..1_001).map(|index| (format!("f{index}"), Vec::new())).collect();
        let found = check(&many, None, &Limits::default());
        assert!(found.iter().any(|problem| problem.message.contains("1001 files")));
    }
}
