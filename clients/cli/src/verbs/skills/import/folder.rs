//! What a folder of skills holds, read from the disk and judged only as far as the disk goes. Whether a text is a skill
//! is for the registry to say.

use std::fs;
use std::path::Path;

/// The file that makes a folder a skill.
const SKILL_MD: &str = "SKILL.md";
/// Folders below a skill that its support files lie in.
const SUPPORT: [&str; 4] = ["references", "templates", "scripts", "assets"];
/// Folders below the given one that are looked at; deeper is an accident.
const DEPTH: usize = 12;

/// A skill as it lies in the folder.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// Its own name: what its header says, else its folder's name.
    pub(super) name: String,
    /// The folders above it, with slashes; may be empty.
    pub(super) category: String,
    /// SKILL.md.
    pub(super) content: String,
    /// Support files by path, in order.
    pub(super) files: Vec<(String, String)>,
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
    let names = match entries(folder) {
        Ok(names) => names,
        Err(error) => return problem(folder, error.to_string()),
    };
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

/// Names in a folder that are not hidden, in order.
fn entries(folder: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

fn is_real_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

fn candidate(folder: &Path, category: &str) -> Result<Candidate, String> {
    let bytes = fs::read(folder.join(SKILL_MD)).map_err(|error| format!("{SKILL_MD}: {error}"))?;
    let content = String::from_utf8(bytes).map_err(|_| format!("{SKILL_MD} is not UTF-8 text"))?;
    let own = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = header_name(&content).or(own).unwrap_or_default();
    let mut candidate = Candidate {
        name,
        category: category.to_owned(),
        content,
        files: Vec::new(),
        left_out: Vec::new(),
    };
    support(folder, "", DEPTH, &mut candidate);
    Ok(candidate)
}

fn support(folder: &Path, prefix: &str, depth: usize, candidate: &mut Candidate) {
    let names = match entries(folder) {
        Ok(names) => names,
        Err(error) => return candidate.left_out.push(format!("{prefix}: {error}")),
    };
    for name in names {
        let path = folder.join(&name);
        let inside = format!("{prefix}{name}");
        if inside == SKILL_MD {
            continue;
        }
        if is_real_folder(&path) && depth > 0 && (!prefix.is_empty() || SUPPORT.contains(&name.as_str())) {
            support(&path, &format!("{inside}/"), depth - 1, candidate);
            continue;
        }
        match support_file(&path, prefix) {
            Ok(content) => candidate.files.push((inside, content)),
            Err(why) => candidate.left_out.push(format!("{inside} {why}")),
        }
    }
}

fn support_file(path: &Path, prefix: &str) -> Result<String, String> {
    let metadata = fs::symlink_metadata(path).map_err(|error| format!("cannot be read: {error}"))?;
    if prefix.is_empty() {
        return Err(format!("lies outside {}", SUPPORT.join(", ")));
    }
    if !metadata.is_file() {
        return Err("is no ordinary file".to_owned());
    }
    let bytes = fs::read(path).map_err(|error| format!("cannot be read: {error}"))?;
    String::from_utf8(bytes).map_err(|_| "is not UTF-8 text".to_owned())
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
        assert_eq!(
            nightly.files,
            [("references/deep/notes.md".to_owned(), "notes".to_owned())]
        );
        assert_eq!(nightly.left_out.len(), 2, "{:?}", nightly.left_out);
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
        write(root.path(), "bad/SKILL.md", &[0xff]);
        write(root.path(), "good/SKILL.md", b"text");
        let found = scan(root.path(), "");
        assert_eq!(found.candidates[0].name, "good");
        assert!(found.unreadable[0].problem.contains("not UTF-8"));
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(scan(empty.path(), "").unreadable.len(), 1);
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
        assert!(found.candidates[0].files.is_empty());
        assert!(found.candidates[0].left_out[0].contains("no ordinary file"));
    }
}
