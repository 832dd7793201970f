//! Cuts a text into the parts that a reader takes differently: front matter, prose, code, comments, addresses.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};
use serde::Deserialize;

use crate::content::{Kind, Language, language};
use crate::header;

/// What a part of a text is to its reader. Rules name the places where they apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Place {
    /// The front matter, which reaches the prompt of every session.
    Header,
    /// Running text.
    Prose,
    /// Code shown in a text: what the reader may run.
    Code,
    /// A file that is run.
    Script,
    /// Markup that a person does not see and a model does.
    Comment,
    /// Text of settings and data.
    Data,
}

/// A part of a text.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) range: Range<usize>,
    pub(crate) place: Place,
    /// The language of code, if it is labelled or known.
    pub(crate) language: Option<Language>,
    /// Whether it stands on lines of its own.
    pub(crate) block: bool,
}

/// The parts of one text in order; what lies between them has the place `rest`.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) parts: Vec<Part>,
    rest: Place,
}

impl Parts {
    /// Cuts `text`, which is of `kind`.
    pub(crate) fn of(text: &str, kind: Kind) -> Self {
        match kind {
            Kind::Markdown => markdown(text),
            Kind::Script(language) => Self {
                parts: vec![Part {
                    range: 0..text.len(),
                    place: Place::Script,
                    language: Some(language),
                    block: true,
                }],
                rest: Place::Script,
            },
            Kind::Data | Kind::Binary(_) => Self {
                parts: Vec::new(),
                rest: Place::Data,
            },
        }
    }

    /// The place of an offset.
    pub(crate) fn place(&self, at: usize) -> Place {
        let after = self.parts.partition_point(|part| part.range.start <= at);
        match after.checked_sub(1).and_then(|index| self.parts.get(index)) {
            Some(part) if part.range.contains(&at) => part.place,
            _ => self.rest,
        }
    }
}

fn markdown(text: &str) -> Parts {
    let mut parts = Vec::new();
    let mut body = 0;
    if let Some((range, start)) = header::locate(text) {
        body = start;
        parts.push(Part {
            range,
            place: Place::Header,
            language: None,
            block: true,
        });
    }
    for (event, range) in Parser::new(text.get(body..).unwrap_or_default()).into_offset_iter() {
        let range = range.start + body..range.end + body;
        let (place, language, block) = match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(label))) => {
                let label = label.split([' ', ',', '{', ':']).next().unwrap_or_default();
                (Place::Code, language(label), true)
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Indented)) => (Place::Code, None, true),
            Event::Code(_) => (Place::Code, None, false),
            Event::Html(html) | Event::InlineHtml(html) if is_hidden(&html) => (Place::Comment, None, false),
            _ => continue,
        };
        match parts.last_mut() {
            // An HTML block arrives line by line.
            Some(last) if last.place == Place::Comment && place == Place::Comment && last.range.end >= range.start => {
                last.range.end = range.end;
            }
            Some(last) if range.start < last.range.end => {}
            _ => parts.push(Part {
                range,
                place,
                language,
                block,
            }),
        }
    }
    extend_comments(text, body, &mut parts);
    Parts {
        parts,
        rest: Place::Prose,
    }
}

fn is_hidden(html: &str) -> bool {
    html.contains("<!--") || html.contains("display:none") || html.contains("display: none") || html.contains("hidden")
}

/// A comment reaches to its end mark, over blank lines and over what the parser took for markup inside it. One pass.
fn extend_comments(text: &str, body: usize, parts: &mut Vec<Part>) {
    let mut comments = Vec::new();
    let mut codes = parts.iter().filter(|part| part.place == Place::Code).peekable();
    let mut at = body;
    while let Some(start) = text
        .get(at..)
        .and_then(|rest| rest.find("<!--"))
        .map(|found| at + found)
    {
        while codes.next_if(|code| code.range.end <= start).is_some() {}
        if let Some(code) = codes.peek()
            && code.range.start <= start
        {
            at = code.range.end;
            continue;
        }
        let end = text
            .get(start..)
            .and_then(|rest| rest.find("-->"))
            .map_or(text.len(), |found| start + found + 3);
        at = end;
        comments.push(start..end);
    }
    let mut covering = comments.iter().peekable();
    parts.retain(|part| {
        while covering.next_if(|comment| comment.end <= part.range.start).is_some() {}
        covering.peek().is_none_or(|comment| comment.start >= part.range.end)
    });
    parts.extend(comments.into_iter().map(|range| Part {
        range,
        place: Place::Comment,
        language: None,
        block: true,
    }));
    parts.sort_by_key(|part| part.range.start);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place_of(text: &str, needle: &str) -> Place {
        Parts::of(text, Kind::Markdown).place(text.find(needle).expect("the needle"))
    }

    #[test]
    fn a_skill_file_is_cut_into_its_parts() {
        let text = "---\nname: head\n---\n# Title\n\nprose `inline` more\n\n```bash\nblock one\n\nblock two\n```\n\n    indented\n\n<!-- secret\n\norder -->\n\nlast\n";
        for (needle, place) in [
            ("head", Place::Header),
            ("Title", Place::Prose),
            ("prose", Place::Prose),
            ("inline", Place::Code),
            ("block two", Place::Code),
            ("indented", Place::Code),
            ("secret", Place::Comment),
            ("order", Place::Comment),
            ("last", Place::Prose),
        ] {
            assert_eq!(place_of(text, needle), place, "{needle}");
        }
        let parts = Parts::of(text, Kind::Markdown);
        assert!(parts.parts.iter().any(|part| part.language == Some(Language::Shell)));
    }

    #[test]
    fn a_comment_in_a_code_block_is_code_and_an_open_one_reaches_to_the_end() {
        assert_eq!(place_of("```html\n<!-- note -->\n```\nend", "note"), Place::Code);
        assert_eq!(place_of("a\n\n<!-- open\n\nrest of it", "rest"), Place::Comment);
    }
}
