//! The history of a skill: listing it, comparing two states, and making an older one the present one (`S-13`).

use std::collections::BTreeSet;
use std::fmt::Write as _;

use similar::TextDiff;
use steward_base::{FieldViolations, page};

use crate::actor::Actor;
use crate::error::Error;
use crate::gate::Action;
use crate::manage_skill::{Managed, Naming, check_request_id, check_result, short};
use crate::name::SkillName;
use crate::path::SkillPath;
use crate::record::{Files, NewRevision, Revision, SkillRecord};
use crate::skills::{Skills, TRIES, commit_error, parse_name, read_answer, too_busy};
use crate::store::{Change, CommitError, RequestKey};

const DEFAULT_PAGE: u32 = 50;
const MAX_PAGE: u32 = 200;
/// Longest diff in an answer, in bytes; a longer one is cut, visibly.
const MAX_DIFF_BYTES: usize = 1024 * 1024;

/// A request to make an older revision the present one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreRequest {
    /// Full resource name of the skill.
    pub name: String,
    /// Whose files it shall have.
    pub revision: String,
    /// The present revision as the caller knows it; empty for no check.
    pub base_revision: String,
    /// Makes a retry safe.
    pub request_id: String,
    /// Hash over everything else in the request.
    pub request_hash: String,
}

impl Skills {
    /// Revisions of a skill, newest first, and the token of the next page.
    pub async fn list_revisions(
        &self,
        actor: &Actor,
        name: &str,
        page_size: i32,
        page_token: &str,
    ) -> Result<(Vec<Revision>, String), Error> {
        let wanted = parse_name("parent", name)?;
        let size = page::size(page_size, DEFAULT_PAGE, MAX_PAGE)?;
        let bound = [actor.team.as_str(), name];
        let before = page::decode(&bound, page_token)?;
        let before = before.and_then(|number| number.parse::<u64>().ok());
        let record = self.resolve_resource(actor, &wanted).await?;
        let mut revisions = self
            .store
            .revisions(&record.team, &record.uid, before, size + 1)
            .await?;
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let more = revisions.len() > size;
        revisions.truncate(size);
        let last = revisions.last().filter(|_| more);
        let token = last.map_or_else(String::new, |last| page::encode(&bound, &last.number.to_string()));
        Ok((revisions, token))
    }

    /// A unified diff, a section per changed file. An empty `from` is nothing, an empty `to` the present state.
    pub async fn diff_revisions(&self, actor: &Actor, name: &str, from: &str, to: &str) -> Result<String, Error> {
        let record = self.resolve_resource(actor, &parse_name("name", name)?).await?;
        let old = if from.is_empty() {
            Files::new()
        } else {
            self.files_of(&record, from).await?.1
        };
        let to = if to.is_empty() { record.revision.as_str() } else { to };
        let (_, new) = self.files_of(&record, to).await?;
        Ok(diff(&old, &new))
    }

    pub(crate) async fn files_of(&self, record: &SkillRecord, id: &str) -> Result<(Revision, Files), Error> {
        let found = self.store.revision(&record.team, &record.uid, id).await?;
        let revision = found.ok_or_else(|| Error::RevisionNotFound {
            skill: record.full_name(),
            revision: short(id),
        })?;
        let files = self.store.files(&record.team, &revision).await?;
        Ok((revision, files))
    }

    /// Makes the files of an older revision the present ones, as a new revision.
    pub async fn restore_revision(&self, actor: &Actor, request: &RestoreRequest) -> Result<SkillRecord, Error> {
        let mut violations = FieldViolations::new();
        check_request_id(&mut violations, &request.request_id);
        violations.into_result()?;
        let wanted = parse_name("name", &request.name)?;
        let key = RequestKey {
            scope: actor.request_scope(),
            id: request.request_id.clone(),
            hash: request.request_hash.clone(),
        };
        if let Some(first) = self.replay::<Managed>(actor, &key).await? {
            return Ok(first.skill);
        }
        match self.restore(actor, request, &wanted, &key).await {
            // Sent twice at once, a request finds what it did itself in its way.
            Err(error) => Ok(self.first_answer_or::<Managed>(actor, &key, error).await?.skill),
            restored => restored,
        }
    }

    async fn restore(
        &self,
        actor: &Actor,
        request: &RestoreRequest,
        wanted: &SkillName,
        key: &RequestKey,
    ) -> Result<SkillRecord, Error> {
        let _turn = self.turn(&actor.team, &request.name).await;
        for _ in 0..TRIES {
            let record = self.resolve_resource(actor, wanted).await?;
            if !record.is_active() {
                return Err(Error::Archived {
                    skill: record.full_name(),
                });
            }
            Self::pass_gates(actor, &record, Action::RestoreRevision)?;
            self.check_read(actor, &record, &request.base_revision).await?;
            let (change, next) = self.revival(actor, &record, request, key).await?;
            match self.store.commit(change).await {
                Ok(()) => return Ok(next),
                Err(CommitError::Answered(first)) => return Ok(read_answer::<Managed>(&first, key)?.skill),
                Err(error) => {
                    if let Some(error) = commit_error(error, actor, &record.full_name()) {
                        return Err(error);
                    }
                }
            }
        }
        Err(too_busy(&request.name))
    }

    async fn revival(
        &self,
        actor: &Actor,
        record: &SkillRecord,
        request: &RestoreRequest,
        key: &RequestKey,
    ) -> Result<(Change, SkillRecord), Error> {
        let (_, files) = self.files_of(record, &request.revision).await?;
        // What was valid once is not measured by later limits, but it must still be this skill.
        check_result(
            &self.settings,
            actor,
            &record.full_name(),
            &record.name,
            &files,
            &files,
            Naming::Same,
        )?;
        let new = NewRevision {
            parent: Some(record),
            action: Action::RestoreRevision.as_str(),
            files: &files,
            by: actor.authorship("", &[]),
            restored_from: Some(request.revision.clone()),
            created: self.clock.now(),
        };
        let revision = new.seal(&record.uid);
        let mut next = record.after(&revision, &files);
        let mut change = Change::of(next.clone(), Some(record.version), Some((revision, files))).by(actor);
        change.is_patch = true;
        next.usage.patches += 1;
        next.usage.last_patched = Some(next.updated);
        let tool_text = format!("restored revision {} of {}", short(&request.revision), next.full_name());
        let managed = Managed {
            skill: next.clone(),
            tool_text,
            approximate: false,
            proposal: String::new(),
        };
        let encoded = serde_json::to_string(&managed).map_err(|error| crate::error::StoreFault::Internal {
            operation: "encode an answer",
            source: error.into(),
        })?;
        change.answer = Some((key.clone(), encoded));
        Ok((change, next))
    }
}

/// A unified diff of two states. Pure.
pub fn diff(old: &Files, new: &Files) -> String {
    let paths = old.keys().chain(new.keys()).collect::<BTreeSet<_>>();
    let mut out = String::new();
    for path in paths {
        let (before, after) = (old.get(path), new.get(path));
        if before == after {
            continue;
        }
        let section = section(path, before, after);
        if out.len() + section.len() > MAX_DIFF_BYTES {
            _ = writeln!(out, "--- the diff of {path} and of what follows is left out: too long");
            return out;
        }
        out.push_str(&section);
    }
    out
}

fn section(path: &SkillPath, before: Option<&Vec<u8>>, after: Option<&Vec<u8>>) -> String {
    let text =
        |bytes: Option<&Vec<u8>>| bytes.map_or(Some(String::new()), |bytes| String::from_utf8(bytes.clone()).ok());
    let from = before.map_or_else(|| "/dev/null".to_owned(), |_| format!("a/{path}"));
    let to = after.map_or_else(|| "/dev/null".to_owned(), |_| format!("b/{path}"));
    match (text(before), text(after)) {
        (Some(before), Some(after)) => TextDiff::from_lines(&before, &after)
            .unified_diff()
            .context_radius(3)
            .header(&from, &to)
            .to_string(),
        _ => format!("--- {from}\n+++ {to}\nbinary files differ\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_has_a_section_per_changed_file() {
        let path = |text: &str| SkillPath::parse(text).unwrap();
        let old = Files::from([
            (path("SKILL.md"), b"a\nb\n".to_vec()),
            (path("assets/x"), vec![0xff]),
            (path("same"), vec![1]),
        ]);
        let new = Files::from([
            (path("SKILL.md"), b"a\nc\n".to_vec()),
            (path("references/n"), b"n\n".to_vec()),
            (path("same"), vec![1]),
        ]);
        let text = diff(&old, &new);
        assert!(text.contains("--- a/SKILL.md\n+++ b/SKILL.md\n"), "{text}");
        assert!(text.contains("-b\n+c\n"), "{text}");
        assert!(
            text.contains("--- a/assets/x\n+++ /dev/null\nbinary files differ\n"),
            "{text}"
        );
        assert!(text.contains("--- /dev/null\n+++ b/references/n\n"), "{text}");
        assert!(!text.contains("same"), "{text}");
        assert_eq!(diff(&new, &new), "");
    }
}
