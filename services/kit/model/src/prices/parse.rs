//! Reading a price list. Amounts are decimal texts, since a binary fraction cannot hold a tenth of a cent.

use serde::Deserialize;
use time::Date;
use time::macros::format_description;

use super::{Price, PriceBook, PriceRow};

/// A price list that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PriceError {
    /// It is not TOML of the right form.
    #[error("the price list cannot be read: {what}")]
    Unreadable {
        /// What the parser said.
        what: String,
    },
    /// A value is no day or no amount.
    #[error("the price list has a row for {model} whose {field} is not one: {value}")]
    Invalid {
        /// First model of the row.
        model: String,
        /// Name of the field.
        field: &'static str,
        /// What it says.
        value: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    row: Vec<Written>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    provider: String,
    models: Vec<String>,
    from: String,
    #[serde(default)]
    over_prompt: u64,
    upto_prompt: Option<u64>,
    input: String,
    cached_input: Option<String>,
    cache_write_5m: Option<String>,
    cache_write_1h: Option<String>,
    output: String,
    seen: String,
    source: String,
}

impl PriceBook {
    /// Reads a list: `[[row]]` tables with amounts in US dollars per million tokens.
    ///
    /// # Errors
    /// [`PriceError`] names the row.
    pub fn parse(toml: &str) -> Result<Self, PriceError> {
        let file: File = toml::from_str(toml).map_err(|error| PriceError::Unreadable {
            what: error.to_string(),
        })?;
        let rows = file.row.into_iter().map(row).collect::<Result<_, _>>()?;
        Ok(Self { rows })
    }
}

fn row(written: Written) -> Result<PriceRow, PriceError> {
    let model = written.models.first().cloned().unwrap_or_default();
    let invalid = |field: &'static str, value: &str| PriceError::Invalid {
        model: model.clone(),
        field,
        value: value.to_owned(),
    };
    let day = |field, text: &str| {
        Date::parse(text, format_description!("[year]-[month]-[day]")).map_err(|_| invalid(field, text))
    };
    let price = |field, text: &str| amount(text).ok_or_else(|| invalid(field, text));
    let optional = |field, text: &Option<String>| text.as_deref().map(|text| price(field, text)).transpose();
    if written.models.is_empty() {
        return Err(invalid("models", "[]"));
    }
    Ok(PriceRow {
        from: day("from", &written.from)?,
        seen: day("seen", &written.seen)?,
        input: price("input", &written.input)?,
        cached_input: optional("cached_input", &written.cached_input)?,
        cache_write_5m: optional("cache_write_5m", &written.cache_write_5m)?,
        cache_write_1h: optional("cache_write_1h", &written.cache_write_1h)?,
        output: price("output", &written.output)?,
        provider: written.provider,
        models: written.models,
        over_prompt: written.over_prompt,
        upto_prompt: written.upto_prompt,
        source: written.source,
    })
}

/// `12.5` dollars as millionths of a dollar; at most six decimals.
fn amount(text: &str) -> Option<Price> {
    const DECIMALS: usize = 6;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(fraction) || fraction.len() > DECIMALS {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let fraction: u64 = format!("{fraction:0<DECIMALS$}").parse().ok()?;
    Some(Price(whole.checked_mul(1_000_000)?.checked_add(fraction)?))
}
