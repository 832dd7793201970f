//! Skills for tests of this crate.

use std::sync::Arc;

use steward_base::names::{SkillId, TeamId, UserId};
use steward_base::{Clock as _, Origin, Role, Timestamp};
use steward_testkit::{MockClock, SeqIds};

use crate::actor::Actor;
use crate::error::Error;
use crate::gate::Provenance;
use crate::header::{self, HeaderError};
use crate::manage_skill::{Manage, ManageRequest, Managed};
use crate::memory_store::InMemorySkillStore;
use crate::name::{Category, Scope};
use crate::path::SkillPath;
use crate::record::{Authorship, Files, HeaderState, NewRevision, Revision, SkillRecord, State, Usage};
use crate::settings::Settings;
use crate::skills::Skills;

/// A valid SKILL.md.
pub(crate) fn skill_md(name: &str, description: &str) -> String {
    format!(
        "---\nname: {name}\ndescription: {}\n---\n# {name}\n\nSteps.\n",
        serde_json::json!(description)
    )
}

/// A record as if just created, in team `red`, user scope owned by `ann`.
pub(crate) fn skill(scope: &str, category: &str, name: &str, description: &str) -> SkillRecord {
    created(scope, category, name, &skill_md(name, description)).0
}

/// The same with its first revision and files.
pub(crate) fn created(scope: &str, category: &str, name: &str, text: &str) -> (SkillRecord, Revision, Files) {
    let owner = if scope == "user" { "ann" } else { "" };
    let uid = steward_base::hash::sha256_hex(format!("{scope}/{category}/{name}").as_bytes());
    let uid = uid.get(..32).unwrap_or_default().to_owned();
    let files = Files::from([(SkillPath::skill_md(), text.as_bytes().to_vec())]);
    let now = Timestamp::from_secs(1_795_910_400);
    let by = Authorship {
        user: UserId::parse("ann").ok(),
        origin: Origin::Foreground,
        session: None,
        turn: None,
        job: None,
        reason: String::new(),
        evidence: Vec::new(),
    };
    let new = NewRevision {
        parent: None,
        action: "create",
        files: &files,
        by,
        restored_from: None,
        created: now,
    };
    let revision = new.seal(&uid);
    let record = SkillRecord {
        team: TeamId::parse("red").expect("an id"),
        uid,
        scope: Scope::from_columns(scope, owner).expect("a scope"),
        name: SkillId::parse(name).expect("a name"),
        category: Category::parse(category).expect("a category"),
        provenance: Provenance::UserMade,
        author: UserId::parse("ann").ok(),
        pinned: false,
        protected: false,
        state: State::Active,
        version: 1,
        revision: revision.id.clone(),
        number: 1,
        tree: revision.tree.clone(),
        header: match header::parse(text) {
            Ok(header) => HeaderState::Read(Box::new(header)),
            Err(error) => HeaderState::Broken(HeaderError::to_string(&error)),
        },
        usage: Usage::default(),
        created: now,
        updated: now,
    };
    (record, revision, files)
}

/// The registry over a store in memory, with its clock.
pub(crate) struct Rig {
    pub(crate) skills: Skills,
    pub(crate) clock: MockClock,
}

pub(crate) fn rig() -> Rig {
    rig_with(Settings::default())
}

pub(crate) fn rig_with(settings: Settings) -> Rig {
    let (store, clock) = (Arc::new(InMemorySkillStore::new()), MockClock::default());
    let skills = Skills::new(store, Arc::new(clock.clone()), Arc::new(SeqIds::new()), settings);
    Rig { skills, clock }
}

/// A person of the team `red`, through a program of their own.
pub(crate) fn person(user: &str, role: Role) -> Actor {
    Actor {
        team: TeamId::parse("red").expect("an id"),
        user: UserId::parse(user).ok(),
        role,
        origin: Origin::Foreground,
        session: None,
        turn: None,
        job: None,
        is_agent: false,
        token_id: format!("token-{user}"),
    }
}

/// The agent in a session of `ann`.
pub(crate) fn agent(session: &str) -> Actor {
    Actor {
        session: Some(session.to_owned()),
        turn: Some("t1".to_owned()),
        is_agent: true,
        ..person("ann", Role::Member)
    }
}

/// A skill's files.
pub(crate) fn files(list: &[(&str, &str)]) -> Files {
    list.iter()
        .map(|(path, text)| (SkillPath::parse(path).expect("a path"), text.as_bytes().to_vec()))
        .collect()
}

impl Rig {
    /// Makes a skill by a creation of `actor`.
    pub(crate) async fn made(&self, actor: &Actor, name: &str, in_team: bool) -> SkillRecord {
        let create = Manage::Create {
            content: skill_md(name, "Do a thing"),
            category: String::new(),
            in_team,
        };
        self.manage(actor, name, create).await.expect("a skill").skill
    }

    pub(crate) async fn manage(&self, actor: &Actor, skill: &str, action: Manage) -> Result<Managed, Error> {
        let request = ManageRequest {
            skill: skill.to_owned(),
            action,
            base_revision: String::new(),
            request_id: format!("m-{}", self.clock.now().as_micros()),
            request_hash: "h".to_owned(),
            evidence: None,
            reason: String::new(),
            validate_only: false,
        };
        self.clock.advance(std::time::Duration::from_secs(1));
        self.skills.manage_skill(actor, &request).await
    }

    pub(crate) async fn patched(&self, actor: &Actor, skill: &str, old: &str, new: &str) -> SkillRecord {
        let patch = Manage::Patch {
            path: String::new(),
            old: old.to_owned(),
            new: new.to_owned(),
            all: false,
        };
        self.manage(actor, skill, patch).await.expect("a patch").skill
    }

    pub(crate) async fn text(&self, actor: &Actor, skill: &str) -> String {
        self.skills.view_skill(actor, skill, "").await.expect("a skill").content
    }
}
