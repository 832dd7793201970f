//! `steward doctor`: looks at everything that an installation needs and says what is wrong and what would mend it.
//!
//! It changes nothing. Files are looked at where no server has them open; what a server holds, the server is asked about.
//! So it is of use before the first start, while everything runs, and after a crash. Without a flag it sends nothing to
//! the model but a request for headers.

mod credential;
mod folder;
mod model;
mod servers;
mod stores;

pub(crate) use stores::is_held;

use serde::Serialize;
use steward_base::Timestamp;
use steward_cli::Connection;

use crate::config::Config;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// As it should be.
    Ok,
    /// Worth knowing; nothing is wrong.
    Note,
    /// Something is wrong.
    Problem,
}

impl State {
    /// One word for tables.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Problem => "PROBLEM",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Part of the installation: `settings`, `folder`, `store`, `token`, `clock`, `service`, `index`, `model`.
    pub area: &'static str,
    /// What was looked at.
    pub subject: String,
    /// How it is.
    pub state: State,
    /// What was found.
    pub detail: String,
    /// What would help; empty when nothing needs to be done.
    pub hint: String,
}

/// All findings, in the order of looking.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// The findings.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_healthy(&self) -> bool {
        self.findings.iter().all(|finding| finding.state != State::Problem)
    }

    pub(crate) fn ok(&mut self, area: &'static str, subject: impl Into<String>, detail: impl Into<String>) {
        self.add(area, subject.into(), State::Ok, detail.into(), "");
    }

    pub(crate) fn note(
        &mut self,
        area: &'static str,
        subject: impl Into<String>,
        detail: impl Into<String>,
        hint: &str,
    ) {
        self.add(area, subject.into(), State::Note, detail.into(), hint);
    }

    pub(crate) fn problem(
        &mut self,
        area: &'static str,
        subject: impl Into<String>,
        detail: impl Into<String>,
        hint: &str,
    ) {
        self.add(area, subject.into(), State::Problem, detail.into(), hint);
    }

    fn add(&mut self, area: &'static str, subject: String, state: State, detail: String, hint: &str) {
        self.findings.push(Finding {
            area,
            subject,
            state,
            detail,
            hint: hint.to_owned(),
        });
    }
}

/// What is examined, and how.
#[derive(Debug)]
pub struct Examination<'a> {
    /// Where servers are, and the token.
    pub connection: &'a Connection,
    /// The settings in effect.
    pub config: &'a Config,
    /// The time of this machine.
    pub now: Timestamp,
    /// Whether the model's server is asked for its models, with the key.
    pub ask_model: bool,
}

impl Examination<'_> {
    /// Examines everything. `progress` hears what takes long.
    pub async fn run(&self, mut progress: impl FnMut(&str)) -> Report {
        let mut report = Report::default();
        let data_dir = self.config.data_dir();
        let kept = folder::examine(&data_dir, self.now, &mut report);
        let held = if kept {
            stores::examine(&data_dir, &mut report, &mut progress).await
        } else {
            false
        };
        credential::examine(self.connection, kept, self.now, &mut report);
        progress("asking the servers");
        servers::examine(self.connection, kept, held, &mut report).await;
        progress("asking the model's server");
        model::examine(&self.config.agent, self.ask_model, &mut report).await;
        progress("");
        report
    }
}
