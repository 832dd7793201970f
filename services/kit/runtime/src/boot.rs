//! What a service is handed when it is built: where its files live, where its tasks run, what time it is.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use steward_base::{Clock, IdGen, RandomIds};

use crate::config::Problem;
use crate::tasks::{BoxError, Tasks};

/// The surroundings of a service. Cheap to clone; holds no global state, so a test starts as many as it likes.
#[derive(Debug, Clone)]
pub struct Boot {
    /// The folder under which each service has its own (`recall/`, `memory/`, …).
    pub data_dir: PathBuf,
    /// Where background work runs.
    pub tasks: Tasks,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Fresh identifiers.
    pub ids: Arc<dyn IdGen>,
}

impl Boot {
    /// With the machine's clock and random ids, and no task running yet.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            tasks: Tasks::new(),
            clock: machine_clock(),
            ids: Arc::new(RandomIds),
        }
    }

    /// With another clock, for tests.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// With another source of ids, for tests.
    #[must_use]
    pub fn with_ids(mut self, ids: Arc<dyn IdGen>) -> Self {
        self.ids = ids;
        self
    }

    /// The service's own folder below the data folder, made with mode 0700 if it is not there.
    pub fn service_dir(&self, service: impl AsRef<Path>) -> Result<PathBuf, StartError> {
        let path = self.data_dir.join(service);
        crate::data_dir::create_private(&path)
            .map_err(|source| StartError::new(format!("make the folder {}", path.display()), source))?;
        Ok(path)
    }
}

#[cfg(feature = "failpoints")]
fn machine_clock() -> Arc<dyn Clock> {
    crate::moved_clock::of_process()
}

#[cfg(not(feature = "failpoints"))]
fn machine_clock() -> Arc<dyn Clock> {
    Arc::new(steward_base::SystemClock)
}

/// Why a service did not come up.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration is wrong; every problem is listed. Exit code 64.
    #[error("the configuration has {} problem(s)", problems.len())]
    Config {
        /// Each with the path of the setting.
        problems: Vec<Problem>,
    },
    /// Something that must work at the start did not. Exit code 1.
    #[error("could not {operation}")]
    Failed {
        /// What was tried, as an infinitive: `open the memory store`.
        operation: String,
        /// Why it failed.
        #[source]
        source: BoxError,
    },
}

impl StartError {
    /// A failed operation, named by an infinitive: `open the memory store`.
    pub fn new(operation: impl Into<String>, source: impl Into<BoxError>) -> Self {
        Self::Failed {
            operation: operation.into(),
            source: source.into(),
        }
    }

    /// `Ok` when there is no problem.
    pub fn check(problems: Vec<Problem>) -> Result<(), Self> {
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Self::Config { problems })
        }
    }

    /// 64 (usage) for a wrong configuration, 1 for everything else.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Config { .. } => crate::config::EXIT_USAGE,
            Self::Failed { .. } => 1,
        }
    }
}
