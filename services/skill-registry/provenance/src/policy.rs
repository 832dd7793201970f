//! What the operator trusts: the root by which signatures are verified, and who is to sign what comes from where. And what
//! a tree's signatures come to by it.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sigstore_trust_root::TrustedRoot;
use sigstore_verify::Verifier;
use sigstore_verify::types::{LogId, LogKeyId};
use steward_base::Timestamp;
use steward_base::hash::sha256_parts;
use steward_skill_scanner::Tree;

use crate::outcome::{Flaw, Outcome, Signature};

/// A root in Sigstore's `trusted_root.json`: its authorities and logs. As old as the file: nothing is refreshed.
#[derive(Clone)]
pub struct Root {
    verifier: Arc<Verifier>,
    logs: Arc<[LogKeyId]>,
}

/// Why a root cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no trusted root: {problem}")]
pub struct RootError {
    /// What is wrong with it.
    pub problem: String,
}

impl RootError {
    fn of(problem: &(impl ToString + ?Sized)) -> Self {
        Self {
            problem: problem.to_string(),
        }
    }
}

impl Root {
    /// Reads a `trusted_root.json`. One without an authority, a log for signatures and one for certificates verifies
    /// nothing, and is an error.
    pub fn parse(json: &str) -> Result<Self, RootError> {
        let root = TrustedRoot::from_json(json).map_err(|error| RootError::of(&error))?;
        if root.certificate_authorities.is_empty() || root.tlogs.is_empty() || root.ctlogs.is_empty() {
            return Err(RootError::of("it lacks an authority or a log"));
        }
        let verifier = Verifier::new(&root).map_err(|error| RootError::of(&error))?;
        Ok(Self {
            verifier: Arc::new(verifier),
            logs: root.tlogs.into_iter().map(|log| log.log_id.key_id).collect(),
        })
    }

    pub(crate) fn verifier(&self) -> &Verifier {
        &self.verifier
    }

    pub(crate) fn knows(&self, log: &LogId) -> bool {
        self.logs.contains(&log.key_id)
    }
}

impl fmt::Debug for Root {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Root")
            .field("logs", &self.logs)
            .finish_non_exhaustive()
    }
}

/// A text, or every text that begins with it where it ends in `/*` or `@*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    /// A pattern, unless it has a `*` elsewhere: half of an owner's name is another owner's name.
    pub fn new(text: &str) -> Option<Self> {
        let fixed = match text.strip_suffix('*') {
            Some(fixed) => fixed.ends_with(['/', '@']).then_some(fixed)?,
            None => text,
        };
        (!fixed.is_empty() && !fixed.contains('*')).then(|| Self(text.to_owned()))
    }

    fn matches(&self, text: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(beginning) => text.len() > beginning.len() && text.starts_with(beginning),
            None => text == self.0,
        }
    }

    /// The same without regard to ASCII case: owners and repositories are found in any.
    fn matches_any_case(&self, text: &str) -> bool {
        Self(self.0.to_ascii_lowercase()).matches(&text.to_ascii_lowercase())
    }
}

/// Who signs the skills of a source, or of an owner there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publisher {
    /// The source, for example `github`; any if there is none.
    pub source: Option<String>,
    /// What the skills are called there, for example `NVIDIA/*`; all if there is none.
    pub reference: Option<Pattern>,
    /// Who vouches for the identity.
    pub issuer: String,
    /// The identity.
    pub subject: Pattern,
    /// Whether such a skill is not installed without the signature of one who is named for it.
    pub required: bool,
}

impl Publisher {
    fn publishes(&self, source: &str, reference: &str) -> bool {
        self.source.as_deref().is_none_or(|own| own == source)
            && self
                .reference
                .as_ref()
                .is_none_or(|pattern| pattern.matches_any_case(reference))
    }

    fn signed(&self, outcome: &Outcome) -> bool {
        matches!(outcome, Outcome::Verified { issuer, subject, .. }
            if *issuer == self.issuer && self.subject.matches(subject))
    }
}

/// By what signatures are verified, and whose count. By default nothing, so that nothing is verified.
#[derive(Debug, Clone, Default)]
pub struct SigningPolicy {
    /// The root.
    pub root: Option<Root>,
    /// The publishers.
    pub publishers: Arc<[Publisher]>,
}

impl SigningPolicy {
    /// What the signatures of a tree come to, for where it came from.
    pub fn judge(&self, source: &str, reference: &str, tree: &Tree, now: Timestamp) -> Provenance {
        let all = self.publishers.iter();
        let named: Vec<&Publisher> = all.filter(|publisher| publisher.publishes(source, reference)).collect();
        let signatures = crate::verify(tree, self.root.as_ref(), now).into_iter();
        Provenance {
            required: named.iter().any(|publisher| publisher.required),
            signatures: signatures
                .map(|signature| Signed {
                    by_publisher: named.iter().any(|publisher| publisher.signed(&signature.outcome)),
                    signature,
                })
                .collect(),
        }
    }
}

/// A signature, and whether it is by whom the operator named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signed {
    /// The signature.
    #[serde(flatten)]
    pub signature: Signature,
    /// Whether it holds and is by a publisher who is named for where the tree came from. One that holds and is by
    /// somebody else is shown, and is worth no more than none.
    pub by_publisher: bool,
}

/// What the signatures of a tree come to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Provenance {
    /// Each signature.
    pub signatures: Vec<Signed>,
    /// Whether a signature by a named publisher is asked for.
    pub required: bool,
}

/// Why a tree is not installed, whoever says so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Barrier {
    /// A signature that does not hold.
    #[error("the signature {file:?} is invalid: {why}")]
    Invalid {
        /// The signature.
        file: String,
        /// Why.
        why: Flaw,
    },
    /// No signature by whom the operator named.
    #[error("it is not signed by a publisher whose signature is required here")]
    Unsigned,
}

impl fmt::Display for Signed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Signature { file, outcome } = &self.signature;
        write!(formatter, "{file}: ")?;
        match outcome {
            Outcome::NotChecked => formatter.write_str("not checked"),
            Outcome::Verified { issuer, subject, .. } => {
                let whose = if self.by_publisher {
                    "its publisher"
                } else {
                    "nobody named here"
                };
                write!(formatter, "verified, by {subject} ({issuer}), {whose}")
            }
            Outcome::Invalid { why } => write!(formatter, "invalid, {why}"),
            Outcome::Unknown { why } => write!(formatter, "unknown, {why}"),
        }
    }
}

impl Provenance {
    /// Why the tree is not installed; nothing if its signatures do not stand in the way.
    pub fn barrier(&self) -> Option<Barrier> {
        let invalid = self
            .signatures
            .iter()
            .find_map(|signed| match &signed.signature.outcome {
                Outcome::Invalid { why } => Some(Barrier::Invalid {
                    file: signed.signature.file.clone(),
                    why: why.clone(),
                }),
                Outcome::NotChecked | Outcome::Verified { .. } | Outcome::Unknown { .. } => None,
            });
        invalid.or_else(|| (self.required && !self.is_by_publisher()).then_some(Barrier::Unsigned))
    }

    /// Whether a named publisher signed it.
    pub fn is_by_publisher(&self) -> bool {
        self.signatures.iter().any(|signed| signed.by_publisher)
    }

    /// What an approval is bound to, 64 hexadecimal characters: each signature, what it says and whose it is. Empty where
    /// there is no signature and none is required.
    pub fn digest(&self) -> String {
        if self.signatures.is_empty() && !self.required {
            return String::new();
        }
        let mut parts = vec![vec![u8::from(self.required)]];
        for Signed {
            signature,
            by_publisher,
        } in &self.signatures
        {
            parts.push(signature.file.clone().into_bytes());
            parts.push(signature.outcome.as_str().into());
            parts.push(vec![u8::from(*by_publisher)]);
            if let Outcome::Verified { issuer, subject, .. } = &signature.outcome {
                parts.extend([issuer.clone().into_bytes(), subject.clone().into_bytes()]);
            }
        }
        sha256_parts(parts.iter().map(Vec::as_slice))
    }
}
