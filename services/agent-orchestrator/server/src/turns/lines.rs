//! One line per session for what is done after a turn without anyone waiting for it: whoever takes a place is at work when
//! all that came before is done, so that turn n reaches an external memory before n+1 (`M-15`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steward_orchestrator_core::session::SessionKey;
use tokio::sync::oneshot;

#[derive(Default)]
struct Standing {
    /// The last place of each line: its number, and what ends with it.
    last: HashMap<SessionKey, (u64, oneshot::Receiver<()>)>,
    next: u64,
}

/// The lines. Clones are the same ones.
#[derive(Clone, Default)]
pub(super) struct Lines(Arc<Mutex<Standing>>);

/// A place in a session's line. Dropping it lets the next one go on.
pub(super) struct Place {
    lines: Lines,
    key: SessionKey,
    number: u64,
    before: Option<oneshot::Receiver<()>>,
    /// Ends with the place, which is all that is said by it.
    _mine: oneshot::Sender<()>,
}

impl Lines {
    /// The last place of the session's line, from now on.
    pub(super) fn stand(&self, key: &SessionKey) -> Place {
        let (mine, ends) = oneshot::channel();
        let mut standing = self.standing();
        standing.next += 1;
        let number = standing.next;
        let before = standing.last.insert(key.clone(), (number, ends));
        Place {
            lines: self.clone(),
            key: key.clone(),
            number,
            before: before.map(|(_, before)| before),
            _mine: mine,
        }
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Waits until all that came before is done.
    pub(super) async fn reached(&mut self) {
        if let Some(before) = self.before.take() {
            // It never says anything; it ends.
            let _ended = before.await;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut standing = self.lines.standing();
        let is_last = standing
            .last
            .get(&self.key)
            .is_some_and(|(last, _)| *last == self.number);
        // The last one of a line takes the line with it, unless somebody is still before it.
        if is_last && self.before.is_none() {
            standing.last.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use steward_base::names::{SessionId, TeamId};

    use super::*;

    fn key(session: &str) -> SessionKey {
        SessionKey {
            team: TeamId::parse("red").unwrap(),
            id: SessionId::parse(session).unwrap(),
        }
    }

    #[tokio::test]
    async fn places_are_reached_in_the_order_in_which_they_were_taken() {
        let lines = Lines::default();
        let [first, second, third] = [1, 2, 3].map(|_| lines.stand(&key("a")));
        let order = Arc::new(Mutex::new(Vec::new()));
        let work = |mut place: Place, name: u32| {
            let order = Arc::clone(&order);
            async move {
                place.reached().await;
                tokio::task::yield_now().await;
                order.lock().unwrap().push(name);
            }
        };
        // Whoever is polled first still waits for its turn, and another session for nobody.
        tokio::join!(
            work(third, 3),
            work(lines.stand(&key("b")), 9),
            work(second, 2),
            work(first, 1)
        );
        let order = order.lock().unwrap().clone();
        let own: Vec<u32> = order.into_iter().filter(|name| *name != 9).collect();
        assert_eq!(own, [1, 2, 3]);
        assert!(lines.standing().last.is_empty(), "nothing stays behind");
    }
}
