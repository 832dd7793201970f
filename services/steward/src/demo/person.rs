//! The demo's person: a client over the network with the owner's token, and the release desk that stands in for the world.

use std::time::Duration;

use anyhow::{Context as _, bail};
use steward_base::{IdGen as _, RandomIds};
use steward_client::{Client, Credentials, Wire};
use steward_proto::access::v1::WhoAmIRequest;
use steward_proto::agent::v1 as agent;
use steward_proto::agent::v1::run_turn_request::Input;
use steward_proto::agent::v1::turn_event::Event;
use steward_proto::common::v1::Integrity;
use steward_proto::learning::v1 as learning;
use steward_proto::memory::v1 as memory;
use steward_proto::recall::v1 as recall;
use steward_proto::skill::v1 as skill;

use super::show::Show;
use super::simulated::SKILL;
use crate::installation::Ready;

/// How long the demo waits for the review.
const REVIEW: Duration = Duration::from_mins(1);

/// What the release desk said last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The service is released.
    Released,
    /// The desk refused.
    Refused,
}

/// The person, and the code that the desk wants.
pub(super) struct Person {
    client: Client,
    user: String,
    code: String,
}

impl Person {
    pub(super) async fn arrive(ready: &Ready, code: &str) -> anyhow::Result<Self> {
        let token = std::fs::read_to_string(steward_cli::connect::owner_token_file(&ready.data_dir))
            .context("the first start left no token")?;
        let wire = Wire::connect(&ready.endpoint)?.with_credentials(Credentials::token(token.trim())?);
        let client = Client::new(wire);
        let user = client.access.who_am_i(WhoAmIRequest {}).await?.user;
        Ok(Self {
            client,
            user,
            code: code.to_owned(),
        })
    }

    pub(super) async fn session(&self) -> anyhow::Result<agent::Session> {
        let tool = agent::ClientTool {
            name: "release".to_owned(),
            description: "Asks the release desk to release a service. The desk may want a window code.".to_owned(),
            input_schema_json: r#"{"type":"object","properties":{"service":{"type":"string"},"code":{"type":"string"}},"required":["service"],"additionalProperties":false}"#.to_owned(),
            integrity: Integrity::Workspace.into(),
        };
        let request = agent::CreateSessionRequest {
            parent: self.user.clone(),
            session: None,
            setup: Some(agent::SessionSetup {
                client_tools: vec![tool],
                ..agent::SessionSetup::default()
            }),
            request_id: RandomIds.new_id(),
        };
        self.client
            .sessions
            .create_session(request)
            .await?
            .session
            .context("an answer without a session")
    }

    pub(super) async fn read_session(&self, name: &str) -> anyhow::Result<agent::Session> {
        let request = agent::GetSessionRequest { name: name.to_owned() };
        self.client
            .sessions
            .get_session(request)
            .await?
            .session
            .context("an answer without a session")
    }

    /// Says something, answers the calls at the release desk, and tells what the desk said last.
    pub(super) async fn ask(&self, session: &str, text: &str, show: &mut Show) -> anyhow::Result<Outcome> {
        show.said("person", text);
        let mut outcome = Outcome::Refused;
        let message = agent::UserMessage {
            text: text.to_owned(),
            attachments: Vec::new(),
        };
        let mut input = Input::UserMessage(message);
        loop {
            let request = agent::RunTurnRequest {
                session: session.to_owned(),
                request_id: RandomIds.new_id(),
                input: Some(input),
                steer: false,
            };
            let mut stream = self.client.agent.run_turn(request).await?;
            let calls = loop {
                let item = stream
                    .message()
                    .await?
                    .context("the stream ended without an end of the turn")?;
                match item.event.and_then(|event| event.event) {
                    Some(Event::ToolFinished(tool)) => {
                        show.said("steward", &format!("[{}] {}", tool.tool, tool.summary));
                    }
                    Some(Event::RequiresAction(action)) => break action.calls,
                    Some(Event::Completed(completed)) => {
                        show.said("agent", &completed.text);
                        return Ok(outcome);
                    }
                    Some(Event::Failed(failed)) => bail!("the turn failed: {} ({})", failed.message, failed.reason),
                    _ => {}
                }
            };
            let mut results = Vec::new();
            for call in calls {
                let (said, content) = self.release_desk(&call.arguments_json);
                outcome = said;
                show.said("desk", &content);
                let is_error = said == Outcome::Refused;
                results.push(agent::ToolResult {
                    call_id: call.call_id,
                    content,
                    is_error,
                    ..agent::ToolResult::default()
                });
            }
            input = Input::ToolResults(agent::ToolResults { results });
        }
    }

    fn release_desk(&self, arguments: &str) -> (Outcome, String) {
        let arguments: serde_json::Value = serde_json::from_str(arguments).unwrap_or_default();
        let service = arguments["service"].as_str().unwrap_or("nothing").to_owned();
        match arguments["code"].as_str() {
            Some(code) if code == self.code => (Outcome::Released, format!("released {service}")),
            Some(_) => (Outcome::Refused, format!("refused {service}: wrong window code")),
            None => (Outcome::Refused, format!("refused {service}: a window code is needed")),
        }
    }

    /// Waits for the end of the session's review.
    pub(super) async fn review_of(&self, session: &str) -> anyhow::Result<learning::Review> {
        let request = learning::WatchReviewsRequest {
            parent: self.user.clone(),
            session: session.to_owned(),
            ..learning::WatchReviewsRequest::default()
        };
        let list = learning::ListReviewsRequest {
            parent: self.user.clone(),
            session: session.to_owned(),
            ..learning::ListReviewsRequest::default()
        };
        let ended = async {
            let mut stream = self.client.reviews.watch_reviews(request).await?;
            let known = self.client.reviews.list_reviews(list).await?.reviews;
            if let Some(review) = known.into_iter().find(|review| review.end_time.is_some()) {
                return Ok(review);
            }
            while let Some(item) = stream.message().await? {
                if let Some(review) = item.review.filter(|review| review.end_time.is_some()) {
                    return Ok(review);
                }
            }
            bail!("the stream of reviews ended")
        };
        tokio::time::timeout(REVIEW, ended)
            .await
            .context("the review did not end")?
    }

    fn notes_store(&self) -> String {
        format!("{}/memory/notes", self.user)
    }

    pub(super) async fn notes(&self) -> anyhow::Result<Vec<memory::Entry>> {
        let request = memory::ListEntriesRequest {
            parent: self.notes_store(),
            ..memory::ListEntriesRequest::default()
        };
        Ok(self.client.memory.list_entries(request).await?.entries)
    }

    /// The person's own skills, with the text of each.
    pub(super) async fn skills(&self) -> anyhow::Result<Vec<(skill::Skill, String)>> {
        let request = skill::ListSkillsRequest {
            parent: self.user.clone(),
            ..skill::ListSkillsRequest::default()
        };
        let listed = self.client.skills.list_skills(request).await?.skills;
        let mut skills = Vec::new();
        for item in listed.into_iter().filter(|item| item.name.starts_with(&self.user)) {
            let view = skill::ViewSkillRequest {
                parent: self.user.clone(),
                skill: item.name.clone(),
                ..skill::ViewSkillRequest::default()
            };
            let text = self.client.skills.view_skill(view).await?.content;
            skills.push((item, text));
        }
        Ok(skills)
    }

    pub(super) async fn recall(&self, words: &str) -> anyhow::Result<recall::SearchResponse> {
        let discover = recall::Discover {
            query: format!("\"{words}\""),
            ..recall::Discover::default()
        };
        let request = recall::SearchRequest {
            parent: self.user.clone(),
            shape: Some(recall::search_request::Shape::Discover(discover)),
            current_session: String::new(),
        };
        Ok(self.client.recall.search(request).await?)
    }

    /// Erases what was learned: removes the entry, archives and purges the skill.
    pub(super) async fn forget(&self, code: &str) -> anyhow::Result<()> {
        let remove = memory::RemoveEntry {
            old_text: code.to_owned(),
        };
        let operation = memory::Operation {
            action: Some(memory::operation::Action::Remove(remove)),
        };
        let request = memory::ApplyRequest {
            store: self.notes_store(),
            operations: vec![operation],
            request_id: RandomIds.new_id(),
            ..memory::ApplyRequest::default()
        };
        self.client.memory.apply(request).await?;
        let name = format!("{}/skills/{SKILL}", self.user);
        self.client
            .skills
            .archive_skill(skill::ArchiveSkillRequest { name: name.clone() })
            .await?;
        self.client
            .skills
            .purge_skill(skill::PurgeSkillRequest { name })
            .await?;
        Ok(())
    }
}
