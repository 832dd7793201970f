//! A person with a client: begins sessions, says things, answers tool calls, looks at what was kept.

use std::time::Duration;

use steward_client::{Client, ClientError, ResponseStream};
use steward_proto::access::v1::WhoAmIRequest;
use steward_proto::agent::v1 as agent;
use steward_proto::agent::v1::run_turn_request::Input;
use steward_proto::agent::v1::turn_event::Event;
use steward_proto::learning::v1 as learning;
use steward_proto::memory::v1 as memory;
use steward_proto::recall::v1 as recall;
use steward_proto::skill::v1 as skill;
use steward_testkit::wait_for_some;

use crate::stack::PATIENCE;

/// A person who uses an installation.
#[derive(Debug, Clone)]
pub struct Person {
    /// Clients of all services, with the person's token.
    pub client: Box<Client>,
    /// `teams/{team}`.
    pub team: String,
    /// `teams/{team}/users/{user}`.
    pub user: String,
}

/// How a segment ended.
#[derive(Debug, Clone)]
pub enum Ended {
    /// With the final answer.
    Completed(agent::TurnCompleted),
    /// With calls for the client.
    RequiresAction(Vec<agent::PendingCall>),
    /// Stopped.
    Interrupted,
    /// With an error.
    Failed(agent::TurnFailed),
}

/// What was seen of a segment.
#[derive(Debug, Clone)]
pub struct Segment {
    /// Turn id.
    pub turn: String,
    /// All events, in order.
    pub events: Vec<agent::TurnEvent>,
    /// How it ended.
    pub ended: Ended,
}

impl Segment {
    /// The final answer's text; fails the test when there is none.
    pub fn answer(&self) -> &str {
        match &self.ended {
            Ended::Completed(completed) => &completed.text,
            other => panic!("the turn did not complete but {other:?}"),
        }
    }

    /// The calls for the client; fails the test when there are none.
    pub fn calls(&self) -> &[agent::PendingCall] {
        match &self.ended {
            Ended::RequiresAction(calls) => calls,
            other => panic!("the segment asked for nothing but ended with {other:?}"),
        }
    }

    /// All text that was streamed.
    pub fn streamed(&self) -> String {
        self.events
            .iter()
            .filter_map(|event| match &event.event {
                Some(Event::TextDelta(delta)) => Some(delta.text.as_str()),
                _ => None,
            })
            .collect()
    }
}

impl Person {
    /// Asks the server who the clients speak for.
    pub async fn arrive(client: Client) -> Self {
        let me = client
            .access
            .who_am_i(WhoAmIRequest {})
            .await
            .expect("the token is good")
            .user;
        let team = me.split("/users/").next().unwrap_or_default().to_owned();
        Self {
            client: Box::new(client),
            team,
            user: me,
        }
    }

    /// Begins a session with these client tools.
    pub async fn session(&self, client_tools: Vec<agent::ClientTool>) -> String {
        let setup = agent::SessionSetup {
            client_tools,
            ..agent::SessionSetup::default()
        };
        self.session_with(setup).await.expect("a session can be made").name
    }

    /// Begins a session.
    pub async fn session_with(&self, setup: agent::SessionSetup) -> Result<agent::Session, ClientError> {
        let request = agent::CreateSessionRequest {
            parent: self.user.clone(),
            session: None,
            setup: Some(setup),
            request_id: fresh_id(),
        };
        let answer = self.client.sessions.create_session(request).await?;
        Ok(answer.session.expect("an answer has a session"))
    }

    /// Reads a session.
    pub async fn read_session(&self, session: &str) -> agent::Session {
        let request = agent::GetSessionRequest {
            name: session.to_owned(),
        };
        self.client
            .sessions
            .get_session(request)
            .await
            .expect("the session is there")
            .session
            .expect("a session")
    }

    /// Goes on with another model.
    pub async fn change_model(
        &self,
        session: &str,
        model: &str,
        request_id: &str,
    ) -> Result<agent::Session, ClientError> {
        let wanted = agent::Session {
            model: model.to_owned(),
            ..agent::Session::default()
        };
        self.change(session, wanted, "model", Vec::new(), request_id).await
    }

    /// Goes on with these client tools.
    pub async fn change_tools(
        &self,
        session: &str,
        client_tools: Vec<agent::ClientTool>,
        request_id: &str,
    ) -> Result<agent::Session, ClientError> {
        self.change(
            session,
            agent::Session::default(),
            "client_tools",
            client_tools,
            request_id,
        )
        .await
    }

    async fn change(
        &self,
        session: &str,
        wanted: agent::Session,
        path: &str,
        client_tools: Vec<agent::ClientTool>,
        request_id: &str,
    ) -> Result<agent::Session, ClientError> {
        let request = agent::UpdateSessionRequest {
            session: Some(agent::Session {
                name: session.to_owned(),
                ..wanted
            }),
            update_mask: Some(prost_types::FieldMask {
                paths: vec![path.to_owned()],
            }),
            client_tools,
            request_id: request_id.to_owned(),
        };
        let answer = self.client.sessions.update_session(request).await?;
        Ok(answer.session.expect("an answer has a session"))
    }

    /// What was said in a session.
    pub async fn messages(&self, session: &str) -> Vec<agent::SessionMessage> {
        let request = agent::ListSessionMessagesRequest {
            parent: session.to_owned(),
            page_size: 500,
            page_token: String::new(),
        };
        self.client
            .sessions
            .list_session_messages(request)
            .await
            .expect("messages can be listed")
            .messages
    }

    /// Says something and listens to the end of the segment.
    pub async fn say(&self, session: &str, text: &str) -> Segment {
        self.say_as(session, text, &fresh_id()).await.expect("the turn runs")
    }

    /// Says something under a request id.
    pub async fn say_as(&self, session: &str, text: &str, request_id: &str) -> Result<Segment, ClientError> {
        let stream = self.begin(session, text, request_id).await?;
        listen(stream).await
    }

    /// Says something and returns the stream.
    pub async fn begin(
        &self,
        session: &str,
        text: &str,
        request_id: &str,
    ) -> Result<ResponseStream<agent::RunTurnResponse>, ClientError> {
        let message = agent::UserMessage {
            text: text.to_owned(),
            attachments: Vec::new(),
        };
        self.run(session, Input::UserMessage(message), request_id).await
    }

    /// Gives tool results and listens to the end of the segment.
    pub async fn answer_calls(&self, session: &str, results: Vec<agent::ToolResult>) -> Segment {
        let input = Input::ToolResults(agent::ToolResults { results });
        let stream = self
            .run(session, input, &fresh_id())
            .await
            .expect("the results are taken");
        listen(stream).await.expect("the segment runs")
    }

    async fn run(
        &self,
        session: &str,
        input: Input,
        request_id: &str,
    ) -> Result<ResponseStream<agent::RunTurnResponse>, ClientError> {
        let request = agent::RunTurnRequest {
            session: session.to_owned(),
            request_id: request_id.to_owned(),
            input: Some(input),
            steer: false,
        };
        self.client.agent.run_turn(request).await
    }

    /// The entries of the person's notes.
    pub async fn notes(&self) -> Vec<String> {
        self.entries(&format!("{}/memory/notes", self.user)).await
    }

    /// The entries of a store.
    pub async fn entries(&self, store: &str) -> Vec<String> {
        let request = memory::ListEntriesRequest {
            parent: store.to_owned(),
            page_size: 500,
            page_token: String::new(),
        };
        let answer = self
            .client
            .memory
            .list_entries(request)
            .await
            .expect("the store can be read");
        answer.entries.into_iter().map(|entry| entry.content).collect()
    }

    /// Adds an entry to the person's notes.
    pub async fn remember(&self, content: &str) -> Result<memory::ApplyResponse, ClientError> {
        let add = memory::operation::Action::Add(memory::AddEntry {
            content: content.to_owned(),
        });
        let request = memory::ApplyRequest {
            store: format!("{}/memory/notes", self.user),
            operations: vec![memory::Operation { action: Some(add) }],
            request_id: fresh_id(),
            ..memory::ApplyRequest::default()
        };
        self.client.memory.apply(request).await
    }

    /// The skills that the person can use.
    pub async fn skills(&self) -> Vec<skill::Skill> {
        let request = skill::ListSkillsRequest {
            parent: self.user.clone(),
            page_size: 1000,
            ..skill::ListSkillsRequest::default()
        };
        self.client
            .skills
            .list_skills(request)
            .await
            .expect("skills can be listed")
            .skills
    }

    /// Whole SKILL.md of a skill.
    pub async fn view_skill(&self, name: &str) -> Result<skill::ViewSkillResponse, ClientError> {
        let request = skill::ViewSkillRequest {
            parent: self.user.clone(),
            skill: name.to_owned(),
            ..skill::ViewSkillRequest::default()
        };
        self.client.skills.view_skill(request).await
    }

    /// Makes a skill.
    pub async fn create_skill(&self, name: &str, content: &str) -> Result<skill::ManageSkillResponse, ClientError> {
        let create = skill::CreateSkill {
            content: content.to_owned(),
            ..skill::CreateSkill::default()
        };
        let request = skill::ManageSkillRequest {
            parent: self.user.clone(),
            skill: name.to_owned(),
            action: Some(skill::manage_skill_request::Action::Create(create)),
            request_id: fresh_id(),
            ..skill::ManageSkillRequest::default()
        };
        self.client.skills.manage_skill(request).await
    }

    /// Finds conversations by words.
    pub async fn search(&self, query: &str) -> recall::SearchResponse {
        let discover = recall::Discover {
            query: query.to_owned(),
            limit: 10,
            ..recall::Discover::default()
        };
        let request = recall::SearchRequest {
            parent: self.user.clone(),
            shape: Some(recall::search_request::Shape::Discover(discover)),
            current_session: String::new(),
        };
        self.client
            .recall
            .search(request)
            .await
            .expect("every text is a valid query")
    }

    /// The person's reviews, newest first.
    pub async fn reviews(&self) -> Vec<learning::Review> {
        let request = learning::ListReviewsRequest {
            parent: self.user.clone(),
            page_size: 200,
            ..learning::ListReviewsRequest::default()
        };
        self.client
            .reviews
            .list_reviews(request)
            .await
            .expect("reviews can be listed")
            .reviews
    }

    /// Waits until `count` reviews have ended and returns all, newest first.
    pub async fn reviews_ended(&self, count: usize) -> Vec<learning::Review> {
        wait_for_some(&format!("{count} reviews to end"), PATIENCE, || async {
            let request = learning::ListReviewsRequest {
                parent: self.user.clone(),
                page_size: 200,
                ..learning::ListReviewsRequest::default()
            };
            // While the worker is being started again it does not answer; that is no reason to give up.
            let reviews = self.client.reviews.list_reviews(request).await.ok()?.reviews;
            let ended = reviews.iter().filter(|review| review.end_time.is_some()).count();
            (ended >= count).then_some(reviews)
        })
        .await
    }
}

/// Listens to the end of a segment.
pub async fn listen(mut stream: ResponseStream<agent::RunTurnResponse>) -> Result<Segment, ClientError> {
    let mut events: Vec<agent::TurnEvent> = Vec::new();
    while let Some(item) = stream.message().await? {
        let event = item.event.expect("an item has an event");
        events.push(event.clone());
        let ended = match event.event {
            Some(Event::Completed(completed)) => Ended::Completed(completed),
            Some(Event::RequiresAction(action)) => Ended::RequiresAction(action.calls),
            Some(Event::Interrupted(_)) => Ended::Interrupted,
            Some(Event::Failed(failed)) => Ended::Failed(failed),
            _ => continue,
        };
        return Ok(Segment {
            turn: event.turn,
            events,
            ended,
        });
    }
    panic!("the stream ended without an end of the segment, after {events:?}");
}

/// A client tool that takes anything.
pub fn client_tool(name: &str) -> agent::ClientTool {
    agent::ClientTool {
        name: name.to_owned(),
        description: format!("Runs {name} on this machine."),
        input_schema_json: r#"{"type":"object","properties":{"what":{"type":"string"}}}"#.to_owned(),
        integrity: steward_proto::common::v1::Integrity::Workspace.into(),
    }
}

/// A result of a call.
pub fn result(call: &agent::PendingCall, content: &str) -> agent::ToolResult {
    agent::ToolResult {
        call_id: call.call_id.clone(),
        content: content.to_owned(),
        ..agent::ToolResult::default()
    }
}

/// An id for a request.
pub fn fresh_id() -> String {
    use steward_base::IdGen as _;
    steward_base::RandomIds.new_id()
}

/// Bound for waiting on a condition that needs one service only.
pub const SOON: Duration = Duration::from_secs(30);
