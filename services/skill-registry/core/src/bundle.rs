//! Bundles: skills that are opened together under one slug (`S-17`). A bundle names skills and holds none.

use serde::{Deserialize, Serialize};
use steward_base::names::{NameError, SkillId, TeamId, UserId};
use steward_base::{FieldViolations, Role, Timestamp};

use crate::actor::Actor;
use crate::error::Error;
use crate::name::{self, Reference};
use crate::screen;
use crate::skills::Skills;
use crate::store::CommitError;

/// Most bundles of one scope.
pub const MOST_BUNDLES: usize = 100;
/// Most skills of one bundle.
pub const MOST_SKILLS: usize = 20;
const MAX_DESCRIPTION_CHARS: usize = 200;
const MAX_INSTRUCTION_CHARS: usize = 4_000;
const PATTERN: &str = "teams/{team}/users/{user}/bundles/{bundle} or teams/{team}/bundles/{bundle}";

/// Which bundle.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BundleKey {
    /// The tenant.
    pub team: TeamId,
    /// Whose; none for the team's.
    pub owner: Option<UserId>,
    /// Its slug.
    pub slug: SkillId,
}

/// A bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bundle {
    /// Which one.
    pub key: BundleKey,
    /// One line that says what it is for.
    pub description: String,
    /// What it names, in the order in which it is opened.
    pub skills: Vec<String>,
    /// What the agent is told beside them; may be empty.
    pub instruction: String,
    /// +1 with every change.
    pub version: u64,
    /// When it was made.
    pub created: Timestamp,
    /// When it last changed.
    pub updated: Timestamp,
}

/// What a bundle shall be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SaveRequest {
    /// As typed; becomes a slug.
    pub slug: String,
    /// Whether it is the team's.
    pub in_team: bool,
    /// See [`Bundle::description`].
    pub description: String,
    /// See [`Bundle::skills`].
    pub skills: Vec<String>,
    /// See [`Bundle::instruction`].
    pub instruction: String,
    /// The present one's etag; empty to make a new one.
    pub etag: String,
}

impl BundleKey {
    /// AIP resource name.
    pub fn resource_name(&self) -> String {
        match &self.owner {
            Some(user) => format!("teams/{}/users/{user}/bundles/{}", self.team, self.slug),
            None => format!("teams/{}/bundles/{}", self.team, self.slug),
        }
    }

    /// Takes a resource name apart.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let parts = text.split('/').collect::<Vec<_>>();
        let (team, owner, slug) = match parts.as_slice() {
            ["teams", team, "users", user, "bundles", slug] => (team, Some(UserId::parse(*user)?), slug),
            ["teams", team, "bundles", slug] => (team, None, slug),
            _ => return Err(NameError::Pattern { pattern: PATTERN }),
        };
        Ok(Self {
            team: TeamId::parse(*team)?,
            owner,
            slug: SkillId::parse(*slug)?,
        })
    }
}

impl Bundle {
    /// AIP resource name.
    pub fn resource_name(&self) -> String {
        self.key.resource_name()
    }

    /// To be given back with a change.
    pub fn etag(&self) -> String {
        self.version.to_string()
    }
}

impl Skills {
    /// One bundle by its resource name.
    pub async fn get_bundle(&self, actor: &Actor, name: &str) -> Result<Bundle, Error> {
        let key = seen_key(actor, name)?;
        let found = self.store.bundle(&key).await?;
        found.ok_or_else(|| missing(name))
    }

    /// The bundles that the actor sees: a person's own before the team's, by slug.
    pub async fn list_bundles(&self, actor: &Actor) -> Result<Vec<Bundle>, Error> {
        let mut found = Vec::new();
        if let Some(user) = &actor.user {
            found.extend(self.store.bundles(&actor.team, Some(user)).await?);
        }
        found.extend(self.store.bundles(&actor.team, None).await?);
        Ok(found)
    }

    /// The bundle that answers to a slug, for the actor: one's own before the team's.
    pub(crate) async fn bundle_of(&self, actor: &Actor, slug: &str) -> Result<Option<Bundle>, Error> {
        let Ok(slug) = SkillId::parse(slug) else {
            return Ok(None);
        };
        let owners = actor.user.clone().map(Some).into_iter().chain([None]);
        for owner in owners {
            let key = BundleKey {
                team: actor.team.clone(),
                owner,
                slug: slug.clone(),
            };
            if let Some(found) = self.store.bundle(&key).await? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Makes a bundle, or with an etag replaces it.
    pub async fn save_bundle(&self, actor: &Actor, request: &SaveRequest) -> Result<Bundle, Error> {
        let slug = check(actor, request)?;
        if request.in_team && actor.role < Role::Maintainer {
            return Err(Error::RoleRequired {
                role: actor.role,
                required: Role::Maintainer,
            });
        }
        let key = BundleKey {
            team: actor.team.clone(),
            owner: actor.user.clone().filter(|_| !request.in_team),
            slug,
        };
        let (name, now) = (key.resource_name(), self.clock.now());
        let present = self.store.bundle(&key).await?;
        let (version, created) = match (&present, request.etag.as_str()) {
            // Made by this very request before, or by another with the same words.
            (Some(present), "") if is_same(present, request) => return Ok(present.clone()),
            (Some(_), "") => return Err(Error::BundleExists { bundle: name }),
            (None, "") => (1, now),
            (None, _) => return Err(missing(&name)),
            (Some(present), etag) if etag == present.etag() => (present.version + 1, present.created),
            (Some(present), _) if is_same(present, request) => return Ok(present.clone()),
            (Some(_), _) => return Err(Error::EtagMismatch { bundle: name }),
        };
        if present.is_none() {
            let count = self.store.bundles(&key.team, key.owner.as_ref()).await?.len();
            if count >= MOST_BUNDLES {
                return Err(Error::LimitExceeded {
                    what: "the number of bundles".to_owned(),
                    limit: MOST_BUNDLES,
                    actual: count + 1,
                });
            }
        }
        let bundle = Bundle {
            key,
            description: request.description.trim().to_owned(),
            skills: request.skills.iter().map(|skill| skill.trim().to_owned()).collect(),
            instruction: request.instruction.clone(),
            version,
            created,
            updated: now,
        };
        match self.store.save_bundle(bundle.clone()).await {
            Ok(()) => Ok(bundle),
            Err(CommitError::Store(fault)) => Err(fault.into()),
            Err(_) => Err(Error::EtagMismatch { bundle: name }),
        }
    }

    /// Deletes a bundle, and none of its skills.
    pub async fn delete_bundle(&self, actor: &Actor, name: &str) -> Result<(), Error> {
        let key = seen_key(actor, name)?;
        if key.owner.is_none() && actor.role < Role::Maintainer {
            return Err(Error::RoleRequired {
                role: actor.role,
                required: Role::Maintainer,
            });
        }
        if self.store.delete_bundle(&key).await? {
            Ok(())
        } else {
            Err(missing(name))
        }
    }

    /// What a bundle names that fits no skill of the actor, or several.
    pub async fn unresolved(&self, actor: &Actor, bundle: &Bundle) -> Result<Vec<String>, Error> {
        let mut unresolved = Vec::new();
        for skill in &bundle.skills {
            match self.resolve_active(actor, skill).await {
                Ok(_) => {}
                Err(Error::Store(fault)) => return Err(fault.into()),
                Err(_) => unresolved.push(skill.clone()),
            }
        }
        Ok(unresolved)
    }
}

fn missing(name: &str) -> Error {
    Error::BundleNotFound {
        bundle: name.to_owned(),
    }
}

/// The key behind a resource name, if the actor can see what it names.
fn seen_key(actor: &Actor, name: &str) -> Result<BundleKey, Error> {
    let key = BundleKey::parse(name).map_err(|problem| FieldViolations::one("name", problem.to_string()))?;
    let is_seen = key.team == actor.team && (key.owner.is_none() || key.owner == actor.user);
    if is_seen { Ok(key) } else { Err(missing(name)) }
}

fn is_same(present: &Bundle, request: &SaveRequest) -> bool {
    present.description == request.description.trim()
        && present.instruction == request.instruction
        && present
            .skills
            .iter()
            .map(String::as_str)
            .eq(request.skills.iter().map(|skill| skill.trim()))
}

fn check(actor: &Actor, request: &SaveRequest) -> Result<SkillId, Error> {
    let mut violations = FieldViolations::new();
    let slug = violations.take("slug", SkillId::parse(name::slug(&request.slug)));
    if slug.as_ref().is_some_and(|slug| crate::commands::is_own(slug.as_str())) {
        violations.add("slug", "is a command of Steward's own");
    }
    if actor.user.is_none() && !request.in_team {
        violations.add("scope", "must be the team, since the caller acts for no person");
    }
    if request.skills.is_empty() || request.skills.len() > MOST_SKILLS {
        violations.add("bundle.skills", format!("must be 1 to {MOST_SKILLS}"));
    }
    for (index, skill) in request.skills.iter().enumerate() {
        violations.take(&format!("bundle.skills[{index}]"), Reference::parse(skill));
    }
    let texts = [
        ("bundle.description", &request.description, MAX_DESCRIPTION_CHARS),
        ("bundle.instruction", &request.instruction, MAX_INSTRUCTION_CHARS),
    ];
    for (field, text, most) in texts {
        if text.chars().count() > most {
            violations.add(field, format!("must have at most {most} characters"));
        } else if screen::has_secret(text) {
            violations.add(field, "must not hold a credential");
        }
    }
    match (slug, violations.clone().into_result()) {
        (Some(slug), Ok(())) => Ok(slug),
        _ => Err(violations.into()),
    }
}
