//! Sessions for people: a facade of recall-service. Creating one reads what is known at that moment, puts the prompt and
//! the tool list together once, and hands the bytes over to be kept (`P-1` to `P-3`). Another model or other client tools do
//! the same again, from what the session was set up with ([`update`]).

mod lifecycle;
mod update;

use std::fmt;
use std::sync::Arc;

use serde_json::value::RawValue;
use steward_agent::prompt::{self, CONTEXT_FILE_LIMIT, PromptInputs, SystemPrompt, cut_to_limit};
use steward_base::hash::sha256_hex;
use steward_base::{Clock, FieldViolations};
use steward_model::{ToolSpec, canonical_tools};
use steward_orchestrator_core::Error;
use steward_orchestrator_core::session::{
    ClientTool, ClientToolSpec, KeptFile, KeptSetup, MAX_TITLE, MessagePage, NewSession, Session, SessionKey,
    SessionPage, SessionStore, Setup, check_tool_names, derived_session_id, screen_context_files,
};
use steward_runtime::reconcile::Nudge;

use crate::locks::SessionLocks;
use crate::model::Models;
use crate::owed::Owed;
use crate::peers::{About, Knowledge, Known, Offered};
use crate::signer::Person;
use crate::turns::KeptSessions;

pub(crate) use lifecycle::Branch;
pub(crate) use update::Change;

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

/// Creates, changes and shows sessions.
#[derive(Clone)]
pub(crate) struct Sessions {
    store: Arc<dyn SessionStore>,
    locks: SessionLocks,
    kept: KeptSessions,
    knowledge: Arc<dyn Knowledge>,
    models: Models,
    clock: Arc<dyn Clock>,
    owed: Arc<dyn Owed>,
    /// Wakes up who tells external memories what they are owed.
    nudge: Nudge,
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}

/// For whom and with what a prompt is assembled.
struct Assembly<'a> {
    key: &'a SessionKey,
    project: &'a str,
    model: &'a str,
    /// Calendar day on which the session began.
    date: &'a str,
    kept: &'a KeptSetup,
    tools: &'a [ToolSpec],
    offered: &'a Offered,
}

impl Sessions {
    pub(crate) fn new(
        store: Arc<dyn SessionStore>,
        (locks, kept): (SessionLocks, KeptSessions),
        knowledge: Arc<dyn Knowledge>,
        models: Models,
        clock: Arc<dyn Clock>,
        (owed, nudge): (Arc<dyn Owed>, Nudge),
    ) -> Self {
        Self {
            store,
            locks,
            kept,
            knowledge,
            models,
            clock,
            owed,
            nudge,
        }
    }

    /// Creates a session. The same request id again finds the first one's, whatever was learned or changed in between.
    pub(crate) async fn create(&self, person: &Person, wanted: Wanted) -> Result<Session, Error> {
        wanted.check()?;
        check_tool_names(&wanted.setup.client_tools, steward_tools::is_builtin)?;
        let model = self.models.for_turns(&wanted.model)?;
        let id = derived_session_id(&person.team, &person.user, &wanted.request_id)
            .map_err(|error| Error::internal("name a session", error))?;
        let key = SessionKey {
            team: person.team.clone(),
            id,
        };
        let made_by = wanted.fingerprint()?;
        let session = match self.store.session(&key).await? {
            Some(existing) => existing,
            None => self.create_new(person, key, &wanted, model.name, &made_by).await?,
        };
        // Of a session that nobody kept the setup of, the id alone is evidence: it is derived from the request's.
        let same = KeptSetup::read(&session.setup)?.is_none_or(|kept| kept.made_by == made_by);
        if same && session.user == person.user {
            Ok(session)
        } else {
            Err(Error::request_id_reused(&wanted.request_id))
        }
    }

    async fn create_new(
        &self,
        person: &Person,
        key: SessionKey,
        wanted: &Wanted,
        model: String,
        made_by: &str,
    ) -> Result<Session, Error> {
        let mut kept = KeptSetup::new(made_by.to_owned(), &wanted.setup, kept_files(&wanted.setup));
        let offered = self.knowledge.provider(person, &key.id, &wanted.project).await;
        kept.provider = offered.there;
        let setup = kept.write()?;
        let tools = tool_list(&wanted.setup.client_tools, &wanted.project, &offered.tools)?;
        let assembly = Assembly {
            key: &key,
            project: &wanted.project,
            model: &model,
            date: &self.clock.now().date(),
            kept: &kept,
            tools: &tools,
            offered: &offered,
        };
        let (prompt, known) = self.assemble(person, assembly).await?;
        let new = NewSession {
            key,
            user: person.user.clone(),
            title: wanted.title.clone(),
            project: wanted.project.clone(),
            model,
            system_prompt: prompt.text.to_string(),
            stable_prompt_bytes: stable_bytes(&prompt),
            tools_json: canonical(&tools)?,
            client_tools: client_tools(&wanted.setup.client_tools),
            skip_review: wanted.skip_review,
            exposures: known.exposures,
            setup,
        };
        let session = self.store.create_session(new, &wanted.request_id).await?;
        self.kept.keep_new(&session, self.clock.now());
        Ok(session)
    }

    /// The prompt, with what is known now.
    async fn assemble(&self, person: &Person, assembly: Assembly<'_>) -> Result<(SystemPrompt, Known), Error> {
        let Assembly { key, kept, tools, .. } = assembly;
        let names: Vec<String> = tools.iter().map(|tool| tool.name.clone()).collect();
        let about = About {
            person,
            session: &key.id,
            project: assembly.project,
            tools: &names,
            platform: &kept.environment.os,
            failed_checks: &kept.failed_checks,
            preloaded: &kept.preloaded,
        };
        let known = self.knowledge.known(about).await?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let facts = kept.environment.lines();
        let facts: Vec<&str> = facts.iter().map(String::as_str).collect();
        let files: Vec<prompt::ContextFile<'_>> = kept.context_files.iter().map(context_file).collect();
        let inputs = PromptInputs {
            tools: &names,
            platform_hint: Some(&kept.platform_hint),
            environment: &facts,
            caller_system: Some(&kept.system_message),
            context_files: &files,
            skill_index: Some(&known.skills),
            opened_skills: Some(&known.preloaded),
            memory_snapshot: Some(&known.memory),
            provider_block: Some(&assembly.offered.block),
            date: assembly.date,
            session: key.id.as_str(),
            model: assembly.model,
            ..PromptInputs::default()
        };
        Ok((prompt::assemble(&inputs), known))
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
    /// The same for the same request.
    fn fingerprint(&self) -> Result<String, Error> {
        let parts = (&self.title, &self.project, &self.model, self.skip_review, &self.setup);
        let parts = serde_json::to_vec(&parts).map_err(|error| Error::internal("write a request down", error))?;
        Ok(sha256_hex(&parts))
    }

    fn check(&self) -> Result<(), FieldViolations> {
        let mut violations = FieldViolations::new();
        check_request_id(&self.request_id, &mut violations);
        check_title(&self.title, &mut violations);
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

fn check_request_id(request_id: &str, violations: &mut FieldViolations) {
    let length = request_id.chars().count();
    if length == 0 || length > MAX_REQUEST_ID {
        violations.add("request_id", format!("must have 1 to {MAX_REQUEST_ID} characters"));
    }
}

fn check_title(title: &str, violations: &mut FieldViolations) {
    if title.chars().count() > MAX_TITLE || title.chars().any(char::is_control) {
        violations.add(
            "session.title",
            format!("must have at most {MAX_TITLE} characters on one line"),
        );
    }
}

/// The context files as the prompt shows them, which is all that has to be kept of them.
fn kept_files(setup: &Setup) -> Vec<KeptFile> {
    let screened = screen_context_files(&setup.context_files).into_iter();
    let kept = screened.map(|file| KeptFile {
        path: file.path.to_owned(),
        text: file.text.map(|text| cut_to_limit(text, file.path, CONTEXT_FILE_LIMIT)),
    });
    kept.collect()
}

fn context_file(file: &KeptFile) -> prompt::ContextFile<'_> {
    prompt::ContextFile {
        name: &file.path,
        text: match &file.text {
            Ok(text) => prompt::ContextText::Clean(text),
            Err(category) => prompt::ContextText::Blocked(category),
        },
    }
}

fn stable_bytes(prompt: &SystemPrompt) -> u32 {
    u32::try_from(prompt.stable_len).unwrap_or(0)
}

/// The built-in tools, the client's, and the external memory's. A name of the last that one of the others has is refused:
/// what comes from outside takes no name from anyone (`M-15`).
fn tool_list(client_tools: &[ClientToolSpec], project: &str, offered: &[ToolSpec]) -> Result<Vec<ToolSpec>, Error> {
    let mut tools = steward_tools::definitions(!project.is_empty());
    for tool in client_tools {
        let schema = RawValue::from_string(tool.input_schema.trim().to_owned());
        tools.push(ToolSpec {
            name: tool.name.clone(),
            description: tool.description.clone(),
            input_schema: schema.map_err(|error| Error::internal("keep a client tool's schema", error))?,
        });
    }
    for tool in offered {
        if tools.iter().any(|taken| taken.name == tool.name) {
            tracing::warn!(
                tool = tool.name,
                "a tool of the external memory has a name that is taken"
            );
        } else {
            tools.push(tool.clone());
        }
    }
    tools.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(tools)
}

fn canonical(tools: &[ToolSpec]) -> Result<String, Error> {
    let canonical = canonical_tools(tools).map_err(|error| Error::internal("write the tool list", error))?;
    Ok(canonical.to_string())
}

fn client_tools(specs: &[ClientToolSpec]) -> Vec<ClientTool> {
    let tools = specs.iter().map(|tool| ClientTool {
        name: tool.name.clone(),
        integrity: tool.integrity.unwrap_or(steward_base::Integrity::UnknownTool),
    });
    tools.collect()
}

#[cfg(test)]
mod tests;
