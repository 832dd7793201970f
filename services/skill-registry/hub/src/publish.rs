//! What a team gives out to others: skills that a maintainer published, each packed once, whose bytes and digest stay what
//! they are until someone publishes anew.

use serde::{Deserialize, Serialize};
use steward_base::Timestamp;
use steward_base::hash::sha256_hex;
use steward_skill_scanner::Tree;

use crate::error::StoreError;

/// A published skill without its archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publication {
    /// Its name, unique among the team's publications.
    pub name: String,
    /// Its resource name in the library.
    pub skill: String,
    /// What it says of itself.
    pub description: String,
    /// The front matter as it stands in SKILL.md, without its fences.
    pub front_matter: String,
    /// SHA-256 of the archive.
    pub archive: String,
    /// Bytes of the archive.
    pub size: u64,
    /// Digest of the tree in it.
    pub tree: String,
    /// The revision in the library.
    pub revision: String,
    /// Who published it.
    pub by: String,
    /// When.
    pub at: Timestamp,
}

/// What shall be published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// Its name.
    pub name: String,
    /// Its resource name in the library.
    pub skill: String,
    /// The revision in the library.
    pub revision: String,
    /// Its files.
    pub tree: Tree,
}

impl Publication {
    /// Where the archive is served, relative to the index.
    pub fn file(&self) -> String {
        format!("{}/{}.tar.gz", self.name, self.archive)
    }
}

/// The text between the fences at the head of a SKILL.md, as it stands there.
pub fn front_matter(text: &str) -> Option<&str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let rest = text.strip_prefix("---")?;
    let rest = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n'))?;
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return rest.get(..at);
        }
        at += line.len();
    }
    None
}

/// The files as a tar.gz that depends on nothing but them: in the order of their paths, without times, owners and names of
/// machines.
pub fn pack(tree: &Tree) -> Result<Vec<u8>, StoreError> {
    let failed = |error: std::io::Error| StoreError::failed(format!("the archive cannot be packed: {error}"));
    let encoder = flate2::GzBuilder::new()
        .mtime(0)
        .write(Vec::new(), flate2::Compression::best());
    let mut builder = tar::Builder::new(encoder);
    for (path, file) in tree.iter() {
        let mut header = tar::Header::new_ustar();
        header.set_size(file.bytes.len() as u64);
        header.set_mode(if file.executable { 0o755 } else { 0o644 });
        header.set_mtime(0);
        builder.append_data(&mut header, path, &*file.bytes).map_err(failed)?;
    }
    builder
        .into_inner()
        .and_then(flate2::write::GzEncoder::finish)
        .map_err(failed)
}

/// The publication of an archive.
pub(crate) fn publication(draft: Draft, archive: &[u8], description: String, by: &str, at: Timestamp) -> Publication {
    let text = draft
        .tree
        .get("SKILL.md")
        .map(|file| String::from_utf8_lossy(&file.bytes).into_owned());
    Publication {
        front_matter: text.as_deref().and_then(front_matter).unwrap_or_default().to_owned(),
        description,
        archive: sha256_hex(archive),
        size: archive.len() as u64,
        tree: draft.tree.digest(),
        name: draft.name,
        skill: draft.skill,
        revision: draft.revision,
        by: by.to_owned(),
        at,
    }
}

#[cfg(test)]
mod tests {
    use steward_skill_scanner::File;

    use super::*;
    use crate::archive::{Limits, Selection, unpack};

    fn tree() -> Tree {
        let mut tree: Tree = [(
            "SKILL.md",
            b"---\nname: tidy\ndescription: Tidies.\n---\n# Tidy\n".to_vec(),
        )]
        .into_iter()
        .collect();
        let script = File {
            executable: true,
            ..File::plain(b"#!/bin/sh\nls\n".to_vec())
        };
        tree.insert("scripts/list.sh", script);
        let deep = format!("references/{}/{}.md", "a".repeat(90), "b".repeat(60));
        tree.insert(deep, File::plain(b"deep".to_vec()));
        tree
    }

    #[test]
    fn a_packed_skill_is_the_same_bytes_each_time_and_unpacks_to_itself() {
        let packed = pack(&tree()).unwrap();
        assert_eq!(packed, pack(&tree()).unwrap());
        let back = unpack(&packed, Selection::default(), &Limits::default(), &|| true).unwrap();
        assert_eq!(back, tree());
        assert_eq!(back.digest(), tree().digest());
    }

    #[test]
    fn the_front_matter_is_what_stands_between_the_fences() {
        assert_eq!(front_matter("---\na: b\n---\ntext\n"), Some("a: b\n"));
        assert_eq!(front_matter("\u{feff}---\r\na: '---'\r\n---\r\n"), Some("a: '---'\r\n"));
        assert_eq!(front_matter("---\na: b\n"), None);
        assert_eq!(front_matter("text"), None);
    }
}
