//! Python and JavaScript: constant expressions folded, variables followed to what they hold, calls told in one line.

use std::collections::HashMap;

use tree_sitter::{Node, Tree};

use super::{
    BuiltName, MAX_DEPTH, MAX_NODES, MAX_TEXT, Meaning, Plain, decode_base64, decode_hex, reversed, rot13, source,
    unescape,
};
use crate::content::Language;

/// Calls that run a text, reach for a name or start a program.
const RUNS: [&str; 14] = [
    "exec",
    "eval",
    "compile",
    "os.system",
    "os.popen",
    "system",
    "popen",
    "Function",
    "execSync",
    "child_process.exec",
    "child_process.execSync",
    "setTimeout",
    "setInterval",
    "runInThisContext",
];
const REACHES: [&str; 7] = [
    "__import__",
    "import_module",
    "importlib.import_module",
    "getattr",
    "require",
    "globals",
    "import",
];

/// What a variable holds.
#[derive(Debug, Clone)]
enum Held {
    Text(String),
    /// The source of an expression that is no constant, on one line.
    Source(String),
}

struct Reader<'s> {
    script: &'s str,
    language: Language,
    variables: HashMap<String, Held>,
    meaning: Meaning,
    nodes: usize,
}

pub(super) fn read(script: &str, tree: &Tree, language: Language) -> Meaning {
    let mut reader = Reader {
        script,
        language,
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
            "assignment" | "assignment_expression" => {
                self.assign(node.child_by_field_name("left"), node.child_by_field_name("right"));
            }
            "variable_declarator" => self.assign(node.child_by_field_name("name"), node.child_by_field_name("value")),
            "call" | "call_expression" => self.call(node, "function"),
            "new_expression" => self.call(node, "constructor"),
            "subscript" | "subscript_expression" => self.subscript(node),
            _ => {}
        }
    }

    fn assign(&mut self, name: Option<Node<'_>>, value: Option<Node<'_>>) {
        let (Some(name), Some(value)) = (name, value) else {
            return;
        };
        if name.kind() != "identifier" || value.byte_range().len() > MAX_TEXT {
            return;
        }
        let held = match self.fold(value, 0) {
            Some((text, _)) => Held::Text(text),
            None => Held::Source(self.told(value, 0)),
        };
        self.variables.insert(source(self.script, name).to_owned(), held);
    }

    fn call(&mut self, node: Node<'_>, field: &str) {
        let Some(function) = node.child_by_field_name(field) else {
            return;
        };
        let Some(arguments) = node.child_by_field_name("arguments") else {
            return;
        };
        let callee = self.callee(function);
        let mut cursor = arguments.walk();
        let arguments: Vec<Node<'_>> = arguments.named_children(&mut cursor).take(16).collect();
        let last = callee.rsplit('.').next().unwrap_or(&callee);
        let runs = RUNS.contains(&callee.as_str()) || RUNS.contains(&last) || callee.contains("subprocess");
        let reaches = REACHES.contains(&callee.as_str()) || REACHES.contains(&last);
        if !runs && !reaches {
            return;
        }
        for argument in &arguments {
            match self.fold(*argument, 0) {
                Some((text, true)) if runs => {
                    self.tell(format!("{callee}({text})"), node, "a folded call");
                    self.run(text, node);
                }
                Some((text, true)) => {
                    self.meaning.names.push(BuiltName {
                        name: text.clone(),
                        range: node.byte_range(),
                    });
                    self.tell(format!("{callee}({text})"), node, "a folded call");
                }
                Some((_, false)) => {}
                None => {
                    let told = self.told(*argument, 0);
                    if runs && told != one_line(source(self.script, *argument)) {
                        self.tell(format!("{callee}({told})"), node, "a call with its variables filled in");
                    }
                }
            }
        }
    }

    /// `scope["ev" + "al"]`: a name that is put together.
    fn subscript(&mut self, node: Node<'_>) {
        let index = node
            .child_by_field_name("index")
            .or_else(|| node.child_by_field_name("subscript"));
        let Some(index) = index else { return };
        if index.kind() == "slice" {
            return;
        }
        if let Some((name, true)) = self.fold(index, 0)
            && is_name(&name)
            && node
                .parent()
                .is_some_and(|parent| matches!(parent.kind(), "call" | "call_expression" | "new_expression"))
        {
            let object = node
                .child_by_field_name("object")
                .or_else(|| node.child_by_field_name("value"));
            let object = object.map_or("", |object| source(self.script, object));
            self.tell(format!("{}.{name}", one_line(object)), node, "a folded name");
            self.meaning.names.push(BuiltName {
                name,
                range: node.byte_range(),
            });
        }
    }

    fn tell(&mut self, text: String, node: Node<'_>, how: &'static str) {
        self.push(text, node, how, false);
    }

    fn run(&mut self, text: String, node: Node<'_>) {
        self.push(text, node, "text that the script puts together and runs", true);
    }

    fn push(&mut self, text: String, node: Node<'_>, how: &'static str, runs: bool) {
        if text.len() > MAX_TEXT {
            self.meaning.partial = true;
            return;
        }
        self.meaning.plain.push(Plain {
            text,
            range: node.byte_range(),
            how,
            runs,
        });
    }

    /// The dotted name of what is called, with a folded subscript at its end.
    fn callee(&mut self, node: Node<'_>) -> String {
        if matches!(node.kind(), "subscript" | "subscript_expression") {
            let index = node
                .child_by_field_name("index")
                .or_else(|| node.child_by_field_name("subscript"));
            if let Some((name, _)) = index.and_then(|index| self.fold(index, 0)) {
                return name;
            }
        }
        if node.kind() == "identifier"
            && let Some(Held::Source(held)) = self.variables.get(source(self.script, node))
            && held.len() < 64
        {
            return held.clone();
        }
        one_line(source(self.script, node))
    }

    /// An expression on one line, its variables replaced by what they hold.
    fn told(&mut self, node: Node<'_>, depth: usize) -> String {
        self.nodes += 1;
        let raw = source(self.script, node);
        if depth > 6 || self.nodes > MAX_NODES || raw.len() > 4096 {
            return one_line(raw.get(..raw.floor_char_boundary(4096)).unwrap_or_default());
        }
        if let Some((text, _)) = self.fold(node, 0) {
            return text;
        }
        if node.kind() == "identifier" {
            return match self.variables.get(raw) {
                Some(Held::Source(held)) => held.clone(),
                Some(Held::Text(text)) => text.clone(),
                None => raw.to_owned(),
            };
        }
        let mut out = String::new();
        let mut end = node.start_byte();
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        if children.is_empty() {
            return one_line(raw);
        }
        for child in children {
            out.push_str(&one_line(self.script.get(end..child.start_byte()).unwrap_or_default()));
            out.push_str(&self.told(child, depth + 1));
            end = child.end_byte();
            if out.len() > 8192 {
                break;
            }
        }
        out
    }

    /// The text that an expression is, and whether it was put together; nothing if only a run could tell.
    fn fold(&mut self, node: Node<'_>, depth: usize) -> Option<(String, bool)> {
        self.nodes += 1;
        if depth > MAX_DEPTH || self.nodes > MAX_NODES {
            self.meaning.partial = true;
            return None;
        }
        match node.kind() {
            "string" | "template_string" => self.literal(node),
            "concatenated_string" => {
                let mut cursor = node.walk();
                let parts: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
                self.fold_all(&parts, depth)
            }
            "parenthesized_expression" | "await" | "await_expression" => self.fold(node.named_child(0)?, depth + 1),
            "identifier" => match self.variables.get(source(self.script, node))? {
                Held::Text(text) => Some((text.clone(), true)),
                Held::Source(_) => None,
            },
            "binary_operator" | "binary_expression" => self.sum(node, depth),
            "subscript" => {
                let slice = source(self.script, node.child_by_field_name("subscript")?);
                let (text, _) = self.fold(node.child_by_field_name("value")?, depth + 1)?;
                (slice.replace(' ', "") == "::-1").then(|| (reversed(&text), true))
            }
            "call" | "call_expression" => self.fold_call(node, depth),
            _ => None,
        }
    }

    fn literal(&self, node: Node<'_>) -> Option<(String, bool)> {
        let mut cursor = node.walk();
        let mut text = String::new();
        let mut escaped = false;
        for child in node.named_children(&mut cursor) {
            match child.kind() {
                "string_content" | "string_fragment" => {
                    let raw = source(self.script, child);
                    escaped |= raw.contains("\\x") || raw.contains("\\u");
                    text.push_str(&unescape(raw));
                }
                "escape_sequence" => {
                    let raw = source(self.script, child);
                    escaped |= raw.starts_with("\\x") || raw.starts_with("\\u");
                    text.push_str(&unescape(raw));
                }
                "string_start" | "string_end" => {}
                _ => return None,
            }
        }
        (text.len() <= MAX_TEXT).then_some((text, escaped))
    }

    fn fold_all(&mut self, parts: &[Node<'_>], depth: usize) -> Option<(String, bool)> {
        let mut whole = String::new();
        for part in parts {
            whole.push_str(&self.fold(*part, depth + 1)?.0);
            if whole.len() > MAX_TEXT {
                return None;
            }
        }
        Some((whole, parts.len() > 1))
    }

    /// A chain of `+`, however long, without recursion along it.
    fn sum(&mut self, node: Node<'_>, depth: usize) -> Option<(String, bool)> {
        let mut terms = Vec::new();
        let mut at = node;
        while matches!(at.kind(), "binary_operator" | "binary_expression") {
            if source(self.script, at.child_by_field_name("operator")?) != "+" {
                return None;
            }
            terms.push(at.child_by_field_name("right")?);
            at = at.child_by_field_name("left")?;
        }
        terms.push(at);
        terms.reverse();
        self.fold_all(&terms, depth).map(|(text, _)| (text, true))
    }

    fn fold_call(&mut self, node: Node<'_>, depth: usize) -> Option<(String, bool)> {
        let function = node.child_by_field_name("function")?;
        let arguments = node.child_by_field_name("arguments")?;
        let mut cursor = arguments.walk();
        let arguments: Vec<Node<'_>> = arguments.named_children(&mut cursor).collect();
        let first = arguments.first().copied();
        let name = source(self.script, function);
        let method = name.rsplit('.').next().unwrap_or(name);
        let object = function.child_by_field_name("object");
        let text = match method {
            "chr" | "fromCharCode" => arguments
                .iter()
                .map(|code| character(source(self.script, *code)))
                .collect::<Option<String>>()?,
            "b64decode" | "atob" | "urlsafe_b64decode" | "decodebytes" => {
                decode_base64(&self.fold(first?, depth + 1)?.0)?
            }
            "fromhex" | "unhexlify" => decode_hex(&self.fold(first?, depth + 1)?.0)?,
            "from" if name == "Buffer.from" => {
                let text = self.fold(first?, depth + 1)?.0;
                match arguments
                    .get(1)
                    .map(|encoding| source(self.script, *encoding).trim_matches(['\'', '"']))
                {
                    Some("base64" | "base64url") => decode_base64(&text)?,
                    Some("hex") => decode_hex(&text)?,
                    _ => text,
                }
            }
            "decode" if name == "codecs.decode" => rot13(&self.fold(first?, depth + 1)?.0),
            "decode" | "encode" | "strip" | "toString" | "trim" | "bytes" | "str" => {
                self.fold(object.or(first)?, depth + 1)?.0
            }
            "lower" | "toLowerCase" => self.fold(object?, depth + 1)?.0.to_lowercase(),
            "replace" | "replaceAll" => {
                let text = self.fold(object?, depth + 1)?.0;
                let from = self.fold(first?, depth + 1)?.0;
                let to = self.fold(*arguments.get(1)?, depth + 1)?.0;
                text.replace(&from, &to)
            }
            "join" if self.language == Language::Python => {
                let separator = self.fold(object?, depth + 1)?.0;
                self.items(first?, depth)?.join(&separator)
            }
            "join" => {
                let separator = match first {
                    Some(separator) => self.fold(separator, depth + 1)?.0,
                    None => ",".to_owned(),
                };
                self.items(object?, depth)?.join(&separator)
            }
            _ => return None,
        };
        (text.len() <= MAX_TEXT).then_some((text, true))
    }

    /// The texts of a list: written out, reversed, or split from a text.
    fn items(&mut self, node: Node<'_>, depth: usize) -> Option<Vec<String>> {
        if depth > MAX_DEPTH {
            return None;
        }
        match node.kind() {
            "list" | "tuple" | "array" => {
                let mut cursor = node.walk();
                let items: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
                items
                    .into_iter()
                    .map(|item| self.fold(item, depth + 1).map(|(text, _)| text))
                    .collect()
            }
            "call_expression" | "call" => {
                let function = node.child_by_field_name("function")?;
                let name = source(self.script, function);
                let object = function.child_by_field_name("object");
                if name == "reversed" {
                    let argument = node.child_by_field_name("arguments")?.named_child(0)?;
                    return Some(vec![reversed(&self.fold(argument, depth + 1)?.0)]);
                }
                match name.rsplit('.').next() {
                    Some("reverse") => {
                        let mut items = self.items(object?, depth + 1)?;
                        items.reverse();
                        Some(items)
                    }
                    Some("split") => Some(self.fold(object?, depth + 1)?.0.chars().map(String::from).collect()),
                    _ => None,
                }
            }
            "string" => Some(vec![self.fold(node, depth + 1)?.0]),
            _ => None,
        }
    }
}

fn character(code: &str) -> Option<String> {
    let value = match code.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok()?,
        None => code.parse().ok()?,
    };
    char::from_u32(value).map(String::from)
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() < 64
        && text
            .chars()
            .all(|character| character.is_alphanumeric() || matches!(character, '_' | '$'))
}

fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    if out.is_empty() && !text.is_empty() {
        " ".to_owned()
    } else {
        out
    }
}
