//! The hub's port over this service's database: its own tables by SQL, the library by the library's rules, and both in one
//! transaction where they change together.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use steward_base::names::{TeamId, parse_user};
use steward_base::{ErrorKind, Fault as _, FieldViolations, Origin, Timestamp, error_chain};
use steward_skill_core::error::StoreFault;
use steward_skill_core::install_skill::{Beside, BesideCopies, HubSkill, LocalChanges};
use steward_skill_core::path::SkillPath;
use steward_skill_core::record::{Files, SkillRecord, tree_hash};
use steward_skill_core::store::{Change, CommitError};
use steward_skill_core::{Actor as Person, Error as LibraryError, Skills};
use steward_skill_hub::audit::{Entry, Event};
use steward_skill_hub::error::{Refusal, StoreError};
use steward_skill_hub::hub::Actor;
use steward_skill_hub::lock::Lock;
use steward_skill_hub::publish::Publication;
use steward_skill_hub::quarantine::{Item, POLICY, State};
use steward_skill_hub::store::{Holder, HubStore, Install, Installed, Local, Placed, Sight, Withdraw};
use steward_skill_hub::withdrawal::Withdrawal;
use steward_skill_scanner::{File, Suppression, Tree};

use crate::sqlite::{Happened, HubFailure, Removed, Settled, SqliteSkillStore, Stored, Withdrawn};

/// The tables and the library.
#[derive(Debug, Clone)]
pub(crate) struct LibraryHubStore {
    store: SqliteSkillStore,
    skills: Arc<Skills>,
}

impl LibraryHubStore {
    pub(crate) const fn new(store: SqliteSkillStore, skills: Arc<Skills>) -> Self {
        Self { store, skills }
    }

    /// Tree hash of the files that a lock is for, as the library counts it.
    async fn base_of(&self, team: &str, lock: &Lock) -> Result<String, StoreError> {
        let manifest = self.store.hub_manifest(team, &lock.item).await?;
        Ok(tree_hash(&manifest.files))
    }
}

/// What stands beside the library's changes in one transaction.
enum Rows {
    Install(Box<Settled>),
    Remove(Removed),
    Withdraw(Box<Withdrawn>),
}

struct Together<'a> {
    store: &'a SqliteSkillStore,
    rows: Rows,
    /// Why the hub's own part was refused, which the library could not say.
    refused: Mutex<Option<StoreError>>,
}

#[async_trait]
impl Beside for Together<'_> {
    async fn commit(&self, changes: Vec<Change>) -> Result<(), CommitError> {
        let written = match &self.rows {
            Rows::Install(settled) => self.store.hub_install(changes, (**settled).clone()).await,
            Rows::Remove(removed) => self.store.hub_remove(changes, removed.clone()).await,
            Rows::Withdraw(withdrawn) => self.store.hub_withdraw(changes, (**withdrawn).clone()).await,
        };
        match written {
            Ok(()) => Ok(()),
            Err(HubFailure::Library(error)) => Err(error),
            Err(failure) => {
                let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
                *refused = Some(failure.into());
                Err(CommitError::Store(StoreFault::Internal {
                    operation: "write the hub's part",
                    source: "it was refused".into(),
                }))
            }
        }
    }
}

#[async_trait]
impl BesideCopies for Together<'_> {
    async fn copies(&self) -> Result<Vec<SkillRecord>, StoreFault> {
        match &self.rows {
            Rows::Withdraw(withdrawn) => self.store.hub_copies(withdrawn).await,
            Rows::Install(_) | Rows::Remove(_) => Ok(Vec::new()),
        }
    }
}

impl Together<'_> {
    /// The hub's own refusal before the library's account of it.
    fn told(self, error: &LibraryError) -> StoreError {
        let refused = self.refused.into_inner().unwrap_or_else(PoisonError::into_inner);
        refused.unwrap_or_else(|| library_error(error))
    }
}

/// An error of the library as the hub passes it on.
fn library_error(error: &LibraryError) -> StoreError {
    if let LibraryError::StaleRevision { .. } = error {
        return StoreError::conflict(error.to_string());
    }
    match error.kind() {
        ErrorKind::Internal | ErrorKind::Unavailable | ErrorKind::Timeout => StoreError::failed(error_chain(error)),
        kind => StoreError::Refused(Refusal {
            kind,
            reason: error.reason(),
            message: error.to_string(),
            metadata: error.metadata(),
            violations: error.violations().to_vec(),
        }),
    }
}

/// The person behind an act of the hub, as the library knows people; nobody behind what the policy does.
fn person(actor: Actor<'_>) -> Result<Person, StoreError> {
    let (team, user) = if actor.user == POLICY {
        (team_id(actor.team)?, None)
    } else {
        let parsed = parse_user(actor.user).map_err(|problem| StoreError::failed(problem.to_string()))?;
        (parsed.0, Some(parsed.1))
    };
    Ok(Person {
        team,
        user,
        role: actor.role,
        origin: Origin::Foreground,
        session: None,
        turn: None,
        job: None,
        is_agent: false,
        token_id: String::new(),
    })
}

fn team_id(team: &str) -> Result<TeamId, StoreError> {
    TeamId::parse(team).map_err(|problem| StoreError::failed(problem.to_string()))
}

/// The files as the library takes them; one path that it does not take refuses the whole.
pub(crate) fn files_of(tree: &Tree) -> Result<Files, StoreError> {
    let mut files = Files::new();
    for (path, file) in tree.iter() {
        let parsed = SkillPath::parse(path).map_err(|problem| {
            let problem = FieldViolations::one(path, problem.to_string());
            StoreError::Refused(Refusal {
                kind: ErrorKind::InvalidInput,
                reason: "SKILL_INVALID",
                message: problem.to_string(),
                metadata: Vec::new(),
                violations: problem.as_slice().to_vec(),
            })
        })?;
        files.insert(parsed, file.bytes.to_vec());
    }
    Ok(files)
}

fn happened(team: &str, at: Timestamp, events: Vec<Event>) -> Happened {
    Happened {
        team: team.to_owned(),
        at,
        events,
    }
}

/// In a line that stays with the revision.
fn source_line(lock: &Lock) -> String {
    let mut line = format!(
        "{}:{} at {}, {} from a {} origin",
        lock.source,
        lock.reference,
        lock.revision,
        lock.verdict,
        lock.trust.as_str()
    );
    if let Some(reason) = &lock.forced {
        line.push_str(", forced: ");
        line.push_str(reason);
    }
    line.chars().take(500).collect()
}

#[async_trait]
impl HubStore for LibraryHubStore {
    async fn put_item(
        &self,
        team: &str,
        item: &Item,
        before: Option<State>,
        at: Timestamp,
        events: Vec<Event>,
    ) -> Result<(), StoreError> {
        let stored = Stored {
            item: item.clone(),
            before,
            happened: happened(team, at, events),
        };
        Ok(self.store.hub_put_item(stored).await?)
    }

    async fn item(&self, team: &str, id: &str) -> Result<Option<Item>, StoreError> {
        Ok(self.store.hub_item(team, id).await?)
    }

    async fn items(&self, team: &str, after: Option<&str>, limit: usize) -> Result<Vec<Item>, StoreError> {
        Ok(self.store.hub_items(team, after, limit).await?)
    }

    async fn open_items(&self, team: &str) -> Result<usize, StoreError> {
        Ok(self.store.hub_open_items(team).await?)
    }

    async fn install(&self, install: Install<'_>, events: Vec<Event>) -> Result<Placed, StoreError> {
        let team = install.actor.team;
        let lock = &install.installed.lock;
        // Asked again in the transaction; here so that the library is not asked about what is no longer so.
        let there = self.store.hub_installed(team, &lock.name).await?;
        if there.as_ref().map(|installed| &installed.lock) != install.before {
            return Err(StoreError::conflict("another revision was installed meanwhile"));
        }
        let base_tree = match install.before {
            Some(before) => Some(self.base_of(team, before).await?),
            None => None,
        };
        let skill = HubSkill {
            name: lock.name.clone(),
            files: files_of(&install.item.tree)?,
            base_tree,
            source: source_line(lock),
            replace: install.replace,
            local: match install.local {
                Local::Keep => LocalChanges::Keep,
                Local::Merge => LocalChanges::Merge,
                Local::GiveUp => LocalChanges::GiveUp,
            },
        };
        let settled = Settled {
            item: install.item.clone(),
            installed: install.installed.clone(),
            before: install.before.cloned(),
            happened: happened(team, install.at, events),
        };
        let together = Together {
            store: &self.store,
            rows: Rows::Install(Box::new(settled)),
            refused: Mutex::default(),
        };
        let person = person(install.actor)?;
        match self.skills.install_from_hub(&person, &skill, &together).await {
            Ok(taken) => Ok(Placed {
                merged: taken.merged.iter().map(SkillPath::to_string).collect(),
                set_aside: taken.set_aside,
            }),
            Err(error) => Err(together.told(&error)),
        }
    }

    async fn remove(&self, actor: Actor<'_>, name: &str, at: Timestamp, event: Event) -> Result<(), StoreError> {
        let removed = Removed {
            name: name.to_owned(),
            happened: happened(actor.team, at, vec![event]),
        };
        let together = Together {
            store: &self.store,
            rows: Rows::Remove(removed),
            refused: Mutex::default(),
        };
        let person = person(actor)?;
        let done = self.skills.remove_from_hub(&person, name, &together).await;
        done.map_err(|error| together.told(&error))
    }

    async fn withdrawal(&self, team: &str, digest: &str) -> Result<Option<Withdrawal>, StoreError> {
        Ok(self.store.hub_withdrawal(team, digest).await?)
    }

    async fn withdrawals(&self, team: &str) -> Result<Vec<Withdrawal>, StoreError> {
        Ok(self.store.hub_withdrawals(team).await?)
    }

    async fn withdraw(&self, withdraw: Withdraw<'_>, events: Vec<Event>) -> Result<(), StoreError> {
        let withdrawn = Withdrawn {
            digest: withdraw.digest.to_owned(),
            before: withdraw.before.cloned(),
            after: withdraw.after.cloned(),
            skill: withdraw.skill.map(str::to_owned),
            happened: happened(withdraw.actor.team, withdraw.at, events),
        };
        let Some(sight) = withdraw.sight() else {
            return Ok(self.store.hub_withdraw(Vec::new(), withdrawn).await?);
        };
        let reason = withdraw
            .after
            .or(withdraw.before)
            .map_or("", |told| told.reason.as_str());
        let together = Together {
            store: &self.store,
            rows: Rows::Withdraw(Box::new(withdrawn)),
            refused: Mutex::default(),
        };
        let person = person(withdraw.actor)?;
        let done = match sight {
            Sight::Hide => {
                self.skills
                    .hide_revoked(&person, withdraw.skill, reason, &together)
                    .await
            }
            Sight::Show => {
                self.skills
                    .show_reinstated(&person, withdraw.skill, reason, &together)
                    .await
            }
        };
        done.map_err(|error| together.told(&error))
    }

    async fn publish(
        &self,
        team: &str,
        publication: &Publication,
        archive: Vec<u8>,
        at: Timestamp,
        event: Event,
    ) -> Result<(), StoreError> {
        let happened = happened(team, at, vec![event]);
        Ok(self.store.hub_publish(publication.clone(), archive, happened).await?)
    }

    async fn unpublish(&self, team: &str, name: &str, at: Timestamp, event: Event) -> Result<bool, StoreError> {
        let happened = happened(team, at, vec![event]);
        Ok(self.store.hub_unpublish(name.to_owned(), happened).await?)
    }

    async fn publications(&self, team: &str) -> Result<Vec<Publication>, StoreError> {
        Ok(self.store.hub_publications(team).await?)
    }

    async fn archive(&self, team: &str, name: &str, digest: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.store.hub_archive(team, name, digest).await?)
    }

    async fn installed(&self, team: &str, name: &str) -> Result<Option<Installed>, StoreError> {
        Ok(self.store.hub_installed(team, name).await?)
    }

    async fn all_installed(&self, team: &str) -> Result<Vec<Installed>, StoreError> {
        Ok(self.store.hub_all_installed(team).await?)
    }

    async fn library(&self, team: &str, name: &str) -> Result<Option<Tree>, StoreError> {
        let files = self.skills.hub_files(&team_id(team)?, name).await;
        let Some(files) = files.map_err(|error| library_error(&error))? else {
            return Ok(None);
        };
        // The library knows no modes; those of what was approved hold.
        let executables = match self.store.hub_installed(team, name).await? {
            Some(installed) => self.store.hub_manifest(team, &installed.lock.item).await?.executables,
            None => std::collections::BTreeSet::default(),
        };
        let mut tree = Tree::new();
        for (path, bytes) in files {
            let file = File {
                bytes: bytes.into(),
                executable: executables.contains(path.as_str()),
            };
            tree.insert(path.to_string(), file);
        }
        Ok(Some(tree))
    }

    async fn holder(&self, actor: Actor<'_>, name: &str) -> Result<Holder, StoreError> {
        if self.store.hub_installed(actor.team, name).await?.is_some() {
            return Ok(Holder::Hub);
        }
        let others = self.skills.namesakes(&person(actor)?, name).await;
        let others = others.map_err(|error| library_error(&error))?;
        if !others.is_empty() {
            return Ok(Holder::Other(others.join(", ")));
        }
        let in_library = self.skills.hub_files(&team_id(actor.team)?, name).await;
        Ok(match in_library.map_err(|error| library_error(&error))? {
            Some(_) => Holder::Other(format!("hub/{name}, for which there is no lock")),
            None => Holder::Free,
        })
    }

    async fn suppressions(&self, team: &str) -> Result<Vec<Suppression>, StoreError> {
        Ok(self.store.hub_accepted(team).await?)
    }

    async fn suppress(
        &self,
        team: &str,
        suppression: Suppression,
        at: Timestamp,
        event: Event,
    ) -> Result<(), StoreError> {
        let happened = happened(team, at, vec![event]);
        Ok(self.store.hub_accept(suppression, happened).await?)
    }

    async fn record(&self, team: &str, at: Timestamp, event: Event) -> Result<(), StoreError> {
        Ok(self.store.hub_record(happened(team, at, vec![event])).await?)
    }

    async fn audit(&self, team: &str, after: u64, limit: usize) -> Result<Vec<Entry>, StoreError> {
        Ok(self.store.hub_log(team, after, limit).await?)
    }
}
