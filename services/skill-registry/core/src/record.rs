//! What the registry knows of a skill: its record, its immutable revisions, its files and its usage.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use steward_base::hash::{sha256_hex, sha256_parts};
use steward_base::names::{SkillId, TeamId, UserId};
use steward_base::{Integrity, JobRef, Origin, Timestamp};

use crate::gate::{GateState, Provenance};
use crate::header::Header;
use crate::name::{self, Category, Scope};
use crate::path::SkillPath;

/// The files of one revision, by path. Paths in one skill never collide.
pub type Files = BTreeMap<SkillPath, Vec<u8>>;

/// Where a skill is in its life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Listed and loadable.
    Active,
    /// Set aside: in no listing, restorable (`S-16`).
    Archived(Archival),
}

/// How a skill came to be set aside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Archival {
    /// When.
    pub at: Timestamp,
    /// By which kind of activity.
    pub origin: Origin,
    /// Whether a deletion was asked for, and not an archiving.
    pub deleted: bool,
    /// The skill that now holds its content, as declared; empty for a plain removal.
    pub absorbed_into: String,
}

impl Archival {
    /// Whether the hub took it out of sight because its tree is revoked: a removal by the hub is a deletion, and nobody
    /// else writes as the hub.
    pub fn is_revocation(&self) -> bool {
        self.origin == Origin::Hub && !self.deleted
    }
}

/// The header as last read, or why it could not be read. A skill with an unreadable header is shown as broken and hides
/// nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeaderState {
    /// It was read.
    Read(Box<Header>),
    /// It was not; what is wrong with it.
    Broken(String),
}

/// How often and when a skill was looked at and changed (`S-9`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Loads in the foreground, by schedules and delegates.
    pub views: u64,
    /// Uses; at present every such load is one.
    pub uses: u64,
    /// Looks by reviews and curations, which are no use.
    pub review_views: u64,
    /// Changes after creation.
    pub patches: u64,
    /// Latest use.
    pub last_used: Option<Timestamp>,
    /// Latest change.
    pub last_patched: Option<Timestamp>,
}

/// A skill as its row says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillRecord {
    /// The tenant.
    pub team: TeamId,
    /// Identity for good: an archived skill and a later one of the same name differ in it.
    pub uid: String,
    /// Where it lives.
    pub scope: Scope,
    /// Unique among the skills in use of its scope.
    pub name: SkillId,
    /// Its shelf.
    pub category: Category,
    /// Who made it.
    pub provenance: Provenance,
    /// The person who made it, or for whom it was made.
    pub author: Option<UserId>,
    /// Protected by a person.
    pub pinned: bool,
    /// Whether it belongs to Steward's own workings.
    pub protected: bool,
    /// In use or set aside.
    pub state: State,
    /// +1 with every change of this record that is no usage; a change names the version that it saw.
    pub version: u64,
    /// Id of the newest revision, 64 hexadecimal characters.
    pub revision: String,
    /// Its number, from 1.
    pub number: u64,
    /// Its tree hash; equal trees have equal files.
    pub tree: String,
    /// What the newest `SKILL.md` says of itself.
    pub header: HeaderState,
    /// Counters. Stores keep these apart from `version`.
    pub usage: Usage,
    /// When it was made.
    pub created: Timestamp,
    /// When it last changed.
    pub updated: Timestamp,
}

impl SkillRecord {
    /// `scope/category/name`.
    pub fn full_name(&self) -> String {
        name::full_name(&self.scope, &self.category, &self.name)
    }

    /// AIP resource name. A folder outside may hold a name twice, so that its skills are always named exactly.
    pub fn resource_name(&self) -> String {
        if self.scope == Scope::External {
            let id = name::archived_id(&self.name, &self.uid);
            return name::resource_name(&self.team, &self.scope, &id);
        }
        name::resource_name(&self.team, &self.scope, self.name.as_str())
    }

    /// What the write gates look at, as far as the record itself says: what schedules name and what the installation
    /// lets curations prune is known elsewhere.
    pub const fn gate_state(&self) -> GateState {
        GateState {
            provenance: Some(self.provenance),
            pinned: self.pinned,
            protected: self.protected,
            referenced: false,
            prunable: false,
        }
    }

    /// Whether it is in use.
    pub const fn is_active(&self) -> bool {
        matches!(self.state, State::Active)
    }

    /// The header, if it could be read.
    pub const fn header(&self) -> Option<&Header> {
        match &self.header {
            HeaderState::Read(header) => Some(header),
            HeaderState::Broken(_) => None,
        }
    }

    /// The description, empty if it could not be read.
    pub fn description(&self) -> &str {
        self.header().map_or("", |header| header.description.as_str())
    }
}

/// A row that a store could not make sense of. It stands beside the good ones and hides none of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenRecord {
    /// As far as it is known.
    pub skill: String,
    /// Identity, for an operator.
    pub uid: String,
    /// What is wrong.
    pub problem: String,
}

/// What a store finds under a name.
pub type Found = Result<SkillRecord, BrokenRecord>;

/// What supports a change: spans of a session (`L-6`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Resource name of the session.
    pub session: String,
    /// Cited span ids, as the review numbered them.
    pub spans: Vec<String>,
    /// Grade: `stated`, `checked`, `seen_once`, or empty.
    pub basis: String,
    /// Lowest integrity among the cited spans, if it is known.
    pub integrity: Option<Integrity>,
}

/// Who changed a skill, why, and on what grounds. Part of every revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authorship {
    /// The person, or on whose behalf.
    pub user: Option<UserId>,
    /// From the verified credential.
    pub origin: Origin,
    /// The session that the credential is bound to.
    pub session: Option<String>,
    /// The turn that the credential is bound to.
    pub turn: Option<String>,
    /// The job that the credential is bound to.
    pub job: Option<JobRef>,
    /// In the writer's words; may be empty.
    pub reason: String,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
}

/// A file of a revision, without its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Where in the skill.
    pub path: SkillPath,
    /// SHA-256 of its bytes, 64 hexadecimal characters.
    pub sha256: String,
    /// Bytes.
    pub size: u64,
}

/// An immutable state of a skill's files (`S-13`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revision {
    /// Hash over its tree, its parent and how it came to be: 64 hexadecimal characters.
    pub id: String,
    /// The revision before it; none for the first.
    pub parent: Option<String>,
    /// From 1, without gaps.
    pub number: u64,
    /// Tree hash; equal trees have equal files.
    pub tree: String,
    /// What made it: `create`, or an action's name.
    pub action: String,
    /// Its files, by path.
    pub files: Vec<FileEntry>,
    /// Who and why.
    pub by: Authorship,
    /// For a restored one: the revision whose files it has.
    pub restored_from: Option<String>,
    /// When.
    pub created: Timestamp,
}

/// A revision in the making: everything but what follows from it.
#[derive(Debug, Clone)]
pub struct NewRevision<'a> {
    /// The record before it; none for the first.
    pub parent: Option<&'a SkillRecord>,
    /// What makes it.
    pub action: &'a str,
    /// Its files.
    pub files: &'a Files,
    /// Who and why.
    pub by: Authorship,
    /// See [`Revision::restored_from`].
    pub restored_from: Option<String>,
    /// When.
    pub created: Timestamp,
}

impl NewRevision<'_> {
    /// Hashes it. Two revisions of one skill never share an id, since each names its parent.
    pub fn seal(self, uid: &str) -> Revision {
        let files = manifest(self.files);
        let tree = tree_hash(&files);
        let number = self.parent.map_or(0, |parent| parent.number) + 1;
        let parent = self.parent.map(|parent| parent.revision.clone());
        let created = self.created.as_micros().to_be_bytes();
        let id = sha256_parts([
            b"skill-revision/1".as_slice(),
            uid.as_bytes(),
            parent.as_deref().unwrap_or("").as_bytes(),
            number.to_be_bytes().as_slice(),
            tree.as_bytes(),
            self.action.as_bytes(),
            self.by.origin.as_str().as_bytes(),
            created.as_slice(),
        ]);
        Revision {
            id,
            parent,
            number,
            tree,
            action: self.action.to_owned(),
            files,
            by: self.by,
            restored_from: self.restored_from,
            created: self.created,
        }
    }
}

/// The manifest of some files, in path order.
pub fn manifest(files: &Files) -> Vec<FileEntry> {
    files
        .iter()
        .map(|(path, bytes)| FileEntry {
            path: path.clone(),
            sha256: sha256_hex(bytes),
            size: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        })
        .collect()
}

/// The hash of a manifest: length-prefixed, so that no two different ones collide by moving a boundary.
pub fn tree_hash(entries: &[FileEntry]) -> String {
    let sizes = entries.iter().map(|entry| entry.size.to_be_bytes()).collect::<Vec<_>>();
    let parts = entries
        .iter()
        .zip(&sizes)
        .flat_map(|(entry, size)| [entry.path.as_str().as_bytes(), entry.sha256.as_bytes(), size.as_slice()]);
    sha256_parts(std::iter::once(b"skill-tree/1".as_slice()).chain(parts))
}

/// Whether `files` are what `entries` say; the first path that is not.
pub fn verify(files: &Files, entries: &[FileEntry]) -> Result<(), String> {
    for entry in entries {
        match files.get(&entry.path) {
            Some(bytes) if sha256_hex(bytes) == entry.sha256 => {}
            _ => return Err(entry.path.to_string()),
        }
    }
    if files.len() == entries.len() {
        Ok(())
    } else {
        Err("a file that no manifest names".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(list: &[(&str, &str)]) -> Files {
        list.iter()
            .map(|(path, text)| (SkillPath::parse(path).unwrap(), text.as_bytes().to_vec()))
            .collect()
    }

    #[test]
    fn a_tree_hash_depends_on_paths_bytes_and_boundaries_only() {
        let hash = |list: &[(&str, &str)]| tree_hash(&manifest(&files(list)));
        let one = hash(&[("SKILL.md", "a"), ("references/x", "b")]);
        assert_eq!(one, hash(&[("references/x", "b"), ("SKILL.md", "a")]));
        assert_ne!(one, hash(&[("SKILL.md", "a"), ("references/y", "b")]));
        assert_ne!(one, hash(&[("SKILL.md", "ab"), ("references/x", "")]));
        assert_ne!(one, hash(&[("SKILL.md", "a")]));
        assert_eq!(one.len(), 64);
    }

    #[test]
    fn changed_bytes_are_noticed() {
        let good = files(&[("SKILL.md", "a"), ("references/x", "b")]);
        let entries = manifest(&good);
        assert_eq!(verify(&good, &entries), Ok(()));
        let mut changed = good;
        changed.insert(SkillPath::parse("references/x").unwrap(), b"c".to_vec());
        assert_eq!(verify(&changed, &entries), Err("references/x".to_owned()));
        changed.remove(&SkillPath::parse("references/x").unwrap());
        assert!(verify(&changed, &entries).is_err());
    }
}
