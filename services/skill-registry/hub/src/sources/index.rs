//! A central index: one JSON file that lists skills of many repositories, each with the id that its repository had when
//! it was listed. The skills themselves come from the repositories.

use std::sync::Arc;

use serde_json::Value;
use steward_skill_scanner::Tree;
use url::Url;

use super::github::GitHub;
use super::wire::{Wire, id, list, matches, not_understood, text};
use crate::source::{Found, Resolved, Source, SourceError};

const NAME: &str = "index";

/// An index file.
#[derive(Debug)]
pub struct Index {
    wire: Wire,
    address: String,
    github: Arc<GitHub>,
}

impl Index {
    pub(crate) fn new(wire: Wire, address: &str, github: Arc<GitHub>) -> Self {
        Self {
            wire,
            address: address.to_owned(),
            github,
        }
    }

    async fn rows(&self) -> Result<Vec<Value>, SourceError> {
        let url = Url::parse(&self.address).map_err(|error| not_understood(NAME, error.to_string()))?;
        // An index that is not there says nothing of its skills.
        let value = match self.wire.json(NAME, &self.address, url).await {
            Err(SourceError::Gone { .. }) => return Err(not_understood(NAME, "its index answers 404 (not found)")),
            other => other?,
        };
        if let Some(rows) = value.as_array() {
            return Ok(rows.clone());
        }
        Ok(list(NAME, &value, "skills")?.clone())
    }

    fn reference(row: &Value) -> String {
        let identifier = text(row, "identifier");
        if identifier.is_empty() {
            format!("{}/{}", text(row, "repo"), text(row, "path"))
                .trim_matches('/')
                .to_owned()
        } else {
            identifier
        }
    }
}

#[async_trait::async_trait]
impl Source for Index {
    fn name(&self) -> &'static str {
        NAME
    }

    fn claims(&self, _reference: &str) -> bool {
        false
    }

    async fn search(&self, query: &str, limit: usize) -> Result<Vec<Found>, SourceError> {
        let rows = self.rows().await?;
        let mut found = Vec::new();
        for row in &rows {
            let (name, description, reference) = (text(row, "name"), text(row, "description"), Self::reference(row));
            if found.len() >= limit || name.is_empty() || !matches(query, &[&name, &description, &reference]) {
                continue;
            }
            let installable = self.github.claims(&reference);
            found.push(Found {
                source: NAME.to_owned(),
                trust: self.github.trust_in(&reference),
                reference,
                name,
                description,
                installable,
                installs: row.get("installs").and_then(Value::as_u64),
            });
        }
        Ok(found)
    }

    async fn resolve(&self, reference: &str) -> Result<Resolved, SourceError> {
        let rows = self.rows().await?;
        let row = rows
            .iter()
            .find(|row| Self::reference(row) == reference)
            .ok_or_else(|| SourceError::Gone {
                reference: reference.to_owned(),
            })?;
        let mut resolved = self.github.resolve(reference).await?;
        if let Some(listed) = id(row, "resolved_github_id")
            && resolved.pins.repository.as_ref() != Some(&listed)
        {
            return Err(SourceError::Withheld {
                reference: reference.to_owned(),
                reason: "the repository is not the one that was listed: its id differs".to_owned(),
            });
        }
        NAME.clone_into(&mut resolved.source);
        reference.clone_into(&mut resolved.reference);
        Ok(resolved)
    }

    async fn fetch(&self, resolved: &Resolved) -> Result<Tree, SourceError> {
        self.github.fetch(resolved).await
    }
}
