//! The trailing data block: all that varies from review to review, after the fixed text (`R-3`).

use super::rubric::{AUTHORING_STANDARD, Kinds};
use super::spans::{SpanTable, label};

const TAG: &str = "review_data";

/// One present memory entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryLine {
    /// `profile` or `notes`.
    pub target: String,
    /// The entry.
    pub text: String,
}

/// One present skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillLine {
    /// Full name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// What is special about it: `open in this conversation`, `pinned`, `user-owned`, `bundled`, `installed`.
    pub marks: Vec<String>,
}

/// A correction that the person made and that waits for this review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorrectionLine {
    /// Id by which the review decides on it: `c1`, `c2`, ...
    pub id: String,
    /// `profile` or `notes`: where it would stand.
    pub target: String,
    /// The person's words.
    pub text: String,
}

/// Renders the block.
pub(super) fn render(
    kinds: Kinds,
    spans: &SpanTable,
    memory: &[MemoryLine],
    corrections: &[CorrectionLine],
    skills: &[SkillLine],
) -> String {
    let mut lines = vec![
        "<review_data>".to_owned(),
        "Spans of the conversation, in order:".to_owned(),
    ];
    for span in spans.spans() {
        // Where a hidden span came from may itself have been chosen by what is hidden.
        let line = if span.hidden {
            format!("{} hidden", span.id)
        } else {
            format!(
                "{} {} \"{}\"",
                span.id,
                one_line(&label(&span.origin)),
                one_line(&span.opening).replace('"', "\\\"")
            )
        };
        lines.push(line);
    }
    lines.push(String::new());
    lines.push("Memory as it stands now:".to_owned());
    lines.extend(
        memory
            .iter()
            .map(|entry| format!("- {}: {}", one_line(&entry.target), one_line(&entry.text))),
    );
    lines.extend(memory.is_empty().then(|| "- nothing yet".to_owned()));
    lines.push(String::new());
    if !corrections.is_empty() {
        lines.push("Corrections that wait for you:".to_owned());
        lines.extend(corrections.iter().map(correction_line));
        lines.push(String::new());
    }
    lines.push("Skills as they stand now:".to_owned());
    lines.extend(skills.iter().map(skill_line));
    lines.extend(skills.is_empty().then(|| "- none yet".to_owned()));
    if kinds.skills() {
        lines.push(String::new());
        lines.push("Authoring standard for a new skill:".to_owned());
        lines.push(AUTHORING_STANDARD.trim_end().to_owned());
    }
    lines.push("</review_data>".to_owned());
    lines.join("\n")
}

fn correction_line(correction: &CorrectionLine) -> String {
    let CorrectionLine { id, target, text } = correction;
    format!("- {} {}: {}", one_line(id), one_line(target), one_line(text))
}

fn skill_line(skill: &SkillLine) -> String {
    let mut line = format!("- {}: {}", one_line(&skill.name), one_line(&skill.description));
    if !skill.marks.is_empty() {
        line = format!("{line} ({})", one_line(&skill.marks.join(", ")));
    }
    line
}

/// Data stays on its line and inside its block: it cannot write the block's tag, in whatever spelling.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    let line = words.join(" ");
    // Same offsets as in the line: only ASCII letters change.
    let lower = line.to_ascii_lowercase();
    let (mut safe, mut from) = (String::with_capacity(line.len()), 0);
    for (at, _) in lower.match_indices(TAG) {
        let middle = at + "review".len();
        safe.push_str(&line[from..middle]);
        safe.push('\\');
        from = middle;
    }
    safe.push_str(&line[from..]);
    safe
}
