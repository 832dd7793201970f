//! Runs with broken statements and bundles. `cargo test -p steward-skill-provenance --test fuzz -- --ignored` runs ten
//! minutes each; `steward_testkit::fuzz` says how long a run lasts and how one is repeated.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::cell::Cell;

use sigstore_trust_root::SIGSTORE_PRODUCTION_TRUSTED_ROOT;
use steward_base::Timestamp;
use steward_base::hash::{sha256, sha256_hex};
use steward_skill_provenance::statement::Statement;
use steward_skill_provenance::{Outcome, Root, verify};
use steward_skill_scanner::Tree;
use steward_testkit::fuzz::{Bytes, Source, long_run};

const SKILL: &str = include_str!("data/cosign-v3-blob.txt");
const BUNDLE: &str = include_str!("data/cosign-v3-blob.sigstore.json");

/// Text that means something where it lands.
const PIECES: [&str; 10] = [
    "../",
    "/",
    "\\u0000",
    "\"",
    "{",
    "[",
    "sha512",
    "files",
    "SKILL.md",
    "https://model_signing/signature/v1.0",
];

fn damage(text: &str, source: &mut Source) -> Bytes {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..source.below(5) {
        let at = source.below(bytes.len().max(1)).min(bytes.len());
        match source.below(4) {
            0 if at < bytes.len() => bytes[at] = source.byte(),
            1 => bytes.truncate(at),
            2 => {
                let piece = bytes[at..(at + source.below(60)).min(bytes.len())].to_vec();
                let to = source.below(bytes.len() + 1);
                drop(bytes.splice(to..to, piece));
            }
            _ => drop(bytes.splice(at..at, PIECES[source.below(PIECES.len())].bytes())),
        }
    }
    Bytes(bytes)
}

/// A statement about files with names of a few pieces, whose sum is right, so that the damage is what is wrong.
fn statement(source: &mut Source) -> String {
    let mut sum = Vec::new();
    let mut resources = Vec::new();
    for at in 0..source.below(6) {
        let name = ["SKILL.md", "a/b", ".hidden", "../x", "a//b", "ü"][source.below(6)];
        let content = at.to_be_bytes();
        sum.extend(sha256(&content));
        let digest = sha256_hex(&content);
        resources.push(format!(
            r#"{{"name":"{name}","algorithm":"sha256","digest":"{digest}"}}"#
        ));
    }
    format!(
        r#"{{"_type":"https://in-toto.io/Statement/v1","subject":[{{"name":"x","digest":{{"sha256":"{}"}}}}],"predicateType":"https://model_signing/signature/v1.0","predicate":{{"serialization":{{"method":"files"}},"resources":[{}]}}}}"#,
        sha256_hex(&sum),
        resources.join(",")
    )
}

#[test]
#[ignore = "runs for ten minutes"]
fn broken_statements_are_refused_or_list_paths_with_digests() {
    let accepted = Cell::new(0_u64);
    let broken = |source: &mut Source| {
        let statement = statement(source);
        damage(&statement, source)
    };
    long_run(broken, |bytes| {
        let Ok(read) = Statement::parse(bytes) else { return };
        accepted.set(accepted.get() + 1);
        for (name, digest) in &read.files {
            assert!(!name.starts_with('/') && !name.split('/').any(|part| part.is_empty() || part == ".."));
            assert!(digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()));
        }
        let tree: Tree = [("SKILL.md", SKILL.as_bytes())].into_iter().collect();
        if let Ok(covers) = read.covers(&tree, "skill.oms.sig") {
            assert_eq!(covers, ["SKILL.md"], "a tree is covered whole");
        }
    });
    assert!(accepted.get() > 0, "no statement survived: the run tries nothing");
}

#[test]
#[ignore = "runs for ten minutes"]
fn a_broken_bundle_never_vouches_for_another_file() {
    let root = Root::parse(SIGSTORE_PRODUCTION_TRUSTED_ROOT).unwrap();
    let now = Timestamp::from_secs(2_000_000_000);
    let whole = Cell::new(0_u64);
    let broken = |source: &mut Source| {
        let changed = source.below(2) == 1;
        let mut bytes = damage(BUNDLE, source).0;
        bytes.push(u8::from(changed));
        Bytes(bytes)
    };
    long_run(broken, |bytes| {
        let Some((changed, bundle)) = bytes.split_last() else {
            return;
        };
        let skill = if *changed == 1 { "something else" } else { SKILL };
        let files = [("SKILL.md", skill.as_bytes()), ("SKILL.md.sigstore.json", bundle)];
        let tree: Tree = files.into_iter().collect();
        for signature in verify(&tree, Some(&root), now) {
            if let Outcome::Verified { issuer, covers, .. } = signature.outcome {
                whole.set(whole.get() + 1);
                assert_eq!(*changed, 0, "it holds for another file");
                assert_eq!((issuer.as_str(), covers.len()), ("https://github.com/login/oauth", 1));
            }
        }
    });
    assert!(whole.get() > 0, "no bundle survived: the run tries nothing");
}
