//! LobeHub's market: skills with versions, each a zip whose files are listed with size and hash.

use serde_json::Value;
use steward_base::hash::sha256_hex;
use steward_skill_scanner::Tree;

use super::wire::{Wire, address, id, incomplete, list, no_reference, text, time};
use crate::archive::{Limits, Selection};
use crate::policy::Trust;
use crate::source::{Found, Pins, Resolved, Source, SourceError};

const NAME: &str = "lobehub";

/// LobeHub. A skill is its identifier, optionally with `@version`.
#[derive(Debug)]
pub struct LobeHub {
    wire: Wire,
    base: String,
}

impl LobeHub {
    pub(crate) fn new(wire: Wire, base: &str) -> Self {
        Self {
            wire,
            base: base.to_owned(),
        }
    }

    async fn detail(&self, reference: &str) -> Result<(String, Value), SourceError> {
        let (identifier, version) = match reference.rsplit_once('@') {
            Some((identifier, version)) => (identifier, Some(version)),
            None => (reference, None),
        };
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        if identifier.is_empty() || !identifier.bytes().all(plain) {
            return Err(no_reference(
                NAME,
                reference,
                "write the identifier that a search shows",
            ));
        }
        let query: Vec<(&str, &str)> = version.map(|version| ("version", version)).into_iter().collect();
        let url = address(NAME, &self.base, &["api", "v1", "skills", identifier], &query)?;
        let value = self.wire.json(NAME, reference, url).await?;
        Ok((identifier.to_owned(), value))
    }
}

#[async_trait::async_trait]
impl Source for LobeHub {
    fn name(&self) -> &'static str {
        NAME
    }

    fn claims(&self, _reference: &str) -> bool {
        false
    }

    async fn search(&self, query: &str, limit: usize) -> Result<Vec<Found>, SourceError> {
        let size = limit.to_string();
        let url = address(
            NAME,
            &self.base,
            &["api", "v1", "skills"],
            &[("q", query), ("page", "1"), ("pageSize", &size)],
        )?;
        let value = self.wire.json(NAME, query, url).await?;
        let rows = list(NAME, &value, "items")?;
        Ok(rows
            .iter()
            .filter_map(|row| {
                Some(Found {
                    source: NAME.to_owned(),
                    reference: id(row, "identifier")?,
                    name: text(row, "name"),
                    description: text(row, "description"),
                    trust: Trust::Community,
                    installable: true,
                    installs: row.get("installCount").and_then(Value::as_u64),
                })
            })
            .take(limit)
            .collect())
    }

    async fn resolve(&self, reference: &str) -> Result<Resolved, SourceError> {
        let (identifier, value) = self.detail(reference).await?;
        let version = id(&value, "version").ok_or_else(|| SourceError::Gone {
            reference: reference.to_owned(),
        })?;
        let updated = text(&value, "updatedAt");
        Ok(Resolved {
            source: NAME.to_owned(),
            reference: reference.to_owned(),
            name: text(&value, "name"),
            pins: Pins {
                owner: value.get("author").and_then(|author| id(author, "id")),
                repository: value
                    .pointer("/manifest/repository")
                    .and_then(Value::as_str)
                    .map(str::to_owned),
            },
            trust: Trust::Community,
            published_at: time(&updated),
            warnings: Vec::new(),
            locator: format!("{identifier}@{version}"),
            revision: version,
        })
    }

    async fn fetch(&self, resolved: &Resolved) -> Result<Tree, SourceError> {
        let (identifier, value) = self.detail(&resolved.locator).await?;
        let query = [("version", resolved.revision.as_str())];
        let url = address(
            NAME,
            &self.base,
            &["api", "v1", "skills", &identifier, "download"],
            &query,
        )?;
        let bytes = self.wire.bytes(NAME, &resolved.reference, url).await?;
        let tree = self.wire.unpack(&bytes, Selection::default(), &Limits::default())?;
        let listed = value.get("resources").and_then(Value::as_object);
        for (path, stated) in listed.into_iter().flatten() {
            let Some(file) = tree.get(path) else {
                return Err(incomplete(path, "is listed and was not delivered"));
            };
            let size = stated.get("size").and_then(Value::as_u64);
            let hash = id(stated, "fileHash").filter(|hash| hash.len() == 64);
            if size.is_some_and(|size| size != file.bytes.len() as u64)
                || hash.is_some_and(|hash| hash != sha256_hex(&file.bytes))
            {
                return Err(incomplete(path, "is not what the market lists"));
            }
        }
        Ok(tree)
    }
}
