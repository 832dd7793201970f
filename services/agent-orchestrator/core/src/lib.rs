//! The rules of agent-orchestrator, its ports and an in-memory store.
