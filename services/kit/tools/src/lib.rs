//! The built-in tools of the agent: what the model is told of them ([`definitions`]) and one dispatch to the services
//! behind them ([`BuiltinTools`]).
//!
//! Two loops use it: the turn, with the turn's credential, and the review, with the job's. Which of the tools may be
//! called is their decision; whether a write is permitted is the services' (`S-14`). This crate decides only how
//! arguments are read, which call they become, and how an answer or an error reads to the model.
#![warn(missing_docs)]

mod answer;
mod arguments;
mod citation;
mod context;
mod correction;
mod definitions;
mod failure;
mod memory;
mod search;
mod skills;
#[cfg(test)]
mod tests;

use steward_client::{MemoryClient, RecallClient, SkillClient};

pub use answer::{Effect, EffectResult, Failure, Needed, NeededVariable, ToolAnswer};
pub use citation::{Citation, cited};
pub use context::{Basis, CitedEvidence, ToolContext};
pub use definitions::{MEMORY, NAMES, SESSION_SEARCH, SKILL_MANAGE, SKILL_VIEW, SKILLS_LIST, definitions, is_builtin};

/// The services behind the tools. Their own credentials are not used: each call carries its context's.
#[derive(Debug, Clone)]
pub struct Clients {
    /// memory-service.
    pub memory: MemoryClient,
    /// skill-registry.
    pub skills: SkillClient,
    /// recall-service.
    pub recall: RecallClient,
}

impl Clients {
    fn memory(&self, context: &ToolContext) -> MemoryClient {
        self.memory.clone().with_credentials(context.credentials.clone())
    }

    fn skills(&self, context: &ToolContext) -> SkillClient {
        self.skills.clone().with_credentials(context.credentials.clone())
    }

    fn recall(&self, context: &ToolContext) -> RecallClient {
        self.recall.clone().with_credentials(context.credentials.clone())
    }
}

/// How the stores are called in answers.
struct StoreNames {
    memory: &'static str,
    skills: &'static str,
    recall: &'static str,
}

const STORE_NAMES: StoreNames = StoreNames {
    memory: "memory store",
    skills: "skill store",
    recall: "store of past sessions",
};

/// Calls the built-in tools.
#[derive(Debug, Clone)]
pub struct BuiltinTools {
    clients: Clients,
}

impl BuiltinTools {
    /// Over these services.
    pub fn new(clients: Clients) -> Self {
        Self { clients }
    }

    /// Calls the tool `name` with the arguments as the model wrote them. Always answers: what went wrong is part of the
    /// answer. A write is made once per `context.key`.
    pub async fn call(&self, context: &ToolContext, name: &str, arguments_json: &str) -> ToolAnswer {
        let clients = &self.clients;
        match name {
            MEMORY => memory::call(clients, context, arguments_json).await,
            SESSION_SEARCH => search::call(clients, context, arguments_json).await,
            SKILL_MANAGE => skills::manage(clients, context, arguments_json).await,
            SKILL_VIEW => skills::view(clients, context, arguments_json).await,
            SKILLS_LIST => skills::list(clients, context, arguments_json).await,
            other => ToolAnswer::misused(other, &[format!("there is no built-in tool `{other}`")]),
        }
    }
}
