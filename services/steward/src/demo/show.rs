//! What the demo prints: each step, what was stored, what the next prompt says, what recall finds.

use anstyle::{AnsiColor, Style};
use steward_cli::Output;
use steward_cli::output::{SIDE, first_line, printable, short, word};
use steward_proto::agent::v1 as agent;
use steward_proto::learning::v1 as learning;
use steward_proto::memory::v1 as memory;
use steward_proto::recall::v1 as recall;
use steward_proto::skill::v1 as skill;

use super::Arguments;
use super::person::Outcome;
use crate::installation::Ready;

const HEADING: Style = AnsiColor::Cyan.on_default().bold();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();

/// Prints the demo.
#[derive(Debug)]
pub(super) struct Show(Output);

impl Show {
    /// For people, or for programs: these get one document at the end, and the story on standard error.
    pub(super) const fn new(json: bool) -> Self {
        Self(Output::new(json))
    }

    fn line(&mut self, text: &str) {
        if self.0.is_json() {
            self.0.aside(text);
        } else {
            self.0.line(text);
        }
    }

    /// The document for programs.
    pub(super) fn document(&mut self, seed: u64, outcome: Outcome, expected: bool) {
        if self.0.is_json() {
            let word = match outcome {
                Outcome::Released => "released",
                Outcome::Refused => "refused",
            };
            let document = serde_json::json!({"seed": seed, "session2": word, "asExpected": expected});
            self.0.line(&document.to_string());
        }
    }

    pub(super) fn begin(&mut self, arguments: &Arguments, code: &str, ready: &Ready, model: &str) {
        self.line(&format!(
            "Steward demo, seed {}: all services at {}, a fresh folder, real stores.",
            arguments.seed, ready.endpoint
        ));
        self.line(&format!(
            "{SIDE}The model is SIMULATED: a pure function of the request bytes it gets at {model}.{SIDE:#}"
        ));
        self.line(&format!(
            "{SIDE}The lesson of this seed, known to the release desk only: {code}{SIDE:#}"
        ));
    }

    pub(super) fn heading(&mut self, text: &str) {
        self.line(&format!("\n{HEADING}{text}{HEADING:#}"));
    }

    pub(super) fn said(&mut self, who: &str, text: &str) {
        self.line(&format!("  {who:>7}: {}", printable(text)));
    }

    pub(super) fn prompt_lines(&mut self, what: &str, prompt: &str, code: &str) {
        let relevant: Vec<_> = prompt
            .lines()
            .filter(|line| line.contains(code) || line.contains(super::simulated::SKILL))
            .collect();
        self.line(&format!(
            "  {SIDE}{what}: {}{SIDE:#}",
            if relevant.is_empty() { "nothing" } else { "" }
        ));
        for line in relevant {
            self.line(&format!("    | {}", printable(line)));
        }
    }

    pub(super) fn review(&mut self, review: &learning::Review) {
        let state = word(review.state().as_str_name(), "REVIEW_STATE_");
        self.line(&format!(
            "  {state}: {} {SIDE}(history by {}, {}){SIDE:#}",
            review.summary, review.mode, review.rubric
        ));
        for write in &review.writes {
            let result = word(write.result().as_str_name(), "RESULT_");
            let spans = write
                .evidence
                .as_ref()
                .map(|evidence| evidence.spans.join(" "))
                .unwrap_or_default();
            self.line(&format!(
                "    {} {} {result} {SIDE}on the evidence of {spans}, through the gates, origin review{SIDE:#}",
                write.tool, write.action
            ));
        }
    }

    pub(super) fn stored(&mut self, notes: &[memory::Entry], skills: &[(skill::Skill, String)]) {
        self.line(&format!(
            "  {SIDE}stored memory: {}{SIDE:#}",
            if notes.is_empty() { "nothing" } else { "" }
        ));
        for entry in notes {
            let origin = entry
                .provenance
                .as_ref()
                .map(|provenance| provenance.origin().as_str_name())
                .unwrap_or_default();
            self.line(&format!(
                "    | {} {SIDE}[{}]{SIDE:#}",
                printable(&entry.content),
                word(origin, "ORIGIN_")
            ));
        }
        self.line(&format!(
            "  {SIDE}stored skills: {}{SIDE:#}",
            if skills.is_empty() { "nothing" } else { "" }
        ));
        for (item, text) in skills {
            let made_by = word(item.provenance().as_str_name(), "SKILL_PROVENANCE_");
            self.line(&format!(
                "    | {} {SIDE}[made by {made_by}, revision {}]{SIDE:#}",
                short(&item.name),
                first_line(&item.revision, 13)
            ));
            for line in text.lines().filter(|line| line.starts_with("1.")) {
                self.line(&format!("    |   {}", printable(line)));
            }
        }
    }

    pub(super) fn recall(&mut self, found: &recall::SearchResponse, code: &str) {
        self.line(&format!(
            "  {SIDE}recall of \"{code}\": {} conversation(s){SIDE:#}",
            found.conversations.len()
        ));
        for conversation in &found.conversations {
            if let Some(hit) = &conversation.hit {
                let snippet = hit
                    .snippet
                    .replace('\u{e000}', "»")
                    .replace('\u{e001}', "«")
                    .replace('\n', " ");
                self.line(&format!("    | #{} {}", hit.seq, first_line(&printable(&snippet), 100)));
            }
        }
    }

    pub(super) fn prefix(&mut self, session: &agent::Session) {
        self.line(&format!(
            "  {SIDE}prefix report: every request of the session extended the one before; unplanned breaks: {}{SIDE:#}",
            session.unplanned_prefix_breaks
        ));
    }

    pub(super) fn outcome(&mut self, outcome: Outcome, forgotten: bool) {
        let line = match (outcome, forgotten) {
            (Outcome::Released, false) => {
                format!("\n{GOOD}session 2 succeeded{GOOD:#}: it used what session 1 had learned.")
            }
            (Outcome::Refused, true) => {
                format!("\n{BAD}session 2 failed{BAD:#}, as it must: what was learned had been erased.")
            }
            (Outcome::Refused, false) => {
                format!("\n{BAD}session 2 failed{BAD:#}: the lesson was not used. This is a fault.")
            }
            (Outcome::Released, true) => {
                format!("\n{BAD}session 2 succeeded{BAD:#} although the lesson was erased. This is a fault.")
            }
        };
        self.line(&line);
    }

    pub(super) fn problem(&mut self, error: &anyhow::Error) {
        self.0.failure(error);
    }
}
