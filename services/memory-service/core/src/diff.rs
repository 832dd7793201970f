//! What changed between two revisions of an entry, line by line.

use similar::{ChangeTag, TextDiff};

/// What happened to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Change {
    /// It stands in both.
    Same,
    /// Only the earlier one has it.
    Removed,
    /// Only the later one has it.
    Added,
}

/// A line of a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// What happened to it.
    pub change: Change,
    /// The line, without its end.
    pub text: String,
}

/// The lines of two texts, in order.
pub fn lines(from: &str, to: &str) -> Vec<Line> {
    let (from, to) = (ended(from), ended(to));
    let diff = TextDiff::from_lines(&from, &to);
    let change = |tag| match tag {
        ChangeTag::Equal => Change::Same,
        ChangeTag::Delete => Change::Removed,
        ChangeTag::Insert => Change::Added,
    };
    diff.iter_all_changes()
        .map(|one| Line {
            change: change(one.tag()),
            text: one.value().trim_end_matches('\n').to_owned(),
        })
        .collect()
}

fn ended(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!("{text}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_kept_removed_or_added() {
        let told: Vec<(Change, String)> = lines("a\nb\nc", "a\nB\nc\nd")
            .into_iter()
            .map(|line| (line.change, line.text))
            .collect();
        let line = |change, text: &str| (change, text.to_owned());
        assert_eq!(
            told,
            [
                line(Change::Same, "a"),
                line(Change::Removed, "b"),
                line(Change::Added, "B"),
                line(Change::Same, "c"),
                line(Change::Added, "d"),
            ]
        );
        assert_eq!(lines("", ""), []);
        assert_eq!(lines("", "x").len(), 1);
    }
}
