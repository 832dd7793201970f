//! What is published comes out over real HTTP, byte for byte, to whom it is meant for, and goes back in through a hub.

use reqwest::StatusCode;
use reqwest::header::{AUTHORIZATION, ETAG, IF_NONE_MATCH, ORIGIN};
use serde_json::{Value, json};

use super::*;

/// The rig with a shelf at a port of this machine.
struct Served {
    rig: Rig,
    base: String,
    http: reqwest::Client,
}

async fn served(public: bool) -> Served {
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = free.local_addr().unwrap().to_string();
    let base = format!("http://{address}");
    let mut rig = rig()
        .await
        .reset(|config| {
            config.serve.listen = address;
            config.serve.public = public;
            config.hub.permitted_origins.push(base.clone());
        })
        .await;
    drop(free);
    rig.built.start_background(&rig.boot.tasks);
    steward_runtime::tls::install_provider();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    // The port is taken in the background.
    while http.get(&base).send().await.is_err() {
        tokio::task::yield_now().await;
    }
    Served { rig, base, http }
}

impl Served {
    /// A skill of the team.
    async fn written(&self, name: &str, body: &str) -> String {
        let content = |path: &str, content: &str| skill::SkillContent {
            path: path.to_owned(),
            content: content.as_bytes().to_vec().into(),
        };
        let request = skill::ImportSkillRequest {
            parent: "teams/red/users/ada".to_owned(),
            scope: skill::SkillScope::Team.into(),
            folder: name.to_owned(),
            files: vec![
                content("SKILL.md", &skill_md(name, body)),
                content("references/grüße.md", "Notes.\n"),
            ],
            request_id: format!("import {name}"),
            ..skill::ImportSkillRequest::default()
        };
        let wire = self.rig.built.local_client();
        let exchange =
            steward_client::ExchangeClient::new(wire).with_credentials(self.rig.credentials("red", Role::Maintainer));
        exchange.import_skill(request).await.unwrap().skill.unwrap().name
    }

    async fn published(&self, name: &str, body: &str) -> pb::HubPublication {
        let skill = self.written(name, body).await;
        self.publish(&skill).await.unwrap()
    }

    async fn publish(&self, skill: &str) -> Result<pb::HubPublication, ClientError> {
        let request = pb::PublishHubSkillRequest {
            parent: "teams/red".to_owned(),
            skill: skill.to_owned(),
        };
        Ok(self.rig.ada().publish_hub_skill(request).await?.publication.unwrap())
    }

    async fn get(&self, path: &str) -> reqwest::Response {
        self.http.get(format!("{}{path}", self.base)).send().await.unwrap()
    }

    fn token(&self, team: &str) -> String {
        let (team, user) = (TeamId::parse(team).unwrap(), UserId::parse("ada").unwrap());
        let now = self.rig.clock.now();
        let claims = Claims::user("t", team, user, Role::Viewer, now, now.plus(Duration::from_mins(10)));
        format!("Bearer {}", self.rig.signer.sign(&claims).unwrap())
    }

    async fn ask(&self, method: &str, params: Value) -> Value {
        let question = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        let answer = self
            .http
            .post(format!("{}/teams/red/mcp", self.base))
            .body(question.to_string())
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        let answer: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
        assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(7)));
        answer
    }
}

const INDEX: &str = "/teams/red/.well-known/agent-skills/index.json";

#[tokio::test]
async fn h_1_what_is_published_goes_back_in_through_a_hub_byte_for_byte() {
    let served = served(true).await;
    let publication = served.published("tidy", SAFE).await;
    assert!(publication.served);
    let index: Value = serde_json::from_slice(&served.get(INDEX).await.bytes().await.unwrap()).unwrap();
    assert_eq!(
        index["$schema"],
        "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
    );
    let row = &index["skills"][0];
    assert_eq!(
        (&row["name"], &row["type"], &row["description"]),
        (&json!("tidy"), &json!("archive"), &json!("Tidies folders."))
    );
    assert_eq!(row["digest"], format!("sha256:{}", publication.archive_sha256));
    let archive = served.get(&publication.path).await.bytes().await.unwrap();
    assert_eq!(sha256_hex(&archive), publication.archive_sha256);
    assert_eq!(archive.len() as u64, publication.size_bytes);
    let blue = served.rig.hub("blue", Role::Maintainer);
    let request = pb::FetchHubItemRequest {
        parent: "teams/blue".to_owned(),
        reference: format!("well-known:{}/teams/red#tidy", served.base),
        request_id: "r".to_owned(),
    };
    let mut stream = blue.fetch_hub_item(request).await.unwrap();
    let item = loop {
        if let Some(Event::Item(item)) = stream.message().await.unwrap().unwrap().event {
            break item;
        }
    };
    assert_eq!(item.state(), State::Approved);
    let installed = blue.install_hub_item(install(&item)).await.unwrap().skill.unwrap();
    assert_eq!(installed.tree_sha256, publication.tree_sha256);
    assert_eq!(installed.files.len(), 2);
}

#[tokio::test]
async fn a_page_has_its_digest_for_a_tag_and_is_not_sent_twice() {
    let served = served(true).await;
    let publication = served.published("tidy", SAFE).await;
    for path in [INDEX, publication.path.as_str()] {
        let first = served.get(path).await;
        let tag = first.headers()[ETAG].clone();
        assert_eq!(
            tag.to_str().unwrap(),
            format!("\"{}\"", sha256_hex(&first.bytes().await.unwrap()))
        );
        let request = served.http.get(format!("{}{path}", served.base));
        let again = request.header(IF_NONE_MATCH, tag).send().await.unwrap();
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{path}");
        assert!(again.bytes().await.unwrap().is_empty());
        let other = served.http.get(format!("{}{path}", served.base));
        let other = other.header(IF_NONE_MATCH, "\"other\"").send().await.unwrap();
        assert_eq!(other.status(), StatusCode::OK);
    }
}

#[tokio::test]
async fn what_is_not_for_everyone_takes_a_token_of_the_team() {
    let served = served(false).await;
    let publication = served.published("tidy", SAFE).await;
    for path in [INDEX, publication.path.as_str()] {
        assert_eq!(served.get(path).await.status(), StatusCode::UNAUTHORIZED, "{path}");
        for (authorization, status) in [
            (served.token("red"), StatusCode::OK),
            (served.token("blue"), StatusCode::NOT_FOUND),
            ("Bearer nothing".to_owned(), StatusCode::UNAUTHORIZED),
            ("Basic YTpi".to_owned(), StatusCode::UNAUTHORIZED),
        ] {
            let request = served.http.get(format!("{}{path}", served.base));
            let answer = request.header(AUTHORIZATION, authorization).send().await.unwrap();
            assert_eq!(answer.status(), status, "{path}");
        }
    }
    let asked = served
        .http
        .post(format!("{}/teams/red/mcp", served.base))
        .body("{}")
        .send()
        .await
        .unwrap();
    assert_eq!(asked.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn nothing_is_given_out_that_was_not_published_or_is_withdrawn() {
    let served = served(true).await;
    served.written("quiet", SAFE).await;
    assert_eq!(served.get(INDEX).await.status(), StatusCode::NOT_FOUND);
    let publication = served.published("tidy", SAFE).await;
    assert_eq!(
        served
            .get("/teams/blue/.well-known/agent-skills/index.json")
            .await
            .status(),
        StatusCode::NOT_FOUND
    );
    let index = served.get(INDEX).await.text().await.unwrap();
    assert!(index.contains("tidy") && !index.contains("quiet"), "{index}");
    for path in [
        format!("/teams/red/.well-known/agent-skills/tidy/{}.tar.gz", "0".repeat(64)),
        publication.path.replace("tidy", "quiet"),
        publication.path.replace("/red/", "/blue/"),
    ] {
        assert_eq!(served.get(&path).await.status(), StatusCode::NOT_FOUND, "{path}");
    }
    let name = format!("teams/red/hubWithdrawals/{}", publication.tree_sha256);
    let revoke = pb::WithdrawHubTreeRequest {
        name: name.clone(),
        standing: pb::HubStanding::Revoked.into(),
        reason: "wrong".to_owned(),
    };
    served.rig.ada().withdraw_hub_tree(revoke).await.unwrap();
    for path in [INDEX, publication.path.as_str()] {
        assert_eq!(served.get(path).await.status(), StatusCode::NOT_FOUND, "{path}");
    }
    let list = pb::ListHubPublicationsRequest {
        parent: "teams/red".to_owned(),
        ..pb::ListHubPublicationsRequest::default()
    };
    let listed = served
        .rig
        .ada()
        .list_hub_publications(list.clone())
        .await
        .unwrap()
        .publications;
    assert_eq!((listed.len(), listed[0].served), (1, false));
    let reinstate = pb::ReinstateHubTreeRequest {
        name,
        reason: "right".to_owned(),
    };
    served.rig.ada().reinstate_hub_tree(reinstate).await.unwrap();
    assert_eq!(served.get(INDEX).await.status(), StatusCode::OK);
    let end = pb::UnpublishHubSkillRequest {
        name: "teams/red/hubPublications/tidy".to_owned(),
    };
    served.rig.ada().unpublish_hub_skill(end.clone()).await.unwrap();
    assert_eq!(served.get(INDEX).await.status(), StatusCode::NOT_FOUND);
    let again = served.rig.ada().unpublish_hub_skill(end).await.unwrap_err();
    assert_eq!(reason(&again), "HUB_PUBLICATION_NOT_FOUND");
}

#[tokio::test]
async fn only_a_teams_own_and_harmless_skills_are_published() {
    let served = served(true).await;
    let skill = served.written("tidy", SAFE).await;
    let member = served.rig.hub("red", Role::Member);
    let request = |skill: &str| pb::PublishHubSkillRequest {
        parent: "teams/red".to_owned(),
        skill: skill.to_owned(),
    };
    let denied = member.publish_hub_skill(request(&skill)).await.unwrap_err();
    assert_eq!(reason(&denied), "METHOD_DENIED");
    for (skill, told) in [
        ("teams/red/users/ada/skills/tidy", "HUB_NOT_PUBLISHABLE"),
        ("builtins/skills/plan", "HUB_NOT_PUBLISHABLE"),
        ("teams/red/skills/none", "SKILL_NOT_FOUND"),
        ("tidy", "INVALID_REQUEST"),
    ] {
        assert_eq!(reason(&served.publish(skill).await.unwrap_err()), told, "{skill}");
    }
    let text = skill_md("bad", DANGEROUS);
    let bad = served.written("bad", text.split("# Tidy").nth(1).unwrap()).await;
    assert_eq!(reason(&served.publish(&bad).await.unwrap_err()), "HUB_POLICY_BLOCKED");
}

#[tokio::test]
async fn the_skills_extension_lists_skills_with_all_digests_and_reads_their_files() {
    let served = served(true).await;
    served.published("tidy", SAFE).await;
    let begun = served
        .ask(
            "initialize",
            json!({ "protocolVersion": "2025-06-18", "capabilities": {} }),
        )
        .await;
    assert_eq!(begun["result"]["protocolVersion"], "2025-06-18");
    assert!(begun["result"]["capabilities"]["extensions"]["io.modelcontextprotocol/skills"].is_object());
    let listed = served.ask("skills/list", json!({})).await;
    let found = &listed["result"]["skills"][0];
    assert_eq!(found["uri"], "skill://tidy/SKILL.md");
    assert_eq!(
        found["frontmatter"],
        json!({ "name": "tidy", "description": "Tidies folders." })
    );
    let resources = found["resources"].as_array().unwrap();
    assert_eq!(resources.len(), 2);
    for resource in resources {
        let read = served.ask("resources/read", json!({ "uri": resource["uri"] })).await;
        let content = &read["result"]["contents"][0];
        assert_eq!(content["uri"], resource["uri"]);
        let text = content["text"].as_str().unwrap();
        assert_eq!(resource["digest"], format!("sha256:{}", sha256_hex(text.as_bytes())));
    }
    let one = served
        .ask("skills/get", json!({ "uri": "skill://tidy/SKILL.md" }))
        .await;
    assert_eq!(&one["result"]["skill"], found);
    let plain = served.ask("resources/list", json!({})).await;
    assert_eq!(plain["result"]["resources"][0]["uri"], "skill://tidy/SKILL.md");
    assert!(plain["result"].get("nextCursor").is_none());
    for (method, params, code) in [
        ("skills/get", json!({ "uri": "skill://none/SKILL.md" }), -32_602),
        ("skills/get", json!({}), -32_602),
        ("skills/list", json!({ "cursor": 3 }), -32_602),
        ("resources/read", json!({ "uri": "skill://tidy/../SKILL.md" }), -32_002),
        ("resources/read", json!({ "uri": "file:///etc/passwd" }), -32_002),
        ("tools/list", json!({}), -32_601),
    ] {
        let answer = served.ask(method, params.clone()).await;
        assert_eq!(answer["error"]["code"], code, "{method} {params}");
    }
}

#[tokio::test]
async fn what_is_no_question_is_answered_as_the_protocol_says() {
    let served = served(true).await;
    served.published("tidy", SAFE).await;
    let address = format!("{}/teams/red/mcp", served.base);
    let notified = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
    let ping = json!({ "jsonrpc": "2.0", "id": "a", "method": "ping" }).to_string();
    for (body, headers, status) in [
        (notified.as_str(), None, StatusCode::ACCEPTED),
        (ping.as_str(), None, StatusCode::OK),
        ("not json", None, StatusCode::BAD_REQUEST),
        ("[]", None, StatusCode::BAD_REQUEST),
        (
            ping.as_str(),
            Some(("mcp-protocol-version", "1999-01-01")),
            StatusCode::BAD_REQUEST,
        ),
        (
            ping.as_str(),
            Some(("mcp-protocol-version", "2025-06-18")),
            StatusCode::OK,
        ),
        (
            ping.as_str(),
            Some((ORIGIN.as_str(), "https://evil.example")),
            StatusCode::FORBIDDEN,
        ),
        (
            ping.as_str(),
            Some((ORIGIN.as_str(), served.base.as_str())),
            StatusCode::OK,
        ),
    ] {
        let mut request = served.http.post(&address).body(body.to_owned());
        if let Some((name, value)) = headers {
            request = request.header(name, value);
        }
        assert_eq!(request.send().await.unwrap().status(), status, "{body} {headers:?}");
    }
    let large = "x".repeat(100_000);
    let refused = served.http.post(&address).body(large).send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(
        served.http.get(&address).send().await.unwrap().status(),
        StatusCode::METHOD_NOT_ALLOWED
    );
}
