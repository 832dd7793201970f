//! `InterruptTurn`: stops what runs at its next safe point, or closes what waits. A turn that another process runs can be
//! stopped there only: its lease refuses everyone else.

use steward_orchestrator_core::Error;
use steward_orchestrator_core::session::SessionKey;
use steward_orchestrator_core::turn::Closing;

use super::Turns;
use crate::signer::Person;

impl Turns {
    /// The turn that was stopped; `None` when none ran or waited.
    pub(crate) async fn interrupt(&self, person: &Person, key: &SessionKey) -> Result<Option<String>, Error> {
        self.own_session(person, key).await?;
        let lock = self.parts().locks.of(key);
        let _decided = lock.lock().await;
        if let Some(live) = self.registry().running(key) {
            live.interrupt();
            return Ok(Some(live.id().to_owned()));
        }
        let session = self.own_session(person, key).await?;
        let Some(turn) = session.open_turn.clone() else {
            return Ok(None);
        };
        self.close_turn(&session, &turn, Closing::Stopped).await?;
        Ok(Some(turn))
    }
}
