//! What a file is, by its bytes first and its name second: text that a model reads, a script that a machine runs, or
//! bytes that nobody reads. A name alone never lets a file escape.

use std::borrow::Cow;

/// A language whose scripts are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Language {
    Shell,
    Python,
    JavaScript,
    PowerShell,
    /// Ruby, Perl, batch files and the like: matched as text, without a parser.
    Other,
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Markdown,
    Script(Language),
    /// Text that is neither: settings, data, licences.
    Data,
    Binary(Binary),
}

/// Formats of bytes that are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binary {
    /// A program for some machine or a part of one.
    Program,
    /// Code compiled for an interpreter.
    Bytecode,
    /// An archive or a compressed file; what it holds is not read.
    Archive,
    /// An office document: an archive of a known form.
    Document,
    /// An image.
    Image,
    /// Fonts, sound, PDF and the like.
    Media,
    /// Nothing that is known.
    Unknown,
}

const MAGIC: &[(&[u8], Binary)] = &[
    (b"\x7fELF", Binary::Program),
    (b"MZ", Binary::Program),
    (b"\xfe\xed\xfa\xce", Binary::Program),
    (b"\xfe\xed\xfa\xcf", Binary::Program),
    (b"\xce\xfa\xed\xfe", Binary::Program),
    (b"\xcf\xfa\xed\xfe", Binary::Program),
    (b"\xca\xfe\xba\xbe", Binary::Program),
    (b"!<arch>\n", Binary::Program),
    (b"\0asm", Binary::Bytecode),
    (b"dex\n", Binary::Bytecode),
    (b"\x1bLua", Binary::Bytecode),
    (b"\x1f\x8b", Binary::Archive),
    (b"7z\xbc\xaf\x27\x1c", Binary::Archive),
    (b"Rar!\x1a\x07", Binary::Archive),
    (b"\xfd7zXZ\0", Binary::Archive),
    (b"BZh", Binary::Archive),
    (b"\x28\xb5\x2f\xfd", Binary::Archive),
    (b"MSCF", Binary::Archive),
    (b"xar!", Binary::Archive),
    (b"\x89PNG\r\n\x1a\n", Binary::Image),
    (b"\xff\xd8\xff", Binary::Image),
    (b"GIF8", Binary::Image),
    (b"%PDF-", Binary::Media),
    (b"\0\x01\0\0", Binary::Media),
    (b"OTTO", Binary::Media),
    (b"wOFF", Binary::Media),
    (b"wOF2", Binary::Media),
    (b"OggS", Binary::Media),
    (b"ID3", Binary::Media),
    (b"RIFF", Binary::Media),
    (b"%!PS", Binary::Media),
    (b"SQLite format 3\0", Binary::Media),
];

/// The text of a file and, where bytes had to be replaced, the offset of each byte of the text in the file.
#[derive(Debug)]
#[expect(clippy::struct_field_names, reason = "the text of a text file")]
pub(crate) struct Text<'a> {
    pub(crate) text: Cow<'a, str>,
    origins: Option<Vec<u32>>,
    /// Not UTF-8: read as another encoding, or with single bytes replaced.
    pub(crate) odd: bool,
}

impl Text<'_> {
    /// The offset in the file of an offset in the text.
    pub(crate) fn origin(&self, at: usize) -> usize {
        match &self.origins {
            None => at,
            Some(origins) => origins.get(at).or(origins.last()).map_or(at, |&offset| offset as usize),
        }
    }
}

/// What the file is, and its text if it has one.
pub(crate) fn classify<'a>(path: &str, bytes: &'a [u8]) -> (Kind, Option<Text<'a>>) {
    let extension = extension(path);
    if let Some(binary) = binary(bytes, &extension) {
        return (Kind::Binary(binary), None);
    }
    let Some(text) = decode(bytes) else {
        return (Kind::Binary(Binary::Unknown), None);
    };
    (text_kind(path, &extension, &text.text), Some(text))
}

fn binary(bytes: &[u8], extension: &str) -> Option<Binary> {
    if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06") {
        let office = matches!(
            extension,
            "docx" | "xlsx" | "pptx" | "odt" | "ods" | "odp" | "epub" | "dotx" | "potx"
        );
        return Some(if office { Binary::Document } else { Binary::Archive });
    }
    if bytes.get(257..262) == Some(b"ustar") {
        return Some(Binary::Archive);
    }
    // Python marks its bytecode with a version and CR LF.
    if bytes.len() > 16
        && bytes.get(2..4) == Some(b"\r\n")
        && bytes.get(1).is_some_and(|byte| (0x0b..=0x0f).contains(byte))
    {
        return Some(Binary::Bytecode);
    }
    if matches!(extension, "pyc" | "pyo" | "class") && !bytes.is_empty() {
        return Some(Binary::Bytecode);
    }
    let (_, binary) = MAGIC.iter().find(|(magic, _)| bytes.starts_with(magic))?;
    // Two letters could begin an English text.
    let is_text =
        *binary == Binary::Program && bytes.starts_with(b"MZ") && !bytes.iter().take(512).any(|&byte| byte == 0);
    let is_text = is_text || bytes.starts_with(b"%!PS") || bytes.starts_with(b"BZh") && !bytes.contains(&0);
    (!is_text).then_some(*binary)
}

/// UTF-8, UTF-16, or UTF-8 with stray bytes, as an interpreter would read it; nothing if it is no text.
pub(crate) fn decode(bytes: &[u8]) -> Option<Text<'_>> {
    if let Some(units) = utf16_units(bytes) {
        return Some(from_utf16(&units));
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let nul = text.bytes().filter(|&byte| byte == 0).count();
        return (nul * 200 <= bytes.len()).then_some(Text {
            text: Cow::Borrowed(text),
            origins: None,
            odd: nul > 0,
        });
    }
    let sample = bytes.get(..bytes.len().min(4096)).unwrap_or_default();
    let strange = sample
        .iter()
        .filter(|&&byte| byte < 0x09 || (0x0e..0x20).contains(&byte) && byte != 0x1b)
        .count();
    (strange * 50 <= sample.len()).then(|| with_replacements(bytes))
}

fn with_replacements(bytes: &[u8]) -> Text<'static> {
    let mut text = String::with_capacity(bytes.len());
    let mut origins = Vec::with_capacity(bytes.len());
    let mut at = 0;
    for chunk in bytes.utf8_chunks() {
        for (offset, character) in chunk.valid().char_indices() {
            text.push(character);
            origins.resize(text.len(), narrow(at + offset));
        }
        at += chunk.valid().len();
        if !chunk.invalid().is_empty() {
            text.push('\u{fffd}');
            origins.resize(text.len(), narrow(at));
            at += chunk.invalid().len();
        }
    }
    Text {
        text: Cow::Owned(text),
        origins: Some(origins),
        odd: true,
    }
}

/// Code units with their byte offset, if the bytes look like UTF-16 with or without a mark.
fn utf16_units(bytes: &[u8]) -> Option<Vec<(u16, usize)>> {
    let sample = bytes.get(..bytes.len().min(512))?;
    let zeros = |parity: usize| {
        let all = sample.iter().skip(parity).step_by(2);
        let count = all.clone().count();
        count >= 4 && all.filter(|&&byte| byte == 0).count() * 10 >= count * 7
    };
    let (little, skip) = match bytes {
        [0xff, 0xfe, ..] => (true, 2),
        [0xfe, 0xff, ..] => (false, 2),
        _ if zeros(1) && !zeros(0) => (true, 0),
        _ if zeros(0) && !zeros(1) => (false, 0),
        _ => return None,
    };
    let units = bytes.get(skip..)?.as_chunks::<2>().0.iter().enumerate();
    Some(
        units
            .map(|(index, &pair)| {
                let unit = if little {
                    u16::from_le_bytes(pair)
                } else {
                    u16::from_be_bytes(pair)
                };
                (unit, skip + index * 2)
            })
            .collect(),
    )
}

fn from_utf16(units: &[(u16, usize)]) -> Text<'static> {
    let mut text = String::with_capacity(units.len());
    let mut origins = Vec::with_capacity(units.len());
    let mut at = 0;
    for decoded in char::decode_utf16(units.iter().map(|(unit, _)| *unit)) {
        let character = decoded.unwrap_or('\u{fffd}');
        text.push(character);
        origins.resize(text.len(), narrow(units.get(at).map_or(0, |(_, offset)| *offset)));
        at += character.len_utf16();
    }
    Text {
        text: Cow::Owned(text),
        origins: Some(origins),
        odd: true,
    }
}

fn narrow(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

/// The part after the last dot of the file's name, in lower case.
pub(crate) fn extension(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => extension.to_ascii_lowercase(),
        _ => String::new(),
    }
}

fn text_kind(path: &str, extension: &str, text: &str) -> Kind {
    if let Some(language) = shebang(text) {
        return Kind::Script(language);
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    match extension {
        "md" | "markdown" | "mdx" | "mdc" | "rst" => Kind::Markdown,
        "txt" | "text" | "" if !looks_like_shell(text) => {
            let script = matches!(name, "Makefile" | "Dockerfile" | "Justfile" | "Rakefile" | "Gemfile");
            if script {
                Kind::Script(Language::Other)
            } else {
                Kind::Markdown
            }
        }
        "txt" | "text" | "" => Kind::Script(Language::Shell),
        _ => language(extension).map_or(Kind::Data, Kind::Script),
    }
}

/// The language that a file extension or the label of a code block names.
pub(crate) fn language(label: &str) -> Option<Language> {
    Some(match label.to_ascii_lowercase().as_str() {
        "sh" | "bash" | "zsh" | "ksh" | "shell" | "console" | "terminal" | "shell-session" | "shellsession"
        | "command" | "fish" | "bats" => Language::Shell,
        "py" | "python" | "python3" | "pyw" | "ipynb" => Language::Python,
        "js" | "mjs" | "cjs" | "ts" | "mts" | "cts" | "tsx" | "jsx" | "javascript" | "typescript" | "node" => {
            Language::JavaScript
        }
        "ps1" | "psm1" | "psd1" | "powershell" | "pwsh" => Language::PowerShell,
        "rb" | "ruby" | "pl" | "pm" | "perl" | "php" | "lua" | "bat" | "cmd" | "vbs" | "wsf" | "hta"
        | "applescript" | "scpt" | "go" | "rs" | "java" | "swift" | "groovy" | "r" | "mk" | "dockerfile" | "awk"
        | "tcl" | "exs" | "c" | "cpp" | "cs" | "command-line" | "svg" | "html" | "htm" | "xhtml" => Language::Other,
        _ => return None,
    })
}

fn shebang(text: &str) -> Option<Language> {
    let line = text.trim_start_matches('\u{feff}').lines().next()?.strip_prefix("#!")?;
    let has = |name: &str| line.contains(name);
    Some(if has("python") {
        Language::Python
    } else if has("node") || has("deno") || has("bun") || has("tsx") {
        Language::JavaScript
    } else if has("pwsh") || has("powershell") {
        Language::PowerShell
    } else if has("sh") {
        Language::Shell
    } else {
        Language::Other
    })
}

/// A text without a telling name, most of whose first lines are commands.
fn looks_like_shell(text: &str) -> bool {
    const COMMANDS: [&str; 22] = [
        "curl ", "wget ", "cd ", "export ", "sudo ", "echo ", "bash ", "sh ", "chmod ", "mkdir ", "rm ", "set -",
        "eval ", "source ", "if [", "for ", "done", "fi", "cat ", "python", "nohup ", "exec ",
    ];
    let mut commands = 0;
    let mut others = 0;
    for line in text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .take(20)
    {
        if COMMANDS.iter().any(|command| line.starts_with(command)) {
            commands += 1;
        } else {
            others += 1;
        }
    }
    commands > 0 && commands >= others
}

/// What is wrong with an image beside being one: bytes after its end, which another program may take for its own.
pub(crate) fn appended(bytes: &[u8]) -> Option<usize> {
    let end = if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        png_end(bytes)?
    } else if bytes.starts_with(b"\xff\xd8\xff") {
        // Previews nest whole images, so only the last end mark counts; a few bytes of padding are common.
        bytes.windows(2).rposition(|pair| pair == b"\xff\xd9")? + 2
    } else if bytes.starts_with(b"GIF8") {
        bytes.iter().rposition(|&byte| byte == 0x3b)? + 1
    } else {
        return None;
    };
    let rest = bytes.len().saturating_sub(end);
    let harmless = bytes
        .get(end..)
        .unwrap_or_default()
        .iter()
        .all(|&byte| byte == 0 || byte == b'\n');
    (rest > 16 && !harmless).then_some(rest)
}

fn png_end(bytes: &[u8]) -> Option<usize> {
    let mut at = 8_usize;
    loop {
        let header = bytes.get(at..at.checked_add(8)?)?;
        let length = u32::from_be_bytes(*header.first_chunk::<4>()?) as usize;
        let next = at.checked_add(12)?.checked_add(length)?;
        if header.get(4..) == Some(b"IEND") {
            return Some(next);
        }
        at = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d_61_a_kind_follows_the_content_and_not_the_name() {
        for (path, bytes, kind) in [
            (
                "logo.png",
                b"\x7fELF\x02\x01\x01\0".as_slice(),
                Kind::Binary(Binary::Program),
            ),
            ("notes", b"#!/usr/bin/env python3\nx", Kind::Script(Language::Python)),
            ("install", b"curl x\nchmod +x y\n", Kind::Script(Language::Shell)),
            ("a.mjs", b"import x", Kind::Script(Language::JavaScript)),
            (
                "x.cpython-312.pyc",
                b"\xcb\x0d\r\n\0\0\0\0",
                Kind::Binary(Binary::Bytecode),
            ),
            ("data.json", b"{}", Kind::Data),
            ("a.txt", b"Mz, read this", Kind::Markdown),
            ("a.zip", b"PK\x03\x04rest", Kind::Binary(Binary::Archive)),
            ("a.docx", b"PK\x03\x04rest", Kind::Binary(Binary::Document)),
            ("x.bin", b"\x01\x02\x03\x04\xff\xfe\xfd", Kind::Binary(Binary::Unknown)),
        ] {
            assert_eq!(classify(path, bytes).0, kind, "{path}");
        }
    }

    #[test]
    fn d_61_text_of_any_encoding_is_read_as_an_interpreter_reads_it() {
        let stray = decode(b"# caf\xe9\ncurl x").expect("text");
        assert_eq!(stray.text, "# caf\u{fffd}\ncurl x");
        assert!(stray.odd);
        assert_eq!(stray.origin(stray.text.find("curl").expect("there")), 7);
        let wide: Vec<u8> = "curl x | sh".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(decode(&wide).expect("text").text, "curl x | sh");
        let mut marked = vec![0xfe, 0xff];
        marked.extend("größe".encode_utf16().flat_map(u16::to_be_bytes));
        let decoded = decode(&marked).expect("text");
        assert_eq!(decoded.text, "größe");
        assert_eq!(decoded.origin(decoded.text.find('e').expect("there")), 10);
    }

    #[test]
    fn bytes_after_the_end_of_an_image_are_seen() {
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\0IEND\xae\x42\x60\x82".to_vec();
        assert_eq!(appended(&png), None);
        png.extend(b"\n\n");
        assert_eq!(appended(&png), None);
        png.extend(b"#!/bin/sh\necho appended\n");
        assert_eq!(appended(&png), Some(26));
        assert_eq!(
            appended(b"\x89PNG\r\n\x1a\n\xff\xff\xff\xffIEND"),
            None,
            "a broken one has no end"
        );
    }
}
