//! Which skill a person means: a name, a category with a name, or a full resource name.

use steward_proto::skill::v1 as pb;

use crate::connect::Session;
use crate::fault::Fault;
use crate::output::{ALL, gather, short};

/// Where to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Among {
    /// Those in use.
    Listed,
    /// Those put away.
    Archived,
}

/// The place that an `--archived` names.
pub(super) const fn among(archived: bool) -> Among {
    if archived { Among::Archived } else { Among::Listed }
}

/// The full resource name of the skill that is meant.
pub(super) async fn resolve(given: &str, among: Among, session: &Session) -> anyhow::Result<String> {
    if given.contains("/skills/") {
        return Ok(given.to_owned());
    }
    let answer = gather(ALL, |page_size, page_token| {
        session.client.skills.list_skills(pb::ListSkillsRequest {
            parent: session.user.clone(),
            archived: among == Among::Archived,
            category: String::new(),
            page_size,
            page_token,
        })
    });
    let answer = answer.await?;
    let listed: Vec<_> = answer.skills.iter().chain(&answer.broken).collect();
    let found = choose(given, &listed);
    match found.as_slice() {
        [one] => Ok((*one).to_owned()),
        [] => {
            let (where_, verb) = match among {
                Among::Listed => ("", "list"),
                Among::Archived => ("archived ", "list --archived"),
            };
            let message = format!("no {where_}skill is called {given}; `steward skills {verb}` shows them");
            Err(Fault::of("SKILL_NOT_FOUND", message).into())
        }
        many => {
            let message = format!("{given} may be any of these; give one of them:\n{}", many.join("\n"));
            Err(Fault::of("SKILL_AMBIGUOUS", message).into())
        }
    }
}

/// The skills that a name fits. One that fits whole is meant rather than those that fit in part.
fn choose<'a>(given: &str, listed: &[&'a pb::Skill]) -> Vec<&'a str> {
    let fitting = |fits: &dyn Fn(&pb::Skill) -> bool| -> Vec<&'a str> {
        let fitting = listed.iter().filter(|skill| fits(skill));
        fitting.map(|skill| skill.name.as_str()).collect()
    };
    let whole = fitting(&|skill| skill.full_name == given);
    if !whole.is_empty() {
        return whole;
    }
    fitting(&|skill| own_name(skill) == given || format!("{}/{}", skill.category, own_name(skill)) == given)
}

/// The skill's own name. The resource name of an archived one ends in something else.
fn own_name(skill: &pb::Skill) -> &str {
    if skill.full_name.is_empty() {
        short(&skill.name)
    } else {
        short(&skill.full_name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(name: &str, category: &str, full_name: &str) -> pb::Skill {
        pb::Skill {
            name: name.to_owned(),
            category: category.to_owned(),
            full_name: full_name.to_owned(),
            ..pb::Skill::default()
        }
    }

    #[test]
    fn a_skill_is_found_by_any_of_its_names() {
        let own = skill("teams/a/users/b/skills/nightly", "ops", "ops/nightly");
        let team = skill("teams/a/skills/nightly", "ops", "team/ops/nightly");
        let other = skill("teams/a/users/b/skills/weekly", "", "weekly");
        let listed = [&own, &team, &other];
        assert_eq!(choose("weekly", &listed), ["teams/a/users/b/skills/weekly"]);
        assert_eq!(choose("team/ops/nightly", &listed), ["teams/a/skills/nightly"]);
        assert_eq!(choose("ops/nightly", &listed), ["teams/a/users/b/skills/nightly"]);
        assert_eq!(choose("nightly", &listed).len(), 2);
        assert!(choose("daily", &listed).is_empty());
    }
}
