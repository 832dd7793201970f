//! What every gRPC server of Steward has around its handlers: authentication, deadlines, request ids, traces, panics
//! that become INTERNAL ([`Built`]), and the one way from a fault to a status ([`status`]).
//!
//! All of it wraps the service and not the port, so that a call in the same process passes through exactly what a call
//! over the network passes through.
#![warn(missing_docs)]

pub mod auth;
mod edge;
mod handler;
mod server;
mod status;

pub use auth::{AccessError, Auth, Claims, PublicKeys, Revocations, TokenKind, TokenSigner, TokenVerifier};
pub use edge::LocalService;
pub use handler::{Credential, caller, request_hash, team_of};
pub use server::{Background, Built, BuiltBuilder, Listener, Serving, serve};
pub use status::{code, status};
pub use steward_client::MAX_MESSAGE_BYTES;
