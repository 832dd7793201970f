//! The rules of skill-registry: what a skill is, who may change it, and what the model is told.
//!
//! [`Skills`] is the registry over a [`SkillStore`]. Decisions are pure and in
//! modules of their own: [`gate`] (who may), [`header`] and [`path`] (what is valid), [`patch`] (where a text goes),
//! [`index`] (what a prompt shows). No transport, no SQL.

pub mod actor;
pub mod archive_skill;
pub mod blame;
pub mod builtins;
pub mod bundle;
pub mod commands;
pub mod conformance;
mod dialect;
pub mod erase_person;
pub mod error;
pub mod export_skill;
pub mod external;
pub mod gate;
pub mod get_index;
pub mod header;
pub mod hide_skill;
pub mod import_skill;
pub mod index;
pub mod install_skill;
pub mod library;
pub mod list_skills;
mod listing;
pub mod manage_skill;
pub mod memory_store;
pub mod merge;
pub mod name;
pub mod patch;
pub mod path;
pub mod proposals;
pub mod record;
pub mod references;
pub mod revisions;
pub mod screen;
pub mod secrets;
pub mod settings;
pub mod skills;
pub mod store;
#[cfg(test)]
mod testing;
mod turns;
pub mod view_skill;

pub use actor::Actor;
pub use error::Error;
pub use library::Library;
pub use memory_store::InMemorySkillStore;
pub use settings::Settings;
pub use skills::Skills;
pub use store::SkillStore;
