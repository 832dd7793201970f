//! A site's own index below `/.well-known`, in the three forms that are deployed: entries with a digest, entries with a
//! package, and lists of files without integrity.

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use steward_base::hash::sha256_hex;
use steward_skill_scanner::Tree;
use url::Url;

use super::wire::{Wire, digest, id, incomplete, list, no_reference, not_understood, same_as_resolved, text, tree_of};
use crate::archive::{Limits, Selection};
use crate::policy::Trust;
use crate::source::{Found, Pins, Resolved, Source, SourceError};

const NAME: &str = "well-known";
const SCHEMES: [&str; 2] = ["https", "http"];

/// Any site with an index. A skill is `https://site/path#name`.
#[derive(Debug)]
pub struct WellKnown {
    wire: Wire,
}

/// An entry of an index and where the index stands.
struct Entry {
    index: Url,
    value: Value,
}

impl WellKnown {
    pub(crate) fn new(wire: Wire) -> Self {
        Self { wire }
    }

    /// Places where an index may stand, nearest first.
    fn candidates(base: &Url) -> Vec<Url> {
        let mut found = Vec::new();
        let nearest = format!("{}/", base.path().trim_end_matches('/'));
        for folder in [nearest.as_str(), "/"] {
            for kind in ["agent-skills", "skills"] {
                if let Ok(url) = base.join(&format!("{folder}.well-known/{kind}/index.json"))
                    && !found.contains(&url)
                {
                    found.push(url);
                }
            }
        }
        found.sort_by_key(|url| url.path().contains("/.well-known/skills/"));
        found
    }

    async fn index(&self, base: &Url) -> Result<(Url, Value), SourceError> {
        for url in Self::candidates(base) {
            match self.wire.json(NAME, base.as_str(), url.clone()).await {
                Ok(value) => return Ok((url, value)),
                Err(SourceError::Gone { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Err(SourceError::Gone {
            reference: base.to_string(),
        })
    }

    async fn entry(&self, reference: &str) -> Result<Entry, SourceError> {
        let (base, name) = parse(reference)?;
        let (index, value) = self.index(&base).await?;
        let rows = list(NAME, &value, "skills")?;
        let found: Vec<&Value> = match &name {
            Some(name) => rows.iter().filter(|row| text(row, "name") == *name).collect(),
            None => rows.iter().collect(),
        };
        match found.as_slice() {
            [] => Err(SourceError::Gone {
                reference: reference.to_owned(),
            }),
            [only] => Ok(Entry {
                index,
                value: (*only).clone(),
            }),
            _ => Err(SourceError::Ambiguous {
                reference: reference.to_owned(),
                candidates: found
                    .iter()
                    .map(|row| format!("{base}#{}", text(row, "name")))
                    .collect(),
            }),
        }
    }

    /// The content of an entry, held against every digest that it states.
    async fn content(&self, reference: &str, entry: &Entry) -> Result<Tree, SourceError> {
        let join = |path: &str| {
            entry
                .index
                .join(path)
                .map_err(|error| not_understood(NAME, error.to_string()))
        };
        let value = &entry.value;
        let package = value.get("package").unwrap_or(value);
        if let Some(address) = id(package, "url") {
            let stated = id(package, "digest").ok_or_else(|| not_understood(NAME, "an address without a digest"))?;
            let bytes = self.wire.bytes(NAME, reference, join(&address)?).await?;
            if digest(&bytes) != stated.to_ascii_lowercase() {
                return Err(incomplete(&address, "is not what its digest says"));
            }
            if text(value, "type") == "skill-md" {
                return tree_of([("SKILL.md".to_owned(), bytes)]);
            }
            return self.wire.unpack(&bytes, Selection::default(), &Limits::default());
        }
        let name = text(value, "name");
        let mut files = Vec::new();
        let mut lines = Vec::new();
        for file in list(NAME, value, "files")?.iter().take(Limits::default().entries) {
            let path = file.as_str().map(str::to_owned).or_else(|| id(file, "path"));
            let path = path.ok_or_else(|| not_understood(NAME, "a file without a path"))?;
            if path.starts_with('/') || path.contains("..") || path.contains(':') {
                return Err(incomplete(&path, "leads out of the skill"));
            }
            let bytes = match self.wire.bytes(NAME, &path, join(&format!("{name}/{path}"))?).await {
                Err(SourceError::Gone { .. }) => return Err(incomplete(&path, "is listed and was not delivered")),
                other => other?,
            };
            if let Some(stated) = id(file, "digest")
                && digest(&bytes) != stated.to_ascii_lowercase()
            {
                return Err(incomplete(&path, "is not what its digest says"));
            }
            lines.push(format!("{path}\0{}\n", sha256_hex(&bytes)));
            files.push((path, bytes));
        }
        if let Some(stated) = id(value, "digest") {
            lines.sort();
            let whole = format!("sha256:{}", hex::encode(Sha256::digest(lines.concat())));
            if whole != stated.to_ascii_lowercase() {
                return Err(incomplete(&name, "is not what its digest says"));
            }
        }
        tree_of(files)
    }
}

fn parse(reference: &str) -> Result<(Url, Option<String>), SourceError> {
    let wrong = || no_reference(NAME, reference, "write https://site#name");
    let mut url = Url::parse(reference).map_err(|_| wrong())?;
    if !SCHEMES.contains(&url.scheme()) {
        return Err(wrong());
    }
    let name = url.fragment().map(str::to_owned).filter(|name| !name.is_empty());
    url.set_fragment(None);
    url.set_query(None);
    Ok((url, name))
}

#[async_trait::async_trait]
impl Source for WellKnown {
    fn name(&self) -> &'static str {
        NAME
    }

    fn claims(&self, reference: &str) -> bool {
        parse(reference).is_ok_and(|(url, _)| !url.path().to_ascii_lowercase().ends_with(".md"))
    }

    /// A site is searched when the query is its address.
    async fn search(&self, query: &str, limit: usize) -> Result<Vec<Found>, SourceError> {
        let Ok((base, _)) = parse(query.trim()) else {
            return Ok(Vec::new());
        };
        let (_, value) = self.index(&base).await?;
        let rows = list(NAME, &value, "skills")?;
        Ok(rows
            .iter()
            .take(limit)
            .map(|row| Found {
                source: NAME.to_owned(),
                reference: format!("{base}#{}", text(row, "name")),
                name: text(row, "name"),
                description: text(row, "description"),
                trust: Trust::Community,
                installable: true,
                installs: None,
            })
            .collect())
    }

    async fn resolve(&self, reference: &str) -> Result<Resolved, SourceError> {
        let entry = self.entry(reference).await?;
        let tree = self.content(reference, &entry).await?;
        let integrity = entry.value.get("digest").is_some() || entry.value.get("package").is_some();
        Ok(Resolved {
            source: NAME.to_owned(),
            reference: reference.to_owned(),
            name: text(&entry.value, "name"),
            revision: format!("sha256:{}", tree.digest()),
            pins: Pins {
                owner: entry.index.host_str().map(str::to_owned),
                repository: None,
            },
            trust: Trust::Community,
            published_at: None,
            warnings: if integrity {
                Vec::new()
            } else {
                vec!["the site states no digest".to_owned()]
            },
            locator: reference.to_owned(),
        })
    }

    async fn fetch(&self, resolved: &Resolved) -> Result<Tree, SourceError> {
        let entry = self.entry(&resolved.locator).await?;
        same_as_resolved(self.content(&resolved.locator, &entry).await?, &resolved.revision)
    }
}
