//! Waiting until recall-service has nothing left to do: its index follows what was appended in the background, which must be
//! neither forgotten in a figure nor run into the next one.

use std::time::Duration;

use anyhow::Context as _;
use steward_client::RecallClient;
use steward_proto::recall::v1 as pb;

use crate::measure::Watch;
use crate::rig::PERSON;

/// How often is looked whether the process still does something, how little is nothing, and how often in a row that must be.
const LOOK: Duration = Duration::from_millis(100);
const IDLE: Duration = Duration::from_millis(1);
const QUIET: u32 = 15;

/// Searches once, for nothing in particular; gives why the answer may miss something.
pub(crate) async fn search(recall: &RecallClient) -> anyhow::Result<String> {
    let discover = pb::Discover {
        query: "steward".to_owned(),
        limit: 3,
        ..pb::Discover::default()
    };
    let request = pb::SearchRequest {
        parent: PERSON.to_owned(),
        shape: Some(pb::search_request::Shape::Discover(discover)),
        current_session: String::new(),
    };
    Ok(recall.search(request).await.context("search after loading")?.incomplete)
}

/// Waits until the process does nothing any more. Gives how long after the beginning of `since` it did something for the last
/// time.
pub(crate) async fn until_idle(since: &Watch) -> Duration {
    let (mut last, mut quiet) = (Duration::ZERO, 0);
    while quiet < QUIET {
        let before = since.cpu();
        tokio::time::sleep(LOOK).await;
        if since.cpu().saturating_sub(before) > IDLE {
            (last, quiet) = (since.wall(), 0);
        } else {
            quiet += 1;
        }
    }
    last
}

/// Waits until the index has everything and is merged; gives how long after the beginning of `since` that was.
pub(crate) async fn indexed(recall: &RecallClient, since: &Watch) -> anyhow::Result<Duration> {
    while !search(recall).await?.is_empty() {}
    Ok(until_idle(since).await)
}
