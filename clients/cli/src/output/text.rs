//! Text for people: what cannot steer a terminal, what fits on a line, words for values of the contract.

use steward_base::Timestamp;

use crate::fault::Fault;

/// Text that cannot steer a terminal: control characters other than line feed and tab are shown as their symbols.
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|letter| match letter {
            '\n' | '\t' => letter,
            '\u{0}'..='\u{1f}' => char::from_u32(0x2400 + u32::from(letter)).unwrap_or('\u{fffd}'),
            '\u{7f}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
            _ => letter,
        })
        .collect()
}

/// First line of a text, cut to `width` characters.
pub fn first_line(text: &str, width: usize) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let cut: String = line.chars().take(width.saturating_sub(1)).collect();
    format!("{cut}…")
}

/// A point in time for people: UTC, to the second. Empty when there is none.
pub fn time(at: Option<&prost_types::Timestamp>) -> String {
    at.map_or_else(String::new, |at| {
        let text = Timestamp::from_parts(at.seconds, 0).to_string();
        let text = text.replace('T', " ").replace('Z', "");
        text.split_once('.').map_or(text.clone(), |(whole, _)| whole.to_owned())
    })
}

/// A length of time for people, in its two largest units.
pub fn span(length: Option<&prost_types::Duration>) -> String {
    let Some(length) = length else { return String::new() };
    let seconds = u64::try_from(length.seconds).unwrap_or_default();
    let units = [
        (seconds / 86_400, "d"),
        (seconds / 3_600 % 24, "h"),
        (seconds / 60 % 60, "min"),
        (seconds % 60, "s"),
    ];
    let said: Vec<_> = units
        .iter()
        .skip_while(|(count, _)| *count == 0)
        .take(2)
        .filter(|(count, _)| *count > 0)
        .map(|(count, unit)| format!("{count} {unit}"))
        .collect();
    if said.is_empty() {
        "0 s".to_owned()
    } else {
        said.join(" ")
    }
}

/// A size for people.
pub fn size(bytes: u64) -> String {
    const KIB: u64 = 1024;
    const MIB: u64 = KIB * KIB;
    match bytes {
        0..KIB => format!("{bytes} B"),
        KIB..MIB => format!("{}.{} KiB", bytes / KIB, bytes % KIB * 10 / KIB),
        _ => format!("{}.{} MiB", bytes / MIB, bytes % MIB * 10 / MIB),
    }
}

/// A count with its noun: `1 skill`, `3 skills`.
pub fn counted(count: usize, noun: &str) -> String {
    if count == 1 {
        format!("1 {noun}")
    } else {
        format!("{count} {noun}s")
    }
}

/// The last segment of a resource name.
pub fn short(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Word of an enum value for people: `SKILL_STATE_ACTIVE` → `active`.
pub fn word(value: &str, prefix: &str) -> String {
    value
        .strip_prefix(prefix)
        .unwrap_or(value)
        .to_lowercase()
        .replace('_', " ")
}

/// A point in time that a person wrote: `2026-11-30`, `2026-11-30T08:15:00Z`, or how long ago, `90s`, `15m`, `2h`, `7d`.
pub fn parse_time(given: &str, now: Timestamp) -> Result<prost_types::Timestamp, Fault> {
    parse(given, now, -1).ok_or_else(|| {
        Fault::usage(format!(
            "`{given}` is no time: give 2026-11-30, 2026-11-30T08:15:00Z, or how long ago, such as 2h"
        ))
    })
}

/// The same for a time to come: `30d` is a month from now.
pub fn parse_end(given: &str, now: Timestamp) -> Result<prost_types::Timestamp, Fault> {
    parse(given, now, 1).ok_or_else(|| {
        Fault::usage(format!(
            "`{given}` is no time: give 2026-12-31, 2026-12-31T08:00:00Z, or a time from now, such as 30d"
        ))
    })
}

fn parse(given: &str, now: Timestamp, direction: i64) -> Option<prost_types::Timestamp> {
    let given = given.trim();
    if let Some(length) = length(given) {
        let away = i64::try_from(length).ok()?.checked_mul(direction)?;
        let seconds = now.as_secs().checked_add(away)?;
        return Some(prost_types::Timestamp { seconds, nanos: 0 });
    }
    let whole = if given.contains('T') {
        given.to_owned()
    } else {
        format!("{given}T00:00:00Z")
    };
    whole.parse().ok()
}

/// Seconds of `90s`, `15m`, `2h`, `7d`.
fn length(given: &str) -> Option<u64> {
    let unit = match given.chars().last()? {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return None,
    };
    given[..given.len() - 1].parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_text_cannot_steer_the_terminal() {
        assert_eq!(printable("a\u{1b}[31mb\u{202e}c\r\n"), "a␛[31mb\u{fffd}c␍\n");
    }

    #[test]
    fn long_lines_are_cut_by_characters() {
        assert_eq!(first_line("岛岛岛岛", 3), "岛岛…");
        assert_eq!(first_line("abc\ndef", 3), "abc");
    }

    #[test]
    fn lengths_and_sizes_are_said_in_their_largest_units() {
        let length = |seconds| span(Some(&prost_types::Duration { seconds, nanos: 0 }));
        assert_eq!(length(0), "0 s");
        assert_eq!(length(61), "1 min 1 s");
        assert_eq!(length(7_200), "2 h");
        assert_eq!(length(86_400 * 3 + 59), "3 d");
        assert_eq!(size(1_023), "1023 B");
        assert_eq!(size(1_536), "1.5 KiB");
        assert_eq!(size(10 * 1024 * 1024), "10.0 MiB");
        assert_eq!(counted(1, "skill"), "1 skill");
        assert_eq!(counted(0, "skill"), "0 skills");
    }

    #[test]
    fn a_time_is_a_day_a_moment_or_how_long_ago() {
        let now = Timestamp::from_parts(1_000_000, 5);
        let at = |given| parse_time(given, now).map(|at| at.seconds);
        assert_eq!(at("2h"), Ok(1_000_000 - 7_200));
        assert_eq!(parse_end("2h", now).map(|at| at.seconds), Ok(1_000_000 + 7_200));
        assert_eq!(at("1970-01-02"), Ok(86_400));
        assert_eq!(at("1970-01-01T00:01:00Z"), Ok(60));
        for wrong in ["", "yesterday", "2x", "-3d", "99999999999999999999d"] {
            assert!(at(wrong).is_err(), "{wrong}");
        }
    }
}
