//! Sessions for people: a facade of recall-service. Creating one reads what is known at that moment, puts the prompt and
//! the tool list together once, and hands the bytes over to be kept (`P-1` to `P-3`).

use std::fmt;
use std::sync::Arc;

use serde_json::value::RawValue;
use steward_agent::prompt::{self, PromptInputs};
use steward_base::{Clock, FieldViolations};
use steward_model::{ToolSpec, canonical_tools};
use steward_orchestrator_core::Error;
use steward_orchestrator_core::session::{
    ClientTool, MAX_TITLE, MessagePage, NewSession, Screened, Session, SessionKey, SessionPage, SessionStore, Setup,
    derived_session_id, same_request, screen_context_files,
};

use crate::model::Models;
use crate::peers::{Knowledge, Known};
use crate::signer::Person;

/// Longest request id, in characters.
const MAX_REQUEST_ID: usize = 128;

/// A session as a person asks for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) title: String,
    pub(crate) project: String,
    pub(crate) model: String,
    pub(crate) skip_review: bool,
    pub(crate) setup: Setup,
    pub(crate) request_id: String,
}

/// Creates and shows sessions.
#[derive(Clone)]
pub(crate) struct Sessions {
    store: Arc<dyn SessionStore>,
    knowledge: Arc<dyn Knowledge>,
    models: Models,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}

impl Sessions {
    pub(crate) fn new(
        store: Arc<dyn SessionStore>,
        knowledge: Arc<dyn Knowledge>,
        models: Models,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            store,
            knowledge,
            models,
            clock,
        }
    }

    /// Creates a session. The same request id again finds the first one's, whatever was learned in between.
    pub(crate) async fn create(&self, person: &Person, wanted: Wanted) -> Result<Session, Error> {
        wanted.check()?;
        wanted.setup.check_names(steward_tools::is_builtin)?;
        let model = self.models.for_turns(&wanted.model)?;
        let id = derived_session_id(&person.team, &person.user, &wanted.request_id)
            .map_err(|error| Error::internal("name a session", error))?;
        let key = SessionKey {
            team: person.team.clone(),
            id,
        };
        let tools = tool_list(&wanted.setup)?;
        let mut new = NewSession {
            key: key.clone(),
            user: person.user.clone(),
            title: wanted.title.clone(),
            project: wanted.project.clone(),
            model: model.name,
            system_prompt: String::new(),
            tools_json: canonical(&tools)?,
            client_tools: client_tools(&wanted.setup),
            skip_review: wanted.skip_review,
            exposures: Vec::new(),
        };
        let existing = if let Some(existing) = self.store.session(&key).await? {
            existing
        } else {
            let names: Vec<String> = tools.iter().map(|tool| tool.name.clone()).collect();
            let platform = &wanted.setup.environment.os;
            let known = self
                .knowledge
                .known(person, &key.id, &wanted.project, names.clone(), platform)
                .await?;
            new.system_prompt = self.prompt(&wanted, &new, &names, &known);
            new.exposures = known.exposures;
            self.store.create_session(new.clone(), &wanted.request_id).await?
        };
        if same_request(&existing, &new, &wanted.setup) {
            Ok(existing)
        } else {
            Err(Error::request_id_reused(&wanted.request_id))
        }
    }

    fn prompt(&self, wanted: &Wanted, new: &NewSession, tools: &[String], known: &Known) -> String {
        let setup = &wanted.setup;
        let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
        let facts = setup.environment.lines();
        let facts: Vec<&str> = facts.iter().map(String::as_str).collect();
        let screened = screen_context_files(&setup.context_files);
        let files: Vec<prompt::ContextFile<'_>> = screened.iter().map(context_file).collect();
        let inputs = PromptInputs {
            tools: &tools,
            platform_hint: Some(&setup.platform_hint),
            environment: &facts,
            caller_system: Some(&setup.system_message),
            context_files: &files,
            skill_index: Some(&known.skills),
            memory_snapshot: Some(&known.memory),
            date: &self.clock.now().date(),
            session: new.key.id.as_str(),
            model: &new.model,
            ..PromptInputs::default()
        };
        prompt::assemble(&inputs).text.to_string()
    }

    /// A session, if it is the person's.
    pub(crate) async fn get(&self, person: &Person, key: &SessionKey) -> Result<Session, Error> {
        let missing = || Error::SessionNotFound { session: key.name() };
        if key.team != person.team {
            return Err(missing());
        }
        let session = self.store.session(key).await?;
        session
            .filter(|session| session.user == person.user)
            .ok_or_else(missing)
    }

    /// The person's sessions, most recently active first.
    pub(crate) async fn list(&self, person: &Person, page_size: i32, page_token: &str) -> Result<SessionPage, Error> {
        self.store
            .sessions(&person.team, &person.user, page_size, page_token)
            .await
    }

    /// What was said in a session, in order.
    pub(crate) async fn messages(
        &self,
        person: &Person,
        key: &SessionKey,
        page_size: i32,
        page_token: &str,
    ) -> Result<MessagePage, Error> {
        self.get(person, key).await?;
        let size = steward_base::page::size(page_size, 100, 500)?;
        let size = i32::try_from(size).unwrap_or(500);
        self.store.messages(key, size, page_token).await
    }
}

impl Wanted {
    fn check(&self) -> Result<(), FieldViolations> {
        let mut violations = FieldViolations::new();
        let length = self.request_id.chars().count();
        if length == 0 || length > MAX_REQUEST_ID {
            violations.add("request_id", format!("must have 1 to {MAX_REQUEST_ID} characters"));
        }
        if self.title.chars().count() > MAX_TITLE || self.title.chars().any(char::is_control) {
            violations.add(
                "session.title",
                format!("must have at most {MAX_TITLE} characters on one line"),
            );
        }
        if !self.project.is_empty() {
            // A project is named like a team.
            violations.take(
                "session.project",
                steward_base::names::TeamId::parse(self.project.clone()),
            );
        }
        self.setup.check(&mut violations);
        violations.into_result()
    }
}

fn context_file<'a>(screened: &'a Screened<'_>) -> prompt::ContextFile<'a> {
    prompt::ContextFile {
        name: screened.path,
        text: match &screened.text {
            Ok(text) => prompt::ContextText::Clean(text),
            Err(category) => prompt::ContextText::Blocked(category),
        },
    }
}

/// The built-in tools and the client's.
fn tool_list(setup: &Setup) -> Result<Vec<ToolSpec>, Error> {
    let mut tools = steward_tools::definitions();
    for tool in &setup.client_tools {
        let schema = RawValue::from_string(tool.input_schema.trim().to_owned());
        tools.push(ToolSpec {
            name: tool.name.clone(),
            description: tool.description.clone(),
            input_schema: schema.map_err(|error| Error::internal("keep a client tool's schema", error))?,
        });
    }
    tools.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(tools)
}

fn canonical(tools: &[ToolSpec]) -> Result<String, Error> {
    let canonical = canonical_tools(tools).map_err(|error| Error::internal("write the tool list", error))?;
    Ok(canonical.to_string())
}

fn client_tools(setup: &Setup) -> Vec<ClientTool> {
    let tools = setup.client_tools.iter().map(|tool| ClientTool {
        name: tool.name.clone(),
        integrity: tool.integrity.unwrap_or(steward_base::Integrity::UnknownTool),
    });
    tools.collect()
}

#[cfg(test)]
mod tests;
