//! The registry's rules over a store: finding the skill that a caller means, and applying a change.
//!
//! Each operation is in the module of its verb. Nothing here trusts a field of a request for who the caller is; that is
//! [`Actor`]'s, from the credential.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use steward_base::names::{SkillId, TeamId};
use steward_base::{Clock, FieldViolations, IdGen, Role};
use steward_skill_scanner::Scanner;

use crate::actor::Actor;
use crate::error::Error;
use crate::external::{ExternalSource, Synced};
use crate::gate::{self, Action, Gate, GateState, Ruling};
use crate::header;
use crate::listing::Indexes;
use crate::name::{self, Reference, Scope, SkillName};
use crate::path::{self, SkillPath};
use crate::record::{Files, Found, HeaderState, Revision, SkillRecord};
use crate::settings::Settings;
use crate::store::{Change, CommitError, FirstAnswer, RequestKey, SkillStore};
use crate::turns::{Turn, Turns};

/// The registry. Clones of its parts are shared; one per process.
#[derive(Debug)]
pub struct Skills {
    pub(crate) store: Arc<dyn SkillStore>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdGen>,
    pub(crate) settings: Settings,
    /// Teams whose builtins were looked at since the start.
    seeded: Mutex<BTreeSet<TeamId>>,
    /// Judges what agents write; none where nobody is to.
    pub(crate) scanner: Option<Scanner>,
    pub(crate) external: Option<Arc<dyn ExternalSource>>,
    pub(crate) synced: Synced,
    pub(crate) indexes: Indexes,
    turns: Turns,
}

/// How often a change is tried anew when someone else was quicker and the caller did not say what it rests on.
pub(crate) const TRIES: usize = 5;

impl Skills {
    /// Over a store.
    pub fn new(store: Arc<dyn SkillStore>, clock: Arc<dyn Clock>, ids: Arc<dyn IdGen>, settings: Settings) -> Self {
        Self {
            store,
            clock,
            ids,
            settings,
            seeded: Mutex::default(),
            scanner: None,
            external: None,
            synced: Synced::default(),
            indexes: Indexes::default(),
            turns: Turns::new(),
        }
    }

    /// With the scanner's verdict on what agents write (`S-14`).
    #[must_use]
    pub fn with_scanner(mut self, scanner: Scanner) -> Self {
        self.scanner = Some(scanner);
        self
    }

    /// With skills from folders outside.
    #[must_use]
    pub fn with_external(mut self, source: Arc<dyn ExternalSource>) -> Self {
        self.external = Some(source);
        self
    }

    /// Sees to it that the team has what comes with Steward and what stands in folders outside, as it is now.
    pub(crate) async fn seed(&self, team: &TeamId) -> Result<(), Error> {
        self.seed_builtins(team).await?;
        self.sync_external(team).await
    }

    /// Waits until the others who write to the skill that `text` names are done.
    pub(crate) async fn turn(&self, team: &TeamId, text: &str) -> Turn<'_> {
        self.turns.take(team, text).await
    }

    pub(crate) fn is_seeded(&self, team: &TeamId) -> bool {
        self.seeded
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(team)
    }

    pub(crate) fn mark_seeded(&self, team: &TeamId) {
        self.seeded
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(team.clone());
    }

    /// The skill in use that `text` means, for the actor. Never guesses (`S-6`).
    pub(crate) async fn resolve_active(&self, actor: &Actor, text: &str) -> Result<SkillRecord, Error> {
        let record = self.resolve(actor, text).await?;
        if record.is_active() {
            Ok(record)
        } else {
            Err(Error::Archived {
                skill: record.full_name(),
            })
        }
    }

    /// The skill that `text` means: one in use before any archived one.
    pub(crate) async fn resolve(&self, actor: &Actor, text: &str) -> Result<SkillRecord, Error> {
        self.seed(&actor.team).await?;
        let reference = Reference::parse(text).map_err(|problem| FieldViolations::one("skill", problem.to_string()))?;
        let missing = || Error::SkillNotFound {
            skill: text.trim().to_owned(),
        };
        match &reference {
            Reference::Resource(resource) => self.resolve_resource(actor, resource).await,
            Reference::Parts(_) => {
                let name = reference.name().ok_or_else(missing)?;
                let found = self.store.named(&actor.team, &actor.scopes(), &name).await?;
                choose(found, &reference).ok_or_else(missing)?
            }
        }
    }

    /// The skill with this resource name.
    pub(crate) async fn resolve_resource(&self, actor: &Actor, resource: &SkillName) -> Result<SkillRecord, Error> {
        self.seed(&actor.team).await?;
        let missing = || Error::SkillNotFound {
            skill: resource.to_string(),
        };
        if !actor.sees(resource) {
            return Err(missing());
        }
        let scopes = [resource.scope.clone()];
        let mut found = self.store.named(&actor.team, &scopes, &resource.name).await?;
        if let Some(uid) = &resource.uid {
            found.retain(|found| uid_of(found) == uid);
        }
        pick(found, &resource.name.to_string(), |record| {
            name::resource_name(
                &record.team,
                &record.scope,
                &name::archived_id(&record.name, &record.uid),
            )
        })
        .ok_or_else(missing)?
    }

    /// The newest revision of a skill.
    pub(crate) async fn newest(&self, record: &SkillRecord) -> Result<Revision, Error> {
        let revision = self.store.revision(&record.team, &record.uid, &record.revision).await?;
        revision.ok_or_else(|| Error::RecordDamaged {
            skill: record.full_name(),
            problem: format!("its newest revision {} is missing", record.revision),
        })
    }

    /// The newest revision of a skill with its files.
    pub(crate) async fn load(&self, record: &SkillRecord) -> Result<(Revision, Files), Error> {
        let revision = self.newest(record).await?;
        let files = self.store.files(&record.team, &revision).await?;
        Ok((revision, files))
    }

    /// Asks the gates (`S-14`), strictest first: whose skill it is, then whose scope.
    pub(crate) fn pass_gates(actor: &Actor, record: &SkillRecord, action: Action) -> Result<Ruling, Error> {
        Self::pass_gates_of(actor, record, record.gate_state(), action)
    }

    /// The same for an action that takes a skill out of use: what a schedule names matters too.
    pub(crate) async fn pass_removal(
        &self,
        actor: &Actor,
        record: &SkillRecord,
        action: Action,
    ) -> Result<Ruling, Error> {
        let state = GateState {
            referenced: self.store.is_referenced(&record.team, &record.uid).await?,
            ..record.gate_state()
        };
        Self::pass_gates_of(actor, record, state, action)
    }

    fn pass_gates_of(actor: &Actor, record: &SkillRecord, state: GateState, action: Action) -> Result<Ruling, Error> {
        let ruling = gate::rule(actor.origin, state, action);
        match ruling {
            Ruling::Refuse(Gate::PinnedDelete) => {
                return Err(Error::Pinned {
                    skill: record.full_name(),
                });
            }
            Ruling::Refuse(gate) => return Err(refused(actor, record.full_name(), action.as_str(), gate)),
            Ruling::Allow | Ruling::AsArchive => {}
        }
        Self::pass_scope(actor, &record.scope, &record.full_name(), action.as_str())?;
        Ok(ruling)
    }

    /// Whether the actor writes in this scope at all.
    pub(crate) fn pass_scope(actor: &Actor, scope: &Scope, skill: &str, action: &'static str) -> Result<(), Error> {
        let required = match scope {
            Scope::User(_) => Role::Member,
            // A curation works for the whole team and is held by the provenance gate; other automatic writers work for
            // one person.
            Scope::Team if actor.origin == steward_base::Origin::Curation => return Ok(()),
            Scope::Team if actor.origin.is_automatic() => {
                return Err(refused(actor, skill.to_owned(), action, Gate::TeamLibrary));
            }
            Scope::Hub if actor.origin == steward_base::Origin::Hub => return Ok(()),
            Scope::Team | Scope::External | Scope::Hub | Scope::Builtin => Role::Maintainer,
        };
        if actor.role >= required {
            Ok(())
        } else {
            Err(Error::RoleRequired {
                role: actor.role,
                required,
            })
        }
    }

    /// What was answered to the request before, if anything.
    pub(crate) async fn replay<T: serde::de::DeserializeOwned>(
        &self,
        actor: &Actor,
        key: &RequestKey,
    ) -> Result<Option<T>, Error> {
        let first = self.store.first_answer(&actor.team, &key.scope, &key.id).await?;
        first.map(|first| read_answer(&first, key)).transpose()
    }

    /// What was answered to the request meanwhile; `error` if nothing was.
    pub(crate) async fn first_answer_or<T: serde::de::DeserializeOwned>(
        &self,
        actor: &Actor,
        key: &RequestKey,
        error: Error,
    ) -> Result<T, Error> {
        self.replay(actor, key).await?.ok_or(error)
    }
}

/// Takes the first answer apart, if it is to the same request.
pub(crate) fn read_answer<T: serde::de::DeserializeOwned>(first: &FirstAnswer, key: &RequestKey) -> Result<T, Error> {
    if first.hash != key.hash {
        return Err(Error::RequestIdReused {
            request_id: key.id.clone(),
        });
    }
    let damaged = |error: serde_json::Error| crate::error::StoreFault::Damaged {
        what: format!("an answer: {error}"),
    };
    Ok(serde_json::from_str(&first.answer).map_err(damaged)?)
}

/// What a failed commit means to the caller; `None` to try again from the present state.
pub(crate) fn commit_error(error: CommitError, actor: &Actor, skill: &str) -> Option<Error> {
    match error {
        CommitError::VersionMismatch | CommitError::Answered(_) => None,
        CommitError::InTheWay(in_the_way) => Some(Error::SkillExists {
            skill: skill.to_owned(),
            in_the_way: shorten(in_the_way),
        }),
        CommitError::Revoked => Some(refused(actor, skill.to_owned(), "activate", Gate::Revoked)),
        CommitError::StaleFence { current } => {
            let (job, fence) = actor.job.clone().map_or((String::new(), 0), |job| (job.id, job.fence));
            Some(Error::StaleFence { job, fence, current })
        }
        CommitError::Store(fault) => Some(fault.into()),
    }
}

/// The error after [`TRIES`] rounds in which others were quicker.
pub(crate) fn too_busy(skill: &str) -> Error {
    Error::StaleRevision {
        skill: skill.to_owned(),
        expected: "any".to_owned(),
        current: "changing".to_owned(),
    }
}

/// A list of names that is bounded in an answer: an error's text travels in a header.
pub(crate) fn shorten(mut names: Vec<String>) -> Vec<String> {
    const SHOWN: usize = 10;
    const SHOWN_BYTES: usize = 1_000;
    let mut bytes = 0;
    let fitting = names.iter().take(SHOWN).take_while(|name| {
        bytes += name.len();
        bytes <= SHOWN_BYTES
    });
    let shown = fitting.count();
    if names.len() > shown {
        let more = names.len() - shown;
        names.truncate(shown);
        names.push(format!("and {more} more"));
    }
    names
}

pub(crate) fn refused(actor: &Actor, skill: String, action: &'static str, gate: Gate) -> Error {
    if gate == Gate::Unreadable {
        return Error::RecordDamaged {
            skill,
            problem: "its provenance is not known".to_owned(),
        };
    }
    Error::GateRefused {
        skill,
        action,
        origin: actor.origin,
        gate,
    }
}

/// Parses a full resource name out of the field `field`.
pub fn parse_name(field: &str, text: &str) -> Result<SkillName, Error> {
    SkillName::parse(text).map_err(|problem| FieldViolations::one(field, problem.to_string()).into())
}

fn uid_of(found: &Found) -> &str {
    match found {
        Ok(record) => &record.uid,
        Err(broken) => &broken.uid,
    }
}

fn name_of(found: &Found) -> String {
    match found {
        Ok(record) => record.full_name(),
        Err(broken) => broken.skill.clone(),
    }
}

/// Among the skills of the right name the one that the reference means.
fn choose(found: Vec<Found>, reference: &Reference) -> Option<Result<SkillRecord, Error>> {
    let mut matching = found
        .into_iter()
        .filter(|found| reference.matches(&name_of(found)))
        .collect::<Vec<_>>();
    if matching.iter().any(|found| reference.is_exactly(&name_of(found))) {
        matching.retain(|found| reference.is_exactly(&name_of(found)));
    }
    pick(matching, &reference.to_string(), |record| {
        let id = name::archived_id(&record.name, &record.uid);
        if record.is_active() {
            record.full_name()
        } else {
            name::resource_name(&record.team, &record.scope, &id)
        }
    })
}

/// The only one in use; else the only archived one; else what is wrong.
fn pick(found: Vec<Found>, asked: &str, exact: impl Fn(&SkillRecord) -> String) -> Option<Result<SkillRecord, Error>> {
    let (mut active, mut archived, mut broken) = (Vec::new(), Vec::new(), None);
    for found in found {
        match found {
            Ok(record) if record.is_active() => active.push(record),
            Ok(record) => archived.push(record),
            Err(record) => broken = Some(record),
        }
    }
    // One that cannot be read could be the one in use, so an archived namesake does not answer for it.
    if let (true, Some(broken)) = (active.is_empty(), broken) {
        return Some(Err(Error::RecordDamaged {
            skill: broken.skill,
            problem: broken.problem,
        }));
    }
    let mut candidates = if active.is_empty() { archived } else { active };
    if candidates.len() > 1 {
        let candidates = shorten(candidates.iter().map(exact).collect());
        return Some(Err(Error::SkillAmbiguous {
            skill: asked.to_owned(),
            candidates,
        }));
    }
    candidates.pop().map(Ok)
}

impl SkillRecord {
    /// The record after a revision.
    pub(crate) fn after(&self, revision: &Revision, files: &Files) -> Self {
        let header = match files
            .get(&SkillPath::skill_md())
            .map(|bytes| header::parse_bytes(bytes))
        {
            Some(Ok(header)) => HeaderState::Read(Box::new(header)),
            Some(Err(error)) => HeaderState::Broken(error.to_string()),
            None => HeaderState::Broken("has no SKILL.md".to_owned()),
        };
        Self {
            version: self.version + 1,
            revision: revision.id.clone(),
            number: revision.number,
            tree: revision.tree.clone(),
            header,
            updated: revision.created,
            ..self.clone()
        }
    }
}

impl Change {
    /// A change without a caller's fence, request and reader.
    pub(crate) fn of(record: SkillRecord, expected: Option<u64>, revision: Option<(Revision, Files)>) -> Self {
        Self {
            record,
            expected,
            revision,
            beneath: None,
            is_patch: false,
            reader: None,
            fence: None,
            answer: None,
            decides: None,
        }
    }

    /// The same, under the actor's claim and read by it.
    pub(crate) fn by(mut self, actor: &Actor) -> Self {
        self.fence.clone_from(&actor.job);
        self.reader = actor.reader();
        self
    }
}

/// Parses the name of a skill that shall be made.
pub(crate) fn parse_new_name(text: &str) -> Result<SkillId, String> {
    let name = SkillId::parse(text.trim()).map_err(|problem| problem.to_string())?;
    if path::is_reserved(name.as_str()) {
        return Err("must not be a name that some systems keep for themselves".to_owned());
    }
    Ok(name)
}
