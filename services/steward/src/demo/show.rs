//! What the demo prints: each step, what was stored, what the next prompt says, what recall finds.

use anstyle::{AnsiColor, Style};
use anyhow::bail;
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

impl Default for Show {
    fn default() -> Self {
        Self(Output::new(false))
    }
}

impl Show {
    pub(super) fn begin(&mut self, arguments: &Arguments, code: &str, ready: &Ready, model: &str) {
        self.0.line(&format!(
            "Steward demo, seed {}: all services at {}, a fresh folder, real stores.",
            arguments.seed, ready.endpoint
        ));
        self.0.line(&format!(
            "{SIDE}The model is SIMULATED: a pure function of the request bytes it gets at {model}.{SIDE:#}"
        ));
        self.0.line(&format!(
            "{SIDE}The lesson of this seed, known to the release desk only: {code}{SIDE:#}"
        ));
    }

    pub(super) fn heading(&mut self, text: &str) {
        self.0.line(&format!("\n{HEADING}{text}{HEADING:#}"));
    }

    pub(super) fn said(&mut self, who: &str, text: &str) {
        self.0.line(&format!("  {who:>7}: {}", printable(text)));
    }

    /// Stops the demo when a step did not go as it must.
    pub(super) fn expect(&mut self, otherwise: &str, holds: bool) -> anyhow::Result<()> {
        if !holds {
            bail!("the demo went wrong: {otherwise}");
        }
        Ok(())
    }

    pub(super) fn prompt_lines(&mut self, what: &str, prompt: &str, code: &str) {
        let relevant: Vec<_> = prompt
            .lines()
            .filter(|line| line.contains(code) || line.contains(super::simulated::SKILL))
            .collect();
        self.0.line(&format!(
            "  {SIDE}{what}: {}{SIDE:#}",
            if relevant.is_empty() { "nothing" } else { "" }
        ));
        for line in relevant {
            self.0.line(&format!("    | {}", printable(line)));
        }
    }

    pub(super) fn review(&mut self, review: &learning::Review) {
        let state = word(review.state().as_str_name(), "REVIEW_STATE_");
        self.0.line(&format!(
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
            self.0.line(&format!(
                "    {} {} {result} {SIDE}on the evidence of {spans}, through the gates, origin review{SIDE:#}",
                write.tool, write.action
            ));
        }
    }

    pub(super) fn stored(&mut self, notes: &[memory::Entry], skills: &[(skill::Skill, String)]) {
        self.0.line(&format!(
            "  {SIDE}stored memory: {}{SIDE:#}",
            if notes.is_empty() { "nothing" } else { "" }
        ));
        for entry in notes {
            let origin = entry
                .provenance
                .as_ref()
                .map(|provenance| provenance.origin().as_str_name())
                .unwrap_or_default();
            self.0.line(&format!(
                "    | {} {SIDE}[{}]{SIDE:#}",
                printable(&entry.content),
                word(origin, "ORIGIN_")
            ));
        }
        self.0.line(&format!(
            "  {SIDE}stored skills: {}{SIDE:#}",
            if skills.is_empty() { "nothing" } else { "" }
        ));
        for (item, text) in skills {
            let made_by = word(item.provenance().as_str_name(), "SKILL_PROVENANCE_");
            self.0.line(&format!(
                "    | {} {SIDE}[made by {made_by}, revision {}]{SIDE:#}",
                short(&item.name),
                first_line(&item.revision, 13)
            ));
            for line in text.lines().filter(|line| line.starts_with("1.")) {
                self.0.line(&format!("    |   {}", printable(line)));
            }
        }
    }

    pub(super) fn recall(&mut self, found: &recall::SearchResponse, code: &str) {
        self.0.line(&format!(
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
                self.0
                    .line(&format!("    | #{} {}", hit.seq, first_line(&printable(&snippet), 100)));
            }
        }
    }

    pub(super) fn prefix(&mut self, session: &agent::Session) {
        self.0.line(&format!(
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
        self.0.line(&line);
    }

    pub(super) fn problem(&mut self, error: &anyhow::Error) {
        self.0.failure(error);
    }
}
