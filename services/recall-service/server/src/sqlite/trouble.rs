//! What is known to be wrong with indexes: who mends them, and who is told.

use std::sync::PoisonError;

use steward_base::error_chain;
use steward_base::names::TeamId;
use steward_recall_core::Error;
use tokio::sync::watch;

use super::failure::Failure;
use super::{SqliteSessionStore, index};

impl SqliteSessionStore {
    /// Makes a damaged index anew from the rows (`Q-11`), once per team and process: what is damaged again has a cause that
    /// rebuilding does not mend. Whether it was made.
    pub(super) async fn mend(&self, team: &TeamId, damage: &Error) -> bool {
        let is_first = self
            .mended
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(team.clone());
        if !is_first {
            return false;
        }
        tracing::error!(team = %team, error = error_chain(damage), "the index of a team is damaged; rebuilding it");
        self.trouble(team, Some("the index is damaged and is made anew right now"));
        let rebuilt = async {
            match self.team(team).await? {
                Some(sqlite) => index::rebuild(&sqlite).await,
                None => Ok(()),
            }
        };
        match rebuilt.await {
            Ok(()) => {
                self.trouble(team, None);
                true
            }
            Err(Failure(error)) => {
                self.trouble(team, Some("the index is damaged and could not be made anew"));
                tracing::error!(team = %team, error = error_chain(&error), "the index could not be rebuilt");
                false
            }
        }
    }

    /// Whether no index is known to be damaged, from one moment to the next.
    pub(crate) fn soundness(&self) -> watch::Receiver<bool> {
        self.sound.subscribe()
    }

    /// Remembers what is wrong with the index of a team; `None`: nothing.
    pub(super) fn trouble(&self, team: &TeamId, what: Option<&str>) {
        let mut troubled = self.troubled.lock().unwrap_or_else(PoisonError::into_inner);
        match what {
            Some(what) => drop(troubled.insert(team.clone(), what.to_owned())),
            None => drop(troubled.remove(team)),
        }
        // While nobody else can say otherwise.
        self.sound.send_replace(troubled.is_empty());
    }

    /// Why searches of the team may miss messages.
    pub(super) fn trouble_of(&self, team: &TeamId) -> Option<String> {
        let troubled = self.troubled.lock().unwrap_or_else(PoisonError::into_inner);
        troubled.get(team).cloned()
    }
}
