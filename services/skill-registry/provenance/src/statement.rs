//! The statement of an OMS signature: which files there are, each with its digest. Written by strangers, so read strictly.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use steward_base::hash::{sha256, sha256_hex};
use steward_skill_scanner::Tree;

use crate::outcome::{Flaw, Outcome, Unknown};

/// The type of the statement.
const STATEMENT: &str = "https://in-toto.io/Statement/v1";
/// The type of what it says: OMS, version 1.
const PREDICATE: &str = "https://model_signing/signature/v1.0";
/// The one digest that both OMS and the hub know.
const ALGORITHM: &str = "sha256";

/// What an OMS signature says of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// SHA-256 over the digests of all files in the order of the list: what is signed as the whole.
    pub sum: [u8; 32],
    /// SHA-256 of each file as lower-case hexadecimal text, by path.
    pub files: BTreeMap<String, String>,
}

/// Why a statement says nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unreadable {
    /// It is wrong.
    Flaw(Flaw),
    /// It is of another kind.
    Unknown(Unknown),
}

impl From<Unreadable> for Outcome {
    fn from(unreadable: Unreadable) -> Self {
        match unreadable {
            Unreadable::Flaw(why) => Self::Invalid { why },
            Unreadable::Unknown(why) => Self::Unknown { why },
        }
    }
}

impl From<Flaw> for Unreadable {
    fn from(flaw: Flaw) -> Self {
        Self::Flaw(flaw)
    }
}

impl From<Unknown> for Unreadable {
    fn from(unknown: Unknown) -> Self {
        Self::Unknown(unknown)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    #[serde(rename = "_type")]
    kind: String,
    predicate_type: String,
    subject: Vec<Subject>,
    #[serde(borrow)]
    predicate: &'a RawValue,
}

#[derive(Deserialize)]
struct Subject {
    digest: Digest,
}

#[derive(Deserialize)]
struct Digest {
    sha256: Option<String>,
}

#[derive(Deserialize)]
struct Predicate {
    serialization: Serialization,
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Serialization {
    method: String,
}

#[derive(Deserialize)]
struct Resource {
    name: String,
    algorithm: String,
    digest: String,
}

impl Statement {
    /// Reads the payload of an envelope. Fields that version 1 does not know are passed over, as it says.
    pub fn parse(payload: &[u8]) -> Result<Self, Unreadable> {
        let head: Head<'_> = serde_json::from_slice(payload).map_err(|error| malformed(&error))?;
        if head.kind != STATEMENT || head.predicate_type != PREDICATE {
            let predicate_type = head.predicate_type;
            return Err(Unknown::Predicate { predicate_type }.into());
        }
        let predicate: Predicate = serde_json::from_str(head.predicate.get()).map_err(|error| malformed(&error))?;
        if predicate.serialization.method != "files" {
            let method = predicate.serialization.method;
            return Err(Unknown::Method { method }.into());
        }
        let [subject] = head.subject.as_slice() else {
            return Err(malformed("it has not one subject").into());
        };
        let stated = subject.digest.sha256.as_deref().and_then(digest);
        let Some(sum) = stated else {
            return Err(malformed("its subject has no SHA-256 digest").into());
        };
        let mut digests = Vec::with_capacity(predicate.resources.len() * sum.len());
        let mut files = BTreeMap::new();
        for resource in predicate.resources {
            let of_file = checked(&resource)?;
            digests.extend_from_slice(&of_file);
            if files.insert(resource.name.clone(), hex::encode(of_file)).is_some() {
                return Err(Flaw::Duplicate { file: resource.name }.into());
            }
        }
        if sha256(&digests) != sum {
            return Err(Flaw::Sum.into());
        }
        Ok(Self { sum, files })
    }

    /// Whether it covers the tree, all of it but the signature itself, and nothing that is not there.
    pub fn covers(&self, tree: &Tree, signature: &str) -> Result<Vec<String>, Flaw> {
        for (path, stated) in &self.files {
            let file = path.clone();
            match tree.get(path) {
                None => return Err(Flaw::Missing { file }),
                Some(found) if sha256_hex(&found.bytes) != *stated => return Err(Flaw::Changed { file }),
                Some(_) => {}
            }
        }
        let mut rest = tree.iter().map(|(path, _)| path).filter(|path| *path != signature);
        match rest.find(|path| !self.files.contains_key(*path)) {
            Some(path) => Err(Flaw::NotCovered { file: path.to_owned() }),
            None => Ok(self.files.keys().cloned().collect()),
        }
    }
}

fn malformed(problem: &(impl ToString + ?Sized)) -> Flaw {
    Flaw::Statement {
        problem: problem.to_string(),
    }
}

fn checked(resource: &Resource) -> Result<[u8; 32], Flaw> {
    let file = || resource.name.clone();
    if resource.algorithm != ALGORITHM {
        let algorithm = resource.algorithm.clone();
        return Err(Flaw::Algorithm {
            file: file(),
            algorithm,
        });
    }
    if !is_inside(&resource.name) {
        return Err(Flaw::Path { file: file() });
    }
    digest(&resource.digest).ok_or_else(|| malformed(&format!("{:?} has no SHA-256 digest", resource.name)))
}

fn digest(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    hex::decode_to_slice(text, &mut bytes).ok()?;
    Some(bytes)
}

/// Whether a name is a path below a folder in its one spelling.
fn is_inside(name: &str) -> bool {
    let odd = |part: &str| part.is_empty() || part == "." || part == "..";
    !name.contains(['\\', '\0']) && !name.split('/').any(odd)
}
