//! Giving everything out, in pages, so that nothing has to fit into memory at once.

use async_stream::try_stream;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use steward_client::ClientError;
use steward_curator_core::Error;
use steward_curator_core::review::Review;
use steward_proto::memory::v1 as memory;
use steward_proto::recall::v1 as recall;
use steward_proto::skill::v1 as skill;

use super::{PAGE, People, Whose};
use crate::peers::{MEMORY, RECALL, SKILLS, by};
use crate::sqlite::Whose as Reviewed;

/// One thing that is held.
#[derive(Debug)]
pub(crate) enum Held {
    Session(Box<recall::Session>),
    Message(String, Box<recall::Message>),
    Memory(Box<memory::ExportUserMemoryResponse>),
    Skill(Box<skill::Skill>, Vec<skill::SkillContent>),
    Review(Box<Review>),
}

/// Everything, one after the other.
pub(crate) type Items = BoxStream<'static, Result<Held, Error>>;

impl People {
    /// All that is held on the caller.
    pub(crate) fn export(&self, whose: Whose) -> Items {
        let conversations = self.conversations(whose.clone());
        let remembered = self.remembered(whose.clone());
        let library = self.library(whose.clone());
        let reviews = self.reviews(whose);
        conversations.chain(remembered).chain(library).chain(reviews).boxed()
    }

    fn conversations(&self, whose: Whose) -> Items {
        let people = self.clone();
        try_stream! {
            let mut sessions_token = String::new();
            loop {
                let page = people.sessions_of(&whose, sessions_token).await?;
                for session in page.sessions {
                    let name = session.name.clone();
                    yield Held::Session(Box::new(session));
                    let mut page_token = String::new();
                    loop {
                        let request = recall::ListMessagesRequest {
                            session: name.clone(),
                            include_hidden: true,
                            page_size: PAGE,
                            page_token,
                            ..recall::ListMessagesRequest::default()
                        };
                        let messages = people.sessions.list_messages(request).await.map_err(by(RECALL))?;
                        for message in messages.messages {
                            yield Held::Message(name.clone(), Box::new(message));
                        }
                        page_token = messages.next_page_token;
                        if page_token.is_empty() {
                            break;
                        }
                    }
                }
                sessions_token = page.next_page_token;
                if sessions_token.is_empty() {
                    break;
                }
            }
        }
        .boxed()
    }

    fn remembered(&self, whose: Whose) -> Items {
        let (client, _, _) = self.as_caller(&whose);
        try_stream! {
            let request = memory::ExportUserMemoryRequest { user: whose.user_name() };
            let peer = |error: ClientError| Error::peer(MEMORY, error);
            let mut holdings = client.export_user_memory(request).await.map_err(peer)?;
            while let Some(holding) = holdings.message().await.map_err(peer)? {
                yield Held::Memory(Box::new(holding));
            }
        }
        .boxed()
    }

    fn library(&self, whose: Whose) -> Items {
        let people = self.clone();
        let (_, client, exchange) = self.as_caller(&whose);
        try_stream! {
            for found in people.skills_of(&client, &whose).await? {
                if !Self::is_own(&whose, &found) {
                    continue;
                }
                let request = skill::ExportSkillRequest {
                    name: found.name.clone(),
                    revision: found.revision.clone(),
                };
                let files = exchange.export_skill(request).await.map_err(by(SKILLS))?.files;
                yield Held::Skill(Box::new(found), files);
            }
        }
        .boxed()
    }

    fn reviews(&self, whose: Whose) -> Items {
        let ledger = self.ledger.clone();
        try_stream! {
            let reviewed = Reviewed { team: whose.team, user: whose.user, session: None };
            let mut before = None;
            loop {
                let page = ledger.list(&reviewed, before, PAGE.unsigned_abs()).await?;
                for review in page.reviews {
                    yield Held::Review(Box::new(review));
                }
                before = page.next;
                if before.is_none() {
                    break;
                }
            }
        }
        .boxed()
    }
}
