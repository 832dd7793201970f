//! Paths inside a skill: the one check that every entry point goes through (`S-7`).
//!
//! A [`SkillPath`] can be joined to any folder on any system without leaving it, and two different ones never mean
//! the same file there. Skills live in a store, so no link can be followed; the check still refuses what would become
//! one file, or a file outside, once a skill is exported.

use std::fmt;

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;

/// The file that makes a folder a skill.
pub const SKILL_MD: &str = "SKILL.md";

/// The folders in which an agent may keep supporting files (`S-1`).
pub const SUPPORT_FOLDERS: [&str; 4] = ["references", "templates", "scripts", "assets"];

const MAX_PATH_CHARS: usize = 240;
const MAX_SEGMENTS: usize = 8;
/// What common file systems take for one name.
const MAX_SEGMENT_BYTES: usize = 255;

/// Why a text is not a path inside a skill. Says what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// Nothing was given.
    #[error("must not be empty; name a file such as references/details.md")]
    Empty,
    /// Starts at a root or names a drive.
    #[error("must be relative to the skill's folder")]
    Absolute,
    /// A segment climbs or is empty.
    #[error("must not contain empty, `.` or `..` segments")]
    Climbs,
    /// A character that some system gives a meaning.
    #[error("must not contain {0:?}; use letters, digits, spaces, `.`, `_`, `-` and `/`")]
    Character(char),
    /// A name that some system keeps for itself or silently changes.
    #[error("has a part that not every system can store: {0:?}")]
    Reserved(String),
    /// Too long or too deep.
    #[error("must have at most {MAX_PATH_CHARS} characters in at most {MAX_SEGMENTS} parts")]
    TooLong,
    /// A supporting file outside the four folders.
    #[error("must lie below references/, templates/, scripts/ or assets/")]
    NotSupport,
    /// `SKILL.md` is changed with edit or patch, and cannot be removed.
    #[error("must not be SKILL.md; change it with edit or patch, or delete the whole skill")]
    SkillFile,
}

/// A checked path of a file inside a skill, relative to its folder, with `/` between parts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SkillPath(String);

impl SkillPath {
    /// Checks any path inside a skill.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        if text.trim().is_empty() {
            return Err(PathError::Empty);
        }
        if text.starts_with(['/', '\\', '~']) || has_drive(text) {
            return Err(PathError::Absolute);
        }
        if let Some(bad) = text.chars().find(|&character| is_refused(character)) {
            return Err(PathError::Character(bad));
        }
        if text.chars().count() > MAX_PATH_CHARS || text.split('/').count() > MAX_SEGMENTS {
            return Err(PathError::TooLong);
        }
        for segment in text.split('/') {
            if segment.is_empty() || segment == "." || segment == ".." {
                return Err(PathError::Climbs);
            }
            if is_reserved(segment) {
                return Err(PathError::Reserved(segment.to_owned()));
            }
        }
        Ok(Self(text.to_owned()))
    }

    /// Checks the path of a supporting file, as `write_file` and `remove_file` take it.
    pub fn parse_support(text: &str) -> Result<Self, PathError> {
        let path = Self::parse(text)?;
        if path.0.eq_ignore_ascii_case(SKILL_MD) {
            return Err(PathError::SkillFile);
        }
        match path.0.split_once('/') {
            Some((folder, _)) if SUPPORT_FOLDERS.contains(&folder) => Ok(path),
            _ => Err(PathError::NotSupport),
        }
    }

    /// `SKILL.md`.
    pub fn skill_md() -> Self {
        Self(SKILL_MD.to_owned())
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the file that makes the folder a skill.
    pub fn is_skill_md(&self) -> bool {
        self.0 == SKILL_MD
    }

    /// Whether both could not stand in one folder: the same file where case does not count, or one a folder of the
    /// other.
    pub fn collides_with(&self, other: &Self) -> bool {
        if self == other {
            return false;
        }
        let (mine, theirs) = (folded(&self.0), folded(&other.0));
        mine == theirs || is_below(&mine, &theirs) || is_below(&theirs, &mine)
    }
}

/// What a file system that ignores case and composes characters takes the path for: upper case first, since some letters
/// that are one there have but one capital.
fn folded(path: &str) -> String {
    let lower: String = path
        .nfd()
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .collect();
    lower.nfc().collect()
}

fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

fn has_drive(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(|first| first.is_ascii_alphabetic()) && characters.next() == Some(':')
}

fn is_refused(character: char) -> bool {
    let is_invisible = matches!(character,
        '\u{00ad}' | '\u{061c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}');
    // Look-alikes of separators, and whatever a later normalisation would turn into something with a meaning.
    let looks_like_separator = matches!(
        character,
        '\u{2044}' | '\u{2215}' | '\u{2216}' | '\u{29f8}' | '\u{29f9}'
    );
    let becomes = |plain: char| matches!(plain, '/' | '.' | '~') || has_a_meaning(plain);
    let hides_meaning = !character.is_ascii() && std::iter::once(character).nfkc().any(becomes);
    has_a_meaning(character) || is_invisible || looks_like_separator || hides_meaning || character.is_control()
}

const fn has_a_meaning(character: char) -> bool {
    matches!(character, '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|' | '\0')
}

/// Whether some system cannot have a file or folder of this name, or takes it for another.
pub(crate) fn is_reserved(segment: &str) -> bool {
    let is_padded = segment.ends_with(['.', ' ']) || segment.starts_with(' ');
    let is_git = segment.eq_ignore_ascii_case(".git") || segment.eq_ignore_ascii_case("git~1");
    if is_padded || is_git || segment.len() > MAX_SEGMENT_BYTES {
        return true;
    }
    // Some systems take a raised digit for a plain one.
    let segment: String = segment.nfkc().collect();
    let stem = segment
        .split('.')
        .next()
        .unwrap_or_default()
        .trim_end()
        .to_ascii_lowercase();
    let numbered = |prefix: &str| {
        stem.strip_prefix(prefix)
            .is_some_and(|rest| rest.len() == 1 && rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    matches!(stem.as_str(), "con" | "prn" | "aux" | "nul" | "conin$" | "conout$") || numbered("com") || numbered("lpt")
}

impl fmt::Display for SkillPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for SkillPath {
    type Error = PathError;

    fn try_from(text: String) -> Result<Self, PathError> {
        Self::parse(&text)
    }
}

impl From<SkillPath> for String {
    fn from(path: SkillPath) -> Self {
        path.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ordinary_supporting_files_are_accepted() {
        for good in [
            "references/a.md",
            "scripts/run all.sh",
            "assets/图.png",
            "templates/x/y/z.tmpl",
            "references/.env",
        ] {
            assert_eq!(SkillPath::parse_support(good).unwrap().as_str(), good);
        }
    }

    /// D-14, `S-7`.
    #[test]
    fn no_path_leaves_the_folder() {
        for bad in [
            "references/../../a.md",
            "/etc/x",
            "../other",
            "references/./a",
            "references//a",
            "C:thing",
            "c:/x",
            "references\\..\\a",
            "SKILL.md/../../b",
            "~/x",
            "references/a\0b",
            "references/a\nb",
            "references/．．/a",
            "references∕a",
            "references/con.txt",
            "references/LPT1",
            "references/trailing.",
            "references/trailing. ",
            "references/\u{2025}/a",
            "references/\u{2026}",
            "references\u{2216}a",
            "references/a\u{ff1a}b",
            "references/\u{2100}",
            "references/a\u{ff5c}b",
            "references/com\u{b9}.txt",
            "references/\u{ff43}\u{ff4f}\u{ff4e}",
            "references/NUL.tar.gz",
            "references/GIT~1/config",
            "references/a\u{85}b",
            "references/a\u{202e}dm.b",
            "references/ a",
            ".git/config",
            "",
            "   ",
        ] {
            assert!(SkillPath::parse_support(bad).is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn a_name_is_no_longer_than_a_file_system_takes() {
        let of = |count: usize| format!("references/{}", "\u{8bb0}".repeat(count));
        assert!(SkillPath::parse_support(&of(85)).is_ok());
        assert!(matches!(SkillPath::parse_support(&of(86)), Err(PathError::Reserved(_))));
        assert_eq!(
            SkillPath::parse_support(&format!("references/{}", "a/".repeat(300))),
            Err(PathError::TooLong)
        );
    }

    #[test]
    fn only_supporting_files_can_be_written() {
        assert_eq!(SkillPath::parse_support("SKILL.md"), Err(PathError::SkillFile));
        assert_eq!(SkillPath::parse_support("skill.MD"), Err(PathError::SkillFile));
        assert_eq!(SkillPath::parse_support("notes.md"), Err(PathError::NotSupport));
        assert_eq!(SkillPath::parse_support("References/a.md"), Err(PathError::NotSupport));
        assert!(SkillPath::parse("LICENSE.txt").is_ok());
    }

    #[test]
    fn files_that_are_one_file_elsewhere_collide() {
        let path = |text: &str| SkillPath::parse(text).unwrap();
        assert!(path("references/A.md").collides_with(&path("references/a.md")));
        assert!(path("references/\u{e9}.md").collides_with(&path("references/e\u{301}.md")));
        assert!(path("references/a").collides_with(&path("references/a/b.md")));
        assert!(path("references/stra\u{df}e").collides_with(&path("references/STRASSE")));
        assert!(path("references/\u{17f}").collides_with(&path("references/S")));
        assert!(path("references/\u{212a}").collides_with(&path("references/k")));
        assert!(!path("references/a").collides_with(&path("references/ab")));
        assert!(!path("references/a").collides_with(&path("references/a")));
    }

    proptest! {
        #[test]
        fn an_accepted_path_stays_below_any_folder(text in "[a-zA-Z0-9./\\\\:~ \u{ff0e}-]{0,40}") {
            if let Ok(path) = SkillPath::parse(&text) {
                let mut depth = 0_i32;
                for part in std::path::Path::new(path.as_str()).components() {
                    prop_assert!(matches!(part, std::path::Component::Normal(_)));
                    depth += 1;
                }
                prop_assert!(depth >= 1);
            }
        }
    }
}
