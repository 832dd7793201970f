//! By what the signatures of skills are verified: the section `skills.hub.signatures`. The root is read once, at start; it is
//! as old as its file, and nothing asks Sigstore for a newer one.

use std::fs;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use steward_runtime::{Problem, StartError};
use steward_skill_hub::provenance::{Pattern, Publisher, Root, SigningPolicy};

use super::config::SOURCES;

/// By what signatures are verified, and whose are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SignatureConfig {
    /// A `trusted_root.json` of Sigstore, whose authorities and logs are trusted. Empty for none: then no signature is
    /// verified.
    pub trusted_root: PathBuf,
    /// Who signs what.
    pub publishers: Vec<PublisherConfig>,
}

/// Who signs the skills of a source, or of an owner there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PublisherConfig {
    /// The source, for example `github`; empty for any.
    pub source: String,
    /// What the skills are called there, for example `acme/*`; empty for all of the source.
    pub reference: String,
    /// Who vouches for the identity, for example `https://token.actions.githubusercontent.com`.
    pub issuer: String,
    /// The identity in the certificate; may end in `/*` or `@*`.
    pub subject: String,
    /// Whether skills of these references are not installed unless a publisher of theirs signed them.
    pub required: bool,
}

impl SignatureConfig {
    /// Everything that is wrong with the settings; whether the root can be read is told at start.
    pub(crate) fn validate(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let root = &self.trusted_root;
        if !root.as_os_str().is_empty() && !root.is_absolute() {
            problems.push(Problem::new(
                "hub.signatures.trusted_root",
                "must be an absolute path, or empty",
            ));
        }
        if root.as_os_str().is_empty() && !self.publishers.is_empty() {
            let text = "publishers are known by a root, and there is none";
            problems.push(Problem::new("hub.signatures.publishers", text));
        }
        for (index, publisher) in self.publishers.iter().enumerate() {
            if let Some(text) = publisher.problem() {
                problems.push(Problem::new(format!("hub.signatures.publishers[{index}]"), text));
            }
        }
        problems
    }

    /// The policy, with the root read from its file.
    pub(crate) fn policy(&self) -> Result<SigningPolicy, StartError> {
        let path = &self.trusted_root;
        let root = if path.as_os_str().is_empty() {
            None
        } else {
            let what = || format!("read the root for signatures in {}", path.display());
            let text = fs::read_to_string(path).map_err(|error| StartError::new(what(), error))?;
            Some(Root::parse(&text).map_err(|error| StartError::new(what(), error))?)
        };
        Ok(SigningPolicy {
            root,
            publishers: self.publishers.iter().filter_map(PublisherConfig::publisher).collect(),
        })
    }
}

impl PublisherConfig {
    fn problem(&self) -> Option<&'static str> {
        let is_source = self.source.is_empty() || SOURCES.contains(&self.source.as_str());
        let is_pattern = self.reference.is_empty() || Pattern::new(&self.reference).is_some();
        [
            (!is_source, "has a source that there is not"),
            (
                self.source.is_empty() && self.reference.is_empty(),
                "must have a source or a reference",
            ),
            (
                !is_pattern,
                "has a reference with a * that does not stand behind / or @ at its end",
            ),
            (self.issuer.is_empty(), "must have an issuer"),
            (
                Pattern::new(&self.subject).is_none(),
                "must have a subject, with a * only behind / or @ at its end",
            ),
        ]
        .into_iter()
        .find_map(|(wrong, text)| wrong.then_some(text))
    }

    fn publisher(&self) -> Option<Publisher> {
        Some(Publisher {
            source: (!self.source.is_empty()).then(|| self.source.clone()),
            reference: Pattern::new(&self.reference),
            issuer: self.issuer.clone(),
            subject: Pattern::new(&self.subject)?,
            required: self.required,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acme() -> PublisherConfig {
        PublisherConfig {
            source: "github".to_owned(),
            reference: "acme/*".to_owned(),
            issuer: "https://issuer.example".to_owned(),
            subject: "https://git.example/acme/release.yml@*".to_owned(),
            required: true,
        }
    }

    #[test]
    fn every_wrong_publisher_is_reported() {
        let wrong = |change: fn(&mut PublisherConfig)| {
            let mut publisher = acme();
            change(&mut publisher);
            publisher
        };
        let config = SignatureConfig {
            trusted_root: "root.json".into(),
            publishers: vec![
                acme(),
                wrong(|publisher| publisher.source = "nowhere".to_owned()),
                wrong(|publisher| publisher.reference = "acme*".to_owned()),
                wrong(|publisher| publisher.issuer.clear()),
                wrong(|publisher| publisher.subject = "*".to_owned()),
                wrong(|publisher| {
                    publisher.source.clear();
                    publisher.reference.clear();
                }),
            ],
        };
        let paths: Vec<String> = config.validate().into_iter().map(|problem| problem.path).collect();
        let mut expected = vec!["hub.signatures.trusted_root".to_owned()];
        expected.extend((1..6).map(|index| format!("hub.signatures.publishers[{index}]")));
        assert_eq!(paths, expected);
        let rootless = SignatureConfig {
            publishers: vec![acme()],
            ..SignatureConfig::default()
        };
        assert_eq!(rootless.validate().len(), 1, "whom nobody can know");
    }

    #[test]
    fn a_root_that_cannot_be_read_stops_the_start_and_none_verifies_nothing() {
        let none = SignatureConfig::default().policy().unwrap();
        assert!(none.root.is_none() && none.publishers.is_empty());
        let folder = steward_testkit::TempDir::new("signing");
        let path = folder.path().join("trusted_root.json");
        let config = SignatureConfig {
            trusted_root: path.clone(),
            publishers: vec![acme()],
        };
        assert!(config.policy().is_err(), "it is not there");
        fs::write(&path, "{}").unwrap();
        assert!(config.policy().is_err(), "it is no root");
    }
}
