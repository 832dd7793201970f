//! Two changes of one skill brought together, line by line, over what both rest on. Pure.
//!
//! Nothing is guessed: a file that both sides changed at the same place is a conflict and is named, and then the caller
//! keeps what is there. No marker of a conflict ever stands in a skill.

use std::collections::BTreeSet;

use similar::TextMerge;

use crate::path::SkillPath;
use crate::record::Files;

/// Both changes in one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Merged {
    /// The files; where there is a conflict, ours.
    pub files: Files,
    /// Files in which both sides changed something, and both changes stand.
    pub merged: Vec<SkillPath>,
    /// Files in which both sides changed the same lines, or one changed what the other removed.
    pub conflicts: Vec<SkillPath>,
}

/// Brings `ours` and `theirs` together; both came from `base`.
pub fn merge(base: &Files, ours: &Files, theirs: &Files) -> Merged {
    let mut merged = Merged::default();
    let paths = [base, ours, theirs]
        .into_iter()
        .flat_map(Files::keys)
        .collect::<BTreeSet<_>>();
    for path in paths {
        let (old, mine, new) = (base.get(path), ours.get(path), theirs.get(path));
        let kept = if mine == new || new == old {
            mine.cloned()
        } else if mine == old {
            new.cloned()
        } else if let Some(both) = lines(old, mine, new) {
            merged.merged.push(path.clone());
            Some(both)
        } else {
            merged.conflicts.push(path.clone());
            mine.cloned()
        };
        if let Some(bytes) = kept {
            merged.files.insert(path.clone(), bytes);
        }
    }
    merged
}

/// What a source's files become where a skill was changed here since it had the source's `base`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct United {
    /// The files.
    pub files: Files,
    /// Files in which both sides' changes stand.
    pub merged: Vec<SkillPath>,
    /// Files in which both changed the same lines, and the source's were taken.
    pub overwritten: Vec<SkillPath>,
    /// Files in which both changed the same lines, and nothing was decided.
    pub conflicts: Vec<SkillPath>,
}

/// Unites both; with `overwrite` the source's file is taken where they meet.
pub fn unite(base: &Files, ours: &Files, theirs: &Files, overwrite: bool) -> United {
    let mut both = merge(base, ours, theirs);
    if !overwrite {
        return United {
            files: both.files,
            merged: both.merged,
            overwritten: Vec::new(),
            conflicts: both.conflicts,
        };
    }
    for path in &both.conflicts {
        match theirs.get(path) {
            Some(bytes) => both.files.insert(path.clone(), bytes.clone()),
            None => both.files.remove(path),
        };
    }
    United {
        files: both.files,
        merged: both.merged,
        overwritten: both.conflicts,
        conflicts: Vec::new(),
    }
}

/// Both changes of one text; `None` if they meet, or if it is no text.
fn lines(base: Option<&Vec<u8>>, ours: Option<&Vec<u8>>, theirs: Option<&Vec<u8>>) -> Option<Vec<u8>> {
    let text = |bytes: Option<&Vec<u8>>| bytes.map(|bytes| String::from_utf8(bytes.clone()).ok());
    // Added by both with different content: there is no common line to go by. Removed by one: nothing to merge with.
    let (base, ours, theirs) = (text(base)??, text(ours)??, text(theirs)??);
    let merge = TextMerge::from_lines(base.as_str(), ours.as_str(), theirs.as_str());
    if merge.is_conflicted() {
        return None;
    }
    Some(merge.to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn files(list: &[(&str, &str)]) -> Files {
        list.iter()
            .map(|(path, text)| (SkillPath::parse(path).unwrap(), text.as_bytes().to_vec()))
            .collect()
    }

    fn paths(list: &[SkillPath]) -> Vec<&str> {
        list.iter().map(SkillPath::as_str).collect()
    }

    #[test]
    fn changes_at_different_places_both_stand() {
        let base = files(&[("SKILL.md", "a\nb\nc\nd\ne\n"), ("references/x", "x\n")]);
        let ours = files(&[
            ("SKILL.md", "a\nB\nc\nd\ne\n"),
            ("references/x", "x\n"),
            ("scripts/mine", "m"),
        ]);
        let theirs = files(&[
            ("SKILL.md", "a\nb\nc\nd\nE\n"),
            ("references/x", "y\n"),
            ("scripts/new", "n"),
        ]);
        let both = merge(&base, &ours, &theirs);
        let expected = files(&[
            ("SKILL.md", "a\nB\nc\nd\nE\n"),
            ("references/x", "y\n"),
            ("scripts/mine", "m"),
            ("scripts/new", "n"),
        ]);
        assert_eq!(
            (both.files, paths(&both.merged), both.conflicts),
            (expected, vec!["SKILL.md"], vec![])
        );
    }

    #[test]
    fn changes_of_the_same_lines_are_a_conflict_and_leave_no_mark() {
        let base = files(&[("SKILL.md", "a\nb\nc\n"), ("assets/i", "1"), ("scripts/gone", "s\n")]);
        let ours = files(&[
            ("SKILL.md", "a\nmine\nc\n"),
            ("assets/i", "1"),
            ("scripts/gone", "S\n"),
            ("references/n", "1\n"),
        ]);
        let theirs = files(&[
            ("SKILL.md", "a\ntheirs\nc\n"),
            ("assets/i", "1"),
            ("references/n", "2\n"),
        ]);
        let both = merge(&base, &ours, &theirs);
        assert_eq!(paths(&both.conflicts), ["SKILL.md", "references/n", "scripts/gone"]);
        assert_eq!(both.files, ours);
    }

    #[test]
    fn what_is_no_text_is_taken_whole_or_not_at_all() {
        let path = || SkillPath::parse("assets/i").unwrap();
        let of = |byte: u8| Files::from([(path(), vec![0xff, byte])]);
        assert_eq!(merge(&of(1), &of(1), &of(2)).files, of(2));
        assert_eq!(merge(&of(1), &of(3), &of(2)).conflicts, [path()]);
    }

    #[test]
    fn line_ends_and_a_missing_last_newline_stay() {
        let base = files(&[("SKILL.md", "a\r\nb\r\nc\r\nd")]);
        let ours = files(&[("SKILL.md", "A\r\nb\r\nc\r\nd")]);
        let theirs = files(&[("SKILL.md", "a\r\nb\r\nc\r\nD")]);
        assert_eq!(
            merge(&base, &ours, &theirs).files,
            files(&[("SKILL.md", "A\r\nb\r\nc\r\nD")])
        );
    }

    proptest! {
        #[test]
        fn a_side_that_did_not_change_gives_way_whole(base in "([ab]\n){0,8}", other in "([abc]\n){0,8}") {
            let (base, other) = (files(&[("SKILL.md", &base)]), files(&[("SKILL.md", &other)]));
            prop_assert_eq!(&merge(&base, &base, &other).files, &other);
            prop_assert_eq!(&merge(&base, &other, &base).files, &other);
            prop_assert_eq!(&merge(&base, &other, &other).files, &other);
        }
    }
}
