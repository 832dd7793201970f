//! The rules of recall-service: what a session is, what an append may change, what a word is, and what a search shows.
//!
//! Ports and an in-memory store are here too. Nothing here knows gRPC, SQL or the network; a store asks these rules from
//! inside its transaction, so that they are the same for every store.
#![warn(missing_docs)]

pub mod append_messages;
pub mod backups;
pub mod create_session;
pub mod delete_session;
pub mod error;
pub mod fork_session;
pub mod get_session;
pub mod import_session;
pub mod lease;
pub mod mark_compacted;
pub mod message;
pub mod query;
pub mod rewind_session;
pub mod search;
pub mod session;
pub mod sessions;
pub mod store;
pub mod team_activity;
pub mod tokenizer;
pub mod turn;
pub mod update_session;

pub use error::Error;
pub use search::Search;
pub use sessions::Sessions;
pub use store::SessionStore;
