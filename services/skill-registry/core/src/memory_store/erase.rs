//! The erasure of a person, in memory.

use std::collections::BTreeSet;

use async_trait::async_trait;

use super::{InMemorySkillStore, SkillKey};
use crate::error::StoreFault;
use crate::name::Scope;
use crate::store::{EraseStore, Erased, Erasure};

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[async_trait]
impl EraseStore for InMemorySkillStore {
    async fn erase_person(&self, erasure: Erasure) -> Result<Erased, StoreFault> {
        let Erasure { team, user, .. } = erasure;
        let mut inner = self.lock();
        let own: BTreeSet<SkillKey> = inner
            .records
            .iter()
            .filter(|(key, record)| key.0 == team && record.scope == Scope::User(user.clone()))
            .map(|(key, _)| key.clone())
            .collect();
        let mut erased = Erased {
            skills: count(own.len()),
            ..Erased::default()
        };
        for key in &own {
            inner.records.remove(key);
            inner.broken.remove(key);
            erased.revisions += count(inner.revisions.remove(key).unwrap_or_default().len());
        }
        let is_own = |of: &steward_base::names::TeamId, uid: &str| own.contains(&(of.clone(), uid.to_owned()));
        inner.reads.retain(|(of, _, uid), _| !is_own(of, uid));
        inner.answers.retain(|(of, _, _), (uid, _)| !is_own(of, uid));
        let before = inner.bundles.len() + inner.hidden.len() + inner.proposals.len();
        inner
            .bundles
            .retain(|key, _| key.team != team || key.owner.as_ref() != Some(&user));
        inner
            .hidden
            .retain(|(of, owner, uid)| !is_own(of, uid) && (*of != team || owner.as_ref() != Some(&user)));
        inner.proposals.retain(|_, proposal| {
            !is_own(&proposal.team, &proposal.uid) && (proposal.team != team || proposal.author.as_ref() != Some(&user))
        });
        let after = inner.bundles.len() + inner.hidden.len() + inner.proposals.len();
        erased.others = count(before - after);
        let used: BTreeSet<(steward_base::names::TeamId, String)> = inner
            .revisions
            .iter()
            .flat_map(|((of, _), all)| all.iter().map(move |revision| (of, revision)))
            .flat_map(|(of, revision)| revision.files.iter().map(|entry| (of.clone(), entry.sha256.clone())))
            .collect();
        inner.blobs.retain(|key, _| used.contains(key));
        if erased != Erased::default() {
            inner.generation += 1;
        }
        Ok(erased)
    }
}
