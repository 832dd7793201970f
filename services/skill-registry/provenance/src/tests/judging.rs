//! What the operator's word makes of a signature.

use std::sync::Arc;

use steward_skill_scanner::Tree;

use super::{Authority, FILES, ISSUER, NOON, SIGNATURE, bundle, now, root, statement, tree, with};
use crate::{Barrier, Pattern, Publisher, SigningPolicy};

fn acme(required: bool) -> Publisher {
    Publisher {
        source: Some("github".to_owned()),
        reference: Pattern::new("acme/*"),
        issuer: ISSUER.to_owned(),
        subject: Pattern::new("https://git.example/acme/skills/.ci/release.yml@*").unwrap(),
        required,
    }
}

fn trust(authority: &Authority, publishers: impl Into<Arc<[Publisher]>>) -> SigningPolicy {
    SigningPolicy {
        root: Some(root(authority)),
        publishers: publishers.into(),
    }
}

const HERE: (&str, &str) = ("github", "Acme/skills/tidy");

#[test]
fn h_5_only_who_is_named_for_a_source_counts_as_its_publisher() {
    let authority = Authority::new();
    let signed = with(tree(), SIGNATURE, &bundle(&authority, &statement(&FILES), NOON));
    let judged = |publisher: Publisher, (source, reference): (&str, &str)| {
        let trust = trust(&authority, [publisher]);
        trust.judge(source, reference, &signed, now()).is_by_publisher()
    };
    assert!(judged(acme(false), HERE));
    assert!(
        !judged(acme(false), ("github", "acme-evil/skills/tidy")),
        "another owner"
    );
    assert!(!judged(acme(false), ("clawhub", "acme/skills/tidy")), "another source");
    let elsewhere = Publisher {
        issuer: "https://other.example".to_owned(),
        ..acme(false)
    };
    assert!(!judged(elsewhere, HERE), "the same name, vouched for by somebody else");
    let somebody = Publisher {
        subject: Pattern::new("somebody@acme.example").unwrap(),
        ..acme(false)
    };
    assert!(!judged(somebody, HERE), "another identity");
    let anywhere = Publisher {
        source: None,
        reference: None,
        ..acme(false)
    };
    assert!(judged(anywhere, ("url", "https://a.example/SKILL.md")));
}

#[test]
fn h_5_a_required_signature_that_is_missing_unknown_or_somebody_elses_is_a_barrier() {
    let authority = Authority::new();
    let required = trust(&authority, [acme(true)]);
    let barrier = |tree| required.judge(HERE.0, HERE.1, &tree, now()).barrier();
    let signed = |authority: &Authority| bundle(authority, &statement(&FILES), NOON);
    assert_eq!(barrier(with(tree(), SIGNATURE, &signed(&authority))), None);
    assert_eq!(barrier(tree()), Some(Barrier::Unsigned));
    assert_eq!(
        barrier(with(tree(), SIGNATURE, &signed(&Authority::new()))),
        Some(Barrier::Unsigned)
    );
    let mallory = authority.signer("https://git.example/mallory");
    let other = authority.envelope(&mallory, statement(&FILES).to_string().as_bytes(), NOON);
    assert_eq!(barrier(with(tree(), SIGNATURE, &other)), Some(Barrier::Unsigned));

    let nobody = trust(&authority, []);
    let shown = nobody.judge(HERE.0, HERE.1, &with(tree(), SIGNATURE, &other), now());
    assert_eq!(
        (shown.barrier(), shown.is_by_publisher()),
        (None, false),
        "shown, and worth no more than none"
    );
    let blind = SigningPolicy { root: None, ..required };
    let unchecked = blind.judge(HERE.0, HERE.1, &with(tree(), SIGNATURE, &signed(&authority)), now());
    assert_eq!(
        unchecked.barrier(),
        Some(Barrier::Unsigned),
        "what is not checked is not verified"
    );
}

#[test]
fn h_5_an_invalid_signature_is_a_barrier_whoever_is_named() {
    let authority = Authority::new();
    let spoilt = with(tree(), SIGNATURE, "{}");
    for publishers in [vec![], vec![acme(false)], vec![acme(true)]] {
        let barrier = trust(&authority, publishers)
            .judge(HERE.0, HERE.1, &spoilt, now())
            .barrier();
        assert!(matches!(barrier, Some(Barrier::Invalid { .. })), "{barrier:?}");
    }
    let judged = SigningPolicy::default().judge(HERE.0, HERE.1, &spoilt, now());
    assert_eq!(judged.barrier(), None, "nobody asked for it to be checked");
}

#[test]
fn h_5_what_is_approved_depends_on_who_signed_and_who_is_named() {
    let authority = Authority::new();
    let signed = with(tree(), SIGNATURE, &bundle(&authority, &statement(&FILES), NOON));
    let digest = |trust: SigningPolicy, tree: &Tree| trust.judge(HERE.0, HERE.1, tree, now()).digest();
    let mallory = authority.signer("https://git.example/mallory");
    let other = authority.envelope(&mallory, statement(&FILES).to_string().as_bytes(), NOON);
    let other = with(tree(), SIGNATURE, &other);
    let all = [
        digest(SigningPolicy::default(), &tree()),
        digest(SigningPolicy::default(), &signed),
        digest(trust(&authority, []), &signed),
        digest(trust(&authority, []), &other),
        digest(trust(&authority, [acme(false)]), &signed),
        digest(trust(&authority, [acme(true)]), &signed),
        digest(trust(&authority, [acme(true)]), &tree()),
    ];
    assert_eq!(
        all[0], "",
        "what was approved before signatures were looked at stays approved"
    );
    for (at, one) in all.iter().enumerate() {
        assert!(!all[..at].contains(one), "{at}");
    }
    assert_eq!(all[4], digest(trust(&authority, [acme(false)]), &signed));
}

#[test]
fn h_5_a_pattern_ends_at_a_whole_part() {
    for wrong in ["", "*", "acme*", "a*/b", "*/b", "a/**"] {
        assert_eq!(Pattern::new(wrong), None, "{wrong:?}");
    }
    for right in ["acme/*", "acme/skills/tidy", "https://a.example/b@*"] {
        assert!(Pattern::new(right).is_some(), "{right:?}");
    }
}

#[test]
fn h_5_what_is_stored_is_read_back() {
    let authority = Authority::new();
    let signed = with(tree(), SIGNATURE, &bundle(&authority, &statement(&FILES), NOON));
    for tree in [
        tree(),
        signed,
        with(tree(), "model.sig", "{"),
        with(tree(), "a.sigstore", r#"{"mediaType":"x"}"#),
    ] {
        let judged = trust(&authority, [acme(true)]).judge(HERE.0, HERE.1, &tree, now());
        let text = serde_json::to_string(&judged).unwrap();
        assert_eq!(
            serde_json::from_str::<crate::Provenance>(&text).unwrap(),
            judged,
            "{text}"
        );
    }
}
