//! What schedules name: as long as one names a skill, no automatic process sets that skill aside (`C-2`, D-23).

use steward_base::FieldViolations;

use crate::actor::Actor;
use crate::error::Error;
use crate::skills::Skills;

/// Most names of one holder.
const MOST_NAMES: usize = 100;
const MAX_HOLDER_CHARS: usize = 200;

/// What a holder names from now on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct References {
    /// Resource names of the skills.
    pub skills: Vec<String>,
    /// Names that fit no skill, or several.
    pub unresolved: Vec<String>,
}

impl Skills {
    /// Records what `holder` names, in place of what it named before; nothing to forget the holder.
    pub async fn set_references(&self, actor: &Actor, holder: &str, names: &[String]) -> Result<References, Error> {
        let mut violations = FieldViolations::new();
        if holder.trim().is_empty() || holder.chars().count() > MAX_HOLDER_CHARS {
            violations.add("holder", format!("must have 1 to {MAX_HOLDER_CHARS} characters"));
        }
        if names.len() > MOST_NAMES {
            violations.add("skills", format!("must be at most {MOST_NAMES}"));
        }
        violations.into_result()?;
        let (mut found, mut uids) = (References::default(), Vec::new());
        for name in names {
            match self.resolve(actor, name).await {
                Ok(record) => {
                    found.skills.push(record.resource_name());
                    uids.push(record.uid);
                }
                Err(Error::Store(fault)) => return Err(fault.into()),
                Err(_) => found.unresolved.push(name.clone()),
            }
        }
        self.store.set_references(&actor.team, holder, &uids).await?;
        Ok(found)
    }
}
