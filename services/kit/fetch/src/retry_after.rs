//! When a server says to come back: seconds, milliseconds (an extension), or a date.

use std::time::Duration;

use http::header::{DATE, HeaderMap, HeaderName, RETRY_AFTER};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

use steward_base::Timestamp;

/// The wait that a response asks for. A date is read against the server's own clock where it tells it, else against `now`,
/// so that a machine whose clock is wrong does not wait for hours. A date that has passed asks for no wait.
pub fn read(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let number = |name: HeaderName| text(headers, &name)?.parse::<f64>().ok();
    let millis = number(HeaderName::from_static("retry-after-ms")).map(|millis| millis / 1000.0);
    if let Some(seconds) = millis.or_else(|| number(RETRY_AFTER)) {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = date(headers, &RETRY_AFTER)?;
    Some(until.since(date(headers, &DATE).unwrap_or(now)))
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    Some(headers.get(name)?.to_str().ok()?.trim())
}

fn date(headers: &HeaderMap, name: &HeaderName) -> Option<Timestamp> {
    let date = OffsetDateTime::parse(text(headers, name)?, &Rfc2822).ok()?;
    Some(Timestamp::from_secs(date.unix_timestamp()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(headers: &[(&'static str, &'static str)], now: i64) -> Option<Duration> {
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().expect("a value")))
            .collect();
        read(&headers, Timestamp::from_secs(now))
    }

    #[test]
    fn seconds_milliseconds_and_dates_are_understood() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(wait(&[("retry-after", " 2 ")], 0), seconds(2));
        assert_eq!(
            wait(&[("retry-after", "9"), ("retry-after-ms", "250")], 0),
            Some(Duration::from_millis(250))
        );
        let date = ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(wait(&[date], 784_111_770), seconds(7));
        assert_eq!(wait(&[date], 784_111_800), seconds(0));
        let served = ("date", "Sun, 06 Nov 1994 08:49:27 GMT");
        assert_eq!(
            wait(&[date, served], 0),
            seconds(10),
            "the server's clock goes before ours"
        );
    }

    #[test]
    fn nonsense_asks_for_nothing() {
        for value in ["soon", "-1", "inf", "Sun, 99 Nov 1994 08:49:37 GMT", ""] {
            assert_eq!(wait(&[("retry-after", value)], 0), None, "{value}");
        }
        assert_eq!(wait(&[], 0), None);
    }
}
