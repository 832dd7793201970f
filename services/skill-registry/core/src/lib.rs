//! The rules of skill-registry, its ports and an in-memory store.
pub mod actor;
pub mod error;
pub mod gate;
pub mod header;
pub mod index;
pub mod memory_store;
pub mod name;
pub mod patch;
pub mod path;
pub mod record;
pub mod screen;
pub mod settings;
pub mod store;
#[cfg(test)]
mod testing;
