//! The rules of curator-worker, its ports and an in-memory store.
