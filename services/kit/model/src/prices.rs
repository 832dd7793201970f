//! What model calls cost: dated rows of data, and arithmetic that is exact. A call that no row covers is unpriced, never
//! free.
//!
//! Amounts are whole picodollars: a price in micro-dollars per million tokens times a number of tokens. Nothing is rounded
//! until it is shown.

use std::fmt;
use std::iter::Sum;
use std::ops::Add;

use serde::Serialize;
use steward_base::Timestamp;
use time::{Date, OffsetDateTime};

mod parse;

pub use parse::PriceError;

use crate::anthropic::CacheTtl;
use crate::usage::Usage;

/// Days after which prices should be looked up again.
const STALE_AFTER_DAYS: i64 = 90;

/// An amount of US dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
#[serde(transparent)]
pub struct Money {
    picodollars: u128,
}

impl Money {
    /// From millionths of a millionth of a dollar.
    pub const fn from_picodollars(picodollars: u128) -> Self {
        Self { picodollars }
    }

    /// The exact amount in millionths of a millionth of a dollar.
    pub const fn picodollars(self) -> u128 {
        self.picodollars
    }

    /// The amount in millionths of a dollar, rounded to the nearest.
    pub fn microdollars(self) -> u64 {
        u64::try_from((self.picodollars + 500_000) / 1_000_000).unwrap_or(u64::MAX)
    }
}

impl Add for Money {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self::from_picodollars(self.picodollars.saturating_add(other.picodollars))
    }
}

impl Sum for Money {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::default(), Add::add)
    }
}

impl fmt::Display for Money {
    /// Dollars with six decimals, for example `$0.012345`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.microdollars();
        write!(f, "${}.{:06}", micros / 1_000_000, micros % 1_000_000)
    }
}

/// A price in micro-dollars per million tokens, which is picodollars per token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price(u64);

impl Price {
    fn of(self, tokens: u64) -> Money {
        Money::from_picodollars(u128::from(self.0) * u128::from(tokens))
    }
}

/// What one vendor takes for some models from one day on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceRow {
    /// Whose price it is, as in [`crate::ProviderConfig::vendor`].
    pub provider: String,
    /// Names of the models. A name also stands for its dated versions (`name-20260101`, `name-2026-01-01`); a `*` at the end
    /// for any ending.
    pub models: Vec<String>,
    /// First day on which it holds (UTC).
    pub from: Date,
    /// The row holds for prompts longer than this many tokens; 0 for any.
    pub over_prompt: u64,
    /// The row holds for prompts of at most this many tokens.
    pub upto_prompt: Option<u64>,
    /// Prompt tokens that no cache has to do with.
    pub input: Price,
    /// Prompt tokens read from the cache. `None`: not sold.
    pub cached_input: Option<Price>,
    /// Prompt tokens written to the cache for five minutes, or for as long as the provider chooses.
    pub cache_write_5m: Option<Price>,
    /// Prompt tokens written to the cache for an hour.
    pub cache_write_1h: Option<Price>,
    /// Tokens of the answer, reasoning included.
    pub output: Price,
    /// Day on which the price was last looked up.
    pub seen: Date,
    /// Where.
    pub source: String,
}

impl PriceRow {
    /// Whether the price was looked up more than 90 days before `at`, so that somebody should look again.
    pub fn is_stale(&self, at: Timestamp) -> bool {
        date_of(at).is_some_and(|today| (today - self.seen).whole_days() > STALE_AFTER_DAYS)
    }

    /// How closely the row names the model: the length of the name that fits.
    fn fit(&self, model: &str) -> Option<usize> {
        let fitting = self.models.iter().filter(|name| names(name, model));
        fitting.map(String::len).max()
    }

    fn covers(&self, prompt: u64) -> bool {
        (self.over_prompt == 0 || prompt > self.over_prompt) && self.upto_prompt.is_none_or(|limit| prompt <= limit)
    }
}

/// All known prices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PriceBook {
    rows: Vec<PriceRow>,
}

impl PriceBook {
    /// The rows that come with this version.
    ///
    /// # Errors
    /// None in practice: a test reads the file.
    pub fn builtin() -> Result<Self, PriceError> {
        Self::parse(include_str!("../data/prices.toml"))
    }

    /// These rows before those of this book: the way to state prices of one's own.
    #[must_use]
    pub fn with(mut self, own: Self) -> Self {
        let named = |row: &PriceRow| {
            own.rows
                .iter()
                .any(|mine| mine.provider == row.provider && mine.models == row.models)
        };
        self.rows.retain(|row| !named(row));
        self.rows.extend(own.rows);
        self
    }

    /// All rows.
    pub fn rows(&self) -> &[PriceRow] {
        &self.rows
    }

    /// The row for a call: the closest name, then the latest day that has come, then the band of the prompt's length.
    /// `prompt` is all tokens of the prompt ([`Usage::input`]).
    pub fn row(&self, provider: &str, model: &str, at: Timestamp, prompt: u64) -> Option<&PriceRow> {
        let today = date_of(at)?;
        let fits = |row: &&PriceRow| row.provider == provider && row.from <= today && row.fit(model).is_some();
        let rank = |row: &PriceRow| (row.fit(model), row.from);
        let best = self.rows.iter().filter(fits).map(rank).max()?;
        let same = self.rows.iter().filter(fits).filter(|row| rank(row) == best);
        same.filter(|row| row.covers(prompt)).max_by_key(|row| row.over_prompt)
    }
}

/// What a call cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    /// So much.
    Priced(Money),
    /// It is not known.
    Unpriced(Unpriced),
}

/// Why a cost is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unpriced {
    /// No row names the model, the day and the length of the prompt.
    NoRow,
    /// The provider did not count its tokens.
    NotCounted,
    /// Tokens were read from a cache, and the row has no price for it.
    NoPriceForCacheReads,
    /// Tokens were written to a cache, and the row has no price for it.
    NoPriceForCacheWrites,
}

/// The cost of one call by its row. Prompt tokens that the provider does not call cached count as uncached, so that a silent
/// provider is never made cheaper than it is.
pub fn cost(usage: &Usage, row: Option<&PriceRow>, ttl: CacheTtl) -> Cost {
    match priced(usage, row, ttl) {
        Ok(money) => Cost::Priced(money),
        Err(why) => Cost::Unpriced(why),
    }
}

fn priced(usage: &Usage, row: Option<&PriceRow>, ttl: CacheTtl) -> Result<Money, Unpriced> {
    let row = row.ok_or(Unpriced::NoRow)?;
    let (Some(input), Some(output)) = (usage.input, usage.output) else {
        return Err(Unpriced::NotCounted);
    };
    let part = |tokens: u64, price: Option<Price>, missing: Unpriced| match price {
        Some(price) => Ok(price.of(tokens)),
        None if tokens == 0 => Ok(Money::default()),
        None => Err(missing),
    };
    let (read, written) = (usage.cached_input.unwrap_or(0), usage.cache_write.unwrap_or(0));
    let write_price = match ttl {
        CacheTtl::FiveMinutes => row.cache_write_5m,
        CacheTtl::OneHour => row.cache_write_1h,
    };
    let uncached = input.saturating_sub(read).saturating_sub(written);
    Ok(row.input.of(uncached)
        + part(read, row.cached_input, Unpriced::NoPriceForCacheReads)?
        + part(written, write_price, Unpriced::NoPriceForCacheWrites)?
        + row.output.of(output))
}

/// Whether `name` of a row stands for `model`.
fn names(name: &str, model: &str) -> bool {
    if let Some(start) = name.strip_suffix('*') {
        return model.starts_with(start);
    }
    let Some(rest) = model.strip_prefix(name) else {
        return false;
    };
    let Some(version) = rest.strip_prefix('-') else {
        return rest.is_empty();
    };
    let digits = version.bytes().filter(u8::is_ascii_digit).count();
    digits == 8 && version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') && matches!(version.len(), 8 | 10)
}

fn date_of(at: Timestamp) -> Option<Date> {
    OffsetDateTime::from_unix_timestamp(at.as_secs())
        .ok()
        .map(OffsetDateTime::date)
}

#[cfg(test)]
mod tests;
