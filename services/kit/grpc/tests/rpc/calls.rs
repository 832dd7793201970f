//! What happens to a call that got in.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use steward_base::{ErrorKind, Role};
use steward_client::ambient::{self, Ambient};
use steward_client::{ClientError, ErrorOrigin, MAX_MESSAGE_BYTES};
use steward_proto::agent::v1::GenerateRequest;
use steward_proto::recall::v1::recall_service_client::RecallServiceClient;
use steward_runtime::telemetry;
use steward_testkit::{PATIENCE, wait_for};
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::fixture::{Stack, model, recall, search, trace_id};

/// Everything that a caller can see of an error.
fn visible(error: &ClientError) -> String {
    format!(
        "{:?} {} {} {} {:?} {:?} {:?} {:?} {:?} {}",
        error.kind,
        error.reason,
        error.domain,
        error.message,
        error.metadata,
        error.violations,
        error.resource,
        error.retry_after,
        error.origin,
        error.request_id
    )
}

fn named(id: &str) -> Ambient {
    Ambient {
        request_id: Some(Arc::from(id)),
        ..Ambient::default()
    }
}

#[tokio::test]
async fn an_error_is_the_same_near_and_far() {
    let stack = Stack::start().await;
    for what in ["missing", "invalid", "flood", "broken", "panic"] {
        let mut seen = Vec::new();
        for wire in stack.shapes() {
            let client = recall(wire, stack.user(Role::Member));
            let error = ambient::scope(named("req-7"), client.search(search(what)))
                .await
                .unwrap_err();
            assert_eq!(error.origin, ErrorOrigin::Server, "{what}: {error:?}");
            seen.push(visible(&error));
        }
        assert_eq!(seen[0], seen[1]);
        assert!(!seen[0].contains("secret"), "{}", seen[0]);
    }
    stack.stop().await;
}

#[tokio::test]
async fn a_panic_is_internal_for_that_call_only() {
    let stack = Stack::start().await;
    for wire in stack.shapes() {
        let client = recall(wire, stack.user(Role::Member));
        let error = ambient::scope(named("req-8"), client.search(search("panic")))
            .await
            .unwrap_err();
        assert_eq!(
            (error.kind, error.reason, error.request_id.as_str()),
            (ErrorKind::Internal, "INTERNAL", "req-8")
        );
        assert_eq!(
            client.search(search("still here")).await.unwrap().expression,
            "still here"
        );
    }
    stack.stop().await;
}

#[tokio::test]
async fn a_call_that_takes_too_long_ends_and_its_handler_is_dropped() {
    let stack = Stack::start().await;
    for wire in stack.shapes() {
        stack.probe.dropped.store(false, Ordering::SeqCst);
        let client = recall(wire, stack.user(Role::Member)).with_timeout(Some(Duration::from_millis(50)));
        let error = client.search(search("wait")).await.unwrap_err();
        assert_eq!((error.kind, error.reason), (ErrorKind::Timeout, "DEADLINE_EXCEEDED"));
        wait_for("the handler to be dropped", PATIENCE, || async {
            stack.probe.dropped.load(Ordering::SeqCst)
        })
        .await;
    }
    stack.stop().await;
}

#[tokio::test]
async fn a_call_inherits_the_deadline_and_the_id_of_the_call_it_is_made_in() {
    let stack = Stack::start().await;
    for wire in stack.shapes() {
        let client = recall(wire, stack.user(Role::Member)).with_timeout(None);
        assert_eq!(client.search(search("has deadline")).await.unwrap().expression, "false");
        let ambient = Ambient {
            deadline: Some(Instant::now() + Duration::from_mins(1)),
            ..named("req-9")
        };
        let (deadline, id) = ambient::scope(ambient, async {
            (
                client.search(search("has deadline")).await.unwrap(),
                client.search(search("request id")).await.unwrap(),
            )
        })
        .await;
        assert_eq!(
            (deadline.expression.as_str(), id.expression.as_str()),
            ("true", "req-9")
        );
        let over = Ambient {
            deadline: Some(Instant::now() + Duration::from_millis(50)),
            ..Ambient::default()
        };
        let error = ambient::scope(over, client.search(search("wait"))).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Timeout);
    }
    stack.stop().await;
}

#[tokio::test]
async fn a_panic_in_a_stream_ends_it_with_internal() {
    let stack = Stack::start().await;
    for wire in stack.shapes() {
        let request = GenerateRequest {
            model: "panic".to_owned(),
            ..Default::default()
        };
        let mut stream = model(wire, stack.service()).generate(request).await.unwrap();
        // What came before the panic may still be in the encoder's buffer and is then lost.
        let error = loop {
            match stream.message().await {
                Ok(item) => assert!(item.is_some(), "the stream ended as if all was well"),
                Err(error) => break error,
            }
        };
        assert_eq!((error.kind, error.reason), (ErrorKind::Internal, "INTERNAL"));
    }
    stack.stop().await;
}

#[tokio::test]
async fn a_stream_ends_at_the_deadline_of_the_call_it_is_part_of() {
    let stack = Stack::start().await;
    for wire in stack.shapes() {
        stack.probe.dropped.store(false, Ordering::SeqCst);
        let ambient = Ambient {
            deadline: Some(Instant::now() + Duration::from_secs(1)),
            ..Ambient::default()
        };
        let client = model(wire, stack.service());
        let mut stream = ambient::scope(ambient, client.generate(GenerateRequest::default()))
            .await
            .unwrap();
        assert!(stream.message().await.unwrap().is_some());
        assert_eq!(stream.message().await.unwrap_err().kind, ErrorKind::Timeout);
        wait_for("the stream to be dropped", PATIENCE, || async {
            stack.probe.dropped.load(Ordering::SeqCst)
        })
        .await;
    }
    stack.stop().await;
}

#[tokio::test]
async fn a_stream_that_always_has_more_ends_at_the_deadline_too() {
    let stack = Stack::start().await;
    for wire in stack.shapes() {
        let ambient = Ambient {
            deadline: Some(Instant::now() + Duration::from_millis(200)),
            ..Ambient::default()
        };
        let request = GenerateRequest {
            model: "endless".to_owned(),
            ..Default::default()
        };
        let client = model(wire, stack.service());
        let read = async {
            let mut stream = client.generate(request).await?;
            while stream.message().await?.is_some() {}
            Ok::<_, ClientError>(())
        };
        let error = ambient::scope(ambient, read).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Timeout);
    }
    stack.stop().await;
}

#[tokio::test]
async fn messages_have_the_same_limit_in_both_directions_and_shapes() {
    let stack = Stack::start().await;
    for wire in stack.shapes() {
        let client = recall(wire.clone(), stack.user(Role::Member));
        let long = "y".repeat(MAX_MESSAGE_BYTES - 100);
        assert_eq!(client.search(search(&long)).await.unwrap().expression.len(), long.len());
        let answer = client.search(search("large")).await.unwrap();
        assert_eq!(answer.expression.len(), MAX_MESSAGE_BYTES - 100);

        let too_long = search(&"y".repeat(MAX_MESSAGE_BYTES));
        let error = client.search(too_long.clone()).await.unwrap_err();
        assert_eq!(
            error.kind,
            ErrorKind::InvalidInput,
            "the client does not send it: {error:?}"
        );
        let error = client.search(search("too large")).await.unwrap_err();
        assert_eq!(
            error.kind,
            ErrorKind::InvalidInput,
            "the server does not send it: {error:?}"
        );

        // A client without a limit meets the server's.
        let mut other = RecallServiceClient::new(wire.with_credentials(stack.user(Role::Member)));
        let error = ClientError::from(other.search(too_long).await.unwrap_err());
        assert_eq!(
            error.kind,
            ErrorKind::InvalidInput,
            "the server does not read it: {error:?}"
        );
        assert_eq!(
            client.search(search("still here")).await.unwrap().expression,
            "still here"
        );
    }
    stack.stop().await;
}

#[tokio::test]
async fn a_timeout_that_cannot_be_read_is_none_and_a_huge_one_is_no_trouble() {
    let stack = Stack::start().await;
    for wire in stack.shapes() {
        for (timeout, bounded) in [
            ("", "false"),
            ("soon", "false"),
            ("-1S", "false"),
            ("123456789S", "false"),
            ("99999999H", "true"),
            ("60S", "true"),
        ] {
            let mut client = RecallServiceClient::new(wire.clone().with_credentials(stack.user(Role::Member)));
            let mut request = tonic::Request::new(search("has deadline"));
            request.metadata_mut().insert("grpc-timeout", timeout.parse().unwrap());
            let answer = client.search(request).await.unwrap().into_inner();
            assert_eq!(answer.expression, bounded, "{timeout:?}");
        }
    }
    stack.stop().await;
}

#[tokio::test]
async fn a_stream_that_nobody_reads_any_more_is_dropped() {
    let stack = Stack::start().await;
    for wire in stack.shapes() {
        stack.probe.dropped.store(false, Ordering::SeqCst);
        let mut stream = model(wire, stack.service())
            .generate(GenerateRequest::default())
            .await
            .unwrap();
        assert!(stream.message().await.unwrap().is_some());
        drop(stream);
        wait_for("the stream to be dropped", PATIENCE, || async {
            stack.probe.dropped.load(Ordering::SeqCst)
        })
        .await;
    }
    stack.stop().await;
}

#[tokio::test]
async fn a_trace_goes_on_in_the_called_server() {
    let _guard = telemetry::install(&telemetry::Options::new("test")).unwrap();
    let stack = Stack::start().await;
    for wire in stack.shapes() {
        let client = recall(wire, stack.user(Role::Member));
        let span = tracing::info_span!(target: "steward::test", "caller");
        let ours = span.in_scope(trace_id);
        let theirs = client
            .search(search("trace id"))
            .instrument(span)
            .await
            .unwrap()
            .expression;
        assert_eq!(theirs, ours);
        assert_ne!(ours, "00000000000000000000000000000000");
    }
    stack.stop().await;
}
