//! Turns a place that a rule or check speaks of into a finding with evidence.

use std::ops::Range;

use super::{Scan, Unit};
use crate::content::decode;
use crate::report::{Finding, Severity};
use crate::rules::Words;

/// Most findings that are kept of one file.
const FINDINGS: usize = 200;
const EXCERPT: usize = 240;

impl Scan<'_> {
    pub(super) fn rule(
        &mut self,
        unit: &Unit<'_>,
        rule: usize,
        severity: Severity,
        range: Range<usize>,
        revealed: Option<String>,
    ) {
        if let Some(rule) = self.rules.rules.get(rule) {
            let range = unit.text.origin(range.start)..unit.text.origin(range.end);
            self.add(&rule.words, severity, unit.path, unit.file, range, revealed);
        }
    }

    pub(super) fn check_in(&mut self, check: &str, unit: &Unit<'_>, range: Range<usize>, revealed: Option<String>) {
        let range = unit.text.origin(range.start)..unit.text.origin(range.end);
        self.check(check, unit.path, unit.file, range, revealed);
    }

    pub(super) fn check(
        &mut self,
        check: &str,
        path: &str,
        file: &[u8],
        range: Range<usize>,
        revealed: Option<String>,
    ) {
        if let Some(words) = self.rules.checks.get(check) {
            self.add(words, words.severity, path, file, range, revealed);
        }
    }

    fn add(
        &mut self,
        words: &Words,
        severity: Severity,
        path: &str,
        file: &[u8],
        range: Range<usize>,
        revealed: Option<String>,
    ) {
        let line = if range.is_empty() && range.start == 0 {
            0
        } else {
            1 + memchr::memchr_iter(b'\n', file.get(..range.start).unwrap_or_default()).count()
        };
        let same = |finding: &&mut Finding| finding.rule == words.id && finding.path == path && finding.line == line;
        if let Some(known) = self.findings.iter_mut().find(same) {
            // The worse reading of one place counts.
            if known.severity < severity {
                known.severity = severity;
                known.revealed = revealed.map(|text| shown(&text));
            }
            return;
        }
        if self.findings.iter().filter(|finding| finding.path == path).count() >= FINDINGS {
            return;
        }
        let evidence = decode(file.get(range.clone()).unwrap_or_default())
            .map(|text| text.text.into_owned())
            .unwrap_or_default();
        let bound = match &revealed {
            Some(revealed) => format!("{evidence}\n{revealed}"),
            None if evidence.is_empty() => steward_base::hash::sha256_hex(file),
            None => evidence.clone(),
        };
        self.findings.push(Finding {
            rule: words.id.clone(),
            title: words.title.clone(),
            severity,
            category: words.category.clone(),
            ast: words.ast.clone(),
            ave: words.ave.clone(),
            path: path.to_owned(),
            start: range.start,
            end: range.end,
            line,
            excerpt: shown(&evidence),
            revealed: revealed.map(|text| shown(&text)),
            fix: words.fix.clone(),
            fingerprint: Finding::fingerprint_of(&words.id, path, &bound),
        });
    }
}

/// Evidence for people: one line, cut, with what cannot be seen written out.
fn shown(text: &str) -> String {
    let mut out = String::new();
    for (count, character) in text.trim().chars().enumerate() {
        if count >= EXCERPT {
            out.push('…');
            break;
        }
        match character {
            '\n' | '\r' | '\t' => out.push(' '),
            character if character.is_control() || steward_guard::unicode::is_ignorable(character) => {
                out.extend(character.escape_unicode());
            }
            character => out.push(character),
        }
    }
    out
}
