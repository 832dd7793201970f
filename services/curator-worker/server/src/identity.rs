//! Whose name the worker acts in: its own, read from a file, and that of a job, which is exchanged for each claim.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use steward_client::Credentials;

/// The worker's own credential. The file is read for each call: the orchestrator makes it at its first start, which may be
/// later than this process's, and may replace it.
pub(crate) fn own(file: PathBuf) -> Credentials {
    Credentials::provider(move || {
        let file = file.clone();
        async move {
            let token = tokio::fs::read_to_string(&file)
                .await
                .map_err(|error| format!("the worker's token file {} cannot be read: {error}", file.display()))?;
            Ok(token.trim().to_owned())
        }
    })
}

/// The token of one claim, renewed while the review runs.
#[derive(Clone)]
pub(crate) struct JobToken(Arc<RwLock<String>>);

impl JobToken {
    pub(crate) fn new(token: String) -> Self {
        Self(Arc::new(RwLock::new(token)))
    }

    pub(crate) fn renew(&self, token: String) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = token;
    }

    /// Gives each call the token of that moment.
    pub(crate) fn credentials(&self) -> Credentials {
        let token = Arc::clone(&self.0);
        Credentials::provider(move || {
            let token = token.read().unwrap_or_else(PoisonError::into_inner).clone();
            async move { Ok(token) }
        })
    }
}

impl std::fmt::Debug for JobToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JobToken")
    }
}
