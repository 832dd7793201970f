//! The optional skills that Steward ships: nothing is fetched, and their digest is their revision.

use steward_skill_scanner::{Tree, header};

use super::wire::matches;
use crate::policy::Trust;
use crate::source::{Found, Pins, Resolved, Source, SourceError};

const NAME: &str = "official";

/// Skills that are part of the program.
#[derive(Debug)]
pub struct Official {
    skills: Vec<(String, Tree)>,
}

impl Official {
    /// These skills by name.
    pub fn new(skills: Vec<(String, Tree)>) -> Self {
        Self { skills }
    }

    fn get(&self, reference: &str) -> Result<&Tree, SourceError> {
        let found = self.skills.iter().find(|(name, _)| name == reference);
        found.map(|(_, tree)| tree).ok_or_else(|| SourceError::Gone {
            reference: reference.to_owned(),
        })
    }
}

#[async_trait::async_trait]
impl Source for Official {
    fn name(&self) -> &'static str {
        NAME
    }

    fn claims(&self, reference: &str) -> bool {
        self.skills.iter().any(|(name, _)| name == reference)
    }

    async fn search(&self, query: &str, limit: usize) -> Result<Vec<Found>, SourceError> {
        let described = self.skills.iter().map(|(name, tree)| {
            let text = tree
                .get("SKILL.md")
                .and_then(|file| std::str::from_utf8(&file.bytes).ok());
            let description = text
                .and_then(|text| header::parse(text).ok())
                .map_or(String::new(), |header| header.description);
            (name, description)
        });
        Ok(described
            .filter(|(name, description)| matches(query, &[name, description]))
            .take(limit)
            .map(|(name, description)| Found {
                source: NAME.to_owned(),
                reference: name.clone(),
                name: name.clone(),
                description,
                trust: Trust::Builtin,
                installable: true,
                installs: None,
            })
            .collect())
    }

    async fn resolve(&self, reference: &str) -> Result<Resolved, SourceError> {
        let tree = self.get(reference)?;
        Ok(Resolved {
            source: NAME.to_owned(),
            reference: reference.to_owned(),
            name: reference.to_owned(),
            revision: format!("sha256:{}", tree.digest()),
            pins: Pins::default(),
            trust: Trust::Builtin,
            published_at: None,
            warnings: Vec::new(),
            locator: reference.to_owned(),
        })
    }

    async fn fetch(&self, resolved: &Resolved) -> Result<Tree, SourceError> {
        Ok(self.get(&resolved.locator)?.clone())
    }
}
