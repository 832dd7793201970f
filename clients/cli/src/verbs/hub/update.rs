//! Keeping up to date: updates from the recorded sources, and rescans.

use serde_json::{Value, json};
use steward_client::ClientError;
use steward_proto::hub::v1 as pb;
use steward_proto::hub::v1::HubPlanState as State;
use steward_proto::hub::v1::fetch_hub_update_response::Event;

use super::{Choice, fetch, show, skill_name};
use crate::connect::{Session, request_id};
use crate::output::{ALL, Cell, Output, Tone, gather, json_of, printable, sentence, short, word};

/// What became of one skill.
struct Outcome {
    skill: String,
    /// In a word or two.
    state: String,
    tone: Tone,
    /// What to know besides.
    note: String,
    item: Option<pb::HubItem>,
    failed: bool,
}

impl Outcome {
    fn new(skill: &str, state: &str, tone: Tone, note: impl Into<String>) -> Self {
        Self {
            skill: skill.to_owned(),
            state: state.to_owned(),
            tone,
            note: note.into(),
            item: None,
            failed: false,
        }
    }
}

pub(super) async fn update(
    mut skills: Vec<String>,
    choice: Choice,
    session: &Session,
    output: &mut Output,
) -> anyhow::Result<()> {
    if skills.is_empty() {
        let hub = &session.client.hub;
        let all = gather(ALL, |page_size, page_token| {
            hub.list_hub_skills(pb::ListHubSkillsRequest {
                parent: session.team.clone(),
                page_size,
                page_token,
            })
        });
        skills = all.await?.skills.into_iter().map(|skill| skill.name).collect();
    }
    let mut outcomes = Vec::new();
    for skill in &skills {
        let name = skill_name(session, skill);
        // One that fails hides none of the others.
        outcomes.push(match one(&name, choice, session, output).await {
            Ok(outcome) => outcome,
            Err(error) => Outcome {
                failed: true,
                ..Outcome::new(
                    &name,
                    "failed",
                    Tone::Bad,
                    format!("{} ({})", sentence(&error), error.reason),
                )
            },
        });
        output.progress("");
    }
    told(&outcomes, output)?;
    if outcomes.iter().any(|outcome| outcome.failed) {
        return Err(crate::Said.into());
    }
    Ok(())
}

fn told(outcomes: &[Outcome], output: &mut Output) -> anyhow::Result<()> {
    if output.is_json() {
        let mut updates = Vec::new();
        for outcome in outcomes {
            let item = outcome.item.as_ref().map(json_of).transpose()?;
            updates.push(json!({
                "skill": outcome.skill,
                "state": outcome.state,
                "note": printable(&outcome.note),
                "item": item.unwrap_or(Value::Null),
            }));
        }
        return output.document(&json!({ "updates": updates }));
    }
    let rows = outcomes.iter().map(|outcome| {
        vec![
            Cell::name(short(&outcome.skill)),
            Cell::toned(outcome.state.as_str(), outcome.tone),
            outcome.note.as_str().into(),
        ]
    });
    output.table(&["skill", "", ""], rows.collect(), "The hub has installed nothing.");
    Ok(())
}

async fn one(name: &str, choice: Choice, session: &Session, output: &mut Output) -> Result<Outcome, ClientError> {
    let request = pb::PlanHubUpdateRequest { name: name.to_owned() };
    output.progress(&format!("looking for {}", short(name)));
    let plan = session
        .client
        .hub
        .plan_hub_update(request)
        .await?
        .plan
        .unwrap_or_default();
    let outcome = |state: &str, tone, note: &str| Ok(Outcome::new(name, state, tone, note));
    match plan.state() {
        State::Current | State::Unspecified => return outcome("current", Tone::Side, ""),
        State::GoneUpstream => return outcome("gone upstream", Tone::Notice, "what is installed stays"),
        // Nobody knows then whether there is something newer.
        State::SourceUnavailable => {
            return Ok(Outcome {
                failed: true,
                ..Outcome::new(name, "source not available", Tone::Bad, &*plan.problem)
            });
        }
        State::Cooling => {
            let note = format!("{} is too young to be taken without a word", plan.revision);
            return outcome("cooling", Tone::Side, &note);
        }
        State::LocalChanges if plan.revision.is_empty() => {
            return outcome("changed here", Tone::Side, "and its source has nothing newer");
        }
        State::LocalChanges if !choice.takes_changes() => {
            let note = format!(
                "skipped; `steward hub plan {}` shows both, --merge unites them",
                short(name)
            );
            return outcome("changed here", Tone::Notice, &note);
        }
        State::Available | State::OwnerChanged | State::LocalChanges => {}
    }
    let item = bring(name, session, output).await?;
    if item.state() != pb::HubItemState::Approved {
        let state = word(item.state().as_str_name(), "HUB_ITEM_STATE_");
        let tone = if item.state() == pb::HubItemState::AwaitingApproval {
            Tone::Notice
        } else {
            Tone::Bad
        };
        let note = format!("`steward hub item {}` says why", short(&item.name));
        return Ok(Outcome {
            item: Some(item),
            ..Outcome::new(name, &state, tone, note)
        });
    }
    let done = session.client.hub.install_hub_item(choice.request(&item.name)).await?;
    let note = if done.merged.is_empty() {
        item.revision.clone()
    } else {
        format!(
            "{}, merged with your changes in {}",
            item.revision,
            done.merged.join(", ")
        )
    };
    Ok(Outcome {
        item: Some(item),
        ..Outcome::new(name, "updated", Tone::Good, note)
    })
}

async fn bring(name: &str, session: &Session, output: &mut Output) -> Result<pb::HubItem, ClientError> {
    let request = pb::FetchHubUpdateRequest {
        name: name.to_owned(),
        request_id: request_id(),
    };
    let mut stream = session.client.hub.fetch_hub_update(request).await?;
    let mut found = pb::HubItem::default();
    while let Some(answer) = stream.message().await? {
        match answer.event {
            Some(Event::Progress(progress)) => fetch::tell(&progress, output),
            Some(Event::Item(item)) => found = item,
            None => {}
        }
    }
    Ok(found)
}

pub(super) async fn rescan(session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let request = pb::RescanHubSkillsRequest {
        parent: session.team.clone(),
    };
    let mut stream = session.client.hub.rescan_hub_skills(request).await?;
    let (mut count, mut worse) = (0, false);
    while let Some(answer) = stream.message().await? {
        count += 1;
        worse |= answer.worse;
        output.progress(&format!("{} of {}", answer.position, answer.total));
        if !answer.worse && !output.is_json() {
            continue;
        }
        output.progress("");
        output.item(&answer, |output, answer| {
            let before = show::verdict_word(answer.before());
            output.head(&format!("{} was {before} when it was let in", short(&answer.name)));
            show::report(output, answer.report.as_ref());
        })?;
    }
    output.progress("");
    if worse {
        return Err(crate::Said.into());
    }
    if !output.is_json() {
        let all = crate::output::counted(count, "skill");
        output.line(&format!(
            "{all} scanned with today's rules; none is worse than when it was let in."
        ));
    }
    Ok(())
}
