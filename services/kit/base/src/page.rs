//! Page tokens (AIP-158): opaque to the caller, bound to the other arguments of the list.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::fault::FieldViolations;
use crate::hash::sha256_parts;

#[derive(Serialize, Deserialize)]
struct Token {
    #[serde(rename = "b")]
    binding: String,
    #[serde(rename = "c")]
    cursor: String,
}

/// Makes the token after which the next page starts at `cursor`. `arguments` are the request's other fields; a token
/// is only good for the same ones.
pub fn encode(arguments: &[&str], cursor: &str) -> String {
    let token = Token {
        binding: binding(arguments),
        cursor: cursor.to_owned(),
    };
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(&token).unwrap_or_default())
}

/// The cursor inside `token`; `None` for the empty token of a first page.
pub fn decode(arguments: &[&str], token: &str) -> Result<Option<String>, FieldViolations> {
    if token.is_empty() {
        return Ok(None);
    }
    let parsed = URL_SAFE_NO_PAD
        .decode(token)
        .ok()
        .and_then(|bytes| serde_json::from_slice::<Token>(&bytes).ok());
    match parsed {
        Some(parsed) if parsed.binding == binding(arguments) => Ok(Some(parsed.cursor)),
        Some(_) => Err(FieldViolations::one(
            "page_token",
            "belongs to a list with other arguments",
        )),
        None => Err(FieldViolations::one(
            "page_token",
            "is not a token that this service gave out",
        )),
    }
}

/// The effective page size: `default` when zero, coerced down to `max`; negative is a violation.
pub fn size(requested: i32, default: u32, max: u32) -> Result<u32, FieldViolations> {
    match u32::try_from(requested) {
        Ok(0) => Ok(default),
        Ok(wanted) => Ok(wanted.min(max)),
        Err(_) => Err(FieldViolations::one("page_size", "must not be negative")),
    }
}

fn binding(arguments: &[&str]) -> String {
    let mut hash = sha256_parts(arguments.iter().map(|argument| argument.as_bytes()));
    hash.truncate(16);
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_token_gives_back_its_cursor(cursor in ".*", argument in ".*") {
            let token = encode(&[&argument], &cursor);
            prop_assert_eq!(decode(&[&argument], &token).unwrap(), Some(cursor));
        }

        #[test]
        fn any_text_is_a_token_or_a_violation(token in ".{1,80}") {
            prop_assert!(decode(&["teams/a"], &token).is_err());
        }
    }

    #[test]
    fn a_token_is_bound_to_its_arguments() {
        let token = encode(&["teams/a", "filter"], "17");
        assert!(decode(&["teams/b", "filter"], &token).is_err());
        assert_eq!(decode(&["teams/b", "filter"], "").unwrap(), None);
    }

    #[test]
    fn a_page_size_is_coerced_down_and_never_negative() {
        assert_eq!(size(0, 50, 200).unwrap(), 50);
        assert_eq!(size(1000, 50, 200).unwrap(), 200);
        assert!(size(-1, 50, 200).is_err());
    }
}
