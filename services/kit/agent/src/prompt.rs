//! The system prompt: three tiers, put together once per session from given values and never touched again (`P-1`,
//! `P-3`, `P-6`).
//!
//! Everything here is pure. Whoever calls has already scanned what comes from outside, fetched the skill index and the
//! memory snapshot, and inserts their bytes as they are. A guidance block appears only when its tool is offered (`P-2`).

mod context_file;
mod guidance;

use std::sync::Arc;

pub use context_file::{CONTEXT_FILE_LIMIT, ContextFile, ContextText, cut_to_limit};
pub use guidance::static_text_hash;

use context_file::one_line;
use guidance::blocks_for;

/// What the prompt is made of. Empty and absent mean the same: the part is left out.
#[derive(Debug, Clone, Default)]
pub struct PromptInputs<'a> {
    /// The team's own identity text, scanned; replaces Steward's (`P-9`). Cut like a context file.
    pub soul: Option<&'a str>,
    /// Names of the offered tools.
    pub tools: &'a [&'a str],
    /// Advice for the model's family, chosen by whoever knows the models.
    pub model_guidance: Option<&'a str>,
    /// Where the answer is read: for example that a terminal shows no tables.
    pub platform_hint: Option<&'a str>,
    /// Facts on where client tools run, as the client reports them (`P-8`); one line each.
    pub environment: &'a [&'a str],
    /// A block of the caller's on its workspace: posture, toolchain, profile (`P-9`).
    pub workspace: Option<&'a str>,
    /// The caller's system message.
    pub caller_system: Option<&'a str>,
    /// Project context files, first match already chosen (`P-7`).
    pub context_files: &'a [ContextFile<'a>],
    /// The skill index, byte for byte as the registry gave it (`S-4`).
    pub skill_index: Option<&'a str>,
    /// Skills that the session opens at its start, byte for byte as the registry gave them (`S-18`).
    pub opened_skills: Option<&'a str>,
    /// The memory snapshot, byte for byte as the memory service gave it (`M-8`).
    pub memory_snapshot: Option<&'a str>,
    /// What an external memory provider has to say (`M-15`).
    pub provider_block: Option<&'a str>,
    /// Calendar day on which the session began, `2026-11-29`.
    pub date: &'a str,
    /// The session's id.
    pub session: &'a str,
    /// The model's name.
    pub model: &'a str,
}

/// A finished system prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemPrompt {
    /// The text to store with the session and to send with each of its requests.
    pub text: Arc<str>,
    /// Length in bytes of the stable tier, where a cache marker may be set (`P-5`).
    pub stable_len: usize,
}

/// Puts the prompt together. The same inputs give the same bytes.
pub fn assemble(inputs: &PromptInputs<'_>) -> SystemPrompt {
    let stable = stable_tier(inputs);
    let stable_len = stable.len();
    let tiers = [stable, context_tier(inputs), volatile_tier(inputs)];
    SystemPrompt {
        text: join(&tiers).into(),
        stable_len,
    }
}

fn stable_tier(inputs: &PromptInputs<'_>) -> String {
    let soul = present(inputs.soul).map(|text| cut_to_limit(text, "the team's identity text", CONTEXT_FILE_LIMIT));
    let mut parts = vec![soul.unwrap_or_else(|| guidance::IDENTITY.trim_end().to_owned())];
    parts.extend(blocks_for(inputs.tools).map(|block| block.trim_end().to_owned()));
    parts.extend(present(inputs.model_guidance).map(str::to_owned));
    parts.extend(present(inputs.platform_hint).map(str::to_owned));
    if !inputs.environment.is_empty() {
        let facts: Vec<String> = inputs.environment.iter().copied().map(one_line).collect();
        parts.push(format!("# Where your tools run\n{}", facts.join("\n")));
    }
    join(&parts)
}

fn context_tier(inputs: &PromptInputs<'_>) -> String {
    let mut parts: Vec<String> = present(inputs.caller_system).map(str::to_owned).into_iter().collect();
    parts.extend(present(inputs.workspace).map(str::to_owned));
    if !inputs.context_files.is_empty() {
        let files: Vec<String> = inputs.context_files.iter().map(ContextFile::render).collect();
        parts.push(format!("# Project context\n\n{}", files.join("\n\n")));
    }
    join(&parts)
}

fn volatile_tier(inputs: &PromptInputs<'_>) -> String {
    let mut parts = Vec::new();
    parts.extend(present(inputs.skill_index).map(str::to_owned));
    parts.extend(present(inputs.opened_skills).map(str::to_owned));
    parts.extend(present(inputs.memory_snapshot).map(str::to_owned));
    parts.extend(present(inputs.provider_block).map(str::to_owned));
    parts.push(format!(
        "Session began: {}\nSession: {}\nModel: {}",
        inputs.date, inputs.session, inputs.model
    ));
    join(&parts)
}

fn present(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.trim().is_empty())
}

fn join(parts: &[String]) -> String {
    let parts: Vec<&str> = parts
        .iter()
        .map(String::as_str)
        .filter(|part| !part.is_empty())
        .collect();
    parts.join("\n\n")
}

#[cfg(test)]
mod tests;
