//! Claude plugin marketplaces: a file in a repository that lists plugins, of which only the skills are of interest. Hooks,
//! commands and servers of a plugin are never taken.

use std::sync::Arc;

use serde_json::Value;
use steward_skill_scanner::Tree;

use super::Settings;
use super::github::{GitHub, Place};
use super::wire::{matches, not_understood, text};
use crate::source::{Found, Resolved, Source, SourceError};

const NAME: &str = "claude-marketplace";
const FILE: &str = ".claude-plugin/marketplace.json";

/// The marketplaces that are searched.
#[derive(Debug)]
pub struct Marketplaces {
    repositories: Vec<String>,
    github: Arc<GitHub>,
}

impl Marketplaces {
    pub(crate) fn new(settings: &Settings, github: Arc<GitHub>) -> Self {
        Self {
            repositories: settings.marketplaces.clone(),
            github,
        }
    }

    /// Folders of the skills of one marketplace, as references to repositories, with what the plugin says of itself.
    async fn skills(&self, repository: &str) -> Result<Vec<(String, String)>, SourceError> {
        let place = Place::parse(repository)?;
        let bytes = self.github.file(&place, FILE).await?;
        let value: Value = serde_json::from_slice(&bytes).map_err(|error| not_understood(NAME, error.to_string()))?;
        let root = value
            .pointer("/metadata/pluginRoot")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let plugins = value
            .get("plugins")
            .and_then(Value::as_array)
            .ok_or_else(|| not_understood(NAME, "it lists no plugins"))?;
        let mut found = Vec::new();
        for plugin in plugins {
            let description = text(plugin, "description");
            let Some((target, base)) = target(&place, root, plugin) else {
                continue;
            };
            let listed = plugin.get("skills").and_then(Value::as_array);
            let folders: Vec<String> = match listed {
                Some(listed) => listed
                    .iter()
                    .filter_map(Value::as_str)
                    .filter_map(|path| joined(&base, path))
                    .collect(),
                None => self.below(&target, &base).await?,
            };
            for folder in folders {
                let at = target.at.as_ref().map(|at| format!("@{at}")).unwrap_or_default();
                found.push((
                    format!("{}/{}/{folder}{at}", target.owner, target.repository),
                    description.clone(),
                ));
            }
        }
        Ok(found)
    }

    /// Skills below `base/skills`, where a plugin lists none.
    async fn below(&self, place: &Place, base: &str) -> Result<Vec<String>, SourceError> {
        let prefix = joined(base, "skills").unwrap_or_default() + "/";
        let folders = self
            .github
            .skill_folders(place, place.at.as_deref().unwrap_or("HEAD"))
            .await?;
        Ok(folders
            .into_iter()
            .filter(|folder| folder.starts_with(&prefix))
            .collect())
    }
}

/// The repository that holds a plugin and its folder there; nothing for sources that are no repositories.
fn target(place: &Place, root: &str, plugin: &Value) -> Option<(Place, String)> {
    match plugin.get("source")? {
        Value::String(path) => {
            // Absolute paths and those that climb are refused.
            let base = joined(root, path)?;
            Some((place.clone(), base))
        }
        Value::Object(source) => {
            let field = |name: &str| source.get(name).and_then(Value::as_str).map(str::to_owned);
            let repository = match field("source").as_deref() {
                Some("github") => field("repo")?,
                Some("url" | "git-subdir") => field("url")?
                    .strip_prefix("https://github.com/")?
                    .trim_end_matches(".git")
                    .to_owned(),
                _ => return None,
            };
            let mut target = Place::parse(&repository).ok()?;
            target.at = field("sha").or_else(|| field("ref"));
            let base = joined("", &field("path").unwrap_or_default())?;
            Some((target, base))
        }
        _ => None,
    }
}

/// `base/path` without `./`; nothing if it climbs or is absolute.
fn joined(base: &str, path: &str) -> Option<String> {
    if path.starts_with('/') || base.starts_with('/') || path.contains('\\') {
        return None;
    }
    let parts: Vec<&str> = base
        .split('/')
        .chain(path.split('/'))
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    (!parts.contains(&"..")).then(|| parts.join("/"))
}

#[async_trait::async_trait]
impl Source for Marketplaces {
    fn name(&self) -> &'static str {
        NAME
    }

    fn claims(&self, _reference: &str) -> bool {
        false
    }

    async fn search(&self, query: &str, limit: usize) -> Result<Vec<Found>, SourceError> {
        let mut found = Vec::new();
        for repository in &self.repositories {
            for (reference, description) in self.skills(repository).await? {
                let path = reference.split('@').next().unwrap_or_default();
                let name = path.rsplit('/').next().unwrap_or_default().to_owned();
                if found.len() < limit && matches(query, &[&reference, &description]) {
                    found.push(Found {
                        source: NAME.to_owned(),
                        trust: self.github.trust_in(&reference),
                        reference,
                        name,
                        description,
                        installable: true,
                        installs: None,
                    });
                }
            }
        }
        Ok(found)
    }

    async fn resolve(&self, reference: &str) -> Result<Resolved, SourceError> {
        let mut resolved = self.github.resolve(reference).await?;
        NAME.clone_into(&mut resolved.source);
        Ok(resolved)
    }

    async fn fetch(&self, resolved: &Resolved) -> Result<Tree, SourceError> {
        self.github.fetch(resolved).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_plugins_stay_in_their_repository() {
        assert_eq!(joined("plugins", "./a/b").as_deref(), Some("plugins/a/b"));
        assert_eq!(joined("", "./").as_deref(), Some(""));
        for (base, path) in [("", "/etc"), ("a", "../../b"), ("", "a\\b"), ("/x", "a")] {
            assert_eq!(joined(base, path), None, "{base} {path}");
        }
    }
}
