use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use steward_base::names::{SessionId, TeamId, UserId};
use steward_base::{Identity, JobRef, Origin, Role};
use steward_testkit::MockClock;

use super::*;
use crate::auth::ring::{REFRESH, UNKNOWN_KEY_PAUSE};
use crate::auth::{KeyError, TokenSigner};

const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);
const HOUR: Duration = Duration::from_hours(1);

fn claims() -> Claims {
    let (team, user) = (TeamId::parse("red").unwrap(), UserId::parse("ann").unwrap());
    Claims::user("token-1", team, user, Role::Member, NOW, NOW.plus(HOUR))
}

fn verifier(signer: &TokenSigner) -> (TokenVerifier, Arc<MockClock>) {
    let clock = Arc::new(MockClock::at(NOW));
    (
        TokenVerifier::new(signer.public_keys(), Arc::clone(&clock) as Arc<dyn Clock>),
        clock,
    )
}

fn problem(verifier: &TokenVerifier, token: &str) -> &'static str {
    match verifier.verify(token) {
        Err(AccessError::CredentialInvalid { problem }) => problem,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[test]
fn a_signed_token_names_its_caller_until_it_ends() {
    let signer = TokenSigner::generate().unwrap();
    let (verifier, clock) = verifier(&signer);
    let token = signer.sign(&claims()).unwrap();
    let caller = verifier.verify(&token).unwrap();
    assert_eq!(caller.team.as_ref().unwrap().as_str(), "red");
    assert_eq!(
        (caller.role, caller.origin, &caller.identity),
        (Role::Member, Origin::Foreground, &Identity::User)
    );
    clock.advance(HOUR + Duration::from_secs(4));
    assert!(verifier.verify(&token).is_ok(), "within the leeway");
    clock.advance(Duration::from_secs(1));
    assert_eq!(problem(&verifier, &token), "over");
    clock.set(NOW.minus(Duration::from_secs(6)));
    assert_eq!(problem(&verifier, &token), "issued in the future");
}

#[test]
fn another_key_with_the_same_id_in_the_header_is_refused() {
    let (signer, stranger) = (TokenSigner::generate().unwrap(), TokenSigner::generate().unwrap());
    let (verifier, _) = verifier(&signer);
    let theirs = stranger.sign(&claims()).unwrap();
    assert_eq!(problem(&verifier, &theirs), "signed with an unknown key");
    let header = format!(r#"{{"alg":"EdDSA","typ":"JWT","kid":"{}"}}"#, signer.key_id());
    let rest = theirs.split_once('.').unwrap().1;
    let forged = format!("{}.{rest}", URL_SAFE_NO_PAD.encode(header));
    assert_eq!(
        problem(&verifier, &forged),
        "not signed by the key it names, or incomplete"
    );
}

#[test]
fn a_token_that_chooses_its_own_algorithm_is_refused() {
    let signer = TokenSigner::generate().unwrap();
    let (verifier, _) = verifier(&signer);
    let payload = signer.sign(&claims()).unwrap().split('.').nth(1).unwrap().to_owned();
    for algorithm in ["none", "HS256", "RS256"] {
        let header = format!(r#"{{"alg":"{algorithm}","kid":"{}"}}"#, signer.key_id());
        for signature in ["", "AAAA"] {
            let token = format!("{}.{payload}.{signature}", URL_SAFE_NO_PAD.encode(&header));
            assert!(verifier.verify(&token).is_err(), "{algorithm} was accepted");
        }
    }
}

#[test]
fn changed_malformed_and_endless_tokens_are_refused() {
    let signer = TokenSigner::generate().unwrap();
    let (verifier, _) = verifier(&signer);
    let token = signer.sign(&claims()).unwrap();
    let mut parts: Vec<_> = token.split('.').map(str::to_owned).collect();
    let promoted = serde_json::to_vec(&Claims {
        role: Some(Role::Admin),
        ..claims()
    })
    .unwrap();
    parts[1] = URL_SAFE_NO_PAD.encode(promoted);
    for bad in [
        "",
        ".",
        "..",
        "a.b.c",
        &parts.join("."),
        &token[..token.len() - 2],
        &"a".repeat(5000),
    ] {
        assert!(verifier.verify(bad).is_err(), "{bad:?} was accepted");
    }
}

#[test]
fn a_job_cannot_pass_for_a_person() {
    let signer = TokenSigner::generate().unwrap();
    let (verifier, _) = verifier(&signer);
    let job = JobRef {
        id: "job-1".to_owned(),
        fence: 3,
    };
    let caps = BTreeSet::from(["memory".to_owned()]);
    let sign = |origin| {
        signer
            .sign(&claims().for_job(job.clone(), origin, None, caps.clone()))
            .unwrap()
    };
    assert_eq!(
        problem(&verifier, &sign(Origin::Foreground)),
        "is a job's without an automatic origin"
    );
    let caller = verifier.verify(&sign(Origin::Review)).unwrap();
    assert_eq!((caller.origin, caller.job()), (Origin::Review, Some(&job)));
    assert!(caller.permits("memory") && !caller.permits("skill_manage"));
}

#[test]
fn a_turn_is_bound_to_its_session_and_capabilities() {
    let signer = TokenSigner::generate().unwrap();
    let (verifier, _) = verifier(&signer);
    let session = SessionId::parse("s1").unwrap();
    let claims = claims().for_turn(session, "turn-1", BTreeSet::from(["memory".to_owned()]));
    let caller = verifier.verify(&signer.sign(&claims).unwrap()).unwrap();
    assert_eq!(caller.session(), Some("s1"));
    let incomplete = Claims {
        session: None,
        ..claims
    };
    assert_eq!(
        problem(&verifier, &signer.sign(&incomplete).unwrap()),
        "names no session"
    );
}

#[test]
fn a_key_pair_is_made_once_and_only_its_public_half_is_shared() {
    let folder = tempfile::tempdir().unwrap();
    let first = TokenSigner::load_or_create(folder.path()).unwrap();
    let second = TokenSigner::load_or_create(folder.path()).unwrap();
    assert_eq!(first.key_id(), second.key_id());
    let keys = PublicKeys::load(&folder.path().join(crate::auth::keys::PUBLIC_FOLDER)).unwrap();
    let clock = Arc::new(MockClock::at(NOW));
    TokenVerifier::new(keys, clock)
        .verify(&first.sign(&claims()).unwrap())
        .unwrap();
    assert!(PublicKeys::load(&folder.path().join(crate::auth::keys::PRIVATE_FILE)).is_err());
}

#[test]
fn a_server_that_started_before_the_signer_finds_its_key_and_looks_at_most_once_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let public = folder.path().join("keys/public");
    let clock = Arc::new(MockClock::at(NOW));
    let keys = PublicKeys::watch(&public).unwrap();
    let verifier = TokenVerifier::new(keys, Arc::clone(&clock) as Arc<dyn Clock>);
    let stranger = TokenSigner::generate().unwrap().sign(&claims()).unwrap();
    assert_eq!(problem(&verifier, &stranger), "signed with an unknown key");

    let signer = TokenSigner::load_or_create(&folder.path().join("keys")).unwrap();
    let token = signer.sign(&claims()).unwrap();
    assert_eq!(
        problem(&verifier, &token),
        "signed with an unknown key",
        "looked a moment ago"
    );
    clock.advance(UNKNOWN_KEY_PAUSE);
    verifier.verify(&token).unwrap();
}

#[test]
fn a_key_is_added_and_withdrawn_while_the_server_runs() {
    let folder = tempfile::tempdir().unwrap();
    let old = TokenSigner::load_or_create(folder.path()).unwrap();
    let public = folder.path().join(crate::auth::keys::PUBLIC_FOLDER);
    let clock = Arc::new(MockClock::at(NOW));
    let keys = PublicKeys::load(&public).unwrap();
    let verifier = TokenVerifier::new(keys, Arc::clone(&clock) as Arc<dyn Clock>);
    let old_token = old.sign(&claims()).unwrap();
    verifier.verify(&old_token).unwrap();

    std::fs::remove_file(folder.path().join(crate::auth::keys::PRIVATE_FILE)).unwrap();
    let new = TokenSigner::load_or_create(folder.path()).unwrap();
    assert_ne!(old.key_id(), new.key_id());
    verifier.verify(&new.sign(&claims()).unwrap()).unwrap();
    verifier.verify(&old_token).unwrap();

    // A folder that makes no sense changes nothing.
    let nonsense = public.join("nonsense.pem");
    std::fs::write(&nonsense, "not a key").unwrap();
    std::fs::remove_file(public.join(format!("{}.pem", old.key_id()))).unwrap();
    clock.advance(REFRESH);
    verifier.verify(&old_token).unwrap();

    std::fs::remove_file(&nonsense).unwrap();
    clock.advance(REFRESH);
    assert_eq!(problem(&verifier, &old_token), "signed with an unknown key");
    verifier.verify(&new.sign(&claims()).unwrap()).unwrap();
}

#[test]
fn a_private_key_that_others_could_read_is_not_used() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    TokenSigner::load_or_create(folder.path()).unwrap();
    let file = folder.path().join(crate::auth::keys::PRIVATE_FILE);
    for mode in [0o604, 0o640, 0o666] {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let error = TokenSigner::load_or_create(folder.path()).unwrap_err();
        assert!(
            matches!(error, KeyError::Exposed { mode: found, .. } if found == mode),
            "{error}"
        );
    }
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    TokenSigner::load_or_create(folder.path()).unwrap();
}

#[test]
fn half_a_person_and_a_nameless_service_are_nobody() {
    let signer = TokenSigner::generate().unwrap();
    let (verifier, _) = verifier(&signer);
    let service = |name: &str| Claims::service("token-2", name, NOW, NOW.plus(HOUR));
    let half = Claims {
        user: claims().user,
        ..service("curator-worker")
    };
    assert_eq!(
        problem(&verifier, &signer.sign(&half).unwrap()),
        "names a user without a team"
    );
    assert_eq!(
        problem(&verifier, &signer.sign(&service("")).unwrap()),
        "names no service"
    );
}
