//! All that is held on a person, over all services (`M-14`): given out to that person, or erased.
//!
//! The worker stands above the others, so that this is the one place from which each can be asked for its part. What belongs
//! to the caller is asked for with the caller's own credential, sessions with the worker's. There is no saga: each part may be
//! asked for twice, so that a call that broke off is made again and goes on with what is left.

mod erase;
mod export;

use steward_base::Caller;
use steward_base::names::{TeamId, UserId, user_name};
use steward_client::{Credentials, ExchangeClient, LibraryClient, MemoryClient, SessionStoreClient, SkillClient};
use steward_curator_core::Error;
use steward_proto::recall::v1 as recall;
use steward_proto::skill::v1 as skill;

use crate::peers::{RECALL, SKILLS, by};
use crate::sqlite::Ledger;

pub(crate) use erase::Derived;
pub(crate) use export::Held;

/// Items of one page.
const PAGE: i32 = 200;

/// The services, without the caller's credential.
#[derive(Debug, Clone)]
pub(crate) struct People {
    pub(crate) ledger: Ledger,
    /// With the worker's own credential.
    pub(crate) sessions: SessionStoreClient,
    pub(crate) memory: MemoryClient,
    pub(crate) skills: SkillClient,
    pub(crate) libraries: LibraryClient,
    pub(crate) exchange: ExchangeClient,
}

/// Whose everything it is, and on whose behalf it is asked for.
#[derive(Clone)]
pub(crate) struct Whose {
    pub(crate) team: TeamId,
    pub(crate) user: UserId,
    /// The caller.
    pub(crate) caller: Caller,
    /// The caller's own credential.
    pub(crate) credentials: Credentials,
}

impl Whose {
    fn user_name(&self) -> String {
        user_name(&self.team, &self.user)
    }
}

impl People {
    /// The services in the caller's name.
    fn as_caller(&self, whose: &Whose) -> (MemoryClient, SkillClient, ExchangeClient) {
        let credentials = &whose.credentials;
        (
            self.memory.clone().with_credentials(credentials.clone()),
            self.skills.clone().with_credentials(credentials.clone()),
            self.exchange.clone().with_credentials(credentials.clone()),
        )
    }

    /// A page of the person's sessions, of every source.
    async fn sessions_of(&self, whose: &Whose, page_token: String) -> Result<recall::ListSessionsResponse, Error> {
        let sources = [
            recall::SessionSource::Chat,
            recall::SessionSource::Import,
            recall::SessionSource::Schedule,
            recall::SessionSource::Delegate,
            recall::SessionSource::Review,
            recall::SessionSource::Curation,
        ];
        let request = recall::ListSessionsRequest {
            parent: steward_base::names::team_name(&whose.team),
            user: whose.user_name(),
            sources: sources.map(i32::from).to_vec(),
            page_size: PAGE,
            page_token,
        };
        self.sessions.list_sessions(request).await.map_err(by(RECALL))
    }

    /// The skills that the caller sees, live or archived, those of others included.
    async fn skills_of(&self, client: &SkillClient, whose: &Whose) -> Result<Vec<skill::Skill>, Error> {
        let mut found = Vec::new();
        let parent = whose
            .caller
            .user
            .as_ref()
            .map(|user| user_name(&whose.team, user))
            .unwrap_or_default();
        for archived in [false, true] {
            let mut page_token = String::new();
            loop {
                let request = skill::ListSkillsRequest {
                    parent: parent.clone(),
                    archived,
                    page_size: PAGE,
                    page_token,
                    ..skill::ListSkillsRequest::default()
                };
                let page = client.list_skills(request).await.map_err(by(SKILLS))?;
                found.extend(page.skills);
                found.extend(page.broken);
                page_token = page.next_page_token;
                if page_token.is_empty() {
                    break;
                }
            }
        }
        Ok(found)
    }

    /// Whether a skill lies in the person's own library.
    fn is_own(whose: &Whose, skill: &skill::Skill) -> bool {
        skill.name.starts_with(&format!("{}/", whose.user_name()))
    }
}
