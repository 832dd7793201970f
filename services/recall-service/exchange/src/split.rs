//! Bytes that come in pieces, as lines. A line that is too long is told apart from the others and costs no memory.

/// Longest line in bytes.
pub const MAX_LINE: usize = 128 * 1024 * 1024;

/// A line of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its number, from 1.
    pub number: u64,
    /// Its bytes without the end of the line; `None` where there were more than are read.
    pub bytes: Option<Vec<u8>>,
}

/// Cuts bytes into lines.
#[derive(Debug)]
pub struct LineSplitter {
    limit: usize,
    number: u64,
    pending: Vec<u8>,
    is_too_long: bool,
}

impl Default for LineSplitter {
    fn default() -> Self {
        Self::new(MAX_LINE)
    }
}

impl LineSplitter {
    /// With another limit.
    pub const fn new(limit: usize) -> Self {
        Self {
            limit,
            number: 0,
            pending: Vec::new(),
            is_too_long: false,
        }
    }

    /// Takes the next bytes and gives the lines that end in them. Blank lines are counted and left out.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.keep(&rest[..end]);
            lines.extend(self.end());
            rest = &rest[end + 1..];
        }
        self.keep(rest);
        lines
    }

    /// The last line, where the input does not end with the end of one.
    pub fn finish(mut self) -> Option<Line> {
        self.end()
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.is_too_long || self.pending.len() + bytes.len() > self.limit {
            self.is_too_long = true;
            self.pending = Vec::new();
        } else {
            self.pending.extend_from_slice(bytes);
        }
    }

    fn end(&mut self) -> Option<Line> {
        self.number += 1;
        let bytes = std::mem::take(&mut self.pending);
        let is_too_long = std::mem::take(&mut self.is_too_long);
        if !is_too_long && bytes.iter().all(u8::is_ascii_whitespace) {
            return None;
        }
        Some(Line {
            number: self.number,
            bytes: (!is_too_long).then_some(bytes),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn whole(text: &[u8], pieces: usize, limit: usize) -> Vec<Line> {
        let mut splitter = LineSplitter::new(limit);
        let mut lines = Vec::new();
        for piece in text.chunks(pieces) {
            lines.extend(splitter.push(piece));
        }
        lines.extend(splitter.finish());
        lines
    }

    #[test]
    fn blank_lines_count_and_long_ones_are_told() {
        let lines = whole(b"a\n\n  \r\ntoo long a line\nb", 3, 8);
        let told: Vec<_> = lines.iter().map(|line| (line.number, line.bytes.as_deref())).collect();
        assert_eq!(told, [(1, Some(&b"a"[..])), (4, None), (5, Some(&b"b"[..]))]);
    }

    proptest! {
        #[test]
        fn it_does_not_matter_how_the_input_is_cut(text in "[ab\\n]{0,60}", pieces in 1usize..9) {
            prop_assert_eq!(whole(text.as_bytes(), pieces, 5), whole(text.as_bytes(), 1_000, 5));
        }
    }
}
