//! Takes fenced memory out of a model's answer while it streams (`M-17`).
//!
//! A pure state machine over characters: where the text is cut makes no difference. It holds back nothing but what may
//! still become a tag, drops what stands between an opening tag and its end, nested ones included, and drops the rest of
//! a stream that ends inside. To talk about the tag is allowed: in inline code and in code blocks it is text, unless the
//! words follow that stand at the head of every real block (D-73).

use super::NOTE;

const NAME: &str = "memory-context";
/// Blanks that may stand in a tag before its name, and the longest tag, in bytes.
const MOST_BLANKS: usize = 8;
const LONGEST_TAG: usize = 160;
/// Blanks between a tag and the note.
const MOST_GAP: usize = 16;
/// How much of the note tells a real block, in bytes.
const NOTE_HEAD: usize = 31;

/// The scrubber of one stream.
#[derive(Debug, Clone, Default)]
pub struct Scrubber {
    /// Blocks that are open.
    depth: usize,
    /// What may still become a tag: empty, or `<` and what followed.
    held: String,
    /// Length of the whole tag at the head of `held`, if there is one and only the note behind it can tell what it is.
    undecided: Option<usize>,
    code: Code,
}

impl Scrubber {
    /// For a new stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next piece and returns what of all so far can be shown.
    #[must_use]
    pub fn push(&mut self, piece: &str) -> String {
        let mut shown = String::with_capacity(piece.len());
        for character in piece.chars() {
            self.take(character, &mut shown);
        }
        shown
    }

    /// Ends the stream and returns what was held back and turned out to be text. The scrubber is then as new.
    #[must_use]
    pub fn finish(&mut self) -> String {
        let ended = std::mem::take(self);
        let cut_tag = ended.undecided.is_none() && matches!(read(&ended.held), Read::Prefix { named: true });
        if ended.depth > 0 || cut_tag {
            return String::new();
        }
        ended.held
    }

    fn take(&mut self, character: char, shown: &mut String) {
        if self.held.is_empty() {
            if character == '<' {
                self.held.push(character);
            } else {
                self.show(character, shown);
            }
            return;
        }
        self.held.push(character);
        if let Some(tag) = self.undecided {
            self.look_for_note(tag, character, shown);
            return;
        }
        match read(&self.held) {
            Read::Prefix { .. } => {}
            Read::Text => self.let_go(shown),
            Read::Tag { closes } => self.meet(closes, shown),
        }
    }

    /// A whole tag is held.
    fn meet(&mut self, closes: bool, shown: &mut String) {
        if self.depth > 0 {
            self.depth = if closes { self.depth - 1 } else { self.depth + 1 };
            self.held.clear();
        } else if !self.code.is_inside() {
            // An end without a beginning is dropped as well: it says nothing to anyone.
            self.depth = usize::from(!closes);
            self.held.clear();
        } else if closes {
            self.let_go(shown);
        } else {
            self.undecided = Some(self.held.len());
        }
    }

    /// In code, an opening tag is held with what follows it.
    fn look_for_note(&mut self, tag: usize, character: char, shown: &mut String) {
        let behind = self.held.get(tag..).unwrap_or_default();
        let words = behind.trim_start();
        let gap = behind.len() - words.len();
        let head = NOTE.get(..NOTE_HEAD).unwrap_or(NOTE);
        if words.starts_with(head) {
            self.depth = 1;
            self.held.clear();
            self.undecided = None;
        } else if !head.starts_with(words) || gap > MOST_GAP {
            self.undecided = None;
            // The last character ended it, and may begin something itself.
            self.held.pop();
            for held in std::mem::take(&mut self.held).chars() {
                self.show(held, shown);
            }
            self.take(character, shown);
        }
    }

    /// What was held is text after all. Only its last character can begin a tag: one that begins in the middle would have
    /// ended this one.
    fn let_go(&mut self, shown: &mut String) {
        let mut held = std::mem::take(&mut self.held);
        let begins_another = held.len() > 1 && held.ends_with('<');
        if begins_another {
            held.pop();
            self.held.push('<');
        }
        for character in held.chars() {
            self.show(character, shown);
        }
    }

    fn show(&mut self, character: char, shown: &mut String) {
        if self.depth == 0 {
            self.code.see(character);
            shown.push(character);
        }
    }
}

/// A whole text without fenced memory: the same machine, fed at once.
pub fn scrub(text: &str) -> String {
    let mut scrubber = Scrubber::new();
    let mut shown = scrubber.push(text);
    shown.push_str(&scrubber.finish());
    shown
}

/// What a text that begins with `<` is.
#[derive(Debug, PartialEq, Eq)]
enum Read {
    /// It may become a tag; `named` once its name is complete.
    Prefix { named: bool },
    /// It never will.
    Text,
    /// It is one, whole.
    Tag { closes: bool },
}

fn read(held: &str) -> Read {
    let mut rest = held.get(1..).unwrap_or_default();
    let mut blanks = 0;
    let mut closes = false;
    while let Some(first) = rest.chars().next() {
        match first {
            ' ' | '\t' if blanks < MOST_BLANKS => blanks += 1,
            '/' if !closes => closes = true,
            _ => break,
        }
        rest = rest.get(1..).unwrap_or_default();
    }
    for (at, wanted) in NAME.char_indices() {
        match rest.get(at..).and_then(|rest| rest.chars().next()) {
            None => return Read::Prefix { named: false },
            Some(found) if same(found, wanted) => {}
            Some(_) => return Read::Text,
        }
    }
    let behind = rest.get(NAME.len()..).unwrap_or_default();
    match behind.chars().next() {
        None => return Read::Prefix { named: true },
        Some('>') => return Read::Tag { closes },
        Some(first) if first.is_whitespace() || first == '/' => {}
        Some(_) => return Read::Text,
    }
    match behind.find(['<', '>']) {
        Some(end) if behind.as_bytes().get(end) == Some(&b'>') => Read::Tag { closes },
        Some(_) => Read::Text,
        None if held.len() > LONGEST_TAG => Read::Text,
        None => Read::Prefix { named: true },
    }
}

fn same(found: char, wanted: char) -> bool {
    found.eq_ignore_ascii_case(&wanted) || (wanted == '-' && found == '_')
}

/// Whether the shown text is inside of code, as Markdown has it: a block between lines of three or more backticks or
/// tildes, or a stretch of one line between equal runs of backticks.
#[derive(Debug, Clone, Default)]
struct Code {
    /// Marker and length of the line that began the block.
    block: Option<(char, usize)>,
    /// Length of the run that began the stretch.
    inline: Option<usize>,
    /// The run of markers that is being read.
    run: Option<(char, usize)>,
    /// Whether the run began its line.
    run_leads: bool,
    /// Whether something other than blanks stands in this line.
    line_begun: bool,
}

impl Code {
    fn see(&mut self, character: char) {
        if let Some((marker, length)) = &mut self.run
            && *marker == character
        {
            *length += 1;
            return;
        }
        self.settle();
        match character {
            '`' | '~' => {
                self.run = Some((character, 1));
                self.run_leads = !self.line_begun;
                self.line_begun = true;
            }
            '\n' => {
                self.line_begun = false;
                self.inline = None;
            }
            ' ' | '\t' => {}
            _ => self.line_begun = true,
        }
    }

    fn settle(&mut self) {
        let Some((marker, length)) = self.run.take() else {
            return;
        };
        match (self.block, self.inline) {
            (Some((began, at_least)), _) => {
                if self.run_leads && marker == began && length >= at_least {
                    self.block = None;
                }
            }
            (None, _) if self.run_leads && length >= 3 => {
                self.block = Some((marker, length));
                self.inline = None;
            }
            (None, None) if marker == '`' => self.inline = Some(length),
            (None, Some(began)) if marker == '`' && began == length => self.inline = None,
            (None, _) => {}
        }
    }

    /// Whether what comes next stands in code.
    fn is_inside(&mut self) -> bool {
        self.settle();
        self.block.is_some() || self.inline.is_some()
    }
}
