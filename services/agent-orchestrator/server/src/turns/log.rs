//! The events of a turn, kept for as long as someone may attach: any number of readers, each at its own pace, none of
//! which can hold the turn up (`T-8`).

use std::sync::{Arc, Mutex, PoisonError};

use futures::Stream;
use futures::stream::{self, BoxStream};
use steward_orchestrator_core::turn::Event;
use tokio::sync::watch;

use super::live::LiveTurn;

/// An event with its number in the turn, from 1.
pub(crate) type Numbered = (u64, Event);

/// A stream of events of one turn.
pub(crate) struct Following {
    /// The turn.
    pub(crate) turn: String,
    /// Its events.
    pub(crate) events: BoxStream<'static, Numbered>,
}

impl std::fmt::Debug for Following {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Following")
            .field("turn", &self.turn)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Extent {
    length: usize,
    closed: bool,
}

/// Events in order. Closed when nothing will be added any more.
#[derive(Debug)]
pub(crate) struct EventLog {
    events: Mutex<Vec<Event>>,
    extent: watch::Sender<Extent>,
}

impl EventLog {
    pub(crate) fn new(events: Vec<Event>) -> Self {
        let extent = Extent {
            length: events.len(),
            closed: false,
        };
        Self {
            events: Mutex::new(events),
            extent: watch::Sender::new(extent),
        }
    }

    pub(crate) fn push(&self, event: Event) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.push(event);
        let length = events.len();
        drop(events);
        self.extent
            .send_modify(|extent| extent.length = extent.length.max(length));
    }

    pub(crate) fn close(&self) {
        self.extent.send_modify(|extent| extent.closed = true);
    }

    pub(crate) fn len(&self) -> usize {
        self.extent.borrow().length
    }

    fn get(&self, index: usize) -> Option<Event> {
        self.events
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(index)
            .cloned()
    }

    /// Whether the last event so far hands the turn to the client.
    fn waits_at(&self, index: usize) -> bool {
        index + 1 == self.len() && matches!(self.get(index), Some(Event::RequiresAction(_)))
    }
}

/// Where a reader stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// At the end of the segment.
    Segment,
    /// At the end of the turn, or where it waits for the client.
    Turn,
}

/// The events of a live turn from position `from` on.
pub(crate) fn follow(live: Arc<LiveTurn>, from: usize, until: Until) -> Following {
    Following {
        turn: live.id().to_owned(),
        events: Box::pin(reader(live, from, until)),
    }
}

fn reader(live: Arc<LiveTurn>, from: usize, until: Until) -> impl Stream<Item = Numbered> + Send + 'static {
    async_stream::stream! {
        let mut extent = live.log().extent.subscribe();
        let mut next = from;
        loop {
            while let Some(event) = live.log().get(next) {
                let over = match until {
                    Until::Segment => event.ends_segment(),
                    Until::Turn => event.ends_turn() || live.log().waits_at(next),
                };
                next += 1;
                yield (next as u64, event);
                if over {
                    return;
                }
            }
            let known = *extent.borrow_and_update();
            if known.length > next {
                continue;
            }
            if known.closed || extent.changed().await.is_err() {
                return;
            }
        }
    }
}

/// Events that were rebuilt from the store, from position `from` on.
pub(crate) fn recited(turn: &str, events: Vec<Event>, from: usize) -> Following {
    let numbered: Vec<Numbered> = (1..).zip(events).skip(from).collect();
    Following {
        turn: turn.to_owned(),
        events: Box::pin(stream::iter(numbered)),
    }
}
