//! What a session's prompt was assembled from, in the form in which it is kept with the session: enough to assemble the
//! prompt anew after a planned break (`P-3`), and no more. Client tools are not in it, since the session's tool list has
//! them; memory and skills are not, since a new prompt shows what is known then.

use serde::{Deserialize, Serialize};

use super::setup::{Environment, Setup};
use crate::error::Error;

/// Most bytes of a setup that the store keeps.
pub const MAX_KEPT_SETUP: usize = 1 << 20;

/// Changes whose request ids are remembered.
const REMEMBERED: usize = 16;

/// Form of what is written.
const VERSION: u32 = 1;

/// A context file as the prompt shows it: scanned and cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptFile {
    /// Path as the client knows it.
    pub path: String,
    /// The text, or the category of what was found in it.
    pub text: Result<String, String>,
}

/// What is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptSetup {
    version: u32,
    /// Fingerprint of the request that made the session.
    pub made_by: String,
    /// The caller's own system message.
    pub system_message: String,
    /// Context files, nearest first.
    pub context_files: Vec<KeptFile>,
    /// Where client tools run.
    pub environment: Environment,
    /// Where the conversation takes place.
    pub platform_hint: String,
    /// Checks of memory entries that failed in the client's workspace.
    #[serde(default)]
    pub failed_checks: Vec<String>,
    /// Skills that the session opens at its start.
    #[serde(default)]
    pub preloaded: Vec<String>,
    /// Whether the team has an external memory, which the session's turns tell and ask (`M-15`).
    #[serde(default)]
    pub provider: bool,
    /// The last requests that changed the session, oldest first: request id and fingerprint.
    changes: Vec<(String, String)>,
}

impl KeptSetup {
    /// What is kept of `setup`, its context files having been scanned and cut.
    pub fn new(made_by: String, setup: &Setup, context_files: Vec<KeptFile>) -> Self {
        Self {
            version: VERSION,
            made_by,
            system_message: setup.system_message.clone(),
            context_files,
            environment: setup.environment.clone(),
            platform_hint: setup.platform_hint.clone(),
            failed_checks: setup.failed_checks.clone(),
            preloaded: setup.preload_skills.clone(),
            provider: false,
            changes: Vec::new(),
        }
    }

    /// Reads what was kept; `None` where nothing was.
    ///
    /// # Errors
    /// [`Error::Internal`] when it is not readable.
    pub fn read(kept: &[u8]) -> Result<Option<Self>, Error> {
        if kept.is_empty() {
            return Ok(None);
        }
        let read = serde_json::from_slice(kept);
        read.map(Some)
            .map_err(|error| Error::internal("read what a session was set up with", error))
    }

    /// Whether turns of the session have an external memory beside them. What cannot be read has none.
    pub fn has_provider(kept: &[u8]) -> bool {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Marks {
            provider: bool,
        }
        serde_json::from_slice::<Marks>(kept).unwrap_or_default().provider
    }

    /// The environment variables that are set where the client's tools run; `None` where nobody told. What cannot be read
    /// tells nothing.
    pub fn variables(kept: &[u8]) -> Option<Vec<String>> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Told {
            environment: Environment,
        }
        let told = serde_json::from_slice::<Told>(kept).unwrap_or_default();
        told.environment.variables
    }

    /// The bytes to keep.
    ///
    /// # Errors
    /// [`Error::Invalid`] when there are more than [`MAX_KEPT_SETUP`].
    pub fn write(&self) -> Result<Vec<u8>, Error> {
        let kept =
            serde_json::to_vec(self).map_err(|error| Error::internal("write what a session is set up with", error))?;
        if kept.len() > MAX_KEPT_SETUP {
            return Err(Error::field(
                "setup",
                format!(
                    "has {} bytes beside its tools; at most {MAX_KEPT_SETUP} are kept",
                    kept.len()
                ),
            ));
        }
        Ok(kept)
    }

    /// The fingerprint of the change that this request made, if it is one of the last.
    pub fn change(&self, request_id: &str) -> Option<&str> {
        let found = self.changes.iter().find(|(id, _)| id == request_id);
        found.map(|(_, fingerprint)| fingerprint.as_str())
    }

    /// Remembers a change (`T-9`).
    pub fn remember(&mut self, request_id: String, fingerprint: String) {
        self.changes.push((request_id, fingerprint));
        let too_many = self.changes.len().saturating_sub(REMEMBERED);
        self.changes.drain(..too_many);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> KeptSetup {
        let setup = Setup {
            system_message: "Speak plainly.".to_owned(),
            ..Setup::default()
        };
        let files = vec![
            KeptFile {
                path: "a.md".to_owned(),
                text: Ok("tabs".to_owned()),
            },
            KeptFile {
                path: "b.md".to_owned(),
                text: Err("override".to_owned()),
            },
        ];
        KeptSetup::new("made".to_owned(), &setup, files)
    }

    #[test]
    fn what_is_kept_is_read_again() {
        let mut kept = kept();
        kept.remember("r1".to_owned(), "f1".to_owned());
        let read = KeptSetup::read(&kept.write().unwrap()).unwrap().unwrap();
        assert_eq!(read, kept);
        assert_eq!((read.change("r1"), read.change("r2")), (Some("f1"), None));
        assert_eq!(KeptSetup::read(b"").unwrap(), None);
        assert!(KeptSetup::read(b"{").is_err());
        assert!(!KeptSetup::has_provider(&kept.write().unwrap()) && !KeptSetup::has_provider(b""));
        kept.provider = true;
        assert!(KeptSetup::has_provider(&kept.write().unwrap()));
    }

    #[test]
    fn only_the_last_changes_are_remembered_and_only_so_much_is_kept() {
        let mut kept = kept();
        for number in 0..=REMEMBERED {
            kept.remember(format!("r{number}"), String::new());
        }
        assert_eq!((kept.change("r0"), kept.change("r1")), (None, Some("")));
        kept.system_message = "x".repeat(MAX_KEPT_SETUP);
        assert!(matches!(kept.write(), Err(Error::Invalid(_))));
    }
}
