//! The rules of agent-orchestrator behind ports: who may do what ([`access`]), and how a conversation goes on.
//!
//! Nothing here knows a transport, a database or a model provider.
#![warn(missing_docs)]

pub mod access;
pub mod error;
pub mod session;
pub mod turn;

pub use error::Error;
