//! The skills that come with Steward, and how a team gets them (`S-21`).
//!
//! Everyone has the same ones. Each team has its own rows, so that use, pins and "not for us" are the team's; the text
//! is replaced when a newer Steward ships another, unless the team set the skill aside or pinned it.

use steward_base::Origin;
use steward_base::hash::sha256_hex;
use steward_base::names::{SkillId, TeamId};

use crate::error::{Error, StoreFault};
use crate::gate::{self, Action, Provenance, Ruling};
use crate::header;
use crate::name::Scope;
use crate::path::SkillPath;
use crate::record::{Authorship, Files, HeaderState, NewRevision, SkillRecord, State, Usage, manifest, tree_hash};
use crate::skills::Skills;
use crate::store::{Change, CommitError};

/// A skill that ships.
#[derive(Debug, Clone, Copy)]
pub struct Builtin {
    /// Its name.
    pub name: &'static str,
    /// Whether Steward's own workings rest on it (`C-3`).
    pub protected: bool,
    /// Its `SKILL.md`.
    pub text: &'static str,
}

/// All of them.
pub const BUILTINS: [Builtin; 5] = [
    Builtin {
        name: "plan",
        protected: true,
        text: include_str!("../builtin/plan/SKILL.md"),
    },
    Builtin {
        name: "find-the-fault",
        protected: false,
        text: include_str!("../builtin/find-the-fault/SKILL.md"),
    },
    Builtin {
        name: "write-a-skill",
        protected: false,
        text: include_str!("../builtin/write-a-skill/SKILL.md"),
    },
    Builtin {
        name: "review-a-change",
        protected: false,
        text: include_str!("../builtin/review-a-change/SKILL.md"),
    },
    Builtin {
        name: "hand-over",
        protected: false,
        text: include_str!("../builtin/hand-over/SKILL.md"),
    },
];

impl Skills {
    /// Sees to it that the team has the builtins as this version ships them.
    pub(crate) async fn seed_builtins(&self, team: &TeamId) -> Result<(), Error> {
        if self.is_seeded(team) {
            return Ok(());
        }
        for builtin in BUILTINS {
            match self.seed_one(team, builtin).await {
                // What is there can be read all the same; once there is room again, the next call sees to it.
                Err(Error::Store(StoreFault::Full)) => return Ok(()),
                seeded => seeded?,
            }
        }
        self.mark_seeded(team);
        Ok(())
    }

    async fn seed_one(&self, team: &TeamId, builtin: Builtin) -> Result<(), Error> {
        let files = Files::from([(SkillPath::skill_md(), builtin.text.as_bytes().to_vec())]);
        let Ok(name) = SkillId::parse(builtin.name) else {
            return Ok(());
        };
        let present = self.store.named(team, &[Scope::Builtin], &name).await?;
        let change = match present.into_iter().next() {
            // A damaged record is for an operator; seeding over it would hide that.
            Some(Err(_)) => return Ok(()),
            Some(Ok(record)) if !is_replaced(&record, &files) => return Ok(()),
            Some(Ok(record)) => self.replacement(&record, files),
            None => self.first(team, builtin, name, files),
        };
        match self.store.commit(change).await {
            Err(CommitError::Store(fault)) => Err(fault.into()),
            // Otherwise another process or call was quicker with the same content, or the team revoked just this text.
            Ok(())
            | Err(
                CommitError::VersionMismatch
                | CommitError::InTheWay(_)
                | CommitError::Revoked
                | CommitError::StaleFence { .. }
                | CommitError::Answered(_),
            ) => Ok(()),
        }
    }

    fn first(&self, team: &TeamId, builtin: Builtin, name: SkillId, files: Files) -> Change {
        let now = self.clock.now();
        // The same id in every process, so that two that seed at once meet at the primary key.
        let mut uid = sha256_hex(format!("builtin/{name}").as_bytes());
        uid.truncate(32);
        let new = NewRevision {
            parent: None,
            action: "create",
            files: &files,
            by: by(),
            restored_from: None,
            created: now,
        };
        let revision = new.seal(&uid);
        let header = header_of(builtin.text);
        let category = match &header {
            HeaderState::Read(header) => header.category.clone(),
            HeaderState::Broken(_) => crate::name::Category::default(),
        };
        let record = SkillRecord {
            team: team.clone(),
            uid,
            scope: Scope::Builtin,
            name,
            category,
            provenance: Provenance::of_creation(Origin::Builtin),
            author: None,
            pinned: false,
            protected: builtin.protected,
            state: State::Active,
            version: 1,
            revision: revision.id.clone(),
            number: revision.number,
            tree: revision.tree.clone(),
            header,
            usage: Usage::default(),
            created: now,
            updated: now,
        };
        Change::of(record, None, Some((revision, files)))
    }

    fn replacement(&self, record: &SkillRecord, files: Files) -> Change {
        let now = self.clock.now();
        let new = NewRevision {
            parent: Some(record),
            action: Action::Edit.as_str(),
            files: &files,
            by: by(),
            restored_from: None,
            created: now,
        };
        let revision = new.seal(&record.uid);
        let next = record.after(&revision, &files);
        Change::of(next, Some(record.version), Some((revision, files)))
    }
}

/// Whether the shipped files replace those of `record`.
fn is_replaced(record: &SkillRecord, files: &Files) -> bool {
    let is_open = matches!(
        gate::rule(Origin::Builtin, record.gate_state(), Action::Edit),
        Ruling::Allow
    );
    is_open && record.is_active() && record.tree != tree_hash(&manifest(files))
}

fn header_of(text: &str) -> HeaderState {
    match header::parse(text) {
        Ok(header) => HeaderState::Read(Box::new(header)),
        Err(error) => HeaderState::Broken(error.to_string()),
    }
}

fn by() -> Authorship {
    Authorship {
        user: None,
        origin: Origin::Builtin,
        session: None,
        turn: None,
        job: None,
        reason: String::new(),
        evidence: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen;

    const HEADINGS: [&str; 7] = [
        "\n## When to Use\n",
        "\n## Prerequisites\n",
        "\n## How to Run\n",
        "\n## Quick Reference\n",
        "\n## Procedure\n",
        "\n## Pitfalls\n",
        "\n## Verification\n",
    ];

    #[test]
    fn what_ships_is_valid_short_and_passes_the_guard() {
        for builtin in BUILTINS {
            let header = header::parse(builtin.text).unwrap();
            assert_eq!(header.name, builtin.name);
            assert!(header.description.chars().count() <= 60, "{}", header.description);
            assert_eq!(header.problems, Vec::<String>::new());
            assert_eq!(screen::description(&header.description), None);
            // What we ship keeps to the letter of the specification, and names its author as the standard says.
            let files = Files::from([(SkillPath::skill_md(), builtin.text.as_bytes().to_vec())]);
            let report = crate::conformance::check(&files, builtin.name);
            assert!(report.conforms() && report.findings.is_empty(), "{:?}", report.findings);
            assert!(builtin.text.contains("\n  author: Steward\n"), "{}", builtin.name);
            assert_eq!(header.category.as_str(), "work");
            // The standard's headings, in its order.
            let places = HEADINGS.map(|heading| builtin.text.find(heading));
            assert!(
                places.iter().all(Option::is_some) && places.is_sorted(),
                "{}: {places:?}",
                builtin.name
            );
            let files = Files::from([(SkillPath::skill_md(), builtin.text.as_bytes().to_vec())]);
            assert!(
                screen::writing(Origin::Review, &Files::new(), &files).is_ok(),
                "{}",
                builtin.name
            );
        }
    }
}
