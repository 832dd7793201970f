//! The six actions against the in-memory store.

mod cases;
mod content;
mod gates;
mod history;

use std::sync::Arc;

use steward_base::names::{TeamId, UserId};
use steward_base::{Fault, Integrity, JobRef, Origin, Role};
use steward_testkit::{MockClock, SeqIds};

use super::*;
use crate::memory_store::InMemorySkillStore;
use crate::settings::Settings;
use crate::testing::skill_md;

struct Rig {
    skills: Skills,
    store: Arc<InMemorySkillStore>,
    requests: std::cell::Cell<u32>,
}

fn rig() -> Rig {
    let store = Arc::new(InMemorySkillStore::new());
    let skills = Skills::new(
        Arc::clone(&store) as _,
        Arc::new(MockClock::default()),
        Arc::new(SeqIds::new()),
        Settings::default(),
    );
    Rig {
        skills,
        store,
        requests: std::cell::Cell::new(0),
    }
}

fn person() -> Actor {
    Actor {
        team: TeamId::parse("red").unwrap(),
        user: UserId::parse("ann").ok(),
        role: Role::Member,
        origin: Origin::Foreground,
        session: None,
        turn: None,
        job: None,
        is_agent: false,
        token_id: "token".to_owned(),
    }
}

fn turn(session: &str) -> Actor {
    Actor {
        session: Some(session.to_owned()),
        turn: Some("t1".to_owned()),
        is_agent: true,
        ..person()
    }
}

fn job(origin: Origin, fence: u64) -> Actor {
    let job = Some(JobRef {
        id: format!("{origin}-job"),
        fence,
    });
    Actor {
        origin,
        session: Some("s1".to_owned()),
        job,
        is_agent: true,
        ..person()
    }
}

#[expect(clippy::unnecessary_wraps, reason = "it is what a request holds")]
fn evidence() -> Option<Evidence> {
    Some(Evidence {
        session: "teams/red/sessions/s1".to_owned(),
        spans: vec!["s1".to_owned()],
        basis: "stated".to_owned(),
        integrity: Some(Integrity::Person),
    })
}

impl Rig {
    fn request(&self, skill: &str, action: Manage) -> ManageRequest {
        self.requests.set(self.requests.get() + 1);
        ManageRequest {
            skill: skill.to_owned(),
            action,
            base_revision: String::new(),
            request_id: format!("r{}", self.requests.get()),
            request_hash: "h".to_owned(),
            evidence: evidence(),
            reason: String::new(),
            validate_only: false,
        }
    }

    async fn manage(&self, actor: &Actor, skill: &str, action: Manage) -> Result<Managed, Error> {
        self.skills.manage_skill(actor, &self.request(skill, action)).await
    }

    async fn made_by(&self, actor: &Actor, name: &str) -> SkillRecord {
        self.manage(actor, name, create(&skill_md(name, "Do a thing")))
            .await
            .unwrap()
            .skill
    }

    async fn text(&self, name: &str) -> String {
        self.skills.view_skill(&person(), name, "").await.unwrap().content
    }
}

fn create(content: &str) -> Manage {
    Manage::Create {
        content: content.to_owned(),
        category: String::new(),
        in_team: false,
    }
}

fn patch(old: &str, new: &str) -> Manage {
    Manage::Patch {
        path: String::new(),
        old: old.to_owned(),
        new: new.to_owned(),
        all: false,
    }
}

fn write_file(path: &str, content: &str) -> Manage {
    Manage::WriteFile {
        path: path.to_owned(),
        content: content.to_owned(),
    }
}

fn remove_file(path: &str) -> Manage {
    Manage::RemoveFile { path: path.to_owned() }
}

fn reason<T: std::fmt::Debug>(result: Result<T, Error>) -> &'static str {
    result.unwrap_err().reason()
}
