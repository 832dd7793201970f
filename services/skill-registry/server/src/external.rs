//! Looks at the folders outside, again and again, whole each time.
//!
//! Content decides and no time stamp does: a file that was changed and given its old time is seen. No link is followed, so
//! that nothing outside the folder is ever read. A folder that cannot be read at the moment keeps what it had.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use steward_base::names::TeamId;
use steward_runtime::reconcile::Report;
use steward_runtime::{BoxError, Reconciler};
use steward_skill_core::Settings;
use steward_skill_core::external::{ExternalFolder, ExternalProblem, ExternalSource};

use crate::config::{Config, External};

/// Folders that are never looked into.
const SKIPPED: [&str; 2] = [".git", "node_modules"];
const MAX_DEPTH: usize = 12;
const MAX_FOLDERS: usize = 5_000;
const MAX_BYTES: u64 = 512 * 1024 * 1024;

/// Content of a root: paths with their bytes, or why a file cannot be read.
type Content = BTreeMap<String, Result<Vec<u8>, String>>;

/// The folders, with what the last look found. Clones are the same ones.
#[derive(Debug, Clone)]
pub(crate) struct Folders(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    roots: Vec<External>,
    settings: Settings,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// By root; the last one that could be read.
    sorted: BTreeMap<PathBuf, ExternalFolder>,
    /// For teams that a root names, and for all others.
    of_team: BTreeMap<TeamId, Arc<ExternalFolder>>,
    of_others: Option<Arc<ExternalFolder>>,
    generation: u64,
}

impl Folders {
    pub(crate) fn new(config: &Config) -> Self {
        Self(Arc::new(Inner {
            roots: config.external.clone(),
            settings: config.settings(),
            seen: Mutex::default(),
        }))
    }

    /// Whether there is anything to look at.
    pub(crate) fn is_needed(&self) -> bool {
        !self.0.roots.is_empty()
    }

    /// Looks at every folder. Returns how many skills there are.
    pub(crate) async fn look(&self) -> u64 {
        let inner = Arc::clone(&self.0);
        if inner.roots.is_empty() {
            return 0;
        }
        let looked = tokio::task::spawn_blocking(move || inner.look()).await;
        looked.unwrap_or_else(|error| {
            tracing::warn!(%error, "a look at the folders outside did not end");
            0
        })
    }
}

impl Reconciler for Folders {
    fn name(&self) -> &'static str {
        "skills/external-folders"
    }

    async fn tick(&self) -> Result<Report, BoxError> {
        let items = self.look().await;
        Ok(Report { items, more: false })
    }
}

impl ExternalSource for Folders {
    fn current(&self, team: &TeamId) -> Option<Arc<ExternalFolder>> {
        let seen = self.0.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.of_team.get(team).or(seen.of_others.as_ref()).cloned()
    }
}

impl Inner {
    fn look(&self) -> u64 {
        let mut found = BTreeMap::new();
        for root in &self.roots {
            match read(&root.path, self.settings.file_bytes) {
                Ok(content) => found.insert(root.path.clone(), ExternalFolder::sort(&content, &self.settings)),
                Err(error) => {
                    tracing::warn!(folder = %root.path.display(), %error, "a folder outside cannot be read");
                    let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                    let last = seen.sorted.remove(&root.path).unwrap_or_default();
                    found.insert(root.path.clone(), unreadable(last, &error))
                }
            };
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.sorted != found || seen.generation == 0 {
            seen.generation += 1;
            let named = self.roots.iter().flat_map(|root| &root.teams);
            let named = named
                .filter_map(|team| TeamId::parse(team.as_str()).ok())
                .collect::<BTreeSet<_>>();
            seen.of_others = Some(Arc::new(self.joined(&found, None, seen.generation)));
            let generation = seen.generation;
            seen.of_team = named
                .into_iter()
                .map(|team| (team.clone(), Arc::new(self.joined(&found, Some(&team), generation))))
                .collect();
            seen.sorted = found;
        }
        let skills = seen.sorted.values().map(|folder| folder.skills.len()).sum::<usize>();
        u64::try_from(skills).unwrap_or(u64::MAX)
    }

    /// What a team sees: all roots that are for it, in their order; a skill that stands in two is the first one's.
    fn joined(
        &self,
        found: &BTreeMap<PathBuf, ExternalFolder>,
        team: Option<&TeamId>,
        generation: u64,
    ) -> ExternalFolder {
        let mut joined = ExternalFolder {
            generation,
            ..ExternalFolder::default()
        };
        let mut taken = BTreeSet::new();
        for root in &self.roots {
            let is_for =
                root.teams.is_empty() || team.is_some_and(|team| root.teams.iter().any(|id| id == team.as_str()));
            let Some(folder) = found.get(&root.path).filter(|_| is_for) else {
                continue;
            };
            joined.problems.extend(folder.problems.iter().cloned());
            for skill in &folder.skills {
                let place = steward_skill_core::name::folder(&skill.category, &skill.name);
                if taken.insert(place.clone()) {
                    joined.skills.push(skill.clone());
                } else {
                    joined.problems.push(ExternalProblem {
                        folder: place,
                        problem: "stands in several folders; the first one's is taken".to_owned(),
                    });
                }
            }
        }
        joined
    }
}

fn unreadable(last: ExternalFolder, error: &std::io::Error) -> ExternalFolder {
    let problem = ExternalProblem {
        folder: String::new(),
        problem: format!("the folder cannot be read at the moment ({})", error.kind()),
    };
    let mut problems = last.problems;
    problems.retain(|known| known.problem != problem.problem);
    problems.push(problem);
    ExternalFolder { problems, ..last }
}

/// Every file of every skill below `root`.
fn read(root: &Path, file_bytes: usize) -> std::io::Result<Content> {
    let mut walk = Walk {
        content: Content::new(),
        file_bytes: u64::try_from(file_bytes).unwrap_or(u64::MAX),
        folders: 0,
        bytes: 0,
    };
    walk.folder(root, "", 0, false)?;
    Ok(walk.content)
}

struct Walk {
    content: Content,
    file_bytes: u64,
    folders: usize,
    bytes: u64,
}

impl Walk {
    /// Reads a folder of a skill, or looks for skills below a category.
    fn folder(&mut self, folder: &Path, path: &str, depth: usize, in_skill: bool) -> std::io::Result<()> {
        self.folders += 1;
        if depth > MAX_DEPTH || self.folders > MAX_FOLDERS {
            self.left_out(
                path,
                in_skill,
                "it lies too deep, or there are too many folders before it",
            );
            return Ok(());
        }
        let mut entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        let in_skill = in_skill || entries.iter().any(|entry| entry.file_name() == "SKILL.md");
        for entry in entries {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let below = if path.is_empty() {
                name.to_string()
            } else {
                format!("{path}/{name}")
            };
            let kind = entry.file_type()?;
            if kind.is_dir() {
                if !SKIPPED.contains(&name.as_ref()) {
                    // One folder that cannot be read is no reason to read none, and none to say nothing (D-16).
                    if let Err(error) = self.folder(&entry.path(), &below, depth + 1, in_skill) {
                        self.left_out(&below, in_skill, &error.kind().to_string());
                    }
                }
            } else if kind.is_symlink() && !in_skill {
                // Whether it leads to a folder is asked; nothing in there is opened.
                if fs::metadata(entry.path()).is_ok_and(|target| target.is_dir()) {
                    self.left_out(&below, false, "it is a link, and none is followed");
                }
            } else if in_skill {
                let bytes = if kind.is_file() {
                    self.file(&entry.path())
                } else {
                    Err("it is a link or a device, and neither is followed".to_owned())
                };
                self.content.insert(below, bytes);
            }
        }
        Ok(())
    }

    /// Keeps why something was not read: in a skill it is one of its files, else it would have been a skill or a shelf.
    fn left_out(&mut self, path: &str, in_skill: bool, why: &str) {
        let path = if in_skill {
            path.to_owned()
        } else {
            format!("{path}/SKILL.md")
        };
        self.content.insert(path, Err(why.to_owned()));
    }

    fn file(&mut self, file: &Path) -> Result<Vec<u8>, String> {
        let size = fs::symlink_metadata(file)
            .map_err(|error| error.kind().to_string())?
            .len();
        self.bytes = self.bytes.saturating_add(size);
        if size > self.file_bytes || self.bytes > MAX_BYTES {
            return Err(format!("it has {size} bytes, which is too much"));
        }
        fs::read(file).map_err(|error| error.kind().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steward_testkit::TempDir;

    fn write(root: &Path, path: &str, text: &str) {
        let file = root.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    fn folders(roots: Vec<External>) -> Folders {
        Folders::new(&Config {
            external: roots,
            ..Config::default()
        })
    }

    fn root(path: &Path, teams: &[&str]) -> External {
        External {
            path: path.to_owned(),
            teams: teams.iter().map(|&team| team.to_owned()).collect(),
        }
    }

    fn names(folders: &Folders, team: &str) -> Vec<String> {
        let current = folders.current(&TeamId::parse(team).unwrap()).unwrap();
        current.skills.iter().map(|skill| skill.name.to_string()).collect()
    }

    #[tokio::test]
    async fn a_look_follows_content_and_no_link() {
        let folder = TempDir::new("external");
        write(
            folder.path(),
            "ops/one/SKILL.md",
            "---\nname: one\ndescription: d\n---\nb",
        );
        write(folder.path(), "ops/one/references/a.md", "a");
        write(folder.path(), "ops/README.md", "no skill");
        write(folder.path(), ".git/x/SKILL.md", "no");
        write(
            folder.path(),
            "linked/SKILL.md",
            "---\nname: linked\ndescription: d\n---\nb",
        );
        std::os::unix::fs::symlink("/etc/hostname", folder.path().join("linked/stolen")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("ops"), folder.path().join("again")).unwrap();
        let folders = folders(vec![root(folder.path(), &[])]);
        assert_eq!(folders.look().await, 1);
        let team = TeamId::parse("red").unwrap();
        let first = folders.current(&team).unwrap();
        assert_eq!((first.skills[0].files.len(), first.problems.len()), (2, 2), "{first:?}");
        let told = first.problems.iter().map(|problem| problem.folder.as_str());
        assert_eq!(told.collect::<Vec<_>>(), ["again", "linked"]);
        assert!(
            first.problems.iter().all(|problem| problem.problem.contains("link")),
            "{first:?}"
        );
        folders.look().await;
        assert_eq!(
            folders.current(&team).unwrap().generation,
            first.generation,
            "nothing changed"
        );
        // Same size and same time stamp.
        let file = folder.path().join("ops/one/references/a.md");
        let stamp = fs::metadata(&file).unwrap().modified().unwrap();
        write(folder.path(), "ops/one/references/a.md", "b");
        fs::File::options()
            .write(true)
            .open(&file)
            .unwrap()
            .set_modified(stamp)
            .unwrap();
        folders.look().await;
        assert_eq!(folders.current(&team).unwrap().generation, first.generation + 1);
    }

    /// D-14: a folder that is a link is no skill, neither is a skill in which a link leads out; both are told, and what the
    /// links lead to is not opened.
    #[tokio::test]
    async fn a_skill_behind_a_link_is_told_and_never_read() {
        let (folder, outside) = (TempDir::new("external"), TempDir::new("outside"));
        let text = "---\nname: x\ndescription: d\n---\nb";
        write(outside.path(), "secret/SKILL.md", text);
        write(outside.path(), "notes/a.md", "outside");
        write(folder.path(), "plain/SKILL.md", text);
        write(folder.path(), "ops/holed/SKILL.md", text);
        fs::create_dir_all(folder.path().join("ops/holed/references")).unwrap();
        let link = |from: &str, to: &str| std::os::unix::fs::symlink(outside.path().join(from), folder.path().join(to));
        link("secret", "ops/linked").unwrap();
        link("notes", "ops/holed/references/link").unwrap();
        let folders = folders(vec![root(folder.path(), &[])]);
        assert_eq!(folders.look().await, 1);
        assert_eq!(names(&folders, "red"), ["plain"]);
        let current = folders.current(&TeamId::parse("red").unwrap()).unwrap();
        let told = current.problems.iter().map(|problem| problem.folder.as_str());
        assert_eq!(told.collect::<Vec<_>>(), ["ops/holed", "ops/linked"], "{current:?}");
        assert!(
            !format!("{current:?}").contains("outside\""),
            "nothing behind a link was read"
        );
        assert!(outside.path().join("secret/SKILL.md").exists());
    }

    #[tokio::test]
    async fn each_team_sees_its_own_folders_and_a_lost_one_keeps_what_it_had() {
        let (all, red) = (TempDir::new("external-all"), TempDir::new("external-red"));
        let text = "---\nname: x\ndescription: d\n---\nb";
        write(all.path(), "one/SKILL.md", text);
        write(red.path(), "one/SKILL.md", text);
        write(red.path(), "two/SKILL.md", text);
        let folders = folders(vec![root(all.path(), &[]), root(red.path(), &["red"])]);
        folders.look().await;
        assert_eq!(names(&folders, "red"), ["one", "two"]);
        assert_eq!(names(&folders, "blue"), ["one"]);
        fs::remove_dir_all(red.path()).unwrap();
        folders.look().await;
        assert_eq!(names(&folders, "red"), ["one", "two"]);
        let current = folders.current(&TeamId::parse("red").unwrap()).unwrap();
        assert_eq!(current.problems.len(), 2, "{:?}", current.problems);
    }
}
