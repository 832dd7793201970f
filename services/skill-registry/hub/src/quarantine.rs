//! Quarantine as a state machine (`H-2`): what came in, what was found in it, what was decided, and by whom. Bytes that
//! are in quarantine are seen by the scanner and by nobody else.

use serde::{Deserialize, Serialize};
use steward_base::Timestamp;
use steward_skill_provenance::Provenance;
use steward_skill_scanner::structure::Problem;
use steward_skill_scanner::{Change, Report, Tree};

use crate::error::Error;
use crate::lock::Lock;
use crate::policy::{Decision, Trust, decide, force_lifts};
use crate::source::Resolved;

/// Where an item stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The folder is no skill; nothing of it was scanned.
    Refused,
    /// The policy blocks it.
    Blocked,
    /// A person must decide.
    AwaitingApproval,
    /// It may be installed.
    Approved,
    /// It is installed.
    Installed,
    /// A person turned it down.
    Rejected,
}

impl State {
    /// The stable name, in snake case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Blocked => "blocked",
            Self::AwaitingApproval => "awaiting_approval",
            Self::Approved => "approved",
            Self::Installed => "installed",
            Self::Rejected => "rejected",
        }
    }

    /// The state with this name.
    pub fn parse(name: &str) -> Option<Self> {
        [
            Self::Refused,
            Self::Blocked,
            Self::AwaitingApproval,
            Self::Approved,
            Self::Installed,
            Self::Rejected,
        ]
        .into_iter()
        .find(|state| state.as_str() == name)
    }

    /// Whether someone may still decide about it, or install it.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Blocked | Self::AwaitingApproval | Self::Approved)
    }

    /// Whether its bytes are of any further use: what can be installed, and what an update is merged over.
    pub const fn keeps_bytes(self) -> bool {
        self.is_open() || matches!(self, Self::Installed)
    }
}

/// What an approval is for. If one part differs, the approval is void.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// Digest of the tree.
    pub digest: String,
    /// The scan.
    pub scan: String,
    /// Digest of the rules.
    pub rule_set: String,
    /// Digest of what the skill reaches for.
    pub capabilities: String,
    /// Digest of what its signatures come to; empty where there is none and none is required.
    #[serde(default)]
    pub provenance: String,
}

impl Binding {
    /// What an approval of this report and these signatures is for.
    pub fn of(report: &Report, provenance: &Provenance) -> Self {
        Self {
            digest: report.digest.clone(),
            scan: report.id(),
            rule_set: report.rule_set.clone(),
            capabilities: report.capabilities.digest(),
            provenance: provenance.digest(),
        }
    }

    fn difference(&self, other: &Self) -> Option<&'static str> {
        [
            ("the content", &self.digest, &other.digest),
            ("the rule set", &self.rule_set, &other.rule_set),
            ("the scan", &self.scan, &other.scan),
            ("what it reaches for", &self.capabilities, &other.capabilities),
            ("who signed it", &self.provenance, &other.provenance),
        ]
        .into_iter()
        .find_map(|(what, mine, theirs)| (mine != theirs).then_some(what))
    }
}

/// A person's or the policy's word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// For what.
    pub binding: Binding,
    /// Whose word; the policy's own name if no person was asked.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// Why. Required where a block was lifted.
    pub reason: String,
    /// Whether a block was lifted.
    pub forced: bool,
}

/// One item in quarantine.
///
/// A store keeps the bytes by themselves: the serialised form leaves them out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// Its id.
    pub id: String,
    /// The reference as it was asked for.
    pub asked_for: String,
    /// What was fetched.
    pub resolved: Resolved,
    /// The bytes. What is scanned here is what is installed.
    #[serde(skip)]
    pub tree: Tree,
    /// Where it stands.
    pub state: State,
    /// What is wrong with the folder.
    pub problems: Vec<Problem>,
    /// The scan, unless the folder was refused.
    pub report: Option<Report>,
    /// Who signed it; nobody, and nothing checked, for a folder that was refused.
    #[serde(default)]
    pub provenance: Provenance,
    /// What it brings on top of the revision that is installed, if one is.
    pub change: Option<Change>,
    /// Why it waits for a person although its verdict alone would pass.
    pub doubts: Vec<String>,
    /// The word by which it may be installed.
    pub approval: Option<Approval>,
    /// Who asked for it.
    pub requested_by: String,
    /// When it came in.
    pub created_at: Timestamp,
}

/// What the policy's own approvals are signed with.
pub const POLICY: &str = "policy";

impl Item {
    /// Puts a tree into quarantine and says at once where it stands. `installed` is the lock of what it would replace,
    /// `change` what it brings on top of that.
    pub fn admit(
        arrival: Arrival,
        problems: Vec<Problem>,
        report: Option<Report>,
        change: Option<Change>,
        installed: Option<&Lock>,
    ) -> Self {
        let mut item = Self {
            id: arrival.id,
            asked_for: arrival.asked_for,
            resolved: arrival.resolved,
            tree: arrival.tree,
            state: State::Refused,
            problems,
            report,
            provenance: arrival.provenance,
            change,
            doubts: arrival.doubts,
            approval: None,
            requested_by: arrival.requested_by,
            created_at: arrival.at,
        };
        let Some(report) = item.report.as_ref().filter(|_| item.problems.is_empty()) else {
            return item;
        };
        if let Some(lock) = installed {
            if item.resolved.pins.changed_from(&lock.pins) {
                item.doubts
                    .push("its owner or repository is not the one it was installed from".to_owned());
            }
            if item.change.as_ref().is_some_and(|change| change.lowered) {
                item.doubts
                    .push(format!("its verdict was {} and is {}", lock.verdict, report.verdict));
            }
            if lock.provenance.is_by_publisher() && !item.provenance.is_by_publisher() {
                item.doubts
                    .push("what is installed is signed by its publisher, and it is not".to_owned());
            }
        }
        item.state = match decide(item.resolved.trust, report.verdict) {
            _ if item.provenance.barrier().is_some() => State::Blocked,
            Decision::Block => State::Blocked,
            Decision::Ask => State::AwaitingApproval,
            Decision::Allow if !item.doubts.is_empty() => State::AwaitingApproval,
            Decision::Allow => {
                item.approval = Some(Approval {
                    binding: Binding::of(report, &item.provenance),
                    by: POLICY.to_owned(),
                    at: item.created_at,
                    reason: format!("{} from a {} origin", report.verdict, item.resolved.trust.as_str()),
                    forced: false,
                });
                State::Approved
            }
        };
        item
    }

    /// A maintainer lets it through: what waits, or with `force` a block that force may lift (`H-5`).
    pub fn release(&mut self, by: &str, at: Timestamp, reason: &str, force: bool) -> Result<(), Error> {
        let Some(report) = &self.report else {
            return Err(Error::WrongState { state: self.state });
        };
        let forced = match self.state {
            State::AwaitingApproval => false,
            State::Blocked if self.provenance.barrier().is_some() => return Err(self.blocked(report)),
            State::Blocked if force => {
                if !force_lifts(self.resolved.trust, report.verdict) {
                    return Err(self.blocked(report));
                }
                if reason.trim().is_empty() {
                    return Err(Error::NoReason);
                }
                true
            }
            State::Blocked => return Err(self.blocked(report)),
            State::Refused | State::Approved | State::Installed | State::Rejected => {
                return Err(Error::WrongState { state: self.state });
            }
        };
        self.approval = Some(Approval {
            binding: Binding::of(report, &self.provenance),
            by: by.to_owned(),
            at,
            reason: reason.to_owned(),
            forced,
        });
        self.state = State::Approved;
        Ok(())
    }

    /// A maintainer turns it down.
    pub fn reject(&mut self) -> Result<(), Error> {
        match self.state {
            State::Installed | State::Rejected => Err(Error::WrongState { state: self.state }),
            State::Refused | State::Blocked | State::AwaitingApproval | State::Approved => {
                self.state = State::Rejected;
                self.approval = None;
                Ok(())
            }
        }
    }

    /// The lock by which it is installed, if `report` and `provenance`, made of its bytes just now, are what was approved.
    pub fn lock(&self, report: &Report, provenance: Provenance, by: &str, at: Timestamp) -> Result<Lock, Error> {
        let (State::Approved, Some(approval)) = (self.state, &self.approval) else {
            return match (self.state, &self.report) {
                (State::Blocked, Some(report)) => Err(self.blocked(report)),
                (State::Refused, _) => Err(Error::Structure {
                    problems: told(&self.problems),
                }),
                _ => Err(Error::WrongState { state: self.state }),
            };
        };
        if let Some(barrier) = provenance.barrier() {
            return Err(Error::Signature { barrier });
        }
        if let Some(what) = approval.binding.difference(&Binding::of(report, &provenance)) {
            return Err(Error::ApprovalVoid { what });
        }
        Ok(Lock {
            item: self.id.clone(),
            name: self.resolved.name.clone(),
            source: self.resolved.source.clone(),
            reference: self.resolved.reference.clone(),
            revision: self.resolved.revision.clone(),
            pins: self.resolved.pins.clone(),
            trust: self.resolved.trust,
            digest: report.digest.clone(),
            files: self.tree.digests(),
            scanner: report.scanner.clone(),
            rule_set: report.rule_set.clone(),
            scan: report.id(),
            verdict: report.verdict,
            capabilities: report.capabilities.digest(),
            provenance,
            installed_by: by.to_owned(),
            installed_at: at,
            forced: approval.forced.then(|| approval.reason.clone()),
        })
    }

    /// A signature that stands in the way is told first: no word of anybody lifts it.
    fn blocked(&self, report: &Report) -> Error {
        if let Some(barrier) = self.provenance.barrier() {
            return Error::Signature { barrier };
        }
        Error::Blocked {
            verdict: report.verdict,
            trust: self.trust().as_str(),
        }
    }

    /// Its place among the items of its team: the order in which they came in.
    pub fn place(&self) -> String {
        format!("{:020}-{}", self.created_at.as_micros().max(0), self.id)
    }

    /// How far its origin is trusted.
    pub fn trust(&self) -> Trust {
        self.resolved.trust
    }
}

/// Problems as sentences.
pub(crate) fn told(problems: &[Problem]) -> Vec<String> {
    problems
        .iter()
        .map(|problem| {
            if problem.path.is_empty() {
                format!("it {}", problem.message)
            } else {
                format!("{} {}", problem.path, problem.message)
            }
        })
        .collect()
}

/// What comes into quarantine.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// The item's id.
    pub id: String,
    /// The reference as it was asked for.
    pub asked_for: String,
    /// What was fetched.
    pub resolved: Resolved,
    /// The bytes.
    pub tree: Tree,
    /// Who signed them.
    pub provenance: Provenance,
    /// Who asked for it.
    pub requested_by: String,
    /// When.
    pub at: Timestamp,
    /// Why a person must decide, whatever the verdict.
    pub doubts: Vec<String>,
}
