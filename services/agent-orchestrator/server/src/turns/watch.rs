//! `WatchTurn`: attaches to a turn again, without touching it.

use steward_orchestrator_core::Error;
use steward_orchestrator_core::session::SessionKey;
use steward_orchestrator_core::turn::replay;

use super::log::{Until, follow, recited};
use super::{Following, Turns};
use crate::signer::Person;

impl Turns {
    /// The events after number `after`, until the turn ends or waits for its client. A turn that is over gives its end at
    /// least.
    pub(crate) async fn watch(
        &self,
        person: &Person,
        key: &SessionKey,
        turn: &str,
        after: u64,
    ) -> Result<Following, Error> {
        let opened = self.open(person, key, turn).await?;
        let after = usize::try_from(after).unwrap_or(usize::MAX);
        if let Some(live) = self.registry().find(key, turn) {
            let last = live.log().len().saturating_sub(1);
            let from = if self.registry().running(key).is_some_and(|running| running.id() == turn) {
                after
            } else {
                after.min(last)
            };
            return Ok(follow(live, from, Until::Turn));
        }
        let missing = || Error::TurnNotFound { turn: turn.to_owned() };
        let stored = opened.turn.ok_or_else(missing)?;
        let events = replay(&opened.session, &stored, &opened.history).events;
        let from = after.min(events.len().saturating_sub(1));
        Ok(recited(turn, events, from))
    }
}
