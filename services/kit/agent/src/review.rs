//! What makes a review: the question that is put after a finished conversation, what of the conversation it may see, and
//! which calls it may make (`R-3`, `R-4`).
//!
//! The parent's system prompt, tool list and messages are reused byte for byte, so that the provider's cache is hit. Where
//! the conversation holds text from outside, that text and all that was done under its influence is replaced by
//! placeholders before the model sees it: two conversations that differ only in such text give the same bytes, so nothing
//! that stands in a web page can be carried into memory or a skill in any wording (`L-6`).

mod data;
mod evidence;
mod hide;
mod policy;
mod request;
mod rubric;
mod spans;
mod verdict;

pub use data::{CorrectionLine, MemoryLine, SkillLine};
pub use evidence::{Basis, Evidence};
pub use hide::hide_output;
pub use policy::{Admission, MAX_WRITES, Refusal, ReviewPolicy};
pub use request::{ReviewInput, ReviewMode, ReviewModel, ReviewRequest, build, review_settings};
pub use rubric::{AUTHORING_STANDARD, Kinds, Rubric, rubric};
pub use spans::{ReviewMessage, SpanRef, SpanTable};
pub use verdict::{SkillLabel, UsedSkill, Verdict, parse_verdict};

#[cfg(test)]
mod tests;
