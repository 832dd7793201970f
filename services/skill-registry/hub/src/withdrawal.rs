//! What is no longer to be trusted as it was: revisions that their source takes back, that an advisory names, or that a
//! maintainer revokes. By digest, so that the same bytes are withdrawn wherever they come from.
//!
//! Sources can only yank: whoever runs one must not be able to take a team's skills away. Revoking is for a maintainer,
//! and for the advisories that the operator of this installation chose.

use serde::{Deserialize, Serialize};
use steward_base::Timestamp;

/// What a withdrawal does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// A maintainer looked at the withdrawal and overruled it. It does nothing until there is another cause.
    Reinstated,
    /// Nobody installs it any more; where it is installed it stays, with a warning.
    Yanked,
    /// The same, and where it is installed it is taken out of agents' sight at once.
    Revoked,
}

impl Standing {
    /// The stable name, in snake case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reinstated => "reinstated",
            Self::Yanked => "yanked",
            Self::Revoked => "revoked",
        }
    }
}

/// On whose word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A maintainer's.
    Person,
    /// The source's that it came from: it no longer has it, or withholds it.
    Source(String),
    /// The advisory's with this id.
    Advisory(String),
}

impl Cause {
    /// In a word and a name, for people and logs.
    pub fn told(&self) -> String {
        match self {
            Self::Person => "person".to_owned(),
            Self::Source(name) => format!("source {name}"),
            Self::Advisory(id) => format!("advisory {id}"),
        }
    }
}

/// One withdrawn tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Withdrawal {
    /// Digest of the tree.
    pub digest: String,
    /// What it does.
    pub standing: Standing,
    /// On whose word; of a reinstated one what was overruled.
    pub cause: Cause,
    /// Who recorded it; the policy's own name where no person did.
    pub by: String,
    /// Why.
    pub reason: String,
    /// When.
    pub at: Timestamp,
}

impl Withdrawal {
    /// Whether it keeps the tree from being installed.
    pub fn is_in_force(&self) -> bool {
        self.standing > Standing::Reinstated
    }
}

/// What a source or an advisory says of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal {
    /// What shall happen.
    pub standing: Standing,
    /// On whose word.
    pub cause: Cause,
    /// Why.
    pub reason: String,
}

/// What becomes of a withdrawal when its source and the advisories were asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It stays as it is.
    Keep,
    /// The signal takes its place.
    Take,
    /// It ends: whoever withdrew the tree offers it again.
    End,
}

/// The one table of what a background check may do. What people decided stands: a reinstated tree is withdrawn again by
/// another cause only, and what was revoked comes back by a person's word only.
pub fn turn(present: Option<&Withdrawal>, signal: Option<&Signal>) -> Turn {
    match (present, signal) {
        (None, Some(_)) => Turn::Take,
        (Some(present), Some(signal)) => {
            let overruled = present.standing == Standing::Reinstated && present.cause == signal.cause;
            if !overruled && signal.standing > present.standing {
                Turn::Take
            } else {
                Turn::Keep
            }
        }
        (Some(present), None) if present.standing == Standing::Yanked && present.cause != Cause::Person => Turn::End,
        (_, None) => Turn::Keep,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn present(standing: Standing, cause: Cause) -> Withdrawal {
        Withdrawal {
            digest: "d".to_owned(),
            standing,
            cause,
            by: "policy".to_owned(),
            reason: "why".to_owned(),
            at: Timestamp::from_secs(0),
        }
    }

    fn signal(standing: Standing, cause: Cause) -> Signal {
        Signal {
            standing,
            cause,
            reason: "why".to_owned(),
        }
    }

    #[test]
    fn a_check_takes_what_is_worse_and_never_undoes_what_people_decided() {
        use Standing::{Reinstated, Revoked, Yanked};
        let (site, other) = (Cause::Source("github".to_owned()), Cause::Advisory("A-1".to_owned()));
        for (standing, cause, said, turned) in [
            (Yanked, site.clone(), Some((Yanked, site.clone())), Turn::Keep),
            (Yanked, site.clone(), Some((Revoked, other.clone())), Turn::Take),
            (Yanked, site.clone(), None, Turn::End),
            (Yanked, Cause::Person, None, Turn::Keep),
            (Revoked, other.clone(), None, Turn::Keep),
            (Revoked, Cause::Person, Some((Yanked, site.clone())), Turn::Keep),
            (Reinstated, site.clone(), Some((Yanked, site.clone())), Turn::Keep),
            (Reinstated, site.clone(), Some((Revoked, other.clone())), Turn::Take),
            (Reinstated, other.clone(), Some((Revoked, other)), Turn::Keep),
            (Reinstated, Cause::Person, Some((Yanked, site.clone())), Turn::Take),
            (Reinstated, site.clone(), None, Turn::Keep),
        ] {
            let now = present(standing, cause);
            let said = said.map(|(standing, cause)| signal(standing, cause));
            assert_eq!(turn(Some(&now), said.as_ref()), turned, "{now:?} {said:?}");
        }
        assert_eq!(turn(None, Some(&signal(Yanked, site))), Turn::Take);
        assert_eq!(turn(None, None), Turn::Keep);
    }
}
