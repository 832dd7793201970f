//! `steward.skill.v1.ProposalService`: what waits for a person's decision.

use std::sync::Arc;

use steward_base::FieldViolations;
use steward_base::names::{parse_team, user_name};
use steward_proto::skill::v1 as pb;
use steward_proto::skill::v1::proposal_service_server::ProposalService;
use steward_skill_core::path::SkillPath;
use steward_skill_core::proposals::staged::CAUSE;
use steward_skill_core::proposals::{Proposal, ProposalState, ProposeRequest, Staged};
use steward_skill_core::{Actor, Error, Skills};
use tonic::{Request, Response, Status};

use super::convert::{evidence_to_pb, origin_to_pb, time_to_pb, viewer};
use super::fail;
use super::inbox::{self, Changes, Inboxes};

/// The RPCs on proposals.
#[derive(Debug, Clone)]
pub(crate) struct ProposalHandlers {
    skills: Arc<Skills>,
    changes: Changes,
}

impl ProposalHandlers {
    pub(crate) const fn new(skills: Arc<Skills>, changes: Changes) -> Self {
        Self { skills, changes }
    }
}

#[tonic::async_trait]
impl ProposalService for ProposalHandlers {
    async fn propose_skill(
        &self,
        request: Request<pb::ProposeSkillRequest>,
    ) -> Result<Response<pb::ProposeSkillResponse>, Status> {
        let actor = viewer(&request, "parent", &request.get_ref().parent)?;
        let request = request.into_inner();
        let wanted = ProposeRequest {
            skill: request.skill,
            reason: request.reason,
            category: request.category,
            request_id: request.request_id,
        };
        let proposal = self.skills.propose_skill(&actor, &wanted).await.map_err(fail)?;
        self.changes.tell(&actor.team);
        let proposal = Some(proposal_to_pb(proposal));
        Ok(Response::new(pb::ProposeSkillResponse { proposal }))
    }

    async fn get_proposal(
        &self,
        request: Request<pb::GetProposalRequest>,
    ) -> Result<Response<pb::GetProposalResponse>, Status> {
        let actor = Actor::new(steward_grpc::caller(&request)?).map_err(fail)?;
        let name = request.into_inner().name;
        let weighed = self.skills.get_proposal(&actor, &name).await.map_err(fail)?;
        Ok(Response::new(pb::GetProposalResponse {
            proposal: Some(proposal_to_pb(weighed.proposal)),
            diff: weighed.diff,
            conflicts: weighed.conflicts.iter().map(SkillPath::to_string).collect(),
        }))
    }

    async fn list_proposals(
        &self,
        request: Request<pb::ListProposalsRequest>,
    ) -> Result<Response<pb::ListProposalsResponse>, Status> {
        let actor = Actor::new(steward_grpc::caller(&request)?).map_err(fail)?;
        let request = request.into_inner();
        check_team(&actor, &request.parent).map_err(fail)?;
        let state = match request.state() {
            pb::SkillProposalState::Unspecified | pb::SkillProposalState::Pending => ProposalState::Pending,
            pb::SkillProposalState::Approved => ProposalState::Approved,
            pb::SkillProposalState::Rejected => ProposalState::Rejected,
            pb::SkillProposalState::Expired => ProposalState::Expired,
        };
        let (proposals, next_page_token) = self
            .skills
            .list_proposals(&actor, state, request.page_size, &request.page_token)
            .await
            .map_err(fail)?;
        Ok(Response::new(pb::ListProposalsResponse {
            proposals: proposals.into_iter().map(proposal_to_pb).collect(),
            next_page_token,
        }))
    }

    async fn approve_proposal(
        &self,
        request: Request<pb::ApproveProposalRequest>,
    ) -> Result<Response<pb::ApproveProposalResponse>, Status> {
        let actor = Actor::new(steward_grpc::caller(&request)?).map_err(fail)?;
        let request = request.into_inner();
        let approved = self
            .skills
            .approve_proposal(&actor, &request.name, &request.reason, request.content.as_deref())
            .await;
        let proposal = Some(proposal_to_pb(approved.map_err(fail)?));
        self.changes.tell(&actor.team);
        Ok(Response::new(pb::ApproveProposalResponse { proposal }))
    }

    async fn reject_proposal(
        &self,
        request: Request<pb::RejectProposalRequest>,
    ) -> Result<Response<pb::RejectProposalResponse>, Status> {
        let actor = Actor::new(steward_grpc::caller(&request)?).map_err(fail)?;
        let request = request.into_inner();
        let rejected = self
            .skills
            .reject_proposal(&actor, &request.name, &request.reason)
            .await;
        let proposal = Some(proposal_to_pb(rejected.map_err(fail)?));
        self.changes.tell(&actor.team);
        Ok(Response::new(pb::RejectProposalResponse { proposal }))
    }

    async fn get_inbox(&self, request: Request<pb::GetInboxRequest>) -> Result<Response<pb::GetInboxResponse>, Status> {
        let actor = Actor::new(steward_grpc::caller(&request)?).map_err(fail)?;
        check_team(&actor, &request.get_ref().parent).map_err(fail)?;
        let inbox = self.skills.inbox(&actor).await.map_err(fail)?;
        Ok(Response::new(pb::GetInboxResponse {
            inbox: Some(inbox::to_pb(inbox)),
        }))
    }

    type WatchInboxStream = Inboxes;

    async fn watch_inbox(&self, request: Request<pb::WatchInboxRequest>) -> Result<Response<Inboxes>, Status> {
        let actor = Actor::new(steward_grpc::caller(&request)?).map_err(fail)?;
        check_team(&actor, &request.get_ref().parent).map_err(fail)?;
        let changes = self.changes.follow();
        let first = self.skills.inbox(&actor).await.map_err(fail)?;
        Ok(Response::new(inbox::watch(
            Arc::clone(&self.skills),
            actor,
            changes,
            first,
        )))
    }
}

fn check_team(actor: &Actor, parent: &str) -> Result<(), Error> {
    let team = parse_team(parent).map_err(|problem| FieldViolations::one("parent", problem.to_string()))?;
    if team == actor.team {
        Ok(())
    } else {
        Err(FieldViolations::one("parent", "is not the caller's team").into())
    }
}

fn proposal_to_pb(proposal: Proposal) -> pb::SkillProposal {
    let state = match proposal.state {
        ProposalState::Pending => pb::SkillProposalState::Pending,
        ProposalState::Approved => pb::SkillProposalState::Approved,
        ProposalState::Rejected => pb::SkillProposalState::Rejected,
        ProposalState::Expired => pb::SkillProposalState::Expired,
    };
    let decision = proposal.decision.as_ref();
    let decided_by = decision.and_then(|decision| decision.by.as_ref());
    pb::SkillProposal {
        name: proposal.resource_name(),
        target: proposal.target(),
        category: proposal.category.to_string(),
        author: proposal
            .author
            .as_ref()
            .map_or_else(String::new, |author| user_name(&proposal.team, author)),
        state: state.into(),
        decided_by: decided_by.map_or_else(String::new, |user| user_name(&proposal.team, user)),
        decision_reason: decision.map_or_else(String::new, |decision| decision.reason.clone()),
        decide_time: decision.and_then(|decision| time_to_pb(decision.at)),
        create_time: time_to_pb(proposal.created),
        expire_time: proposal.expires.and_then(time_to_pb),
        write: proposal.staged.as_ref().map(|staged| write_to_pb(&proposal, staged)),
        base_revision: proposal.base.map(|base| base.revision).unwrap_or_default(),
        skill: proposal.skill,
        revision: proposal.revision,
        reason: proposal.reason,
    }
}

fn write_to_pb(proposal: &Proposal, staged: &Staged) -> pb::ProposedWrite {
    let (action, by) = (&staged.action, &staged.by);
    let edited = staged.edited.as_ref().and_then(|edited| edited.text());
    pb::ProposedWrite {
        action: action.verb().to_owned(),
        path: action.path().unwrap_or_default().to_owned(),
        content: action.text().unwrap_or_default().to_owned(),
        edited_content: edited.map(str::to_owned),
        cause: CAUSE.to_owned(),
        origin: origin_to_pb(by.origin).into(),
        session: by.session.as_ref().map_or_else(String::new, |session| {
            format!("teams/{}/sessions/{session}", proposal.team)
        }),
        job: by.job.as_ref().map_or_else(String::new, |job| job.id.clone()),
        evidence: by.evidence.first().map(evidence_to_pb),
    }
}
