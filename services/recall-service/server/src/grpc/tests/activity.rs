//! When the people of a team were last active.

use super::*;

#[tokio::test]
async fn the_activity_of_all_teams_is_listed_page_by_page() {
    let rig = Rig::new("recall-activity").await;
    let begun = rig.clock.now().as_secs();
    rig.create("s1").await;
    for (team, user) in [("blue", "bob"), ("red", "eve")] {
        rig.clock.advance(Duration::from_hours(1));
        let session = pb::Session {
            user: format!("teams/{team}/users/{user}"),
            model: "m1".to_owned(),
            tools_json: "[]".to_owned(),
            ..Default::default()
        };
        let request = pb::CreateSessionRequest {
            parent: format!("teams/{team}"),
            ..creation("s2", session)
        };
        rig.store().create_session(request).await.unwrap();
    }
    let page = |page_token: String| pb::ListTeamActivityRequest {
        page_size: 1,
        page_token,
    };
    let first = rig.store().list_team_activity(page(String::new())).await.unwrap();
    let second = rig
        .store()
        .list_team_activity(page(first.next_page_token))
        .await
        .unwrap();
    assert_eq!(second.next_page_token, "");
    let seen: Vec<_> = [&first.teams[0], &second.teams[0]]
        .map(|activity| {
            let hours = (activity.last_active_time.unwrap().seconds - begun) / 3_600;
            (activity.team.as_str(), hours, activity.users.join(" "))
        })
        .into();
    assert_eq!(
        seen,
        [
            ("teams/blue", 1, "teams/blue/users/bob".to_owned()),
            ("teams/red", 2, "teams/red/users/eve teams/red/users/ann".to_owned()),
        ]
    );
    let person = SessionStoreClient::new(rig.wire(&rig.person("red", "ann")));
    let refused = person.list_team_activity(page(String::new())).await.unwrap_err();
    assert_eq!(refused.reason, "METHOD_DENIED");
}
