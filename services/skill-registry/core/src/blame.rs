//! Where each line of a file comes from: the revision that put it there, and with it who and on what evidence (`S-13`).

use std::collections::{BTreeMap, BTreeSet};

use similar::{ChangeTag, TextDiff};
use steward_base::FieldViolations;

use crate::actor::Actor;
use crate::error::Error;
use crate::path::SkillPath;
use crate::record::Revision;
use crate::skills::{Skills, parse_name};

/// Revisions read at once.
const PAGE: u32 = 100;
/// Most revisions that are followed back; lines that are older are the oldest one's.
const MOST_REVISIONS: usize = 2_000;

/// Lines that came in together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlamedLines {
    /// First line, from 1.
    pub first: usize,
    /// How many.
    pub count: usize,
    /// As they are.
    pub text: String,
    /// Place in [`Blame::revisions`].
    pub revision: usize,
}

/// A file with the origin of its lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blame {
    /// In their order, grouped.
    pub lines: Vec<BlamedLines>,
    /// What `lines` point at.
    pub revisions: Vec<Revision>,
}

/// The lines of a file, each with the number of the revision that put it there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Origins {
    text: String,
    numbers: Vec<u64>,
}

impl Origins {
    /// The file after revision `number` gave it `text`.
    pub(crate) fn after(&self, text: &str, number: u64) -> Self {
        let mut numbers = Vec::new();
        let old = self.text.split_inclusive('\n').collect::<Vec<_>>();
        let new = text.split_inclusive('\n').collect::<Vec<_>>();
        for change in TextDiff::from_slices(&old, &new).iter_all_changes() {
            match (change.tag(), change.old_index()) {
                (ChangeTag::Equal, Some(old)) => numbers.push(self.numbers.get(old).copied().unwrap_or(number)),
                (ChangeTag::Insert, _) => numbers.push(number),
                (ChangeTag::Equal | ChangeTag::Delete, _) => {}
            }
        }
        Self {
            text: text.to_owned(),
            numbers,
        }
    }

    /// Neighbouring lines of one revision together; `place` says where a revision stands.
    fn grouped(&self, mut place: impl FnMut(u64) -> usize) -> Vec<BlamedLines> {
        let mut groups: Vec<BlamedLines> = Vec::new();
        for (index, (line, number)) in self.text.split_inclusive('\n').zip(&self.numbers).enumerate() {
            let revision = place(*number);
            match groups.last_mut().filter(|group| group.revision == revision) {
                Some(group) => {
                    group.count += 1;
                    group.text.push_str(line);
                }
                None => groups.push(BlamedLines {
                    first: index + 1,
                    count: 1,
                    text: line.to_owned(),
                    revision,
                }),
            }
        }
        groups
    }
}

impl Skills {
    /// The origin of each line of a file, as of `revision` or the present one. A line that was taken out and brought back
    /// by restoring a revision keeps its first origin.
    pub async fn blame_file(&self, actor: &Actor, name: &str, path: &str, revision: &str) -> Result<Blame, Error> {
        let path = if path.is_empty() {
            Ok(SkillPath::skill_md())
        } else {
            SkillPath::parse(path)
        };
        let path = path.map_err(|problem| FieldViolations::one("path", problem.to_string()))?;
        let record = self.resolve_resource(actor, &parse_name("name", name)?).await?;
        let newest = if revision.is_empty() {
            self.newest(&record).await?
        } else {
            self.files_of(&record, revision).await?.0
        };
        if !newest.files.iter().any(|entry| entry.path == path) {
            let files = newest.files.iter().map(|entry| &entry.path);
            return Err(crate::manage_skill::missing(&record, files, &path));
        }
        let mut history = self.history(&record.team, &record.uid, newest.number).await?;
        history.reverse();
        let wanted = history
            .iter()
            .filter_map(|revision| revision.restored_from.clone())
            .collect::<BTreeSet<_>>();
        let (mut kept, mut now, mut sha256) = (BTreeMap::new(), Origins::default(), "");
        for revision in &history {
            let entry = revision.files.iter().find(|entry| entry.path == path);
            let restored = revision.restored_from.as_ref().and_then(|id| kept.get(id));
            match (entry, restored) {
                (None, _) => (now, sha256) = (Origins::default(), ""),
                (Some(entry), _) if entry.sha256 == sha256 => {}
                (Some(entry), restored) => {
                    let only = Revision {
                        files: vec![entry.clone()],
                        ..revision.clone()
                    };
                    let bytes = self
                        .store
                        .files(&record.team, &only)
                        .await?
                        .remove(&path)
                        .unwrap_or_default();
                    let text = String::from_utf8(bytes)
                        .map_err(|_| FieldViolations::one("path", "was no text in every revision; it has no lines"))?;
                    // What was brought back goes by what it was then, and may hold more than that.
                    let before = restored.and_then(Option::as_ref).unwrap_or(&now);
                    now = before.after(&text, revision.number);
                    sha256 = &entry.sha256;
                }
            }
            if wanted.contains(&revision.id) {
                kept.insert(revision.id.clone(), entry.map(|_| now.clone()));
            }
        }
        Ok(told(&now, &history))
    }

    /// The revisions up to this number, newest first.
    async fn history(
        &self,
        team: &steward_base::names::TeamId,
        uid: &str,
        number: u64,
    ) -> Result<Vec<Revision>, Error> {
        let (mut history, mut before) = (Vec::new(), number + 1);
        while history.len() < MOST_REVISIONS {
            let page = self.store.revisions(team, uid, Some(before), PAGE).await?;
            let Some(last) = page.last() else { break };
            before = last.number;
            history.extend(page);
        }
        Ok(history)
    }
}

fn told(origins: &Origins, history: &[Revision]) -> Blame {
    let mut revisions: Vec<Revision> = Vec::new();
    let lines = origins.grouped(|number| {
        let known = revisions.iter().position(|revision| revision.number == number);
        known.unwrap_or_else(|| {
            revisions.extend(history.iter().find(|revision| revision.number == number).cloned());
            revisions.len().saturating_sub(1)
        })
    });
    Blame { lines, revisions }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_is_its_first_revisions_until_it_changes() {
        let first = Origins::default().after("a\nb\nc\n", 1);
        let second = first.after("a\nB\nc\nd", 2);
        let third = second.after("new\na\nB\nc\nd", 3);
        assert_eq!(third.numbers, [3, 1, 2, 1, 2]);
        let groups = third.grouped(|number| usize::try_from(number).unwrap());
        let told = groups
            .iter()
            .map(|group| (group.first, group.count, group.text.as_str(), group.revision));
        assert_eq!(
            told.collect::<Vec<_>>(),
            [
                (1, 1, "new\n", 3),
                (2, 1, "a\n", 1),
                (3, 1, "B\n", 2),
                (4, 1, "c\n", 1),
                (5, 1, "d", 2)
            ]
        );
    }

    proptest! {
        #[test]
        fn every_line_has_an_origin_and_none_is_lost(texts in proptest::collection::vec("([ab\r]{0,2}\n?){0,6}", 1..6)) {
            let mut origins = Origins::default();
            for (number, text) in (1..).zip(&texts) {
                origins = origins.after(text, number);
            }
            let last = texts.last().unwrap();
            let told = origins.grouped(|_| 0).iter().map(|group| group.text.clone()).collect::<String>();
            prop_assert_eq!(&told, last);
            prop_assert_eq!(origins.numbers.len(), last.split_inclusive('\n').count());
        }
    }
}
