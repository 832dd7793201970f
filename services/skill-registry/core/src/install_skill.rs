//! What the hub installs, and how an update meets what was changed here (D-58).
//!
//! The hub has scanned and approved the files; here they become a revision of a skill in the scope `hub`, in one change. A
//! skill that was changed here since the last install keeps those changes: both are merged over the files that were
//! installed last, and where they meet nothing is changed at all unless the caller gives our side up.

mod from_hub;

use steward_base::FieldViolations;
use steward_base::names::SkillId;

use crate::actor::Actor;
use crate::error::Error;
use crate::gate::{Action, Provenance};
use crate::import_skill::{NewSkill, NextFiles, check_files};
use crate::merge;
use crate::name::Scope;
use crate::path::SkillPath;
use crate::record::{Files, Revision, SkillRecord, manifest, tree_hash};
use crate::skills::Skills;
use crate::store::Change;

pub use from_hub::{Beside, BesideCopies, HubSkill, LocalChanges, Taken};

/// Revisions read at once when the one that was installed last is looked for.
const PAGE: u32 = 100;

/// What the hub has approved.
struct Approved<'a> {
    files: &'a Files,
    /// Tree hash of the files approved last; empty where there are none.
    base_tree: String,
    /// Where they come from, for the revision.
    source: &'a str,
}

impl Skills {
    async fn first_install(&self, actor: &Actor, approved: &Approved<'_>, name: &SkillId) -> Result<Change, Error> {
        let (_, header) = check_files(approved.files, name.as_str())
            .header
            .map_err(|problem| invalid(name, problem))?;
        let new = NewSkill {
            scope: Scope::Hub,
            name: name.clone(),
            category: header.category.clone(),
            provenance: Provenance::Hub,
            header,
            action: "install",
            reason: approved.source,
        };
        self.new_record(actor, new, approved.files.clone()).await
    }

    /// With the files in which both sides' changes stand. Without a revision where nothing is new.
    async fn update(
        &self,
        actor: &Actor,
        approved: &Approved<'_>,
        record: &SkillRecord,
    ) -> Result<(Change, Vec<SkillPath>), Error> {
        Self::pass_gates(actor, record, Action::Edit)?;
        if approved.base_tree.is_empty() {
            return Err(Error::SkillExists {
                skill: record.full_name(),
                in_the_way: vec![record.full_name()],
            });
        }
        let (_, ours) = self.load(record).await?;
        let (files, merged) = if record.tree == approved.base_tree {
            (approved.files.clone(), Vec::new())
        } else {
            self.merged(record, approved, &ours).await?
        };
        if tree_hash(&manifest(&files)) == record.tree {
            return Ok((Change::of(record.clone(), Some(record.version), None), merged));
        }
        let next = NextFiles {
            action: "install",
            reason: approved.source,
            before: &ours,
            theirs: approved.files,
            files,
        };
        Ok((self.united_record(actor, record, next)?, merged))
    }

    /// Both sides' changes over the files installed last; with what was merged.
    async fn merged(
        &self,
        record: &SkillRecord,
        approved: &Approved<'_>,
        ours: &Files,
    ) -> Result<(Files, Vec<SkillPath>), Error> {
        let base = match self.with_tree(record, &approved.base_tree).await? {
            Some(revision) => self.store.files(&record.team, &revision).await?,
            // Without it every file that differs is one that both sides have.
            None => Files::new(),
        };
        let both = merge::unite(&base, ours, approved.files, false);
        if both.conflicts.is_empty() {
            return Ok((both.files, both.merged));
        }
        Err(Error::MergeConflict {
            skill: record.full_name(),
            paths: both.conflicts.iter().map(SkillPath::to_string).collect(),
        })
    }

    /// The newest revision with these files.
    pub(crate) async fn with_tree(&self, record: &SkillRecord, tree: &str) -> Result<Option<Revision>, Error> {
        self.newest_that(record, |revision| revision.tree == tree).await
    }

    /// The newest revision of which this holds.
    pub(crate) async fn newest_that(
        &self,
        record: &SkillRecord,
        holds: impl Fn(&Revision) -> bool,
    ) -> Result<Option<Revision>, Error> {
        let mut before = None;
        loop {
            let page = self.store.revisions(&record.team, &record.uid, before, PAGE).await?;
            let Some(last) = page.last().map(|revision| revision.number) else {
                return Ok(None);
            };
            if let Some(found) = page.into_iter().find(|revision| holds(revision)) {
                return Ok(Some(found));
            }
            before = Some(last);
        }
    }
}

fn invalid(name: &SkillId, problem: String) -> Error {
    Error::SkillInvalid {
        skill: format!("hub/{name}"),
        violations: FieldViolations::one("files", problem),
    }
}
