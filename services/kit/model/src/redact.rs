//! What a server says about a failure, made fit to be stored and shown: no credential, no web page, one short line.

use crate::secret::Secret;

const SHOWN: usize = 300;
const MASK: &str = "[redacted]";

/// One line of at most 300 characters without the key and without anything that looks like one (`A-3`).
pub(crate) fn presentable(text: &str, key: Option<&Secret>) -> String {
    if text.trim_start().starts_with('<') {
        return "a web page instead of an answer".to_owned();
    }
    let mut cleaned = text.to_owned();
    if let Some(key) = key.map(Secret::expose).filter(|key| !key.trim().is_empty()) {
        cleaned = cleaned.replace(key, MASK);
    }
    let words: Vec<String> = cleaned
        .split(|character: char| character.is_whitespace() || character.is_control())
        .filter(|word| !word.is_empty())
        .map(mask_tokens)
        .collect();
    let line = words.join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

/// Masks each run of token characters that is long or carries a known prefix.
fn mask_tokens(word: &str) -> String {
    let mut result = String::with_capacity(word.len());
    let mut run = String::new();
    for character in word.chars() {
        if character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '*') {
            run.push(character);
        } else {
            flush(&mut result, &mut run);
            result.push(character);
        }
    }
    flush(&mut result, &mut run);
    result
}

fn flush(result: &mut String, run: &mut String) {
    result.push_str(if looks_secret(run) { MASK } else { run });
    run.clear();
}

fn looks_secret(run: &str) -> bool {
    const PREFIXES: [&str; 8] = ["sk-", "sk_", "pk-", "ghp_", "gho_", "github_pat_", "AIza", "xox"];
    let digits = run.bytes().filter(u8::is_ascii_digit).count();
    let letters = run.bytes().filter(u8::is_ascii_alphabetic).count();
    let known = PREFIXES.iter().any(|prefix| run.starts_with(prefix)) && run.len() >= 8;
    known || (run.len() >= 24 && digits >= 4 && letters >= 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_the_key_nor_a_look_alike_is_shown() {
        let key = Secret::new("hunter2");
        let text = "Incorrect API key: hunter2 (also sk-proj-abc***xyz, \"ghp_0123456789abcdef\")\nretry";
        let shown = presentable(text, Some(&key));
        assert_eq!(
            shown,
            "Incorrect API key: [redacted] (also [redacted], \"[redacted]\") retry"
        );
        assert_eq!(
            presentable("model context_length_exceeded at 128000 tokens", None)
                .matches(MASK)
                .count(),
            0
        );
    }

    #[test]
    fn long_texts_and_web_pages_are_cut() {
        assert_eq!(presentable(&"é ".repeat(900), None).chars().count(), SHOWN + 3);
        assert_eq!(
            presentable("  <html><body>down</body>", None),
            "a web page instead of an answer"
        );
    }
}
