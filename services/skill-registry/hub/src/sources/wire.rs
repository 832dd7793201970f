//! What all sources share: JSON answers with a budget, archives with a time limit, texts cut to size, names checked.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use steward_base::hash::sha256_hex;
use steward_base::{Clock, Timestamp};
use steward_fetch::{Answer, Fetch, Request};
use steward_skill_scanner::{File, Tree, path};
use url::Url;

use crate::archive::{self, Limits, Selection};
use crate::source::SourceError;

/// Largest JSON answer.
const JSON_BYTES: u64 = 16 << 20;
/// Largest archive or file.
const CONTENT_BYTES: u64 = 32 << 20;
/// Longest time to unpack an archive.
const UNPACK: Duration = Duration::from_secs(5);

/// The way out, as sources see it.
#[derive(Debug, Clone)]
pub(crate) struct Wire {
    fetch: Arc<dyn Fetch>,
    clock: Arc<dyn Clock>,
}

impl Wire {
    pub(crate) fn new(fetch: Arc<dyn Fetch>, clock: Arc<dyn Clock>) -> Self {
        Self { fetch, clock }
    }

    pub(crate) async fn ask(&self, request: Request) -> Result<Answer, SourceError> {
        Ok(self.fetch.fetch(request).await?)
    }

    /// A JSON answer; `Gone` for a missing page.
    pub(crate) async fn json(&self, source: &'static str, reference: &str, url: Url) -> Result<Value, SourceError> {
        let answer = self
            .ask(Request::get(url).accept("application/json").limit(JSON_BYTES))
            .await?;
        parsed(source, reference, &answer)
    }

    /// The bytes of a page, which must be there.
    pub(crate) async fn bytes(&self, source: &'static str, reference: &str, url: Url) -> Result<Vec<u8>, SourceError> {
        let answer = self.ask(Request::get(url).limit(CONTENT_BYTES)).await?;
        checked(source, reference, &answer)?;
        Ok(answer.body.to_vec())
    }

    /// An archive's content.
    pub(crate) fn unpack(&self, bytes: &[u8], selection: Selection<'_>, limits: &Limits) -> Result<Tree, SourceError> {
        let end = self.clock.now().plus(UNPACK);
        Ok(archive::unpack(bytes, selection, limits, &|| self.clock.now() < end)?)
    }
}

pub(crate) fn checked(source: &'static str, reference: &str, answer: &Answer) -> Result<(), SourceError> {
    match answer.status {
        200..=299 => Ok(()),
        404 => Err(SourceError::Gone {
            reference: reference.to_owned(),
        }),
        410 | 451 => Err(SourceError::Withheld {
            reference: reference.to_owned(),
            reason: format!("status {}", answer.status),
        }),
        status => Err(not_understood(source, format!("status {status}"))),
    }
}

pub(crate) fn parsed(source: &'static str, reference: &str, answer: &Answer) -> Result<Value, SourceError> {
    checked(source, reference, answer)?;
    serde_json::from_slice(&answer.body).map_err(|error| not_understood(source, format!("it is no JSON: {error}")))
}

pub(crate) fn not_understood(source_name: &'static str, problem: impl Into<String>) -> SourceError {
    SourceError::Answer {
        source_name,
        problem: problem.into(),
    }
}

pub(crate) fn no_reference(source_name: &'static str, reference: &str, problem: &'static str) -> SourceError {
    SourceError::Reference {
        source_name,
        reference: reference.to_owned(),
        problem,
    }
}

pub(crate) fn incomplete(file: &str, problem: impl Into<String>) -> SourceError {
    SourceError::Incomplete {
        file: file.to_owned(),
        problem: problem.into(),
    }
}

/// `base` with these path segments, each escaped, and these query pairs.
pub(crate) fn address(
    source: &'static str,
    base: &str,
    segments: &[&str],
    query: &[(&str, &str)],
) -> Result<Url, SourceError> {
    let mut url =
        Url::parse(base).map_err(|error| not_understood(source, format!("its address is set to {base:?}: {error}")))?;
    match url.path_segments_mut() {
        Ok(mut path) => {
            path.pop_if_empty().extend(segments);
        }
        Err(()) => return Err(not_understood(source, format!("its address is set to {base:?}"))),
    }
    if !query.is_empty() {
        url.query_pairs_mut().extend_pairs(query);
    }
    Ok(url)
}

/// A text field, cut to a length that a list can show; empty if it is not there.
pub(crate) fn text(value: &Value, field: &str) -> String {
    value
        .get(field)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .chars()
        .take(1_024)
        .collect()
}

/// A text or a number as text.
pub(crate) fn id(value: &Value, field: &str) -> Option<String> {
    match value.get(field)? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The items of a list; nothing else than a list is understood.
pub(crate) fn list<'v>(source: &'static str, value: &'v Value, field: &str) -> Result<&'v Vec<Value>, SourceError> {
    value
        .get(field)
        .and_then(Value::as_array)
        .ok_or_else(|| not_understood(source, format!("it has no list `{field}`")))
}

/// Whether a row matches a query: every word occurs somewhere.
pub(crate) fn matches(query: &str, texts: &[&str]) -> bool {
    let texts: Vec<String> = texts.iter().map(|text| text.to_lowercase()).collect();
    query.split_whitespace().all(|word| {
        let word = word.to_lowercase();
        texts.iter().any(|text| text.contains(&word))
    })
}

/// A time as the web writes it.
pub(crate) fn time(text: &str) -> Option<Timestamp> {
    let parsed = time::OffsetDateTime::parse(text, &time::format_description::well_known::Rfc3339).ok()?;
    Some(Timestamp::from_secs(parsed.unix_timestamp()))
}

/// A tree of files that came one by one. Refuses paths that lead out and files that come twice.
pub(crate) fn tree_of(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Result<Tree, SourceError> {
    let mut tree = Tree::new();
    for (name, bytes) in files {
        if let Some(problem) = path::problem(&name, Limits::default().depth) {
            return Err(incomplete(&name, problem));
        }
        if tree.insert(name.clone(), File::plain(bytes)).is_some() {
            return Err(incomplete(&name, "comes twice"));
        }
    }
    Ok(tree)
}

/// Holds content against the digest that it was resolved to.
pub(crate) fn same_as_resolved(tree: Tree, revision: &str) -> Result<Tree, SourceError> {
    if format!("sha256:{}", tree.digest()) == revision {
        Ok(tree)
    } else {
        Err(incomplete("SKILL.md", "changed while it was fetched"))
    }
}

/// `sha256:` and the digest of bytes.
pub(crate) fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", sha256_hex(bytes))
}
