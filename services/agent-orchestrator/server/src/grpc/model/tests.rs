//! Model calls for jobs, from the job's side.

use steward_base::ErrorKind;
use steward_client::{Client, ClientError};
use steward_model::prefix::extends_all;
use steward_proto::agent::v1 as pb;
use steward_proto::agent::v1::generate_response::Item;
use steward_testkit::{ModelServer, Reply, ScriptedCall};

use crate::config::ModelConfig;
use crate::tests::rig::{Options, World};

fn said(text: &str) -> pb::ModelMessage {
    pb::ModelMessage {
        message: Some(pb::model_message::Message::User(pb::ModelUserMessage {
            text: text.to_owned(),
        })),
    }
}

fn request() -> pb::GenerateRequest {
    pb::GenerateRequest {
        user: "teams/red/users/ann".to_owned(),
        system_prompt: "Be brief.".to_owned(),
        tools_json: r#"[{"name":"memory","description":"d","input_schema":{"type":"object"}}]"#.to_owned(),
        messages: vec![said("What was learned?")],
        purpose: "review".to_owned(),
        ..pb::GenerateRequest::default()
    }
}

async fn generate(client: &Client, request: pb::GenerateRequest) -> Result<Vec<Item>, ClientError> {
    let mut stream = client.model.generate(request).await?;
    let mut items = Vec::new();
    while let Some(item) = stream.message().await? {
        items.push(item.item.unwrap());
    }
    Ok(items)
}

#[tokio::test]
async fn a_job_gets_the_reply_in_pieces_and_its_calls_whole() {
    let odd = r#"{"z":9007199254740993, "a":1}"#;
    let reply = Reply::text_and_calls("Something.", [ScriptedCall::new("c1", "memory", odd)]).usage(9, 0, 3);
    let world = World::new(
        ModelServer::with_replies([reply, Reply::text("Nothing.")]).await,
        Options::default(),
    );
    let process = world.start().await;
    let client = world.job_client(&process, "ann", &["generate"]);
    let items = generate(&client, request()).await.unwrap();
    let call = pb::ModelToolCall {
        id: "c1".to_owned(),
        name: "memory".to_owned(),
        arguments_json: odd.to_owned(),
    };
    assert_eq!(items[items.len() - 2], Item::ToolCall(call.clone()));
    let Some(Item::Finish(finish)) = items.last() else {
        panic!("{items:?}")
    };
    assert_eq!(
        (finish.finish_reason.as_str(), finish.model.as_str()),
        ("tool_calls", "scripted")
    );
    assert_eq!(finish.usage.unwrap().input_tokens, Some(9));
    assert_eq!(finish.messages_sha256.len(), 64);

    let mut longer = request();
    longer.messages.push(pb::ModelMessage {
        message: Some(pb::model_message::Message::Assistant(pb::ModelAssistantMessage {
            text: "Something.".to_owned(),
            tool_calls: vec![call],
            native: None,
        })),
    });
    longer.messages.push(pb::ModelMessage {
        message: Some(pb::model_message::Message::Tool(pb::ModelToolMessage {
            call_id: "c1".to_owned(),
            name: "memory".to_owned(),
            text: "Saved.".to_owned(),
        })),
    });
    generate(&client, longer).await.unwrap();
    extends_all(&world.model.bodies()).unwrap();
}

#[tokio::test]
async fn a_job_asks_for_its_own_person_and_with_its_capability_only() {
    let world = World::new(ModelServer::scripted(|_| Reply::text("x")).await, Options::default());
    let process = world.start().await;
    let without = world.job_client(&process, "ann", &["memory"]);
    assert_eq!(generate(&without, request()).await.unwrap_err().reason, "METHOD_DENIED");
    let person = world.client(&process, "ann");
    assert_eq!(generate(&person, request()).await.unwrap_err().reason, "METHOD_DENIED");
    let bens = world.job_client(&process, "ben", &["generate"]);
    let error = generate(&bens, request()).await.unwrap_err();
    assert_eq!(
        (error.reason, error.violations[0].field.as_str()),
        ("INVALID_REQUEST", "user")
    );
    let unknown = pb::GenerateRequest {
        model: "other".to_owned(),
        ..request()
    };
    let anns = world.job_client(&process, "ann", &["generate"]);
    assert_eq!(generate(&anns, unknown).await.unwrap_err().reason, "MODEL_UNKNOWN");
    let bad = pb::GenerateRequest {
        tools_json: "{".to_owned(),
        messages: Vec::new(),
        ..request()
    };
    let error = generate(&anns, bad).await.unwrap_err();
    let fields: Vec<&str> = error
        .violations
        .iter()
        .map(|violation| violation.field.as_str())
        .collect();
    assert_eq!(fields, ["tools_json", "messages"]);
    assert!(world.model.requests().is_empty());
}

#[tokio::test]
async fn a_providers_words_never_reach_the_job() {
    let body = r#"{"error":{"message":"quota of key sk-live-9 used up","code":"insufficient_quota"}}"#;
    let world = World::new(
        ModelServer::scripted(move |_| Reply::error(429, body)).await,
        Options::default(),
    );
    let process = world.start().await;
    let client = world.job_client(&process, "ann", &["generate"]);
    let error = generate(&client, request()).await.unwrap_err();
    assert_eq!((error.kind, error.reason), (ErrorKind::Exhausted, "MODEL_QUOTA"));
    assert!(!format!("{error:?}").contains("sk-live-9"));
}

#[tokio::test]
async fn the_route_names_models_and_no_keys() {
    let world = World::new(ModelServer::scripted(|_| Reply::text("x")).await, Options::default());
    let config = ModelConfig {
        base_url: Some(world.model.base_url()),
        name: Some("big".to_owned()),
        review_model: Some("small".to_owned()),
        api_key: Some(steward_runtime::Secret::new("sk-live-9".to_owned())),
        ..ModelConfig::default()
    };
    let process = world.start_with(&config).await;
    let client = world.job_client(&process, "ann", &["generate"]);
    let route = client.model.get_model_route(pb::GetModelRouteRequest {}).await.unwrap();
    assert_eq!(
        (route.model.as_str(), route.review_model.as_str(), route.configured),
        ("big", "small", true)
    );
    assert!(!format!("{route:?}").contains("sk-live-9"));
    let bare = world.start_with(&ModelConfig::default()).await;
    let client = world.client(&bare, "ann");
    let route = client.model.get_model_route(pb::GetModelRouteRequest {}).await.unwrap();
    assert!(!route.configured && route.base_url.is_empty());
}
