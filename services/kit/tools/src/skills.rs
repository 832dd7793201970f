//! The skill tools (`S-3`, `S-10`): list, view and manage, each one call of `SkillService`.

use steward_base::Integrity;
use steward_proto::skill::v1 as pb;
use steward_proto::skill::v1::manage_skill_request::Action as Change;

use crate::answer::{Effect, EffectResult, Needed, NeededVariable, ToolAnswer, count, own};
use crate::arguments::Arguments;
use crate::citation::{self, Citation};
use crate::context::ToolContext;
use crate::definitions::{SKILL_MANAGE, SKILL_VIEW, SKILLS_LIST};
use crate::failure::{Sort, failed, refused};
use crate::{Clients, STORE_NAMES};

/// How many skills a list holds at most; the most that the registry gives at once.
const LISTED: i32 = 1000;

pub(crate) async fn list(clients: &Clients, context: &ToolContext, arguments: &str) -> ToolAnswer {
    let category = Arguments::parse(arguments)
        .map_err(|problem| vec![problem])
        .and_then(|mut arguments| {
            let category = arguments.text("category").unwrap_or_default();
            sound(arguments, category)
        });
    let category = match category {
        Ok(category) => category,
        Err(problems) => return ToolAnswer::misused(SKILLS_LIST, &problems),
    };
    let request = pb::ListSkillsRequest {
        parent: context.user_name(),
        archived: false,
        category,
        page_size: LISTED,
        page_token: String::new(),
    };
    match clients.skills(context).list_skills(request).await {
        Ok(response) => {
            let summary = format!("{} listed", count(response.skills.len(), "skill"));
            ToolAnswer::success(SKILLS_LIST, response.tool_text, summary)
        }
        Err(error) => failed(SKILLS_LIST, STORE_NAMES.skills, Sort::Read, &error),
    }
}

pub(crate) async fn view(clients: &Clients, context: &ToolContext, arguments: &str) -> ToolAnswer {
    let read = Arguments::parse(arguments)
        .map_err(|problem| vec![problem])
        .and_then(|mut arguments| {
            let name = arguments.required("name", "a view");
            let path = arguments.text("path").unwrap_or_default();
            sound(arguments, (name, path))
        });
    let (name, path) = match read {
        Ok(read) => read,
        Err(problems) => return ToolAnswer::misused(SKILL_VIEW, &problems),
    };
    let request = pb::ViewSkillRequest {
        parent: context.user_name(),
        skill: name,
        path: path.clone(),
        variables: context.variables.clone().unwrap_or_default(),
        variables_known: context.variables.is_some(),
    };
    match clients.skills(context).view_skill(request).await {
        Ok(response) => viewed(response, &path),
        Err(error) => failed(SKILL_VIEW, STORE_NAMES.skills, Sort::Read, &error),
    }
}

fn viewed(response: pb::ViewSkillResponse, path: &str) -> ToolAnswer {
    let skill = response.skill.unwrap_or_default();
    let name = short(&skill.name);
    let summary = if path.is_empty() {
        format!("Skill '{name}' read")
    } else {
        format!("Skill '{name}' read ({path})")
    };
    let integrity = match skill.scope() {
        pb::SkillScope::Builtin => Integrity::Operator,
        pb::SkillScope::User
        | pb::SkillScope::Team
        | pb::SkillScope::External
        | pb::SkillScope::Hub
        | pb::SkillScope::Unspecified => Integrity::Workspace,
    };
    let spans = own(SKILL_VIEW, &response.tool_text, integrity);
    ToolAnswer {
        spans,
        needed: response.secret_request.map(needed),
        ..ToolAnswer::success(SKILL_VIEW, response.tool_text, summary)
    }
}

fn needed(request: pb::SecretRequest) -> Needed {
    let variables = request.variables.into_iter().map(|variable| NeededVariable {
        name: variable.name,
        prompt: variable.prompt,
        help: variable.help,
    });
    Needed {
        skill: request.skill,
        variables: variables.collect(),
        team_store: request.team_store,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Create,
    Edit,
    Patch,
    WriteFile,
    RemoveFile,
    Delete,
}

impl Action {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("create", Self::Create),
        ("edit", Self::Edit),
        ("patch", Self::Patch),
        ("write_file", Self::WriteFile),
        ("remove_file", Self::RemoveFile),
        ("delete", Self::Delete),
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Edit => "edit",
            Self::Patch => "patch",
            Self::WriteFile => "write_file",
            Self::RemoveFile => "remove_file",
            Self::Delete => "delete",
        }
    }

    /// What happened to the skill, for people.
    fn done(self, name: &str, path: &str) -> String {
        match self {
            Self::Create => format!("Skill '{name}' created"),
            Self::Edit => format!("Skill '{name}' rewritten"),
            Self::Patch => format!("Skill '{name}' patched"),
            Self::WriteFile => format!("Skill '{name}': {path} written"),
            Self::RemoveFile => format!("Skill '{name}': {path} removed"),
            Self::Delete => format!("Skill '{name}' taken out"),
        }
    }
}

struct Call {
    action: Action,
    name: String,
    path: String,
    change: Change,
    citation: Citation,
}

pub(crate) async fn manage(clients: &Clients, context: &ToolContext, arguments: &str) -> ToolAnswer {
    let call = match read_manage(arguments) {
        Ok(call) => call,
        Err(problems) => return ToolAnswer::misused(SKILL_MANAGE, &problems),
    };
    let request = pb::ManageSkillRequest {
        parent: context.user_name(),
        skill: call.name.clone(),
        action: Some(call.change),
        base_revision: String::new(),
        request_id: context.request_id(),
        evidence: context.evidence_pb(),
        reason: call.citation.why,
        validate_only: false,
    };
    match clients.skills(context).manage_skill(request).await {
        Ok(response) => managed(call.action, &call.path, response),
        Err(error) => refused(
            SKILL_MANAGE,
            STORE_NAMES.skills,
            call.action.as_str(),
            call.name,
            &error,
        ),
    }
}

fn managed(action: Action, path: &str, response: pb::ManageSkillResponse) -> ToolAnswer {
    let skill = response.skill.unwrap_or_default();
    let name = short(&skill.name);
    let (result, summary, target, revision) = if response.proposal.is_empty() {
        let summary = action.done(name, path);
        (EffectResult::Accepted, summary, skill.name, skill.revision)
    } else {
        let summary = format!("Skill '{name}' change proposed");
        (EffectResult::Proposed, summary, response.proposal, String::new())
    };
    ToolAnswer::success(SKILL_MANAGE, response.tool_text, summary).with_effect(Effect {
        tool: SKILL_MANAGE.to_owned(),
        action: action.as_str().to_owned(),
        target,
        result,
        reason: String::new(),
        gate: String::new(),
        revision,
    })
}

fn read_manage(text: &str) -> Result<Call, Vec<String>> {
    let mut arguments = Arguments::parse(text).map_err(|problem| vec![problem])?;
    let action = arguments.required_choice("action", Action::WORDS);
    let name = arguments.required("name", "every action");
    let path = arguments.text("path").unwrap_or_default();
    let change = action.map(|action| change(&mut arguments, action, &path));
    let citation = citation::read(&mut arguments);
    if action.is_none() {
        // Without an action nothing can be said about its fields; they are not unknown either.
        for field in ["content", "category", "old_text", "new_text", "absorbed_into"] {
            arguments.text(field);
        }
        arguments.flag("replace_all");
    }
    let call = action.zip(change).map(|(action, change)| Call {
        action,
        name,
        path,
        change,
        citation,
    });
    sound(arguments, call)?.ok_or_else(|| vec!["the arguments name no action".to_owned()])
}

fn change(arguments: &mut Arguments, action: Action, path: &str) -> Change {
    let needs = format!("`{}`", action.as_str());
    let needs_path = |arguments: &mut Arguments| {
        if path.trim().is_empty() {
            arguments.wrong("path", format!("is missing or blank; {needs} needs it"));
        }
    };
    match action {
        Action::Create => Change::Create(pb::CreateSkill {
            content: arguments.required("content", &needs),
            category: arguments.text("category").unwrap_or_default(),
            scope: pb::SkillScope::Unspecified.into(),
        }),
        Action::Edit => Change::Edit(pb::EditSkill {
            content: arguments.required("content", &needs),
        }),
        Action::Patch => Change::Patch(pb::PatchSkill {
            path: path.to_owned(),
            old_text: arguments.required("old_text", &needs),
            new_text: arguments.present("new_text", "`patch` needs it, and an empty text deletes"),
            replace_all: arguments.flag("replace_all").unwrap_or_default(),
        }),
        Action::WriteFile => {
            needs_path(arguments);
            let content = arguments.present("content", &format!("{needs} needs it"));
            Change::WriteFile(pb::WriteSkillFile {
                path: path.to_owned(),
                content,
            })
        }
        Action::RemoveFile => {
            needs_path(arguments);
            Change::RemoveFile(pb::RemoveSkillFile { path: path.to_owned() })
        }
        Action::Delete => Change::Delete(pb::DeleteSkill {
            absorbed_into: arguments.text("absorbed_into"),
        }),
    }
}

fn sound<T>(arguments: Arguments, value: T) -> Result<T, Vec<String>> {
    let problems = arguments.problems();
    if problems.is_empty() { Ok(value) } else { Err(problems) }
}

/// The last part of a resource name.
fn short(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_action_names_what_it_lacks() {
        let problems = |text: &str| read_manage(text).err().unwrap_or_default();
        assert_eq!(
            problems(r#"{"action":"patch","name":"x","old_text":"a"}"#),
            ["`new_text` is missing; `patch` needs it, and an empty text deletes"]
        );
        assert_eq!(
            problems(r#"{"action":"write_file","name":"x"}"#),
            [
                "`path` is missing or blank; `write_file` needs it",
                "`content` is missing; `write_file` needs it"
            ]
        );
        assert_eq!(
            problems(r#"{"content":"x","name":"x"}"#),
            ["`action` is missing; it must be `create`, `edit`, `patch`, `write_file`, `remove_file` or `delete`"]
        );
        assert_eq!(
            problems(r#"{"action":"patch","name":"x","old_text":"a","new_text":""}"#),
            Vec::<String>::new()
        );
        assert_eq!(
            problems(r#"{"action":"edit","name":"x","content":"c","old_text":"a"}"#).len(),
            1
        );
    }
}
