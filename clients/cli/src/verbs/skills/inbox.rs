//! `steward skills inbox`: skills on their way from a person to the team: look, approve, reject.

use clap::{Subcommand, ValueEnum};
use steward_proto::skill::v1 as pb;

use crate::connect::Session;
use crate::output::{ALL, Cell, Output, Tone, gather, short, time, word};

/// Verbs of `steward skills inbox`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List proposals, oldest first: all of the team's for maintainers, else your own.
    List {
        /// Those that wait, or those that were decided.
        #[arg(long, value_enum, default_value_t = State::Pending)]
        state: State,
    },
    /// Show a proposal with what it would change in the team's library.
    Show {
        /// Id or full name.
        proposal: String,
    },
    /// Make the proposed files the team's (maintainers).
    Approve {
        /// Id or full name.
        proposal: String,
        /// Why.
        #[arg(default_value = "", hide_default_value = true)]
        reason: String,
    },
    /// Turn a proposal down, or withdraw your own.
    Reject {
        /// Id or full name.
        proposal: String,
        /// Why.
        reason: String,
    },
}

/// State of a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum State {
    /// Waits.
    Pending,
    /// Took effect.
    Approved,
    /// Was refused.
    Rejected,
}

impl From<State> for pb::SkillProposalState {
    fn from(state: State) -> Self {
        match state {
            State::Pending => Self::Pending,
            State::Approved => Self::Approved,
            State::Rejected => Self::Rejected,
        }
    }
}

/// Runs a verb.
pub(super) async fn run(verb: Verb, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let proposals = &session.client.skill_proposals;
    let full = |given: &str| session.child("skillProposals", given);
    match verb {
        Verb::List { state } => {
            let answer = gather(ALL, |page_size, page_token| {
                proposals.list_proposals(pb::ListProposalsRequest {
                    parent: session.team.clone(),
                    state: pb::SkillProposalState::from(state).into(),
                    page_size,
                    page_token,
                })
            });
            output.answer(&answer.await?, list)
        }
        Verb::Show { proposal } => {
            let request = pb::GetProposalRequest { name: full(&proposal) };
            output.answer(&proposals.get_proposal(request).await?, |output, answer| {
                show(output, answer.proposal.as_ref());
                for path in &answer.conflicts {
                    output.warn(&format!("both sides changed the same lines of {path}"));
                }
                if !answer.diff.is_empty() {
                    output.line("");
                    output.diff(&answer.diff);
                }
            })
        }
        Verb::Approve { proposal, reason } => {
            let request = pb::ApproveProposalRequest {
                name: full(&proposal),
                reason,
            };
            output.answer(&proposals.approve_proposal(request).await?, |output, answer| {
                let target = answer.proposal.as_ref().map(|proposal| proposal.target.as_str());
                output.line(&format!("It is the team's now: {}.", target.unwrap_or_default()));
            })
        }
        Verb::Reject { proposal, reason } => {
            let request = pb::RejectProposalRequest {
                name: full(&proposal),
                reason,
            };
            output.answer(&proposals.reject_proposal(request).await?, |output, _| {
                output.line("Rejected.");
            })
        }
    }
}

fn list(output: &mut Output, answer: &pb::ListProposalsResponse) {
    let rows = answer.proposals.iter().map(|proposal| {
        let what = if proposal.base_revision.is_empty() {
            "new"
        } else {
            "change"
        };
        vec![
            Cell::name(short(&proposal.name)),
            Cell::side(time(proposal.create_time.as_ref())),
            short(&proposal.skill).into(),
            what.into(),
            short(&proposal.author).into(),
            proposal.reason.as_str().into(),
        ]
    });
    let head = ["proposal", "since", "skill", "", "by", "why"];
    output.table(&head, rows.collect(), "Nothing here.");
}

/// A proposal for people.
pub(super) fn show(output: &mut Output, proposal: Option<&pb::SkillProposal>) {
    let Some(proposal) = proposal else { return };
    let state = word(proposal.state().as_str_name(), "SKILL_PROPOSAL_STATE_");
    output.record(vec![
        ("name", Cell::name(proposal.name.as_str())),
        ("state", Cell::toned(state.as_str(), Tone::of_state(&state))),
        ("skill", proposal.skill.as_str().into()),
        ("revision", proposal.revision.as_str().into()),
        ("would be", proposal.target.as_str().into()),
        ("category", proposal.category.as_str().into()),
        ("by", short(&proposal.author).into()),
        ("why", proposal.reason.as_str().into()),
        ("made", time(proposal.create_time.as_ref()).into()),
        ("decided", time(proposal.decide_time.as_ref()).into()),
        ("decided by", short(&proposal.decided_by).into()),
        ("reason", proposal.decision_reason.as_str().into()),
    ]);
}
