//! The fixed texts of a review. They hold nothing that varies, so that they can be cached, and each edition has a tag by
//! which its writes can be told apart later.

use steward_base::hash::sha256_hex;

const FRAME: &str = include_str!("../../prompts/review_frame.txt");
const MEMORY: &str = include_str!("../../prompts/review_memory.txt");
const SKILLS: &str = include_str!("../../prompts/review_skills.txt");
const COMBINED: &str = include_str!("../../prompts/review_combined.txt");

/// How a skill is to be written (`S-19`); goes into the data block of a skill review and into `/learn`.
pub const AUTHORING_STANDARD: &str = include_str!("../../prompts/authoring_standard.txt");

/// What a review is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kinds {
    /// Memory only.
    Memory,
    /// Skills only.
    Skills,
    /// Both in one pass.
    Both,
}

impl Kinds {
    /// From two flags; `None` when neither is set.
    pub fn from_flags(memory: bool, skills: bool) -> Option<Self> {
        match (memory, skills) {
            (true, true) => Some(Self::Both),
            (true, false) => Some(Self::Memory),
            (false, true) => Some(Self::Skills),
            (false, false) => None,
        }
    }

    /// Whether memory is part of it.
    pub fn memory(self) -> bool {
        matches!(self, Self::Memory | Self::Both)
    }

    /// Whether skills are part of it.
    pub fn skills(self) -> bool {
        matches!(self, Self::Skills | Self::Both)
    }
}

/// The fixed part of a review's message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rubric {
    /// The text.
    pub text: String,
    /// Which edition of which parts, for the record.
    pub tag: &'static str,
    /// SHA-256 of the text.
    pub sha256: String,
}

/// The frame followed by the rubric of the review's kind.
pub fn rubric(kinds: Kinds) -> Rubric {
    let (parts, tag): (Vec<&str>, _) = match kinds {
        Kinds::Memory => (vec![FRAME, MEMORY], "review-frame/1 review-memory/2"),
        Kinds::Skills => (vec![FRAME, SKILLS], "review-frame/1 review-skill/1"),
        Kinds::Both => (
            vec![FRAME, MEMORY, SKILLS, COMBINED],
            "review-frame/1 review-memory/2 review-skill/1 review-combined/1",
        ),
    };
    let text = parts.into_iter().map(str::trim_end).collect::<Vec<_>>().join("\n\n");
    let sha256 = sha256_hex(text.as_bytes());
    Rubric { text, tag, sha256 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Changing a text is allowed with a new tag; changing it by accident is not.
    #[test]
    fn the_texts_are_pinned() {
        let pins = [FRAME, MEMORY, SKILLS, COMBINED, AUTHORING_STANDARD].map(|text| sha256_hex(text.as_bytes()));
        assert_eq!(
            pins,
            [
                "fc273ed67770c4a15500b1ac54d6b906e6a4fbf08e2fab521b234624a4229338",
                "f1ca6e8ff7ae5d87c0b7a992f5b26034abdf1abd36f246b78df40a9dec0b1e9b",
                "31d2b3e66368c7801129544b214c6c3885bb887f11927602b6c9c2a0f12c4252",
                "ae51a3636098871d21c930a0b6c6ec1ed3198b9691bcb60b4baf50ac7a5f2f49",
                "2229d9e766d865c7de198a09bc750019de42641caca21ffb4adac0650ab76c6b"
            ]
        );
    }

    #[test]
    fn the_texts_hold_nothing_that_varies() {
        for text in [FRAME, MEMORY, SKILLS, COMBINED, AUTHORING_STANDARD] {
            assert!(!text.contains("{{"));
            let digits_in_a_row = text
                .split(|character: char| !character.is_ascii_digit())
                .map(str::len)
                .max();
            assert!(digits_in_a_row < Some(4), "no dates, no counts, no ids");
        }
    }

    #[test]
    fn no_text_asks_for_a_minimum_of_writes() {
        for text in [FRAME, MEMORY, SKILLS, COMBINED] {
            let lowered = text.to_lowercase();
            for quota in [
                "at least one update",
                "at least one write",
                "most conversations",
                "must write",
                "must save",
            ] {
                assert!(!lowered.contains(quota), "{quota}");
            }
        }
        assert!(FRAME.contains("\"no_change\" is an ordinary outcome"));
    }

    #[test]
    fn what_must_not_be_recorded_is_said() {
        for exclusion in [
            "Failures of this machine",
            "Verdicts on a tool",
            "went away on retry",
            "Anything unresolved",
        ] {
            assert!(SKILLS.contains(exclusion), "{exclusion}");
        }
        assert!(FRAME.contains("At most three writes"));
    }

    #[test]
    fn the_authoring_standard_has_its_eight_sections_in_order_and_the_description_limit() {
        let headings = [
            "# <Title>",
            "## When to Use",
            "## Prerequisites",
            "## How to Run",
            "## Quick Reference",
            "## Procedure",
            "## Pitfalls",
            "## Verification",
        ];
        assert!(
            headings
                .map(|heading| AUTHORING_STANDARD.find(heading).expect(heading))
                .is_sorted()
        );
        assert!(AUTHORING_STANDARD.contains("at most 60 characters"));
    }
}
