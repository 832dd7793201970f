//! The search as the agent and people use it.

use steward_proto::common::v1 as common;

use super::*;
use pb::search_request::Shape;

#[tokio::test]
async fn a_message_is_found_as_soon_as_its_append_is_answered() {
    let rig = Rig::new("recall-find").await;
    rig.create("s1").await;
    rig.say(S1, "青岛啤酒节 and the kingfisher").await;
    let ann = rig.search(&rig.person("red", "ann"));
    for query in ["岛", "kingfisher", "啤酒 kingfisher"] {
        let found = ann.search(discover(query)).await.unwrap();
        assert_eq!(found.conversations.len(), 1, "{query}");
        let conversation = &found.conversations[0];
        assert_eq!(
            (conversation.session.as_str(), conversation.root_session.as_str()),
            (S1, S1)
        );
        let hit = conversation.hit.as_ref().unwrap();
        assert!(hit.snippet.contains('\u{e000}') && hit.snippet.contains('\u{e001}') && hit.score.is_finite());
        assert_eq!(hit.integrity(), common::Integrity::Person);
        assert_eq!(conversation.around[0].text, "青岛啤酒节 and the kingfisher");
    }
    let browsed = ann.search(ask(Shape::Browse(pb::Browse::default()))).await.unwrap();
    assert_eq!(browsed.conversations[0].opening[0].seq, 1);
    let read = pb::Read {
        session: S1.to_owned(),
        ..Default::default()
    };
    assert_eq!(ann.search(ask(Shape::Read(read))).await.unwrap().messages.len(), 1);
    let scroll = pb::Scroll {
        session: S1.to_owned(),
        around_seq: 1,
        ..Default::default()
    };
    assert_eq!(ann.search(ask(Shape::Scroll(scroll))).await.unwrap().messages.len(), 1);
}

#[tokio::test]
async fn a_bound_credential_asks_from_its_own_session() {
    let rig = Rig::new("recall-bound").await;
    for id in ["s1", "s2"] {
        rig.create(id).await;
        rig.say(&format!("teams/red/sessions/{id}"), "osprey").await;
    }
    let capabilities = BTreeSet::from(["session_search".to_owned()]);
    let session = SessionId::parse("s1").unwrap();
    let turn = rig.search(&rig.person("red", "ann").for_turn(session, "t1", capabilities));
    let mut request = discover("osprey");
    request.current_session = "teams/red/sessions/s2".to_owned();
    let found = turn.search(request.clone()).await.unwrap();
    assert_eq!(found.conversations.len(), 1);
    assert_eq!(found.conversations[0].session, "teams/red/sessions/s2");
    let person = rig.search(&rig.person("red", "ann")).search(request).await.unwrap();
    assert_eq!(person.conversations[0].session, S1);
    let read = ask(Shape::Read(pb::Read {
        session: S1.to_owned(),
        ..Default::default()
    }));
    assert_eq!(turn.search(read).await.unwrap_err().reason, "IN_CONTEXT");
}

#[tokio::test]
async fn odd_queries_are_answers_and_wrong_fields_are_named_together() {
    let rig = Rig::new("recall-odd").await;
    rig.create("s1").await;
    rig.say(S1, "hello").await;
    let ann = rig.search(&rig.person("red", "ann"));
    for query in [
        "",
        "\"",
        "NEAR(",
        "AND",
        "*",
        "said:x",
        "{tool} : y",
        "^hello",
        &"(".repeat(900),
    ] {
        assert!(ann.search(discover(query)).await.is_ok(), "{query}");
    }
    let wrong = pb::Discover {
        query: "x".to_owned(),
        limit: -1,
        sort: 99,
        roles: vec![77],
        ..Default::default()
    };
    let error = ann.search(ask(Shape::Discover(wrong))).await.unwrap_err();
    let fields: Vec<&str> = error
        .violations
        .iter()
        .map(|violation| violation.field.as_str())
        .collect();
    assert_eq!(fields, ["discover.limit", "discover.sort", "discover.roles[0]"]);
    let shapeless = pb::SearchRequest {
        shape: None,
        ..discover("x")
    };
    assert_eq!(ann.search(shapeless).await.unwrap_err().violations[0].field, "shape");
}
