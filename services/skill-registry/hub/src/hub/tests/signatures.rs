//! What a signature in the tree does to an install.

use steward_base::Fault as _;
use steward_skill_provenance::testing::{Authority, ISSUER, SUBJECT};
use steward_skill_provenance::{Barrier, Flaw, Outcome, Pattern, Publisher, Root, SigningPolicy};
use steward_skill_scanner::File;

use super::*;

const SIGNATURE: &str = "skill.oms.sig";

fn policy(authority: &Authority, required: bool) -> SigningPolicy {
    let publisher = Publisher {
        source: Some("a".to_owned()),
        reference: None,
        issuer: ISSUER.to_owned(),
        subject: Pattern::new(SUBJECT).expect("a pattern"),
        required,
    };
    SigningPolicy {
        root: Some(Root::parse(&authority.root()).expect("a root")),
        publishers: [publisher].into(),
    }
}

fn sign(shelf: &Shelf, authority: &Authority) {
    shelf.with(|_, tree| {
        let signature = authority.sign(tree).into_bytes();
        tree.insert(SIGNATURE, File::plain(signature));
    });
}

/// A hub with one source, which serves a skill that is signed.
fn signed(authority: &Authority, policy: SigningPolicy) -> (Arc<Shelf>, Rig) {
    let shelf = Shelf::new("a", Trust::Community, SAFE);
    sign(&shelf, authority);
    let mut rig = rig(vec![Arc::clone(&shelf) as Arc<dyn Source>]);
    rig.hub = rig.hub.with_signing(policy);
    (shelf, rig)
}

async fn logged(rig: &Rig) -> Vec<String> {
    let log = rig.hub.audit("red").await.expect("a log");
    let told = log.iter().filter_map(|entry| entry.details.get("signatures"));
    told.cloned().collect()
}

#[tokio::test]
async fn h_5_a_signature_is_shown_in_the_item_the_lock_and_the_log() {
    let authority = Authority::new();
    let (_, rig) = signed(&authority, policy(&authority, true));
    let item = rig.hub.bring(ADA, "tidy").await.expect("brought");
    assert_eq!(item.state, State::Approved);
    let lock = rig.hub.install(ADA, &item.id, Choice::default()).await;
    let lock = lock.expect("installed").installed.lock;
    assert_eq!(lock.provenance, item.provenance);
    let [found] = lock.provenance.signatures.as_slice() else {
        panic!("{:?}", lock.provenance);
    };
    assert!(found.by_publisher);
    let Outcome::Verified { subject, covers, .. } = &found.signature.outcome else {
        panic!("{found:?}");
    };
    assert_eq!(
        (subject.as_str(), covers.as_slice()),
        (SUBJECT, &["SKILL.md".to_owned()][..])
    );
    let told = format!("skill.oms.sig: verified, by {SUBJECT} ({ISSUER}), its publisher");
    assert_eq!(
        logged(&rig).await,
        [told.clone(), told],
        "with the verdict and with the install"
    );
}

#[tokio::test]
async fn h_5_an_invalid_signature_blocks_and_no_word_lifts_it() {
    let authority = Authority::new();
    let (shelf, rig) = signed(&authority, policy(&authority, false));
    shelf.with(|_, tree| {
        tree.insert(".hidden.md", File::plain(b"more".to_vec()));
    });
    let item = rig.hub.bring(ADA, "tidy").await.expect("brought");
    assert_eq!(item.state, State::Blocked);
    let error = Error::Signature {
        barrier: Barrier::Invalid {
            file: SIGNATURE.to_owned(),
            why: Flaw::NotCovered {
                file: ".hidden.md".to_owned(),
            },
        },
    };
    assert_eq!(error.reason(), "HUB_SIGNATURE_INVALID");
    for force in [false, true] {
        let released = rig.hub.release(ADA, &item.id, "I insist", force).await;
        assert_eq!(released.unwrap_err(), error, "force {force}");
    }
    let installed = rig.hub.install(ADA, &item.id, Choice::REPLACE).await;
    assert_eq!(installed.unwrap_err(), error);
    assert_eq!(rig.store.library("red", "tidy").await, Ok(None));
    assert_eq!(
        logged(&rig).await,
        ["skill.oms.sig: invalid, it does not cover \".hidden.md\""]
    );
}

#[tokio::test]
async fn h_5_a_required_signature_that_lacks_blocks_and_no_word_lifts_it() {
    let authority = Authority::new();
    let (shelf, rig) = signed(&authority, policy(&authority, true));
    shelf.put(Trust::Trusted, "r2", SAFE, None);
    let unsigned = rig.hub.bring(ADA, "tidy").await.expect("brought");
    sign(&shelf, &Authority::new());
    let by_others = rig.hub.bring(ADA, "tidy").await.expect("brought");
    for item in [unsigned, by_others] {
        assert_eq!(item.state, State::Blocked);
        let error = rig.hub.release(ADA, &item.id, "I insist", true).await.unwrap_err();
        assert_eq!(error.reason(), "HUB_SIGNATURE_REQUIRED");
        let error = rig.hub.install(ADA, &item.id, Choice::default()).await.unwrap_err();
        assert_eq!(error.reason(), "HUB_SIGNATURE_REQUIRED");
    }
}

#[tokio::test]
async fn h_5_a_signature_by_nobody_who_is_named_changes_nothing() {
    let authority = Authority::new();
    let others = SigningPolicy {
        publishers: [].into(),
        ..policy(&authority, false)
    };
    for signing in [others, SigningPolicy::default()] {
        let (shelf, rig) = signed(&authority, signing);
        let item = rig.hub.bring(ADA, "tidy").await.expect("brought");
        assert_eq!(
            (item.state, item.provenance.is_by_publisher()),
            (State::Approved, false)
        );
        shelf.put(Trust::Community, "r2", CAUTION, None);
        sign(&shelf, &authority);
        let item = rig.hub.bring(ADA, "tidy").await.expect("brought");
        assert_eq!(item.state, State::Blocked, "a signature says who, and not what");
    }
}

#[tokio::test]
async fn h_2_an_approval_holds_for_who_signed_it() {
    let authority = Authority::new();
    let (_, rig) = signed(&authority, policy(&authority, false));
    let item = rig.hub.bring(ADA, "tidy").await.expect("brought");
    let unheeding = rig.hub.clone().with_signing(SigningPolicy::default());
    let error = unheeding.install(ADA, &item.id, Choice::default()).await.unwrap_err();
    assert_eq!(error, Error::ApprovalVoid { what: "who signed it" });
    let elsewhere = Authority::new();
    let stricter = rig.hub.clone().with_signing(policy(&elsewhere, true));
    let error = stricter.install(ADA, &item.id, Choice::default()).await.unwrap_err();
    assert_eq!(error.reason(), "HUB_SIGNATURE_REQUIRED", "what is required now counts");
    rig.hub
        .install(ADA, &item.id, Choice::default())
        .await
        .expect("installed");
}

#[tokio::test]
async fn h_6_an_update_that_its_publisher_did_not_sign_waits_for_a_person() {
    let authority = Authority::new();
    let (shelf, rig) = signed(&authority, policy(&authority, false));
    installed(&rig, "tidy").await;
    shelf.put(Trust::Community, "r2", SAFE, None);
    shelf.with(|_, tree| {
        tree.insert("notes.md", File::plain(b"notes".to_vec()));
    });
    let preview = rig.hub.preview("red", "tidy").await.expect("looked at");
    assert_eq!(preview.next.expect("a revision").provenance.signatures, []);
    let item = rig.hub.update(ADA, "tidy").await.expect("brought");
    assert_eq!(item.state, State::AwaitingApproval);
    assert_eq!(
        item.doubts,
        ["what is installed is signed by its publisher, and it is not"]
    );
}

#[test]
fn what_was_stored_before_signatures_were_looked_at_is_read() {
    let binding = r#"{"digest": "d", "scan": "s", "rule_set": "r", "capabilities": "c"}"#;
    let binding: crate::quarantine::Binding = serde_json::from_str(binding).expect("read");
    assert_eq!(
        binding.provenance,
        SigningPolicy::default()
            .judge("a", "tidy", &skill("tidy", SAFE), Timestamp::from_secs(0))
            .digest()
    );
}
