//! What the hub installs, and how an update meets what was changed here (D-58).
//!
//! The hub has scanned and approved the files; here they become a revision of a skill in the scope `hub`, in one change. A
//! skill that was changed here since the last install keeps those changes: both are merged over the files that were
//! installed last, and where they meet nothing is changed at all unless the caller gives our side up.

mod from_hub;

use serde::{Deserialize, Serialize};
use steward_base::names::{SkillId, TeamId, parse_team};
use steward_base::{FieldViolations, Origin};

use crate::actor::Actor;
use crate::error::Error;
use crate::gate::{Action, Provenance};
use crate::import_skill::{NewSkill, NextFiles, answered, check_files};
use crate::manage_skill::check_request_id;
use crate::merge;
use crate::name::{Category, Scope};
use crate::path::SkillPath;
use crate::record::{Files, Revision, SkillRecord, manifest, tree_hash};
use crate::skills::{Skills, TRIES, commit_error, parse_new_name, read_answer, too_busy};
use crate::store::{Change, CommitError, RequestKey};

pub use from_hub::{Beside, HubSkill, LocalChanges, Taken};

/// Longest line on where files come from, in characters.
const MAX_SOURCE_CHARS: usize = 500;
/// Revisions read at once when the one that was installed last is looked for.
const PAGE: u32 = 100;

/// A request of the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallRequest {
    /// The team, `teams/{team}`.
    pub parent: String,
    /// Name of the skill.
    pub skill: String,
    /// Shelf of a new one; empty for the one that the front matter names, or none.
    pub category: String,
    /// The approved files.
    pub files: Files,
    /// Tree hash of the files installed last; empty for a first install.
    pub base_tree: String,
    /// Where they come from and what was approved.
    pub source: String,
    /// Makes a retry safe.
    pub request_id: String,
    /// Hash over everything else in the request.
    pub request_hash: String,
    /// Whether changes made here are given up where they cannot be merged.
    pub overwrite: bool,
    /// Whether to check everything and keep nothing.
    pub validate_only: bool,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installed {
    /// The skill as it is now.
    pub skill: SkillRecord,
    /// Paths in which both sides' changes stand.
    pub merged: Vec<SkillPath>,
    /// Paths whose changes made here were given up.
    pub overwritten: Vec<SkillPath>,
    /// Tree hash of the approved files: the base of the next update.
    pub base_tree: String,
}

impl Skills {
    /// Installs or updates. The caller must be the hub; its credential is the transport's to check.
    pub async fn install_skill(&self, actor: &Actor, request: &InstallRequest) -> Result<Installed, Error> {
        let (name, category) = parse(actor, request)?;
        let actor = &Actor {
            origin: Origin::Hub,
            ..actor.clone()
        };
        let key = RequestKey {
            scope: format!("hub/{}", actor.request_scope()),
            id: request.request_id.clone(),
            hash: request.request_hash.clone(),
        };
        if let Some(first) = self.replay::<Installed>(actor, &key).await? {
            return Ok(first);
        }
        match self.install(actor, request, (name, category), &key).await {
            Err(error) => self.first_answer_or(actor, &key, error).await,
            installed => installed,
        }
    }

    async fn install(
        &self,
        actor: &Actor,
        request: &InstallRequest,
        (name, category): (SkillId, Category),
        key: &RequestKey,
    ) -> Result<Installed, Error> {
        let _turn = self.turn(&actor.team, name.as_str()).await;
        for _ in 0..TRIES {
            let (change, installed) = match self.in_use(actor, &Scope::Hub, &name).await? {
                Some(record) => self.update(actor, request, &record).await?,
                None => self.first_install(actor, request, &name, &category).await?,
            };
            let is_done = change.revision.is_none();
            if request.validate_only || is_done {
                return Ok(installed);
            }
            match self.store.commit(answered(change, key, &installed)?).await {
                Ok(()) => return Ok(installed),
                Err(CommitError::Answered(first)) => return read_answer(&first, key),
                Err(error) => {
                    if let Some(error) = commit_error(error, actor, &installed.skill.full_name()) {
                        return Err(error);
                    }
                }
            }
        }
        Err(too_busy(name.as_str()))
    }

    async fn first_install(
        &self,
        actor: &Actor,
        request: &InstallRequest,
        name: &SkillId,
        category: &Category,
    ) -> Result<(Change, Installed), Error> {
        let (_, header) = check_files(&request.files, name.as_str())
            .header
            .map_err(|problem| invalid(name, problem))?;
        let category = if *category == Category::default() {
            header.category.clone()
        } else {
            category.clone()
        };
        let new = NewSkill {
            scope: Scope::Hub,
            name: name.clone(),
            category,
            provenance: Provenance::Hub,
            header,
            action: "install",
            reason: &request.source,
        };
        let change = self.new_record(actor, new, request.files.clone()).await?;
        let installed = installed(change.record.clone(), request, Vec::new(), Vec::new());
        Ok((change, installed))
    }

    async fn update(
        &self,
        actor: &Actor,
        request: &InstallRequest,
        record: &SkillRecord,
    ) -> Result<(Change, Installed), Error> {
        Self::pass_gates(actor, record, Action::Edit)?;
        if request.base_tree.is_empty() {
            return Err(Error::SkillExists {
                skill: record.full_name(),
                in_the_way: vec![record.full_name()],
            });
        }
        let (_, ours) = self.load(record).await?;
        let (files, merged, overwritten) = if record.tree == request.base_tree {
            (request.files.clone(), Vec::new(), Vec::new())
        } else {
            self.merged(record, request, &ours).await?
        };
        if tree_hash(&manifest(&files)) == record.tree {
            let change = Change::of(record.clone(), Some(record.version), None);
            return Ok((change, installed(record.clone(), request, merged, overwritten)));
        }
        let next = NextFiles {
            action: "install",
            reason: &request.source,
            before: &ours,
            theirs: &request.files,
            files,
        };
        let change = self.united_record(actor, record, next)?;
        let installed = installed(change.record.clone(), request, merged, overwritten);
        Ok((change, installed))
    }

    /// Both sides' changes over the files installed last; with what was merged and what given up.
    async fn merged(
        &self,
        record: &SkillRecord,
        request: &InstallRequest,
        ours: &Files,
    ) -> Result<(Files, Vec<SkillPath>, Vec<SkillPath>), Error> {
        let base = match self.with_tree(record, &request.base_tree).await? {
            Some(revision) => self.store.files(&record.team, &revision).await?,
            // Without it every file that differs is one that both sides have.
            None => Files::new(),
        };
        let both = merge::unite(&base, ours, &request.files, request.overwrite);
        if both.conflicts.is_empty() {
            return Ok((both.files, both.merged, both.overwritten));
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

fn parse(actor: &Actor, request: &InstallRequest) -> Result<(SkillId, Category), Error> {
    let mut violations = FieldViolations::new();
    check_request_id(&mut violations, &request.request_id);
    let team = violations.take("parent", parse_team(&request.parent));
    if team.is_some_and(|team: TeamId| team != actor.team) {
        violations.add("parent", "is not the team that the caller acts for");
    }
    if request.source.chars().count() > MAX_SOURCE_CHARS {
        violations.add("source", format!("must have at most {MAX_SOURCE_CHARS} characters"));
    }
    let name = violations.take("skill", parse_new_name(&request.skill));
    let category = violations.take("category", Category::parse(&request.category));
    match (name, category, violations.clone().into_result()) {
        (Some(name), Some(category), Ok(())) => Ok((name, category)),
        _ => Err(violations.into()),
    }
}

fn installed(
    skill: SkillRecord,
    request: &InstallRequest,
    merged: Vec<SkillPath>,
    overwritten: Vec<SkillPath>,
) -> Installed {
    Installed {
        skill,
        merged,
        overwritten,
        base_tree: tree_hash(&manifest(&request.files)),
    }
}

fn invalid(name: &SkillId, problem: String) -> Error {
    Error::SkillInvalid {
        skill: format!("hub/{name}"),
        violations: FieldViolations::one("files", problem),
    }
}
