//! Statements as strangers write them, and bundles that others made.

use serde_json::{Value, json};
use sigstore_trust_root::{SIGSTORE_PRODUCTION_TRUSTED_ROOT, SIGSTORE_STAGING_TRUSTED_ROOT};
use steward_base::Timestamp;
use steward_base::hash::sha256_hex;
use steward_skill_scanner::Tree;

use super::{FILES, statement, with};
use crate::statement::{Statement, Unreadable};
use crate::{Flaw, Outcome, Root, Unknown, verify};

fn refused(statement: &Value) -> Unreadable {
    Statement::parse(statement.to_string().as_bytes()).unwrap_err()
}

fn renamed(name: &str) -> Flaw {
    let mut changed = statement(&FILES);
    changed["predicate"]["resources"][2]["name"] = name.into();
    match refused(&changed) {
        Unreadable::Flaw(flaw) => flaw,
        Unreadable::Unknown(unknown) => panic!("it is {unknown:?}"),
    }
}

#[test]
fn h_5_a_statement_lists_each_file_once_by_its_path_and_digest() {
    let read = Statement::parse(statement(&FILES).to_string().as_bytes()).unwrap();
    let expected = FILES.map(|(path, text)| (path.to_owned(), sha256_hex(text.as_bytes())));
    assert_eq!(read.files, expected.into());
}

#[test]
fn h_5_names_that_are_no_paths_in_a_skill_are_refused() {
    for name in [
        "../a",
        "/etc/passwd",
        "a/../b",
        "./a",
        "a//b",
        "a/",
        "",
        "a\\b",
        "..",
        "a\0b",
    ] {
        let file = name.to_owned();
        assert_eq!(renamed(name), Flaw::Path { file }, "{name:?}");
    }
    let file = "SKILL.md".to_owned();
    assert_eq!(renamed("SKILL.md"), Flaw::Duplicate { file });
}

#[test]
fn h_5_other_digests_and_sums_that_do_not_add_up_are_refused() {
    for algorithm in ["sha512", "blake2b", "SHA256", ""] {
        let mut changed = statement(&FILES);
        changed["predicate"]["resources"][1]["algorithm"] = algorithm.into();
        let expected = Flaw::Algorithm {
            file: "SKILL.md".to_owned(),
            algorithm: algorithm.to_owned(),
        };
        assert_eq!(refused(&changed), Unreadable::Flaw(expected));
    }
    let mut other = statement(&FILES);
    other["predicate"]["resources"][1]["digest"] = sha256_hex(b"other").into();
    assert_eq!(refused(&other), Unreadable::Flaw(Flaw::Sum));
    let mut fewer = statement(&FILES);
    fewer["predicate"]["resources"].as_array_mut().unwrap().pop();
    assert_eq!(refused(&fewer), Unreadable::Flaw(Flaw::Sum));
}

#[test]
fn h_5_statements_of_another_kind_are_unknown_and_broken_ones_invalid() {
    let changed = |pointer: &str, value: Value| {
        let mut changed = statement(&FILES);
        *changed.pointer_mut(pointer).unwrap() = value;
        refused(&changed)
    };
    let predicate_type = "https://slsa.dev/provenance/v1".to_owned();
    let other = changed("/predicateType", predicate_type.clone().into());
    assert_eq!(other, Unreadable::Unknown(Unknown::Predicate { predicate_type }));
    let method = "shards".to_owned();
    let shards = changed("/predicate/serialization/method", method.clone().into());
    assert_eq!(shards, Unreadable::Unknown(Unknown::Method { method }));
    for (pointer, value) in [
        ("/subject", json!([])),
        ("/subject/0/digest", json!({"sha512": "00"})),
        ("/subject/0/digest/sha256", json!("12")),
        ("/predicate/resources/0/digest", json!("xyz")),
        ("/predicate/resources", json!({})),
        ("/predicate", json!(null)),
    ] {
        let broken = changed(pointer, value);
        assert!(
            matches!(broken, Unreadable::Flaw(Flaw::Statement { .. })),
            "{pointer}: {broken:?}"
        );
    }
    let twice = statement(&FILES).to_string().replacen('{', r#"{"subject":[],"#, 1);
    let twice = Statement::parse(twice.as_bytes()).unwrap_err();
    assert!(
        matches!(twice, Unreadable::Flaw(Flaw::Statement { .. })),
        "a field twice: {twice:?}"
    );
}

/// `tests/data/README.md` says whose these are.
fn real(root: &str, file: &str, bundle: &str) -> (Tree, Root, Outcome) {
    let tree: Tree = [("SKILL.md", file.as_bytes())].into_iter().collect();
    let tree = with(tree, "SKILL.md.sigstore.json", bundle);
    let root = Root::parse(root).unwrap();
    let [found] = verify(&tree, Some(&root), Timestamp::from_secs(2_000_000_000))
        .try_into()
        .unwrap();
    (tree, root, found.outcome)
}

#[test]
fn h_5_a_bundle_of_the_public_sigstore_is_verified_and_is_unknown_to_another_root() {
    let file = include_str!("../../tests/data/cosign-v3-blob.txt");
    let bundle = include_str!("../../tests/data/cosign-v3-blob.sigstore.json");
    let (_, _, outcome) = real(SIGSTORE_PRODUCTION_TRUSTED_ROOT, file, bundle);
    let Outcome::Verified { issuer, covers, .. } = outcome else {
        panic!("it is {outcome:?}");
    };
    assert_eq!(
        (issuer.as_str(), covers.as_slice()),
        ("https://github.com/login/oauth", &["SKILL.md".to_owned()][..])
    );
    let (_, _, elsewhere) = real(SIGSTORE_STAGING_TRUSTED_ROOT, file, bundle);
    assert_eq!(elsewhere, Outcome::Unknown { why: Unknown::Root });
    let (_, _, changed) = real(SIGSTORE_PRODUCTION_TRUSTED_ROOT, "other", bundle);
    assert_eq!(changed, Outcome::Invalid { why: Flaw::Elsewhere });
}

#[test]
fn h_5_a_bundle_of_the_second_log_is_verified_by_its_timestamp() {
    let file = include_str!("../../tests/data/staging-rekor-v2.txt");
    let bundle = include_str!("../../tests/data/staging-rekor-v2.txt.sigstore.json");
    let (_, _, outcome) = real(SIGSTORE_STAGING_TRUSTED_ROOT, file, bundle);
    assert!(matches!(outcome, Outcome::Verified { .. }), "{outcome:?}");
}

#[test]
fn h_5_a_root_that_could_verify_nothing_is_no_root() {
    let mut root: Value = serde_json::from_str(SIGSTORE_PRODUCTION_TRUSTED_ROOT).unwrap();
    for part in ["tlogs", "ctlogs", "certificateAuthorities"] {
        let mut lacking = root.clone();
        lacking[part] = json!([]);
        assert!(Root::parse(&lacking.to_string()).is_err(), "{part}");
    }
    root["tlogs"][0]["publicKey"]["rawBytes"] = "AAAA".into();
    assert!(Root::parse(&root.to_string()).is_err());
    assert!(Root::parse("{}").is_err());
}
