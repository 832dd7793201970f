//! Putting a whole library back as a snapshot says: an act of a maintainer, apart from the undoing of a run (`C-4`).
//!
//! Files, state and pins of what the team and its people own come back as new revisions; what was made since is set
//! aside. What comes with Steward gets its state and pin back, and what stands outside or was installed by the hub is left
//! to those. Each skill by itself, so that one in the way of another spoils nothing else.

use std::collections::BTreeMap;

use steward_base::FieldViolations;
use steward_base::names::{self, SkillId, TeamId};

use super::{AgeChange, Library, LibraryRecord, Outcome, Snapshot, SnapshotEntry, TransitionResult};
use crate::actor::Actor;
use crate::error::Error;
use crate::gate::{self, Action, Ruling};
use crate::name::Scope;
use crate::record::{Archival, NewRevision, SkillRecord, State};
use crate::store::Change;

/// How a skill shall be.
enum Wanted<'a> {
    /// As the snapshot says.
    As(&'a SnapshotEntry),
    /// Set aside, since it was made later.
    Aside,
}

impl Library {
    /// The snapshots that are kept, newest first.
    pub async fn list_snapshots(&self, actor: &Actor, parent: &str) -> Result<Vec<Snapshot>, Error> {
        let team = super::own_team(actor, parent)?;
        Ok(self.store.snapshots(&team).await?)
    }

    /// Puts the library back as the snapshot `name` says. The safety snapshot is named after the request, so that a
    /// repeated one goes on where the first stopped.
    pub async fn restore_snapshot(
        &self,
        actor: &Actor,
        name: &str,
        request_id: &str,
    ) -> Result<(Snapshot, Vec<TransitionResult>), Error> {
        let (team, run) = parse(actor, name, request_id)?;
        let restore = format!("restore-{request_id}");
        let before = self.snapshot(&team, &run).await?;
        let entries: BTreeMap<&str, &SnapshotEntry> =
            before.skills.iter().map(|entry| (entry.uid.as_str(), entry)).collect();
        for entry in before.skills.iter().filter(|entry| is_own(entry)) {
            if let Some(Ok(found)) = self.store.library_record(&team, &entry.uid).await? {
                self.load(&found.record, &entry.revision).await?;
            }
        }
        let safety = self.take_snapshot(actor, &team, &restore, Some(&run)).await?;
        let done = self.done(&team, &restore).await?;
        let mut results = Vec::new();
        // What was made since goes first: it may hold a name that comes back.
        let later = safety
            .skills
            .iter()
            .filter(|entry| !entries.contains_key(entry.uid.as_str()));
        let wanted = later
            .filter(|entry| is_own(entry))
            .map(|entry| (entry, Wanted::Aside))
            .chain(before.skills.iter().map(|entry| (entry, Wanted::As(entry))));
        for (entry, wanted) in wanted {
            if let Some(change) = done.get(&entry.uid) {
                results.push(change.applied());
                continue;
            }
            results.extend(self.put_back(actor, &team, &restore, entry, &wanted).await?);
        }
        Ok((safety, results))
    }

    /// What became of one skill; nothing if it is as it shall be.
    async fn put_back(
        &self,
        actor: &Actor,
        team: &TeamId,
        restore: &str,
        entry: &SnapshotEntry,
        wanted: &Wanted<'_>,
    ) -> Result<Option<TransitionResult>, Error> {
        let result = |from, to, outcome| TransitionResult {
            uid: entry.uid.clone(),
            name: entry.name.clone(),
            outcome,
            from,
            to,
        };
        let found = match self.store.library_record(team, &entry.uid).await? {
            None => return Ok(Some(result(entry.age(), entry.age(), Outcome::Conflict("gone")))),
            Some(Err(_)) => return Ok(Some(result(entry.age(), entry.age(), Outcome::Refused("unreadable")))),
            Some(Ok(found)) => found,
        };
        let (from, action) = (found.age(), action_of(wanted));
        if let Ruling::Refuse(gate) = gate::rule(actor.origin, found.record.gate_state(), action)
            && is_changed(&found, wanted)
        {
            return Ok(Some(result(from, from, Outcome::Refused(gate.as_str()))));
        }
        let Some(change) = self.change_back(actor, restore, &found, wanted).await? else {
            return Ok(None);
        };
        let to = change.log.to;
        Ok(Some(match self.commit(actor, change).await? {
            Outcome::Applied => result(from, to, Outcome::Applied),
            other => result(from, from, other),
        }))
    }

    async fn change_back(
        &self,
        actor: &Actor,
        restore: &str,
        found: &LibraryRecord,
        wanted: &Wanted<'_>,
    ) -> Result<Option<AgeChange>, Error> {
        if !is_changed(found, wanted) {
            return Ok(None);
        }
        let record = &found.record;
        let now = self.clock.now();
        let (revision, state, pinned, stale_since) = match wanted {
            Wanted::As(entry) if is_own(entry) => {
                (&entry.revision, entry.state.clone(), entry.pinned, entry.stale_since)
            }
            Wanted::As(entry) => (&record.revision, entry.state.clone(), entry.pinned, entry.stale_since),
            Wanted::Aside => {
                let archival = Archival {
                    at: now,
                    origin: actor.origin,
                    deleted: false,
                    absorbed_into: String::new(),
                };
                (&record.revision, State::Archived(archival), record.pinned, None)
            }
        };
        let (_, files) = self.load(record, revision).await?;
        let new = NewRevision {
            parent: Some(record),
            action: action_of(wanted).as_str(),
            files: &files,
            by: actor.authorship("the library is put back as a snapshot says", &[]),
            restored_from: Some(revision.clone()),
            created: now,
        };
        let revision = new.seal(&record.uid);
        let next = SkillRecord {
            pinned,
            state,
            ..record.after(&revision, &files)
        };
        let change = Change::of(next, Some(record.version), Some((revision, files)));
        Ok(Some(AgeChange::new(actor, restore, found, change, stale_since)))
    }
}

/// Whether the skill is the team's or a person's own, and not somebody else's to keep.
fn is_own(entry: &SnapshotEntry) -> bool {
    entry.name.starts_with("teams/")
}

const fn action_of(wanted: &Wanted<'_>) -> Action {
    match wanted {
        Wanted::As(_) => Action::RestoreRevision,
        Wanted::Aside => Action::Archive,
    }
}

fn is_changed(found: &LibraryRecord, wanted: &Wanted<'_>) -> bool {
    let record = &found.record;
    match (wanted, &record.scope) {
        (_, Scope::External | Scope::Hub) => false,
        (Wanted::Aside, _) => record.is_active(),
        (Wanted::As(entry), scope) => {
            let other_files = record.revision != entry.revision && *scope != Scope::Builtin;
            other_files || found.age() != entry.age() || record.pinned != entry.pinned
        }
    }
}

fn parse(actor: &Actor, name: &str, request_id: &str) -> Result<(TeamId, String), Error> {
    let mut violations = FieldViolations::new();
    let pattern = "teams/{team}/librarySnapshots/{snapshot}";
    let parts = violations.take("name", names::segments(name, ["teams", "librarySnapshots"], pattern));
    // It becomes part of a resource name.
    violations.take("request_id", SkillId::parse(request_id));
    let team = parts.and_then(|[team, _]| violations.take("name", TeamId::parse(team)));
    let run = parts.map(|[_, run]| run.to_owned());
    match (team, run, violations.clone().into_result()) {
        (Some(team), Some(run), Ok(())) if team == actor.team => Ok((team, run)),
        // Another team's is as if it did not exist.
        (Some(_), Some(_), Ok(())) => Err(Error::SnapshotNotFound {
            snapshot: name.to_owned(),
        }),
        _ => Err(violations.into()),
    }
}
