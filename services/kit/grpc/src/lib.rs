//! What every gRPC server of Steward has around its handlers: authentication, deadlines, request ids, traces, panics
//! that become INTERNAL ([`Built`]), and the one way from a fault to a status ([`status`]).
//!
//! All of it wraps the service and not the port, so that a call in the same process passes through exactly what a call
//! over the network passes through.
//!
//! # Seeing who calls whom
//!
//! Every call ends with one event at level debug under the target `steward::rpc`. Its fields: `service` (the name given to
//! [`Built::builder`]; in a joined server the part that the method belongs to), `method` (the path), `caller` (the service
//! behind the credential, or `client`), `request_id`, `duration_ms` and `code` (`Ok`, `NotFound`, …; `Cancelled` when the
//! caller went away). A test starts a process with `STEWARD_LOG=info,steward::rpc=debug`, reads its stderr, where each line
//! is a JSON object unless it is a terminal, takes those with `target` = `steward::rpc`, and finds these under `fields`.
//! Pairs of `caller` and `service` are the edges of the graph of calls. The span of a call has `service` and
//! `caller.service` as well.
#![warn(missing_docs)]

mod audit;
pub mod auth;
mod edge;
mod handler;
mod server;
mod status;

pub use audit::{AuditPlace, AuditRecord, AuditSink};
pub use auth::{AccessError, Auth, AuthConfig, Claims, PublicKeys, Revocations, TokenKind, TokenSigner, TokenVerifier};
pub use edge::{LocalService, code_name};
pub use handler::{Credential, Presented, caller, expires, presented, request_hash, team_of};
pub use server::{Background, Built, BuiltBuilder, Listener, Serving, serve};
pub use status::{code, status};
pub use steward_client::MAX_MESSAGE_BYTES;
