//! Which part of an installation a process is.

/// A part of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Component {
    /// Every service in one process.
    All,
    /// Turns, sessions, models, access.
    AgentOrchestrator,
    /// Skills.
    SkillRegistry,
    /// Memory.
    MemoryService,
    /// Sessions, messages, search.
    RecallService,
    /// Reviews.
    CuratorWorker,
}

impl Component {
    /// Name of the process in logs and traces.
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "steward",
            Self::AgentOrchestrator => "agent-orchestrator",
            Self::SkillRegistry => "skill-registry",
            Self::MemoryService => "memory-service",
            Self::RecallService => "recall-service",
            Self::CuratorWorker => "curator-worker",
        }
    }

    /// Folder of the service below the data folder; of all of them, the orchestrator's, which decides on access.
    pub(crate) const fn folder(self) -> &'static str {
        match self {
            Self::All | Self::AgentOrchestrator => "agent",
            Self::SkillRegistry => "skills",
            Self::MemoryService => "memory",
            Self::RecallService => "recall",
            Self::CuratorWorker => "learning",
        }
    }
}
