//! Token counts in one form. Providers disagree on what "input" includes; here it is settled once.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What one or several model calls consumed, in tokens. `None` means that the provider did not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// All tokens of the prompt, those read from and written to a cache included.
    pub input: Option<u64>,
    /// The part of `input` that was read from the provider's cache.
    pub cached_input: Option<u64>,
    /// The part of `input` that was written to the provider's cache.
    pub cache_write: Option<u64>,
    /// All tokens of the answer, reasoning included.
    pub output: Option<u64>,
    /// The part of `output` that was reasoning.
    pub reasoning: Option<u64>,
}

impl Usage {
    /// Adds the counts of another call. Unknown plus known is known.
    pub fn add(&mut self, other: &Self) {
        let sum = |left: Option<u64>, right: Option<u64>| match (left, right) {
            (Some(left), Some(right)) => Some(left.saturating_add(right)),
            (one, other) => one.or(other),
        };
        self.input = sum(self.input, other.input);
        self.cached_input = sum(self.cached_input, other.cached_input);
        self.cache_write = sum(self.cache_write, other.cache_write);
        self.output = sum(self.output, other.output);
        self.reasoning = sum(self.reasoning, other.reasoning);
    }

    /// Input and output together, unknown counted as zero.
    pub fn total(&self) -> u64 {
        self.input.unwrap_or(0).saturating_add(self.output.unwrap_or(0))
    }

    /// Reads the `usage` object of a chat completions answer, in the dialects that servers speak.
    pub(crate) fn from_chat_completions(usage: &Value) -> Self {
        let at = |pointers: &[&str]| {
            pointers
                .iter()
                .find_map(|path| usage.pointer(path).and_then(Value::as_u64))
        };
        Self {
            input: at(&["/prompt_tokens"]),
            cached_input: at(&[
                "/prompt_tokens_details/cached_tokens",
                "/prompt_cache_hit_tokens",
                "/cache_read_input_tokens",
            ]),
            cache_write: at(&[
                "/prompt_tokens_details/cache_write_tokens",
                "/cache_creation_input_tokens",
            ]),
            output: at(&["/completion_tokens"]),
            reasoning: at(&["/completion_tokens_details/reasoning_tokens"]),
        }
    }

    /// Reads the `usage` object of the messages protocol, whose input excludes what a cache has to do with.
    pub(crate) fn from_messages(usage: &Value) -> Self {
        let at = |path: &str| usage.pointer(path).and_then(Value::as_u64);
        let (rest, read, written) = (
            at("/input_tokens"),
            at("/cache_read_input_tokens"),
            at("/cache_creation_input_tokens"),
        );
        let cached = read.unwrap_or(0).saturating_add(written.unwrap_or(0));
        Self {
            input: rest.map(|rest| rest.saturating_add(cached)),
            cached_input: read,
            cache_write: written,
            output: at("/output_tokens"),
            reasoning: at("/output_tokens_details/thinking_tokens"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_is_kept_apart_from_zero() {
        let mut sum = Usage::default();
        sum.add(&Usage::from_chat_completions(
            &json!({"prompt_tokens": 10, "completion_tokens": 2}),
        ));
        assert_eq!((sum.input, sum.cached_input), (Some(10), None));
        let cached = json!({"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 0}, "completion_tokens": 1});
        sum.add(&Usage::from_chat_completions(&cached));
        assert_eq!((sum.input, sum.cached_input, sum.total()), (Some(15), Some(0), 18));
    }

    #[test]
    fn both_protocols_count_the_same_call_alike() {
        let one = json!({
            "prompt_tokens": 120, "completion_tokens": 30,
            "prompt_tokens_details": {"cached_tokens": 80, "cache_write_tokens": 10},
        });
        let other = json!({
            "input_tokens": 30, "cache_read_input_tokens": 80, "cache_creation_input_tokens": 10, "output_tokens": 30,
        });
        assert_eq!(Usage::from_chat_completions(&one), Usage::from_messages(&other));
        let silent = Usage::from_messages(&json!({"output_tokens": 1}));
        assert_eq!((silent.input, silent.cached_input), (None, None));
    }
}
