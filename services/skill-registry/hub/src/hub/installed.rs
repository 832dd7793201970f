//! What is installed: whether it still is what was installed, whether today's rules would let it in, and removing it.

use std::collections::BTreeMap;

use steward_skill_scanner::{Report, Verdict};

use super::{Actor, Hub, event};
use crate::audit::Action;
use crate::error::Error;
use crate::lock::{Drift, Lock};
use crate::store::Installed;

/// What today's rules say of a skill that is installed.
#[derive(Debug, Clone, PartialEq)]
pub struct Rescanned {
    /// Its lock.
    pub lock: Lock,
    /// The scan of what stands in the library now.
    pub report: Report,
}

impl Rescanned {
    /// Whether the verdict is worse than the one by which it was let in.
    pub fn is_worse(&self) -> bool {
        self.report.verdict > self.lock.verdict
    }
}

impl Hub {
    /// How an installed skill differs from its lock; the files of one that is gone are all missing.
    pub async fn verify(&self, team: &str, name: &str) -> Result<Drift, Error> {
        let installed = self.installed(team, name).await?;
        let tree = self.parts.store.library(team, name).await?.unwrap_or_default();
        Ok(installed.lock.verify(&tree))
    }

    /// One skill that the hub installed.
    pub async fn installed(&self, team: &str, name: &str) -> Result<Installed, Error> {
        let installed = self.parts.store.installed(team, name).await?;
        installed.ok_or_else(|| Error::NotInstalled { name: name.to_owned() })
    }

    /// The files of an installed skill as they stand in the library; nothing if it is out of use.
    pub async fn in_library(&self, team: &str, name: &str) -> Result<Option<steward_skill_scanner::Tree>, Error> {
        Ok(self.parts.store.library(team, name).await?)
    }

    /// Everything that the hub installed for the team, by name.
    pub async fn list(&self, team: &str) -> Result<Vec<Installed>, Error> {
        Ok(self.parts.store.all_installed(team).await?)
    }

    /// Removes a skill and its lock, also when its files are gone already.
    pub async fn uninstall(&self, actor: Actor<'_>, name: &str) -> Result<Lock, Error> {
        let lock = self.installed(actor.team, name).await?.lock;
        let facts = BTreeMap::from([("digest".to_owned(), lock.digest.clone())]);
        let event = event(Action::Remove, name, actor, facts);
        let now = self.parts.clock.now();
        self.parts.store.remove(actor, name, now, event).await?;
        Ok(lock)
    }

    /// Whether anything that is installed was let in by other rules than today's.
    pub async fn is_outdated(&self, team: &str) -> Result<bool, Error> {
        let rules = self.parts.scanner.rule_set();
        let all = self.parts.store.all_installed(team).await?;
        Ok(all.iter().any(|installed| installed.lock.rule_set != rules))
    }

    /// Scans one installed skill with today's rules; nothing if the library no longer has it. A verdict that is worse
    /// than when it was let in is on record; deciding about it is a person's business.
    pub async fn rescan_one(&self, actor: Actor<'_>, name: &str) -> Result<Option<Rescanned>, Error> {
        let Installed { lock, .. } = self.installed(actor.team, name).await?;
        let Some(tree) = self.parts.store.library(actor.team, name).await? else {
            return Ok(None);
        };
        let report = self.scan(actor.team, &tree, name).await?;
        let rescanned = Rescanned { lock, report };
        if rescanned.is_worse() {
            let event = event(Action::Verdict, name, actor, worse(&rescanned));
            let now = self.parts.clock.now();
            self.parts.store.record(actor.team, now, event).await?;
        }
        Ok(Some(rescanned))
    }

    /// The same for everything that is installed.
    pub async fn rescan(&self, actor: Actor<'_>) -> Result<Vec<Rescanned>, Error> {
        let mut all = Vec::new();
        for Installed { lock, .. } in self.list(actor.team).await? {
            all.extend(self.rescan_one(actor, &lock.name).await?);
        }
        Ok(all)
    }
}

fn worse(rescanned: &Rescanned) -> BTreeMap<String, String> {
    let verdict = |verdict: Verdict| verdict.as_str().to_owned();
    [
        ("verdict", verdict(rescanned.report.verdict)),
        ("was", verdict(rescanned.lock.verdict)),
        ("scan", rescanned.report.id()),
        ("scanner", rescanned.report.scanner.clone()),
        ("rule_set", rescanned.report.rule_set.clone()),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value))
    .collect()
}
