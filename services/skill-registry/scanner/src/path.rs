//! Paths of files in a skill from outside (`S-7`): none leaves the folder, none means two things on two systems, and no
//! two of them become one file where case or Unicode form does not count.

use unicode_normalization::UnicodeNormalization as _;

const MAX_CHARS: usize = 240;
const MAX_SEGMENT_BYTES: usize = 255;
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];

/// What is wrong with a path, as a clause that follows its name; nothing if it may stay. `depth` is the greatest number
/// of parts.
pub fn problem(path: &str, depth: usize) -> Option<&'static str> {
    if path.is_empty() {
        return Some("is an empty path");
    }
    if path.starts_with(['/', '\\', '~']) || has_drive(path) {
        return Some("is not relative to the skill's folder");
    }
    if path.contains('\\') {
        return Some("contains a backslash, which some systems take for a folder");
    }
    if path.chars().any(is_refused) {
        return Some("contains a character that some system gives a meaning or that cannot be seen");
    }
    if path.chars().count() > MAX_CHARS || path.split('/').count() > depth {
        return Some("is too long or too deep");
    }
    path.split('/').find_map(segment_problem)
}

fn segment_problem(segment: &str) -> Option<&'static str> {
    if segment.is_empty() || segment == "." || segment == ".." {
        return Some("has an empty, `.` or `..` part");
    }
    if segment.len() > MAX_SEGMENT_BYTES {
        return Some("has a part that is too long for common file systems");
    }
    if segment.ends_with(['.', ' ']) || segment.starts_with(' ') {
        return Some("has a part that begins or ends with a blank or ends with a dot, which some systems drop");
    }
    let stem = segment.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let numbered = stem
        .strip_prefix("com")
        .or_else(|| stem.strip_prefix("lpt"))
        .is_some_and(|rest| rest.len() == 1 && rest.bytes().all(|byte| byte.is_ascii_digit()));
    if numbered || DEVICES.contains(&stem.as_str()) {
        return Some("has a part that some systems take for a device");
    }
    None
}

fn has_drive(path: &str) -> bool {
    let bytes = path.as_bytes();
    bytes.len() >= 2 && bytes[1] == b':' && bytes[0].is_ascii_alphabetic()
}

fn is_refused(character: char) -> bool {
    character.is_control()
        || matches!(character, '<' | '>' | ':' | '"' | '|' | '?' | '*')
        || steward_guard::unicode::is_ignorable(character)
        || matches!(character, '\u{2028}' | '\u{2029}')
}

/// What stays of a path on a system that ignores case and Unicode form. Two files with the same are one file there.
pub fn folded(path: &str) -> String {
    path.nfkc().flat_map(char::to_lowercase).nfc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s_7_paths_that_leave_the_folder_or_mean_two_things_are_refused() {
        for path in [
            "",
            "/etc/passwd",
            "../x",
            "a/../../x",
            "a//b",
            "./a",
            "..\\..\\evil.md",
            "C:thing",
            "c:/x",
            "~/x",
            "a\0b",
            "a\nb",
            "con",
            "scripts/NUL.txt",
            "com1.md",
            "a./b",
            "a /b",
            " a",
            "x\u{202e}dm.exe",
            "a:b",
            "what?",
        ] {
            assert!(problem(path, 16).is_some(), "{path:?}");
        }
        assert!(problem(&"a/".repeat(20), 16).is_some());
        assert!(problem(&"x".repeat(300), 16).is_some());
    }

    #[test]
    fn ordinary_paths_of_any_script_pass() {
        for path in [
            "SKILL.md",
            "references/data formats.md",
            "scripts/run.sh",
            "資料/手順.md",
            ".github/workflows/a.yml",
            "assets/a+b@2x.png",
            "console.md",
        ] {
            assert_eq!(problem(path, 16), None, "{path:?}");
        }
    }

    #[test]
    fn case_and_form_fold_together() {
        assert_eq!(folded("Ref/É.md"), folded("ref/e\u{301}.md"));
        assert_ne!(folded("ref/e.md"), folded("ref/é.md"));
    }
}
