//! Who reaches what.

use pb::search_request::Shape;

use super::*;

fn read(session: &str) -> pb::SearchRequest {
    ask(Shape::Read(pb::Read {
        session: session.to_owned(),
        ..Default::default()
    }))
}

#[tokio::test]
async fn people_do_not_reach_the_store_itself() {
    let rig = Rig::new("recall-people").await;
    rig.create("s1").await;
    let person = SessionStoreClient::new(rig.wire(&rig.person("red", "ann")));
    let name = get(S1);
    assert_eq!(person.get_session(name).await.unwrap_err().reason, "METHOD_DENIED");
    let list = person.list_due_reviews(pb::ListDueReviewsRequest::default()).await;
    assert_eq!(list.unwrap_err().reason, "METHOD_DENIED");
}

#[tokio::test]
async fn a_review_reads_its_session_and_no_other() {
    let rig = Rig::new("recall-review").await;
    for id in ["s1", "s2"] {
        rig.create(id).await;
        rig.say(&format!("teams/red/sessions/{id}"), "hello").await;
    }
    let review = SessionStoreClient::new(rig.wire(&rig.review_of("s1", "ann")));
    let list = |session: &str| pb::ListMessagesRequest {
        session: session.to_owned(),
        ..Default::default()
    };
    assert_eq!(review.list_messages(list(S1)).await.unwrap().messages.len(), 1);
    assert!(review.get_session(get(S1)).await.is_ok());
    let other = review.list_messages(list("teams/red/sessions/s2")).await.unwrap_err();
    let missing = review.list_messages(list("teams/red/sessions/gone")).await.unwrap_err();
    assert_eq!(
        (other.reason, missing.reason),
        ("SESSION_NOT_FOUND", "SESSION_NOT_FOUND")
    );
    let bobs = SessionStoreClient::new(rig.wire(&rig.review_of("s1", "bob")));
    assert_eq!(
        bobs.list_messages(list(S1)).await.unwrap_err().reason,
        "SESSION_NOT_FOUND"
    );
    let append = review
        .append_messages(append(S1, 1, 1, vec![said("x")]))
        .await
        .unwrap_err();
    assert_eq!(append.reason, "METHOD_DENIED");
}

#[tokio::test]
async fn a_foreign_session_looks_like_a_missing_one() {
    let rig = Rig::new("recall-foreign").await;
    rig.create("s1").await;
    rig.say(S1, "secret kingfisher").await;
    let blue = rig.search(&rig.person("blue", "ann"));
    let foreign = pb::SearchRequest {
        parent: "teams/blue/users/ann".to_owned(),
        ..read(S1)
    };
    let missing = pb::SearchRequest {
        parent: "teams/blue/users/ann".to_owned(),
        ..read("teams/red/sessions/gone")
    };
    let (foreign, missing) = (
        blue.search(foreign).await.unwrap_err(),
        blue.search(missing).await.unwrap_err(),
    );
    assert_eq!((foreign.reason, foreign.kind), (missing.reason, missing.kind));
    assert_eq!(foreign.reason, "SESSION_NOT_FOUND");
    let as_red = blue.search(discover("kingfisher")).await.unwrap_err();
    assert_eq!(as_red.violations[0].field, "parent");
    let bob = rig.search(&rig.person("red", "bob"));
    assert_eq!(
        bob.search(discover("kingfisher")).await.unwrap_err().violations[0].field,
        "parent"
    );
    let own = pb::SearchRequest {
        parent: "teams/red/users/bob".to_owned(),
        ..read(S1)
    };
    assert_eq!(bob.search(own).await.unwrap_err().reason, "SESSION_NOT_FOUND");

    let behalf = rig.service().on_behalf(
        TeamId::parse("blue").unwrap(),
        UserId::parse("ann").unwrap(),
        Role::Member,
    );
    let service = SessionStoreClient::new(rig.wire(&behalf));
    let answer = service.get_session(get(S1)).await;
    assert_eq!(answer.unwrap_err().reason, "SESSION_NOT_FOUND");
}
