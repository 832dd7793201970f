//! What the inboxes of memory and of skills have in common: the states of a proposal, and following how much waits.

use clap::ValueEnum;
use prost::{Message, Name};
use prost_types::Timestamp;
use steward_client::ResponseStream;

use crate::output::{Output, counted, time};

/// State of a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum State {
    /// Waits.
    Pending,
    /// Took effect.
    Approved,
    /// Was refused.
    Rejected,
    /// Nobody decided in time.
    Expired,
}

/// Says how much waits, now and whenever that changes, until the server ends it or the person does.
pub(super) async fn watch<A: Message + Name>(
    mut changes: ResponseStream<A>,
    say: impl Fn(&A) -> String,
    output: &mut Output,
) -> anyhow::Result<()> {
    output.aside("watching; Ctrl-C ends");
    while let Some(now) = changes.message().await? {
        output.item(&now, |output, now| output.line(&say(now)))?;
    }
    Ok(())
}

/// How many wait, and since when the oldest does.
pub(super) fn waiting(proposals: u32, oldest: Option<&Timestamp>) -> String {
    let proposals = counted(proposals as usize, "proposal");
    match time(oldest) {
        since if since.is_empty() => format!("{proposals} waiting"),
        since => format!("{proposals} waiting since {since}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_said_in_one_line() {
        assert_eq!(waiting(0, None), "0 proposals waiting");
        let oldest = Timestamp { seconds: 0, nanos: 0 };
        let said = waiting(1, Some(&oldest));
        assert!(said.starts_with("1 proposal waiting since 1970-01-01"), "{said}");
    }
}
