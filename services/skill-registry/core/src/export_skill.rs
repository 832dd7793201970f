//! Skills as files again: the bytes that were written, with their name and hash (`S-1`).

use crate::actor::Actor;
use crate::conformance::{self, Report};
use crate::error::Error;
use crate::record::Files;
use crate::skills::{Skills, parse_name};

/// A skill's files on their way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// Name of the folder to put them into.
    pub folder: String,
    /// The files.
    pub files: Files,
    /// Which revision.
    pub revision: String,
    /// Its tree hash.
    pub tree: String,
    /// How it follows the specification.
    pub report: Report,
}

impl Skills {
    /// The files of a revision, an archived skill's too. An empty `revision` means the present one. Broken skills are
    /// given out as they are, so that they can be mended elsewhere.
    pub async fn export_skill(&self, actor: &Actor, name: &str, revision: &str) -> Result<Exported, Error> {
        let record = self.resolve_resource(actor, &parse_name("name", name)?).await?;
        let (revision, files) = if revision.is_empty() {
            self.load(&record).await?
        } else {
            self.files_of(&record, revision).await?
        };
        Ok(Exported {
            report: conformance::check(&files, record.name.as_str()),
            folder: record.name.to_string(),
            files,
            revision: revision.id,
            tree: revision.tree,
        })
    }
}
