//! First answers by request id (`T-9`). They live in the transaction of the write that they answer.

use sqlx::SqliteConnection;
use steward_base::Timestamp;
use steward_recall_core::Error;
use steward_recall_core::append_messages::{ANSWER_RETENTION, RequestKey};
use steward_store::Batch;

use super::failure::Failure;

/// Within what a request id is unique: a session's number, or this for the creations of sessions in the team.
pub(super) const CREATION: i64 = 0;

/// The answer that was given to this request before, as JSON. The same id with another request is refused.
pub(super) async fn first(
    connection: &mut SqliteConnection,
    scope: i64,
    request: &RequestKey,
    now: Timestamp,
) -> Result<Option<String>, Failure> {
    let known: Option<(Vec<u8>, String)> = sqlx::query_as(
        "SELECT request_hash, answer FROM answered WHERE session = ? AND request_id = ? AND created > ?",
    )
    .bind(scope)
    .bind(&request.id)
    .bind(oldest(now))
    .fetch_optional(connection)
    .await?;
    known
        .map(|(hash, answer)| same_request(&hash, request).map(|()| answer))
        .transpose()
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

/// Lets go of the oldest answers that are past their time, a few with each write, so that none waits for it. Each write adds
/// one, so that any larger number catches up.
const FORGET: &str = "DELETE FROM answered
    WHERE number IN (SELECT number FROM answered ORDER BY number LIMIT 16) AND created <= ?";
const KEEP: &str =
    "INSERT OR REPLACE INTO answered (session, request_id, request_hash, created, answer) VALUES (?, ?, ?, ?, ?)";

/// Keeps an answer for retries, and lets go of old ones.
pub(super) fn keep_with(batch: &mut Batch, scope: i64, request: &RequestKey, answer: &str, now: Timestamp) {
    batch.statement(FORGET).with(oldest(now));
    batch
        .statement(KEEP)
        .with(scope)
        .with(request.id.as_str())
        .with(stored(&request.hash))
        .with(now.as_micros())
        .with(answer);
}

/// The same at once.
pub(super) async fn keep(
    connection: &mut SqliteConnection,
    scope: i64,
    request: &RequestKey,
    answer: &str,
    now: Timestamp,
) -> Result<(), Failure> {
    let mut batch = Batch::default();
    keep_with(&mut batch, scope, request, answer, now);
    Ok(batch.run(connection).await?)
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
