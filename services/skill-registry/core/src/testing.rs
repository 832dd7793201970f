//! Skills for tests of this crate.

use steward_base::names::{SkillId, TeamId, UserId};
use steward_base::{Origin, Timestamp};

use crate::gate::Provenance;
use crate::header::{self, HeaderError};
use crate::name::{Category, Scope};
use crate::path::SkillPath;
use crate::record::{Authorship, Files, HeaderState, NewRevision, Revision, SkillRecord, State, Usage};

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
            Ok(header) => HeaderState::Read(header),
            Err(error) => HeaderState::Broken(HeaderError::to_string(&error)),
        },
        usage: Usage::default(),
        created: now,
        updated: now,
    };
    (record, revision, files)
}
