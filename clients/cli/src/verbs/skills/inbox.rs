//! `steward skills inbox`: skills on their way from a person to the team, and writes of reviews that wait for their person: look,
//! approve as they are or changed, reject, follow.

use clap::Subcommand;
use steward_proto::skill::v1 as pb;

use crate::connect::Session;
use crate::output::{ALL, Cell, Output, Tone, gather, printable, short, time, word};
use crate::verbs::inbox::{self, State};

/// Verbs of `steward skills inbox`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List proposals, oldest first: your own, and for maintainers all that are for the team.
    List {
        /// Those that wait, or those that were decided.
        #[arg(long, value_enum, default_value_t = State::Pending)]
        state: State,
    },
    /// Show a proposal with what it would change, who proposes it and on what it rests.
    Show {
        /// Id or full name.
        proposal: String,
    },
    /// Carry a proposal out: make the proposed files the team's (maintainers), or do the write, as it is or with another text.
    Approve {
        /// Id or full name.
        proposal: String,
        /// Why.
        #[arg(default_value = "", hide_default_value = true)]
        reason: String,
        /// Text to put there instead of the proposed one; only for a write.
        #[arg(long, value_name = "TEXT")]
        content: Option<String>,
    },
    /// Turn a proposal down, or withdraw your own.
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

impl From<State> for pb::SkillProposalState {
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
        Verb::Approve {
            proposal,
            reason,
            content,
        } => {
            let request = pb::ApproveProposalRequest {
                name: full(&proposal),
                reason,
                content,
            };
            output.answer(&proposals.approve_proposal(request).await?, |output, answer| {
                let proposal = answer.proposal.clone().unwrap_or_default();
                output.line(&match proposal.write {
                    Some(_) => format!("Done: {}.", printable(&proposal.target)),
                    None => format!("It is the team's now: {}.", printable(&proposal.target)),
                });
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
        Verb::Watch { once: true } => {
            let request = pb::GetInboxRequest {
                parent: session.team.clone(),
            };
            output.answer(&proposals.get_inbox(request).await?, |output, answer| {
                output.line(&counts(answer.inbox));
            })
        }
        Verb::Watch { once: false } => {
            let request = pb::WatchInboxRequest {
                parent: session.team.clone(),
            };
            let changes = proposals.watch_inbox(request).await?;
            inbox::watch(changes, |now| counts(now.inbox), output).await
        }
    }
}

fn counts(inbox: Option<pb::SkillInbox>) -> String {
    let inbox = inbox.unwrap_or_default();
    inbox::waiting(inbox.pending_proposals, inbox.oldest_create_time.as_ref())
}

fn list(output: &mut Output, answer: &pb::ListProposalsResponse) {
    let rows = answer.proposals.iter().map(|proposal| {
        let what = match &proposal.write {
            Some(write) => write.action.as_str(),
            None if proposal.base_revision.is_empty() => "new",
            None => "change",
        };
        // Of a write, why it waits, as memory's inbox has it; what its writer says for it is shown with the whole.
        let why = match &proposal.write {
            Some(write) => &write.cause,
            None => &proposal.reason,
        };
        vec![
            Cell::name(short(&proposal.name)),
            Cell::side(time(proposal.create_time.as_ref())),
            short(&proposal.skill).into(),
            what.into(),
            short(&proposal.author).into(),
            why.as_str().into(),
        ]
    });
    let head = ["proposal", "since", "skill", "", "by", "why"];
    output.table(&head, rows.collect(), "Nothing here.");
}

/// A proposal for people.
pub(super) fn show(output: &mut Output, proposal: Option<&pb::SkillProposal>) {
    let Some(proposal) = proposal else { return };
    let state = word(proposal.state().as_str_name(), "SKILL_PROPOSAL_STATE_");
    let mut properties = vec![
        ("name", Cell::name(proposal.name.as_str())),
        ("state", Cell::toned(state.as_str(), Tone::of_state(&state))),
        ("skill", proposal.skill.as_str().into()),
        ("revision", proposal.revision.as_str().into()),
        ("would be", proposal.target.as_str().into()),
        ("category", proposal.category.as_str().into()),
        ("by", short(&proposal.author).into()),
        ("why", proposal.reason.as_str().into()),
    ];
    properties.extend(proposal.write.iter().flat_map(origin));
    properties.extend([
        ("made", time(proposal.create_time.as_ref()).into()),
        ("expires", time(proposal.expire_time.as_ref()).into()),
        ("decided", time(proposal.decide_time.as_ref()).into()),
        ("decided by", short(&proposal.decided_by).into()),
        ("reason", proposal.decision_reason.as_str().into()),
    ]);
    output.record(properties);
}

/// What a write does, where it comes from and on what it rests.
fn origin(write: &pb::ProposedWrite) -> Vec<(&'static str, Cell)> {
    let evidence = write.evidence.clone().unwrap_or_default();
    vec![
        ("action", format!("{} {}", write.action, write.path).trim_end().into()),
        ("why it waits", write.cause.as_str().into()),
        ("from", word(write.origin().as_str_name(), "ORIGIN_").into()),
        ("session", write.session.as_str().into()),
        ("job", write.job.as_str().into()),
        ("rests on", evidence.spans.join(", ").into()),
        ("instead", write.edited_content.as_deref().unwrap_or_default().into()),
    ]
}
