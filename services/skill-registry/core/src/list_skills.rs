//! Listing skills: the good ones, and apart from them the broken ones with their reasons (D-16).

use std::collections::BTreeSet;
use std::fmt::Write as _;
use steward_base::{FieldViolations, page};

use crate::actor::Actor;
use crate::error::Error;
use crate::external::ExternalProblem;
use crate::index::{cut, is_within, neutral, shown_name};
use crate::name::Category;
use crate::record::{BrokenRecord, HeaderState, SkillRecord};
use crate::screen;
use crate::skills::Skills;

/// What to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListRequest {
    /// Archived ones instead of those in use.
    pub archived: bool,
    /// Only this category and those below it; empty for all.
    pub category: String,
    /// 0 for the default.
    pub page_size: i32,
    /// Empty for the first page.
    pub page_token: String,
}

/// A skill that cannot be used, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Broken {
    /// Its record can be read, its header cannot.
    Header(Box<SkillRecord>, String),
    /// Its record cannot be read.
    Record(BrokenRecord),
    /// It stands in a folder outside and cannot be taken in.
    Outside(ExternalProblem),
}

/// A page of skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The good ones, by category and name.
    pub skills: Vec<SkillRecord>,
    /// Identities of those that are hidden from the index; an agent is not shown them here either (`S-5`).
    pub hidden: BTreeSet<String>,
    /// The broken ones, all of them on the first page.
    pub broken: Vec<Broken>,
    /// Empty at the end.
    pub next_page_token: String,
    /// For the model.
    pub tool_text: String,
}

const DEFAULT_PAGE: u32 = 200;
const MAX_PAGE: u32 = 1_000;
/// Longest description in the answer for the model, in characters: a page of them must stay readable (D-70).
const MAX_SHOWN_CHARS: usize = 200;

impl Skills {
    /// A page of the skills that the actor sees.
    pub async fn list_skills(&self, actor: &Actor, request: &ListRequest) -> Result<Listed, Error> {
        let mut violations = FieldViolations::new();
        let category = violations
            .take("category", Category::parse(&request.category))
            .unwrap_or_default();
        violations.into_result()?;
        let size = page::size(request.page_size, DEFAULT_PAGE, MAX_PAGE)?;
        let user = actor.user.as_ref().map_or("", |user| user.as_str());
        let archived = if request.archived { "archived" } else { "active" };
        let bound = [actor.team.as_str(), user, archived, category.as_str()];
        let after = page::decode(&bound, &request.page_token)?;
        self.seed(&actor.team).await?;

        let found = self.store.list(&actor.team, &actor.scopes(), request.archived).await?;
        // Names are shown in full where any namesake exists, listed here or not.
        let everything = found
            .iter()
            .filter_map(|found| found.as_ref().ok())
            .cloned()
            .collect::<Vec<_>>();
        let (mut skills, mut broken) = (Vec::new(), Vec::new());
        for found in found {
            match found {
                Err(record) => broken.push(Broken::Record(record)),
                Ok(record) if !is_within(&record.category, &category) => {}
                Ok(record) => match &record.header {
                    HeaderState::Read(_) => skills.push(record),
                    HeaderState::Broken(problem) => {
                        let problem = problem.clone();
                        broken.push(Broken::Header(Box::new(record), problem));
                    }
                },
            }
        }
        if !request.archived && category == Category::default() {
            broken.extend(self.external_problems(&actor.team).into_iter().map(Broken::Outside));
        }
        let hidden = self.store.hidden(&actor.team, actor.user.as_ref()).await?;
        if actor.is_agent {
            skills.retain(|record| !hidden.contains(&record.uid));
        }
        skills.sort_by_cached_key(sort_key);
        if let Some(after) = &after {
            broken.clear();
            skills.retain(|record| sort_key(record) > *after);
        }
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let more = skills.len() > size;
        skills.truncate(size);
        let last = skills.last().filter(|_| more).map(sort_key);
        let next_page_token = last.map_or_else(String::new, |last| page::encode(&bound, &last));
        let tool_text = tool_text(&skills, &broken, &everything, more);
        Ok(Listed {
            skills,
            hidden,
            broken,
            next_page_token,
            tool_text,
        })
    }

    /// One skill, in use or archived, by its resource name.
    pub async fn get_skill(&self, actor: &Actor, name: &str) -> Result<SkillRecord, Error> {
        self.resolve_resource(actor, &crate::skills::parse_name("name", name)?)
            .await
    }
}

/// What is wrong with a description, for people; empty if nothing is.
pub fn warning(record: &SkillRecord) -> String {
    let problems = record
        .header()
        .map(|header| header.problems.join("; "))
        .unwrap_or_default();
    let blocked = screen::description(record.description())
        .map(|category| format!("its description looks like {category} and is not shown to the model"));
    let altered = neutral(record.description()) != record.description();
    let altered =
        altered.then(|| "its description is shown to the model without markup and hidden characters".to_owned());
    let parts = [
        Some(problems).filter(|problems| !problems.is_empty()),
        blocked.or(altered),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn sort_key(record: &SkillRecord) -> String {
    format!(
        "{}\n{}\n{}\n{}",
        record.category,
        record.name,
        record.scope.rank(),
        record.uid
    )
}

fn tool_text(skills: &[SkillRecord], broken: &[Broken], everything: &[SkillRecord], more: bool) -> String {
    let mut out = match skills.len() {
        0 => "no skills".to_owned(),
        1 => "1 skill; skill_view opens it".to_owned(),
        count => format!("{count} skills; skill_view opens one"),
    };
    let mut category = None;
    for record in skills {
        if category != Some(&record.category) {
            let heading = if record.category.as_str().is_empty() {
                "general"
            } else {
                record.category.as_str()
            };
            _ = write!(out, "\n{heading}:");
            category = Some(&record.category);
        }
        let name = shown_name(record, everything);
        let description = match screen::description(record.description()) {
            Some(category) => screen::marker(&category),
            None => cut(&neutral(record.description()), MAX_SHOWN_CHARS),
        };
        let pinned = if record.pinned { ", pinned" } else { "" };
        let kind = format!("{}, {}{pinned}", record.scope.label(), record.provenance.as_str());
        _ = write!(out, "\n- {name}: {description} [{kind}]");
    }
    if more {
        out.push_str("\nmore follow on the next page");
    }
    if !broken.is_empty() {
        out.push_str("\ncannot be used:");
    }
    for broken in broken {
        let (name, problem) = match broken {
            Broken::Header(record, problem) => (record.full_name(), problem.as_str()),
            Broken::Record(record) => (neutral(&record.skill), "its record is damaged"),
            Broken::Outside(problem) => (
                format!("external/{}", neutral(&problem.folder)),
                problem.problem.as_str(),
            ),
        };
        _ = write!(out, "\n- {name}: {}", cut(&neutral(problem), MAX_SHOWN_CHARS));
    }
    out
}
