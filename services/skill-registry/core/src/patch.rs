//! Replacing a text in a file: at the exact place, or not at all (`S-10`).
//!
//! The replacement is literal; `$1` means `$1`. Line ends, a byte-order mark and a missing final newline stay as they
//! are. Only when the exact text does not occur are runs of white space allowed to differ, and then only if there is a
//! single such place; the answer says so and shows the lines.

/// What to replace by what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replacement<'a> {
    /// The text to find.
    pub old: &'a str,
    /// The text to put there.
    pub new: &'a str,
    /// Whether every exact occurrence is meant.
    pub all: bool,
}

/// A line of the file, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Line number from 1.
    pub line: usize,
    /// The line's text, cut to a bounded length.
    pub text: String,
}

/// The file afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patched {
    /// The whole new text.
    pub text: String,
    /// How many places changed.
    pub replaced: usize,
    /// Whether white space had to differ for the text to be found.
    pub approximate: bool,
    /// The changed lines as they are now, at most [`SHOWN_LINES`].
    pub changed: Vec<Place>,
}

/// Why nothing was replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The text to find is empty or blank.
    EmptyOld,
    /// Old and new are the same.
    NoChange,
    /// It does not occur; the most similar lines.
    NotFound(Vec<Place>),
    /// It occurs more than once; where.
    Ambiguous(Vec<Place>),
}

/// Longest list of lines in an answer.
pub const SHOWN_LINES: usize = 5;
const SHOWN_CHARS: usize = 100;

/// Replaces in `text`.
pub fn apply(text: &str, wanted: Replacement<'_>) -> Result<Patched, Refusal> {
    if wanted.old.trim().is_empty() {
        return Err(Refusal::EmptyOld);
    }
    if wanted.old == wanted.new {
        return Err(Refusal::NoChange);
    }
    let windows_ends = text.contains("\r\n");
    let (old, new) = if windows_ends {
        (with_windows_ends(wanted.old), with_windows_ends(wanted.new))
    } else {
        (wanted.old.to_owned(), wanted.new.to_owned())
    };
    let exact = text
        .match_indices(&old)
        .map(|(start, found)| start..start + found.len())
        .collect::<Vec<_>>();
    match exact.as_slice() {
        [] => approximate(text, &old, &new),
        [one] => Ok(replace(text, std::slice::from_ref(one), &new, false)),
        many if wanted.all => Ok(replace(text, many, &new, false)),
        // Overlapping occurrences count: `match_indices` skips them, and one of them could have been meant.
        many => Err(Refusal::Ambiguous(places(text, many))),
    }
    .and_then(|patched| {
        let overlapping = !wanted.all && !patched.approximate && occurs_again(text, &old);
        if overlapping {
            Err(Refusal::Ambiguous(places(text, &all_starts(text, &old))))
        } else if patched.text == text {
            // Old and new may differ in line ends or surrounding white space only.
            Err(Refusal::NoChange)
        } else {
            Ok(patched)
        }
    })
}

type Range = std::ops::Range<usize>;

fn with_windows_ends(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

fn all_starts(text: &str, old: &str) -> Vec<Range> {
    text.char_indices()
        .filter(|&(start, _)| text.get(start..).is_some_and(|rest| rest.starts_with(old)))
        .map(|(start, _)| start..start + old.len())
        .collect()
}

fn occurs_again(text: &str, old: &str) -> bool {
    let first = text.find(old);
    let last = text.rfind(old);
    first != last
}

fn replace(text: &str, ranges: &[Range], new: &str, approximate: bool) -> Patched {
    let mut out = String::with_capacity(text.len() + new.len());
    let mut changed = Vec::new();
    let mut from = 0;
    for range in ranges {
        out.push_str(text.get(from..range.start).unwrap_or(""));
        let start = out.len();
        out.push_str(new);
        changed.push(start..out.len());
        from = range.end;
    }
    out.push_str(text.get(from..).unwrap_or(""));
    let changed = changed
        .iter()
        .flat_map(|range| lines_of(&out, range))
        .take(SHOWN_LINES)
        .collect();
    Patched {
        replaced: ranges.len(),
        text: out,
        approximate,
        changed,
    }
}

/// `text` with every run of white space as one sign, and where each sign came from.
struct Collapsed {
    text: String,
    /// For each byte of `text`: where its character starts in the original.
    starts: Vec<usize>,
    /// Length of the original.
    end: usize,
}

fn collapse(original: &str) -> Collapsed {
    let mut collapsed = Collapsed {
        text: String::new(),
        starts: Vec::new(),
        end: original.len(),
    };
    let mut in_space: Option<(usize, bool)> = None;
    let push = |collapsed: &mut Collapsed, at: usize, character: char| {
        collapsed.text.push(character);
        collapsed.starts.resize(collapsed.text.len(), at);
    };
    for (at, character) in original.char_indices() {
        if character.is_whitespace() {
            let (start, has_break) = in_space.unwrap_or((at, false));
            in_space = Some((start, has_break || character == '\n'));
        } else {
            if let Some((start, has_break)) = in_space.take() {
                push(&mut collapsed, start, if has_break { '\n' } else { ' ' });
            }
            push(&mut collapsed, at, character);
        }
    }
    if let Some((start, has_break)) = in_space {
        push(&mut collapsed, start, if has_break { '\n' } else { ' ' });
    }
    collapsed
}

fn approximate(text: &str, old: &str, new: &str) -> Result<Patched, Refusal> {
    let haystack = collapse(text);
    let needle = collapse(old.trim()).text;
    let found = all_starts(&haystack.text, &needle);
    let ranges = found
        .iter()
        .map(|range| original_range(text, &haystack, range))
        .collect::<Vec<_>>();
    match ranges.as_slice() {
        [] => Err(Refusal::NotFound(nearest(text, old))),
        [one] => Ok(replace(text, std::slice::from_ref(one), trim_alike(old, new), true)),
        many => Err(Refusal::Ambiguous(places(text, many))),
    }
}

fn original_range(text: &str, haystack: &Collapsed, range: &Range) -> Range {
    let start = haystack.starts.get(range.start).copied().unwrap_or(haystack.end);
    // The needle ends in a visible character, so the match ends where that character ends.
    let last = haystack
        .starts
        .get(range.end.saturating_sub(1))
        .copied()
        .unwrap_or(haystack.end);
    let end = last
        + text
            .get(last..)
            .and_then(|rest| rest.chars().next())
            .map_or(0, char::len_utf8);
    start..end
}

/// The match left out the white space around `old`, so the same is left out around `new`.
fn trim_alike<'a>(old: &str, new: &'a str) -> &'a str {
    let lead = old.len() - old.trim_start().len();
    let tail = old.len() - old.trim_end().len();
    let new = if lead > 0 { new.trim_start() } else { new };
    if tail > 0 { new.trim_end() } else { new }
}

fn line_start(text: &str, at: usize) -> usize {
    text.get(..at)
        .and_then(|before| before.rfind('\n'))
        .map_or(0, |newline| newline + 1)
}

fn line_number(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|&byte| byte == b'\n').count() + 1
}

fn shown(line: &str) -> String {
    let line = line.trim_end_matches(['\r', '\n']);
    let mut text = line.chars().take(SHOWN_CHARS).collect::<String>();
    if line.chars().nth(SHOWN_CHARS).is_some() {
        text.push('…');
    }
    text
}

fn lines_of(text: &str, range: &Range) -> Vec<Place> {
    let start = line_start(text, range.start);
    let first = line_number(text, range.start);
    let end = range.end.max(start);
    let tail = text
        .get(end..)
        .and_then(|rest| rest.find('\n'))
        .map_or(text.len(), |newline| end + newline);
    let block = text.get(start..tail).unwrap_or("");
    block
        .split('\n')
        .enumerate()
        .map(|(index, line)| Place {
            line: first + index,
            text: shown(line),
        })
        .collect()
}

fn places(text: &str, ranges: &[Range]) -> Vec<Place> {
    ranges
        .iter()
        .take(SHOWN_LINES)
        .filter_map(|range| lines_of(text, &(range.start..range.start)).into_iter().next())
        .collect()
}

/// The lines that share most words and letter pairs with the first lines of what was looked for.
fn nearest(text: &str, old: &str) -> Vec<Place> {
    let wanted = pairs(old.trim().lines().next().unwrap_or(""));
    let mut scored = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(index, line)| (overlap(&wanted, &pairs(line)), index, line))
        .filter(|(score, _, _)| *score > 0)
        .collect::<Vec<_>>();
    scored.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(&other.1)));
    scored
        .into_iter()
        .take(3)
        .map(|(_, index, line)| Place {
            line: index + 1,
            text: shown(line),
        })
        .collect()
}

fn pairs(line: &str) -> Vec<(char, char)> {
    let letters = line
        .chars()
        .filter(|character| !character.is_whitespace())
        .flat_map(char::to_lowercase);
    let letters = letters.take(400).collect::<Vec<_>>();
    let mut pairs = letters
        .iter()
        .copied()
        .zip(letters.iter().copied().skip(1))
        .collect::<Vec<_>>();
    pairs.sort_unstable();
    pairs
}

/// Shared pairs per thousand of both, zero when less than a third is shared.
fn overlap(one: &[(char, char)], other: &[(char, char)]) -> usize {
    let (mut left, mut right, mut shared) = (one.iter().peekable(), other.iter().peekable(), 0_usize);
    while let (Some(mine), Some(theirs)) = (left.peek(), right.peek()) {
        match mine.cmp(theirs) {
            std::cmp::Ordering::Less => _ = left.next(),
            std::cmp::Ordering::Greater => _ = right.next(),
            std::cmp::Ordering::Equal => {
                shared += 1;
                left.next();
                right.next();
            }
        }
    }
    let total = one.len() + other.len();
    let score = (2_000 * shared).checked_div(total).unwrap_or(0);
    if score < 333 { 0 } else { score }
}

#[cfg(test)]
mod tests;
