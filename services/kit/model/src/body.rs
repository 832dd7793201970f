//! JSON written by hand in a fixed order, with a list of the places where cache markers go. The body without its markers is
//! the one whose segments are compared (`P-4`), so both forms come from one writing.

use bytes::Bytes;
use serde::Serialize;

use crate::error::ModelError;

#[derive(Default)]
pub(crate) struct Body {
    bytes: Vec<u8>,
    markers: Vec<usize>,
}

impl Body {
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn raw(&mut self, text: &str) -> &mut Self {
        self.bytes.extend_from_slice(text.as_bytes());
        self
    }

    pub(crate) fn json<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<&mut Self, ModelError> {
        serde_json::to_writer(&mut self.bytes, value).map_err(|error| ModelError::InvalidRequest {
            what: error.to_string(),
        })?;
        Ok(self)
    }

    /// Puts a marker at `offset`, which lies behind all earlier ones.
    pub(crate) fn mark(&mut self, offset: usize) {
        self.markers.push(offset);
    }

    /// The body with `marker` at each marked place, and the body without.
    pub(crate) fn finish(self, marker: &str) -> (Bytes, Bytes) {
        let plain = Bytes::from(self.bytes);
        if self.markers.is_empty() {
            return (plain.clone(), plain);
        }
        let mut whole = Vec::with_capacity(plain.len() + self.markers.len() * marker.len());
        let mut from = 0;
        for offset in self.markers {
            whole.extend_from_slice(&plain[from..offset]);
            whole.extend_from_slice(marker.as_bytes());
            from = offset;
        }
        whole.extend_from_slice(&plain[from..]);
        (Bytes::from(whole), plain)
    }
}
