//! Writers to one skill take turns, so that many at once do not make each other decide anew until they give up.
//!
//! A courtesy and no protection: what keeps changes from being lost is the version that each one names in the store.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use futures::lock::{Mutex, MutexGuard};
use steward_base::names::TeamId;

/// Fewer than there are skills: two skills that share one wait for each other now and then.
const QUEUES: usize = 64;

/// The queues.
#[derive(Debug)]
pub(crate) struct Turns(Vec<Mutex<()>>);

/// Held while one writer decides and commits.
pub(crate) type Turn<'a> = MutexGuard<'a, ()>;

impl Turns {
    pub(crate) fn new() -> Self {
        Self((0..QUEUES).map(|_| Mutex::new(())).collect())
    }

    /// Waits for the turn at the skill that `text` names; all names of one skill end in the same part.
    pub(crate) async fn take(&self, team: &TeamId, text: &str) -> Turn<'_> {
        self.0[queue(team, text)].lock().await
    }
}

fn queue(team: &TeamId, text: &str) -> usize {
    let last = text.trim().rsplit(['/', ':']).next().unwrap_or_default();
    let name = last.split("--").next().unwrap_or_default();
    let mut hasher = DefaultHasher::new();
    (team.as_str(), name).hash(&mut hasher);
    usize::try_from(hasher.finish() % QUEUES as u64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_skill_leads_to_the_same_queue() {
        let team = TeamId::parse("red").unwrap();
        let plain = queue(&team, "rollout");
        for other in [
            " rollout ",
            "team/deploys/rollout",
            "ops:rollout",
            "teams/red/skills/rollout--0198c0",
        ] {
            assert_eq!(queue(&team, other), plain, "{other}");
        }
        let used: std::collections::BTreeSet<usize> = (0..500).map(|at| queue(&team, &format!("skill-{at}"))).collect();
        assert!(used.len() > QUEUES / 2 && used.iter().all(|queue| *queue < QUEUES));
    }
}
