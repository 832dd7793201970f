//! Every RPC with its policy and idempotency, as its `.proto` file declares them.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Whether a call may be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idempotency {
    /// Not declared: never repeated by a client.
    Unknown,
    /// Reads only.
    NoSideEffects,
    /// Repeating it has the effect of doing it once.
    Idempotent,
}

/// One RPC.
#[derive(Debug, Clone, Copy)]
pub struct Method {
    /// HTTP path, `/steward.memory.v1.MemoryService/Apply`.
    pub path: &'static str,
    /// Whether a call may be repeated.
    pub idempotency: Idempotency,
    /// Number of the lowest role (`steward.common.v1.Role`) with which a person may call; 0: persons may not.
    pub min_role: i32,
    /// Capability with which a restricted credential may call; empty: it may not.
    pub capability: &'static str,
    /// Whether another service may call.
    pub service: bool,
    /// Whether anyone may call without a credential.
    pub public: bool,
    /// Whether the response is a stream.
    pub server_streaming: bool,
}

include!("gen/methods.rs");

/// The RPC with this path. Every call asks several times, so that the table is indexed once.
pub fn find(path: &str) -> Option<&'static Method> {
    static BY_PATH: LazyLock<HashMap<&'static str, &'static Method>> =
        LazyLock::new(|| METHODS.iter().map(|method| (method.path, method)).collect());
    BY_PATH.get(path).copied()
}
