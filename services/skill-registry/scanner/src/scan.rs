//! One scan of one tree: every byte that would be installed, as it stands and as it is meant.

mod findings;
mod names;

use std::ops::Range;

use crate::capability;
use crate::characters;
use crate::content::{Binary, Kind, Language, Text, appended, classify, decode, extension};
use crate::decode::{DEPTH, layers};
use crate::header;
use crate::matching::{Scene, matches};
use crate::report::{Capabilities, Coverage, Finding, Gap, Report, Severity, Verdict};
use crate::rules::{self, RuleError, RuleSet};
use crate::split::{Part, Parts, Place};
use crate::structure::{self, Limits};
use crate::syntax;
use crate::tree::Tree;
use crate::view::View;

/// Most bytes of revealed text that one file may lead to.
const REVEALED: usize = 4 << 20;

/// What may differ from scan to scan.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The folder's name, if the structure check is to hold the header against it.
    pub name: Option<String>,
    /// How much a skill may hold.
    pub limits: Limits,
}

pub(crate) fn scan(rules: &RuleSet, tree: &Tree, options: &Options) -> Report {
    let mut scan = Scan {
        rules,
        findings: Vec::new(),
        coverage: Coverage {
            files: tree.len(),
            bytes: tree.bytes(),
            ..Coverage::default()
        },
        capabilities: Capabilities::default(),
    };
    for (path, file) in tree.iter() {
        scan.file(path, &file.bytes);
    }
    for problem in structure::check(tree, options.name.as_deref(), &options.limits) {
        // Binaries have findings of their own that say more.
        let told = scan
            .findings
            .iter()
            .any(|finding| finding.path == problem.path && finding.category == "binary");
        if !told {
            scan.check("structure", &problem.path, &[], 0..0, Some(problem.message));
        }
    }
    scan.names();
    scan.report(tree)
}

/// Without rules nothing is known of a skill, and it is kept out.
pub(crate) fn without_rules(tree: &Tree, error: &RuleError) -> Report {
    const RULE: &str = "rules-unusable";
    let finding = Finding {
        rule: RULE.to_owned(),
        title: format!("the scanner cannot judge anything: {error}"),
        severity: Severity::Critical,
        category: "scanner".to_owned(),
        ast: Vec::new(),
        ave: Vec::new(),
        path: String::new(),
        start: 0,
        end: 0,
        line: 0,
        excerpt: String::new(),
        revealed: None,
        fix: "Report it: this program was built with rules that do not work.".to_owned(),
        fingerprint: Finding::fingerprint_of(RULE, "", &tree.digest()),
    };
    let gaps = tree.iter().map(|(path, _)| Gap {
        path: path.to_owned(),
        reason: "the scanner's rules cannot be used".to_owned(),
    });
    let coverage = Coverage {
        files: tree.len(),
        bytes: tree.bytes(),
        gaps: gaps.collect(),
        ..Coverage::default()
    };
    Report {
        scanner: crate::VERSION.to_owned(),
        rule_set: rules::digest().to_owned(),
        digest: tree.digest(),
        verdict: Verdict::of([&finding], &coverage),
        findings: vec![finding],
        suppressed: Vec::new(),
        coverage,
        capabilities: Capabilities::default(),
    }
}

struct Scan<'r> {
    rules: &'r RuleSet,
    findings: Vec<Finding>,
    coverage: Coverage,
    capabilities: Capabilities,
}

/// A text that is being judged, and how it leads back to its file.
struct Unit<'u> {
    path: &'u str,
    file: &'u [u8],
    text: &'u Text<'u>,
    /// Bytes of revealed text that are still permitted.
    budget: usize,
}

/// A text that came out of another.
struct Revealed {
    text: String,
    /// Where it stands in the file's text.
    range: Range<usize>,
    /// Decoded or run, and not only joined.
    hidden: bool,
    depth: usize,
}

impl Scan<'_> {
    fn file(&mut self, path: &str, bytes: &[u8]) {
        let (kind, text) = classify(path, bytes);
        match (kind, text) {
            (Kind::Binary(binary), _) => self.binary(path, bytes, binary),
            (_, None) => {}
            (kind, Some(text)) => {
                if text.odd {
                    self.check("odd-encoding", path, bytes, 0..0, None);
                }
                if matches!(
                    extension(path).as_str(),
                    "png" | "jpg" | "jpeg" | "gif" | "webp" | "ico" | "ttf" | "woff" | "pdf"
                ) {
                    self.check("not-an-image", path, bytes, 0..bytes.len().min(80), None);
                }
                self.text(path, bytes, kind, &text);
                self.coverage.read_files += 1;
                self.coverage.read_bytes += bytes.len() as u64;
            }
        }
    }

    fn binary(&mut self, path: &str, bytes: &[u8], binary: Binary) {
        let extension = extension(path);
        let harmless_name = matches!(
            extension.as_str(),
            "png"
                | "jpg"
                | "jpeg"
                | "gif"
                | "webp"
                | "ico"
                | "ttf"
                | "woff"
                | "pdf"
                | "md"
                | "txt"
                | "json"
                | "csv"
                | "yaml"
                | "yml"
        );
        let mut opaque = |reason: &str| {
            self.coverage.opaque.push(Gap {
                path: path.to_owned(),
                reason: reason.to_owned(),
            });
        };
        match binary {
            Binary::Program if harmless_name => self.check("disguised-program", path, bytes, 0..0, None),
            Binary::Program => self.check("program", path, bytes, 0..0, None),
            Binary::Bytecode => self.check("bytecode", path, bytes, 0..0, None),
            Binary::Archive => {
                let locked = bytes.starts_with(b"PK\x03\x04") && bytes.get(6).is_some_and(|flags| flags & 1 == 1);
                let check = if locked { "locked-archive" } else { "nested-archive" };
                self.check(check, path, bytes, 0..0, None);
            }
            Binary::Document if contains(bytes, b"vbaProject.bin") => {
                self.check("macro-document", path, bytes, 0..0, None);
            }
            Binary::Document => opaque("an office document, which holds no instructions that are read by themselves"),
            Binary::Image => {
                opaque("an image");
                if let Some(length) = appended(bytes) {
                    self.check("appended-bytes", path, bytes, bytes.len() - length..bytes.len(), None);
                    // What hangs on may be a script.
                    if let Some(text) = bytes.get(bytes.len() - length..).and_then(decode) {
                        self.text(path, bytes, Kind::Script(Language::Shell), &text);
                    }
                }
            }
            Binary::Media => opaque("a font, sound, page or data file of a known format"),
            Binary::Unknown => {
                self.check("unknown-bytes", path, bytes, 0..0, None);
                self.gap(path, "its format is not known");
            }
        }
    }

    fn gap(&mut self, path: &str, reason: &str) {
        let gap = Gap {
            path: path.to_owned(),
            reason: reason.to_owned(),
        };
        if !self.coverage.gaps.contains(&gap) {
            self.coverage.gaps.push(gap);
        }
    }

    fn text(&mut self, path: &str, file: &[u8], kind: Kind, text: &Text<'_>) {
        let parts = Parts::of(&text.text, kind);
        let mut unit = Unit {
            path,
            file,
            text,
            budget: REVEALED,
        };
        if path.eq_ignore_ascii_case("SKILL.md")
            && let Ok(header) = header::parse(&text.text)
        {
            self.capabilities.env.extend(header.env);
            self.capabilities.bins.extend(header.bins);
            self.capabilities.tools.extend(header.tools);
            self.look_alike_name(&unit, &header.name);
        }
        capability::collect(&text.text, &parts, &mut self.capabilities);
        let script = matches!(kind, Kind::Script(_));
        let mut queue = Vec::new();
        for deceit in characters::deceits(&text.text, &parts, script) {
            let range = deceit.range.clone();
            self.check_in(deceit.check, &unit, range.clone(), deceit.spells.clone());
            if let Some(text) = deceit
                .spells
                .filter(|_| matches!(deceit.check, "tag-characters" | "selector-run"))
            {
                queue.push(Revealed {
                    text,
                    range,
                    hidden: true,
                    depth: 1,
                });
            }
        }
        let view = View::of(&text.text);
        for found in matches(self.rules, &text.text, &view, Scene::File(&parts)) {
            self.rule(&unit, found.rule, found.severity, found.range, None);
        }
        for part in &parts.parts {
            self.structure(&mut unit, part, &mut queue);
        }
        self.unwrap(&mut unit, &text.text, 0, None, &mut queue);
        while let Some(revealed) = queue.pop() {
            self.revealed(&mut unit, &revealed, &mut queue);
        }
    }

    /// What the structure of a script or code block means.
    fn structure(&mut self, unit: &mut Unit<'_>, part: &Part, queue: &mut Vec<Revealed>) {
        if !matches!(part.place, Place::Script | Place::Code) {
            return;
        }
        let source = unit.text.text.get(part.range.clone()).unwrap_or_default();
        let language = match part.language {
            Some(language) => language,
            // Code without a label is shell, as far as a reader would run it.
            None if part.block || source.contains('|') => Language::Shell,
            None => return,
        };
        let (offset, code) = if part.place == Place::Code {
            unfenced(source)
        } else {
            (0, source)
        };
        let meaning = syntax::read(code, language);
        self.coverage.parsed += usize::from(!meaning.plain.is_empty() || !meaning.names.is_empty());
        if meaning.partial {
            self.gap(
                unit.path,
                "a script is too long or too tangled for its structure to be read",
            );
        }
        let base = part.range.start + offset;
        for built in meaning.names {
            let check = if is_power(&built.name) {
                "built-power"
            } else {
                "built-name"
            };
            self.check_in(
                check,
                unit,
                base + built.range.start..base + built.range.end,
                Some(built.name),
            );
        }
        for plain in meaning.plain {
            queue.push(Revealed {
                text: plain.text,
                range: base + plain.range.start..base + plain.range.end,
                hidden: plain.runs,
                depth: 1,
            });
        }
    }

    /// Decodes what is wrapped in `text`, which stands at `within` of the file's text or is that text.
    fn unwrap(
        &mut self,
        unit: &mut Unit<'_>,
        text: &str,
        depth: usize,
        within: Option<&Range<usize>>,
        queue: &mut Vec<Revealed>,
    ) {
        for layer in layers(text) {
            let range = within.cloned().unwrap_or_else(|| layer.range.clone());
            if layer.is_program() {
                self.check_in("hidden-program", unit, range, Some(layer.how.to_owned()));
                continue;
            }
            let Some(decoded) = decode(&layer.bytes) else { continue };
            if decoded.text.len() > unit.budget || depth >= DEPTH {
                self.gap(unit.path, "it is wrapped in more layers than are unwrapped");
                continue;
            }
            unit.budget -= decoded.text.len();
            queue.push(Revealed {
                text: decoded.text.into_owned(),
                range,
                hidden: true,
                depth: depth + 1,
            });
        }
    }

    fn revealed(&mut self, unit: &mut Unit<'_>, revealed: &Revealed, queue: &mut Vec<Revealed>) {
        let view = View::of(&revealed.text);
        for found in matches(self.rules, &revealed.text, &view, Scene::Revealed) {
            let severity = raised(found.severity, revealed.hidden);
            let shown = revealed.text.get(found.range.clone()).unwrap_or(&revealed.text);
            self.rule(
                unit,
                found.rule,
                severity,
                revealed.range.clone(),
                Some(shown.to_owned()),
            );
        }
        self.unwrap(unit, &revealed.text, revealed.depth, Some(&revealed.range), queue);
        if !revealed.hidden || revealed.depth >= DEPTH {
            return;
        }
        for language in [Language::Shell, Language::Python, Language::JavaScript] {
            let meaning = syntax::read(&revealed.text, language);
            for built in meaning.names {
                self.check_in("built-power", unit, revealed.range.clone(), Some(built.name));
            }
            for plain in meaning.plain {
                if plain.text.len() <= unit.budget {
                    unit.budget -= plain.text.len();
                    queue.push(Revealed {
                        text: plain.text,
                        range: revealed.range.clone(),
                        hidden: true,
                        depth: revealed.depth + 1,
                    });
                }
            }
        }
    }

    fn report(mut self, tree: &Tree) -> Report {
        self.findings.sort_by(|a, b| {
            let key = |finding: &Finding| {
                (
                    std::cmp::Reverse(finding.severity),
                    finding.path.clone(),
                    finding.start,
                    finding.rule.clone(),
                )
            };
            key(a).cmp(&key(b))
        });
        self.coverage.gaps.sort();
        Report {
            scanner: crate::VERSION.to_owned(),
            rule_set: rules::digest().to_owned(),
            digest: tree.digest(),
            verdict: Verdict::of(&self.findings, &self.coverage),
            findings: self.findings,
            suppressed: Vec::new(),
            coverage: self.coverage,
            capabilities: self.capabilities,
        }
    }
}

/// What is hidden is worse than what is said: joined words by a little, decoded or run text by all.
fn raised(severity: Severity, hidden: bool) -> Severity {
    match severity {
        Severity::Info | Severity::Low => severity,
        Severity::Medium if !hidden => Severity::High,
        Severity::Medium | Severity::High | Severity::Critical => Severity::Critical,
    }
}

fn is_power(name: &str) -> bool {
    const POWERS: [&str; 14] = [
        "exec",
        "eval",
        "compile",
        "system",
        "popen",
        "subprocess",
        "child_process",
        "ctypes",
        "Function",
        "spawn",
        "execSync",
        "socket",
        "pty",
        "vm",
    ];
    POWERS.contains(&name.trim_start_matches("node:"))
}

/// A code block without its fences, and where that starts.
fn unfenced(source: &str) -> (usize, &str) {
    let trimmed = source.trim_start();
    let lead = source.len() - trimmed.len();
    if !trimmed.starts_with("```") && !trimmed.starts_with("~~~") {
        let ticks = trimmed.len() - trimmed.trim_start_matches('`').len();
        return (lead + ticks, trimmed.trim_matches('`'));
    }
    let Some(first) = trimmed.find('\n') else {
        return (lead, "");
    };
    let body = trimmed.get(first + 1..).unwrap_or_default();
    let end = body.trim_end().rfind('\n').map_or(0, |at| at + 1);
    let closed = body
        .get(end..)
        .is_some_and(|last| last.trim_start().starts_with("```") || last.trim_start().starts_with("~~~"));
    (
        lead + first + 1,
        if closed {
            body.get(..end).unwrap_or_default()
        } else {
            body
        },
    )
}

fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle)
}
