//! GitHub, or a host that speaks its API. A skill is `owner/repository/folder`, optionally with `@ref`; the folder may be
//! given by its last name alone if only one has it.
//!
//! The revision is the last commit that touched the folder. It is fetched as one archive and held against the tree that
//! the API lists for it: every file, with its git hash, or nothing.

use std::collections::BTreeMap;

use serde_json::Value;
use sha1::{Digest, Sha1};
use steward_fetch::Request;
use steward_skill_scanner::Tree;

use super::Settings;
use super::wire::{Wire, address, checked, id, incomplete, list, matches, no_reference, not_understood, text, time};
use crate::archive::{Limits, Selection};
use crate::policy::{Trust, TrustList};
use crate::source::{Found, Pins, Resolved, Source, SourceError};

const NAME: &str = "github";

/// GitHub.
#[derive(Debug)]
pub struct GitHub {
    wire: Wire,
    api: String,
    host: String,
    repositories: Vec<String>,
    trust: TrustList,
}

/// A reference taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) owner: String,
    pub(crate) repository: String,
    pub(crate) folder: String,
    pub(crate) at: Option<String>,
}

impl Place {
    pub(crate) fn parse(reference: &str) -> Result<Self, SourceError> {
        let wrong = |problem| Err(no_reference(NAME, reference, problem));
        let (path, at) = match reference.rsplit_once('@') {
            Some((path, at)) => (path, Some(at.to_owned())),
            None => (reference, None),
        };
        let mut parts = path.trim_matches('/').splitn(3, '/');
        let (Some(owner), Some(repository)) = (parts.next(), parts.next()) else {
            return wrong("write owner/repository/folder");
        };
        let folder = parts.next().unwrap_or_default();
        let plain = |name: &str| {
            !name.is_empty()
                && !name.starts_with('.')
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        };
        if !plain(owner) || !plain(repository) || folder.split('/').any(|part| part == "..") {
            return wrong("owner and repository are letters, digits, `-`, `_` and `.`");
        }
        if at
            .as_deref()
            .is_some_and(|at| at.is_empty() || at.contains("..") || at.contains([' ', '?', '#']))
        {
            return wrong("what follows `@` is a branch, tag or commit");
        }
        Ok(Self {
            owner: owner.to_owned(),
            repository: repository.to_owned(),
            folder: folder.to_owned(),
            at,
        })
    }

    fn repository(&self) -> String {
        format!("{}/{}", self.owner, self.repository)
    }
}

/// One row of a git tree.
#[derive(Debug, Clone)]
struct Row {
    path: String,
    kind: String,
    mode: String,
    sha: String,
}

impl GitHub {
    pub(crate) fn new(wire: Wire, settings: &Settings, trust: TrustList) -> Self {
        Self {
            wire,
            api: settings.github_api.clone(),
            host: settings.github_host.clone(),
            repositories: settings.repositories.clone(),
            trust,
        }
    }

    /// How far the repository of a reference is trusted.
    pub(crate) fn trust_in(&self, reference: &str) -> Trust {
        match Place::parse(reference) {
            Ok(place) => self.trust.trust(&self.host, &place.repository()),
            Err(_) => Trust::Community,
        }
    }

    async fn get(&self, reference: &str, segments: &[&str], query: &[(&str, &str)]) -> Result<Value, SourceError> {
        self.wire
            .json(NAME, reference, address(NAME, &self.api, segments, query)?)
            .await
    }

    /// One file at a ref, as it is.
    pub(crate) async fn file(&self, place: &Place, path: &str) -> Result<Vec<u8>, SourceError> {
        let mut segments = vec!["repos", &place.owner, &place.repository, "contents"];
        segments.extend(path.split('/'));
        let query: Vec<(&str, &str)> = place.at.iter().map(|at| ("ref", at.as_str())).collect();
        let url = address(NAME, &self.api, &segments, &query)?;
        let answer = self
            .wire
            .ask(Request::get(url).accept("application/vnd.github.raw").limit(4 << 20))
            .await?;
        checked(NAME, path, &answer)?;
        Ok(answer.body.to_vec())
    }

    /// The rows of a git tree, and whether some were left out.
    async fn tree(&self, place: &Place, sha: &str, whole: bool) -> Result<(Vec<Row>, bool), SourceError> {
        let query: &[(&str, &str)] = if whole { &[("recursive", "1")] } else { &[] };
        let value = self
            .get(
                &place.repository(),
                &["repos", &place.owner, &place.repository, "git", "trees", sha],
                query,
            )
            .await?;
        let cut = value.get("truncated").and_then(Value::as_bool).unwrap_or(false);
        let rows = list(NAME, &value, "tree")?
            .iter()
            .map(|row| Row {
                path: row.get("path").and_then(Value::as_str).unwrap_or_default().to_owned(),
                kind: text(row, "type"),
                mode: text(row, "mode"),
                sha: text(row, "sha"),
            })
            .collect();
        Ok((rows, cut))
    }

    /// Folders that hold a `SKILL.md`.
    pub(crate) async fn skill_folders(&self, place: &Place, commit: &str) -> Result<Vec<String>, SourceError> {
        let (rows, cut) = self.tree(place, commit, true).await?;
        if cut {
            return Err(not_understood(
                NAME,
                "the repository is too large to be listed; name the folder in full",
            ));
        }
        Ok(rows
            .into_iter()
            .filter(|row| row.kind == "blob")
            .filter_map(|row| match row.path.rsplit_once('/') {
                Some((folder, "SKILL.md")) => Some(folder.to_owned()),
                None if row.path == "SKILL.md" => Some(String::new()),
                _ => None,
            })
            .collect())
    }

    /// The folder that a place means at a commit.
    async fn folder(&self, place: &Place, commit: &str) -> Result<String, SourceError> {
        let reference = || format!("{}/{}", place.repository(), place.folder);
        // The whole path needs no listing of the repository.
        if !place.folder.is_empty()
            && let Ok(rows) = self.folder_rows(place, commit, &place.folder).await
            && rows.iter().any(|row| row.path == "SKILL.md")
        {
            return Ok(place.folder.clone());
        }
        let folders = self.skill_folders(place, commit).await?;
        let suffix = format!("/{}", place.folder);
        let candidates: Vec<String> = folders
            .into_iter()
            .filter(|folder| place.folder.is_empty() || *folder == place.folder || folder.ends_with(&suffix))
            .collect();
        match candidates.as_slice() {
            [] => Err(SourceError::Gone { reference: reference() }),
            [only] => Ok(only.clone()),
            _ => Err(SourceError::Ambiguous {
                reference: reference(),
                candidates: candidates
                    .iter()
                    .map(|folder| format!("{}/{folder}", place.repository()))
                    .collect(),
            }),
        }
    }

    /// All rows below a folder, found part by part so that the size of the repository does not matter.
    async fn folder_rows(&self, place: &Place, commit: &str, folder: &str) -> Result<Vec<Row>, SourceError> {
        let mut sha = commit.to_owned();
        for part in folder.split('/').filter(|part| !part.is_empty()) {
            let (rows, _) = self.tree(place, &sha, false).await?;
            let found = rows.into_iter().find(|row| row.path == part && row.kind == "tree");
            sha = found
                .ok_or_else(|| SourceError::Gone {
                    reference: format!("{}/{folder}", place.repository()),
                })?
                .sha;
        }
        let (rows, cut) = self.tree(place, &sha, true).await?;
        if cut {
            return Err(not_understood(NAME, "the folder is too large to be listed"));
        }
        Ok(rows)
    }

    /// A skill at a fixed commit, checked against the listing.
    pub(crate) async fn fetch_at(&self, place: &Place, commit: &str, folder: &str) -> Result<Tree, SourceError> {
        let rows = self.folder_rows(place, commit, folder).await?;
        let mut listed = BTreeMap::new();
        for row in rows {
            match (row.kind.as_str(), row.mode.as_str()) {
                ("tree", _) => {}
                ("blob", "100644" | "100755") => {
                    listed.insert(row.path, row.sha);
                }
                ("blob", "120000") => return Err(incomplete(&row.path, "is a link")),
                _ => return Err(incomplete(&row.path, "is neither a file nor a folder")),
            }
        }
        let url = address(
            NAME,
            &self.api,
            &["repos", &place.owner, &place.repository, "tarball", commit],
            &[],
        )?;
        let bytes = self.wire.bytes(NAME, &place.repository(), url).await?;
        let selection = Selection {
            strip_top: true,
            within: Some(folder),
        };
        let tree = self.wire.unpack(&bytes, selection, &Limits::repository())?;
        for (path, sha) in &listed {
            match tree.get(path) {
                None => return Err(incomplete(path, "is missing from the archive")),
                Some(file) if git_hash(&file.bytes) != *sha => {
                    return Err(incomplete(path, "is not what the repository lists"));
                }
                Some(_) => {}
            }
        }
        if let Some((path, _)) = tree.iter().find(|(path, _)| !listed.contains_key(*path)) {
            return Err(incomplete(path, "is not listed by the repository"));
        }
        Ok(tree)
    }
}

/// How git names a file's content.
fn git_hash(bytes: &[u8]) -> String {
    let mut hasher = Sha1::new();
    hasher.update(format!("blob {}\0", bytes.len()));
    hasher.update(bytes);
    hex::encode(hasher.finalize())
}

#[async_trait::async_trait]
impl Source for GitHub {
    fn name(&self) -> &'static str {
        NAME
    }

    fn claims(&self, reference: &str) -> bool {
        !reference.contains("://") && reference.split('/').count() >= 3 && Place::parse(reference).is_ok()
    }

    async fn search(&self, query: &str, limit: usize) -> Result<Vec<Found>, SourceError> {
        let mut found = Vec::new();
        let mut failed = None;
        for repository in &self.repositories {
            let place = Place::parse(repository)?;
            let folders = match self.skill_folders(&place, "HEAD").await {
                Ok(folders) => folders,
                // One repository that fails does not hide the others.
                Err(error) => {
                    failed.get_or_insert(error);
                    continue;
                }
            };
            for folder in folders {
                let name = folder.rsplit('/').next().unwrap_or_default();
                if matches(query, &[&folder, repository]) && found.len() < limit {
                    found.push(Found {
                        source: NAME.to_owned(),
                        reference: format!("{repository}/{folder}"),
                        name: name.to_owned(),
                        description: String::new(),
                        trust: self.trust.trust(&self.host, repository),
                        installable: true,
                        installs: None,
                    });
                }
            }
        }
        match failed {
            Some(error) if found.is_empty() => Err(error),
            _ => Ok(found),
        }
    }

    async fn resolve(&self, reference: &str) -> Result<Resolved, SourceError> {
        let mut place = Place::parse(reference)?;
        let repository = self
            .get(reference, &["repos", &place.owner, &place.repository], &[])
            .await?;
        let full_name = text(&repository, "full_name");
        let mut warnings = Vec::new();
        if !full_name.is_empty() && !full_name.eq_ignore_ascii_case(&place.repository()) {
            // A renamed repository answers under its old name; trust is for the name that it has now.
            warnings.push(format!("{} is {full_name} now", place.repository()));
            let now = Place::parse(&full_name)?;
            (place.owner, place.repository) = (now.owner, now.repository);
        }
        let at = match &place.at {
            Some(at) => at.clone(),
            None => text(&repository, "default_branch"),
        };
        let base = ["repos", place.owner.as_str(), place.repository.as_str()];
        let head = self
            .get(reference, &[&base[..], &["commits", at.as_str()]].concat(), &[])
            .await?;
        let head = id(&head, "sha").ok_or_else(|| not_understood(NAME, "a commit has no sha"))?;
        let folder = self.folder(&place, &head).await?;
        let last = self
            .get(
                reference,
                &[&base[..], &["commits"]].concat(),
                &[("path", folder.as_str()), ("sha", head.as_str()), ("per_page", "1")],
            )
            .await?;
        let last = last
            .get(0)
            .ok_or_else(|| not_understood(NAME, "no commit touches the folder"))?;
        let revision = id(last, "sha").ok_or_else(|| not_understood(NAME, "a commit has no sha"))?;
        let name = if folder.is_empty() {
            &place.repository
        } else {
            folder.rsplit('/').next().unwrap_or(&folder)
        };
        let in_full = format!("{}/{folder}", place.repository());
        Ok(Resolved {
            source: NAME.to_owned(),
            name: name.to_owned(),
            pins: Pins {
                owner: repository.get("owner").and_then(|owner| id(owner, "id")),
                repository: id(&repository, "id"),
            },
            trust: self.trust.trust(&self.host, &place.repository()),
            published_at: last
                .pointer("/commit/committer/date")
                .and_then(Value::as_str)
                .and_then(time),
            warnings,
            locator: format!("{in_full}@{revision}"),
            reference: match &place.at {
                Some(at) => format!("{}@{at}", in_full.trim_end_matches('/')),
                None => in_full.trim_end_matches('/').to_owned(),
            },
            revision,
        })
    }

    async fn fetch(&self, resolved: &Resolved) -> Result<Tree, SourceError> {
        let place = Place::parse(&resolved.locator)?;
        let commit = place.at.clone().unwrap_or_default();
        let folder = place.folder.clone();
        self.fetch_at(&place, &commit, &folder).await
    }
}
