//! Roles, request ids, previews, rescans and proofs.

use super::*;

#[tokio::test]
async fn h_5_force_is_a_maintainers() {
    let rig = rig(vec![Shelf::new("a", Trust::Community, CAUTION)]);
    let item = rig.hub.bring(ADA, "tidy").await.expect("brought");
    let member = Actor {
        role: Role::Member,
        ..ADA
    };
    let refused = rig.hub.release(member, &item.id, "mine", true).await;
    assert!(matches!(refused, Err(Error::RoleRequired { .. })), "{refused:?}");
}

#[tokio::test]
async fn h_2_a_request_id_brings_one_item_and_the_quarantine_has_an_end() {
    let rig = rig(vec![Shelf::new("a", Trust::Community, SAFE)]);
    let first = rig.hub.fetch(ADA, "tidy", "r", &quietly).await.expect("brought");
    let again = rig.hub.fetch(ADA, "tidy", "r", &quietly).await.expect("found");
    assert_eq!(first, again);
    let other = rig.hub.fetch(ADA, "a:tidy", "r", &quietly).await;
    assert!(matches!(other, Err(Error::RequestIdReused { .. })), "{other:?}");
    for _ in 1..20 {
        rig.hub.bring(ADA, "tidy").await.expect("brought");
    }
    assert_eq!(
        rig.hub.bring(ADA, "tidy").await.unwrap_err(),
        Error::QuarantineFull { open: 20, limit: 20 }
    );
    rig.hub.reject(ADA, &first.id, "no").await.expect("turned down");
    rig.hub.bring(ADA, "tidy").await.expect("there is room");
}

#[tokio::test]
async fn h_2_an_item_is_installed_once_however_often_it_is_said() {
    let rig = rig(vec![Shelf::new("a", Trust::Community, SAFE)]);
    let item = rig.hub.bring(ADA, "tidy").await.expect("brought");
    let first = rig
        .hub
        .install(ADA, &item.id, Choice::default())
        .await
        .expect("installed");
    let again = rig.hub.install(ADA, &item.id, Choice::default()).await.expect("stays");
    assert_eq!(first, again);
    assert_eq!(rig.hub.audit("red").await.expect("a log").len(), 4);
}

#[tokio::test]
async fn h_6_a_preview_shows_what_an_update_brings_and_keeps_nothing_of_it() {
    let shelf = Shelf::new("a", Trust::Community, SAFE);
    let rig = rig(vec![Arc::clone(&shelf) as Arc<dyn Source>]);
    installed(&rig, "tidy").await;
    shelf.put(Trust::Community, "r2", DANGEROUS, None);
    let preview = rig.hub.preview("red", "tidy").await.expect("a preview");
    assert_eq!(
        preview.plan,
        Plan::Available {
            revision: "r2".to_owned()
        }
    );
    let next = preview.next.expect("looked at");
    let change = next.change.expect("compared");
    assert!(change.lowered && !change.new_findings.is_empty());
    assert!(change.new_capabilities.hosts.contains("c.helper.example"));
    assert_eq!(
        (next.before, next.after),
        (skill("tidy", SAFE), skill("tidy", DANGEROUS))
    );
    assert_eq!(rig.hub.items("red", None, 9).await.expect("a list").len(), 1);
}

#[tokio::test]
async fn h_6_a_rescan_records_what_todays_rules_would_not_let_in() {
    let shelf = Shelf::new("a", Trust::Community, SAFE);
    let rig = rig(vec![shelf]);
    installed(&rig, "tidy").await;
    assert!(!rig.hub.rescan(ADA).await.expect("rescanned")[0].is_worse());
    rig.store.write_by_hand("red", "tidy", skill("tidy", DANGEROUS));
    let worse = rig.hub.rescan(ADA).await.expect("rescanned");
    assert!(worse[0].is_worse());
    let log = rig.hub.audit("red").await.expect("a log");
    let last = log.last().expect("an entry");
    assert_eq!((last.action, last.details["was"].as_str()), (Action::Verdict, "safe"));
}

#[tokio::test]
async fn h_7_any_entry_can_be_shown_to_be_in_the_log() {
    let rig = rig(vec![Shelf::new("a", Trust::Community, SAFE)]);
    installed(&rig, "tidy").await;
    for sequence in 1..=4 {
        let proof = rig.hub.prove("red", sequence).await.expect("a proof");
        assert!(proof.included && proof.first_broken.is_none());
        assert_eq!((proof.entry.sequence, proof.count), (sequence, 4));
    }
    assert_eq!(rig.hub.prove("red", 0).await.expect("the newest").entry.sequence, 4);
    for (team, sequence) in [("red", 5), ("blue", 0)] {
        let missing = rig.hub.prove(team, sequence).await;
        assert_eq!(missing.unwrap_err(), Error::NoEntry { sequence });
    }
}

#[tokio::test]
async fn d_19_what_is_refused_before_its_revision_is_known_is_on_record() {
    let shelf = Shelf::new("a", Trust::Community, SAFE);
    let rig = rig(vec![Arc::clone(&shelf) as Arc<dyn Source>]);
    shelf.fail(SourceError::Incomplete {
        file: "references/a.md".to_owned(),
        problem: "is listed and was not delivered".to_owned(),
    });
    rig.hub.bring(ADA, "tidy").await.expect_err("refused");
    let log = rig.hub.audit("red").await.expect("a log");
    assert!(log[0].action == Action::Refuse && log[0].details["problem"].contains("references/a.md"));
    shelf.fail(SourceError::Gone {
        reference: "tidy".to_owned(),
    });
    rig.hub.bring(ADA, "tidy").await.expect_err("not there");
    assert_eq!(rig.hub.audit("red").await.expect("a log").len(), 1, "nothing came in");
}
