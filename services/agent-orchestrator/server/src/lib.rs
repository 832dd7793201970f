//! agent-orchestrator: configuration, gRPC, SQL and background work around its core.
