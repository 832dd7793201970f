//! The memory tool (`M-3`): reads its arguments and makes one call of `MemoryService.Apply`.

use std::fmt::Write as _;

use steward_proto::memory::v1::{self as pb, change, operation};

use crate::answer::{Effect, EffectResult, ToolAnswer, count, own};
use crate::arguments::Arguments;
use crate::citation::{self, Citation};
use crate::context::ToolContext;
use crate::correction;
use crate::definitions::MEMORY;
use crate::failure::refused;
use crate::{Clients, STORE_NAMES};

/// How many entries an answer lists.
const LISTED: i32 = 500;

/// One of the person's two stores, or the notes of the session's project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Notes,
    Profile,
    Project,
}

impl Target {
    const WORDS: &'static [(&'static str, Self)] = &[("notes", Self::Notes), ("profile", Self::Profile)];
    const WORDS_IN_PROJECT: &'static [(&'static str, Self)] = &[
        ("notes", Self::Notes),
        ("profile", Self::Profile),
        ("project", Self::Project),
    ];

    const fn title(self) -> &'static str {
        match self {
            Self::Notes => "Notes",
            Self::Profile => "Profile",
            Self::Project => "Project notes",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Add,
    Replace,
    Remove,
    Batch,
    Confirm,
    Drop,
}

impl Action {
    const SINGLE: &'static [(&'static str, Self)] =
        &[("add", Self::Add), ("replace", Self::Replace), ("remove", Self::Remove)];
    const ALL: &'static [(&'static str, Self)] = &[
        ("add", Self::Add),
        ("replace", Self::Replace),
        ("remove", Self::Remove),
        ("batch", Self::Batch),
        ("confirm", Self::Confirm),
        ("drop", Self::Drop),
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Replace => "replace",
            Self::Remove => "remove",
            Self::Batch => "batch",
            Self::Confirm => "confirm",
            Self::Drop => "drop",
        }
    }
}

struct Call {
    action: Action,
    target: Target,
    operations: Vec<pb::Operation>,
    citation: Citation,
}

/// What reading the arguments came to: a call, or the problems and the target if that much was clear.
type Read = Result<Call, (Vec<String>, Option<Target>)>;

pub(crate) async fn call(clients: &Clients, context: &ToolContext, arguments: &str) -> ToolAnswer {
    if let Some(decision) = correction::read(arguments) {
        return correction::decide(clients, context, decision).await;
    }
    let call = match read(arguments, context.project.is_some()) {
        Ok(call) => call,
        Err((problems, target)) => return misused(clients, context, &problems, target).await,
    };
    let store = store_name(context, call.target);
    let request = pb::ApplyRequest {
        store: store.clone(),
        operations: call.operations,
        etag: String::new(),
        request_id: context.request_id(),
        evidence: context.evidence_pb(),
        reason: call.citation.why,
        turn: context.work.clone(),
        holds: None,
    };
    match clients.memory(context).apply(request).await {
        Ok(response) => applied(call.action, call.target, store, response),
        Err(error) => refused(MEMORY, STORE_NAMES.memory, call.action.as_str(), store, &error),
    }
}

fn read(text: &str, in_project: bool) -> Read {
    let mut arguments = Arguments::parse(text).map_err(|problem| (vec![problem], None))?;
    let action = arguments.required_choice("action", Action::ALL);
    let targets = if in_project {
        Target::WORDS_IN_PROJECT
    } else {
        Target::WORDS
    };
    let target = arguments.required_choice("target", targets);
    let operations = match action {
        Some(Action::Batch) => {
            let operations = arguments.objects("operations", |part| {
                let action = part.required_choice("action", Action::SINGLE);
                operation(part, action?)
            });
            if operations.is_empty() && arguments.is_sound() {
                arguments.wrong("operations", "is missing or empty; `batch` needs it");
            }
            operations
        }
        Some(single) => operation(&mut arguments, single).into_iter().collect(),
        None => Vec::new(),
    };
    let citation = citation::read(&mut arguments);
    let problems = arguments.problems();
    match (action, target) {
        (Some(action), Some(target)) if problems.is_empty() => Ok(Call {
            action,
            target,
            operations,
            citation,
        }),
        (_, target) => Err((problems, target)),
    }
}

fn operation(arguments: &mut Arguments, action: Action) -> Option<pb::Operation> {
    let action = match action {
        Action::Add => operation::Action::Add(pb::AddEntry {
            content: arguments.required("content", "`add`"),
        }),
        Action::Replace => operation::Action::Replace(pb::ReplaceEntry {
            old_text: arguments.required("old_text", "`replace`"),
            content: arguments.required("content", "`replace`"),
        }),
        Action::Remove => operation::Action::Remove(pb::RemoveEntry {
            old_text: arguments.required("old_text", "`remove`"),
        }),
        Action::Batch | Action::Confirm | Action::Drop => return None,
    };
    Some(pb::Operation { action: Some(action) })
}

fn store_name(context: &ToolContext, target: Target) -> String {
    let own = |store: &str| format!("{}/memory/{store}", context.user_name());
    match target {
        Target::Notes => own("notes"),
        Target::Profile => own("profile"),
        // Only offered, and only read, where there is one.
        Target::Project => context.project_notes().unwrap_or_else(|| own("notes")),
    }
}

/// The answer to wrong arguments: the problems, and the entries, so that the next try can be right (`D-45`).
async fn misused(clients: &Clients, context: &ToolContext, problems: &[String], target: Option<Target>) -> ToolAnswer {
    let mut answer = ToolAnswer::misused(MEMORY, problems);
    let Some(target) = target else { return answer };
    let request = pb::ListEntriesRequest {
        parent: store_name(context, target),
        page_size: LISTED,
        ..Default::default()
    };
    // Without the list the problems alone are still an answer.
    if let Ok(response) = clients.memory(context).list_entries(request).await {
        let title = target.title();
        match response.entries.as_slice() {
            [] => _ = write!(answer.content, "\n{title} has no entries."),
            entries => {
                _ = write!(answer.content, "\n{title} has {}:", plural(entries.len()));
                for entry in entries {
                    _ = write!(answer.content, "\n- {}", entry.content.replace('\n', "\n  "));
                }
            }
        }
        answer.spans = own(MEMORY, &answer.content, steward_base::Integrity::Workspace);
    }
    answer
}

fn plural(entries: usize) -> String {
    if entries == 1 {
        "1 entry".to_owned()
    } else {
        format!("{entries} entries")
    }
}

fn applied(action: Action, target: Target, store: String, response: pb::ApplyResponse) -> ToolAnswer {
    let title = target.title();
    let effective = response
        .changes
        .iter()
        .filter(|change| change.kind() != change::Kind::Unchanged)
        .count();
    let (result, summary) = if response.proposal.is_some() {
        (EffectResult::Proposed, format!("{title} change proposed"))
    } else if effective == 0 {
        (EffectResult::Unchanged, format!("{title} unchanged"))
    } else if effective == 1 {
        (EffectResult::Accepted, format!("{title} updated"))
    } else {
        (
            EffectResult::Accepted,
            format!("{title} updated ({})", count(effective, "change")),
        )
    };
    let (target, revision) = match (response.changes.as_slice(), response.proposal) {
        (_, Some(proposal)) => (proposal.name, String::new()),
        ([change], None) if !change.entry.is_empty() => (change.entry.clone(), change.revision.to_string()),
        _ => (store, String::new()),
    };
    ToolAnswer::success(MEMORY, response.tool_text, summary).with_effect(Effect {
        tool: MEMORY.to_owned(),
        action: action.as_str().to_owned(),
        target,
        result,
        reason: String::new(),
        gate: String::new(),
        revision,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(arguments: &str) -> Vec<String> {
        match read(arguments, false) {
            Ok(_) => Vec::new(),
            Err((problems, _)) => problems,
        }
    }

    #[test]
    fn each_action_names_what_it_lacks() {
        assert_eq!(
            problems(r#"{"action":"replace","target":"notes","content":"x"}"#),
            ["`old_text` is missing or blank; `replace` needs it"]
        );
        assert_eq!(
            problems(r#"{"action":"remove","target":"notes","old_text":"   "}"#),
            ["`old_text` is missing or blank; `remove` needs it"]
        );
        assert_eq!(
            problems(r#"{"action":"batch","target":"notes"}"#),
            ["`operations` is missing or empty; `batch` needs it"]
        );
        assert_eq!(
            problems(r#"{"action":"batch","target":"notes","operations":[{"action":"add"},{"action":"batch"}]}"#),
            [
                "`operations[0].content` is missing or blank; `add` needs it",
                "`operations[1].action` must be `add`, `replace` or `remove`"
            ]
        );
        assert_eq!(
            problems("{}"),
            [
                "`action` is missing; it must be `add`, `replace`, `remove`, `batch`, `confirm` or `drop`",
                "`target` is missing; it must be `notes` or `profile`"
            ]
        );
    }

    #[test]
    fn a_batch_keeps_its_order() {
        let call = read(
            r#"{"action":"batch","target":"profile","operations":[{"action":"remove","old_text":"a"},{"action":"add","content":"b"}]}"#,
            false,
        );
        let Ok(call) = call else {
            panic!("the arguments are right")
        };
        assert!(matches!(call.operations[0].action, Some(operation::Action::Remove(_))));
        assert!(matches!(call.operations[1].action, Some(operation::Action::Add(_))));
        assert_eq!(call.target, Target::Profile);
    }
}
