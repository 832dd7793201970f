//! What a skill reaches for, as facts: read from the text as it stands, without judgement.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::bytes::{Regex, RegexBuilder};

use crate::content::Language;
use crate::report::Capabilities;
use crate::split::{Parts, Place};

/// Longest set that is kept; more than that says "many" to any reader.
const MOST: usize = 200;

struct Patterns {
    address: Regex,
    env: Regex,
    path: Regex,
    install: Regex,
}

static PATTERNS: LazyLock<Option<Patterns>> = LazyLock::new(|| {
    let regex = |pattern: &str| RegexBuilder::new(pattern).unicode(false).multi_line(true).build().ok();
    Some(Patterns {
        address: regex(
            r#"https?://(?:[^\s/@'"<>()]{1,60}@)?[A-Za-z0-9.-]{1,120}(?::\d{1,5})?(?:/[^\s'"<>()`\]]{0,300})?"#,
        )?,
        env: regex(
            r#"(?:\$\{?|environ(?:\.get)?[\[(]\s?['"]|getenv\(\s?['"]|process\.env\.|process\.env\[['"]|\$env:|ENV\[['"])[A-Z][A-Z0-9_]{2,60}"#,
        )?,
        path: regex(
            r"(?:~|\$HOME|/etc|/usr/local|/var|/root|/opt|/home|/Library|/System|/tmp)/[A-Za-z0-9._/-]{1,120}",
        )?,
        install: regex(
            r"\b(?:pip3?|uv|pipx|npm|pnpm|yarn|bun|cargo|gem|go|brew|apt(?:-get)?|apk|dnf|npx|uvx)[ \t]+(?:pip[ \t]+)?(?:install|i|add|get|tool[ \t]+install|-y|--yes)[ \t]+[^\n|;&`]{1,200}",
        )?,
    })
});

/// Adds what `text` reaches for.
pub(crate) fn collect(text: &str, parts: &Parts, into: &mut Capabilities) {
    let Some(patterns) = PATTERNS.as_ref() else { return };
    let bytes = text.as_bytes();
    let word = |range: regex::bytes::Match<'_>| text.get(range.range()).unwrap_or_default();
    for found in patterns.address.find_iter(bytes) {
        let address = word(found);
        let Some(host) = host_of(address) else { continue };
        insert(&mut into.hosts, host);
        if parts.place(found.start()) == Place::Prose {
            insert(
                &mut into.documents,
                address.trim_end_matches(['.', ',', ';', ':', '!', '?', '*']).to_owned(),
            );
        }
    }
    for found in patterns.env.find_iter(bytes) {
        let read = word(found);
        let start = read
            .rfind(|sign: char| !(sign.is_ascii_alphanumeric() || sign == '_'))
            .map_or(0, |at| at + 1);
        insert(&mut into.env, read.get(start..).unwrap_or_default().to_owned());
    }
    for found in patterns.path.find_iter(bytes) {
        insert(&mut into.paths, word(found).trim_end_matches(['.', '/']).to_owned());
    }
    for found in patterns.install.find_iter(bytes) {
        let mut words = word(found).split_whitespace();
        let manager = words.next().unwrap_or_default();
        for name in words
            .take_while(|name| !name.starts_with('#'))
            .filter(|name| is_package(name))
        {
            let name = name.trim_matches(['"', '\'', ',', '.', ')', '*']);
            insert(&mut into.installs, format!("{manager}:{name}"));
        }
    }
    for part in parts.parts.iter().filter(|part| part.language == Some(Language::Shell)) {
        programs(text.get(part.range.clone()).unwrap_or_default(), into);
    }
}

fn insert(set: &mut BTreeSet<String>, word: String) {
    if set.len() < MOST {
        set.insert(word);
    }
}

/// The host of an address, with its port, if it is one that could be asked.
fn host_of(address: &str) -> Option<String> {
    let rest = address.split_once("://")?.1;
    let authority = rest.split('/').next()?;
    let host = authority.rsplit('@').next()?.trim_end_matches('.').to_ascii_lowercase();
    (host.contains('.') || host.starts_with("localhost")).then_some(host)
}

/// Whether a word of an install command names a package: neither the verb nor an option.
fn is_package(name: &str) -> bool {
    if ["pip", "install", "i", "add", "get", "tool"].contains(&name) {
        return false;
    }
    let first = name.trim_start_matches(['"', '\'']).chars().next();
    first.is_some_and(|first| first.is_ascii_alphanumeric() || first == '@') && name.len() <= 80
}

/// The first word of each line and of each link of a pipeline.
fn programs(script: &str, into: &mut Capabilities) {
    for line in script.lines() {
        let line = line.trim_start().trim_start_matches("$ ");
        if line.starts_with(['#', '`']) {
            continue;
        }
        for command in line.split(['|', ';', '&']) {
            let mut words = command.split_whitespace();
            let first = match words.next() {
                Some("sudo" | "exec" | "nohup" | "time" | "then" | "do" | "else") => words.next(),
                other => other,
            };
            let is_name = |word: &&str| {
                (2..=24).contains(&word.len())
                    && word.starts_with(|first: char| first.is_ascii_lowercase())
                    && word.bytes().all(|byte| {
                        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_' | b'.')
                    })
            };
            if let Some(name) = first.filter(is_name)
                && !KEYWORDS.contains(&name)
            {
                insert(&mut into.bins, name.to_owned());
            }
        }
    }
}

const KEYWORDS: [&str; 22] = [
    "if", "fi", "for", "done", "do", "then", "else", "elif", "while", "case", "esac", "in", "function", "return",
    "local", "export", "set", "echo", "cd", "exit", "true", "false",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::Kind;

    #[test]
    fn facts_are_read_from_prose_and_code() {
        let text = "See https://docs.a.example/guide.\n\n```bash\npip install requests==2 rich\ncurl -s https://api.b.example/v1 -H \"X: $B_KEY\" | jq .\n```\nWrites ~/.config/x/y.toml; `os.environ[\"C_KEY\"]`.\n";
        let mut capabilities = Capabilities::default();
        collect(text, &Parts::of(text, Kind::Markdown), &mut capabilities);
        let list = |set: &std::collections::BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>();
        assert_eq!(list(&capabilities.hosts), ["api.b.example", "docs.a.example"]);
        assert_eq!(list(&capabilities.documents), ["https://docs.a.example/guide"]);
        assert_eq!(list(&capabilities.env), ["B_KEY", "C_KEY"]);
        assert_eq!(list(&capabilities.bins), ["curl", "jq", "pip"]);
        assert_eq!(list(&capabilities.installs), ["pip:requests==2", "pip:rich"]);
        assert_eq!(list(&capabilities.paths), ["~/.config/x/y.toml"]);
    }
}
