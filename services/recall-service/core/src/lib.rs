//! The rules of recall-service, its ports and an in-memory store.
pub mod query;
pub mod tokenizer;
