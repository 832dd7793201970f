//! Project context files as the client sent them: shown, cut in the middle, or blocked by name (`P-7`).

/// Most characters of one context file that are shown.
pub const CONTEXT_FILE_LIMIT: usize = 20_000;

/// Most characters of a name or of another fact in one line.
const NAME_LIMIT: usize = 300;

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
        let name = one_line(self.name);
        match self.text {
            ContextText::Clean(text) => format!("## {name}\n\n{}", cut_to_limit(text, &name, CONTEXT_FILE_LIMIT)),
            ContextText::Blocked(finding) => {
                format!("## {name}\n\n[BLOCKED: {name} was left out, finding: {finding}]")
            }
        }
    }
}

/// What the client reports beside texts, such as a path, was not scanned: it gets one line and no more of it.
pub(super) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text
        .split(|character: char| character.is_whitespace() || character.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    let line = words.join(" ");
    match line.char_indices().nth(NAME_LIMIT) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
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
