//! Which teams' libraries are due, by recall's word on who was active when (`C-1`).

use std::sync::Arc;

use steward_base::names::{TeamId, UserId, parse_team, parse_user};
use steward_base::{Clock, IdGen, PerTeam, Timestamp};
use steward_client::SessionStoreClient;
use steward_curator_core::curation::RunId;
use steward_curator_core::curation::due::Rhythm;
use steward_proto::recall::v1 as pb;
use steward_runtime::reconcile::Report;
use steward_runtime::{BoxError, Reconciler};

use crate::peers::{RECALL, by};
use crate::sqlite::{Candidate, Ledger};

/// The reconciler.
#[derive(Debug)]
pub(crate) struct CurationDue {
    pub(crate) ledger: Ledger,
    /// With the worker's own credential.
    pub(crate) sessions: SessionStoreClient,
    pub(crate) rhythm: PerTeam<Rhythm>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdGen>,
}

impl Reconciler for CurationDue {
    fn name(&self) -> &'static str {
        "learning/curation-due"
    }

    async fn tick(&self) -> Result<Report, BoxError> {
        let (mut items, mut page_token) = (0, String::new());
        if !self.rhythm.values().any(|rhythm| rhythm.enabled) {
            return Ok(Report::default());
        }
        loop {
            let request = pb::ListTeamActivityRequest {
                page_size: 0,
                page_token,
            };
            let page = self.sessions.list_team_activity(request).await.map_err(by(RECALL))?;
            let candidates = page
                .teams
                .into_iter()
                .filter_map(|team| self.candidate(&team))
                .collect();
            items += self.ledger.enqueue_due(candidates, self.rhythm.clone()).await?;
            if page.next_page_token.is_empty() {
                return Ok(Report { items, more: false });
            }
            page_token = page.next_page_token;
        }
    }
}

impl CurationDue {
    fn candidate(&self, activity: &pb::TeamActivity) -> Option<Candidate> {
        let Ok(team) = parse_team(&activity.team) else {
            tracing::error!(team = activity.team.as_str(), "a team's activity cannot be read");
            return None;
        };
        let active = activity.last_active_time.as_ref();
        Some(Candidate {
            id: RunId::new(self.clock.now(), &self.ids.new_id()),
            last_active: active.map(|at| Timestamp::from_parts(at.seconds, at.nanos)),
            users: users_of(&team, &activity.users),
            team,
        })
    }
}

fn users_of(team: &TeamId, names: &[String]) -> Vec<UserId> {
    let parsed = names.iter().filter_map(|name| parse_user(name).ok());
    parsed.filter(|(of, _)| of == team).map(|(_, user)| user).collect()
}
