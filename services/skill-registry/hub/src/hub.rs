//! The operations of the hub. There is one way in: install, update and restore all go through [`Hub::bring`], and what
//! it leaves approved goes through [`Hub::install`], which scans once more and installs the very bytes it scanned.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use steward_base::{Clock, IdGen, Timestamp};
use steward_skill_scanner::structure::Limits;
use steward_skill_scanner::{Options, Report, Scanner, Suppression, Tree, change, structure, suppress};

use crate::audit::{self, Action, Event};
use crate::error::Error;
use crate::lock::Drift;
use crate::quarantine::{Arrival, Item, State, told};
use crate::search::{Results, search};
use crate::source::{Resolved, Source, SourceError};
use crate::store::{Holder, HubStore, Installed};

/// What the hub is made of.
#[derive(Debug, Clone)]
pub struct Parts {
    /// Enabled sources in the order of their priority.
    pub sources: Vec<Arc<dyn Source>>,
    /// The tables.
    pub store: Arc<dyn HubStore>,
    /// The scanner.
    pub scanner: Scanner,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Fresh ids.
    pub ids: Arc<dyn IdGen>,
    /// How much a skill may hold.
    pub limits: Limits,
    /// How long each source may take to answer a search.
    pub search_deadline: Duration,
}

/// The hub of one registry, for all teams.
#[derive(Debug, Clone)]
pub struct Hub {
    parts: Parts,
}

/// Who acts, and in which team.
#[derive(Debug, Clone, Copy)]
pub struct Actor<'a> {
    /// The team.
    pub team: &'a str,
    /// The user's resource name.
    pub user: &'a str,
}

/// What an update would do to one installed skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// The source has nothing newer.
    Current,
    /// A newer revision is there.
    Available {
        /// The revision.
        revision: String,
    },
    /// A newer revision is there and too young to be taken without a person's word.
    Cooling {
        /// The revision.
        revision: String,
        /// When it is old enough.
        until: Timestamp,
    },
    /// The skill was changed here; an update would lose that.
    LocalChanges {
        /// How.
        drift: Drift,
    },
    /// The source no longer has it; the copy here stays.
    GoneUpstream,
    /// The source is switched off or does not answer; nothing is changed and no other source is asked.
    SourceUnavailable {
        /// Why.
        problem: String,
    },
    /// It belongs to someone else at its source now.
    OwnerChanged {
        /// The revision.
        revision: String,
    },
}

impl Hub {
    /// A hub.
    pub fn new(parts: Parts) -> Self {
        Self { parts }
    }

    /// Searches all enabled sources.
    pub async fn search(&self, query: &str, limit: usize) -> Results {
        search(&self.parts.sources, query, limit, self.parts.search_deadline).await
    }

    fn source(&self, name: &str) -> Option<&Arc<dyn Source>> {
        self.parts.sources.iter().find(|source| source.name() == name)
    }

    /// The source that a reference is for: `name:reference`, or the first that claims it.
    fn source_of<'r>(&self, reference: &'r str) -> Result<(&Arc<dyn Source>, &'r str), Error> {
        if let Some((name, rest)) = reference.split_once(':')
            && let Some(source) = self.source(name)
        {
            return Ok((source, rest));
        }
        let claimed = self.parts.sources.iter().find(|source| source.claims(reference));
        claimed
            .map(|source| (source, reference))
            .ok_or_else(|| Error::NoSource {
                reference: reference.to_owned(),
            })
    }

    /// Fetches and scans without installing: the item stays in quarantine (`H-2`). Everything that enters goes this way.
    pub async fn bring(&self, actor: Actor<'_>, reference: &str) -> Result<Item, Error> {
        let (source, reference) = self.source_of(reference)?;
        let failed = |source_error| Error::Source {
            name: source.name().to_owned(),
            source: source_error,
        };
        let resolved = source.resolve(reference).await.map_err(failed)?;
        match source.fetch(&resolved).await {
            Ok(tree) => self.admit(actor, resolved, tree).await,
            Err(error) => {
                self.record_refusal(actor, &resolved, &error).await?;
                Err(failed(error))
            }
        }
    }

    async fn record_refusal(&self, actor: Actor<'_>, resolved: &Resolved, error: &SourceError) -> Result<(), Error> {
        let mut event = event(Action::Refuse, &resolved.name, actor, facts(resolved));
        event.details.insert("problem".to_owned(), error.to_string());
        Ok(self
            .parts
            .store
            .record(actor.team, self.parts.clock.now(), event)
            .await?)
    }

    /// Structure, scan and policy for bytes that are here.
    async fn admit(&self, actor: Actor<'_>, mut resolved: Resolved, tree: Tree) -> Result<Item, Error> {
        let now = self.parts.clock.now();
        if let Some(name) = name_in(&tree) {
            resolved.name = name;
        }
        let installed = self.parts.store.installed(actor.team, &resolved.name).await?;
        let problems = structure::check(&tree, Some(&resolved.name), &self.parts.limits);
        let report = if problems.is_empty() {
            Some(self.scan(actor.team, &tree, &resolved.name).await?)
        } else {
            None
        };
        let brought = match (&report, &installed) {
            (Some(report), Some(installed)) => Some(change(&installed.report, report)),
            _ => None,
        };
        let arrival = Arrival {
            id: self.parts.ids.new_id(),
            resolved,
            tree,
            requested_by: actor.user.to_owned(),
            at: now,
        };
        let lock = installed.as_ref().map(|installed| &installed.lock);
        let item = Item::admit(arrival, problems, report, brought, lock);
        self.parts
            .store
            .put_item(actor.team, &item, now, arrival_events(actor, &item))
            .await?;
        Ok(item)
    }

    async fn scan(&self, team: &str, tree: &Tree, name: &str) -> Result<Report, Error> {
        let suppressions = self.parts.store.suppressions(team).await?;
        let options = Options {
            name: Some(name.to_owned()),
            limits: self.parts.limits,
        };
        let (scanner, tree) = (self.parts.scanner.clone(), tree.clone());
        // A scan is work, and the runtime's threads are for waiting.
        let report = tokio::task::spawn_blocking(move || scanner.scan(&tree, &options)).await;
        match report {
            Ok(report) => Ok(suppress(report, &suppressions)),
            Err(error) => Err(Error::Store {
                source: crate::error::StoreError {
                    problem: format!("the scan broke off: {error}"),
                    conflict: false,
                },
            }),
        }
    }

    /// Installs what is approved. `replace` permits to take the name of a skill that did not come from the hub, or one
    /// that was changed here: the old content stays in the library's history.
    pub async fn install(&self, actor: Actor<'_>, id: &str, replace: bool) -> Result<Installed, Error> {
        let mut item = self.item(actor.team, id).await?;
        let name = item.resolved.name.clone();
        let before = self.parts.store.installed(actor.team, &name).await?;
        if !replace {
            self.check_name(actor.team, &item, before.as_ref()).await?;
        }
        let report = self.scan(actor.team, &item.tree, &name).await?;
        let lock = item.lock(&report, actor.user, self.parts.clock.now())?;
        item.state = State::Installed;
        let action = if before.is_some() {
            Action::Update
        } else {
            Action::Install
        };
        let mut facts = facts(&item.resolved);
        facts.insert("digest".to_owned(), lock.digest.clone());
        facts.insert("item".to_owned(), item.id.clone());
        if let Some(reason) = &lock.forced {
            facts.insert("forced".to_owned(), reason.clone());
        }
        let installed = Installed { lock, report };
        let events = vec![event(action, &name, actor, facts)];
        let now = self.parts.clock.now();
        self.parts
            .store
            .install(actor.team, &item, &installed, now, events)
            .await?;
        Ok(installed)
    }

    async fn check_name(&self, team: &str, item: &Item, before: Option<&Installed>) -> Result<(), Error> {
        let name = item.resolved.name.clone();
        match self.parts.store.holder(team, &name).await? {
            Holder::Free => Ok(()),
            Holder::Other(holder) => Err(Error::NameTaken { name, holder }),
            Holder::Hub => {
                let Some(before) = before else { return Ok(()) };
                let same =
                    (&before.lock.source, &before.lock.reference) == (&item.resolved.source, &item.resolved.reference);
                if !same {
                    return Err(Error::NameTaken {
                        name,
                        holder: format!("{}:{}", before.lock.source, before.lock.reference),
                    });
                }
                match self.parts.store.library(team, &name).await? {
                    Some(tree) if !before.lock.verify(&tree).is_none() => Err(Error::Drifted {
                        name,
                        files: differing(before.lock.verify(&tree)),
                    }),
                    _ => Ok(()),
                }
            }
        }
    }

    /// One item of the team's quarantine.
    pub async fn item(&self, team: &str, id: &str) -> Result<Item, Error> {
        let item = self.parts.store.item(team, id).await?;
        item.ok_or_else(|| Error::NoItem { id: id.to_owned() })
    }

    /// The team's quarantine, oldest first.
    pub async fn items(&self, team: &str) -> Result<Vec<Item>, Error> {
        Ok(self.parts.store.items(team).await?)
    }

    /// A maintainer lets an item through.
    pub async fn release(&self, actor: Actor<'_>, id: &str, reason: &str, force: bool) -> Result<Item, Error> {
        let mut item = self.item(actor.team, id).await?;
        item.release(actor.user, self.parts.clock.now(), reason, force)?;
        self.decided(actor, &item, if force { "forced" } else { "released" }, reason)
            .await?;
        Ok(item)
    }

    /// A maintainer turns an item down.
    pub async fn reject(&self, actor: Actor<'_>, id: &str, reason: &str) -> Result<Item, Error> {
        let mut item = self.item(actor.team, id).await?;
        item.reject()?;
        self.decided(actor, &item, "rejected", reason).await?;
        Ok(item)
    }

    async fn decided(&self, actor: Actor<'_>, item: &Item, decision: &str, reason: &str) -> Result<(), Error> {
        let mut facts = facts(&item.resolved);
        facts.insert("decision".to_owned(), decision.to_owned());
        facts.insert("reason".to_owned(), reason.to_owned());
        facts.insert("item".to_owned(), item.id.clone());
        let events = vec![event(Action::Decision, &item.resolved.name, actor, facts)];
        Ok(self
            .parts
            .store
            .put_item(actor.team, item, self.parts.clock.now(), events)
            .await?)
    }

    /// A maintainer accepts one finding for its evidence, whatever the file around it.
    pub async fn accept(&self, actor: Actor<'_>, fingerprint: &str, reason: &str) -> Result<(), Error> {
        if reason.trim().is_empty() {
            return Err(Error::NoReason);
        }
        let facts = BTreeMap::from([("reason".to_owned(), reason.to_owned())]);
        let suppression = Suppression {
            fingerprint: fingerprint.to_owned(),
            reason: reason.to_owned(),
            by: actor.user.to_owned(),
        };
        let event = event(Action::Accept, fingerprint, actor, facts);
        Ok(self
            .parts
            .store
            .suppress(actor.team, suppression, self.parts.clock.now(), event)
            .await?)
    }

    /// How an installed skill differs from its lock; the files of one that is gone are all missing.
    pub async fn verify(&self, team: &str, name: &str) -> Result<Drift, Error> {
        let installed = self.installed(team, name).await?;
        let tree = self.parts.store.library(team, name).await?.unwrap_or_default();
        Ok(installed.lock.verify(&tree))
    }

    async fn installed(&self, team: &str, name: &str) -> Result<Installed, Error> {
        let installed = self.parts.store.installed(team, name).await?;
        installed.ok_or_else(|| Error::NotInstalled { name: name.to_owned() })
    }

    /// Everything that the hub installed for the team.
    pub async fn list(&self, team: &str) -> Result<Vec<Installed>, Error> {
        Ok(self.parts.store.all_installed(team).await?)
    }

    /// Removes a skill and its lock, also when its files are gone already.
    pub async fn uninstall(&self, actor: Actor<'_>, name: &str) -> Result<(), Error> {
        let installed = self.installed(actor.team, name).await?;
        let facts = BTreeMap::from([("digest".to_owned(), installed.lock.digest)]);
        let event = event(Action::Remove, name, actor, facts);
        Ok(self
            .parts
            .store
            .remove(actor.team, name, self.parts.clock.now(), event)
            .await?)
    }

    /// What an update of one skill would do. Only the source that it came from is asked.
    pub async fn plan(&self, team: &str, name: &str) -> Result<Plan, Error> {
        let Installed { lock, .. } = self.installed(team, name).await?;
        if let Some(tree) = self.parts.store.library(team, name).await? {
            let drift = lock.verify(&tree);
            if !drift.is_none() {
                return Ok(Plan::LocalChanges { drift });
            }
        }
        let Some(source) = self.source(&lock.source) else {
            return Ok(Plan::SourceUnavailable {
                problem: format!("{} is switched off", lock.source),
            });
        };
        let resolved = match source.resolve(&lock.reference).await {
            Ok(resolved) => resolved,
            Err(SourceError::Gone { .. }) => return Ok(Plan::GoneUpstream),
            Err(error) => {
                return Ok(Plan::SourceUnavailable {
                    problem: error.to_string(),
                });
            }
        };
        if resolved.pins.changed_from(&lock.pins) {
            return Ok(Plan::OwnerChanged {
                revision: resolved.revision,
            });
        }
        if resolved.revision == lock.revision {
            return Ok(Plan::Current);
        }
        let until = resolved
            .published_at
            .map(|published| published.plus(resolved.trust.cool_down()));
        Ok(match until {
            Some(until) if until > self.parts.clock.now() => Plan::Cooling {
                revision: resolved.revision,
                until,
            },
            _ => Plan::Available {
                revision: resolved.revision,
            },
        })
    }

    /// Brings the newer revision of an installed skill into quarantine, from its own source.
    pub async fn update(&self, actor: Actor<'_>, name: &str) -> Result<Item, Error> {
        let Installed { lock, .. } = self.installed(actor.team, name).await?;
        if self.source(&lock.source).is_none() {
            return Err(Error::NoSource { reference: lock.source });
        }
        self.bring(actor, &format!("{}:{}", lock.source, lock.reference)).await
    }

    /// Scans every installed skill with today's rules. Those whose verdict is worse than when they were let in are
    /// returned; deciding about them is a person's business.
    pub async fn rescan(&self, team: &str) -> Result<Vec<(String, Report)>, Error> {
        let mut worse = Vec::new();
        for Installed { lock, report } in self.parts.store.all_installed(team).await? {
            let Some(tree) = self.parts.store.library(team, &lock.name).await? else {
                continue;
            };
            let now = self.scan(team, &tree, &lock.name).await?;
            if now.verdict > report.verdict {
                worse.push((lock.name, now));
            }
        }
        Ok(worse)
    }

    /// The team's log, oldest first.
    pub async fn audit(&self, team: &str) -> Result<Vec<audit::Entry>, Error> {
        Ok(self.parts.store.audit(team).await?)
    }
}

fn differing(drift: Drift) -> Vec<String> {
    drift
        .changed
        .into_iter()
        .chain(drift.missing)
        .chain(drift.extra)
        .collect()
}

/// The name in the header, which a source may not know.
fn name_in(tree: &Tree) -> Option<String> {
    let file = tree.get("SKILL.md")?;
    let text = std::str::from_utf8(&file.bytes).ok()?;
    steward_skill_scanner::header::parse(text)
        .ok()
        .map(|header| header.name)
}

fn event(action: Action, subject: &str, actor: Actor<'_>, details: BTreeMap<String, String>) -> Event {
    Event {
        action,
        subject: subject.to_owned(),
        actor: actor.user.to_owned(),
        details,
    }
}

fn facts(resolved: &Resolved) -> BTreeMap<String, String> {
    [
        ("source", &resolved.source),
        ("reference", &resolved.reference),
        ("revision", &resolved.revision),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value.clone()))
    .collect()
}

fn arrival_events(actor: Actor<'_>, item: &Item) -> Vec<Event> {
    let name = &item.resolved.name;
    let mut fetched = facts(&item.resolved);
    fetched.insert("digest".to_owned(), item.tree.digest());
    fetched.insert("item".to_owned(), item.id.clone());
    let mut events = vec![event(Action::Fetch, name, actor, fetched)];
    if let Some(report) = &item.report {
        let details = [
            ("verdict", report.verdict.to_string()),
            ("scan", report.id()),
            ("scanner", report.scanner.clone()),
            ("rule_set", report.rule_set.clone()),
        ];
        let details = details
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect();
        events.push(event(Action::Verdict, name, actor, details));
    } else {
        let details = BTreeMap::from([("problems".to_owned(), told(&item.problems).join("; "))]);
        events.push(event(Action::Refuse, name, actor, details));
    }
    let details = BTreeMap::from([("decision".to_owned(), item.state.as_str().to_owned())]);
    events.push(event(Action::Decision, name, actor, details));
    events
}

#[cfg(test)]
mod tests;
