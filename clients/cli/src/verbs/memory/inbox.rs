//! `steward memory inbox`: writes that wait for a person: look, approve as they are or changed, reject, follow.

use anyhow::ensure;
use clap::Subcommand;
use steward_proto::memory::v1 as pb;
use steward_proto::memory::v1::operation::Action;

use super::show;
use crate::connect::Session;
use crate::output::{ALL, Cell, Output, SIDE, counted, gather, printable, short, time, word};
use crate::verbs::inbox::{self, State};

/// Verbs of `steward memory inbox`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List proposals, oldest first.
    List {
        /// Those that wait, or those that were decided.
        #[arg(long, value_enum, default_value_t = State::Pending)]
        state: State,
    },
    /// Show a proposal whole: what it would change, who proposes it and on what it rests.
    Show {
        /// Id or full name.
        proposal: String,
    },
    /// Apply a proposal, as it is or with another text.
    Approve {
        /// Id or full name.
        proposal: String,
        /// Text that is to stand there instead; once for each change that has a text, in their order.
        #[arg(long, value_name = "TEXT")]
        content: Vec<String>,
    },
    /// Refuse a proposal.
    Reject {
        /// Id or full name.
        proposal: String,
        /// Why.
        reason: String,
    },
    /// Say how much waits for you, now and whenever that changes.
    Watch {
        /// Say it once.
        #[arg(long)]
        once: bool,
    },
}

impl From<State> for pb::ProposalState {
    fn from(state: State) -> Self {
        match state {
            State::Pending => Self::Pending,
            State::Approved => Self::Approved,
            State::Rejected => Self::Rejected,
            State::Expired => Self::Expired,
        }
    }
}

/// Runs a verb.
pub(super) async fn run(verb: Verb, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let memory = &session.client.memory;
    let full = |given: &str| session.child("memoryProposals", given);
    match verb {
        Verb::List { state } => output.answer(&list(state, session).await?, proposals),
        Verb::Show { proposal } => {
            let request = pb::GetProposalRequest { name: full(&proposal) };
            output.answer(&memory.get_proposal(request).await?, |output, answer| {
                whole(output, &answer.proposal.clone().unwrap_or_default());
            })
        }
        Verb::Approve { proposal, content } => {
            let name = full(&proposal);
            let operations = if content.is_empty() {
                Vec::new()
            } else {
                let request = pb::GetProposalRequest { name: name.clone() };
                let proposed = memory.get_proposal(request).await?.proposal.unwrap_or_default();
                edited(proposed.operations, content)?
            };
            let request = pb::ApproveProposalRequest { name, operations };
            output.answer(&memory.approve_proposal(request).await?, |output, answer| {
                let proposal = answer.proposal.clone().unwrap_or_default();
                output.line(match proposal.state() {
                    pb::ProposalState::Approved => "Applied.",
                    _ => "Passed on; a maintainer decides.",
                });
            })
        }
        Verb::Reject { proposal, reason } => {
            let request = pb::RejectProposalRequest {
                name: full(&proposal),
                reason,
            };
            output.answer(&memory.reject_proposal(request).await?, |output, _| {
                output.line("Rejected.");
            })
        }
        Verb::Watch { once: true } => {
            let request = pb::GetInboxRequest {
                parent: session.team.clone(),
            };
            output.answer(&memory.get_inbox(request).await?, |output, answer| {
                output.line(&counts(answer.inbox));
            })
        }
        Verb::Watch { once: false } => {
            let request = pb::WatchInboxRequest {
                parent: session.team.clone(),
            };
            let changes = memory.watch_inbox(request).await?;
            inbox::watch(changes, |now| counts(now.inbox), output).await
        }
    }
}

async fn list(state: State, session: &Session) -> anyhow::Result<pb::ListProposalsResponse> {
    let answer = gather(ALL, |page_size, page_token| {
        session.client.memory.list_proposals(pb::ListProposalsRequest {
            parent: session.team.clone(),
            state: pb::ProposalState::from(state).into(),
            page_size,
            page_token,
        })
    });
    Ok(answer.await?)
}

/// The operations with other texts, in their order.
fn edited(mut operations: Vec<pb::Operation>, contents: Vec<String>) -> anyhow::Result<Vec<pb::Operation>> {
    let texts = operations
        .iter_mut()
        .filter_map(|operation| match operation.action.as_mut()? {
            Action::Add(add) => Some(&mut add.content),
            Action::Replace(replace) => Some(&mut replace.content),
            Action::Remove(_) => None,
        });
    let texts: Vec<_> = texts.collect();
    ensure!(
        texts.len() == contents.len(),
        "the proposal has {}, and --content was given {}",
        counted(texts.len(), "text"),
        counted(contents.len(), "time")
    );
    for (text, content) in texts.into_iter().zip(contents) {
        *text = content;
    }
    Ok(operations)
}

fn counts(inbox: Option<pb::Inbox>) -> String {
    let inbox = inbox.unwrap_or_default();
    let waiting = inbox::waiting(inbox.pending_proposals, inbox.oldest_create_time.as_ref());
    let stale = match inbox.stale_entries {
        0 => String::new(),
        1 => "; 1 entry no longer holds".to_owned(),
        many => format!("; {many} entries no longer hold"),
    };
    format!("{waiting}{stale}")
}

fn proposals(output: &mut Output, answer: &pb::ListProposalsResponse) {
    let rows = answer
        .proposals
        .iter()
        .map(|proposal| {
            let what: Vec<_> = proposal.operations.iter().map(show::operation).collect();
            vec![
                Cell::name(short(&proposal.name)),
                Cell::side(time(proposal.create_time.as_ref())),
                what.join("\n").into(),
                proposal.cause.as_str().into(),
            ]
        })
        .collect();
    output.table(
        &["proposal", "since", "change", "why a proposal"],
        rows,
        "Nothing here.",
    );
}

fn whole(output: &mut Output, proposal: &pb::Proposal) {
    let state = word(proposal.state().as_str_name(), "PROPOSAL_STATE_");
    let shown = match (proposal.state(), proposal.shown) {
        (pb::ProposalState::Pending, false) => "you alone, until you approve it",
        _ => "",
    };
    let mut properties = vec![
        ("name", Cell::name(proposal.name.as_str())),
        ("store", proposal.store.as_str().into()),
        ("state", Cell::state(state)),
        ("why a proposal", proposal.cause.as_str().into()),
        ("seen by", shown.into()),
        ("made", time(proposal.create_time.as_ref()).into()),
        ("expires", time(proposal.expire_time.as_ref()).into()),
        ("decided", time(proposal.decide_time.as_ref()).into()),
        ("decided by", short(&proposal.decided_by).into()),
        ("reason", proposal.decision_reason.as_str().into()),
    ];
    properties.extend(show::origin(&proposal.provenance.clone().unwrap_or_default()));
    output.record(properties);
    output.line("");
    for operation in &proposal.operations {
        output.line(&printable(&show::operation(operation)));
    }
    for operation in &proposal.edited_operations {
        output.line(&format!(
            "{SIDE}what took effect:{SIDE:#} {}",
            printable(&show::operation(operation))
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operations() -> Vec<pb::Operation> {
        let add = Action::Add(pb::AddEntry {
            content: "old".to_owned(),
        });
        let remove = Action::Remove(pb::RemoveEntry {
            old_text: "x".to_owned(),
        });
        let operation = |action| pb::Operation { action: Some(action) };
        vec![operation(add), operation(remove)]
    }

    #[test]
    fn an_edit_gives_each_text_of_a_proposal_another_one() {
        let changed = edited(operations(), vec!["new".to_owned()]).unwrap();
        assert_eq!(show::operation(&changed[0]), "add: new");
        assert_eq!(show::operation(&changed[1]), "remove “x”");
        let many = edited(operations(), vec!["a".to_owned(), "b".to_owned()]);
        assert!(many.unwrap_err().to_string().contains("has 1 text"));
    }

    #[test]
    fn entries_that_no_longer_hold_are_said_behind_what_waits() {
        let mut inbox = pb::Inbox {
            pending_proposals: 1,
            ..pb::Inbox::default()
        };
        assert_eq!(counts(Some(inbox)), "1 proposal waiting");
        inbox.stale_entries = 2;
        assert_eq!(counts(Some(inbox)), "1 proposal waiting; 2 entries no longer hold");
        assert_eq!(counts(None), "0 proposals waiting");
    }
}
