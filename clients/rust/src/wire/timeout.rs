//! The `grpc-timeout` header: how long the caller waits.

use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use tokio::time::Instant;

use crate::ambient::Ambient;

const HEADER: &str = "grpc-timeout";

/// The header's value, or `None` when it is absent or malformed.
pub fn parse(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(HEADER)?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let amount: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(amount * 3600)),
        "M" => Some(Duration::from_secs(amount * 60)),
        "S" => Some(Duration::from_secs(amount)),
        "m" => Some(Duration::from_millis(amount)),
        "u" => Some(Duration::from_micros(amount)),
        "n" => Some(Duration::from_nanos(amount)),
        _ => None,
    }
}

/// The header's value for a duration: the finest unit whose amount fits into eight digits.
pub fn render(timeout: Duration) -> HeaderValue {
    const MOST: u128 = 99_999_999;
    let text = if timeout.as_micros() <= MOST {
        format!("{}u", timeout.as_micros())
    } else if timeout.as_millis() <= MOST {
        format!("{}m", timeout.as_millis())
    } else {
        format!("{}S", u128::from(timeout.as_secs()).min(MOST))
    };
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("99999999S"))
}

/// The earlier of the call's own deadline and the deadline of the call it is made in.
pub(super) fn effective(headers: &HeaderMap, ambient: &Ambient) -> Option<Instant> {
    let own = parse(headers).and_then(|timeout| Instant::now().checked_add(timeout));
    match (own, ambient.deadline) {
        (Some(own), Some(inherited)) => Some(own.min(inherited)),
        (own, inherited) => own.or(inherited),
    }
}

/// Writes what is left until `deadline` into the header.
pub(super) fn write(headers: &mut HeaderMap, deadline: Option<Instant>) {
    if let Some(deadline) = deadline {
        headers.insert(HEADER, render(deadline.saturating_duration_since(Instant::now())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_survive_the_header() {
        for timeout in [
            Duration::ZERO,
            Duration::from_millis(1),
            Duration::from_secs(30),
            Duration::from_hours(30),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HEADER, render(timeout));
            assert_eq!(parse(&headers), Some(timeout));
        }
    }

    #[test]
    fn nonsense_is_no_timeout() {
        for text in ["", "S", "1", "1x", "123456789S", "-1S", "+1S", "1.5S", "é"] {
            let mut headers = HeaderMap::new();
            headers.insert(HEADER, HeaderValue::from_bytes(text.as_bytes()).unwrap());
            assert_eq!(parse(&headers), None, "{text}");
        }
    }
}
