use steward_base::Identity;
use steward_base::names::SessionId;

use super::*;
use crate::owner::Target;
use crate::test_support::{person, project, reviewer, team, user};

fn evidence(integrity: Option<Integrity>) -> Evidence {
    Evidence {
        session: SessionId::parse("s1").unwrap(),
        spans: vec!["s3".to_owned()],
        basis: None,
        integrity,
    }
}

fn notes(team_id: &str, owner: Owner) -> StoreName {
    StoreName {
        team: team(team_id),
        owner,
        target: Target::Notes,
    }
}

#[test]
fn another_person_and_another_team_look_like_nobody() {
    let ann = user("red", "ann", Role::Admin);
    for (owner_team, owner) in [("red", person("bob")), ("blue", person("ann")), ("blue", Owner::Team)] {
        for act in [Act::Read, Act::Write, Act::Decide] {
            let error = check(&ann, &notes(owner_team, owner.clone()), act).unwrap_err();
            assert!(
                matches!(error, Error::StoreNotFound { .. }),
                "{act:?} on {owner}: {error}"
            );
        }
    }
}

#[test]
fn roles_decide_on_shared_notes() {
    for owner in [Owner::Team, project("site")] {
        for (role, permitted) in [
            (Role::Viewer, vec![Act::Read]),
            (Role::Member, vec![Act::Read, Act::Write]),
            (Role::Maintainer, vec![Act::Read, Act::Write, Act::Decide]),
        ] {
            for act in [Act::Read, Act::Write, Act::Decide] {
                let allowed = check(&user("red", "ann", role), &notes("red", owner.clone()), act).is_ok();
                assert_eq!(allowed, permitted.contains(&act), "{role:?} {act:?} {owner}");
            }
        }
    }
}

#[test]
fn a_review_decides_on_nothing_not_even_for_its_own_person() {
    let review = reviewer("red", "ann", 1);
    let own = notes("red", person("ann"));
    assert!(matches!(
        check(&review, &own, Act::Decide),
        Err(Error::AutomaticDecision)
    ));
    assert!(check(&review, &own, Act::Write).is_ok());
}

#[test]
fn a_caller_without_a_person_knows_only_what_is_shared() {
    let mut nobody = user("red", "ann", Role::Member);
    nobody.user = None;
    assert!(check(&nobody, &notes("red", Owner::Team), Act::Read).is_ok());
    assert!(check(&nobody, &notes("red", person("ann")), Act::Read).is_err());
    nobody.team = None;
    assert!(check(&nobody, &notes("red", Owner::Team), Act::Read).is_err());
}

#[test]
fn an_automatic_writer_must_cite_the_session_that_it_looks_at() {
    let good = evidence(Some(Integrity::Person));
    let bare = Evidence {
        spans: Vec::new(),
        ..good.clone()
    };
    let elsewhere = Evidence {
        session: SessionId::parse("s2").unwrap(),
        ..good.clone()
    };
    for evidence in [None, Some(&bare), Some(&elsewhere)] {
        let gate = gate(&reviewer("red", "ann", 1), &person("ann"), evidence);
        assert_eq!(gate, Gate::Refuse(Refusal::EvidenceMissing));
    }
    assert_eq!(
        gate(&reviewer("red", "ann", 1), &person("ann"), Some(&good)),
        Gate::Open
    );
    let mut unbound = reviewer("red", "ann", 1);
    if let Identity::Job { session, .. } = &mut unbound.identity {
        *session = None;
    }
    assert_eq!(
        gate(&unbound, &person("ann"), Some(&good)),
        Gate::Refuse(Refusal::EvidenceMissing),
        "who looks at no session has nothing to cite"
    );
}

#[test]
fn what_rests_on_external_text_waits_for_a_person() {
    let review = reviewer("red", "ann", 1);
    for integrity in [None, Some(Integrity::External), Some(Integrity::UnknownTool)] {
        let gate = gate(&review, &person("ann"), Some(&evidence(integrity)));
        assert_eq!(gate, Gate::Propose(Waiting::UntrustedEvidence));
    }
    for integrity in [Integrity::Workspace, Integrity::Person, Integrity::Operator] {
        assert_eq!(
            gate(&review, &person("ann"), Some(&evidence(Some(integrity)))),
            Gate::Open
        );
    }
}

#[test]
fn shared_notes_change_directly_only_by_a_maintainer_who_is_present() {
    let cited = evidence(Some(Integrity::Person));
    let mut review = reviewer("red", "ann", 1);
    review.role = Role::Admin;
    for owner in [Owner::Team, project("site")] {
        assert_eq!(gate(&user("red", "ann", Role::Maintainer), &owner, None), Gate::Open);
        let member = gate(&user("red", "ann", Role::Member), &owner, None);
        assert_eq!(member, Gate::Propose(Waiting::SharedByMember));
        assert_eq!(
            gate(&review, &owner, Some(&cited)),
            Gate::Propose(Waiting::SharedAndAutomatic)
        );
    }
    assert_eq!(
        gate(&user("red", "ann", Role::Member), &person("ann"), None),
        Gate::Open
    );
}

/// `A-1`, `M-13`: the role table of the service's README, row by row: whose memory, who, and what they may do at once.
#[test]
fn the_role_table_of_the_readme_holds() {
    let ann = |role| user("red", "ann", role);
    let review = reviewer("red", "ann", 1);
    let table = [
        // Own notes and profile.
        (person("ann"), ann(Role::Viewer), [true, false, false], None),
        (person("ann"), ann(Role::Member), [true, true, true], Some(Gate::Open)),
        (
            person("ann"),
            ann(Role::Maintainer),
            [true, true, true],
            Some(Gate::Open),
        ),
        (person("ann"), review.clone(), [true, true, false], None),
        // Another person's: not even an admin.
        (person("bob"), ann(Role::Member), [false, false, false], None),
        (person("bob"), ann(Role::Admin), [false, false, false], None),
        // What is shared.
        (Owner::Team, ann(Role::Viewer), [true, false, false], None),
        (
            Owner::Team,
            ann(Role::Member),
            [true, true, false],
            Some(Gate::Propose(Waiting::SharedByMember)),
        ),
        (Owner::Team, ann(Role::Maintainer), [true, true, true], Some(Gate::Open)),
        (Owner::Team, review.clone(), [true, true, false], None),
        (project("site"), ann(Role::Viewer), [true, false, false], None),
        (
            project("site"),
            ann(Role::Member),
            [true, true, false],
            Some(Gate::Propose(Waiting::SharedByMember)),
        ),
        (
            project("site"),
            ann(Role::Maintainer),
            [true, true, true],
            Some(Gate::Open),
        ),
        (project("site"), review, [true, true, false], None),
    ];
    for (owner, caller, may, opens) in table {
        let store = notes("red", owner.clone());
        for (act, may) in [Act::Read, Act::Write, Act::Decide].into_iter().zip(may) {
            assert_eq!(
                check(&caller, &store, act).is_ok(),
                may,
                "{:?} {act:?} {owner}",
                caller.role
            );
        }
        if let Some(opens) = opens {
            assert_eq!(gate(&caller, &owner, None), opens, "{:?} {owner}", caller.role);
        }
    }
}
