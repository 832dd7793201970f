//! A review's decision on a correction that the person made in the conversation and that waits since (`M-8`): `confirm`
//! keeps it, as it is or merged with what is there; `drop` lets it go. In a turn nobody decides: only a review has cited
//! evidence, and memory-service checks that it is the one of that very conversation.

use steward_client::MemoryClient;
use steward_proto::memory::v1::{self as pb, operation};

use crate::answer::{Effect, EffectResult, ToolAnswer};
use crate::arguments::Arguments;
use crate::citation;
use crate::context::ToolContext;
use crate::definitions::MEMORY;
use crate::failure::refused;
use crate::{Clients, STORE_NAMES};

/// What is decided.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    /// It takes effect; with other operations than were staged, if there are any.
    Confirm(Vec<pb::Operation>),
    /// It does not, and why.
    Drop(String),
}

/// A decision as the model made it, or what is wrong with it.
#[derive(Debug)]
pub(crate) struct Decision {
    correction: String,
    verdict: Result<Verdict, Vec<String>>,
}

const CHOICES: &[(&str, bool)] = &[("confirm", true), ("drop", false)];

/// Reads a call whose action is one of the two; `None` for all others.
pub(crate) fn read(text: &str) -> Option<Decision> {
    let mut arguments = Arguments::parse(text).ok()?;
    let confirms = arguments.choice("action", CHOICES)?;
    // Corrections know their store; what a review cites otherwise is read and not needed.
    let _ = arguments.text("target");
    let correction = arguments.required("correction", if confirms { "`confirm`" } else { "`drop`" });
    let content = arguments.text("content").filter(|text| !text.trim().is_empty());
    let old_text = arguments.text("old_text").filter(|text| !text.trim().is_empty());
    let why = citation::read(&mut arguments).why;
    if confirms && content.is_none() && old_text.is_some() {
        arguments.wrong(
            "content",
            "is missing; what takes the place of `old_text` must be given",
        );
    }
    if !confirms && why.trim().is_empty() {
        arguments.wrong("why", "is missing or blank; `drop` needs it");
    }
    let problems = arguments.problems();
    let verdict = if !problems.is_empty() {
        Err(problems)
    } else if confirms {
        Ok(Verdict::Confirm(
            content.map(|content| merged(content, old_text)).into_iter().collect(),
        ))
    } else {
        Ok(Verdict::Drop(why))
    };
    Some(Decision { correction, verdict })
}

fn merged(content: String, old_text: Option<String>) -> pb::Operation {
    let action = match old_text {
        Some(old_text) => operation::Action::Replace(pb::ReplaceEntry { old_text, content }),
        None => operation::Action::Add(pb::AddEntry { content }),
    };
    pb::Operation { action: Some(action) }
}

/// Carries it out. `correction` names the proposal by its last segment or in full.
pub(crate) async fn decide(clients: &Clients, context: &ToolContext, decision: Decision) -> ToolAnswer {
    let verdict = match decision.verdict {
        Ok(verdict) => verdict,
        Err(problems) => return ToolAnswer::misused(MEMORY, &problems),
    };
    if context.evidence.is_none() {
        let only = "`confirm` and `drop` are for the review of a conversation; use `add`, `replace` or `remove`";
        return ToolAnswer::misused(MEMORY, &[only.to_owned()]);
    }
    let memory = clients.memory(context);
    let name = proposal_name(context, &decision.correction);
    match verdict {
        Verdict::Confirm(operations) => confirm(&memory, name, operations).await,
        Verdict::Drop(reason) => dropped(&memory, name, reason).await,
    }
}

fn proposal_name(context: &ToolContext, correction: &str) -> String {
    let id = correction.rsplit('/').next().unwrap_or(correction);
    format!("{}/memoryProposals/{id}", steward_base::names::team_name(&context.team))
}

async fn confirm(memory: &MemoryClient, name: String, operations: Vec<pb::Operation>) -> ToolAnswer {
    const ACTION: &str = "confirm";
    let request = pb::ApproveProposalRequest {
        name: name.clone(),
        operations,
    };
    match memory.approve_proposal(request).await {
        Ok(response) => {
            let store = response.proposal.map(|proposal| proposal.store).unwrap_or_default();
            let title = if store.ends_with("/profile") {
                "Profile"
            } else {
                "Notes"
            };
            let content = format!(
                "The correction is kept: it stands in {} from now on.",
                title.to_lowercase()
            );
            ToolAnswer::success(MEMORY, content, format!("{title} updated (a correction)"))
                .with_effect(effect(ACTION, store))
        }
        Err(error) => refused(MEMORY, STORE_NAMES.memory, ACTION, name, &error),
    }
}

async fn dropped(memory: &MemoryClient, name: String, reason: String) -> ToolAnswer {
    const ACTION: &str = "drop";
    let request = pb::RejectProposalRequest {
        name: name.clone(),
        reason,
    };
    match memory.reject_proposal(request).await {
        Ok(_) => {
            let content = "The correction is dropped; nothing was kept of it.".to_owned();
            ToolAnswer::success(MEMORY, content, "Correction dropped".to_owned()).with_effect(effect(ACTION, name))
        }
        Err(error) => refused(MEMORY, STORE_NAMES.memory, ACTION, name, &error),
    }
}

fn effect(action: &str, target: String) -> Effect {
    Effect {
        tool: MEMORY.to_owned(),
        action: action.to_owned(),
        target,
        result: EffectResult::Accepted,
        reason: String::new(),
        gate: String::new(),
        revision: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(arguments: &str) -> Vec<String> {
        read(arguments).unwrap().verdict.err().unwrap_or_default()
    }

    #[test]
    fn a_decision_names_what_it_lacks() {
        assert_eq!(
            problems(r#"{"action":"drop"}"#),
            [
                "`correction` is missing or blank; `drop` needs it",
                "`why` is missing or blank; `drop` needs it"
            ]
        );
        assert_eq!(
            problems(r#"{"action":"confirm","correction":"c1","old_text":"x"}"#),
            ["`content` is missing; what takes the place of `old_text` must be given"]
        );
        assert!(read(r#"{"action":"add","target":"notes","content":"x"}"#).is_none());
        assert!(read("{").is_none());
    }

    #[test]
    fn a_merge_takes_the_place_of_what_is_there() {
        let merge = read(r#"{"action":"confirm","correction":"c1","old_text":"old","content":"new"}"#).unwrap();
        let Ok(Verdict::Confirm(operations)) = merge.verdict else {
            panic!("it is right")
        };
        assert!(matches!(&operations[0].action, Some(operation::Action::Replace(replace)) if replace.content == "new"));
        let as_it_is = read(r#"{"action":"confirm","correction":"c1"}"#).unwrap();
        assert_eq!(as_it_is.verdict, Ok(Verdict::Confirm(Vec::new())));
    }
}
