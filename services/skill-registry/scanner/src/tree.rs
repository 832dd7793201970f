//! The unpacked skill as it is judged and stored: paths, bytes, and whether a file may be executed. Nothing else of an
//! archive (times, owners, links) survives, so that what is scanned is what is installed.

use std::collections::BTreeMap;
use std::sync::Arc;

use steward_base::hash::{sha256_hex, sha256_parts};

/// One file of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its content.
    pub bytes: Arc<[u8]>,
    /// Whether its owner may execute it.
    pub executable: bool,
}

impl File {
    /// A file that is not executable.
    pub fn plain(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self {
            bytes: bytes.into(),
            executable: false,
        }
    }
}

/// The files of one skill by their path relative to its folder, with `/` between parts. Paths are as they came; the
/// structure check says which of them may not stay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    files: BTreeMap<String, File>,
}

impl Tree {
    /// An empty folder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces a file; returns what stood there.
    pub fn insert(&mut self, path: impl Into<String>, file: File) -> Option<File> {
        self.files.insert(path.into(), file)
    }

    /// The file at exactly this path.
    pub fn get(&self, path: &str) -> Option<&File> {
        self.files.get(path)
    }

    /// All files in the order of their paths.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &File)> {
        self.files.iter().map(|(path, file)| (path.as_str(), file))
    }

    /// Number of files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether there is no file.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Size of all files together, in bytes.
    pub fn bytes(&self) -> u64 {
        self.files.values().map(|file| file.bytes.len() as u64).sum()
    }

    /// SHA-256 of each file as hexadecimal text, by path.
    pub fn digests(&self) -> BTreeMap<String, String> {
        self.files
            .iter()
            .map(|(path, file)| (path.clone(), sha256_hex(&file.bytes)))
            .collect()
    }

    /// The digest of the whole: SHA-256 over path, mode and digest of every file, each preceded by its length, so that
    /// no two different trees share one.
    pub fn digest(&self) -> String {
        let digests = self.digests();
        let files = self.files.iter().zip(digests.values());
        Self::digest_of(files.map(|((path, file), sha256)| (path.as_str(), file.executable, sha256.as_str())))
    }

    /// The same for files that are not at hand: path, mode and SHA-256 as hexadecimal text of each, in any order.
    pub fn digest_of<'a>(files: impl IntoIterator<Item = (&'a str, bool, &'a str)>) -> String {
        let files: BTreeMap<&str, ([u8; 1], &str)> = files
            .into_iter()
            .map(|(path, executable, sha256)| (path, ([u8::from(executable)], sha256)))
            .collect();
        let parts = files
            .iter()
            .flat_map(|(path, (mode, sha256))| [path.as_bytes(), mode.as_slice(), sha256.as_bytes()]);
        sha256_parts(parts)
    }
}

impl<P: Into<String>, B: Into<Arc<[u8]>>> FromIterator<(P, B)> for Tree {
    fn from_iter<I: IntoIterator<Item = (P, B)>>(files: I) -> Self {
        let mut tree = Self::new();
        for (path, bytes) in files {
            tree.insert(path, File::plain(bytes));
        }
        tree
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_changes_with_every_part_of_the_tree() {
        let tree: Tree = [("SKILL.md", b"a".to_vec()), ("x", b"b".to_vec())]
            .into_iter()
            .collect();
        let same: Tree = [("x", b"b".to_vec()), ("SKILL.md", b"a".to_vec())]
            .into_iter()
            .collect();
        assert_eq!(tree.digest(), same.digest(), "order of insertion does not count");
        assert_eq!(
            tree.digest(),
            "e5a4caf4438df7cfea211dd8a358cae33833bd45f6e9b392352123b0031346e0",
            "what is written down in locks and advisories stays what it is"
        );
        let renamed: Tree = [("SKILL.md", b"a".to_vec()), ("y", b"b".to_vec())]
            .into_iter()
            .collect();
        let changed: Tree = [("SKILL.md", b"a".to_vec()), ("x", b"c".to_vec())]
            .into_iter()
            .collect();
        let mut executable = tree.clone();
        executable.insert(
            "x",
            File {
                executable: true,
                ..File::plain(b"b".to_vec())
            },
        );
        for other in [renamed, changed, executable] {
            assert_ne!(tree.digest(), other.digest());
        }
    }
}
