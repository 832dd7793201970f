//! Exact amounts, bands and days.

use super::*;

const LIST: &str = r#"
[[row]]
provider = "v"
models = ["small"]
from = "2026-10-07"
upto_prompt = 100000
input = "0.10"
cached_input = "0.01"
cache_write_5m = "0.125"
cache_write_1h = "0.20"
output = "0.50"
seen = "2026-10-24"
source = "a page"

[[row]]
provider = "v"
models = ["small"]
from = "2026-10-07"
over_prompt = 100000
input = "0.50"
output = "2.50"
seen = "2026-10-24"
source = "a page"

[[row]]
provider = "v"
models = ["small"]
from = "2026-01-01"
input = "1"
output = "2"
seen = "2026-01-01"
source = "a page"

[[row]]
provider = "v"
models = ["small-fast", "local*"]
from = "2026-01-01"
input = "7"
output = "7"
seen = "2026-01-01"
source = "a page"
"#;

fn book() -> PriceBook {
    PriceBook::parse(LIST).expect("a list")
}

fn at(date: &str) -> Timestamp {
    let parsed = OffsetDateTime::parse(&format!("{date}Z"), &time::format_description::well_known::Rfc3339);
    Timestamp::from_secs(parsed.expect("a time").unix_timestamp())
}

fn usage(input: u64, read: u64, written: u64, output: u64) -> Usage {
    Usage {
        input: Some(input),
        cached_input: Some(read),
        cache_write: Some(written),
        output: Some(output),
        reasoning: None,
    }
}

#[test]
fn each_kind_of_token_has_its_price() {
    let book = book();
    let row = book.row("v", "small", at("2026-11-01T00:00:00"), 1000);
    let usage = usage(1000, 600, 100, 40);
    // 300 at 0.10, 600 at 0.01, 100 at 0.125 (or 0.20), 40 at 0.50 dollars a million.
    let five = cost(&usage, row, CacheTtl::FiveMinutes);
    assert_eq!(
        five,
        Cost::Priced(Money::from_picodollars(
            30_000_000 + 6_000_000 + 12_500_000 + 20_000_000
        ))
    );
    let hour = cost(&usage, row, CacheTtl::OneHour);
    assert_eq!(
        hour,
        Cost::Priced(Money::from_picodollars(
            30_000_000 + 6_000_000 + 20_000_000 + 20_000_000
        ))
    );
    let silent = Usage {
        cached_input: None,
        cache_write: None,
        ..usage
    };
    let Cost::Priced(silent) = cost(&silent, row, CacheTtl::FiveMinutes) else {
        panic!("priced");
    };
    assert_eq!((silent.microdollars(), silent.to_string().as_str()), (120, "$0.000120"));
    assert_eq!([silent, silent].into_iter().sum::<Money>().microdollars(), 240);
}

#[test]
fn a_row_is_chosen_by_name_then_day_then_length() {
    let book = book();
    let input = |model: &str, date: &str, prompt: u64| {
        let row = book.row("v", model, at(date), prompt)?;
        Some(row.input.of(1_000_000).microdollars())
    };
    let night = "2026-10-06T23:59:59";
    assert_eq!(input("small", night, 5), Some(1_000_000));
    assert_eq!(input("small", "2026-10-07T00:00:00", 5), Some(100_000));
    assert_eq!(input("small", "2026-10-07T00:00:00", 100_000), Some(100_000));
    assert_eq!(input("small", "2026-10-07T00:00:00", 100_001), Some(500_000));
    assert_eq!(input("small", "2025-12-31T00:00:00", 5), None);
    assert_eq!(input("small-20261007", night, 0), Some(1_000_000));
    assert_eq!(input("small-2026-10-07", night, 0), Some(1_000_000));
    assert_eq!(input("small-fast", night, 5), Some(7_000_000));
    assert_eq!(input("local/anything", night, 5), Some(7_000_000));
    for other in ["small-2", "smaller", "small-next", "smal", "small-fast-12345678x"] {
        assert_eq!(input(other, night, 5), None, "{other}");
    }
    assert!(book.row("w", "small", at(night), 5).is_none());
}

#[test]
fn what_is_not_known_is_unpriced_and_never_free() {
    let book = book();
    let row = book.row("v", "small", at("2026-11-01T00:00:00"), 200_000);
    let why = |usage: &Usage, row| match cost(usage, row, CacheTtl::FiveMinutes) {
        Cost::Unpriced(why) => Some(why),
        Cost::Priced(_) => None,
    };
    assert_eq!(why(&usage(1, 0, 0, 1), None), Some(Unpriced::NoRow));
    assert_eq!(why(&Usage::default(), row), Some(Unpriced::NotCounted));
    assert_eq!(why(&usage(9, 1, 0, 1), row), Some(Unpriced::NoPriceForCacheReads));
    assert_eq!(why(&usage(9, 0, 1, 1), row), Some(Unpriced::NoPriceForCacheWrites));
    assert_eq!(why(&usage(9, 0, 0, 1), row), None);
}

#[test]
fn the_rows_that_come_along_are_readable_and_dated() {
    let book = PriceBook::builtin().expect("the file is a list");
    let when = at("2026-11-29T00:00:00");
    let row = book
        .row("anthropic", "claude-opus-4-5-20251101", when, 10)
        .expect("a row");
    assert_eq!(row.output.of(1_000_000).microdollars(), 25_000_000);
    let sonnet = |date: &str| {
        let row = book.row("anthropic", "claude-sonnet-5-5", at(date), 10)?;
        row.cached_input.map(|price| price.of(1_000_000).microdollars())
    };
    assert_eq!(sonnet("2026-10-06T12:00:00"), Some(200_000));
    assert_eq!(sonnet("2026-10-07T12:00:00"), Some(100_000));
    assert!(book.row("anthropic", "claude-opus-9", when, 10).is_none());
    assert!(
        book.row("openai", "gpt-6-luna", when, 300_000).is_none(),
        "no band for it"
    );
    assert!(
        book.rows()
            .iter()
            .all(|row| row.from <= row.seen && !row.source.is_empty())
    );
    assert!(!row.is_stale(at("2027-01-20T00:00:00")) && row.is_stale(at("2027-01-25T00:00:00")));
}

#[test]
fn own_rows_go_before_and_broken_ones_are_named() {
    let own = LIST.replace("\"0.10\"", "\"0\"");
    let book = book().with(PriceBook::parse(&own).expect("a list"));
    let row = book.row("v", "small", at("2026-11-01T00:00:00"), 5).expect("a row");
    assert_eq!((row.input.of(9), book.rows().len()), (Money::default(), 4));
    for (from, to, field) in [
        ("\"0.10\"", "\"0.1234567\"", "input"),
        ("\"0.10\"", "\"-1\"", "input"),
        ("\"0.10\"", "\".5\"", "input"),
        ("\"2026-10-07\"", "\"2026-13-07\"", "from"),
    ] {
        let error = PriceBook::parse(&LIST.replacen(from, to, 1)).expect_err(to);
        assert!(
            error.to_string().contains(field) && error.to_string().contains("small"),
            "{error}"
        );
    }
    assert!(PriceBook::parse("[[row]]\nprice = 1").is_err());
}
