//! `GetInbox` and `WatchInbox`: one count, asked for once or sent whenever it changes.
//!
//! Whoever wrote tells the watchers of the team; what ends by itself, such as a proposal that expires, is found by counting
//! again now and then. A watcher that falls behind counts once for all that it missed.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use futures::stream::unfold;
use steward_base::names::TeamId;
use steward_proto::skill::v1 as pb;
use steward_skill_core::proposals::Inbox;
use steward_skill_core::{Actor, Skills};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{self, Receiver, Sender};
use tonic::Status;

use super::convert::time_to_pb;
use super::fail;

/// How often a watched inbox is counted again without a write.
const RECOUNT: Duration = Duration::from_mins(1);

/// Changes that a slow watcher may fall behind.
const REMEMBERED_CHANGES: usize = 64;

/// A stream of inboxes.
pub(super) type Inboxes = Pin<Box<dyn Stream<Item = Result<pb::WatchInboxResponse, Status>> + Send>>;

/// Teams in which something may wait for someone now that did not before, or no longer does.
#[derive(Debug, Clone)]
pub(crate) struct Changes(Sender<TeamId>);

impl Changes {
    pub(crate) fn new() -> Self {
        Self(broadcast::channel(REMEMBERED_CHANGES).0)
    }

    /// Tells those who watch. That nobody does is no fault.
    pub(super) fn tell(&self, team: &TeamId) {
        let _ = self.0.send(team.clone());
    }

    pub(super) fn follow(&self) -> Receiver<TeamId> {
        self.0.subscribe()
    }
}

struct Watch {
    skills: Arc<Skills>,
    actor: Actor,
    changes: Receiver<TeamId>,
    /// What was sent last; none before the first.
    shown: Option<Inbox>,
    /// What to send first.
    first: Inbox,
}

impl Watch {
    /// The next inbox that differs from the one before; none once the service ends.
    async fn next(&mut self) -> Option<Result<Inbox, Status>> {
        let Some(shown) = self.shown else {
            self.shown = Some(self.first);
            return Some(Ok(self.first));
        };
        while self.changed().await {
            match self.skills.inbox(&self.actor).await {
                Ok(now) if now != shown => {
                    self.shown = Some(now);
                    return Some(Ok(now));
                }
                Ok(_) => {}
                Err(error) => return Some(Err(fail(error))),
            }
        }
        None
    }

    /// Waits until something may have changed; `false` once nothing will any more.
    async fn changed(&mut self) -> bool {
        loop {
            match tokio::time::timeout(RECOUNT, self.changes.recv()).await {
                Ok(Ok(of)) if of != self.actor.team => {}
                // What was missed may have been of this team.
                Err(_) | Ok(Ok(_) | Err(RecvError::Lagged(_))) => return true,
                Ok(Err(RecvError::Closed)) => return false,
            }
        }
    }
}

pub(super) fn watch(skills: Arc<Skills>, actor: Actor, changes: Receiver<TeamId>, first: Inbox) -> Inboxes {
    let watch = Watch {
        skills,
        actor,
        changes,
        shown: None,
        first,
    };
    Box::pin(unfold(Some(watch), async |watch| {
        let mut watch = watch?;
        let item = watch.next().await?;
        let response = item.map(|inbox| pb::WatchInboxResponse {
            inbox: Some(to_pb(inbox)),
        });
        // An error is the end.
        let rest = response.is_ok().then_some(watch);
        Some((response, rest))
    }))
}

pub(super) fn to_pb(inbox: Inbox) -> pb::SkillInbox {
    pb::SkillInbox {
        pending_proposals: u32::try_from(inbox.proposals).unwrap_or(u32::MAX),
        oldest_create_time: inbox.oldest.and_then(time_to_pb),
    }
}
