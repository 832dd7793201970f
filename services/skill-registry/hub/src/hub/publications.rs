//! Publishing: a skill of the team is looked at like one from outside, packed, and given out as it then is.

use std::collections::BTreeMap;

use steward_skill_scanner::{Verdict, header, structure};

use super::{Actor, Hub, event};
use crate::audit::Action;
use crate::error::Error;
use crate::policy::Trust;
use crate::publish::{Draft, Publication, pack, publication};
use crate::quarantine::told;

impl Hub {
    /// Publishes a skill in place of what was published under its name. What is dangerous or withdrawn is not given out.
    pub async fn publish(&self, actor: Actor<'_>, draft: Draft) -> Result<Publication, Error> {
        let problems = structure::check(&draft.tree, Some(&draft.name), &self.parts.limits);
        if !problems.is_empty() {
            return Err(Error::Structure {
                problems: told(&problems),
            });
        }
        self.check_standing(actor.team, &draft.tree.digest()).await?;
        let report = self.scan(actor.team, &draft.tree, &draft.name).await?;
        if report.verdict == Verdict::Dangerous {
            return Err(Error::Blocked {
                verdict: report.verdict,
                trust: Trust::AgentCreated.as_str(),
            });
        }
        let text = draft
            .tree
            .get("SKILL.md")
            .map(|file| String::from_utf8_lossy(&file.bytes));
        let head = text.as_deref().and_then(|text| header::parse(text).ok());
        let description = head.map(|head| head.description).unwrap_or_default();
        let (archive, now) = (pack(&draft.tree)?, self.parts.clock.now());
        let publication = publication(draft, &archive, description, actor.user, now);
        let facts = [
            ("digest", publication.tree.clone()),
            ("archive", publication.archive.clone()),
            ("revision", publication.revision.clone()),
            ("verdict", report.verdict.to_string()),
        ];
        let facts = facts.map(|(key, value)| (key.to_owned(), value)).into();
        let event = event(Action::Publish, &publication.name, actor, facts);
        let store = &self.parts.store;
        store.publish(actor.team, &publication, archive, now, event).await?;
        Ok(publication)
    }

    /// Ends a publication.
    pub async fn unpublish(&self, actor: Actor<'_>, name: &str) -> Result<(), Error> {
        let event = event(Action::Unpublish, name, actor, BTreeMap::new());
        let now = self.parts.clock.now();
        let ended = self.parts.store.unpublish(actor.team, name, now, event).await?;
        if ended {
            return Ok(());
        }
        Err(Error::NotPublished { name: name.to_owned() })
    }

    /// What the team publishes, by name.
    pub async fn publications(&self, team: &str) -> Result<Vec<Publication>, Error> {
        Ok(self.parts.store.publications(team).await?)
    }

    /// What of it is given out now: nothing whose tree is withdrawn.
    pub async fn served(&self, team: &str) -> Result<Vec<Publication>, Error> {
        let withdrawn = self.withdrawals(team).await?;
        let mut all = self.publications(team).await?;
        all.retain(|publication| {
            let mut about = withdrawn
                .iter()
                .filter(|withdrawal| withdrawal.digest == publication.tree);
            !about.any(crate::withdrawal::Withdrawal::is_in_force)
        });
        Ok(all)
    }

    /// The archive of a publication, byte for byte.
    pub async fn archive(&self, team: &str, publication: &Publication) -> Result<Option<Vec<u8>>, Error> {
        Ok(self
            .parts
            .store
            .archive(team, &publication.name, &publication.archive)
            .await?)
    }
}
