//! browse.sh: skills of one file each, for single sites. It states no digest, so ours is the revision.

use serde_json::Value;
use steward_skill_scanner::Tree;
use url::Url;

use super::wire::{Wire, address, id, list, matches, no_reference, not_understood, same_as_resolved, text, tree_of};
use crate::policy::Trust;
use crate::source::{Found, Pins, Resolved, Source, SourceError};

const NAME: &str = "browse.sh";

/// browse.sh. A skill is its slug, `host/name-id`.
#[derive(Debug)]
pub struct BrowseSh {
    wire: Wire,
    base: String,
}

impl BrowseSh {
    pub(crate) fn new(wire: Wire, base: &str) -> Self {
        Self {
            wire,
            base: base.to_owned(),
        }
    }

    async fn page(&self, reference: &str) -> Result<(String, Tree), SourceError> {
        let mut segments = vec!["api", "skills"];
        let parts: Vec<&str> = reference.split('/').collect();
        if parts.iter().any(|part| part.is_empty() || *part == "..") {
            return Err(no_reference(NAME, reference, "write the slug that a search shows"));
        }
        segments.extend(&parts);
        let url = address(NAME, &self.base, &segments, &[])?;
        let value = self.wire.json(NAME, reference, url.clone()).await?;
        let file = id(&value, "skillMdUrl").ok_or_else(|| not_understood(NAME, "it names no file"))?;
        let file = url
            .join(&file)
            .map_err(|error| not_understood(NAME, error.to_string()))?;
        let tree = self.file(reference, file.clone()).await?;
        Ok((file.to_string(), tree))
    }

    async fn file(&self, reference: &str, url: Url) -> Result<Tree, SourceError> {
        let bytes = self.wire.bytes(NAME, reference, url).await?;
        tree_of([("SKILL.md".to_owned(), bytes)])
    }
}

#[async_trait::async_trait]
impl Source for BrowseSh {
    fn name(&self) -> &'static str {
        NAME
    }

    fn claims(&self, _reference: &str) -> bool {
        false
    }

    async fn search(&self, query: &str, limit: usize) -> Result<Vec<Found>, SourceError> {
        let url = address(NAME, &self.base, &["api", "skills"], &[])?;
        let value = self.wire.json(NAME, query, url).await?;
        let rows = list(NAME, &value, "skills")?;
        Ok(rows
            .iter()
            .filter_map(|row| {
                let slug = id(row, "slug")?;
                let (name, description) = (text(row, "name"), text(row, "description"));
                matches(query, &[&slug, &name, &description, &text(row, "title")]).then(|| Found {
                    source: NAME.to_owned(),
                    reference: slug,
                    name,
                    description,
                    trust: Trust::Community,
                    installable: true,
                    // Missing counts are written as zero.
                    installs: row
                        .get("installCount")
                        .and_then(Value::as_u64)
                        .filter(|count| *count > 0),
                })
            })
            .take(limit)
            .collect())
    }

    async fn resolve(&self, reference: &str) -> Result<Resolved, SourceError> {
        let (locator, tree) = self.page(reference).await?;
        Ok(Resolved {
            source: NAME.to_owned(),
            reference: reference.to_owned(),
            name: reference.rsplit('/').next().unwrap_or(reference).to_owned(),
            revision: format!("sha256:{}", tree.digest()),
            pins: Pins::default(),
            trust: Trust::Community,
            published_at: None,
            warnings: Vec::new(),
            locator,
        })
    }

    async fn fetch(&self, resolved: &Resolved) -> Result<Tree, SourceError> {
        let url = Url::parse(&resolved.locator).map_err(|error| not_understood(NAME, error.to_string()))?;
        same_as_resolved(self.file(&resolved.reference, url).await?, &resolved.revision)
    }
}
