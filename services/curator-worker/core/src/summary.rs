//! What people are told of a review: acknowledged writes of this job and nothing else (`R-8`). The model's own account of
//! what it did plays no part.

use crate::review::{Write, WriteResult};

/// One line that names each write once; empty when there is nothing to tell.
pub fn render(writes: &[Write]) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for write in writes.iter().filter(|write| is_news(write)) {
        if !lines.contains(&write.line.as_str()) {
            lines.push(&write.line);
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
            render(&writes),
            "Profile updated · Skill 'x' patched · Notes change proposed"
        );
        assert_eq!(render(&writes[4..5]), "");
    }
}
