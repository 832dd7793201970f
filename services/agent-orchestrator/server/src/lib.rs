//! agent-orchestrator as a server: configuration, stores, peers, gRPC and background work around the rules of
//! `steward-orchestrator-core` and the loop of `steward-agent`.
#![warn(missing_docs)]

mod background;
mod build;
mod config;
mod grpc;
mod locks;
mod metrics;
mod model;
mod owed;
mod peers;
mod sessions;
mod signer;
mod sqlite;
mod start;
#[cfg(test)]
mod tests;
mod turns;

pub use build::{Deps, build};
pub use config::{
    AnthropicModelConfig, CacheLife, Config, ModelConfig, ModelProvider, NudgeConfig, Reasoning, TurnConfig,
};
pub use steward_grpc::Built;
