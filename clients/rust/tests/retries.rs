//! What is repeated, against a server that does what the test says.

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use bytes::{BufMut as _, Bytes, BytesMut};
    use http::HeaderMap;
    use http_body_util::{BodyExt as _, StreamBody};
    use prost::Message as _;
    use steward_base::{ErrorKind, Fault as _};
    use steward_client::ambient::{self, Ambient};
    use steward_client::{
        AccessClient, ClientError, Credentials, ErrorOrigin, RecallClient, RetryPolicy, Wire, WireRequest, WireResponse,
    };
    use steward_proto::access::v1 as access;
    use steward_proto::recall::v1 as recall;
    use tonic::body::Body;
    use tonic::{Code, Status};
    use tonic_types::{ErrorDetails, StatusExt as _};
    use tower::service_fn;

    /// Answers in order; a call beyond the script succeeds.
    #[derive(Clone, Default)]
    struct Script {
        answers: Arc<Mutex<VecDeque<Status>>>,
        calls: Arc<Mutex<Vec<(HeaderMap, Bytes)>>>,
    }

    impl Script {
        fn new(answers: impl IntoIterator<Item = Status>) -> Self {
            Self {
                answers: Arc::new(Mutex::new(answers.into_iter().collect())),
                ..Self::default()
            }
        }

        fn wire(&self) -> Wire {
            let script = self.clone();
            let service = service_fn(move |request: WireRequest| {
                let script = script.clone();
                async move { Ok::<_, Infallible>(script.answer(request).await) }
            });
            let retry = RetryPolicy {
                attempts: 3,
                first_wait: Duration::from_millis(1),
                ..RetryPolicy::default()
            };
            Wire::local(service).with_retry(retry)
        }

        async fn answer(&self, request: WireRequest) -> WireResponse {
            let (parts, body) = request.into_parts();
            let bytes = body.collect().await.unwrap().to_bytes();
            self.calls.lock().unwrap().push((parts.headers, bytes));
            match self.answers.lock().unwrap().pop_front() {
                Some(status) => status.into_http(),
                None => found("answer"),
            }
        }

        fn calls(&self) -> usize {
            self.calls.lock().unwrap().len()
        }
    }

    fn found(expression: &str) -> WireResponse {
        let message = recall::SearchResponse {
            expression: expression.to_owned(),
            ..Default::default()
        };
        let mut frame = BytesMut::new();
        frame.put_u8(0);
        frame.put_u32(u32::try_from(message.encoded_len()).unwrap());
        message.encode(&mut frame).unwrap();
        let mut trailers = HeaderMap::new();
        Status::ok("").add_header(&mut trailers).unwrap();
        let frames = [
            http_body::Frame::data(frame.freeze()),
            http_body::Frame::trailers(trailers),
        ];
        let body = StreamBody::new(futures::stream::iter(frames.map(Ok::<_, Status>)));
        let mut response = http::Response::new(Body::new(body));
        response
            .headers_mut()
            .insert("content-type", "application/grpc".parse().unwrap());
        response
    }

    fn unavailable(after: Duration) -> Status {
        let mut details = ErrorDetails::with_error_info(
            "DEPENDENCY_UNAVAILABLE",
            "recall.steward.dev",
            [("dependency".to_owned(), "memory-service".to_owned())],
        );
        details.set_retry_info(Some(after));
        Status::with_error_details(Code::Unavailable, "memory-service does not answer", details)
    }

    fn refusal(code: Code) -> Status {
        Status::with_error_details(
            code,
            "no",
            ErrorDetails::with_error_info(
                "SOME_REASON",
                "recall.steward.dev",
                [("field".to_owned(), "value".to_owned())],
            ),
        )
    }

    async fn search(wire: Wire) -> Result<recall::SearchResponse, ClientError> {
        let request = recall::SearchRequest {
            parent: "teams/red/users/ann".to_owned(),
            ..Default::default()
        };
        RecallClient::new(wire).search(request).await
    }

    #[tokio::test]
    async fn a_read_is_repeated_until_someone_is_there_and_always_with_the_same_request() {
        let script = Script::new([unavailable(Duration::ZERO), unavailable(Duration::ZERO)]);
        assert_eq!(search(script.wire()).await.unwrap().expression, "answer");
        let calls = script.calls.lock().unwrap();
        assert_eq!(calls.len(), 3);
        assert!(!calls[0].1.is_empty() && calls.iter().all(|call| call.1 == calls[0].1));
    }

    #[tokio::test]
    async fn repeating_is_bounded_and_the_last_error_is_what_the_caller_gets() {
        let script = Script::new(std::iter::repeat_n(unavailable(Duration::ZERO), 5));
        let error = search(script.wire()).await.unwrap_err();
        assert_eq!(script.calls(), 3);
        assert_eq!(
            (error.kind, error.reason),
            (ErrorKind::Unavailable, "DEPENDENCY_UNAVAILABLE")
        );
        assert_eq!(error.metadata(), [("dependency", "memory-service".to_owned())]);
        assert_eq!(
            (error.domain.as_str(), error.origin),
            ("recall.steward.dev", ErrorOrigin::Server)
        );
        assert_eq!(error.to_string(), "memory-service does not answer");
    }

    #[tokio::test]
    async fn no_other_error_is_repeated() {
        for code in [
            Code::Internal,
            Code::Aborted,
            Code::ResourceExhausted,
            Code::DeadlineExceeded,
            Code::NotFound,
        ] {
            let script = Script::new([refusal(code)]);
            let error = search(script.wire()).await.unwrap_err();
            assert_eq!((script.calls(), error.reason), (1, "SOME_REASON"), "{code:?}");
        }
    }

    #[tokio::test]
    async fn what_the_contract_does_not_call_idempotent_is_sent_once() {
        let script = Script::new([unavailable(Duration::ZERO)]);
        let client = AccessClient::new(script.wire());
        let error = client
            .create_team(access::CreateTeamRequest::default())
            .await
            .unwrap_err();
        assert_eq!((script.calls(), error.kind), (1, ErrorKind::Unavailable));
    }

    #[tokio::test]
    async fn a_wait_that_the_server_asks_for_beyond_the_deadline_is_not_waited() {
        let script = Script::new([unavailable(Duration::from_secs(4))]);
        let client = RecallClient::new(script.wire()).with_timeout(Some(Duration::from_secs(2)));
        let error = client.search(recall::SearchRequest::default()).await.unwrap_err();
        assert_eq!((script.calls(), error.retry_after), (1, Some(Duration::from_secs(4))));
    }

    #[tokio::test]
    async fn a_server_that_asks_for_more_patience_than_we_have_is_left_alone() {
        let script = Script::new([unavailable(Duration::from_mins(1))]);
        let client = RecallClient::new(script.wire()).with_timeout(None);
        let error = client.search(recall::SearchRequest::default()).await.unwrap_err();
        assert_eq!((script.calls(), error.retry_after), (1, Some(Duration::from_mins(1))));
    }

    #[tokio::test]
    async fn a_request_too_large_to_be_kept_arrives_whole_and_once() {
        let request = recall::SearchRequest {
            parent: "x".repeat(3 << 20),
            ..Default::default()
        };
        let script = Script::new([unavailable(Duration::ZERO)]);
        let client = RecallClient::new(script.wire());
        let error = client.search(request.clone()).await.unwrap_err();
        assert_eq!((script.calls(), error.kind), (1, ErrorKind::Unavailable));
        let sent = script.calls.lock().unwrap()[0].1.clone();
        assert_eq!(recall::SearchRequest::decode(&sent[5..]).unwrap(), request);
        assert_eq!(client.search(request).await.unwrap().expression, "answer");
    }

    #[tokio::test]
    async fn nothing_is_sent_after_the_deadline_of_the_call_it_is_made_in() {
        let over = Ambient {
            deadline: Some(tokio::time::Instant::now()),
            ..Ambient::default()
        };
        let script = Script::default();
        let once = script.wire().with_retry(RetryPolicy::never());
        for wire in [script.wire(), once] {
            let error = ambient::scope(over.clone(), search(wire)).await.unwrap_err();
            assert_eq!((error.kind, error.reason), (ErrorKind::Timeout, "DEADLINE_EXCEEDED"));
        }
        assert_eq!(script.calls(), 0);
    }

    #[tokio::test]
    async fn each_attempt_carries_a_token_and_what_is_left_of_the_deadline() {
        let script = Script::new([unavailable(Duration::ZERO)]);
        let tokens = Arc::new(Mutex::new(0));
        let counter = Arc::clone(&tokens);
        let credentials = Credentials::provider(move || {
            *counter.lock().unwrap() += 1;
            async { Ok("fresh".to_owned()) }
        });
        search(script.wire().with_credentials(credentials)).await.unwrap();
        let calls = script.calls.lock().unwrap();
        for (headers, _) in calls.iter() {
            assert_eq!(headers["authorization"], "Bearer fresh");
            assert!(steward_client::parse_timeout(headers).unwrap() <= steward_client::DEFAULT_TIMEOUT);
        }
        assert_eq!((calls.len(), *tokens.lock().unwrap()), (2, 1));
    }

    #[tokio::test]
    async fn a_credential_that_cannot_be_had_is_the_callers_error_and_nothing_is_sent() {
        let script = Script::default();
        let credentials = Credentials::provider(|| async { Err("the file is gone".into()) });
        let error = search(script.wire().with_credentials(credentials)).await.unwrap_err();
        assert_eq!((error.kind, script.calls()), (ErrorKind::Unauthenticated, 0));
        assert!(!format!("{:?}", Credentials::token("s3cr3t").unwrap()).contains("s3cr3t"));
    }

    #[tokio::test]
    async fn an_answer_from_something_that_is_no_steward_is_a_transport_error() {
        let service = service_fn(|_: WireRequest| async {
            Ok::<_, Infallible>(http::Response::builder().status(502).body(Body::empty()).unwrap())
        });
        let error = search(Wire::local(service).with_retry(RetryPolicy::never()))
            .await
            .unwrap_err();
        assert_eq!(
            (error.kind, error.origin),
            (ErrorKind::Unavailable, ErrorOrigin::Transport)
        );
        assert!(!error.is_certainly_not_applied());
    }
}
