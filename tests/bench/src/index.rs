//! `index`: what a library of a thousand skills costs: the index of a new session, as one process
//! asks itself for it, and opening a skill over a real port.
//!
//! The floor is a table with the same texts and nothing of ours around it: names and descriptions in order for an index,
//! one number for one that has not changed, one text and one durable count for a view.

use std::path::Path;

use anyhow::ensure;
use serde_json::{Value, json};
use steward_client::{SkillClient, Wire};
use steward_proto::skill::v1 as pb;
use steward_proto::skill::v1::manage_skill_request::Action;

use crate::arguments::{Arguments, Index};
use crate::floor::Bare;
use crate::measure::Meter;
use crate::random::Random;
use crate::rig::{PERSON, Rig};

/// Shelves that the skills stand on.
const SHELVES: u32 = 20;
/// Indexes without a change in between, after each that is rendered.
const WARM: u32 = 10;
/// Paragraphs of a skill: with the rest about 3 KB, which is what skills out there have.
const STEPS: usize = 40;

const FLOOR: &str = "CREATE TABLE skill (name TEXT NOT NULL PRIMARY KEY, shelf TEXT NOT NULL, description TEXT NOT NULL, \
                                         content TEXT NOT NULL, views INTEGER NOT NULL DEFAULT 0) STRICT";

/// One skill of the library.
#[derive(Debug)]
struct Skill {
    name: String,
    shelf: String,
    description: String,
    content: String,
}

/// What the kinds of call took.
#[derive(Debug, Default)]
struct Taken {
    cold: Meter,
    warm: Meter,
    port: Meter,
    view: Meter,
}

pub(crate) async fn run(options: &Index, arguments: &Arguments) -> anyhow::Result<Value> {
    let folder = arguments.fresh_folder()?;
    let skills = library(options.skills, arguments.seed);
    let filling = Service::start(folder.path()).await?;
    fill(&filling.inside, &skills).await?;
    filling.stop().await?;
    // As it is after any restart: files and rows only.
    let service = Service::start(folder.path()).await?;
    let mut first = Meter::default();
    check(&first.time(index(&service.inside)).await?, options.skills)?;
    let ours = ours(&service, &skills, options).await?;
    service.stop().await?;
    let floor = floor(folder.path(), &skills, options)?;
    Ok(json!({
        "skills": options.skills,
        "cold_ms": ours.cold.wall().p50(),
        "cold_cpu_ms": ours.cold.cpu().p50(),
        "first_ms": first.wall().p50(),
        "warm_ms": ours.warm.wall().p50(),
        "warm_p99_ms": ours.warm.wall().p99(),
        "warm_port_ms": ours.port.wall().p50(),
        "view_p50_ms": ours.view.wall().p50(),
        "view_p99_ms": ours.view.wall().p99(),
        "floor_cold_ms": floor.cold.wall().p50(),
        "floor_warm_ms": floor.warm.wall().p50(),
        "floor_view_p50_ms": floor.view.wall().p50(),
        "floor_view_p99_ms": floor.view.wall().p99(),
    }))
}

/// The registry in this process, reached as one process reaches it and over a port.
struct Service {
    rig: Rig,
    inside: SkillClient,
    port: SkillClient,
}

impl Service {
    async fn start(folder: &Path) -> anyhow::Result<Self> {
        let rig = Rig::new(folder)?;
        let deps = steward_skill::Deps { auth: rig.auth.clone() };
        let built = steward_skill::build(steward_skill::Config::default(), deps, &rig.boot).await?;
        let inside = SkillClient::new(built.local_client().with_credentials(rig.person()?));
        let listener = steward_grpc::Listener::bind("127.0.0.1:0").await?;
        let serving = steward_grpc::serve(listener, built, &rig.boot.tasks)?;
        let wire = Wire::connect(&serving.endpoint)?.with_credentials(rig.person()?);
        let port = SkillClient::new(wire);
        Ok(Self { rig, inside, port })
    }

    async fn stop(self) -> anyhow::Result<()> {
        drop((self.inside, self.port));
        self.rig.stop().await
    }
}

fn library(count: u32, seed: u64) -> Vec<Skill> {
    const VERBS: [&str; 6] = ["Roll out", "Check", "Write up", "Clean", "Compare", "Move"];
    const THINGS: [&str; 7] = [
        "a release",
        "the nightly tables",
        "a report",
        "old branches",
        "two configurations",
        "a service",
        "the 部署 notes",
    ];
    let mut random = Random::new(seed, "index");
    (0..count)
        .map(|number| {
            let (name, shelf) = (format!("skill-{number:04}"), format!("shelf-{}", number % SHELVES));
            let description = format!("{} {} number {number}", random.pick_text(&VERBS), random.pick_text(&THINGS));
            let steps = "A step that says what to do, and what one should see when it is done.\n".repeat(STEPS);
            let content = format!(
                "---\nname: {name}\ndescription: {description}\ncategory: {shelf}\n---\n# {name}\n\n## When\n\nFor {number}.\n\n{steps}"
            );
            Skill {
                name,
                shelf,
                description,
                content,
            }
        })
        .collect()
}

fn manage(skill: &str, request_id: String, action: Action) -> pb::ManageSkillRequest {
    pb::ManageSkillRequest {
        parent: PERSON.to_owned(),
        skill: skill.to_owned(),
        request_id,
        action: Some(action),
        ..pb::ManageSkillRequest::default()
    }
}

async fn fill(client: &SkillClient, skills: &[Skill]) -> anyhow::Result<()> {
    for skill in skills {
        let create = Action::Create(pb::CreateSkill {
            content: skill.content.clone(),
            ..pb::CreateSkill::default()
        });
        let request = manage(&skill.name, format!("create-{}", skill.name), create);
        client.manage_skill(request).await?;
    }
    Ok(())
}

async fn index(client: &SkillClient) -> anyhow::Result<pb::GetIndexResponse> {
    let request = pb::GetIndexRequest {
        user: PERSON.to_owned(),
        platform: "linux".to_owned(),
        ..pb::GetIndexRequest::default()
    };
    Ok(client.get_index(request).await?)
}

fn check(index: &pb::GetIndexResponse, skills: u32) -> anyhow::Result<()> {
    let shown = index.text.matches("- skill-").count();
    ensure!(
        shown == usize::try_from(skills)?,
        "the index shows {shown} of {skills} skills"
    );
    Ok(())
}

async fn ours(service: &Service, skills: &[Skill], options: &Index) -> anyhow::Result<Taken> {
    let mut taken = Taken::default();
    for (number, skill) in (0..options.runs).zip(skills.iter().cycle()) {
        // A change of any skill ends what was rendered.
        let action = Action::Patch(pb::PatchSkill {
            old_text: "## When".to_owned(),
            new_text: format!("Changed {number}.\n\n## When"),
            ..pb::PatchSkill::default()
        });
        let request = manage(&skill.name, format!("patch-{number}"), action);
        service.inside.manage_skill(request).await?;
        check(&taken.cold.time(index(&service.inside)).await?, options.skills)?;
        for _ in 0..WARM {
            check(&taken.warm.time(index(&service.inside)).await?, options.skills)?;
            check(&taken.port.time(index(&service.port)).await?, options.skills)?;
        }
    }
    for skill in (0..options.views).zip(skills.iter().cycle()).map(|(_, skill)| skill) {
        let request = pb::ViewSkillRequest {
            parent: PERSON.to_owned(),
            skill: skill.name.clone(),
            ..pb::ViewSkillRequest::default()
        };
        let viewed = taken.view.time(service.port.view_skill(request)).await?;
        ensure!(viewed.content.len() >= skill.content.len(), "{} is cut", skill.name);
    }
    Ok(taken)
}

fn floor(folder: &Path, skills: &[Skill], options: &Index) -> anyhow::Result<Taken> {
    let bare = Bare::open(folder, FLOOR)?;
    for skill in skills {
        bare.commit(
            "INSERT INTO skill (name, shelf, description, content) VALUES (?, ?, ?, ?)",
            (&skill.name, &skill.shelf, &skill.description, &skill.content),
        )?;
    }
    let mut taken = Taken::default();
    for _ in 0..options.runs {
        let rows = taken.cold.time_blocking(|| listed(bare.connection()))?;
        ensure!(rows.len() == skills.len(), "the bare table lost rows");
        for _ in 0..WARM {
            let count: i64 = taken.warm.time_blocking(|| {
                let mut last = bare.connection().prepare_cached("SELECT max(rowid) FROM skill")?;
                last.query_row((), |row| row.get(0))
            })?;
            ensure!(count > 0, "the bare table is empty");
        }
    }
    for skill in (0..options.views).zip(skills.iter().cycle()).map(|(_, skill)| skill) {
        let text = taken.view.time_blocking(|| {
            let mut select = bare
                .connection()
                .prepare_cached("SELECT content FROM skill WHERE name = ?")?;
            let text: String = select.query_row((&skill.name,), |row| row.get(0))?;
            bare.commit("UPDATE skill SET views = views + 1 WHERE name = ?", (&skill.name,))?;
            anyhow::Ok(text)
        })?;
        ensure!(text.len() == skill.content.len(), "the bare text is cut");
    }
    bare.close()?;
    Ok(taken)
}

fn listed(bare: &rusqlite::Connection) -> rusqlite::Result<Vec<(String, String, String)>> {
    let mut select = bare.prepare_cached("SELECT shelf, name, description FROM skill ORDER BY shelf, name")?;
    let rows = select.query_map((), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    rows.collect()
}
