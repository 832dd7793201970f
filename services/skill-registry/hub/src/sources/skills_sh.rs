//! skills.sh: a directory of skills that hands out whole folders with a digest over them.

use serde_json::Value;
use sha2::{Digest, Sha256};
use steward_skill_scanner::Tree;

use super::Settings;
use super::wire::{Wire, address, id, incomplete, list, no_reference, not_understood, text, tree_of};
use crate::policy::Trust;
use crate::source::{Found, Pins, Resolved, Source, SourceError};

const NAME: &str = "skills.sh";

/// skills.sh.
#[derive(Debug)]
pub struct SkillsSh {
    wire: Wire,
    base: String,
    audit: String,
}

impl SkillsSh {
    pub(crate) fn new(wire: Wire, settings: &Settings) -> Self {
        Self {
            wire,
            base: settings.skills_sh.clone(),
            audit: settings.skills_sh_audit.clone(),
        }
    }

    /// The files of a skill and the digest over them, which is computed and held against the one that is stated.
    async fn download(&self, reference: &str) -> Result<(Tree, String), SourceError> {
        let [owner, repository, slug] = parts(reference)?;
        let url = address(NAME, &self.base, &["api", "download", owner, repository, slug], &[])?;
        let value = self.wire.json(NAME, reference, url).await?;
        let mut files = Vec::new();
        for file in list(NAME, &value, "files")? {
            let (Some(path), Some(contents)) = (
                file.get("path").and_then(Value::as_str),
                file.get("contents").and_then(Value::as_str),
            ) else {
                return Err(not_understood(NAME, "a file has no path or no contents"));
            };
            files.push((path.to_owned(), contents.as_bytes().to_vec()));
        }
        let computed = digest(&files);
        if let Some(stated) = id(&value, "hash")
            && !stated.trim_start_matches("sha256:").eq_ignore_ascii_case(&computed)
        {
            return Err(incomplete(reference, "is not what its digest says"));
        }
        Ok((tree_of(files)?, computed))
    }

    /// What the partners of skills.sh found, for people; nothing if they do not answer.
    async fn warnings(&self, reference: &str) -> Vec<String> {
        let Ok([owner, repository, slug]) = parts(reference) else {
            return Vec::new();
        };
        if self.audit.is_empty() {
            return Vec::new();
        }
        let source = format!("{owner}/{repository}");
        let Ok(url) = address(NAME, &self.audit, &["audit"], &[("source", &source), ("skills", slug)]) else {
            return Vec::new();
        };
        let Ok(value) = self.wire.json(NAME, reference, url).await else {
            return vec!["the partners' audits could not be read".to_owned()];
        };
        let audits = value.get(slug).and_then(Value::as_object);
        audits
            .into_iter()
            .flatten()
            .filter_map(|(partner, audit)| {
                let risk = text(audit, "risk");
                let alerts = audit.get("alerts").and_then(Value::as_u64).unwrap_or(0);
                let calm = matches!(
                    risk.to_ascii_lowercase().as_str(),
                    "" | "low" | "none" | "safe" | "pass"
                );
                match (calm, alerts) {
                    (false, _) => Some(format!("{partner} rates it {risk}")),
                    (true, 1..) => Some(format!("{partner} has {alerts} alerts")),
                    (true, 0) => None,
                }
            })
            .collect()
    }
}

fn parts(reference: &str) -> Result<[&str; 3], SourceError> {
    let parts: Vec<&str> = reference.split('/').collect();
    match parts.as_slice() {
        [owner, repository, slug] if parts.iter().all(|part| !part.is_empty()) => Ok([owner, repository, slug]),
        _ => Err(no_reference(NAME, reference, "write owner/repository/skill")),
    }
}

fn digest(files: &[(String, Vec<u8>)]) -> String {
    let mut sorted: Vec<&(String, Vec<u8>)> = files.iter().collect();
    sorted.sort_by(|a, b| a.0.cmp(&b.0));
    let mut hasher = Sha256::new();
    for (path, contents) in sorted {
        hasher.update(path.as_bytes());
        hasher.update(contents);
    }
    hex::encode(hasher.finalize())
}

#[async_trait::async_trait]
impl Source for SkillsSh {
    fn name(&self) -> &'static str {
        NAME
    }

    fn claims(&self, _reference: &str) -> bool {
        false
    }

    async fn search(&self, query: &str, limit: usize) -> Result<Vec<Found>, SourceError> {
        let most = limit.to_string();
        let url = address(NAME, &self.base, &["api", "search"], &[("q", query), ("limit", &most)])?;
        let value = self.wire.json(NAME, query, url).await?;
        let rows = list(NAME, &value, "skills")?;
        Ok(rows
            .iter()
            .filter_map(|row| {
                let source = text(row, "source");
                let slug = id(row, "skillId").unwrap_or_else(|| text(row, "name"));
                let reference = format!("{source}/{slug}");
                (!source.is_empty() && !slug.is_empty()).then(|| Found {
                    source: NAME.to_owned(),
                    installable: parts(&reference).is_ok(),
                    reference,
                    name: text(row, "name"),
                    description: text(row, "description"),
                    trust: Trust::Community,
                    installs: row.get("installs").and_then(Value::as_u64),
                })
            })
            .take(limit)
            .collect())
    }

    async fn resolve(&self, reference: &str) -> Result<Resolved, SourceError> {
        let [_, _, slug] = parts(reference)?;
        let (_, digest) = self.download(reference).await?;
        Ok(Resolved {
            source: NAME.to_owned(),
            reference: reference.to_owned(),
            name: slug.to_owned(),
            revision: format!("sha256:{digest}"),
            pins: Pins::default(),
            trust: Trust::Community,
            published_at: None,
            warnings: self.warnings(reference).await,
            locator: reference.to_owned(),
        })
    }

    async fn fetch(&self, resolved: &Resolved) -> Result<Tree, SourceError> {
        let (tree, digest) = self.download(&resolved.locator).await?;
        if format!("sha256:{digest}") != resolved.revision {
            return Err(incomplete(&resolved.reference, "changed while it was fetched"));
        }
        Ok(tree)
    }
}
