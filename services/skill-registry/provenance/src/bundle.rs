//! One bundle held against the tree that it came with: first what it says, then who says it. The cryptography is the
//! library's; which of its errors mean a forgery and which mean that nobody here can tell is decided here.

use serde::Deserialize;
use sigstore_verify::types::bundle::{MessageSignature, VerificationMaterialContent};
use sigstore_verify::types::{
    Artifact, ArtifactDigest, Bundle, DsseEnvelope, HashAlgorithm, MediaType, SignatureContent,
};
use sigstore_verify::{VerificationPolicy, VerificationResult};
use steward_base::Timestamp;
use steward_base::hash::sha256;
use steward_skill_scanner::Tree;

use crate::outcome::{Flaw, Outcome, Unknown};
use crate::policy::Root;
use crate::statement::Statement;

/// No bundle of a skill comes near: a statement has about 150 bytes for each of at most 200 files.
const MAX_BYTES: usize = 512 * 1024;
const IN_TOTO: &str = "application/vnd.in-toto+json";
const SKILL: &str = "SKILL.md";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    media_type: String,
}

/// What a bundle signs, as far as it fits the tree.
struct Signing<'a> {
    artifact: Artifact<'a>,
    covers: Vec<String>,
}

pub(crate) fn judge(tree: &Tree, path: &str, bytes: &[u8], root: &Root, now: Timestamp) -> Outcome {
    let bundle = match read(bytes) {
        Ok(bundle) => bundle,
        Err(outcome) => return outcome,
    };
    let unsigned = without(tree, path);
    let text = unsigned.digest();
    let signing = match &bundle.content {
        SignatureContent::DsseEnvelope(envelope) => stated(tree, path, envelope),
        SignatureContent::MessageSignature(message) => signed(&unsigned, &text, message),
        _ => Err(unsupported("the bundle's content")),
    };
    let signing = match signing {
        Ok(signing) => signing,
        Err(outcome) => return outcome,
    };
    if let Some(why) = by_whom(&bundle, root) {
        return Outcome::Unknown { why };
    }
    let policy = VerificationPolicy::any_identity();
    match root.verifier().verify(signing.artifact, &bundle, &policy) {
        Ok(result) => verified(&result, signing.covers, now),
        Err(error) => refused(&error),
    }
}

fn read(bytes: &[u8]) -> Result<Bundle, Outcome> {
    if bytes.len() > MAX_BYTES {
        let bytes = bytes.len() as u64;
        return Err(invalid(Flaw::TooLarge { bytes }));
    }
    let broken = |problem: String| invalid(Flaw::Bundle { problem });
    let text = std::str::from_utf8(bytes).map_err(|error| broken(error.to_string()))?;
    let head: Head = serde_json::from_str(text).map_err(|error| broken(error.to_string()))?;
    if head.media_type.parse::<MediaType>().is_err() {
        let media_type = head.media_type;
        return Err(Outcome::Unknown {
            why: Unknown::Format { media_type },
        });
    }
    Bundle::from_json(text).map_err(|error| broken(error.to_string()))
}

fn without(tree: &Tree, signature: &str) -> Tree {
    let mut rest = Tree::new();
    for (path, file) in tree.iter().filter(|(path, _)| *path != signature) {
        rest.insert(path, file.clone());
    }
    rest
}

/// A statement lists the files.
fn stated(tree: &Tree, path: &str, envelope: &DsseEnvelope) -> Result<Signing<'static>, Outcome> {
    if envelope.payload_type != IN_TOTO {
        let predicate_type = envelope.payload_type.clone();
        return Err(Outcome::Unknown {
            why: Unknown::Predicate { predicate_type },
        });
    }
    let statement = Statement::parse(envelope.payload.as_bytes())?;
    let covers = statement.covers(tree, path).map_err(invalid)?;
    Ok(Signing {
        artifact: digest(statement.sum)?,
        covers,
    })
}

/// A message is the tree's digest (the digest itself, or its hexadecimal text), or the one file of the skill.
fn signed<'a>(unsigned: &'a Tree, text: &'a str, message: &MessageSignature) -> Result<Signing<'a>, Outcome> {
    let Some(stated) = &message.message_digest else {
        return Err(invalid(Flaw::Elsewhere));
    };
    if stated.algorithm != HashAlgorithm::Sha2256 {
        return Err(unsupported(&format!("a {} digest", stated.algorithm)));
    }
    let stated = stated.digest.as_bytes();
    let covers = unsigned.iter().map(|(path, _)| path.to_owned()).collect();
    let mut of_tree = [0; 32];
    if hex::decode_to_slice(text, &mut of_tree).is_ok() && of_tree == stated {
        let artifact = digest(of_tree)?;
        return Ok(Signing { artifact, covers });
    }
    if sha256(text.as_bytes()) == stated {
        let artifact = Artifact::from_blob(text.as_bytes());
        return Ok(Signing { artifact, covers });
    }
    let skill = unsigned.get(SKILL).filter(|file| sha256(&file.bytes) == stated);
    let Some(skill) = skill else {
        return Err(invalid(Flaw::Elsewhere));
    };
    match covers.iter().find(|path| *path != SKILL) {
        Some(file) => Err(invalid(Flaw::NotCovered { file: file.clone() })),
        None => Ok(Signing {
            artifact: Artifact::from_blob(&skill.bytes),
            covers,
        }),
    }
}

fn digest(bytes: [u8; 32]) -> Result<Artifact<'static>, Outcome> {
    ArtifactDigest::new(HashAlgorithm::Sha2256, bytes.to_vec())
        .map(Artifact::Digest)
        .map_err(|error| unsupported(&error.to_string()))
}

/// Why nobody here can say who made it; nothing if the root knows its log. Whoever hides behind this gains nothing: what
/// is unknown counts for as much as no signature at all.
fn by_whom(bundle: &Bundle, root: &Root) -> Option<Unknown> {
    let material = &bundle.verification_material;
    if matches!(material.content, VerificationMaterialContent::PublicKey(_)) {
        return Some(Unknown::BareKey);
    }
    if material.tlog_entries.is_empty() {
        return Some(Unknown::NotLogged);
    }
    let known = material.tlog_entries.iter().any(|entry| root.knows(&entry.log_id));
    (!known).then_some(Unknown::Root)
}

fn verified(result: &VerificationResult, covers: Vec<String>, now: Timestamp) -> Outcome {
    let forged = |problem: &str| {
        invalid(Flaw::Forged {
            problem: problem.to_owned(),
        })
    };
    if !(result.certificate_verified() && result.sct_verified() && result.tlog_verified()) {
        return forged("not all of its evidence was verified");
    }
    let (Some(issuer), Some(subject)) = (result.issuer(), result.identity()) else {
        return forged("its certificate names nobody");
    };
    let Some(signed_at) = result.verified_timestamps().iter().min() else {
        return forged("it has no time");
    };
    let signed_at = Timestamp::from_micros(signed_at.as_microsecond());
    if signed_at > now {
        return invalid(Flaw::Future);
    }
    Outcome::Verified {
        issuer: issuer.to_owned(),
        subject: subject.as_str().to_owned(),
        signed_at,
        covers,
    }
}

fn refused(error: &sigstore_verify::Error) -> Outcome {
    use sigstore_verify::Error;
    let problem = error.to_string();
    match error {
        Error::UnsupportedBundle(_) | Error::UnsupportedArtifact(_) => unsupported(&problem),
        _ => invalid(Flaw::Forged { problem }),
    }
}

const fn invalid(why: Flaw) -> Outcome {
    Outcome::Invalid { why }
}

fn unsupported(problem: &str) -> Outcome {
    Outcome::Unknown {
        why: Unknown::Unsupported {
            problem: problem.to_owned(),
        },
    }
}
