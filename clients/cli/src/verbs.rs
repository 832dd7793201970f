//! One module per noun; each has its verbs, its tables and nothing else.

pub mod access;
pub mod memory;
pub mod recall;
pub mod reviews;
pub mod sessions;
pub mod skills;
