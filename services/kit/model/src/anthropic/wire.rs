//! What is read of the protocol. Arguments stay raw text, so that no number in them is touched.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// One event of a stream.
#[derive(Deserialize)]
pub(super) struct Event<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Option<Cow<'a, str>>,
    pub(super) index: Option<u64>,
    #[serde(borrow)]
    pub(super) content_block: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) delta: Value,
    #[serde(default)]
    pub(super) message: Value,
    #[serde(default)]
    pub(super) usage: Value,
    #[serde(default)]
    pub(super) error: Value,
}

/// A block as it opens.
#[derive(Deserialize)]
pub(super) struct Opening<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
}

/// An answer in one piece.
#[derive(Deserialize)]
pub(super) struct Document<'a> {
    #[serde(default, borrow)]
    pub(super) content: Vec<&'a RawValue>,
    #[serde(default)]
    pub(super) stop_reason: Option<String>,
    #[serde(default)]
    pub(super) usage: Value,
    #[serde(default)]
    pub(super) error: Value,
}
