//! Finds the sets in a folder, each by the shape of its files.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

use super::{Set, locomo, madial, memorybank};

/// Deeper folders are not looked into.
const DEPTH: usize = 4;

/// What a folder holds.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) sets: Vec<Set>,
    /// Files with JSON in them that are no set and belong to none, relative to the folder.
    pub(crate) unread: Vec<String>,
}

/// Every set in `folder` and the folders in it, by name.
pub(crate) fn read_folder(folder: &Path) -> anyhow::Result<Folder> {
    let mut files = Vec::new();
    list(folder, DEPTH, &mut files)?;
    files.sort();
    let (mut sets, mut unread) = (Vec::new(), Vec::new());
    for file in &files {
        match read(file, &files).with_context(|| format!("read {}", file.display()))? {
            Found::Sets(found) => sets.extend(found),
            Found::PartOfAnother => {}
            Found::Unknown => {
                let inside = file.strip_prefix(folder).unwrap_or(file);
                unread.push(inside.to_string_lossy().into_owned());
            }
        }
    }
    sets.sort_by(|one, two| one.name.cmp(&two.name));
    let doubled = sets.windows(2).find(|two| two[0].name == two[1].name);
    ensure!(
        doubled.is_none(),
        "two sets are called {:?}",
        doubled.map(|two| two[0].name.as_str()).unwrap_or_default()
    );
    Ok(Folder { sets, unread })
}

/// What a file turned out to be.
enum Found {
    Sets(Vec<Set>),
    /// Read with the file that it belongs to.
    PartOfAnother,
    Unknown,
}

fn list(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            if depth > 1 {
                list(&path, depth - 1, files)?;
            }
        } else if path
            .extension()
            .is_some_and(|extension| extension == "jsonl" || extension == "json")
        {
            files.push(path);
        }
    }
    Ok(())
}

fn read(file: &Path, files: &[PathBuf]) -> anyhow::Result<Found> {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    if stem == memorybank::LABELS || stem.starts_with(memorybank::QUESTIONS) || madial::is_memory(&stem) {
        return Ok(Found::PartOfAnother);
    }
    let text = std::fs::read_to_string(file)?;
    if let Some(language) = stem.strip_prefix(memorybank::TALKS) {
        let questions = file.with_file_name(format!("{}{language}.jsonl", memorybank::QUESTIONS));
        let labels = files
            .iter()
            .find(|other| other.file_stem().is_some_and(|stem| stem == memorybank::LABELS));
        let labels = labels.with_context(|| format!("there is no {}.json", memorybank::LABELS))?;
        let set = memorybank::parse(language, &text, &contents(&questions)?, &contents(labels)?)?;
        return Ok(Found::Sets(vec![set]));
    }
    if let Some(memory) = madial::memory_of(&stem) {
        let memory = contents(&file.with_file_name(format!("{memory}.json")))?;
        return Ok(Found::Sets(vec![madial::parse(&stem, &text, &memory)?]));
    }
    if file.extension().is_some_and(|extension| extension == "jsonl") {
        return Ok(Found::Sets(vec![super::parse(stem, &text)?]));
    }
    Ok(locomo::parse(&stem, &text)?.map_or(Found::Unknown, |set| Found::Sets(vec![set])))
}

fn contents(file: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(file).with_context(|| format!("read {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_found_in_folders_and_what_is_none_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        let line = r#"{"type":"session","id":"a","time":0}"#;
        std::fs::write(inner.join("birds.jsonl"), line).unwrap();
        std::fs::write(folder.path().join("other.json"), r#"{"a":1}"#).unwrap();
        std::fs::write(folder.path().join("LICENSE"), "text").unwrap();
        let found = read_folder(folder.path()).unwrap();
        assert_eq!((found.sets.len(), found.sets[0].name.as_str()), (1, "birds"));
        assert_eq!(found.unread, ["other.json"]);
        std::fs::write(folder.path().join("birds.jsonl"), line).unwrap();
        assert!(read_folder(folder.path()).is_err());
    }
}
