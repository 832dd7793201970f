//! What a script means beyond its letters: words joined out of quotes and variables, pipelines that decode what they
//! run, names put together from pieces. Real grammars read it; what they make plain is matched like plain text.
//!
//! Nothing is executed. Only constants are folded, within budgets, and what is beyond them is reported as not read.

mod expression;
mod shell;

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};
use std::sync::LazyLock;

use base64::Engine as _;
use regex::bytes::{Regex, RegexBuilder};
use tree_sitter::{Parser, Tree};

use crate::content::Language;

/// Longest script that is parsed, in bytes.
const MAX_BYTES: usize = 256 * 1024;
/// Most steps of the parser's progress per byte, and most nodes that are looked at.
const MAX_NODES: usize = 400_000;
/// How deep expressions are followed.
const MAX_DEPTH: usize = 64;
/// Longest text that is put together.
const MAX_TEXT: usize = 64 * 1024;

/// Text that the structure of a script makes plain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plain {
    /// What it comes to.
    pub(crate) text: String,
    /// Where it stands in the script, in bytes.
    pub(crate) range: Range<usize>,
    /// How it was hidden, for people.
    pub(crate) how: &'static str,
    /// Whether the script runs this text as a program: it is judged like a script of its own.
    pub(crate) runs: bool,
}

/// A name that a script puts together from pieces and then reaches for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BuiltName {
    pub(crate) name: String,
    pub(crate) range: Range<usize>,
}

/// What the parser found.
#[derive(Debug, Default)]
pub(crate) struct Meaning {
    pub(crate) plain: Vec<Plain>,
    pub(crate) names: Vec<BuiltName>,
    /// Not all of it could be read within the budgets.
    pub(crate) partial: bool,
}

/// What `script` means; nothing is read if it holds nothing that could mean more than its letters.
pub(crate) fn read(script: &str, language: Language) -> Meaning {
    let worthwhile = match language {
        Language::Shell => is_suspect(&SHELL, script),
        Language::Python => is_suspect(&PYTHON, script),
        Language::JavaScript => is_suspect(&JAVASCRIPT, script),
        Language::PowerShell | Language::Other => false,
    };
    if !worthwhile {
        return Meaning::default();
    }
    if script.len() > MAX_BYTES {
        return Meaning {
            partial: true,
            ..Meaning::default()
        };
    }
    let Some(tree) = parse(script, language) else {
        return Meaning {
            partial: true,
            ..Meaning::default()
        };
    };
    if language == Language::Shell {
        shell::read(script, &tree)
    } else {
        expression::read(script, &tree, language)
    }
}

/// Marks without which a script means what it says.
static SHELL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    marks(
        r#"\beval\b|base64|\bxxd\b|\brev\b|\btr\b|\$'|\\\r?\n|\w(?:''|"")\w|\w['"]\w{1,8}['"]\w|['"]\w{1,6}['"]['"]?\w|\w\\\w|\bprintf\b|<<<|[|;&]\s*"?\$|(?m:^)\s*"?\$[{(]?\w|\$\{\w+(?::\d|/)|\s-c\s|IFS"#,
    )
});
static PYTHON: LazyLock<Option<Regex>> = LazyLock::new(|| {
    marks(
        r#"\b(?:exec|eval|__import__|import_module|getattr|globals|builtins|b64decode|b85decode|fromhex|unhexlify|decompress|marshal|codecs|rot13|chr)\b|\[::-1\]|__\w+__\[|''\.join|""\.join"#,
    )
});
static JAVASCRIPT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    marks(
        r#"\b(?:eval|Function|atob|fromCharCode|unescape|globalThis|decodeURIComponent)\b|child_|['"]base64['"]|\]\.join\(|\.reverse\(\)|\[['"]\w+['"]\s*\+"#,
    )
});

fn marks(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(pattern).unicode(false).build().ok()
}

fn is_suspect(pattern: &LazyLock<Option<Regex>>, script: &str) -> bool {
    // A pattern that does not compile must not make scripts look plain; a test holds that all of them do.
    pattern
        .as_ref()
        .is_none_or(|pattern| pattern.is_match(script.as_bytes()))
}

fn parse(script: &str, language: Language) -> Option<Tree> {
    let grammar = match language {
        Language::Shell => tree_sitter_bash::LANGUAGE,
        Language::Python => tree_sitter_python::LANGUAGE,
        Language::JavaScript => tree_sitter_javascript::LANGUAGE,
        Language::PowerShell | Language::Other => return None,
    };
    let mut parser = Parser::new();
    parser.set_language(&grammar.into()).ok()?;
    let given = match language {
        Language::Shell => within_tables(script),
        Language::Python | Language::JavaScript | Language::PowerShell | Language::Other => Cow::Borrowed(script),
    };
    let bytes = given.as_bytes();
    // Progress is reported every hundred steps or so; a text that takes far more steps than it has bytes is left.
    let mut left = 1_000 + bytes.len();
    let mut watch = |_: &tree_sitter::ParseState| {
        left = left.saturating_sub(1);
        if left == 0 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let options = tree_sitter::ParseOptions::new().progress_callback(&mut watch);
    parser.parse_with_options(&mut |at, _| bytes.get(at..).unwrap_or_default(), None, Some(options))
}

/// The script as the shell's grammar may see it. Its hand-written part looks characters up in a table of the first 256 and
/// reads behind the table's end for all others, which ends the process where nothing is mapped there. To that grammar they
/// are all the same, a letter of a word: each is replaced by others of the same length, so that offsets stay.
fn within_tables(script: &str) -> Cow<'_, str> {
    if script.chars().all(|character| u32::from(character) < 0x100) {
        return Cow::Borrowed(script);
    }
    let mut text = String::with_capacity(script.len());
    for character in script.chars() {
        match character.len_utf8() {
            _ if u32::from(character) < 0x100 => text.push(character),
            2 => text.push('\u{e9}'),
            3 => text.push_str("\u{e9}\u{7f}"),
            _ => text.push_str("\u{e9}\u{e9}"),
        }
    }
    Cow::Owned(text)
}

/// The source of a node.
fn source<'s>(script: &'s str, node: tree_sitter::Node<'_>) -> &'s str {
    script.get(node.byte_range()).unwrap_or_default()
}

/// Undoes backslash escapes as C and most languages write them.
fn unescape(text: &str) -> String {
    let mut out: Vec<u8> = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte != b'\\' {
            out.push(byte);
            at += 1;
            continue;
        }
        let digits = |from: usize, most: usize, radix: u32| {
            let run = bytes.get(from..).unwrap_or_default().iter().take(most);
            let length = run.take_while(|byte| char::from(**byte).is_digit(radix)).count();
            let value = text
                .get(from..from + length)
                .and_then(|digits| u32::from_str_radix(digits, radix).ok());
            value.map(|value| (value, length))
        };
        let code = match bytes.get(at + 1) {
            Some(b'x') => digits(at + 2, 2, 16).map(|(value, length)| (value, length + 2)),
            Some(b'u') => digits(at + 2, 4, 16).map(|(value, length)| (value, length + 2)),
            Some(b'0'..=b'7') => digits(at + 1, 3, 8).map(|(value, length)| (value, length + 1)),
            _ => None,
        };
        if let Some((value, length)) = code {
            let mut buffer = [0; 4];
            let character = char::from_u32(value).unwrap_or('\u{fffd}');
            out.extend(character.encode_utf8(&mut buffer).as_bytes());
            at += length;
            continue;
        }
        match bytes.get(at + 1) {
            Some(b'n') => out.push(b'\n'),
            Some(b't') => out.push(b'\t'),
            Some(b'r') => out.push(b'\r'),
            Some(b'\n') => {}
            Some(&other) => out.push(other),
            None => out.push(b'\\'),
        }
        at += 2;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// A text as one of the common decoders returns it.
fn decode_base64(text: &str) -> Option<String> {
    let clean: String = text.split_whitespace().collect();
    let padded = clean.trim_end_matches('=');
    let bytes = base64::engine::general_purpose::STANDARD_NO_PAD
        .decode(padded)
        .or_else(|_| base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(padded))
        .ok()?;
    String::from_utf8(bytes).ok()
}

fn decode_hex(text: &str) -> Option<String> {
    let clean: String = text.split_whitespace().collect();
    String::from_utf8(hex::decode(clean.trim_start_matches("0x")).ok()?).ok()
}

fn rot13(text: &str) -> String {
    text.chars()
        .map(|character| match character {
            'a'..='z' => char::from((character as u8 - b'a' + 13) % 26 + b'a'),
            'A'..='Z' => char::from((character as u8 - b'A' + 13) % 26 + b'A'),
            other => other,
        })
        .collect()
}

fn reversed(text: &str) -> String {
    text.chars().rev().collect()
}

#[cfg(test)]
mod tests;
