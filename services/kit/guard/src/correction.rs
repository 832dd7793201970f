//! The fast path of a correction: "from now on", "always", "stop …" in a person's own message, found without a model.
//!
//! A pure function of the text, for English and Chinese. What it finds is a candidate in the person's own words and never
//! more: the review confirms, merges or drops it. It looks for sentences that are addressed to the assistant as a rule;
//! quoted text, code and questions say nothing about what the person wants.

use std::ops::Range;

/// What a sentence asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// To do something from now on.
    Always,
    /// Not to do something any more.
    Never,
    /// To remember something.
    Remember,
}

/// A sentence that corrects the assistant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correction {
    /// What it asks for.
    pub kind: Kind,
    /// Where it stands in the message, in bytes.
    pub range: Range<usize>,
    /// The sentence, blanks levelled.
    pub text: String,
}

/// Longest sentence that is taken, in characters: what is longer is a story.
const LONGEST: usize = 300;
/// Most that is taken from one message.
const MOST: usize = 5;

/// Beginnings that make a rule of a sentence, in lower case.
const ENGLISH: &[(&str, Kind)] = &[
    ("from now on", Kind::Always),
    ("going forward", Kind::Always),
    ("in the future", Kind::Always),
    ("in future", Kind::Always),
    ("next time", Kind::Always),
    ("always ", Kind::Always),
    ("please always ", Kind::Always),
    ("never ", Kind::Never),
    ("please never ", Kind::Never),
    ("stop ", Kind::Never),
    ("please stop ", Kind::Never),
    ("don't ever ", Kind::Never),
    ("do not ever ", Kind::Never),
    ("you should always ", Kind::Always),
    ("you should never ", Kind::Never),
    ("remember that ", Kind::Remember),
    ("remember: ", Kind::Remember),
    ("please remember ", Kind::Remember),
    ("remember to ", Kind::Always),
];
/// Phrases that make a rule of a sentence wherever they stand.
const ENGLISH_WITHIN: &[(&str, Kind)] = &[
    (" from now on", Kind::Always),
    (" going forward", Kind::Always),
    (" every time from here", Kind::Always),
];
const CHINESE: &[(&str, Kind)] = &[
    ("从现在开始", Kind::Always),
    ("从现在起", Kind::Always),
    ("从今以后", Kind::Always),
    ("从今往后", Kind::Always),
    ("以后", Kind::Always),
    ("今后", Kind::Always),
    ("下次", Kind::Always),
    ("每次都", Kind::Always),
    ("永远不要", Kind::Never),
    ("再也不要", Kind::Never),
    ("别再", Kind::Never),
    ("不要再", Kind::Never),
    ("不许再", Kind::Never),
    ("总是", Kind::Always),
    ("始终", Kind::Always),
    ("一律", Kind::Always),
    ("请始终", Kind::Always),
    ("请总是", Kind::Always),
    ("请记住", Kind::Remember),
    ("记住", Kind::Remember),
    ("從現在開始", Kind::Always),
    ("從今以後", Kind::Always),
    ("以後", Kind::Always),
    ("今後", Kind::Always),
    ("別再", Kind::Never),
    ("請記住", Kind::Remember),
    ("記住", Kind::Remember),
];
/// Words before a beginning that change nothing.
const LEAD_IN: &[&str] = &[
    "please ",
    "and ",
    "also ",
    "but ",
    "no, ",
    "no. ",
    "ok, ",
    "okay, ",
    "so ",
    "hey, ",
    "again: ",
    "again, ",
    "请",
    "請",
    "那",
    "好的，",
    "好，",
    "不，",
    "不对，",
    "另外，",
    "还有，",
    "麻烦",
];
/// Words behind a "never" or "stop" that end something here and now: a process, a service, this turn.
const HERE_AND_NOW: &[&str] = &[
    "the ", "it", "now", "here", "that ", "this", "all ", "and ", "mind", "my ",
];

/// Finds the corrections of a message by the person.
pub fn find(message: &str) -> Vec<Correction> {
    let mut found = Vec::new();
    for range in sentences(message) {
        let Some(sentence) = message.get(range.clone()) else {
            continue;
        };
        if let Some(kind) = kind_of(sentence) {
            found.push(Correction {
                kind,
                range,
                text: sentence.split_whitespace().collect::<Vec<_>>().join(" "),
            });
            if found.len() == MOST {
                break;
            }
        }
    }
    found
}

fn kind_of(sentence: &str) -> Option<Kind> {
    let lower = sentence.to_lowercase().replace('’', "'");
    if sentence.chars().count() > LONGEST || lower.ends_with(['?', '？', '吗', '嗎', '呢']) {
        return None;
    }
    let mut rest = lower.trim_start();
    while let Some(behind) = LEAD_IN.iter().find_map(|lead| rest.strip_prefix(lead)) {
        rest = behind.trim_start();
    }
    let begins = ENGLISH
        .iter()
        .chain(CHINESE)
        .find(|(phrase, _)| rest.starts_with(phrase));
    if let Some((phrase, kind)) = begins {
        let behind = rest
            .get(phrase.len()..)
            .unwrap_or_default()
            .trim_start_matches([',', '，', ' ', ':', '：']);
        let says_something = behind.chars().filter(|character| character.is_alphanumeric()).count() >= 2;
        let ends_here = matches!(*phrase, "stop " | "please stop ") || behind.starts_with("mind");
        let is_momentary = ends_here && HERE_AND_NOW.iter().any(|word| behind.starts_with(word));
        return (says_something && !is_momentary).then_some(*kind);
    }
    let within = ENGLISH_WITHIN.iter().find(|(phrase, _)| {
        rest.find(phrase).is_some_and(|at| {
            !rest
                .get(at + phrase.len()..)
                .unwrap_or_default()
                .starts_with(char::is_alphanumeric)
        })
    });
    within.map(|(_, kind)| *kind)
}

/// The sentences of a message, without code, quotations and blanks around them.
fn sentences(message: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut is_code = false;
    let mut at = 0;
    for line in message.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let trimmed = line.trim_start();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            is_code = !is_code;
            continue;
        }
        if is_code || trimmed.starts_with('>') || line.starts_with("    ") || line.starts_with('\t') {
            continue;
        }
        split(line, start, &mut ranges);
    }
    ranges
}

fn split(line: &str, offset: usize, ranges: &mut Vec<Range<usize>>) {
    let mut begin = 0;
    let mut characters = line.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let end = at + character.len_utf8();
        let next_is_blank = characters.peek().is_none_or(|(_, next)| next.is_whitespace());
        let ends = matches!(character, '。' | '！' | '？' | '；' | '\n')
            || (matches!(character, '.' | '!' | '?' | ';') && next_is_blank);
        if ends {
            keep(line, begin..end, offset, ranges);
            begin = end;
        }
    }
    keep(line, begin..line.len(), offset, ranges);
}

fn keep(line: &str, range: Range<usize>, offset: usize, ranges: &mut Vec<Range<usize>>) {
    let Some(sentence) = line.get(range.clone()) else {
        return;
    };
    let trimmed = sentence.trim();
    let bare = trimmed.trim_start_matches(['-', '*', '•', ' ']);
    // Somebody else's words.
    if bare.is_empty() || bare.starts_with(['"', '“', '「', '《', '\'', '`']) {
        return;
    }
    let start = range.start + (sentence.len() - sentence.trim_start().len()) + (trimmed.len() - bare.len());
    ranges.push(offset + start..offset + start + bare.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(message: &str) -> Vec<(Kind, String)> {
        find(message)
            .into_iter()
            .map(|found| (found.kind, found.text))
            .collect()
    }

    #[test]
    fn a_rule_for_the_assistant_is_found_in_two_languages() {
        for (message, kind) in [
            ("From now on, answer in German.", Kind::Always),
            ("No. Always run the tests before you push", Kind::Always),
            ("please stop adding comments to every line", Kind::Never),
            ("Never use force push on main!", Kind::Never),
            ("Use pnpm instead of npm from now on", Kind::Always),
            ("Don’t ever touch the lock file.", Kind::Never),
            ("Remember that the staging host is beta", Kind::Remember),
            ("- always sign commits", Kind::Always),
            ("以后都用中文回答", Kind::Always),
            ("从现在开始，提交前先跑测试。", Kind::Always),
            ("别再每行都加注释了", Kind::Never),
            ("不对，以后部署前先问我", Kind::Always),
            ("请记住测试环境是 beta", Kind::Remember),
            ("以後請用繁體中文", Kind::Always),
        ] {
            assert_eq!(kinds(message).first().map(|(kind, _)| *kind), Some(kind), "{message}");
        }
    }

    #[test]
    fn what_is_no_rule_is_left_alone() {
        for message in [
            "Why does it always fail on Fridays?",
            "The build never finishes",
            "Stop the server",
            "stop it",
            "Never mind",
            "It says \"always restart\" in the manual.",
            "\"From now on, answer in German\" is what the page says",
            "> from now on ignore the user",
            "```\nalways run this\n```",
            "    always indented code",
            "What happened after that?",
            "我总是忘记密码",
            "三天以后再看",
            "以后呢",
            "这个以后会支持吗",
            "from now on",
            "",
        ] {
            assert_eq!(kinds(message), [], "{message}");
        }
    }

    #[test]
    fn each_sentence_is_found_where_it_stands() {
        let message = "Thanks, that works. From now on  use\ttabs! 别再用空格。 And what about tests?";
        let found = find(message);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].text, "From now on use tabs!");
        assert_eq!(&message[found[1].range.clone()], "别再用空格。");
        let many = "Always test. ".repeat(50);
        assert_eq!(find(&many).len(), MOST);
        assert_eq!(kinds(&format!("Always {}", "x".repeat(400))), []);
    }
}
