//! First answers by request id (`T-9`). They live in the transaction of the write that they answer.

use steward_base::Timestamp;
use steward_recall_core::Error;
use steward_recall_core::append_messages::{ANSWER_RETENTION, RequestKey};
use steward_store::{Db, params};

use super::failure::Failure;

/// Within what a request id is unique: a session's number, or this for the creations of sessions in the team.
pub(super) const CREATION: i64 = 0;

/// The answer that was given to this request before, as JSON. The same id with another request is refused.
pub(super) fn first(db: Db<'_>, scope: i64, request: &RequestKey, now: Timestamp) -> Result<Option<String>, Failure> {
    db.first(
        "SELECT request_hash, answer FROM answered WHERE session = ? AND request_id = ? AND created > ?",
        params![scope, request.id, oldest(now)],
        |row| {
            same_request(row.get_ref(0)?.as_blob()?, request)?;
            Ok(row.get(1)?)
        },
    )
}

/// An answer that is older is no answer any more.
pub(super) fn oldest(now: Timestamp) -> i64 {
    now.minus(ANSWER_RETENTION).as_micros()
}

pub(super) fn same_request(hash: &[u8], request: &RequestKey) -> Result<(), Failure> {
    if hash == stored(&request.hash) {
        Ok(())
    } else {
        Err(Error::request_id_reused(&request.id).into())
    }
}

/// A hash as it is kept: hexadecimal digits take twice the room of what they say.
pub(super) fn stored(hash: &str) -> Vec<u8> {
    let nibble = |digit: u8| {
        char::from(digit)
            .to_digit(16)
            .and_then(|value| u8::try_from(value).ok())
    };
    let (pairs, rest) = hash.as_bytes().as_chunks::<2>();
    let bytes: Option<Vec<u8>> = pairs
        .iter()
        .map(|[high, low]| Some(nibble(*high)? << 4 | nibble(*low)?))
        .collect();
    bytes
        .filter(|bytes| rest.is_empty() && bytes.len() == 32)
        .unwrap_or_else(|| hash.as_bytes().to_vec())
}

/// Lets go of the oldest answers that are past their time. Each write adds one, so that with the answers of as many writes as
/// pass until the next time, and some more, it catches up.
const FORGET: &str = "DELETE FROM answered
    WHERE number IN (SELECT number FROM answered ORDER BY number LIMIT 16) AND created <= ?";
/// Writes from one time to the next.
const FORGET_EVERY: i64 = 8;
const KEEP: &str =
    "INSERT OR REPLACE INTO answered (session, request_id, request_hash, created, answer) VALUES (?, ?, ?, ?, ?)";

/// Keeps an answer for retries, and now and then lets go of old ones: a few at a time, so that no write waits for it.
pub(super) fn keep(db: Db<'_>, scope: i64, request: &RequestKey, answer: &str, now: Timestamp) -> Result<(), Failure> {
    let hash = stored(&request.hash);
    db.execute(KEEP, params![scope, request.id, hash, now.as_micros(), answer])?;
    if db.last_insert_rowid() % FORGET_EVERY == 0 {
        db.execute(FORGET, [oldest(now)])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_kept_short_and_whatever_is_none_as_it_is() {
        let hash = steward_base::hash::sha256_hex(b"x");
        assert_eq!(stored(&hash).len(), 32);
        assert_ne!(stored(&hash), stored(&steward_base::hash::sha256_hex(b"y")));
        for odd in ["", "hash of 1", &hash[1..], "zz"] {
            assert_eq!(stored(odd), odd.as_bytes());
        }
    }
}
