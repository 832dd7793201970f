//! The operations of the hub. There is one way in: install, update and restore all go through [`Hub::fetch`], and what
//! it leaves approved goes through [`Hub::install`], which scans once more and installs the very bytes it scanned.

mod events;
mod installed;
mod publications;
mod signatures;
mod trail;
mod update;
mod withdraw;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use steward_base::hash::sha256_parts;
use steward_base::{Clock, IdGen, Role};
use steward_skill_provenance::{Provenance, SigningPolicy};
use steward_skill_scanner::structure::Limits;
use steward_skill_scanner::{Options, Report, Scanner, Suppression, Tree, change, structure, suppress};

use crate::advisories::Advisories;
use crate::audit::Action;
use crate::error::{Error, StoreError};
use crate::lock::Drift;
use crate::policy::MAY_FORCE;
use crate::quarantine::{Arrival, Item, State};
use crate::search::{Results, search};
use crate::source::{Resolved, Source, SourceError};
use crate::store::{Holder, HubStore, Install, Installed, Local, Placed};

use events::{arrival_events, event, facts, install_event};

pub use installed::Rescanned;
pub use trail::Proof;
pub use update::{Plan, Preview};
pub use withdraw::Checked;

/// How often a change is decided anew when someone else was quicker.
const TRIES: usize = 3;

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
    /// How many items of a team may wait in quarantine.
    pub open_items: usize,
    /// Lists of what is known to be bad; none where the operator chose none.
    pub advisories: Option<Advisories>,
}

/// The hub of one registry, for all teams.
#[derive(Debug, Clone)]
pub struct Hub {
    parts: Parts,
    signing: SigningPolicy,
}

/// Who acts, and in which team.
#[derive(Debug, Clone, Copy)]
pub struct Actor<'a> {
    /// The team.
    pub team: &'a str,
    /// The user's resource name.
    pub user: &'a str,
    /// The person's role.
    pub role: Role,
}

/// How far a fetch has come, for those who wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// The source is asked which revision it has.
    Resolving {
        /// The source.
        source: String,
    },
    /// The revision is known and is fetched.
    Fetching {
        /// The revision.
        revision: String,
    },
    /// The bytes are here and are read.
    Scanning {
        /// Files.
        files: usize,
        /// Bytes of all files.
        bytes: u64,
    },
}

/// Who hears of it.
pub type Progress<'a> = &'a (dyn Fn(Stage) + Send + Sync);

/// Nobody hears of it.
pub fn quietly(_: Stage) {}

/// What an install may do besides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Choice {
    /// Sets a skill of the same name aside that did not come from this source; it can be restored.
    pub replace: bool,
    /// What happens to changes that were made here.
    pub local: Local,
}

impl Choice {
    /// Takes the name, and gives up what was changed here.
    pub const REPLACE: Self = Self {
        replace: true,
        local: Local::GiveUp,
    };
}

impl Hub {
    /// A hub, which verifies no signature and asks for none until it is told by [`Hub::with_signing`].
    pub fn new(parts: Parts) -> Self {
        let signing = SigningPolicy::default();
        Self { parts, signing }
    }

    /// Names of the enabled sources in the order of their priority.
    pub fn source_names(&self) -> Vec<&'static str> {
        self.parts.sources.iter().map(|source| source.name()).collect()
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

    /// Fetches and scans without installing: the item stays in quarantine (`H-2`).
    pub async fn bring(&self, actor: Actor<'_>, reference: &str) -> Result<Item, Error> {
        self.fetch(actor, reference, "", &quietly).await
    }

    /// The same, telling how far it is. Everything that enters goes this way. A request id that is not empty makes a
    /// retry find the item that the first try made.
    pub async fn fetch(
        &self,
        actor: Actor<'_>,
        reference: &str,
        request_id: &str,
        progress: Progress<'_>,
    ) -> Result<Item, Error> {
        let id = self.id_for(actor, request_id);
        if let Some(item) = self.parts.store.item(actor.team, &id).await? {
            return if item.asked_for == reference {
                Ok(item)
            } else {
                Err(Error::RequestIdReused {
                    reference: item.asked_for,
                })
            };
        }
        self.check_room(actor.team).await?;
        let (source, bare) = self.source_of(reference)?;
        let (resolved, tree) = self.take(actor, source, bare, progress).await?;
        self.admit(actor, id, reference, resolved, tree).await
    }

    fn id_for(&self, actor: Actor<'_>, request_id: &str) -> String {
        if request_id.is_empty() {
            return self.parts.ids.new_id();
        }
        let parts = [actor.team.as_bytes(), actor.user.as_bytes(), request_id.as_bytes()];
        let mut id = sha256_parts(parts);
        id.truncate(32);
        id
    }

    async fn check_room(&self, team: &str) -> Result<(), Error> {
        let (open, limit) = (self.parts.store.open_items(team).await?, self.parts.open_items);
        if open < limit {
            Ok(())
        } else {
            Err(Error::QuarantineFull { open, limit })
        }
    }

    /// Resolves and fetches; a refusal is on record.
    async fn take(
        &self,
        actor: Actor<'_>,
        source: &Arc<dyn Source>,
        reference: &str,
        progress: Progress<'_>,
    ) -> Result<(Resolved, Tree), Error> {
        let failed = |source_error| Error::Source {
            name: source.name().to_owned(),
            source: source_error,
        };
        progress(Stage::Resolving {
            source: source.name().to_owned(),
        });
        let resolved = match source.resolve(reference).await {
            Ok(resolved) => resolved,
            Err(error) => {
                // Some sources have the bytes before they know the revision: what is refused then is on record too.
                if is_refusal(&error) {
                    let facts = [("source", source.name()), ("reference", reference)];
                    let facts = facts.map(|(key, value)| (key.to_owned(), value.to_owned()));
                    self.record_refusal(actor, reference, facts.into(), &error).await?;
                }
                return Err(failed(error));
            }
        };
        progress(Stage::Fetching {
            revision: resolved.revision.clone(),
        });
        match source.fetch(&resolved).await {
            Ok(tree) => {
                progress(Stage::Scanning {
                    files: tree.len(),
                    bytes: tree.bytes(),
                });
                Ok((resolved, tree))
            }
            Err(error) => {
                self.record_refusal(actor, &resolved.name, facts(&resolved), &error)
                    .await?;
                Err(failed(error))
            }
        }
    }

    async fn record_refusal(
        &self,
        actor: Actor<'_>,
        subject: &str,
        facts: BTreeMap<String, String>,
        error: &SourceError,
    ) -> Result<(), Error> {
        let mut event = event(Action::Refuse, subject, actor, facts);
        event.details.insert("problem".to_owned(), error.to_string());
        Ok(self
            .parts
            .store
            .record(actor.team, self.parts.clock.now(), event)
            .await?)
    }

    /// Structure, scan and policy for bytes that are here.
    async fn admit(
        &self,
        actor: Actor<'_>,
        id: String,
        asked_for: &str,
        resolved: Resolved,
        tree: Tree,
    ) -> Result<Item, Error> {
        let now = self.parts.clock.now();
        let judged = self.judge(actor.team, resolved, &tree).await?;
        let digest = tree.digest();
        let doubts = self.doubts(actor, &judged.resolved, &digest).await?;
        let arrival = Arrival {
            id,
            asked_for: asked_for.to_owned(),
            resolved: judged.resolved,
            tree,
            provenance: judged.provenance,
            requested_by: actor.user.to_owned(),
            at: now,
            doubts,
        };
        let lock = judged.installed.as_ref().map(|installed| &installed.lock);
        let item = Item::admit(arrival, judged.problems, judged.report, judged.change, lock);
        self.parts
            .store
            .put_item(actor.team, &item, None, now, arrival_events(actor, &item, digest))
            .await?;
        Ok(item)
    }

    /// What structure check and scan say of a tree, against what is installed under its name.
    async fn judge(&self, team: &str, mut resolved: Resolved, tree: &Tree) -> Result<Judged, Error> {
        if let Some(name) = name_in(tree) {
            resolved.name = name;
        }
        let installed = self.parts.store.installed(team, &resolved.name).await?;
        let problems = structure::check(tree, Some(&resolved.name), &self.parts.limits);
        let (report, provenance) = if problems.is_empty() {
            let report = self.scan(team, tree, &resolved.name).await?;
            (Some(report), self.provenance(&resolved, tree).await?)
        } else {
            (None, Provenance::default())
        };
        let change = match (&report, &installed) {
            (Some(report), Some(installed)) => Some(change(&installed.report, report)),
            _ => None,
        };
        Ok(Judged {
            resolved,
            installed,
            problems,
            report,
            provenance,
            change,
        })
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
            Err(error) => Err(StoreError::failed(format!("the scan broke off: {error}")).into()),
        }
    }

    /// Installs what is approved. One that is installed already stays so.
    pub async fn install(&self, actor: Actor<'_>, id: &str, choice: Choice) -> Result<Outcome, Error> {
        let mut last = None;
        for _ in 0..TRIES {
            match self.try_install(actor, id, choice).await {
                Err(error @ Error::ChangedMeanwhile { .. }) => last = Some(error),
                decided => return decided,
            }
        }
        Err(last.unwrap_or(Error::ChangedMeanwhile {
            problem: "it does not come to rest".to_owned(),
        }))
    }

    async fn try_install(&self, actor: Actor<'_>, id: &str, choice: Choice) -> Result<Outcome, Error> {
        let mut item = self.item(actor.team, id).await?;
        let name = item.resolved.name.clone();
        let before = self.parts.store.installed(actor.team, &name).await?;
        if let Some(installed) = before.as_ref().filter(|installed| installed.lock.item == item.id) {
            return Ok(Outcome {
                installed: installed.clone(),
                placed: Placed::default(),
            });
        }
        self.check_standing(actor.team, &item.tree.digest()).await?;
        self.check_name(actor, &item, before.as_ref(), choice).await?;
        let report = self.scan(actor.team, &item.tree, &name).await?;
        let provenance = self.provenance(&item.resolved, &item.tree).await?;
        let now = self.parts.clock.now();
        let lock = item.lock(&report, provenance, actor.user, now)?;
        item.state = State::Installed;
        let installed = Installed { lock, report };
        let install = Install {
            actor,
            item: &item,
            installed: &installed,
            before: before.as_ref().map(|installed| &installed.lock),
            replace: choice.replace,
            local: choice.local,
            at: now,
        };
        let events = vec![install_event(&install)];
        let placed = self.parts.store.install(install, events).await?;
        Ok(Outcome { installed, placed })
    }

    async fn check_name(
        &self,
        actor: Actor<'_>,
        item: &Item,
        before: Option<&Installed>,
        choice: Choice,
    ) -> Result<(), Error> {
        let name = item.resolved.name.clone();
        match self.parts.store.holder(actor, &name).await? {
            Holder::Other(holder) if !choice.replace => Err(Error::NameTaken { name, holder }),
            Holder::Free | Holder::Other(_) => Ok(()),
            Holder::Hub => {
                let Some(before) = before else { return Ok(()) };
                let same =
                    (&before.lock.source, &before.lock.reference) == (&item.resolved.source, &item.resolved.reference);
                if !same && !choice.replace {
                    return Err(Error::NameTaken {
                        name,
                        holder: format!("{}:{}", before.lock.source, before.lock.reference),
                    });
                }
                if choice.local != Local::Keep {
                    return Ok(());
                }
                match self.parts.store.library(actor.team, &name).await? {
                    Some(tree) if !before.lock.verify(&tree).is_none() => Err(Error::Drifted {
                        name,
                        files: differing(before.lock.verify(&tree)),
                    }),
                    _ => Ok(()),
                }
            }
        }
    }

    /// One item of the team's quarantine, with its bytes as long as they are of use.
    pub async fn item(&self, team: &str, id: &str) -> Result<Item, Error> {
        let item = self.parts.store.item(team, id).await?;
        item.ok_or_else(|| Error::NoItem { id: id.to_owned() })
    }

    /// At most `limit` items of the team's quarantine without their bytes, oldest first, after the place `after`.
    pub async fn items(&self, team: &str, after: Option<&str>, limit: usize) -> Result<Vec<Item>, Error> {
        Ok(self.parts.store.items(team, after, limit).await?)
    }

    /// Lets an item through that waits, or with force one that is blocked (`H-5`).
    pub async fn release(&self, actor: Actor<'_>, id: &str, reason: &str, force: bool) -> Result<Item, Error> {
        if force && actor.role < MAY_FORCE {
            return Err(Error::RoleRequired {
                role: actor.role,
                required: MAY_FORCE,
            });
        }
        let mut item = self.item(actor.team, id).await?;
        self.check_standing(actor.team, &item.tree.digest()).await?;
        let before = item.state;
        item.release(actor.user, self.parts.clock.now(), reason, force)?;
        self.decided(actor, &item, before, if force { "forced" } else { "released" }, reason)
            .await?;
        Ok(item)
    }

    /// Turns an item down; its bytes are dropped.
    pub async fn reject(&self, actor: Actor<'_>, id: &str, reason: &str) -> Result<Item, Error> {
        let mut item = self.item(actor.team, id).await?;
        let before = item.state;
        item.reject()?;
        self.decided(actor, &item, before, "rejected", reason).await?;
        item.tree = Tree::new();
        Ok(item)
    }

    async fn decided(
        &self,
        actor: Actor<'_>,
        item: &Item,
        before: State,
        decision: &str,
        reason: &str,
    ) -> Result<(), Error> {
        let mut facts = facts(&item.resolved);
        facts.insert("decision".to_owned(), decision.to_owned());
        facts.insert("reason".to_owned(), reason.to_owned());
        facts.insert("item".to_owned(), item.id.clone());
        let events = vec![event(Action::Decision, &item.resolved.name, actor, facts)];
        let now = self.parts.clock.now();
        Ok(self
            .parts
            .store
            .put_item(actor.team, item, Some(before), now, events)
            .await?)
    }

    /// Accepts one finding for its evidence, whatever the file around it.
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
}

/// What was installed, and what that did besides.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The skill as it is locked now.
    pub installed: Installed,
    /// Merges, and what was set aside.
    pub placed: Placed,
}

/// A tree that was looked at.
#[derive(Debug)]
struct Judged {
    resolved: Resolved,
    installed: Option<Installed>,
    problems: Vec<structure::Problem>,
    report: Option<Report>,
    provenance: Provenance,
    change: Option<steward_skill_scanner::Change>,
}

/// Whether bytes were looked at and turned down, and not merely none found.
const fn is_refusal(error: &SourceError) -> bool {
    matches!(
        error,
        SourceError::Archive(_) | SourceError::Incomplete { .. } | SourceError::Withheld { .. }
    )
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

#[cfg(test)]
mod tests;
