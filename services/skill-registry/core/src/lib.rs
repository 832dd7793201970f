//! The rules of skill-registry, its ports and an in-memory store.
