//! Skills from files: judged, taken in as they are byte for byte, or given to a skill that is there (`S-1`).

use serde::{Deserialize, Serialize};
use steward_base::names::SkillId;
use steward_base::{FieldViolations, Origin};

use crate::actor::Actor;
use crate::conformance::{self, Report};
use crate::error::{Error, StoreFault};
use crate::gate::{Action, Provenance};
use crate::header::{self, Header};
use crate::manage_skill::{Naming, check_request_id, check_result};
use crate::merge;
use crate::name::{self, Category, Scope};
use crate::path::SkillPath;
use crate::record::{Files, HeaderState, NewRevision, Revision, SkillRecord, State, Usage, manifest, tree_hash};
use crate::skills::{Skills, TRIES, commit_error, parse_new_name, read_answer, too_busy};
use crate::store::{Change, CommitError, RequestKey};

/// What files would be as a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// How they follow the specification.
    pub report: Report,
    /// Their header and the name that an import would give them, or why they cannot be used.
    pub header: Result<(SkillId, Header), String>,
}

/// A request to take files in.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a choice of the caller and independent of the others"
)]
pub struct ImportRequest {
    /// The files.
    pub files: Files,
    /// The folder that held them; empty if unknown.
    pub folder: String,
    /// Shelf; empty for the one that the front matter names, or none.
    pub category: String,
    /// Whether they go to the team's library.
    pub in_team: bool,
    /// Whether a skill of this name gets the files.
    pub replace: bool,
    /// Makes a retry safe.
    pub request_id: String,
    /// Hash over everything else in the request.
    pub request_hash: String,
    /// Whether to check everything and keep nothing.
    pub validate_only: bool,
    /// Whether changes made here are given up where they cannot be merged.
    pub overwrite: bool,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The skill as it is now.
    pub skill: SkillRecord,
    /// How the files follow the specification.
    pub report: Report,
    /// Whether it had these very files, or had taken them in before and was only changed here since.
    pub unchanged: bool,
    /// Paths in which both sides' changes stand.
    pub merged: Vec<SkillPath>,
    /// Paths whose changes made here were given up.
    pub overwritten: Vec<SkillPath>,
    /// What cannot be merged; only when nothing was to be kept, else it is an error.
    pub conflicts: Vec<Conflict>,
}

/// A file in which both sides changed the same lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The file.
    pub path: SkillPath,
    /// From what is here to what would come in, as a unified diff.
    pub diff: String,
}

/// What is kept as the first answer.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Merges {
    merged: Vec<SkillPath>,
    overwritten: Vec<SkillPath>,
}

/// The same with the skill.
#[derive(Serialize, Deserialize)]
struct Answer {
    skill: SkillRecord,
    #[serde(flatten)]
    merges: Merges,
}

/// What an import comes to before anything is kept.
struct Planned {
    answer: Answer,
    /// None when there is nothing to do.
    change: Option<Change>,
    conflicts: Vec<Conflict>,
}

/// A skill's next files, drawn from those of a source.
pub(crate) struct NextFiles<'a> {
    pub(crate) action: &'a str,
    pub(crate) reason: &'a str,
    /// What is here.
    pub(crate) before: &'a Files,
    /// What the source has.
    pub(crate) theirs: &'a Files,
    /// What shall be.
    pub(crate) files: Files,
}

/// A skill that is to be made of files, for [`Skills::new_record`].
pub(crate) struct NewSkill<'a> {
    pub(crate) scope: Scope,
    pub(crate) name: SkillId,
    pub(crate) category: Category,
    pub(crate) provenance: Provenance,
    pub(crate) header: Header,
    pub(crate) action: &'a str,
    pub(crate) reason: &'a str,
}

/// Judges files without keeping anything. Pure.
pub fn check_files(files: &Files, folder: &str) -> Checked {
    let report = conformance::check(files, folder);
    let header = read(files).and_then(|header| Ok((name_for(&header, folder)?, header)));
    Checked { report, header }
}

fn read(files: &Files) -> Result<Header, String> {
    let bytes = files.get(&SkillPath::skill_md()).ok_or("has no SKILL.md at the top")?;
    header::parse_bytes(bytes).map_err(|problem| format!("SKILL.md {problem}"))
}

/// The name that these files get here: the front matter's own, else what is left of it as a name, else the folder's.
fn name_for(header: &Header, folder: &str) -> Result<SkillId, String> {
    let candidates = [header.name.clone(), name::slug(&header.name), name::slug(folder)];
    let usable = candidates.iter().find_map(|name| parse_new_name(name).ok());
    usable.ok_or_else(|| {
        format!(
            "its name {:?} cannot be made one of lower-case letters, digits and hyphens; say how its folder is called",
            crate::index::neutral(&header.name)
        )
    })
}

impl Skills {
    /// Makes a skill from files, or gives an existing one these files as a new revision.
    pub async fn import_skill(&self, actor: &Actor, request: &ImportRequest) -> Result<Imported, Error> {
        let mut violations = FieldViolations::new();
        check_request_id(&mut violations, &request.request_id);
        let category = violations.take("category", Category::parse(&request.category));
        if actor.user.is_none() && !request.in_team {
            violations.add("scope", "must be the team, since the caller acts for no person");
        }
        let (Some(category), Ok(())) = (category, violations.clone().into_result()) else {
            return Err(violations.into());
        };
        // Files from outside are an import, whoever brings them.
        let actor = &Actor {
            origin: Origin::Import,
            ..actor.clone()
        };
        let checked = check_files(&request.files, &request.folder);
        let (name, header) = checked.header.map_err(|problem| Error::SkillInvalid {
            skill: name::slug(&request.folder),
            violations: FieldViolations::one("files", problem),
        })?;
        let key = RequestKey {
            scope: actor.request_scope(),
            id: request.request_id.clone(),
            hash: request.request_hash.clone(),
        };
        let imported = |answer: Answer, unchanged, conflicts| Imported {
            skill: answer.skill,
            report: checked.report.clone(),
            unchanged,
            merged: answer.merges.merged,
            overwritten: answer.merges.overwritten,
            conflicts,
        };
        if let Some(first) = self.replay::<Answer>(actor, &key).await? {
            return Ok(imported(first, false, Vec::new()));
        }
        let place = (name, category, header);
        match self.import(actor, request, place, &key).await {
            Ok((answer, unchanged, conflicts)) => Ok(imported(answer, unchanged, conflicts)),
            Err(error) => {
                let first = self.first_answer_or::<Answer>(actor, &key, error).await?;
                Ok(imported(first, false, Vec::new()))
            }
        }
    }

    async fn import(
        &self,
        actor: &Actor,
        request: &ImportRequest,
        (name, category, header): (SkillId, Category, Header),
        key: &RequestKey,
    ) -> Result<(Answer, bool, Vec<Conflict>), Error> {
        self.seed(&actor.team).await?;
        let scope = match (&actor.user, request.in_team) {
            (Some(user), false) => Scope::User(user.clone()),
            _ => Scope::Team,
        };
        let category = if category == Category::default() {
            header.category.clone()
        } else {
            category
        };
        let _turn = self.turn(&actor.team, name.as_str()).await;
        for _ in 0..TRIES {
            let planned = match self.in_use(actor, &scope, &name).await? {
                Some(record) if request.replace => self.update_by(actor, request, record).await?,
                // With a namesake in the way `check_room` says so.
                _ => {
                    let new = NewSkill {
                        scope: scope.clone(),
                        name: name.clone(),
                        category: category.clone(),
                        provenance: Provenance::of_creation(actor.origin),
                        header: header.clone(),
                        action: "import",
                        reason: "",
                    };
                    planned(
                        self.new_record(actor, new, request.files.clone()).await?,
                        Merges::default(),
                    )
                }
            };
            let Planned {
                answer,
                change,
                conflicts,
            } = planned;
            let is_done = change.is_none() && conflicts.is_empty();
            let Some(change) = change else {
                return Ok((answer, is_done, conflicts));
            };
            let committed = if request.validate_only {
                self.store.dry_run(change).await
            } else {
                self.store.commit(answered(change, key, &answer)?).await
            };
            match committed {
                Ok(()) => return Ok((answer, false, Vec::new())),
                Err(CommitError::Answered(first)) => {
                    return Ok((read_answer::<Answer>(&first, key)?, false, Vec::new()));
                }
                Err(error) => {
                    if let Some(error) = commit_error(error, actor, &answer.skill.full_name()) {
                        return Err(error);
                    }
                }
            }
        }
        Err(too_busy(name.as_str()))
    }

    /// The change that brings a skill up to its source: replaced where nothing was changed here, else united with what was
    /// (D-58).
    async fn update_by(&self, actor: &Actor, request: &ImportRequest, record: SkillRecord) -> Result<Planned, Error> {
        let nothing = |skill: SkillRecord, conflicts| Planned {
            answer: Answer {
                skill,
                merges: Merges::default(),
            },
            change: None,
            conflicts,
        };
        if record.tree == tree_hash(&manifest(&request.files)) {
            return Ok(nothing(record, Vec::new()));
        }
        Self::pass_gates(actor, &record, Action::Edit)?;
        let (_, before) = self.load(&record).await?;
        let both = self.with_source(&record, &before, request).await?;
        if !both.conflicts.is_empty() {
            if !request.validate_only {
                return Err(Error::MergeConflict {
                    skill: record.full_name(),
                    paths: both.conflicts.iter().map(SkillPath::to_string).collect(),
                });
            }
            let conflicts = both.conflicts.into_iter();
            let conflicts = conflicts.map(|path| conflict(path, &before, &request.files)).collect();
            return Ok(nothing(record, conflicts));
        }
        if both.files == before {
            return Ok(nothing(record, Vec::new()));
        }
        let next = NextFiles {
            action: "import",
            reason: "",
            before: &before,
            theirs: &request.files,
            files: both.files,
        };
        let change = self.united_record(actor, &record, next)?;
        let merges = Merges {
            merged: both.merged,
            overwritten: both.overwritten,
        };
        Ok(planned(change, merges))
    }

    /// What is here and what would come in, over what came in last.
    async fn with_source(
        &self,
        record: &SkillRecord,
        before: &Files,
        request: &ImportRequest,
    ) -> Result<merge::United, Error> {
        let base = match self.last_import(record).await? {
            Some(revision) if revision.tree == record.tree => {
                // Nothing was changed here since.
                return Ok(merge::United {
                    files: request.files.clone(),
                    ..merge::United::default()
                });
            }
            Some(revision) => self.store.files(&record.team, &revision).await?,
            // It never came from anywhere: every file that differs is one that both sides have.
            None => Files::new(),
        };
        Ok(merge::unite(&base, before, &request.files, request.overwrite))
    }

    /// The newest revision whose files are an import's, as they came.
    async fn last_import(&self, record: &SkillRecord) -> Result<Option<Revision>, Error> {
        self.newest_that(record, |revision| revision.action == "import").await
    }

    /// The skill in use of this scope and name. One that cannot be read is an error: nothing is put beside it.
    pub(crate) async fn in_use(
        &self,
        actor: &Actor,
        scope: &Scope,
        name: &SkillId,
    ) -> Result<Option<SkillRecord>, Error> {
        let found = self.store.named(&actor.team, std::slice::from_ref(scope), name).await?;
        for found in found {
            match found {
                Ok(record) if record.is_active() => return Ok(Some(record)),
                Ok(_) => {}
                Err(broken) => {
                    return Err(Error::RecordDamaged {
                        skill: broken.skill,
                        problem: broken.problem,
                    });
                }
            }
        }
        Ok(None)
    }

    /// The change that makes a skill of files; checks, guard and room included.
    pub(crate) async fn new_record(&self, actor: &Actor, new: NewSkill<'_>, files: Files) -> Result<Change, Error> {
        let full_name = name::full_name(&new.scope, &new.category, &new.name);
        Self::pass_scope(actor, &new.scope, &full_name, "create")?;
        let none = Files::new();
        check_result(
            &self.settings,
            actor,
            &full_name,
            &new.name,
            &none,
            &files,
            Naming::AsImported,
        )?;
        self.screen(actor, &full_name, &none, &files)?;
        self.check_room(actor, &new.scope, &new.category, &new.name).await?;
        let uid = self.ids.new_id();
        let revision = NewRevision {
            parent: None,
            action: new.action,
            files: &files,
            by: actor.authorship(new.reason, &[]),
            restored_from: None,
            created: self.clock.now(),
        };
        let revision = revision.seal(&uid);
        let record = SkillRecord {
            team: actor.team.clone(),
            uid,
            scope: new.scope,
            name: new.name,
            category: new.category,
            provenance: new.provenance,
            author: actor.user.clone(),
            pinned: false,
            protected: false,
            state: State::Active,
            version: 1,
            revision: revision.id.clone(),
            number: revision.number,
            tree: revision.tree.clone(),
            header: HeaderState::Read(Box::new(new.header)),
            usage: Usage::default(),
            created: revision.created,
            updated: revision.created,
        };
        Ok(Change::of(record, None, Some((revision, files))).by(actor))
    }

    /// The change that gives a skill a source's files, or what they and changes made here come to. Then the source's files
    /// are a revision too, right before it, so that the next update knows what it rests on.
    pub(crate) fn united_record(
        &self,
        actor: &Actor,
        record: &SkillRecord,
        next: NextFiles<'_>,
    ) -> Result<Change, Error> {
        let NextFiles {
            action,
            reason,
            before,
            theirs,
            files,
        } = next;
        if files == *theirs {
            return self.next_record(actor, record, action, reason, before, files);
        }
        let source = NewRevision {
            parent: Some(record),
            action,
            files: theirs,
            by: actor.authorship(reason, &[]),
            restored_from: None,
            created: self.clock.now(),
        };
        let source = source.seal(&record.uid);
        let beneath = record.after(&source, theirs);
        let mut change = self.next_record(actor, &beneath, "merge", reason, before, files)?;
        change.expected = Some(record.version);
        change.record.version = record.version + 1;
        if let Some((revision, _)) = &mut change.revision {
            // Lines that were here before keep their origin (`S-13`).
            revision.restored_from = Some(record.revision.clone());
        }
        change.beneath = Some((source, theirs.clone()));
        Ok(change)
    }

    /// The change that gives a skill other files as a new revision; checks and guard included, gates not.
    pub(crate) fn next_record(
        &self,
        actor: &Actor,
        record: &SkillRecord,
        action: &str,
        reason: &str,
        before: &Files,
        files: Files,
    ) -> Result<Change, Error> {
        let full_name = record.full_name();
        check_result(
            &self.settings,
            actor,
            &full_name,
            &record.name,
            before,
            &files,
            Naming::AsImported,
        )?;
        self.screen(actor, &full_name, before, &files)?;
        let revision = NewRevision {
            parent: Some(record),
            action,
            files: &files,
            by: actor.authorship(reason, &[]),
            restored_from: None,
            created: self.clock.now(),
        };
        let revision = revision.seal(&record.uid);
        let next = record.after(&revision, &files);
        let mut change = Change::of(next, Some(record.version), Some((revision, files))).by(actor);
        change.is_patch = true;
        Ok(change)
    }
}

fn planned(change: Change, merges: Merges) -> Planned {
    Planned {
        answer: Answer {
            skill: change.record.clone(),
            merges,
        },
        change: Some(change),
        conflicts: Vec::new(),
    }
}

fn conflict(path: SkillPath, ours: &Files, theirs: &Files) -> Conflict {
    let only = |files: &Files| {
        let file = files.get(&path).map(|bytes| (path.clone(), bytes.clone()));
        file.into_iter().collect::<Files>()
    };
    let diff = crate::revisions::diff(&only(ours), &only(theirs));
    Conflict { path, diff }
}

/// The change with what is answered to the request from now on.
pub(crate) fn answered<T: Serialize>(mut change: Change, key: &RequestKey, answer: &T) -> Result<Change, Error> {
    let encoded = serde_json::to_string(answer).map_err(|error| StoreFault::Internal {
        operation: "encode an answer",
        source: error.into(),
    })?;
    change.answer = Some((key.clone(), encoded));
    Ok(change)
}

#[cfg(test)]
mod tests;
