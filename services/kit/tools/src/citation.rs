//! What a write says that it rests on. Only read here; whether the cited spans exist and how far they may be trusted is
//! decided by whoever knows the history (`L-6`).

use crate::arguments::Arguments;
use crate::context::Basis;
use crate::definitions::{MEMORY, SKILL_MANAGE};

/// Longest `why` that the services keep, in characters.
const MAX_WHY: usize = 500;

/// The optional arguments by which a review supports a write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Citation {
    /// Span ids as given, blanks trimmed.
    pub spans: Vec<String>,
    /// Grade; absent when not given.
    pub basis: Option<Basis>,
    /// Why, in the writer's words.
    pub why: String,
}

/// Takes the citation out of the arguments of a writing tool. `None` for tools that cite nothing and for text that is
/// not a JSON object; what is wrong with the fields themselves is said by the tool when it is called.
pub fn cited(tool: &str, arguments_json: &str) -> Option<Citation> {
    if tool != MEMORY && tool != SKILL_MANAGE {
        return None;
    }
    Some(read(&mut Arguments::parse(arguments_json).ok()?))
}

pub(crate) fn read(arguments: &mut Arguments) -> Citation {
    let spans = arguments
        .texts("evidence")
        .into_iter()
        .map(|id| id.trim().to_owned())
        .collect();
    let basis = arguments.choice("basis", Basis::WORDS);
    let why = arguments.text("why").unwrap_or_default();
    if why.chars().count() > MAX_WHY {
        arguments.wrong(
            "why",
            format!("has {} characters; at most {MAX_WHY} are kept", why.chars().count()),
        );
    }
    Citation { spans, basis, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_writing_tools_cite() {
        let arguments = r#"{"evidence":["s3"," s4.1 "],"basis":"stated","why":"said so"}"#;
        let citation = cited("memory", arguments).unwrap();
        assert_eq!(citation.spans, ["s3", "s4.1"]);
        assert_eq!(
            (citation.basis, citation.why.as_str()),
            (Some(Basis::Stated), "said so")
        );
        assert_eq!(cited("skill_view", arguments), None);
        assert_eq!(cited("memory", "{"), None);
        assert_eq!(cited("skill_manage", "{}").unwrap(), Citation::default());
    }
}
