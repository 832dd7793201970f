//! Shell scripts: words joined, constant variables filled in, pipelines of constants worked out.

use std::collections::HashMap;

use tree_sitter::{Node, Tree};

use super::{MAX_DEPTH, MAX_NODES, MAX_TEXT, Meaning, Plain, decode_base64, decode_hex, reversed, source, unescape};

const SHELLS: [&str; 8] = ["sh", "bash", "zsh", "dash", "ksh", "ash", "fish", "busybox"];
const INTERPRETERS: [&str; 8] = ["python", "python3", "node", "perl", "ruby", "php", "osascript", "pwsh"];

/// A word after folding.
#[derive(Debug, Default, Clone)]
struct Word {
    text: String,
    /// It differs from what is written by more than its outer quotes.
    changed: bool,
    /// It holds nothing that only a run could tell.
    constant: bool,
}

struct Reader<'s> {
    script: &'s str,
    variables: HashMap<String, String>,
    meaning: Meaning,
    nodes: usize,
}

pub(super) fn read(script: &str, tree: &Tree) -> Meaning {
    let mut reader = Reader {
        script,
        variables: HashMap::new(),
        meaning: Meaning::default(),
        nodes: 0,
    };
    let mut cursor = tree.walk();
    loop {
        reader.nodes += 1;
        if reader.nodes > MAX_NODES {
            reader.meaning.partial = true;
            break;
        }
        reader.visit(cursor.node());
        if cursor.goto_first_child() || cursor.goto_next_sibling() {
            continue;
        }
        loop {
            if !cursor.goto_parent() {
                return reader.meaning;
            }
            if cursor.goto_next_sibling() {
                break;
            }
        }
    }
    reader.meaning
}

impl Reader<'_> {
    fn visit(&mut self, node: Node<'_>) {
        match node.kind() {
            "variable_assignment" => self.assign(node),
            "pipeline" => self.pipeline(node),
            "command" => self.command(node),
            _ => {}
        }
    }

    fn assign(&mut self, node: Node<'_>) {
        let (Some(name), Some(value)) = (node.child_by_field_name("name"), node.child_by_field_name("value")) else {
            return;
        };
        let word = self.word(value, 0);
        let name = source(self.script, name).to_owned();
        if word.constant {
            self.variables.insert(name, word.text);
        } else {
            self.variables.remove(&name);
        }
    }

    /// A pipeline is told as one line; one that ends in a shell is worked out if its input is constant.
    fn pipeline(&mut self, node: Node<'_>) {
        let commands: Vec<Vec<Word>> = self.commands(node);
        let changed = commands.iter().flatten().any(|word| word.changed);
        if changed {
            let line: Vec<String> = commands.iter().map(|words| joined(words)).collect();
            self.tell(line.join(" | "), node, "joined shell words", false);
        }
        let Some((last, before)) = commands.split_last() else {
            return;
        };
        if runs_its_input(last)
            && let Some(text) = work_out(before)
        {
            self.tell(text, node, "text that a pipeline decodes and runs", true);
        }
    }

    fn command(&mut self, node: Node<'_>) {
        let words = self.words(node, 0);
        if words.iter().any(|word| word.changed) {
            self.tell(joined(&words), node, "joined shell words", false);
        }
        let Some(name) = words.first().map(|word| base_name(&word.text)) else {
            return;
        };
        if name == "eval" {
            let rest: Vec<Word> = words.iter().skip(1).cloned().collect();
            if rest.iter().any(|word| word.changed) || rest.iter().all(|word| word.constant) {
                self.tell(joined(&rest), node, "text that `eval` runs", true);
            }
        } else if SHELLS.contains(&name) || INTERPRETERS.contains(&name) {
            let script = words
                .iter()
                .skip_while(|word| !matches!(word.text.as_str(), "-c" | "-e" | "-ec" | "-lc"))
                .nth(1);
            if let Some(script) = script.filter(|word| word.changed) {
                self.tell(script.text.clone(), node, "text that an interpreter runs", true);
            }
            let parent = node
                .parent()
                .filter(|parent| parent.kind() == "redirected_statement")
                .unwrap_or(node);
            let mut cursor = parent.walk();
            for redirect in parent
                .children(&mut cursor)
                .filter(|child| child.kind() == "herestring_redirect")
            {
                let word = redirect.named_child(0).map(|text| self.word(text, 0));
                if let Some(word) = word.filter(|word| word.constant) {
                    self.tell(word.text, node, "text that an interpreter runs", true);
                }
            }
        }
    }

    fn tell(&mut self, text: String, node: Node<'_>, how: &'static str, runs: bool) {
        if text.is_empty() || text.len() > MAX_TEXT {
            self.meaning.partial |= text.len() > MAX_TEXT;
            return;
        }
        self.meaning.plain.push(Plain {
            text,
            range: node.byte_range(),
            how,
            runs,
        });
    }

    fn commands(&mut self, pipeline: Node<'_>) -> Vec<Vec<Word>> {
        let mut cursor = pipeline.walk();
        let children: Vec<Node<'_>> = pipeline.named_children(&mut cursor).collect();
        children
            .into_iter()
            .filter_map(|child| match child.kind() {
                "command" => Some(self.words(child, 0)),
                "redirected_statement" => child.child_by_field_name("body").map(|body| self.words(body, 0)),
                _ => None,
            })
            .collect()
    }

    fn words(&mut self, command: Node<'_>, depth: usize) -> Vec<Word> {
        let mut words = Vec::new();
        let mut cursor = command.walk();
        for child in command.named_children(&mut cursor) {
            let child = if child.kind() == "command_name" {
                child.named_child(0).unwrap_or(child)
            } else {
                child
            };
            if !child.kind().ends_with("_redirect") && child.kind() != "variable_assignment" {
                words.push(self.word(child, depth));
            }
        }
        words
    }

    fn word(&mut self, node: Node<'_>, depth: usize) -> Word {
        self.nodes += 1;
        let raw = source(self.script, node);
        let as_written = || Word {
            text: raw.to_owned(),
            changed: false,
            constant: false,
        };
        if depth > MAX_DEPTH || self.nodes > MAX_NODES {
            self.meaning.partial = true;
            return as_written();
        }
        let literal = |text: String, changed: bool| Word {
            text,
            changed,
            constant: true,
        };
        match node.kind() {
            "word" | "number" | "variable_name" | "extglob_pattern" => {
                let text = unescape_word(raw);
                let changed = text != raw;
                literal(text, changed)
            }
            "raw_string" => literal(raw.trim_matches('\'').to_owned(), false),
            "ansi_c_string" => literal(unescape(raw.trim_start_matches("$'").trim_end_matches('\'')), true),
            "string_content" => literal(raw.replace("\\\n", "").replace("\\\"", "\""), false),
            "string" | "concatenation" | "translated_string" => self.joined_word(node, depth),
            "simple_expansion" => self.variable(raw.trim_start_matches('$'), raw),
            "expansion" => self.expansion(raw),
            "command_substitution" => self.substitution(node, depth),
            _ => as_written(),
        }
    }

    fn joined_word(&mut self, node: Node<'_>, depth: usize) -> Word {
        let mut whole = Word {
            constant: true,
            ..Word::default()
        };
        let mut cursor = node.walk();
        let parts: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        let pieces = node.kind() == "concatenation" && parts.len() > 1;
        let mut end = node.start_byte() + usize::from(node.kind() == "string");
        for part in parts {
            // Blanks between the parts of a string have no node of their own.
            whole.text.push_str(
                self.script
                    .get(end..part.start_byte())
                    .unwrap_or_default()
                    .trim_matches('"'),
            );
            let word = self.word(part, depth + 1);
            whole.changed |= word.changed || pieces && matches!(part.kind(), "raw_string" | "string" | "ansi_c_string");
            whole.constant &= word.constant;
            whole.text.push_str(&word.text);
            end = part.end_byte();
            if whole.text.len() > MAX_TEXT {
                self.meaning.partial = true;
                break;
            }
        }
        whole
    }

    fn variable(&self, name: &str, raw: &str) -> Word {
        match self.variables.get(name) {
            Some(value) => Word {
                text: value.clone(),
                changed: true,
                constant: true,
            },
            None => Word {
                text: raw.to_owned(),
                ..Word::default()
            },
        }
    }

    /// `${x}`, `${x:from:length}`, `${x/a/b}`, `${x//a/b}`.
    fn expansion(&self, raw: &str) -> Word {
        let inner = raw.trim_start_matches("${").trim_end_matches('}');
        let end = inner
            .find(|character: char| !(character.is_ascii_alphanumeric() || character == '_'))
            .unwrap_or(inner.len());
        let (name, rest) = inner.split_at(end);
        let Some(value) = self.variables.get(name) else {
            return Word {
                text: raw.to_owned(),
                ..Word::default()
            };
        };
        let text = if rest.is_empty() {
            Some(value.clone())
        } else if let Some(pattern) = rest.strip_prefix("//") {
            let (from, to) = pattern.split_once('/').unwrap_or((pattern, ""));
            Some(value.replace(from, to))
        } else if let Some(pattern) = rest.strip_prefix('/') {
            let (from, to) = pattern.split_once('/').unwrap_or((pattern, ""));
            Some(value.replacen(from, to, 1))
        } else if let Some(cut) = rest.strip_prefix(':') {
            let mut numbers = cut.split(':').map(|number| number.trim().parse::<usize>());
            match (numbers.next(), numbers.next()) {
                (Some(Ok(from)), None) => Some(value.chars().skip(from).collect()),
                (Some(Ok(from)), Some(Ok(length))) => Some(value.chars().skip(from).take(length).collect()),
                _ => None,
            }
        } else {
            None
        };
        match text {
            Some(text) => Word {
                text,
                changed: true,
                constant: true,
            },
            None => Word {
                text: raw.to_owned(),
                ..Word::default()
            },
        }
    }

    fn substitution(&mut self, node: Node<'_>, depth: usize) -> Word {
        let mut commands = Vec::new();
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        for child in children {
            match child.kind() {
                "pipeline" => commands.extend(self.commands(child)),
                "command" => {
                    let words = self.words(child, depth + 1);
                    commands.push(words);
                }
                _ => {}
            }
        }
        if let Some(text) = work_out(&commands) {
            return Word {
                text: text.trim_end_matches('\n').to_owned(),
                changed: true,
                constant: true,
            };
        }
        let changed = commands.iter().flatten().any(|word| word.changed);
        let text = if changed {
            let lines: Vec<String> = commands.iter().map(|words| joined(words)).collect();
            format!("$({})", lines.join(" | "))
        } else {
            source(self.script, node).to_owned()
        };
        Word {
            text,
            changed,
            constant: false,
        }
    }
}

fn joined(words: &[Word]) -> String {
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    texts.join(" ")
}

fn base_name(command: &str) -> &str {
    command.rsplit('/').next().unwrap_or(command)
}

/// Whether a command runs what it is given on its input.
fn runs_its_input(words: &[Word]) -> bool {
    let mut names = words.iter().map(|word| base_name(&word.text));
    let first = names.next();
    let name = match first {
        Some("sudo" | "env" | "nohup" | "exec" | "command") => names.find(|name| !name.starts_with('-')),
        other => other,
    };
    name.is_some_and(|name| SHELLS.contains(&name) || INTERPRETERS.contains(&name))
}

/// What a pipeline of constants prints: `echo` and `printf`, then the decoders of every system.
fn work_out(commands: &[Vec<Word>]) -> Option<String> {
    let (first, filters) = commands.split_first()?;
    let (name, arguments) = first.split_first()?;
    if !arguments.iter().all(|word| word.constant) {
        return None;
    }
    let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
    let mut text = match base_name(&name.text) {
        "echo" => {
            let plain: Vec<&str> = texts
                .iter()
                .copied()
                .skip_while(|text| matches!(*text, "-n" | "-e" | "-ne" | "-en"))
                .collect();
            let line = plain.join(" ");
            if plain.len() == texts.len() {
                line
            } else {
                unescape(&line)
            }
        }
        "printf" => {
            let (format, values) = texts.split_first()?;
            let values = values.concat();
            let format = unescape(format);
            if format.contains("%s") {
                format.replace("%s", &values)
            } else {
                format.replace("%b", &unescape(&values))
            }
        }
        _ => return None,
    };
    for filter in filters {
        let (name, arguments) = filter.split_first()?;
        let has = |options: &[&str]| arguments.iter().any(|word| options.contains(&word.text.as_str()));
        text = match base_name(&name.text) {
            "base64" if has(&["-d", "-D", "--decode", "-di"]) => decode_base64(&text)?,
            "openssl" if has(&["base64", "-base64", "enc"]) && has(&["-d"]) => decode_base64(&text)?,
            "xxd" if has(&["-r", "-rp"]) => decode_hex(&text)?,
            "rev" => text.lines().map(reversed).collect::<Vec<_>>().join("\n"),
            "cat" | "tee" => text,
            "tr" => translate(&text, arguments)?,
            _ => return None,
        };
    }
    Some(text)
}

fn translate(text: &str, arguments: &[Word]) -> Option<String> {
    let [from, to] = arguments else {
        let set = arguments
            .get(1)
            .filter(|_| arguments.first().is_some_and(|option| option.text == "-d"))?;
        let gone = expand(&set.text);
        return Some(text.chars().filter(|character| !gone.contains(character)).collect());
    };
    if from.text == "-d" {
        let gone = expand(&to.text);
        return Some(text.chars().filter(|character| !gone.contains(character)).collect());
    }
    let (from, to) = (expand(&from.text), expand(&to.text));
    let last = to.last().copied()?;
    Some(
        text.chars()
            .map(|character| match from.iter().position(|known| *known == character) {
                Some(index) => to.get(index).copied().unwrap_or(last),
                None => character,
            })
            .collect(),
    )
}

/// `A-Za-z` spelt out.
fn expand(set: &str) -> Vec<char> {
    let characters: Vec<char> = set.chars().take(256).collect();
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(&first) = characters.get(at) {
        match (characters.get(at + 1), characters.get(at + 2)) {
            (Some('-'), Some(&last)) if first <= last && last.is_ascii() => {
                out.extend(first..=last);
                at += 3;
            }
            _ => {
                out.push(first);
                at += 1;
            }
        }
    }
    out
}

/// A word without its backslashes.
fn unescape_word(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut characters = raw.chars();
    while let Some(character) = characters.next() {
        if character == '\\' {
            match characters.next() {
                Some('\n') | None => {}
                Some(other) => out.push(other),
            }
        } else {
            out.push(character);
        }
    }
    out
}
