//! What people are told of a review: acknowledged writes of this job and nothing else (`R-8`). The model's own account of
//! what it did plays no part.

use crate::review::{Write, WriteResult};

/// How much people are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// Nothing.
    Off,
    /// What happened.
    #[default]
    On,
    /// The same with the opening words of what was written.
    Verbose,
}

/// One line that names each write once; empty when there is nothing to tell.
pub fn render(writes: &[Write], detail: Detail) -> String {
    let line = |write: &Write| match detail {
        Detail::Verbose if !write.preview.is_empty() => format!("{}: {}", write.line, write.preview),
        Detail::Off | Detail::On | Detail::Verbose => write.line.clone(),
    };
    let mut lines: Vec<String> = Vec::new();
    for line in writes.iter().filter(|write| is_news(write)).map(line) {
        if detail != Detail::Off && !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines.join(" · ")
}

/// Whether there is anything to tell.
pub fn has_news(writes: &[Write]) -> bool {
    writes.iter().any(is_news)
}

fn is_news(write: &Write) -> bool {
    match write.result {
        WriteResult::Accepted | WriteResult::Proposed => true,
        WriteResult::Unchanged | WriteResult::Refused => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(line: &str, result: WriteResult) -> Write {
        Write {
            tool: "memory".to_owned(),
            action: "add".to_owned(),
            target: String::new(),
            result,
            reason: String::new(),
            revision: String::new(),
            evidence: None,
            why: String::new(),
            line: line.to_owned(),
            gate: String::new(),
            preview: String::new(),
        }
    }

    #[test]
    fn each_write_is_named_once_and_repeats_and_refusals_not_at_all() {
        let writes = [
            write("Profile updated", WriteResult::Accepted),
            write("Notes unchanged", WriteResult::Unchanged),
            write("Skill 'x' patched", WriteResult::Accepted),
            write("Profile updated", WriteResult::Accepted),
            write("memory: BUDGET_EXCEEDED", WriteResult::Refused),
            write("Notes change proposed", WriteResult::Proposed),
        ];
        assert_eq!(
            render(&writes, Detail::On),
            "Profile updated · Skill 'x' patched · Notes change proposed"
        );
        assert_eq!(render(&writes[4..5], Detail::On), "");
    }

    #[test]
    fn nothing_is_told_where_that_is_wanted_and_the_opening_words_where_they_are() {
        let of = |preview: &str| Write {
            preview: preview.to_owned(),
            ..write("Profile updated", WriteResult::Accepted)
        };
        let writes = [of("Prefers tea"), of("Gets up early"), of("Prefers tea")];
        assert_eq!(render(&writes, Detail::Off), "");
        assert_eq!(render(&writes, Detail::On), "Profile updated");
        let verbose = "Profile updated: Prefers tea · Profile updated: Gets up early";
        assert_eq!(render(&writes, Detail::Verbose), verbose);
    }
}
