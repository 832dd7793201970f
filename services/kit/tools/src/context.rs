//! On whose behalf and for which piece of work a tool is called.

use steward_base::Integrity;
use steward_base::hash::sha256_hex;
use steward_base::names::{self, SessionId, TeamId, UserId};
use steward_client::Credentials;
use steward_proto::common::v1 as pb;

/// Longest request id that the services take, in characters.
const MAX_REQUEST_ID: usize = 128;

/// What stands around a call. Built by whoever runs the loop; nothing in it comes from the model but what was checked.
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// The team.
    pub team: TeamId,
    /// The person on whose behalf.
    pub user: UserId,
    /// The session that is under way or looked at.
    pub session: Option<SessionId>,
    /// The session's project, if it has one.
    pub project: Option<TeamId>,
    /// Id of the turn or of the job: refusals for lack of room become final within it (`M-5`).
    pub work: String,
    /// The restricted credential of the turn or job. Origin and permissions come from it alone (`A-2`).
    pub credentials: Credentials,
    /// Key of this call: `session/turn/call` or `job/step/call`. The same key never writes twice (`T-9`, `R-9`).
    pub key: String,
    /// What a review's write rests on, resolved by the caller from the ids in the arguments; `None` for people.
    pub evidence: Option<CitedEvidence>,
    /// Names of the environment variables that are set where a skill's commands run; `None` when nobody told (`S-8`).
    pub variables: Option<Vec<String>>,
}

/// Evidence after its ids were found in the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CitedEvidence {
    /// Ids of the spans, as the review numbered them.
    pub spans: Vec<String>,
    /// Grade.
    pub basis: Basis,
    /// Lowest integrity among the spans.
    pub integrity: Integrity,
}

/// Grade of evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Basis {
    /// A person with standing said it should be so.
    Stated,
    /// A tool result shows it.
    Checked,
    /// It worked or failed once and nothing confirms why.
    SeenOnce,
}

impl Basis {
    /// The words that the tools take.
    pub const WORDS: &'static [(&'static str, Self)] = &[
        ("stated", Self::Stated),
        ("checked", Self::Checked),
        ("seen_once", Self::SeenOnce),
    ];

    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stated => "stated",
            Self::Checked => "checked",
            Self::SeenOnce => "seen_once",
        }
    }

    const fn to_pb(self) -> pb::Basis {
        match self {
            Self::Stated => pb::Basis::Stated,
            Self::Checked => pb::Basis::Checked,
            Self::SeenOnce => pb::Basis::SeenOnce,
        }
    }
}

impl ToolContext {
    /// The notes of the session's project; `None` without one.
    pub(crate) fn project_notes(&self) -> Option<String> {
        let project = self.project.as_ref()?;
        Some(format!(
            "{}/projects/{project}/memory/notes",
            names::team_name(&self.team)
        ))
    }

    pub(crate) fn user_name(&self) -> String {
        names::user_name(&self.team, &self.user)
    }

    pub(crate) fn session_name(&self) -> String {
        self.session
            .as_ref()
            .map(|session| names::session_name(&self.team, session))
            .unwrap_or_default()
    }

    /// The key as a request id: as it is, or its digest when it is too long.
    pub(crate) fn request_id(&self) -> String {
        if self.key.chars().count() > MAX_REQUEST_ID {
            sha256_hex(self.key.as_bytes())
        } else {
            self.key.clone()
        }
    }

    pub(crate) fn evidence_pb(&self) -> Option<pb::Evidence> {
        let evidence = self.evidence.as_ref()?;
        Some(pb::Evidence {
            session: self.session_name(),
            spans: evidence.spans.clone(),
            basis: evidence.basis.to_pb().into(),
            integrity: integrity_to_pb(evidence.integrity).into(),
        })
    }
}

/// To the wire.
pub(crate) const fn integrity_to_pb(integrity: Integrity) -> pb::Integrity {
    match integrity {
        Integrity::External => pb::Integrity::External,
        Integrity::UnknownTool => pb::Integrity::UnknownTool,
        Integrity::Workspace => pb::Integrity::Workspace,
        Integrity::Person => pb::Integrity::Person,
        Integrity::Operator => pb::Integrity::Operator,
    }
}

/// From the wire; what is not given or not known counts as external.
pub(crate) fn integrity_from_pb(integrity: i32) -> Integrity {
    match pb::Integrity::try_from(integrity) {
        Ok(pb::Integrity::UnknownTool) => Integrity::UnknownTool,
        Ok(pb::Integrity::Workspace) => Integrity::Workspace,
        Ok(pb::Integrity::Person) => Integrity::Person,
        Ok(pb::Integrity::Operator) => Integrity::Operator,
        Ok(pb::Integrity::External | pb::Integrity::Unspecified) | Err(_) => Integrity::External,
    }
}
