//! What a folder of skills holds, read from the disk and judged only as far as the disk goes. Whether a text is a skill
//! is for the registry to say.

use std::fs;
use std::path::{Path, PathBuf};

/// The file that makes a folder a skill.
const SKILL_MD: &str = "SKILL.md";
/// The most bytes that the files of a skill may have in one request; the registry's own limit lies below.
const SKILL_BYTES: usize = 12 << 20;
/// Folders below the given one that are looked at; deeper is an accident.
const DEPTH: usize = 12;
/// Why a file or folder is left where it is that the registry could not name.
const NO_TEXT: &str = "has a name that is no UTF-8 text";

/// A skill as it lies in the folder.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// Its own name: what its header says, else its folder's name. For people; the registry reads the header itself.
    pub(super) name: String,
    /// Name of its folder.
    pub(super) folder: String,
    /// The folders above it, with slashes; may be empty.
    pub(super) category: String,
    /// All files by path, in order, byte for byte.
    pub(super) files: Vec<(String, Vec<u8>)>,
    /// Files that cannot come along, each with the reason.
    pub(super) left_out: Vec<String>,
}

impl Candidate {
    /// Category and name.
    pub(super) fn full_name(&self) -> String {
        if self.category.is_empty() {
            self.name.clone()
        } else {
            format!("{}/{}", self.category, self.name)
        }
    }
}

/// A place that could not be read.
#[derive(Debug)]
pub(super) struct Unreadable {
    /// Where.
    pub(super) path: String,
    /// Why.
    pub(super) problem: String,
}

/// What was found, in the order of names.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) candidates: Vec<Candidate>,
    pub(super) unreadable: Vec<Unreadable>,
}

/// Reads `root`, an absolute folder: itself a skill, or holding skills at any depth. Hidden folders and symbolic links are
/// passed over.
pub(super) fn scan(root: &Path, category: &str) -> Found {
    let mut found = Found::default();
    let category = category.trim_matches('/');
    descend(root, category, DEPTH, &mut found);
    if found.candidates.is_empty() && found.unreadable.is_empty() {
        found.unreadable.push(Unreadable {
            path: root.display().to_string(),
            problem: format!("holds no folder with a {SKILL_MD}"),
        });
    }
    found
}

fn descend(folder: &Path, category: &str, depth: usize, found: &mut Found) {
    let mut problem = |path: &Path, problem: String| {
        found.unreadable.push(Unreadable {
            path: path.display().to_string(),
            problem,
        });
    };
    let skill_md = folder.join(SKILL_MD);
    if skill_md.is_file() {
        match candidate(folder, category) {
            Ok(candidate) => found.candidates.push(candidate),
            Err(why) => problem(folder, why),
        }
        return;
    }
    let (names, nameless) = match entries(folder) {
        Ok(entries) => entries,
        Err(error) => return problem(folder, error.to_string()),
    };
    for path in nameless.iter().filter(|path| is_real_folder(path)) {
        problem(path, NO_TEXT.to_owned());
    }
    let folders: Vec<_> = names.iter().filter(|name| is_real_folder(&folder.join(name))).collect();
    if depth == 0 && !folders.is_empty() {
        return problem(folder, "lies too deep".to_owned());
    }
    for name in folders {
        let below = folder.join(name);
        // The last folder on the way is the skill's own name, so it joins the category only when there is more below.
        let inner = if below.join(SKILL_MD).is_file() {
            category.to_owned()
        } else if category.is_empty() {
            name.clone()
        } else {
            format!("{category}/{name}")
        };
        descend(&below, &inner, depth - 1, found);
    }
}

/// Names in a folder that are not hidden, in order, and the paths of what has a name that is no text.
fn entries(folder: &Path) -> std::io::Result<(Vec<String>, Vec<PathBuf>)> {
    let (mut names, mut nameless) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        if name.to_string_lossy().starts_with('.') {
            continue;
        }
        match name.into_string() {
            Ok(name) => names.push(name),
            Err(name) => nameless.push(folder.join(name)),
        }
    }
    names.sort();
    nameless.sort();
    Ok((names, nameless))
}

fn is_real_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

fn candidate(folder: &Path, category: &str) -> Result<Candidate, String> {
    let bytes = fs::read(folder.join(SKILL_MD)).map_err(|error| format!("{SKILL_MD}: {error}"))?;
    let own = folder
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let mut candidate = Candidate {
        name: header_name(&String::from_utf8_lossy(&bytes)).unwrap_or_else(|| own.clone()),
        folder: own,
        category: category.to_owned(),
        files: Vec::new(),
        left_out: Vec::new(),
    };
    let mut room = SKILL_BYTES;
    collect(folder, "", DEPTH, &mut room, &mut candidate)?;
    Ok(candidate)
}

fn collect(
    folder: &Path,
    prefix: &str,
    depth: usize,
    room: &mut usize,
    candidate: &mut Candidate,
) -> Result<(), String> {
    let (names, nameless) = match entries(folder) {
        Ok(entries) => entries,
        Err(error) => {
            candidate.left_out.push(format!("{prefix}: {error}"));
            return Ok(());
        }
    };
    for path in &nameless {
        let shown = path.file_name().unwrap_or_default().to_string_lossy();
        candidate.left_out.push(format!("{prefix}{shown} {NO_TEXT}"));
    }
    for name in names {
        let path = folder.join(&name);
        let inside = format!("{prefix}{name}");
        if is_real_folder(&path) {
            if depth == 0 {
                candidate.left_out.push(format!("{inside} lies too deep"));
            } else {
                collect(&path, &format!("{inside}/"), depth - 1, room, candidate)?;
            }
            continue;
        }
        match file(&path, *room) {
            Ok(Some(content)) => {
                *room -= content.len();
                candidate.files.push((inside, content));
            }
            Ok(None) => return Err(format!("its files have more than {} MiB", SKILL_BYTES >> 20)),
            Err(why) => candidate.left_out.push(format!("{inside} {why}")),
        }
    }
    Ok(())
}

/// A file's bytes; nothing when there is no room for them.
fn file(path: &Path, room: usize) -> Result<Option<Vec<u8>>, String> {
    let metadata = fs::symlink_metadata(path).map_err(|error| format!("cannot be read: {error}"))?;
    if !metadata.is_file() {
        return Err("is no ordinary file".to_owned());
    }
    if metadata.len() > room as u64 {
        return Ok(None);
    }
    let bytes = fs::read(path).map_err(|error| format!("cannot be read: {error}"))?;
    Ok((bytes.len() <= room).then_some(bytes))
}

/// The name in the header, without reading the rest of the header: the registry does that, and refuses what is wrong.
fn header_name(content: &str) -> Option<String> {
    let mut lines = content.trim_start_matches('\u{feff}').lines();
    if lines.next()?.trim_end() != "---" {
        return None;
    }
    lines
        .take_while(|line| line.trim_end() != "---")
        .find_map(|line| line.strip_prefix("name:"))
        .map(|name| {
            name.split(" #")
                .next()
                .unwrap_or_default()
                .trim()
                .trim_matches(['"', '\''])
                .to_owned()
        })
        .filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, content: &[u8]) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    #[test]
    fn folders_above_a_skill_are_its_category_and_files_beside_it_come_along() {
        let root = tempfile::tempdir().unwrap();
        write(
            root.path(),
            "ops/backup/nightly/SKILL.md",
            b"---\nname: nightly\n---\ntext",
        );
        write(root.path(), "ops/backup/nightly/references/deep/notes.md", b"notes");
        write(root.path(), "ops/backup/nightly/assets/logo.png", &[0xff, 0xfe, 0]);
        write(root.path(), "ops/backup/nightly/LICENSE", b"free");
        write(root.path(), "plain/SKILL.md", b"no header");
        write(root.path(), ".git/hidden/SKILL.md", b"hidden");
        let found = scan(root.path(), "");
        assert!(found.unreadable.is_empty());
        let names: Vec<_> = found.candidates.iter().map(Candidate::full_name).collect();
        assert_eq!(names, ["ops/backup/nightly", "plain"]);
        let nightly = &found.candidates[0];
        assert_eq!(nightly.folder, "nightly");
        let paths: Vec<_> = nightly.files.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(
            paths,
            ["LICENSE", "SKILL.md", "assets/logo.png", "references/deep/notes.md"]
        );
        assert_eq!(nightly.files[2].1, [0xff, 0xfe, 0], "byte for byte");
        assert!(nightly.left_out.is_empty(), "{:?}", nightly.left_out);
    }

    #[test]
    fn one_skill_alone_may_be_given_and_may_be_put_under_a_category() {
        let root = tempfile::tempdir().unwrap();
        write(
            root.path(),
            "a/SKILL.md",
            b"---\nname: \"other\" # not the folder's\n---\n",
        );
        let found = scan(&root.path().join("a"), "ops/");
        assert_eq!(found.candidates[0].full_name(), "ops/other");
    }

    #[test]
    fn what_cannot_be_read_is_named_and_hides_nothing() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "big/SKILL.md", b"text");
        let big = fs::File::create(root.path().join("big/data.bin")).unwrap();
        big.set_len(SKILL_BYTES as u64).unwrap();
        write(root.path(), "good/SKILL.md", b"text");
        let found = scan(root.path(), "");
        assert_eq!(found.candidates[0].name, "good");
        assert!(found.unreadable[0].problem.contains("more than 12 MiB"));
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(scan(empty.path(), "").unreadable.len(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_name_that_is_no_text_is_told_whether_it_is_a_file_or_a_skill() {
        use std::os::unix::ffi::OsStrExt as _;

        let root = tempfile::tempdir().unwrap();
        let odd = std::ffi::OsStr::from_bytes(b"od\xffd");
        write(root.path(), "good/SKILL.md", b"text");
        fs::write(root.path().join("good").join(odd), b"text").unwrap();
        fs::create_dir(root.path().join(odd)).unwrap();
        fs::write(root.path().join(odd).join(SKILL_MD), b"text").unwrap();
        let found = scan(root.path(), "");
        assert_eq!(found.candidates.len(), 1);
        assert_eq!(found.candidates[0].left_out, [format!("od\u{fffd}d {NO_TEXT}")]);
        assert_eq!(found.unreadable.len(), 1);
        assert_eq!(found.unreadable[0].problem, NO_TEXT);
    }

    #[cfg(unix)]
    #[test]
    fn links_lead_nowhere() {
        let root = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        write(outside.path(), "secret/SKILL.md", b"text");
        write(root.path(), "a/SKILL.md", b"text");
        fs::create_dir_all(root.path().join("a/references")).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", root.path().join("a/references/host")).unwrap();
        std::os::unix::fs::symlink(outside.path(), root.path().join("link")).unwrap();
        let found = scan(root.path(), "");
        assert_eq!(found.candidates.len(), 1);
        assert_eq!(found.candidates[0].files.len(), 1);
        assert!(found.candidates[0].left_out[0].contains("no ordinary file"));
    }
}
