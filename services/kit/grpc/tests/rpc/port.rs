//! Coming up and going down.

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _};
use steward_base::{ErrorKind, Role};
use steward_client::{ErrorOrigin, RetryPolicy, Wire};
use steward_proto::agent::v1::GenerateRequest;
use steward_proto::learning::v1::WatchReviewsRequest;
use steward_testkit::{PATIENCE, wait_for};
use tokio::io::AsyncWriteExt as _;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use crate::fixture::{Stack, model, recall, reviews, search};

#[tokio::test]
async fn a_call_that_runs_is_finished_before_the_server_goes() {
    let stack = Stack::start().await;
    let client = recall(stack.remote.clone(), stack.user(Role::Member));
    let call = async { client.search(search("wait")).await };
    let stop = async {
        wait_for("the call to arrive", PATIENCE, || async {
            stack.probe.waiting.load(Ordering::SeqCst) == 1
        })
        .await;
        stack.boot.tasks.stop();
        let late = recall(
            Wire::connect(&stack.endpoint).unwrap().with_retry(RetryPolicy::never()),
            stack.user(Role::Member),
        );
        wait_for("the port to close", PATIENCE, || async {
            late.search(search("late"))
                .await
                .is_err_and(|error| error.kind == ErrorKind::Unavailable)
        })
        .await;
        stack.probe.gate.add_permits(1);
    };
    let (answer, ()) = tokio::join!(call, stop);
    assert_eq!(answer.unwrap().expression, "waited");
    drop(client);
    stack.stop().await;
}

#[tokio::test]
async fn a_stream_that_only_shows_something_does_not_hold_up_the_end_of_the_process() {
    let stack = Stack::start().await;
    let mut streams = Vec::new();
    for wire in stack.shapes() {
        let mut health = HealthClient::new(wire.clone())
            .watch(HealthCheckRequest::default())
            .await
            .unwrap()
            .into_inner();
        assert!(health.message().await.unwrap().is_some());
        let client = reviews(wire, stack.user(Role::Member));
        let mut stream = client.watch_reviews(WatchReviewsRequest::default()).await.unwrap();
        assert!(stream.message().await.unwrap().is_some());
        streams.push((stream, health));
    }
    stack.boot.tasks.stop();
    for (stream, _) in &mut streams {
        let error = stream.message().await.unwrap_err();
        assert_eq!(
            (error.kind, error.reason, error.origin),
            (ErrorKind::Unavailable, "DEPENDENCY_UNAVAILABLE", ErrorOrigin::Server)
        );
        assert_eq!(error.metadata, [("dependency", "curator-worker".to_owned())]);
    }
    // The health streams are still held here. Not forced: nothing was waited for in vain.
    stack.stop().await;
}

#[tokio::test]
async fn a_stream_that_does_something_is_finished_before_the_server_goes() {
    let stack = Stack::start().await;
    let mut streams = Vec::new();
    for wire in stack.shapes() {
        let client = model(wire, stack.service());
        let mut stream = client.generate(GenerateRequest::default()).await.unwrap();
        assert!(stream.message().await.unwrap().is_some());
        streams.push(stream);
    }
    stack.boot.tasks.stop();
    wait_for("the port to close", PATIENCE, || async {
        let address = stack.endpoint.strip_prefix("http://").unwrap();
        tokio::net::TcpStream::connect(address).await.is_err()
    })
    .await;
    for stream in &mut streams {
        let next = stream.message().now_or_never();
        assert!(next.is_none(), "it goes on: {next:?}");
    }
    assert!(stack.boot.tasks.running() > 0, "the server waits for its streams");
    drop(streams);
    stack.stop().await;
}

#[tokio::test]
async fn a_connection_that_says_nothing_does_not_hold_up_the_end_of_the_process() {
    let stack = Stack::start().await;
    let address = stack.endpoint.strip_prefix("http://").unwrap();
    let silent = tokio::net::TcpStream::connect(address).await.unwrap();
    let mut halting = tokio::net::TcpStream::connect(address).await.unwrap();
    halting.write_all(b"PRI * HTTP/2.0").await.unwrap();
    // The one after it is served, so the silent ones were accepted.
    recall(stack.remote.clone(), stack.user(Role::Member))
        .search(search("x"))
        .await
        .unwrap();
    stack.stop().await;
    drop((silent, halting));
}

#[tokio::test]
async fn a_unix_socket_serves_as_a_port_does() {
    let stack = Stack::start_on("unix:{folder}/steward.sock").await;
    assert!(stack.endpoint.starts_with("unix:/"), "{}", stack.endpoint);
    let answer = recall(stack.remote.clone(), stack.user(Role::Member))
        .search(search("here"))
        .await
        .unwrap();
    assert_eq!(answer.expression, "here");
    let folder = stack.folder.path().to_owned();
    stack.stop().await;
    assert!(!folder.join("steward.sock").exists());
}

#[tokio::test]
async fn reflection_lists_what_is_mounted_and_nothing_else() {
    let stack = Stack::start().await;
    for wire in stack.shapes() {
        let request = ServerReflectionRequest {
            host: String::new(),
            message_request: Some(MessageRequest::ListServices(String::new())),
        };
        let stream = futures::stream::iter([request]);
        let mut answers = ServerReflectionClient::new(wire)
            .server_reflection_info(stream)
            .await
            .unwrap()
            .into_inner();
        let answer = answers.next().await.unwrap().unwrap().message_response;
        let Some(MessageResponse::ListServicesResponse(list)) = answer else {
            panic!("no list: {answer:?}")
        };
        let mut names: Vec<_> = list.service.into_iter().map(|service| service.name).collect();
        names.sort();
        let expected = [
            "grpc.health.v1.Health",
            "grpc.reflection.v1.ServerReflection",
            "steward.access.v1.RevocationService",
            "steward.agent.v1.ModelService",
            "steward.learning.v1.ReviewService",
            "steward.recall.v1.RecallService",
        ];
        assert_eq!(names, expected);
    }
    stack.stop().await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable_within_the_deadline() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let wire = Wire::connect(&endpoint).unwrap();
    let client = recall(wire, steward_client::Credentials::anonymous()).with_timeout(Some(Duration::from_secs(20)));
    let error = client.search(search("x")).await.unwrap_err();
    assert_eq!((error.kind, error.reason), (ErrorKind::Unavailable, "UNAVAILABLE"));
    assert_eq!(error.origin, ErrorOrigin::Transport);
}
