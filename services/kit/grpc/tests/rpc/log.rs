//! What the log says of calls.

use std::io;
use std::sync::{Arc, Mutex};

use steward_base::{JobRef, Origin, Role};
use steward_client::Credentials;
use steward_client::ambient::{self, Ambient};
use steward_proto::learning::v1::{ListReviewsRequest, WatchReviewsRequest};
use steward_testkit::{PATIENCE, wait_for};
use tracing::instrument::WithSubscriber as _;

use crate::fixture::{Stack, recall, reviews, search};

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Lines {
    /// The ends of calls: caller, service, method, code, request id.
    fn calls(&self) -> Vec<[String; 5]> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let lines = text
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        lines
            .filter(|line| line["target"] == "steward::rpc")
            .map(|line| {
                let fields = &line["fields"];
                assert!(fields["duration_ms"].is_u64(), "{line}");
                ["caller", "service", "method", "code", "request_id"]
                    .map(|name| fields[name].as_str().unwrap_or_default().to_owned())
            })
            .collect()
    }
}

#[tokio::test]
async fn every_call_leaves_one_line_that_says_who_called_whom() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_env_filter("info,steward::rpc=debug")
        .with_writer(move || writer.clone())
        .finish();
    scenario(&lines).with_subscriber(subscriber).await;
}

async fn scenario(lines: &Lines) {
    const SEARCH: &str = "/steward.recall.v1.RecallService/Search";
    const LIST: &str = "/steward.learning.v1.ReviewService/ListReviews";
    const WATCH: &str = "/steward.learning.v1.ReviewService/WatchReviews";
    let stack = Stack::start().await;
    let job = JobRef {
        id: "job-1".to_owned(),
        fence: 1,
    };
    let caps = std::collections::BTreeSet::from(["session_search".to_owned()]);
    let job = stack.sign(&stack.user_claims(Role::Member).for_job(job, Origin::Review, None, caps));
    let id = Ambient {
        request_id: Some(Arc::from("req-1")),
        ..Ambient::default()
    };
    let client = recall(stack.local.clone(), stack.user(Role::Member));
    ambient::scope(id, client.search(search("x"))).await.unwrap();
    recall(stack.local.clone(), job)
        .search(search("missing"))
        .await
        .unwrap_err();
    reviews(stack.local.clone(), stack.service())
        .list_reviews(ListReviewsRequest::default())
        .await
        .unwrap_err();
    recall(stack.local.clone(), Credentials::anonymous())
        .search(search("x"))
        .await
        .unwrap_err();
    let mut watch = reviews(stack.local.clone(), stack.user(Role::Member))
        .watch_reviews(WatchReviewsRequest::default())
        .await
        .unwrap();
    watch.message().await.unwrap();
    drop(watch);
    wait_for("the line of the stream", PATIENCE, || async {
        lines.calls().len() == 5
    })
    .await;

    let calls = lines.calls();
    assert_eq!(calls[0], ["client", "recall-service", SEARCH, "Ok", "req-1"]);
    let rest: Vec<_> = calls[1..]
        .iter()
        .map(|call| [0, 1, 2, 3].map(|at| call[at].as_str()))
        .collect();
    assert_eq!(
        rest,
        [
            ["curator-worker", "recall-service", SEARCH, "NotFound"],
            ["curator-worker", "curator-worker", LIST, "PermissionDenied"],
            ["client", "recall-service", SEARCH, "Unauthenticated"],
            ["client", "curator-worker", WATCH, "Cancelled"],
        ]
    );
    stack.stop().await;
}
