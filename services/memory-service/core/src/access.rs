//! Who may do what to whose memory (`M-13`), and when a write waits for a person first (`L-6`, `M-13`). Pure tables over
//! the verified caller; nothing in a request takes part.

use serde::{Deserialize, Serialize};
use steward_base::names::TeamId;
use steward_base::{Caller, Integrity, Role};

use crate::entry::Evidence;
use crate::error::Error;
use crate::owner::{Owner, StoreName};
use crate::refusal::Refusal;

/// What someone wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Act {
    /// See entries, history or snapshot.
    Read,
    /// Change entries; the write may still become a proposal.
    Write,
    /// Decide: on a proposal, or to put an earlier revision back.
    Decide,
}

/// Whether `caller` may know of the memory of `owner` in `team`: a team's and a project's is known to the team, a
/// person's to that person alone. What a caller may not know of is answered like what does not exist.
pub fn knows(caller: &Caller, team: &TeamId, owner: &Owner) -> bool {
    let same_team = caller.team.as_ref() == Some(team);
    match owner {
        Owner::Team | Owner::Project(_) => same_team,
        Owner::Person(user) => same_team && caller.user.as_ref() == Some(user),
    }
}

/// Whether `caller`, who knows of it, may do `act` to the memory of `owner`.
pub fn permit(caller: &Caller, owner: &Owner, act: Act) -> Result<(), Error> {
    let required = match act {
        Act::Read => Role::Viewer,
        Act::Decide if owner.is_shared() => Role::Maintainer,
        Act::Write | Act::Decide => Role::Member,
    };
    if caller.role < required {
        return Err(Error::RoleRequired {
            role: caller.role,
            required,
        });
    }
    if act == Act::Decide && caller.origin.is_automatic() {
        return Err(Error::AutomaticDecision);
    }
    Ok(())
}

/// [`knows`] and [`permit`] in one, for calls that name a store.
pub fn check(caller: &Caller, store: &StoreName, act: Act) -> Result<(), Error> {
    if !knows(caller, &store.team, &store.owner) {
        return Err(Error::StoreNotFound {
            store: store.to_string(),
        });
    }
    permit(caller, &store.owner, act)
}

/// Why a write waits for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// It rests on text from outside, or nobody knows on what (`L-6`).
    UntrustedEvidence,
    /// Shared notes, written with nobody present.
    SharedAndAutomatic,
    /// Shared notes, written by someone who does not decide on them.
    SharedByMember,
    /// A person corrected the assistant; the review of that conversation confirms, merges or drops it.
    Correction,
}

impl Waiting {
    /// The name in stores.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UntrustedEvidence => "untrusted_evidence",
            Self::SharedAndAutomatic => "shared_and_automatic",
            Self::SharedByMember => "shared_by_member",
            Self::Correction => "correction",
        }
    }

    /// From its name.
    pub fn parse(name: &str) -> Option<Self> {
        [
            Self::UntrustedEvidence,
            Self::SharedAndAutomatic,
            Self::SharedByMember,
            Self::Correction,
        ]
        .into_iter()
        .find(|waiting| waiting.as_str() == name)
    }

    /// In words, for people and the model.
    pub const fn explanation(self) -> &'static str {
        match self {
            Self::UntrustedEvidence => "it rests on text from outside that no person stands behind",
            Self::SharedAndAutomatic => "shared notes change only by a maintainer, and this write was automatic",
            Self::SharedByMember => "shared notes change only by a maintainer",
            Self::Correction => "the person corrected the assistant, and the review has not confirmed it yet",
        }
    }
}

/// What happens to a write that is permitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gate {
    /// It takes effect.
    Open,
    /// It becomes a proposal.
    Propose(Waiting),
    /// It is refused.
    Refuse(Refusal),
}

/// The gate in front of a permitted write: evidence first, then who decides on the owner's memory. An automatic writer
/// must cite the session that its credential is bound to; what other sessions say is not what it looked at, and one that
/// is bound to no session looked at none.
pub fn gate(caller: &Caller, owner: &Owner, evidence: Option<&Evidence>) -> Gate {
    if caller.origin.is_automatic() {
        let cites =
            |evidence: &&Evidence| caller.session() == Some(evidence.session.as_str()) && !evidence.spans.is_empty();
        let Some(evidence) = evidence.filter(cites) else {
            return Gate::Refuse(Refusal::EvidenceMissing);
        };
        if evidence
            .integrity
            .is_none_or(|integrity| integrity < Integrity::Workspace)
        {
            return Gate::Propose(Waiting::UntrustedEvidence);
        }
        if owner.is_shared() {
            return Gate::Propose(Waiting::SharedAndAutomatic);
        }
    }
    if owner.is_shared() && caller.role < Role::Maintainer {
        return Gate::Propose(Waiting::SharedByMember);
    }
    Gate::Open
}

#[cfg(test)]
mod tests;
