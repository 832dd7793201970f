//! Skills in folders outside, which are read and never written (`S-6`).
//!
//! A folder is looked at elsewhere, whole and at once; here a team's rows are made to say what the last look found. So use,
//! history and names are those of any other skill. What vanishes from the folder is set aside, what comes back is brought
//! back, and no gate is asked: it is the folder that changes, and nobody can change it from here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use steward_base::Origin;
use steward_base::hash::sha256_parts;
use steward_base::names::{SkillId, TeamId};

use crate::error::{Error, StoreFault};
use crate::gate::{Action, Provenance};
use crate::header;
use crate::name::{Category, Scope};
use crate::path::SkillPath;
use crate::record::{
    Archival, Authorship, Files, HeaderState, NewRevision, SkillRecord, State, Usage, manifest, tree_hash,
};
use crate::settings::Settings;
use crate::skills::Skills;
use crate::store::{Change, CommitError};

/// A skill as its folder has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalSkill {
    /// The folders above its own.
    pub category: Category,
    /// Its own folder's name, whatever its front matter says.
    pub name: SkillId,
    /// Its files.
    pub files: Files,
}

/// A folder that is meant to be a skill and cannot be one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalProblem {
    /// Where, below the root.
    pub folder: String,
    /// What is wrong.
    pub problem: String,
}

/// What the last look found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExternalFolder {
    /// Differs whenever anything else here does.
    pub generation: u64,
    /// The skills.
    pub skills: Vec<ExternalSkill>,
    /// What could not be one; hides no other.
    pub problems: Vec<ExternalProblem>,
}

impl ExternalFolder {
    /// What stands in a root, as paths below it with their bytes, sorted into skills: a folder with `SKILL.md` is one, what
    /// is above is a category, and nothing below is looked at for others (D-55). Pure.
    pub fn sort(files: &BTreeMap<String, Result<Vec<u8>, String>>, settings: &Settings) -> Self {
        let mut roots: Vec<String> = Vec::new();
        // Sorted by path, an outer folder does not always come first; by length it does.
        let mut heads = files
            .keys()
            .filter_map(|path| path.strip_suffix("/SKILL.md"))
            .collect::<Vec<_>>();
        heads.sort_by_key(|folder| (folder.matches('/').count(), (*folder).to_owned()));
        for folder in heads {
            if !roots.iter().any(|root| is_below(folder, root)) {
                roots.push(folder.to_owned());
            }
        }
        let mut sorted = Self::default();
        if files.contains_key(crate::path::SKILL_MD) {
            sorted.problems.push(ExternalProblem {
                folder: String::new(),
                problem: "a skill stands at the top; name the folder above it".to_owned(),
            });
        }
        for root in &roots {
            let inner = files
                .iter()
                .filter_map(|(path, bytes)| Some((path.strip_prefix(root)?.strip_prefix('/')?, bytes)));
            match skill(root, inner, settings) {
                Ok(skill) => sorted.skills.push(skill),
                Err(problem) => sorted.problems.push(ExternalProblem {
                    folder: root.clone(),
                    problem,
                }),
            }
        }
        sorted
    }
}

fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

fn skill<'a>(
    root: &str,
    inner: impl Iterator<Item = (&'a str, &'a Result<Vec<u8>, String>)>,
    settings: &Settings,
) -> Result<ExternalSkill, String> {
    let (category, name) = root.rsplit_once('/').unwrap_or(("", root));
    let name = SkillId::parse(name).map_err(|problem| format!("its folder's name {problem}"))?;
    let category = Category::parse(category).map_err(|problem| format!("the folders above it {problem}"))?;
    let mut files = Files::new();
    for (path, bytes) in inner {
        let path = SkillPath::parse(path).map_err(|problem| format!("its file {path:?} {problem}"))?;
        let bytes = bytes
            .as_ref()
            .map_err(|problem| format!("{path} cannot be read: {problem}"))?;
        if bytes.len() > settings.file_bytes {
            return Err(format!(
                "{path} has {} bytes; at most {} are taken",
                bytes.len(),
                settings.file_bytes
            ));
        }
        files.insert(path, bytes.clone());
    }
    let size = files.values().map(Vec::len).sum::<usize>();
    if files.len() > settings.files || size > settings.skill_bytes {
        return Err(format!(
            "it has {} files with {size} bytes; at most {} with {} are taken",
            files.len(),
            settings.files,
            settings.skill_bytes
        ));
    }
    Ok(ExternalSkill { category, name, files })
}

/// Who looks at the folders.
pub trait ExternalSource: std::fmt::Debug + Send + Sync {
    /// What the last look found for this team; none before the first look.
    fn current(&self, team: &TeamId) -> Option<Arc<ExternalFolder>>;
}

/// Up to which look each team's rows are.
#[derive(Debug, Default)]
pub(crate) struct Synced(Mutex<BTreeMap<TeamId, u64>>);

impl Synced {
    fn is(&self, team: &TeamId, generation: u64) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(team) == Some(&generation)
    }

    fn set(&self, team: &TeamId, generation: u64) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(team.clone(), generation);
    }
}

impl Skills {
    /// What could not be a skill, for listings.
    pub(crate) fn external_problems(&self, team: &TeamId) -> Vec<ExternalProblem> {
        let current = self.external.as_ref().and_then(|source| source.current(team));
        current.map(|folder| folder.problems.clone()).unwrap_or_default()
    }

    /// Makes the team's rows say what the last look found.
    pub(crate) async fn sync_external(&self, team: &TeamId) -> Result<(), Error> {
        let Some(folder) = self.external.as_ref().and_then(|source| source.current(team)) else {
            return Ok(());
        };
        if self.synced.is(team, folder.generation) {
            return Ok(());
        }
        let mut rows = BTreeMap::new();
        for archived in [false, true] {
            for found in self.store.list(team, &[Scope::External], archived).await? {
                match found {
                    Ok(record) => rows.insert(record.uid.clone(), Some(record)),
                    // For an operator; writing over it would hide that.
                    Err(broken) => rows.insert(broken.uid, None),
                };
            }
        }
        let present = folder.skills.iter().map(uid).collect::<BTreeSet<_>>();
        for record in rows
            .values()
            .flatten()
            .filter(|record| record.is_active() && !present.contains(&record.uid))
        {
            let change = self.vanished(record).await?;
            self.mirror(change).await?;
        }
        for skill in &folder.skills {
            let change = match rows.get(&uid(skill)) {
                None => Some(self.appeared(team, skill)),
                Some(Some(record)) => self.as_it_is(record, skill),
                Some(None) => None,
            };
            if let Some(change) = change {
                self.mirror(change).await?;
            }
        }
        self.synced.set(team, folder.generation);
        Ok(())
    }

    /// Another process or call that was quicker wrote the same; when the store is full, what is there can be read all the
    /// same. What is revoked is not mirrored, and the others are.
    async fn mirror(&self, change: Change) -> Result<(), Error> {
        match self.store.commit(change).await {
            Err(CommitError::Store(StoreFault::Full)) => Ok(()),
            Err(CommitError::Store(fault)) => Err(fault.into()),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn appeared(&self, team: &TeamId, skill: &ExternalSkill) -> Change {
        let (now, uid) = (self.clock.now(), uid(skill));
        let new = NewRevision {
            parent: None,
            action: "create",
            files: &skill.files,
            by: by(),
            restored_from: None,
            created: now,
        };
        let revision = new.seal(&uid);
        let record = SkillRecord {
            team: team.clone(),
            uid,
            scope: Scope::External,
            name: skill.name.clone(),
            category: skill.category.clone(),
            provenance: Provenance::External,
            author: None,
            pinned: false,
            protected: false,
            state: State::Active,
            version: 1,
            revision: revision.id.clone(),
            number: revision.number,
            tree: revision.tree.clone(),
            header: header_of(&skill.files),
            usage: Usage::default(),
            created: now,
            updated: now,
        };
        Change::of(record, None, Some((revision, skill.files.clone())))
    }

    /// The change that gives a row the folder's files, if it has others or is set aside.
    fn as_it_is(&self, record: &SkillRecord, skill: &ExternalSkill) -> Option<Change> {
        let is_same = record.tree == tree_hash(&manifest(&skill.files));
        if is_same && record.is_active() {
            return None;
        }
        let action = if record.is_active() {
            Action::Edit
        } else {
            Action::Restore
        };
        let new = NewRevision {
            parent: Some(record),
            action: action.as_str(),
            files: &skill.files,
            by: by(),
            restored_from: None,
            created: self.clock.now(),
        };
        let revision = new.seal(&record.uid);
        let next = SkillRecord {
            state: State::Active,
            ..record.after(&revision, &skill.files)
        };
        Some(Change::of(
            next,
            Some(record.version),
            Some((revision, skill.files.clone())),
        ))
    }

    async fn vanished(&self, record: &SkillRecord) -> Result<Change, Error> {
        let (_, files) = self.load(record).await?;
        let new = NewRevision {
            parent: Some(record),
            action: Action::Archive.as_str(),
            files: &files,
            by: by(),
            restored_from: None,
            created: self.clock.now(),
        };
        let revision = new.seal(&record.uid);
        let archival = Archival {
            at: revision.created,
            origin: Origin::Import,
            deleted: true,
            absorbed_into: String::new(),
        };
        let next = SkillRecord {
            state: State::Archived(archival),
            ..record.after(&revision, &files)
        };
        Ok(Change::of(next, Some(record.version), Some((revision, files))))
    }
}

/// The same in every process and after every restart.
fn uid(skill: &ExternalSkill) -> String {
    let mut uid = sha256_parts([
        b"external".as_slice(),
        skill.category.as_str().as_bytes(),
        skill.name.as_str().as_bytes(),
    ]);
    uid.truncate(32);
    uid
}

fn header_of(files: &Files) -> HeaderState {
    let bytes = files.get(&SkillPath::skill_md()).map(Vec::as_slice).unwrap_or_default();
    match header::parse_bytes(bytes) {
        Ok(header) => HeaderState::Read(Box::new(header)),
        Err(error) => HeaderState::Broken(error.to_string()),
    }
}

fn by() -> Authorship {
    Authorship {
        user: None,
        origin: Origin::Import,
        session: None,
        turn: None,
        job: None,
        reason: String::new(),
        evidence: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
