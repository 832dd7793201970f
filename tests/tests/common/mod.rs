//! What the scenario files share.
#![allow(dead_code, unused_macros, reason = "each scenario file uses a part of it")]

use steward_testkit::ModelServer;
use steward_tests::StackOptions;

/// Makes two tests of a scenario, one per shape.
#[macro_export]
macro_rules! both_shapes {
    ($scenario:ident) => {
        mod $scenario {
            #[tokio::test(flavor = "multi_thread")]
            async fn in_one_process() {
                super::$scenario(steward_tests::Shape::One).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn in_five_processes() {
                super::$scenario(steward_tests::Shape::Split).await;
            }
        }
    };
}

/// Both reviews due after every turn.
pub(crate) fn reviews_after_each_turn(model: &ModelServer) -> StackOptions {
    StackOptions::with_model(&model.base_url())
        .set("AGENT__NUDGES__MEMORY_TURNS", 1)
        .set("AGENT__NUDGES__SKILL_ITERATIONS", 1)
}

/// No review is ever due.
pub(crate) fn no_reviews(model: &ModelServer) -> StackOptions {
    StackOptions::with_model(&model.base_url())
        .set("AGENT__NUDGES__MEMORY_TURNS", 0)
        .set("AGENT__NUDGES__SKILL_ITERATIONS", 0)
}

/// Full names of the services that reflection lists at an endpoint.
pub(crate) async fn reflected(endpoint: &str) -> Vec<String> {
    use tonic_reflection::pb::v1::ServerReflectionRequest;
    use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
    use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
    use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

    let channel = tonic::transport::Endpoint::from_shared(endpoint.to_owned())
        .unwrap()
        .connect()
        .await
        .unwrap();
    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let answer = ServerReflectionClient::new(channel)
        .server_reflection_info(tokio_stream::once(request))
        .await
        .expect("reflection answers");
    let item = answer.into_inner().message().await.unwrap().expect("one answer");
    match item.message_response {
        Some(MessageResponse::ListServicesResponse(list)) => {
            list.service.into_iter().map(|service| service.name).collect()
        }
        other => panic!("reflection answered {other:?}"),
    }
}
