//! Project context files as the client sent them: shown, cut in the middle, or blocked by name (`P-7`).

/// Most characters of one context file that are shown.
pub const CONTEXT_FILE_LIMIT: usize = 20_000;

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextFile<'a> {
    /// Path as the client reports it.
    pub name: &'a str,
    /// Its text, or what the scan found in it.
    pub text: ContextText<'a>,
}

/// What became of a file at the scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContextText<'a> {
    /// Nothing was found.
    Clean(&'a str),
    /// The text is withheld; the finding's category.
    Blocked(&'a str),
}

impl ContextFile<'_> {
    pub(super) fn render(&self) -> String {
        match self.text {
            ContextText::Clean(text) => {
                format!(
                    "## {}\n\n{}",
                    self.name,
                    cut_to_limit(text, self.name, CONTEXT_FILE_LIMIT)
                )
            }
            ContextText::Blocked(finding) => {
                format!(
                    "## {}\n\n[BLOCKED: {} was left out, finding: {finding}]",
                    self.name, self.name
                )
            }
        }
    }
}

/// The text, or its first 70 % and last 20 % of `limit` characters with a marker between that says what is missing.
pub fn cut_to_limit(text: &str, name: &str, limit: usize) -> String {
    let total = text.chars().count();
    if total <= limit {
        return text.to_owned();
    }
    let (head, tail) = (limit * 7 / 10, limit * 2 / 10);
    let at = |count: usize| text.char_indices().nth(count).map_or(text.len(), |(index, _)| index);
    let missing = total - head - tail;
    let (start, end) = (&text[..at(head)], &text[at(total - tail)..]);
    format!("{start}\n\n[... {missing} of {total} characters of {name} are left out here ...]\n\n{end}")
}
