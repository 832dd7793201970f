//! The source `official`: skills that whoever runs this installation laid beside it, in a folder. They are trusted like the
//! program, so the folder must be as hard to write as the program is. It is read once, at start; no link is followed.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use steward_runtime::StartError;
use steward_skill_scanner::structure::Limits;
use steward_skill_scanner::{File, Tree};

/// Most folders of skills.
const MOST: usize = 1_000;

/// The skills in a folder: each is a folder with a SKILL.md, and its name. Nothing where no folder is set.
pub(super) fn read(folder: &Path, limits: &Limits) -> Result<Vec<(String, Tree)>, StartError> {
    if folder.as_os_str().is_empty() {
        return Ok(Vec::new());
    }
    let failed = |error| StartError::new(format!("read the official skills in {}", folder.display()), error);
    let mut skills = Vec::new();
    for name in names(folder).map_err(failed)? {
        let path = folder.join(&name);
        if !is_plain(&path, fs::FileType::is_dir).map_err(failed)? || !path.join("SKILL.md").is_file() {
            continue;
        }
        if skills.len() == MOST {
            return Err(failed(io::Error::other(format!("it holds more than {MOST} skills"))));
        }
        let mut tree = Tree::new();
        gather(&path, "", limits, &mut tree).map_err(failed)?;
        skills.push((name, tree));
    }
    Ok(skills)
}

/// Names in a folder, in their order; those that are no text are left out.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        names.extend(entry?.file_name().into_string().ok());
    }
    names.sort();
    Ok(names)
}

fn is_plain(path: &Path, kind: impl Fn(&fs::FileType) -> bool) -> io::Result<bool> {
    Ok(kind(&fs::symlink_metadata(path)?.file_type()))
}

fn gather(folder: &Path, above: &str, limits: &Limits, tree: &mut Tree) -> io::Result<()> {
    for name in names(folder)? {
        let (path, inner) = (folder.join(&name), format!("{above}{name}"));
        let found = fs::symlink_metadata(&path)?;
        if found.is_dir() {
            if inner.matches('/').count() < limits.depth {
                gather(&path, &format!("{inner}/"), limits, tree)?;
            }
        } else if found.is_file() {
            if tree.len() >= limits.files || tree.bytes().saturating_add(found.len()) > limits.bytes {
                return Err(io::Error::other(format!("{inner} is more than a skill may hold")));
            }
            let file = File {
                executable: found.permissions().mode() & 0o100 != 0,
                ..File::plain(fs::read(&path)?)
            };
            tree.insert(inner, file);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use steward_testkit::TempDir;

    use super::*;

    #[test]
    fn h_1_the_folder_of_official_skills_is_read_whole_and_without_links() {
        let folder = TempDir::new("official");
        let tidy = folder.path().join("tidy");
        fs::create_dir_all(tidy.join("references")).unwrap();
        fs::write(tidy.join("SKILL.md"), "---\nname: tidy\ndescription: Tidies.\n---\n").unwrap();
        fs::write(tidy.join("references/a.md"), "a").unwrap();
        fs::create_dir_all(folder.path().join("no-skill")).unwrap();
        fs::write(folder.path().join("README.md"), "text").unwrap();
        std::os::unix::fs::symlink("/etc/hostname", tidy.join("references/link.md")).unwrap();
        std::os::unix::fs::symlink(&tidy, folder.path().join("again")).unwrap();
        let skills = read(folder.path(), &Limits::default()).unwrap();
        let names: Vec<_> = skills.iter().map(|(name, tree)| (name.as_str(), tree.len())).collect();
        assert_eq!(names, [("tidy", 2)]);
        assert!(read(Path::new(""), &Limits::default()).unwrap().is_empty());
        assert!(read(&folder.path().join("none"), &Limits::default()).is_err());
        let tight = Limits {
            files: 1,
            ..Limits::default()
        };
        assert!(
            read(folder.path(), &tight).is_err(),
            "more than a skill may hold is no skill"
        );
    }
}
